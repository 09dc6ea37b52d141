/* SPDX-License-Identifier: MIT */
/*
 * The writer of recordings: one open buffer per CPU, written in a single call when the next event
 * does not fit. Buffers of different CPUs therefore follow each other in the order in which they
 * were filled, as Windows writes them.
 *
 * Memory: one buffer for each CPU that has events, and room to compress one.
 */
#include "etl_writer.h"

#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"
#include "etl_writer_layout.h"
#include "source/etl/xpress.h"
#include "xpress_deflate.h"

enum {
    MIN_BUFFER_BYTES = 1024,
    MAX_BUFFER_BYTES = 16 * 1024 * 1024,
    MAX_CPUS = 2048,
    FLAG_FLUSH_MARKER = 0x01,
    FLAG_CPU_INDEX = 0x20,
    FLAG_COMPRESSED = 0x40,
    TYPE_GENERIC = 0,
    TYPE_HEADER = 4,
    STATE_FLUSH = 3,
    LOGGER_ID = 1,
    CPU_BYTE_ALIGNMENT = 8,
    PLAIN_HEADER_ALIGNMENT = 512, /* of the header buffer of a compressed file */
};

struct open_buffer {
    uint8_t *bytes; /* NULL: this CPU has had no event yet */
    uint32_t used;  /* including the buffer's header */
    uint64_t last_raw;
    uint64_t number; /* taken by its first event, as Windows does; 0: none yet */
};

struct ew_etl_writer {
    struct ew_etl_writer_config config;
    struct open_buffer *cpus;
    uint8_t *packed;  /* compressed form of one buffer */
    uint8_t *header;  /* the header buffer as written, for the patch at the end */
    uint32_t buffers; /* buffers written, including the header buffer */
    uint64_t numbers; /* the last number that a buffer took; the header buffer has 0 */
    uint32_t messages;
    int error; /* sticky: a failed write leaves an unusable file */
};

/* -------------------------------------------------------------------- buffers */

static uint64_t flush_time(const struct ew_etl_writer_config *c, uint64_t raw)
{
    if (!c->compress)
        return raw;
    uint64_t ticks = raw > c->start_raw ? raw - c->start_raw : 0;
    return (uint64_t)c->start_filetime + ew_etl_ticks_to_100ns(c, ticks);
}

static void put_buffer_header(struct ew_etl_writer *w, uint8_t *out, uint32_t size, uint32_t filled,
                              uint16_t cpu, uint16_t flags, uint16_t type, uint64_t number)
{
    memset(out, 0, EW_ETL_BUFFER_HEADER_BYTES);
    ew_store_u32(out, size);
    ew_store_u32(out + 4, filled);
    ew_store_u32(out + 8, filled);
    ew_store_u64(out + 0x18, number);
    if (w->config.cpu_bytes) {
        out[0x28] = (uint8_t)cpu;
        out[0x29] = CPU_BYTE_ALIGNMENT;
    } else {
        ew_store_u16(out + 0x28, cpu);
        flags |= FLAG_CPU_INDEX;
    }
    ew_store_u16(out + 0x2A, LOGGER_ID);
    ew_store_u32(out + 0x2C, STATE_FLUSH);
    ew_store_u32(out + 0x30, filled);
    ew_store_u16(out + 0x34, flags);
    ew_store_u16(out + 0x36, type);
}

static int write_out(struct ew_etl_writer *w, const uint8_t *bytes, size_t size)
{
    int rc = w->config.write(w->config.ctx, bytes, size);
    if (rc < 0)
        w->error = rc;
    else
        w->buffers++;
    return rc < 0 ? rc : 0;
}

static int flush_plain(struct ew_etl_writer *w, uint16_t cpu, uint16_t flags)
{
    struct open_buffer *open = &w->cpus[cpu];
    uint32_t size = w->config.buffer_bytes;
    put_buffer_header(w, open->bytes, size, open->used, cpu, flags, TYPE_GENERIC, open->number);
    ew_store_u64(open->bytes + 0x10, flush_time(&w->config, open->last_raw));
    memset(open->bytes + open->used, 0xFF, size - open->used);
    return write_out(w, open->bytes, size);
}

static int flush_compressed(struct ew_etl_writer *w, uint16_t cpu, uint16_t flags)
{
    struct open_buffer *open = &w->cpus[cpu];
    const uint8_t *data = open->bytes + EW_ETL_BUFFER_HEADER_BYTES;
    int64_t size = ew_xpress_deflate(data, open->used - EW_ETL_BUFFER_HEADER_BYTES,
                                     w->packed + EW_ETL_BUFFER_HEADER_BYTES);
    if (size < 0)
        return (int)size;
    size += EW_ETL_BUFFER_HEADER_BYTES;
    put_buffer_header(w, w->packed, (uint32_t)size, open->used, cpu, flags | FLAG_COMPRESSED,
                      TYPE_GENERIC, open->number);
    ew_store_u64(w->packed + 0x10, flush_time(&w->config, open->last_raw));
    return write_out(w, w->packed, (size_t)size);
}

static int flush_buffer(struct ew_etl_writer *w, uint16_t cpu, uint16_t flags)
{
    struct open_buffer *open = &w->cpus[cpu];
    if (open->number == 0) /* empty: written for its flags */
        open->number = ++w->numbers;
    int rc = w->config.compress ? flush_compressed(w, cpu, flags) : flush_plain(w, cpu, flags);
    if (rc == 0) {
        open->used = EW_ETL_BUFFER_HEADER_BYTES;
        open->number = 0;
    }
    return rc;
}

/* The header buffer is never compressed. In a compressed file its size is exactly what it needs. */
static int write_header(struct ew_etl_writer *w)
{
    uint8_t *event;
    size_t event_size;
    int rc = ew_etl_file_header_new(&w->config, &event, &event_size);
    if (rc < 0)
        return rc;
    size_t used = EW_ETL_BUFFER_HEADER_BYTES + ((event_size + 7) & ~(size_t)7);
    size_t size = w->config.buffer_bytes;
    if (w->config.compress)
        size =
            (used + PLAIN_HEADER_ALIGNMENT - 1) / PLAIN_HEADER_ALIGNMENT * PLAIN_HEADER_ALIGNMENT;
    if (used <= size)
        w->header = ew_calloc(size, 1);
    if (!w->header) {
        ew_free(event);
        return used <= size ? ETWATCH_ENOMEM : ETWATCH_EINVAL;
    }
    put_buffer_header(w, w->header, (uint32_t)size, (uint32_t)used, 0, FLAG_FLUSH_MARKER,
                      TYPE_HEADER, 0);
    memcpy(w->header + EW_ETL_BUFFER_HEADER_BYTES, event, event_size);
    memset(w->header + used, 0xFF, size - used);
    ew_free(event);
    return write_out(w, w->header, size);
}

/* --------------------------------------------------------------------- public */

static int check_config(const struct ew_etl_writer_config *c)
{
    bool sizes_ok = c->buffer_bytes >= MIN_BUFFER_BYTES && c->buffer_bytes <= MAX_BUFFER_BYTES &&
                    c->buffer_bytes % 8 == 0;
    bool cpus_ok = c->cpu_count <= (c->cpu_bytes ? 256u : (uint32_t)MAX_CPUS);
    bool rest_ok = (c->pointer_size == 4 || c->pointer_size == 8) && c->clock <= 3 && c->write;
    return sizes_ok && cpus_ok && rest_ok ? 0 : ETWATCH_EINVAL;
}

int ew_etl_writer_new(const struct ew_etl_writer_config *config, struct ew_etl_writer **ret_writer)
{
    *ret_writer = NULL;
    struct ew_etl_writer *w = ew_calloc(1, sizeof *w);
    if (!w)
        return ETWATCH_ENOMEM;
    w->config = ew_etl_config_filled(config);
    int rc = check_config(&w->config);
    if (rc == 0) {
        w->cpus = ew_calloc(w->config.cpu_count, sizeof *w->cpus);
        if (w->config.compress)
            w->packed =
                ew_calloc(EW_ETL_BUFFER_HEADER_BYTES + ew_xpress_bound(w->config.buffer_bytes), 1);
        if (!w->cpus || (w->config.compress && !w->packed))
            rc = ETWATCH_ENOMEM;
    }
    if (rc == 0)
        rc = write_header(w);
    /* The names belong to the caller and are not needed any more. */
    w->config.session_name = w->config.file_name = NULL;
    if (rc < 0) {
        ew_etl_writer_free(w);
        return rc;
    }
    *ret_writer = w;
    return 0;
}

void ew_etl_writer_free(struct ew_etl_writer *w)
{
    if (!w)
        return;
    for (uint32_t i = 0; w->cpus && i < w->config.cpu_count; i++)
        ew_free(w->cpus[i].bytes);
    ew_free(w->cpus);
    ew_free(w->packed);
    ew_free(w->header);
    ew_free(w);
}

static int open_cpu(struct ew_etl_writer *w, uint16_t cpu)
{
    if (cpu >= w->config.cpu_count)
        return ETWATCH_EINVAL;
    struct open_buffer *open = &w->cpus[cpu];
    if (open->bytes)
        return 0;
    open->bytes = ew_calloc(w->config.buffer_bytes, 1);
    open->used = EW_ETL_BUFFER_HEADER_BYTES;
    return open->bytes ? 0 : ETWATCH_ENOMEM;
}

int ew_etl_write(struct ew_etl_writer *w, const struct ew_etl_event *event)
{
    if (w->error)
        return w->error;
    int rc = open_cpu(w, event->cpu);
    if (rc < 0)
        return rc;
    struct open_buffer *open = &w->cpus[event->cpu];
    size_t size = ew_etl_event_size(event), padded = (size + 7) & ~(size_t)7;
    if (size == 0 || size > EW_ETL_MAX_EVENT_BYTES || event->t_raw < open->last_raw ||
        padded > w->config.buffer_bytes - EW_ETL_BUFFER_HEADER_BYTES)
        return ETWATCH_EINVAL;
    if (padded > w->config.buffer_bytes - open->used) {
        rc = flush_buffer(w, event->cpu, 0);
        if (rc < 0)
            return rc;
    }
    if (open->number == 0)
        open->number = ++w->numbers;
    uint8_t *at = open->bytes + open->used;
    ew_etl_event_put(event, size, w->messages, at);
    memset(at + size, 0, padded - size);
    w->messages += event->header_type == 15;
    open->used += (uint32_t)padded;
    open->last_raw = event->t_raw;
    return 0;
}

int ew_etl_writer_end_buffer(struct ew_etl_writer *w, uint16_t cpu, uint16_t flags)
{
    if (w->error)
        return w->error;
    int rc = open_cpu(w, cpu);
    if (rc < 0)
        return rc;
    if (w->cpus[cpu].used == EW_ETL_BUFFER_HEADER_BYTES && flags == 0)
        return 0;
    return flush_buffer(w, cpu, flags);
}

int ew_etl_writer_finish(struct ew_etl_writer *w, uint64_t end_raw, uint32_t events_lost,
                         uint32_t buffers_lost)
{
    if (w->error)
        return w->error;
    for (uint32_t cpu = 0; cpu < w->config.cpu_count; cpu++) {
        const struct open_buffer *open = &w->cpus[cpu];
        int rc = 0;
        if (open->bytes && open->used > EW_ETL_BUFFER_HEADER_BYTES)
            rc = flush_buffer(w, (uint16_t)cpu, 0);
        if (rc < 0)
            return rc;
    }
    if (!w->config.rewrite)
        return 0;
    uint64_t ticks = end_raw > w->config.start_raw ? end_raw - w->config.start_raw : 0;
    struct ew_etl_closing closing = {
        .end_filetime =
            w->config.start_filetime + (int64_t)ew_etl_ticks_to_100ns(&w->config, ticks),
        .buffers_written = w->buffers,
        .events_lost = events_lost,
        .buffers_lost = buffers_lost,
    };
    uint8_t *event = w->header + EW_ETL_BUFFER_HEADER_BYTES;
    ew_etl_file_header_close(event, w->config.pointer_size, &closing);
    int rc = w->config.rewrite(w->config.ctx, 0, w->header,
                               EW_ETL_BUFFER_HEADER_BYTES + event[4] + event[5] * 256u);
    return rc < 0 ? rc : 0;
}
