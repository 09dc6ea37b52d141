/* SPDX-License-Identifier: MIT */
/*
 * The library as a program would use it: one monitor with its own thread and a batch callback that
 * counts. The callback does a few additions per sample, so the measured cost is that of the
 * library.
 *
 * Reads commands from stdin and answers each with one line of JSON on stdout:
 *   start   begins to watch; answers when watching has begun
 *   stats   counts so far
 *   stop    delivers the remaining samples and stops; answers with the counts
 *   reset   sets the counts back to 0
 *   quit    (or the end of stdin) ends
 * start and stop may follow each other any number of times: the chunk method needs that.
 *
 * --log FILE writes one line per object: type pid start_ns t_ns dt_ns cpu_ns tid. --tally counts
 * distinct processes, for short-lived ones.
 */
#include <stdatomic.h>

#include "etwatch/etwatch.h"
#include "util.h"

enum { MAX_PIDS = 64, TALLY_SLOTS = 1 << 18 };

/* One reported process, by identity. */
struct tally {
    uint64_t start_ns;
    uint32_t pid;
    uint32_t starts, exits, samples;
    uint64_t sample_cpu_ns, exit_cpu_ns;
};

struct counts {
    uint64_t batches, samples, starts, exits, threads, incomplete, lost, cpu_ns, whole_t_ns;
};

struct watcher {
    struct etwatch_monitor *monitor;
    struct counts counts;
    _Atomic uint64_t phase_t_ns; /* the end of the first interval */
    FILE *log;
    struct tally *tally;
    uint64_t interval_ns;
    uint32_t root_pid; /* not tallied: the parent of the short-lived ones */
};

static void fail(const char *what, int code, const struct etwatch_error_info *info)
{
    die("%s: %s: %s %s", what, etwatch_strerror(code), info->message, info->fix);
}

static struct tally *tally_slot(struct watcher *w, const struct etwatch_sample *s)
{
    uint64_t hash = (s->pid ^ (s->start_ns * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    for (uint64_t i = hash >> 46;; i = (i + 1) % TALLY_SLOTS) {
        struct tally *slot = &w->tally[i % TALLY_SLOTS];
        if (slot->pid == s->pid && slot->start_ns == s->start_ns)
            return slot;
        if (slot->pid == 0) {
            slot->pid = s->pid;
            slot->start_ns = s->start_ns;
            return slot;
        }
    }
}

static void tally(struct watcher *w, const struct etwatch_sample *s)
{
    if (s->pid == w->root_pid || s->pid == 0)
        return;
    struct tally *slot = tally_slot(w, s);
    if (s->type == ETWATCH_TYPE_START) {
        slot->starts++;
    } else if (s->type == ETWATCH_TYPE_EXIT) {
        slot->exits++;
        slot->exit_cpu_ns = s->cpu_ns;
    } else if (s->type == ETWATCH_TYPE_SAMPLE) {
        slot->samples++;
        slot->sample_cpu_ns += s->cpu_ns;
    }
}

static void log_sample(FILE *log, const struct etwatch_sample *s)
{
    fprintf(log, "%u %u %llu %llu %llu %llu %u\n", (unsigned)s->type, (unsigned)s->pid,
            (unsigned long long)s->start_ns, (unsigned long long)s->t_ns,
            (unsigned long long)s->dt_ns,
            (unsigned long long)(etwatch_sample_has(s, ETWATCH_M_cpu_ns) ? s->cpu_ns : 0),
            (unsigned)s->tid);
}

static void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct watcher *w = ctx;
    struct counts *c = &w->counts;
    c->batches++;
    for (size_t i = 0; i < count; i++) {
        const struct etwatch_sample *s = &samples[i];
        c->samples += s->type == ETWATCH_TYPE_SAMPLE;
        c->threads += s->type == ETWATCH_TYPE_THREAD;
        c->starts += s->type == ETWATCH_TYPE_START;
        c->exits += s->type == ETWATCH_TYPE_EXIT;
        c->incomplete += !(s->flags & ETWATCH_SAMPLE_COMPLETE);
        if (s->type == ETWATCH_TYPE_SAMPLE) {
            c->cpu_ns += s->cpu_ns;
            if (s->dt_ns == w->interval_ns) /* one shortened by an exit ends off the grid */
                c->whole_t_ns = s->t_ns;
        }
        if (w->tally != NULL)
            tally(w, s);
        if (w->log != NULL)
            log_sample(w->log, s);
    }
    if (c->whole_t_ns != 0 && atomic_load(&w->phase_t_ns) == 0)
        atomic_store(&w->phase_t_ns, c->whole_t_ns);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct watcher *w = ctx;
    w->counts.lost += loss->count;
}

static void answer_started(struct watcher *w)
{
    struct etwatch_meta meta = {.size = sizeof meta};
    int r = etwatch_monitor_meta(w->monitor, &meta);
    if (r < 0)
        die("meta: %s", etwatch_strerror(r));
    printf(
        "{\"pid\": %ld, \"source\": \"%s\", \"anchor_unix_ns\": %llu, \"anchor_raw_ns\": %llu}\n",
        (long)getpid(), etwatch_source_name(meta.source), (unsigned long long)meta.anchor_unix_ns,
        (unsigned long long)meta.anchor_raw_ns);
}

static void print_u64(const char *name, uint64_t value)
{
    printf("\"%s\": %llu, ", name, (unsigned long long)value);
}

static void print_tally(struct watcher *w)
{
    uint64_t processes = 0, starts = 0, exits = 0, sampled = 0, exact = 0, sample_ns = 0,
             exit_ns = 0;
    for (size_t i = 0; i < TALLY_SLOTS; i++) {
        const struct tally *t = &w->tally[i];
        if (t->pid == 0)
            continue;
        processes++;
        starts += t->starts;
        exits += t->exits;
        sampled += t->samples > 0;
        exact += t->starts == 1 && t->exits == 1 && t->samples > 0;
        sample_ns += t->sample_cpu_ns;
        exit_ns += t->exit_cpu_ns;
    }
    print_u64("tally_processes", processes);
    print_u64("tally_starts", starts);
    print_u64("tally_exits", exits);
    print_u64("tally_sampled", sampled);
    print_u64("tally_whole", exact);
    print_u64("tally_sample_cpu_ns", sample_ns);
    print_u64("tally_exit_cpu_ns", exit_ns);
}

static void answer_stats(struct watcher *w)
{
    struct etwatch_stats stats = {.size = sizeof stats};
    int r = etwatch_monitor_stats(w->monitor, &stats);
    if (r < 0)
        die("stats: %s", etwatch_strerror(r));
    const struct counts *c = &w->counts;
    printf("{");
    print_u64("batches", c->batches);
    print_u64("samples", c->samples);
    print_u64("threads", c->threads);
    print_u64("starts", c->starts);
    print_u64("exits", c->exits);
    print_u64("incomplete", c->incomplete);
    print_u64("lost_called", c->lost);
    print_u64("cpu_ns", c->cpu_ns);
    print_u64("phase_t_ns", atomic_load(&w->phase_t_ns));
    if (w->tally != NULL)
        print_tally(w);
    print_u64("lost", stats.lost);
    print_u64("late", stats.late);
    print_u64("undecoded", stats.undecoded);
    print_u64("events", stats.events);
    print_u64("wakeups", stats.wakeups);
    print_u64("processes", stats.processes);
    print_u64("self_rss_bytes", stats.self_rss_bytes);
    print_u64("self_rss_peak_bytes", stats.self_rss_peak_bytes);
    printf("\"hz_requested\": %.3f, \"hz_reached\": %.3f, \"self_cpu_percent\": %.4f, "
           "\"self_kernel_percent\": %.4f, \"seconds\": %.6f}\n",
           stats.hz_requested, stats.hz_reached, stats.self_cpu_percent, stats.self_kernel_percent,
           (double)stats.duration_ns / 1e9);
}

static void obey(struct watcher *w, const char *command)
{
    struct etwatch_error_info info = {.size = sizeof info};
    int r = 0;
    if (strcmp(command, "start") == 0) {
        r = etwatch_monitor_start(w->monitor, &info);
        if (r < 0)
            fail("start", r, &info);
        answer_started(w);
    } else if (strcmp(command, "stop") == 0) {
        r = etwatch_monitor_stop(w->monitor);
        if (r < 0)
            fail("stop", r, &info);
        if (w->log != NULL)
            fflush(w->log);
        answer_stats(w);
    } else if (strcmp(command, "stats") == 0) {
        answer_stats(w);
    } else if (strcmp(command, "reset") == 0) {
        memset(&w->counts, 0, sizeof w->counts);
        printf("{}\n");
    } else {
        die("unknown command '%s'", command);
    }
    fflush(stdout);
}

static uint32_t source_by_name(const char *name)
{
    for (uint32_t i = 0; i <= ETWATCH_SOURCE_POLL; i++) {
        if (strcmp(etwatch_source_name(i), name) == 0)
            return i;
    }
    die("--source: no such source: '%s'", name);
}

static void parse(int argc, char **argv, struct etwatch_config *config, uint32_t *pids,
                  struct watcher *w)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--all") == 0)
            config->flags |= ETWATCH_CONFIG_ALL;
        else if (strcmp(name, "--threads") == 0)
            config->flags |= ETWATCH_CONFIG_THREADS;
        else if (strcmp(name, "--tally") == 0)
            w->tally = pages(sizeof *w->tally * TALLY_SLOTS);
        else if (strcmp(name, "--hz") == 0)
            config->hz = (double)parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--latency") == 0)
            config->latency_ms = (uint32_t)parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--root-pid") == 0)
            w->root_pid = (uint32_t)parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--source") == 0)
            config->source = source_by_name(option_value(argc, argv, &i));
        else if (strcmp(name, "--pid") == 0 && config->pid_count < MAX_PIDS)
            pids[config->pid_count++] = (uint32_t)parse_u64(option_value(argc, argv, &i), name);
        else if (strcmp(name, "--log") == 0)
            w->log = fopen(option_value(argc, argv, &i), "w");
        else
            die("usage: watch_lib [--all] [--pid PID]… [--hz N] [--latency MS] [--source NAME]"
                " [--threads] [--tally] [--root-pid PID] [--log FILE]");
        if (strcmp(name, "--log") == 0 && w->log == NULL)
            die("--log: %s", strerror(errno));
    }
}

int main(int argc, char **argv)
{
    static struct watcher w;
    static uint32_t pids[MAX_PIDS];
    struct etwatch_config config = {.size = sizeof config,
                                    .flags = ETWATCH_CONFIG_NO_BUDGET | ETWATCH_CONFIG_NO_FALLBACK,
                                    .pids = pids,
                                    .callbacks = {.size = sizeof config.callbacks,
                                                  .on_samples = on_samples,
                                                  .on_loss = on_loss,
                                                  .ctx = &w}};
    parse(argc, argv, &config, pids, &w);
    w.interval_ns = (uint64_t)(1e9 / (config.hz > 0 ? config.hz : 10));
    end_with_parent(getppid());
    struct etwatch_error_info info = {.size = sizeof info};
    int r = etwatch_monitor_new(&config, &w.monitor, &info);
    if (r < 0)
        fail("new", r, &info);
    char line[32];
    while (read_command(line, sizeof line) && strcmp(line, "quit") != 0)
        obey(&w, line);
    etwatch_monitor_free(w.monitor);
    if (w.log != NULL && fclose(w.log) != 0)
        die("log: %s", strerror(errno));
    return 0;
}
