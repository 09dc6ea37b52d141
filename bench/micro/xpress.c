/* SPDX-License-Identifier: MIT */
/*
 * The cost of compression alone, compared with a plain copy of the same bytes: 64 KiB buffers of
 * scheduler and profiler events, or the compressed buffers of the given recording.
 *
 *   xpress [FILE.etl]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "etl_writer.h"
#include "source/etl/xpress.h"
#include "xpress_deflate.h"

enum { HEAD = 72, ROUNDS = 5, EVENTS = 200000, MAX_BUFFER = 16 * 1024 * 1024 };

struct block {
    uint8_t *bytes;
    size_t size, room;
};

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *must(void *block)
{
    if (!block) {
        fprintf(stderr, "xpress: no memory\n");
        exit(1);
    }
    return block;
}

static int append(void *ctx, const void *bytes, size_t len)
{
    struct block *b = ctx;
    if (b->size + len > b->room) {
        b->room = 2 * b->room + len;
        b->bytes = must(ew_realloc_array(b->bytes, b->room, 1));
    }
    memcpy(b->bytes + b->size, bytes, len);
    b->size += len;
    return 0;
}

/* Switches, readied threads, samples and interrupts of 4 CPUs. */
static void make_recording(struct block *file)
{
    static const struct {
        uint8_t group, opcode, size;
    } kinds[] = {{5, 36, 24}, {5, 50, 8}, {5, 36, 24}, {15, 46, 16}, {15, 68, 16}};
    struct ew_etl_writer_config config = {
        .cpu_count = 4, .compress = true, .ctx = file, .write = append};
    struct ew_etl_writer *writer;
    if (ew_etl_writer_new(&config, &writer) < 0)
        exit(1);
    uint64_t t_raw = 1000000, random = 1;
    for (uint32_t i = 0; i < EVENTS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(random >> 33);
        uint8_t payload[24] = {(uint8_t)(r % 64 * 4),
                               (uint8_t)(r / 64 % 4),
                               0,
                               0,
                               (uint8_t)(r >> 9),
                               (uint8_t)(r % 3),
                               0,
                               0,
                               8,
                               9,
                               0,
                               0,
                               (uint8_t)(r % 12),
                               1,
                               5,
                               (uint8_t)(i % 4),
                               (uint8_t)(r % 5)};
        unsigned kind = r % 5;
        t_raw += 1 + r % 300;
        struct ew_etl_event event = {.header_type = 17,
                                     .group = kinds[kind].group,
                                     .opcode = kinds[kind].opcode,
                                     .version = 2,
                                     .cpu = (uint16_t)(r / 7 % 4),
                                     .t_raw = t_raw,
                                     .payload = payload,
                                     .payload_size = kinds[kind].size};
        if (ew_etl_write(writer, &event) < 0)
            exit(1);
    }
    if (ew_etl_writer_finish(writer, t_raw, 0, 0) < 0)
        exit(1);
    ew_etl_writer_free(writer);
}

static void read_recording(const char *path, struct block *file)
{
    char chunk[65536];
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "xpress: cannot open %s\n", path);
        exit(1);
    }
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, in)) > 0;)
        append(file, chunk, got);
    fclose(in);
}

enum what { COPY, INFLATE, DEFLATE, HUFFMAN_INFLATE, HUFFMAN_DEFLATE, WHATS };

struct buffer {
    const uint8_t *packed; /* in the file */
    size_t packed_size, size, huffman_size;
    uint8_t *plain, *huffman;
};

struct work {
    struct buffer *buffers;
    size_t count, bytes, packed_bytes;
    uint8_t *out; /* the destination of everything: stays in the cache, as in a reader */
};

static void require(bool ok)
{
    if (!ok) {
        fprintf(stderr, "xpress: a buffer does not decompress\n");
        exit(1);
    }
}

static void add_buffer(struct work *w, const uint8_t *packed, size_t packed_size, size_t size)
{
    size_t written;
    uint8_t *plain = must(ew_calloc(size, 1));
    require(ew_xpress_inflate(packed, packed_size, plain, size, &written) == 0);
    int64_t huffman_size = ew_xpress_huffman_deflate(plain, size, w->out);
    require(huffman_size >= 0);
    uint8_t *huffman = must(ew_calloc((size_t)huffman_size, 1));
    memcpy(huffman, w->out, (size_t)huffman_size);
    w->buffers = must(ew_realloc_array(w->buffers, w->count + 1, sizeof *w->buffers));
    w->buffers[w->count++] =
        (struct buffer){packed, packed_size, size, (size_t)huffman_size, plain, huffman};
    w->bytes += size;
    w->packed_bytes += packed_size;
}

static void find_buffers(struct work *w, const struct block *file)
{
    for (size_t at = 0; at + HEAD <= file->size;) {
        const uint8_t *buffer = file->bytes + at;
        size_t size = ew_load_u32(buffer), filled = ew_load_u32(buffer + 0x30);
        if (size < HEAD || size > file->size - at)
            break;
        if ((ew_load_u16(buffer + 0x34) & 0x40) && filled > HEAD && filled < MAX_BUFFER)
            add_buffer(w, buffer + HEAD, size - HEAD, filled - HEAD);
        at += size;
    }
}

static void do_once(struct work *w, int what, const struct buffer *b)
{
    size_t written = b->size;
    int64_t rc = 0;
    if (what == COPY)
        memcpy(w->out, b->plain, b->size);
    else if (what == INFLATE)
        rc = ew_xpress_inflate(b->packed, b->packed_size, w->out, b->size, &written);
    else if (what == DEFLATE)
        rc = ew_xpress_deflate(b->plain, b->size, w->out);
    else if (what == HUFFMAN_INFLATE)
        rc = ew_xpress_huffman_inflate(b->huffman, b->huffman_size, w->out, b->size, &written);
    else
        rc = ew_xpress_huffman_deflate(b->plain, b->size, w->out);
    require(rc >= 0 && written == b->size);
}

/* The fastest of some passes over all buffers: a single buffer repeated would be predicted. */
static uint64_t measure(struct work *w, int what)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start_ns = cpu_now_ns();
        for (size_t k = 0; k < w->count; k++)
            do_once(w, what, &w->buffers[k]);
        uint64_t ns = cpu_now_ns() - start_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return best_ns;
}

int main(int argc, char **argv)
{
    static const char *const names[WHATS] = {"copy", "inflate", "deflate", "huffman inflate",
                                             "huffman deflate"};
    struct block file = {0};
    struct work w = {.out = must(ew_calloc(ew_xpress_bound(MAX_BUFFER), 1))};
    if (argc > 1)
        read_recording(argv[1], &file);
    else
        make_recording(&file);
    find_buffers(&w, &file);
    for (int what = 0; what < WHATS && w.bytes > 0; what++) {
        uint64_t ns = measure(&w, what);
        printf("{\"name\": \"%s\", \"unit\": \"ns a KiB\", \"value\": %.1f%s}\n", names[what],
               (double)ns * 1024 / (double)w.bytes,
               what == INFLATE ? ", \"ratio_to\": \"copy\"" : "");
        fprintf(stderr, "%-16s %8.0f MB/s of events\n", names[what],
                (double)w.bytes * 1000 / (double)ns);
    }
    if (w.bytes > 0)
        printf("{\"name\": \"size\", \"unit\": \"%% of the events\", \"value\": %.1f}\n",
               (double)w.packed_bytes * 100 / (double)w.bytes);
    for (size_t i = 0; i < w.count; i++) {
        ew_free(w.buffers[i].plain);
        ew_free(w.buffers[i].huffman);
    }
    ew_free(w.buffers);
    ew_free(w.out);
    ew_free(file.bytes);
    return 0;
}
