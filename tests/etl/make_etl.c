/* SPDX-License-Identifier: MIT */
/*
 * make_etl KIND OUT: makes a recording of one kind, for tests, fuzzing and benchmarks. The same
 * arguments give the same bytes. Memory does not grow with the file.
 */
#include "make_etl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

static const struct make_kind *const kind_tables[] = {
    make_plain_kinds, make_content_kinds, make_user_kinds,  make_graphics_kinds,
    make_wrong_kinds, make_damage_kinds,  make_names_kinds, make_onnx_kinds};

static void print_usage(FILE *to)
{
    fprintf(to, "usage: make_etl KIND OUT [--seed N] [--events N | --bytes N] [--compress]\n"
                "                [--cpus N] [--pointer 4|8] [--buffer BYTES] [--processes N]\n"
                "                [--truth FILE.json]\n"
                "       make_etl --list\n\n");
    for (size_t i = 0; i < sizeof kind_tables / sizeof kind_tables[0]; i++) {
        for (const struct make_kind *kind = kind_tables[i]; kind->name; kind++)
            fprintf(to, "  %-28s %s\n", kind->name, kind->what);
    }
}

static const struct make_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kind_tables / sizeof kind_tables[0]; i++) {
        for (const struct make_kind *kind = kind_tables[i]; kind->name; kind++) {
            if (strcmp(kind->name, name) == 0)
                return kind;
        }
    }
    return NULL;
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    *ret_number = strtoull(text, &end, 10);
    return *end == 0;
}

static bool parse_option(const char *name, const char *value, struct make_options *o)
{
    uint64_t number = 0;
    if (strcmp(name, "--truth") == 0) {
        o->truth = value;
        return value != NULL;
    }
    if (!parse_number(value, &number))
        return false;
    if (strcmp(name, "--seed") == 0)
        o->seed = number;
    else if (strcmp(name, "--events") == 0)
        o->events = number;
    else if (strcmp(name, "--bytes") == 0)
        o->bytes = number;
    else if (strcmp(name, "--cpus") == 0)
        o->cpus = (uint32_t)number;
    else if (strcmp(name, "--pointer") == 0)
        o->pointer_size = (uint32_t)number;
    else if (strcmp(name, "--processes") == 0)
        o->processes = (uint32_t)number;
    else if (strcmp(name, "--buffer") == 0)
        o->buffer_bytes = (uint32_t)number;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, struct make_options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--compress") == 0) {
            o->compress = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            if (!parse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, o))
                return false;
            i++;
        } else if (!o->kind) {
            o->kind = argv[i];
        } else if (!o->out) {
            o->out = argv[i];
        } else {
            return false;
        }
    }
    return o->kind && o->out;
}

/* --------------------------------------------------------------------- output */

int make_put(struct make_output *output, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, output->file) != size)
        return ETWATCH_EOS;
    output->written += size;
    return 0;
}

static int write_file(void *ctx, const void *bytes, size_t size)
{
    struct make_output *o = ctx;
    if (o->circular_slots != 0 && o->written != 0) {
        uint64_t at = o->header_bytes + o->slot * o->slot_bytes;
        if (fseek(o->file, (long)at, SEEK_SET) != 0)
            return ETWATCH_EOS;
        o->slot = (o->slot + 1) % o->circular_slots;
    } else if (o->written == 0) {
        o->header_bytes = o->slot_bytes = size;
    }
    return make_put(o, bytes, size);
}

static int rewrite_file(void *ctx, uint64_t offset, const void *bytes, size_t size)
{
    struct make_output *o = ctx;
    if (fseek(o->file, (long)offset, SEEK_SET) != 0)
        return ETWATCH_EOS;
    return fwrite(bytes, 1, size, o->file) == size ? 0 : ETWATCH_EOS;
}

struct ew_etl_writer_config make_config(const struct make_options *options,
                                        struct make_output *output)
{
    return (struct ew_etl_writer_config){.buffer_bytes = options->buffer_bytes,
                                         .cpu_count = options->cpus,
                                         .pointer_size = options->pointer_size,
                                         .start_raw = 1000000000,
                                         .log_file_mode = 1,
                                         .compress = options->compress,
                                         .session_name = "NT Kernel Logger",
                                         .file_name = "C:\\made.etl",
                                         .ctx = output,
                                         .write = write_file,
                                         .rewrite = rewrite_file};
}

/* ---------------------------------------------------------------------- truth */

/* The length of a tick of the session's clock; the writer declares 2400 MHz for all CPUs. */
struct tick {
    uint64_t ns, per;
};

static struct tick tick_of(const struct ew_etl_writer_config *config)
{
    if (config->clock == 2)
        return (struct tick){100, 1};
    if (config->clock == 3)
        return (struct tick){1000, 2400};
    return (struct tick){1000000000, config->perf_frequency ? config->perf_frequency : 10000000};
}

static uint64_t ns_of(struct tick tick, uint64_t ticks)
{
    return ticks / tick.per * tick.ns + ticks % tick.per * tick.ns / tick.per;
}

static void print_counters(FILE *file, const struct etl_truth_thread *x)
{
    fprintf(file,
            ", \"cycles\": %" PRIu64 ", \"instructions\": %" PRIu64 ", \"cache_misses\": %" PRIu64
            ", \"counters_gap\": %s}",
            x->counters[ETL_CYCLES], x->counters[ETL_INSTRUCTIONS], x->counters[ETL_CACHE_MISSES],
            x->counters_gap ? "true" : "false");
}

static void print_process(FILE *file, struct tick tick, const struct etl_truth *t, uint32_t i)
{
    const struct etl_truth_process *p = &t->processes[i];
    struct etl_truth_thread sum = {0};
    for (uint32_t k = 0; k < t->thread_count; k++) {
        const struct etl_truth_thread *x = &t->threads[k];
        if (x->process != i)
            continue;
        sum.cpu_ticks += x->cpu_ticks;
        sum.interrupt_ticks += x->interrupt_ticks;
        sum.ready_ticks += x->ready_ticks;
        sum.out_waiting += x->out_waiting;
        sum.out_ready += x->out_ready;
        sum.samples += x->samples;
        sum.faults += x->faults;
        sum.hard_faults += x->hard_faults;
        sum.disk_read_bytes += x->disk_read_bytes;
        sum.disk_write_bytes += x->disk_write_bytes;
        sum.file_read_bytes += x->file_read_bytes;
        sum.file_write_bytes += x->file_write_bytes;
        for (uint32_t c = 0; c < ETL_COUNTER_COUNT; c++)
            sum.counters[c] += x->counters[c];
        sum.counters_gap |= x->counters_gap;
    }
    fprintf(file,
            "  {\"pid\": %" PRIu32 ", \"parent\": %" PRIu32 ", \"session\": %" PRIu32
            ", \"name\": \"%s\", \"start_raw\": %" PRIu64 ", \"end_raw\": %" PRIu64
            ", \"exit_status\": %" PRId32 ", \"threads\": %" PRIu32 ", \"images\": %" PRIu32
            ",\n   \"cpu_ns\": %" PRIu64 ", \"interrupt_ns\": %" PRIu64 ", \"ready_ns\": %" PRIu64
            ", \"switches_waiting\": %" PRIu64 ", \"switches_ready\": %" PRIu64
            ", \"samples\": %" PRIu64 ", \"faults\": %" PRIu64 ", \"hard_faults\": %" PRIu64
            ",\n   \"disk_read_bytes\": %" PRIu64 ", \"disk_write_bytes\": %" PRIu64
            ", \"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64
            ", \"sent_bytes\": %" PRIu64 ", \"received_bytes\": %" PRIu64
            ", \"working_set_peak_bytes\": %" PRIu64,
            p->pid, p->parent_pid, p->session_id, p->name, p->start_raw, p->end_raw, p->exit_status,
            p->thread_count, p->image_count, ns_of(tick, sum.cpu_ticks),
            ns_of(tick, sum.interrupt_ticks), ns_of(tick, sum.ready_ticks), sum.out_waiting,
            sum.out_ready, sum.samples, sum.faults, sum.hard_faults, sum.disk_read_bytes,
            sum.disk_write_bytes, sum.file_read_bytes, sum.file_write_bytes, p->sent_bytes,
            p->received_bytes, p->working_set_peak_bytes);
    print_counters(file, &sum);
}

static void print_thread(FILE *file, struct tick tick, const struct etl_truth_thread *x)
{
    fprintf(file,
            "  {\"process\": %" PRIu32 ", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32
            ", \"start_raw\": %" PRIu64 ", \"end_raw\": %" PRIu64 ", \"cpu_ns\": %" PRIu64
            ", \"interrupt_ns\": %" PRIu64 ", \"ready_ns\": %" PRIu64
            ", \"switches_waiting\": %" PRIu64 ", \"switches_ready\": %" PRIu64
            ", \"samples\": %" PRIu64 ", \"faults\": %" PRIu64 ", \"hard_faults\": %" PRIu64
            ", \"disk_read_bytes\": %" PRIu64 ", \"disk_write_bytes\": %" PRIu64
            ", \"file_read_bytes\": %" PRIu64 ", \"file_write_bytes\": %" PRIu64,
            x->process, x->pid, x->tid, x->start_raw, x->end_raw, ns_of(tick, x->cpu_ticks),
            ns_of(tick, x->interrupt_ticks), ns_of(tick, x->ready_ticks), x->out_waiting,
            x->out_ready, x->samples, x->faults, x->hard_faults, x->disk_read_bytes,
            x->disk_write_bytes, x->file_read_bytes, x->file_write_bytes);
    print_counters(file, x);
}

int make_truth(const struct make_options *options, const struct ew_etl_writer_config *config,
               const struct etl_truth *t)
{
    struct tick tick = tick_of(config);
    if (!options->truth)
        return 0;
    FILE *file = fopen(options->truth, "wb");
    if (!file)
        return ETWATCH_EOS;
    fprintf(file,
            "{\"events\": %" PRIu64 ", \"switches\": %" PRIu64 ", \"readies\": %" PRIu64
            ", \"samples\": %" PRIu64 ", \"idle_samples\": %" PRIu64 ", \"idle_ns\": %" PRIu64
            ", \"busy_ns\": %" PRIu64 ", \"dpc_ns\": %" PRIu64 ", \"isr_ns\": %" PRIu64
            ",\n \"first_raw\": %" PRIu64 ", \"last_raw\": %" PRIu64 ", \"raw_ns\": %.9g"
            ",\n \"processes\": [\n",
            t->events, t->switches, t->readies, t->samples, t->idle_samples,
            ns_of(tick, t->idle_ticks), ns_of(tick, t->busy_ticks), ns_of(tick, t->dpc_ticks),
            ns_of(tick, t->isr_ticks), t->first_raw, t->last_raw,
            (double)tick.ns / (double)tick.per);
    for (uint32_t i = 0; i < t->process_count; i++) {
        print_process(file, tick, t, i);
        fputs(i + 1 < t->process_count ? ",\n" : "\n", file);
    }
    fputs(" ],\n \"threads\": [\n", file);
    for (uint32_t i = 0; i < t->thread_count; i++) {
        print_thread(file, tick, &t->threads[i]);
        fputs(i + 1 < t->thread_count ? ",\n" : "\n", file);
    }
    fputs(" ]}\n", file);
    bool failed = ferror(file) != 0;
    return fclose(file) != 0 || failed ? ETWATCH_EOS : 0;
}

int main(int argc, char **argv)
{
    struct make_options options = {.seed = 1, .cpus = 4, .pointer_size = 8};
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof kind_tables / sizeof kind_tables[0]; i++) {
            for (const struct make_kind *kind = kind_tables[i]; kind->name; kind++)
                printf("%s\n", kind->name);
        }
        return 0;
    }
    const struct make_kind *kind = parse(argc, argv, &options) ? find_kind(options.kind) : NULL;
    if (!kind) {
        print_usage(stderr);
        return 2;
    }
    struct make_output output = {.file = fopen(options.out, "wb")};
    if (!output.file) {
        fprintf(stderr, "make_etl: cannot write %s\n", options.out);
        return 1;
    }
    int rc = kind->make(&options, &output);
    if (fclose(output.file) != 0 && rc == 0)
        rc = ETWATCH_EOS;
    if (rc < 0)
        fprintf(stderr, "make_etl: %s: error %d\n", options.kind, rc);
    return rc < 0 ? 1 : 0;
}
