/* SPDX-License-Identifier: MIT */
/* A Perfetto trace of any bytes: every reported value is within its limits, and reading ends. */
#include <string.h>

#include "fuzz.h"
#include "source/pftrace/reader.h"

static void touch_text(const char *word)
{
    if (word != NULL)
        (void)touch(word, strlen(word));
}

static int on_meta(void *ctx, const struct etwatch_meta *meta, const char *os, const char *host)
{
    (void)ctx;
    touch_text(meta->fallback);
    touch_text(os);
    touch_text(host);
    return 0;
}

static int on_sample(void *ctx, const struct etwatch_sample *sample)
{
    (void)ctx;
    require(sample->type >= ETWATCH_TYPE_START && sample->type <= ETWATCH_TYPE_THREAD,
            "a sample has a type");
    touch_text(sample->name);
    touch_text(sample->thread_name);
    touch_text(sample->user);
    touch_text(sample->cgroup);
    touch_text(sample->cmdline);
    return 0;
}

static int on_event(void *ctx, const struct etwatch_event *event)
{
    (void)ctx;
    require(event->kind >= ETWATCH_EVENT_SWITCH && event->kind <= ETWATCH_EVENT_EXIT,
            "an event has a kind");
    touch_text(event->name);
    touch_text(event->next_name);
    return 0;
}

static int on_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)ctx;
    (void)touch(loss, sizeof *loss);
    return 0;
}

static int on_stats(void *ctx, const struct etwatch_stats *stats)
{
    (void)ctx;
    (void)touch(stats, sizeof *stats);
    return 0;
}

static int on_total(void *ctx, const struct etwatch_sample *total,
                    const struct etwatch_metric_set *estimated)
{
    (void)estimated;
    require(total->type == ETWATCH_TYPE_EXIT || total->type == ETWATCH_TYPE_THREAD,
            "a total has a type");
    return on_sample(ctx, total);
}

static int on_system(void *ctx, const struct etwatch_trace_system *system)
{
    (void)ctx;
    (void)touch(system, sizeof *system);
    return 0;
}

static int on_other(void *ctx, const char *provider, const char *event, uint64_t t_ns, bool decoded)
{
    (void)ctx;
    (void)t_ns;
    (void)decoded;
    touch_text(provider);
    touch_text(event);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_pftrace_visitor visitor = {
        .meta = on_meta,
        .sample = on_sample,
        .event = on_event,
        .loss = on_loss,
        .stats = on_stats,
        .total = on_total,
        .system = on_system,
        .other = on_other,
    };
    struct ew_pftrace_counts counts;
    struct ew_pftrace *trace = ew_pftrace_new();
    if (trace == NULL)
        return 0;
    int rc = ew_pftrace_bytes(trace, data, size, &visitor);
    require(rc == 0 || rc == ETWATCH_ENOMEM, "damage is counted, not an error");
    ew_pftrace_counts(trace, &counts);
    require(counts.bad_packets == 0 || counts.first_bad[0] != '\0', "damage has a reason");
    ew_pftrace_close(trace);
    return 0;
}
