/* SPDX-License-Identifier: MIT */
/*
 * The input is a recording, and the public functions do everything with it: reports, events with
 * their fields, every table, every export, of all processes and of a selection. Whatever it is, the
 * cost stays in proportion to its size: memory held at a time (by the trace's own limit), bytes
 * allocated in all and CPU time. SECURITY.md states 1 us per byte, decompressed bytes included; the
 * bound here has room for slow machines, and for sanitizers where the build has them.
 */
#include <string.h>

#include <etwatch/arrow.h>
#include <etwatch/export.h>
#include <etwatch/trace.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "os/os.h"

/* clang states it in another way than gcc. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_SANITIZED
#endif
#endif

enum { MEMORY_FIXED = 64 << 20, MEMORY_SHARE = 128, PERFETTO_RATIO = 64, PERFETTO_FREE = 1 << 20 };
#define ALLOCATED_FIXED (UINT64_C(256) << 20) /* for each step */
#define ALLOCATED_SHARE UINT64_C(16384)
#if defined(__SANITIZE_ADDRESS__) || defined(FUZZ_SANITIZED)
#define SLOWER 10
#else
#define SLOWER 1
#endif
#define CPU_FIXED_NS (UINT64_C(500000000) * SLOWER) /* for each step */
#define CPU_SHARE_NS (UINT64_C(5000) * SLOWER)

struct cost {
    const char *path;
    size_t size;
    uint64_t bytes; /* those that may be read: decompressed ones count */
    uint64_t allocated, began_ns;
    uint64_t memory_max;
};

static int count_bytes(void *ctx, size_t size)
{
    struct cost *cost = ctx;
    cost->allocated += size;
    return 0;
}

static void begin_step(struct cost *cost)
{
    cost->allocated = 0;
    cost->began_ns = ew_os_thread_cpu_ns();
    ew_alloc_set_hook(count_bytes, cost);
}

static void end_step(const struct cost *cost, const char *what, int rc)
{
    ew_alloc_set_hook(NULL, NULL);
    uint64_t took_ns = ew_os_thread_cpu_ns() - cost->began_ns;
    bool fits = rc != ETWATCH_ELIMIT || strcmp(what, "typed") == 0; /* ... has too many columns */
    bool small = cost->allocated <= ALLOCATED_FIXED + ALLOCATED_SHARE * cost->size;
    bool quick = took_ns <= CPU_FIXED_NS + CPU_SHARE_NS * cost->bytes;
    if (!fits || !small || !quick)
        fprintf(stderr, "%s of %zu bytes: %d, %llu bytes allocated, %llu ns\n", what, cost->size,
                rc, (unsigned long long)cost->allocated, (unsigned long long)took_ns);
    require(fits, "memory is bounded");
    require(small, "allocations are bounded");
    require(quick, "time is bounded");
}

/* NULL: the input is no recording. */
static struct etwatch_trace *open_input(const struct cost *cost, bool selected)
{
    static const uint32_t pids[] = {4, 1000};
    struct etwatch_trace *trace = NULL;
    struct etwatch_trace_options options = {
        .size = sizeof options,
        .workers = 1,
        .pids = selected ? pids : NULL,
        .pid_count = selected ? 2 : 0,
        .max_memory_bytes = cost->memory_max,
    };
    int rc = etwatch_trace_open(&cost->path, 1, &options, &trace, NULL);
    require(rc != ETWATCH_ELIMIT, "opening fits into the memory");
    return rc == 0 ? trace : NULL;
}

static int on_process(void *ctx, const struct etwatch_sample *process,
                      const struct etwatch_metric_set *estimated)
{
    (void)ctx;
    (void)estimated;
    if (process->name != NULL)
        (void)touch(process->name, strlen(process->name));
    return 0;
}

static int on_class(void *ctx, const struct etwatch_trace_class *klass)
{
    (void)ctx;
    (void)touch(klass->event, strlen(klass->event));
    return 0;
}

static int on_image(void *ctx, const struct etwatch_trace_image *image)
{
    (void)ctx;
    (void)touch(image->path, strlen(image->path));
    return 0;
}

static int drop(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)touch(bytes, len);
    return 0;
}

static void report(struct cost *cost, bool selected)
{
    struct etwatch_report_callbacks callbacks = {
        .size = sizeof callbacks,
        .flags = ETWATCH_REPORT_THREADS | ETWATCH_REPORT_IMAGES | ETWATCH_REPORT_CMDLINE,
        .on_class = on_class,
        .on_process = on_process,
        .on_image = on_image,
    };
    begin_step(cost);
    struct etwatch_trace *trace = open_input(cost, selected);
    int rc = trace == NULL ? 0 : etwatch_trace_report(trace, &callbacks, NULL, NULL);
    etwatch_trace_free(trace);
    end_step(cost, selected ? "report -p" : "report", rc);
}

static void list_events(struct cost *cost, bool selected)
{
    struct etwatch_trace_event event = {.size = sizeof event};
    int rc = 0;
    begin_step(cost);
    struct etwatch_trace *trace = open_input(cost, selected);
    while (trace != NULL && (rc = etwatch_trace_next(trace, &event, NULL)) > 0)
        if (etwatch_trace_fields(trace, &event) == 0 && event.field_count > 0)
            (void)touch(event.fields, sizeof *event.fields);
    etwatch_trace_free(trace);
    end_step(cost, selected ? "events -p" : "events", rc);
}

static void export_all(struct cost *cost)
{
    static const struct {
        const char *what;
        uint32_t format, table, flags;
    } exports[] = {
        {"processes", ETWATCH_EXPORT_JSONL, ETWATCH_TABLE_PROCESSES, 0},
        {"threads", ETWATCH_EXPORT_CSV, ETWATCH_TABLE_THREADS, 0},
        {"events", ETWATCH_EXPORT_ARROW, ETWATCH_TABLE_EVENTS, ETWATCH_TABLE_FIELDS},
        {"typed", ETWATCH_EXPORT_ARROW, ETWATCH_TABLE_EVENTS, ETWATCH_TABLE_TYPED},
        {"perfetto", ETWATCH_EXPORT_PERFETTO, 0, 0},
        {"folded", ETWATCH_EXPORT_FOLDED, 0, 0},
        {"chrome", ETWATCH_EXPORT_CHROME, 0, 0},
    };
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        struct etwatch_table_options options = {.size = sizeof options, .flags = exports[i].flags};
        begin_step(cost);
        struct etwatch_trace *trace = open_input(cost, false);
        int rc = trace == NULL ? 0
                               : etwatch_trace_export(trace, exports[i].format, exports[i].table,
                                                      &options, drop, NULL, NULL, NULL, NULL);
        etwatch_trace_free(trace);
        end_step(cost, exports[i].what, rc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[1024];
    const char *folder = getenv("TMPDIR");
    folder = folder == NULL ? getenv("TEMP") : folder;
    (void)snprintf(path, sizeof path, "%s/etwatch_cost_%llx", folder == NULL ? "/tmp" : folder,
                   (unsigned long long)(ew_os_raw_ns() ^ (uintptr_t)path));
    FILE *file = fopen(path, "wb");
    require(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0,
            "the input is written to a file");
    struct cost cost = {.path = path, .size = size};
    /* The bytes of a Perfetto trace may be compressed. */
    uint64_t bytes =
        size > 0 && data[0] == 0x0A ? PERFETTO_FREE + (uint64_t)PERFETTO_RATIO * size : size;
    cost.bytes = bytes;
    cost.memory_max = MEMORY_FIXED + MEMORY_SHARE * bytes;
    struct etwatch_trace *trace = open_input(&cost, false);
    if (trace != NULL) {
        etwatch_trace_free(trace);
        report(&cost, false);
        report(&cost, true);
        list_events(&cost, false);
        list_events(&cost, true);
        export_all(&cost);
    }
    (void)remove(path);
    return 0;
}
