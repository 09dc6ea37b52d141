/* SPDX-License-Identifier: MIT */
/* Recordings of the synthetic machine: their content, and the state of the file. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "make_etl.h"

enum { DEFAULT_EVENTS = 20000 };

static bool is_big_enough(void *ctx)
{
    const struct make_output *output = ctx;
    return output->written >= output->stop_bytes;
}

static struct etl_scenario_config scenario(const struct make_options *o, struct make_output *output,
                                           uint32_t classes)
{
    struct etl_scenario_config c = {.seed = o->seed,
                                    .classes = classes,
                                    .cpu_count = o->cpus,
                                    .pointer_size = o->pointer_size,
                                    .event_count = o->events,
                                    .process_count = o->processes,
                                    .start_raw = 1000000100};
    if (o->bytes != 0 && output) {
        output->stop_bytes = o->bytes;
        c.stop = is_big_enough;
        c.stop_ctx = output;
    } else if (o->events == 0) {
        c.event_count = DEFAULT_EVENTS;
    }
    return c;
}

static int record(const struct make_options *o, const struct ew_etl_writer_config *config,
                  const struct etl_scenario_config *what)
{
    struct ew_etl_writer *writer;
    struct etl_truth truth = {0};
    int rc = ew_etl_writer_new(config, &writer);
    if (rc < 0)
        return rc;
    rc = etl_scenario_run(what, writer, &truth);
    if (rc == 0)
        rc = ew_etl_writer_finish(writer, truth.last_raw, 0, 0);
    ew_etl_writer_free(writer);
    if (rc == 0)
        rc = make_truth(o, config, &truth);
    etl_truth_free(&truth);
    return rc;
}

static int make_classes(const struct make_options *o, struct make_output *output, uint32_t classes)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, classes);
    return record(o, &config, &what);
}

static int make_switches(const struct make_options *o, struct make_output *output)
{
    return make_classes(o, output, ETL_SWITCHES | ETL_READY | ETL_CHURN);
}

static int make_counted(const struct make_options *o, struct make_output *output,
                        enum etl_counters_fate fate)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING | ETL_COUNTERS);
    what.counters = fate;
    return record(o, &config, &what);
}

static int make_counters(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_NAMED);
}

static int make_counters_ours(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_OURS);
}

static int make_counters_late(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_NAMED_LATE);
}

static int make_counters_unnamed(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_UNNAMED);
}

static int make_counters_renamed(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_RENAMED);
}

static int make_counters_restart(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_RESTART);
}

static int make_counters_pause(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_PAUSE);
}

static int make_counters_disturbed(const struct make_options *o, struct make_output *output)
{
    return make_counted(o, output, ETL_COUNTERS_DISTURBED);
}

static int make_profile(const struct make_options *o, struct make_output *output)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_SAMPLES | ETL_CHURN | ETL_IMAGES);
    what.max_threads = 300; /* many other events between two samples */
    return record(o, &config, &what);
}

static int make_mixed(const struct make_options *o, struct make_output *output)
{
    return make_classes(o, output, ETL_EVERYTHING);
}

/*
 * A dense recording for scheduling and CPU use: 8 samples per millisecond and CPU, about 100,000
 * events per second and CPU, and about as many threads as on a desktop.
 */
static int make_dense(const struct make_options *o, struct make_output *output, bool chains)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING & ~ETL_STACKS);
    what.process_count = o->processes ? o->processes : 80;
    what.max_threads = 3000;
    what.gap_ticks = 100 / o->cpus;
    what.sample_100ns = 1250;
    what.chains = chains;
    return record(o, &config, &what);
}

static int make_bench(const struct make_options *o, struct make_output *output)
{
    return make_dense(o, output, true);
}

/* The worst case for readers: the next CPU and the kind of event are entirely random. */
static int make_chance(const struct make_options *o, struct make_output *output)
{
    return make_dense(o, output, false);
}

static int make_windows7(const struct make_options *o, struct make_output *output)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING);
    config.cpu_bytes = true;
    config.buffer_bytes = o->buffer_bytes ? o->buffer_bytes : 8192;
    config.os_major = 6;
    config.os_minor = 1;
    config.os_build = 7601;
    what.windows7 = true;
    return record(o, &config, &what);
}

static int make_unclosed(const struct make_options *o, struct make_output *output)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING);
    config.rewrite = NULL;
    return record(o, &config, &what);
}

static int make_circular(const struct make_options *o, struct make_output *output)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING);
    config.log_file_mode = 2;
    config.compress = false;
    config.buffer_bytes = o->buffer_bytes ? o->buffer_bytes : 8192;
    output->circular_slots = 17;
    return record(o, &config, &what);
}

static int make_clock(const struct make_options *o, struct make_output *output, uint32_t clock,
                      uint64_t frequency)
{
    struct ew_etl_writer_config config = make_config(o, output);
    struct etl_scenario_config what = scenario(o, output, ETL_EVERYTHING);
    config.clock = clock;
    config.perf_frequency = frequency;
    what.perf_frequency = frequency;
    return record(o, &config, &what);
}

static int make_clock_qpc(const struct make_options *o, struct make_output *output)
{
    return make_clock(o, output, 1, 2597891);
}

static int make_clock_system(const struct make_options *o, struct make_output *output)
{
    return make_clock(o, output, 2, 10000000);
}

static int make_clock_cycles(const struct make_options *o, struct make_output *output)
{
    return make_clock(o, output, 3, 10000000);
}

int make_memory(const struct make_options *o, bool compress, uint64_t events,
                struct etl_memory *ret_memory)
{
    struct ew_etl_writer_config config = make_config(o, NULL);
    struct etl_scenario_config what = scenario(o, NULL, ETL_EVERYTHING);
    what.event_count = events;
    config.compress = compress;
    config.buffer_bytes = o->buffer_bytes ? o->buffer_bytes : 4096;
    config.ctx = ret_memory;
    config.write = etl_memory_write;
    config.rewrite = etl_memory_rewrite;
    return record(o, &config, &what);
}

const struct make_kind make_plain_kinds[] = {
    {"switches", "processes, threads, switches and readying", make_switches},
    {"profile", "processes, threads and profile samples, no switches", make_profile},
    {"mixed", "every class of the kernel", make_mixed},
    {"bench", "every class, dense, mostly switches, samples, interrupts, faults", make_bench},
    {"chance", "the same, but every event on a random CPU", make_chance},
    {"counters", "every class, and hardware counters with switches", make_counters},
    {"counters-ours", "the same, as an etwatch session requests them", make_counters_ours},
    {"counters-late", "the same, named only at the end", make_counters_late},
    {"counters-unnamed", "the same, never named", make_counters_unnamed},
    {"counters-renamed", "the same, given other names halfway", make_counters_renamed},
    {"counters-restart", "the same, those of one CPU restart", make_counters_restart},
    {"counters-pause", "the same, some switches have none", make_counters_pause},
    {"counters-disturbed", "the same, marked as unreliable by Windows", make_counters_disturbed},
    {"windows7", "versions and buffers of Windows 7", make_windows7},
    {"unclosed", "the session was never stopped", make_unclosed},
    {"circular", "old buffers overwritten by new ones", make_circular},
    {"clock-qpc", "a QPC with an odd frequency", make_clock_qpc},
    {"clock-system", "stamps in system time", make_clock_system},
    {"clock-cycles", "stamps in CPU cycles", make_clock_cycles},
    {NULL, NULL, NULL},
};
