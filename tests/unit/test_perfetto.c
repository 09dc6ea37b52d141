/* SPDX-License-Identifier: MIT */
/*
 * Perfetto traces, written and read back: everything is read back to the last bit, compressed or
 * not, and damage is counted and harmless.
 */
#include <stdio.h>
#include <string.h>

#include <etwatch/sink.h>

#include "base/alloc.h"
#include "base/proto.h"
#include "batches.h"
#include "source/pftrace/inflate.h"
#include "source/pftrace/reader.h"
#include "test.h"

enum { FILE_MAX = 1 << 22, MANY = 5000 };

/* --------------------------------------------------------------- wire format */

TEST(a_varint_of_any_size_is_read_back)
{
    const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct ew_buf buf;
        struct ew_bytes bytes;
        ew_buf_init(&buf, 0, NULL, NULL);
        ew_proto_varint(&buf, values[i]);
        ew_bytes_init(&bytes, buf.data, buf.len);
        CHECK_EQ_UINT(ew_proto_read_varint(&bytes), values[i]);
        CHECK_EQ_UINT(ew_bytes_left(&bytes), 0);
        CHECK(ew_bytes_ok(&bytes));
        ew_buf_done(&buf);
    }
}

TEST(a_varint_of_eleven_bytes_is_malformed)
{
    struct ew_bytes bytes;
    ew_bytes_init(&bytes, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
    (void)ew_proto_read_varint(&bytes);
    CHECK_EQ_INT(bytes.error, ETWATCH_EFORMAT);
    CHECK_EQ_UINT(bytes.error_offset, 0);
}

TEST(a_message_longer_than_127_bytes_keeps_its_content)
{
    char text[300];
    struct ew_buf buf;
    struct ew_bytes bytes;
    struct ew_proto_field outer, inner;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ew_buf_init(&buf, 0, NULL, NULL);
    size_t mark = ew_proto_begin(&buf, 3);
    ew_proto_u64(&buf, 1, 7);
    ew_proto_text(&buf, 2, text);
    ew_proto_sint(&buf, 4, -5);
    ew_proto_double(&buf, 5, 0.1);
    ew_proto_end(&buf, mark);
    ew_bytes_init(&bytes, buf.data, buf.len);
    CHECK(ew_proto_next(&bytes, &outer));
    CHECK_EQ_UINT(outer.number, 3);
    CHECK(ew_proto_next(&outer.body, &inner));
    CHECK_EQ_UINT(inner.u, 7);
    CHECK(ew_proto_next(&outer.body, &inner));
    CHECK_EQ_UINT(inner.body.size, 299);
    CHECK_EQ_MEM(inner.body.data, text, 299);
    CHECK(ew_proto_next(&outer.body, &inner));
    CHECK_EQ_INT(ew_proto_unzigzag(inner.u), -5);
    CHECK(ew_proto_next(&outer.body, &inner));
    CHECK(ew_proto_to_double(inner.u) == 0.1);
    CHECK(!ew_proto_next(&outer.body, &inner));
    CHECK(!ew_proto_next(&bytes, &outer));
    CHECK(ew_bytes_ok(&bytes));
    ew_buf_done(&buf);
}

/* ---------------------------------------------------------------------- inflate */

/* Made by zlib, with the fixed code. */
static const uint8_t hello_fixed[] = {0x78, 0x01, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x57,
                                      0xC8, 0x40, 0x27, 0x01, 0x68, 0x03, 0x08, 0xB1};

TEST(data_compressed_by_zlib_is_read_back)
{
    struct ew_inflated out = {.max = 1000};
    size_t at = 0;
    CHECK_EQ_INT(ew_inflate(hello_fixed, sizeof hello_fixed, &out, &at), 0);
    CHECK_EQ_UINT(out.len, 23);
    CHECK_EQ_MEM(out.data, "hello hello hello hello", 23);
    ew_inflated_done(&out);
}

TEST(a_compressed_stream_truncated_anywhere_is_refused)
{
    for (size_t size = 0; size < sizeof hello_fixed; size++) {
        struct ew_inflated out = {.max = 1000};
        size_t at = 0;
        CHECK(ew_inflate(hello_fixed, size, &out, &at) < 0);
        ew_inflated_done(&out);
    }
}

TEST(a_compressed_stream_with_a_flipped_bit_is_refused)
{
    for (size_t bit = 0; bit < 8 * sizeof hello_fixed; bit++) {
        uint8_t bytes[sizeof hello_fixed];
        struct ew_inflated out = {.max = 1000};
        size_t at = 0;
        memcpy(bytes, hello_fixed, sizeof bytes);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int rc = ew_inflate(bytes, sizeof bytes, &out, &at);
        /* Only the compression level, which has no effect, may change, together with its check
         * bits. */
        CHECK(rc < 0 || (out.len == 23 && memcmp(out.data, "hello hello hello hello", 23) == 0));
        ew_inflated_done(&out);
    }
}

TEST(more_than_the_maximum_is_not_decompressed)
{
    struct ew_inflated out = {.max = 10};
    size_t at = 0;
    CHECK_EQ_INT(ew_inflate(hello_fixed, sizeof hello_fixed, &out, &at), ETWATCH_ELIMIT);
    ew_inflated_done(&out);
}

/* --------------------------------------------------------------------- round trips */

struct file {
    uint8_t bytes[FILE_MAX];
    size_t len;
};

static int put_bytes(void *ctx, const void *bytes, size_t len)
{
    struct file *file = ctx;
    if (len > sizeof file->bytes - file->len)
        return ETWATCH_EOS;
    memcpy(file->bytes + file->len, bytes, len);
    file->len += len;
    return 0;
}

static struct file *new_file(void)
{
    struct file *file = ew_calloc(1, sizeof *file);
    CHECK(file != NULL);
    return file;
}

static struct etwatch_sink *new_sink(struct file *file)
{
    struct etwatch_sink *sink = NULL;
    struct etwatch_sink_options options = {
        .size = sizeof options, .host = "here", .os = "Linux 6.1.0"};
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_PERFETTO, put_bytes, file, &options, &sink, NULL),
                 0);
    struct etwatch_meta meta = {
        .size = sizeof meta,
        .source = ETWATCH_SOURCE_EBPF,
        .cpu_count = 4,
        .hz_requested = 10,
        .anchor_unix_ns = 1700000000123456789u,
        .anchor_raw_ns = 5000000001u,
        .estimated = {{12, 0, 5, 0}},
        .available = {{~UINT64_C(0), 1, ~UINT64_C(0), UINT64_C(1) << 63}},
    };
    CHECK_EQ_INT(etwatch_sink_meta(sink, &meta), 0);
    return sink;
}

/* Objects are compared with what was written as they are read. */
struct readback {
    const struct etwatch_sample *samples;
    size_t sample_count, sample_at;
    const struct etwatch_event *events;
    size_t event_count, event_at;
    size_t losses, metas, stats, others;
    struct etwatch_loss loss;
    struct etwatch_stats last_stats;
};

static int on_meta(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host)
{
    struct readback *readback = ctx;
    readback->metas++;
    CHECK_EQ_UINT(meta->anchor_unix_ns, 1700000000123456789u);
    CHECK_EQ_UINT(meta->anchor_raw_ns, 5000000001u);
    static const struct etwatch_metric_set estimated = {{12, 0, 5, 0}};
    static const struct etwatch_metric_set available = {
        {~UINT64_C(0), 1, ~UINT64_C(0), UINT64_C(1) << 63}};
    CHECK(etwatch_metric_set_equal(&meta->estimated, &estimated));
    CHECK(etwatch_metric_set_equal(&meta->available, &available));
    CHECK_EQ_UINT(meta->cpu_count, 4);
    CHECK_EQ_STR(os, "Linux 6.1.0");
    CHECK_EQ_STR(host, "here");
    return 0;
}

static void check_text(const char *got, const char *want)
{
    CHECK((got == NULL) == (want == NULL));
    if (got != NULL && want != NULL)
        CHECK_EQ_STR(got, want);
}

static int on_sample(void *ctx, const struct etwatch_sample *got)
{
    struct readback *readback = ctx;
    if (readback->sample_at == readback->sample_count)
        FAIL("more samples than were written");
    const struct etwatch_sample *want = &readback->samples[readback->sample_at++];
    CHECK_EQ_UINT(got->type, want->type);
    CHECK_EQ_UINT(got->pid, want->pid);
    CHECK_EQ_UINT(got->tid, want->tid);
    CHECK_EQ_UINT(got->start_ns, want->start_ns);
    CHECK_EQ_UINT(got->t_ns, want->t_ns);
    CHECK_EQ_UINT(got->dt_ns, want->dt_ns);
    CHECK_EQ_UINT(got->flags, want->flags);
    CHECK_EQ_UINT(got->source, want->source);
    CHECK_EQ_UINT(got->ppid, want->ppid);
    CHECK(etwatch_metric_set_equal(&got->has, &want->has));
#define ETWATCH_X(name, type, kind) CHECK_EQ_MEM(&got->name, &want->name, sizeof got->name);
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
    check_text(got->name, want->name);
    check_text(got->thread_name, want->thread_name);
    check_text(got->user, want->user);
    check_text(got->cmdline, want->cmdline);
    return 0;
}

static int on_event(void *ctx, const struct etwatch_event *got)
{
    struct readback *readback = ctx;
    if (readback->event_at == readback->event_count)
        FAIL("more events than were written");
    const struct etwatch_event *want = &readback->events[readback->event_at++];
    CHECK_EQ_UINT(got->kind, want->kind);
    CHECK_EQ_UINT(got->t_ns, want->t_ns);
    CHECK_EQ_UINT(got->cpu, want->cpu);
    CHECK_EQ_UINT(got->tid, want->tid);
    CHECK_EQ_UINT(got->next_tid, want->next_tid);
    CHECK_EQ_UINT(got->pid, want->pid);
    CHECK_EQ_UINT(got->next_pid, want->next_pid);
    CHECK_EQ_INT(got->priority, want->priority);
    CHECK_EQ_INT(got->next_priority, want->next_priority);
    CHECK_EQ_UINT(got->state, want->state);
    CHECK_EQ_UINT(got->target_cpu, want->target_cpu);
    check_text(got->name, want->name);
    check_text(got->next_name, want->next_name);
    return 0;
}

static int on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct readback *readback = ctx;
    readback->losses++;
    readback->loss = *loss;
    return 0;
}

static int on_stats(void *ctx, const struct etwatch_stats *stats)
{
    struct readback *readback = ctx;
    readback->stats++;
    readback->last_stats = *stats;
    return 0;
}

static int on_other(void *ctx, const char *provider, const char *event, uint64_t t_ns, bool decoded)
{
    struct readback *readback = ctx;
    readback->others += provider != NULL && event != NULL && (t_ns != 0 || decoded);
    return 0;
}

static struct ew_pftrace_counts read_back(const uint8_t *bytes, size_t size,
                                          struct readback *readback)
{
    struct ew_pftrace_visitor visitor = {
        .ctx = readback,
        .meta = on_meta,
        .sample = on_sample,
        .event = on_event,
        .loss = on_loss,
        .stats = on_stats,
        .other = on_other,
    };
    struct ew_pftrace_counts counts;
    struct ew_pftrace *trace = ew_pftrace_new();
    CHECK(trace != NULL);
    CHECK_EQ_INT(ew_pftrace_bytes(trace, bytes, size, &visitor), 0);
    ew_pftrace_counts(trace, &counts);
    ew_pftrace_close(trace);
    return counts;
}

static struct etwatch_sample sample_of(uint32_t type, uint64_t t_ns)
{
    return (struct etwatch_sample){
        .size = sizeof(struct etwatch_sample),
        .type = type,
        .source = ETWATCH_SOURCE_EBPF,
        .flags = ETWATCH_SAMPLE_COMPLETE | ETWATCH_SAMPLE_HAS_PPID,
        .pid = 77,
        .ppid = 1,
        .start_ns = 1700000000000000001u,
        .t_ns = 1700000001000000000u + t_ns,
        .dt_ns = type == ETWATCH_TYPE_START ? 0 : 100000000,
        .name = "worker",
        .user = "me",
        .cmdline = "worker --all",
    };
}

TEST(a_sample_is_read_back_to_the_last_bit)
{
    struct etwatch_sample samples[5] = {
        sample_of(ETWATCH_TYPE_START, 0), sample_of(ETWATCH_TYPE_SAMPLE, 100),
        sample_of(ETWATCH_TYPE_SAMPLE, 200), sample_of(ETWATCH_TYPE_THREAD, 200),
        sample_of(ETWATCH_TYPE_EXIT, 300)};
    for (size_t i = 1; i < 5; i++) {
        uint64_t value = UINT64_MAX;
        for (uint32_t m = 0; m < ETWATCH_METRIC_COUNT; m++)
            etwatch_metric_set_add(&samples[i].has, m);
#define ETWATCH_X(metric, type, kind) samples[i].metric = (type)(value -= 12345678901);
        ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
        samples[i].cpu_percent = 1.0 / 3.0 * (double)i;
        samples[i].priority = -20;
    }
    samples[2].name = "renamed"; /* by exec */
    samples[3].name = samples[4].name = "renamed";
    samples[3].tid = 78;
    samples[3].thread_name = "pool-1";
    etwatch_metric_set_remove(&samples[4].has, ETWATCH_M_rss_bytes);
    samples[4].rss_bytes = 0;
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    CHECK_EQ_INT(sink_samples(sink, samples, 5), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    struct readback readback = {.samples = samples, .sample_count = 5};
    struct ew_pftrace_counts counts = read_back(file->bytes, file->len, &readback);
    CHECK_EQ_UINT(readback.sample_at, 5);
    CHECK_EQ_UINT(readback.metas, 1);
    CHECK_EQ_UINT(counts.bad_packets, 0);
    etwatch_sink_free(sink);
    ew_free(file);
}

static struct etwatch_event *make_events(uint32_t cpu, size_t count)
{
    static const char *const names[] = {"swapper", "worker", "other", "third"};
    struct etwatch_event *events = ew_calloc(count, sizeof *events);
    uint64_t t_ns = 1700000001000000000u;
    uint32_t running = 0, seed = 7;
    CHECK(events != NULL);
    for (size_t i = 0; i < count; i++) {
        struct etwatch_event *e = &events[i];
        seed = seed * 1664525u + 1013904223u;
        uint32_t next = (running + 1 + (seed >> 20) % 3) % 4;
        t_ns += 1 + (seed >> 8) % 100000;
        *e = (struct etwatch_event){
            .size = sizeof *e,
            .t_ns = t_ns,
            .cpu = cpu,
            .target_cpu = UINT32_MAX,
            .tid = running == 0 ? 0 : 100 + running,
            .pid = running == 0 ? 0 : 100,
            .name = names[running],
            .priority = (int32_t)running,
        };
        if (i % 3 == 2) {
            e->kind = ETWATCH_EVENT_WAKEUP;
            e->next_tid = e->tid;
            e->next_pid = e->pid;
            e->tid = 102;
            e->pid = 100;
            e->name = "other";
            e->priority = 2;
            e->target_cpu = 1;
        } else {
            e->kind = ETWATCH_EVENT_SWITCH;
            e->state = (seed >> 30) == 0 ? 0 : 1;
            e->next_tid = next == 0 ? 0 : 100 + next;
            e->next_pid = next == 0 ? 0 : 100;
            e->next_name = names[next];
            e->next_priority = (int32_t)next;
            running = next;
        }
    }
    return events;
}

TEST(every_switch_and_wakeup_of_a_cpu_is_read_back_in_order)
{
    struct etwatch_event *events = make_events(3, MANY);
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    CHECK_EQ_INT(sink_events(sink, events, MANY), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    struct readback readback = {.events = events, .event_count = MANY};
    struct ew_pftrace_counts counts = read_back(file->bytes, file->len, &readback);
    CHECK_EQ_UINT(readback.event_at, MANY);
    CHECK_EQ_UINT(readback.others, 0);
    CHECK_EQ_UINT(counts.bad_packets, 0);
    /* A switch with its wake-up; only the random times do not repeat. */
    CHECK(file->len < 16 * MANY);
    etwatch_sink_free(sink);
    ew_free(events);
    ew_free(file);
}

TEST(a_switch_after_a_gap_names_the_outgoing_thread)
{
    struct etwatch_event *events = make_events(0, MANY);
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    /* Every tenth event and its neighbour are missing: chains break. */
    size_t kept = 0;
    for (size_t i = 0; i < MANY; i++)
        if (i % 10 > 1)
            events[kept++] = events[i];
    CHECK_EQ_INT(sink_events(sink, events, kept), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    struct readback readback = {.events = events, .event_count = kept};
    (void)read_back(file->bytes, file->len, &readback);
    CHECK_EQ_UINT(readback.event_at, kept);
    CHECK_EQ_UINT(readback.others, 0);
    etwatch_sink_free(sink);
    ew_free(events);
    ew_free(file);
}

TEST(losses_and_statistics_are_read_back)
{
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    struct etwatch_loss loss = {
        .size = sizeof loss, .stage = ETWATCH_LOSS_STREAM, .count = 9, .from_ns = 5, .to_ns = 6};
    struct etwatch_stats stats = {
        .size = sizeof stats, .lost = 9, .duration_ns = 77, .self_cpu_percent = 0.125};
    CHECK_EQ_INT(etwatch_sink_loss(sink, &loss), 0);
    CHECK_EQ_INT(etwatch_sink_stats(sink, &stats), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    struct readback readback = {0};
    (void)read_back(file->bytes, file->len, &readback);
    CHECK_EQ_UINT(readback.losses, 1);
    CHECK_EQ_UINT(readback.loss.stage, ETWATCH_LOSS_STREAM);
    CHECK_EQ_UINT(readback.loss.count, 9);
    CHECK_EQ_UINT(readback.loss.from_ns, 5);
    CHECK_EQ_UINT(readback.stats, 1);
    CHECK_EQ_UINT(readback.last_stats.duration_ns, 77);
    CHECK(readback.last_stats.self_cpu_percent == 0.125);
    etwatch_sink_free(sink);
    ew_free(file);
}

TEST(after_a_restart_the_rest_can_be_read_alone)
{
    struct etwatch_sample start = sample_of(ETWATCH_TYPE_START, 0);
    struct etwatch_sample samples[2] = {start, sample_of(ETWATCH_TYPE_SAMPLE, 100)};
    struct etwatch_event *events = make_events(1, 30);
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    CHECK_EQ_INT(sink_samples(sink, &start, 1), 0);
    CHECK_EQ_INT(sink_events(sink, events, 10), 0);
    CHECK_EQ_INT(etwatch_sink_restart(sink), 0);
    size_t from = file->len;
    CHECK_EQ_INT(sink_samples(sink, &samples[1], 1), 0);
    CHECK_EQ_INT(sink_events(sink, events + 10, 20), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    struct readback readback = {
        .samples = samples, .sample_count = 2, .events = events + 10, .event_count = 20};
    (void)read_back(file->bytes + from, file->len - from, &readback);
    CHECK_EQ_UINT(readback.metas, 1);
    CHECK_EQ_UINT(readback.sample_at, 2);
    CHECK_EQ_UINT(readback.event_at, 20);
    etwatch_sink_free(sink);
    ew_free(events);
    ew_free(file);
}

TEST(a_trace_truncated_anywhere_is_read_up_to_its_last_whole_packet)
{
    struct etwatch_event *events = make_events(0, 300);
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    size_t ends[3];
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ_INT(sink_events(sink, events + i * 100, 100), 0);
        CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
        ends[i] = file->len;
    }
    for (size_t size = ends[0]; size < file->len; size++) {
        struct readback readback = {.events = events, .event_count = 300};
        struct ew_pftrace_counts counts = read_back(file->bytes, size, &readback);
        CHECK_EQ_UINT(readback.event_at, size >= ends[1] ? 200 : 100);
        CHECK_EQ_UINT(counts.bad_packets, size != ends[0] && size != ends[1]);
    }
    etwatch_sink_free(sink);
    ew_free(events);
    ew_free(file);
}

static int ignore_sample(void *ctx, const struct etwatch_sample *sample)
{
    (void)ctx;
    (void)sample;
    return 0;
}

static int ignore_event(void *ctx, const struct etwatch_event *event)
{
    (void)ctx;
    (void)event;
    return 0;
}

TEST(a_flipped_bit_anywhere_is_harmless)
{
    struct etwatch_event *events = make_events(0, 40);
    struct etwatch_sample start = sample_of(ETWATCH_TYPE_START, 0);
    struct file *file = new_file();
    struct etwatch_sink *sink = new_sink(file);
    struct ew_pftrace_visitor visitor = {.sample = ignore_sample, .event = ignore_event};
    CHECK_EQ_INT(sink_samples(sink, &start, 1), 0);
    CHECK_EQ_INT(sink_events(sink, events, 40), 0);
    CHECK_EQ_INT(etwatch_sink_flush(sink), 0);
    for (size_t bit = 0; bit < 8 * file->len; bit += 3) {
        struct ew_pftrace *trace = ew_pftrace_new();
        file->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_EQ_INT(ew_pftrace_bytes(trace, file->bytes, file->len, &visitor), 0);
        file->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ew_pftrace_close(trace);
    }
    etwatch_sink_free(sink);
    ew_free(events);
    ew_free(file);
}

/* --------------------------------------------------------------------- out of memory */

static int write_and_read(void *ctx)
{
    struct file *file = ctx;
    struct etwatch_sink *sink = NULL;
    struct etwatch_sample start = sample_of(ETWATCH_TYPE_START, 0);
    struct etwatch_event event = {.size = sizeof event,
                                  .kind = ETWATCH_EVENT_SWITCH,
                                  .t_ns = 1700000001000000000u,
                                  .tid = 1,
                                  .pid = 1,
                                  .next_tid = 2,
                                  .next_pid = 2};
    struct ew_pftrace_visitor visitor = {.sample = ignore_sample, .event = ignore_event};
    file->len = 0;
    int rc = etwatch_sink_new(ETWATCH_FORMAT_PERFETTO, put_bytes, file, NULL, &sink, NULL);
    if (rc == 0)
        rc = sink_samples(sink, &start, 1);
    if (rc == 0)
        rc = sink_events(sink, &event, 1);
    if (rc == 0)
        rc = etwatch_sink_flush(sink);
    etwatch_sink_free(sink);
    struct ew_pftrace *trace = rc == 0 ? ew_pftrace_new() : NULL;
    if (rc == 0)
        rc = trace == NULL ? ETWATCH_ENOMEM
                           : ew_pftrace_bytes(trace, file->bytes, file->len, &visitor);
    ew_pftrace_close(trace);
    return rc;
}

struct failing {
    size_t at, count;
};

static int fail_one(void *ctx, size_t size)
{
    struct failing *failing = ctx;
    (void)size;
    return failing->count++ == failing->at;
}

/*
 * Some allocations are optional (compression, a separate track), so not every failure is an error.
 */
TEST(a_failed_allocation_does_not_crash)
{
    struct file *file = new_file();
    bool failed = true;
    for (size_t at = 0; failed && at < 1000; at++) {
        struct failing failing = {.at = at};
        ew_alloc_set_hook(fail_one, &failing);
        int rc = write_and_read(file);
        ew_alloc_set_hook(NULL, NULL);
        failed = failing.count > at;
        CHECK(rc == 0 || rc == ETWATCH_ENOMEM);
        CHECK(failed || rc == 0);
    }
    CHECK(!failed);
    ew_free(file);
}
