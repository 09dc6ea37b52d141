/* SPDX-License-Identifier: MIT */
/*
 * The cost of reading a recording alone: every record is framed, merged by time and touched, but
 * not decoded. Without a file it makes one in memory: switches, 40 bytes each, distributed over 8
 * CPUs, plain and compressed.
 *
 *   etl_read [-w WORKERS] [-u STEPS] [FILE...]
 *
 * -u makes the consumer of the records busy: it reads the payload and computes STEPS steps of about
 * a nanosecond each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "etl_writer.h"
#include "os/os.h"
#include "source/etl/reader.h"

enum { CPUS = 8, EVENTS = 4000000, PAYLOAD = 24, SWITCH_GROUP = 5, SWITCH_OPCODE = 36 };

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "etl_read: %s\n", what);
    exit(1);
}

struct memory {
    uint8_t *bytes;
    size_t size, room;
};

static int append(void *ctx, const void *bytes, size_t len)
{
    struct memory *m = ctx;
    if (m->room - m->size < len) {
        m->room = 2 * m->room + len;
        m->bytes = ew_realloc_array(m->bytes, m->room, 1);
        if (!m->bytes)
            die("out of memory");
    }
    memcpy(m->bytes + m->size, bytes, len);
    m->size += len;
    return 0;
}

static void make(struct memory *m, bool compress)
{
    struct ew_etl_writer_config config = {
        .cpu_count = CPUS, .compress = compress, .start_raw = 1000, .ctx = m, .write = append};
    struct ew_etl_writer *writer = NULL;
    if (ew_etl_writer_new(&config, &writer) < 0)
        die("no writer");
    uint32_t seed = 1;
    uint64_t raw = 1000;
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint32_t payload[PAYLOAD / 4] = {0};
        seed = seed * 1664525u + 1013904223u;
        raw += seed >> 28;
        payload[0] = 4 * (1 + (seed >> 8) % 200);
        payload[1] = 4 * (1 + (seed >> 16) % 200);
        payload[2] = 0x0908;
        struct ew_etl_event event = {.header_type = 17,
                                     .group = SWITCH_GROUP,
                                     .opcode = SWITCH_OPCODE,
                                     .version = 4,
                                     .cpu = (uint16_t)((seed >> 20) % CPUS),
                                     .t_raw = raw,
                                     .payload = payload,
                                     .payload_size = sizeof payload};
        if (ew_etl_write(writer, &event) < 0)
            die("cannot write");
    }
    if (ew_etl_writer_finish(writer, raw + 1, 0, 0) < 0)
        die("cannot finish");
    ew_etl_writer_free(writer);
}

/* A dependency chain that the compiler cannot shorten. */
static uint64_t use(const struct ew_record *record, uint64_t sum, uint32_t steps)
{
    sum += record->t_ns ^ record->opcode;
    if (steps && record->payload_size)
        sum += record->payload[0];
    for (uint32_t i = 0; i < steps; i++)
        sum = sum * UINT64_C(6364136223846793005) + 1;
    return sum;
}

static void drain(struct ew_etl_reader *reader, const char *name, uint32_t workers, uint32_t steps)
{
    const struct ew_record *records;
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC), count = 0, sum = 0;
    uint64_t start_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    int got;
    while ((got = ew_etl_next(reader, &records)) > 0) {
        for (int i = 0; i < got; i++)
            sum = use(&records[i], sum, steps);
        count += (uint64_t)got;
    }
    uint64_t took_ns = now_ns(CLOCK_MONOTONIC) - start_ns, rss_bytes = 0, peak_bytes = 0;
    uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_ns;
    if (got < 0)
        die("reading failed");
    struct ew_etl_counts counts;
    ew_etl_counts(reader, &counts);
    (void)ew_os_self_rss(&rss_bytes, &peak_bytes);
    double ns = count ? (double)took_ns / (double)count : 0;
    printf("{\"name\": \"%s, %u workers\", \"unit\": \"ns a record\", \"value\": %.2f, "
           "\"cpu_ns\": %.2f, \"records\": %llu, \"million_per_s\": %.1f, \"late\": %llu, \"bad\": "
           "%llu, "
           "\"peak_rss_mib\": %llu, \"sum\": %llu}\n",
           name, (unsigned)workers, ns, count ? (double)cpu_ns / (double)count : 0,
           (unsigned long long)count, ns > 0 ? 1e3 / ns : 0, (unsigned long long)counts.late,
           (unsigned long long)(counts.bad_buffers + counts.bad_records),
           (unsigned long long)(peak_bytes >> 20), (unsigned long long)sum);
    ew_etl_close(reader);
}

static void read_memory(const char *name, bool compress, uint32_t workers, uint32_t steps)
{
    struct memory m = {0};
    make(&m, compress);
    struct ew_etl_options options = {.workers = workers};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error;
    if (ew_etl_open_memory(m.bytes, m.size, &options, &reader, &error) < 0)
        die(error.message);
    drain(reader, name, workers, steps);
    ew_free(m.bytes);
}

int main(int argc, char **argv)
{
    uint32_t workers = 1, steps = 0;
    int first = 1;
    for (; argc - first >= 2 && argv[first][0] == '-'; first += 2) {
        uint32_t value = (uint32_t)strtoul(argv[first + 1], NULL, 10);
        if (strcmp(argv[first], "-w") == 0)
            workers = value;
        else if (strcmp(argv[first], "-u") == 0)
            steps = value;
        else
            die("usage: etl_read [-w WORKERS] [-u STEPS] [FILE...]");
    }
    if (first == argc) {
        read_memory("etl plain", false, workers, steps);
        read_memory("etl compressed", true, workers, steps);
        return 0;
    }
    struct ew_etl_options options = {.workers = workers};
    struct ew_etl_reader *reader = NULL;
    struct ew_error error;
    if (ew_etl_open((const char *const *)argv + first, (size_t)(argc - first), &options, &reader,
                    &error) < 0)
        die(error.message);
    drain(reader, argv[first], workers, steps);
    return 0;
}
