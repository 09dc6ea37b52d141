/* SPDX-License-Identifier: MIT */
/*
 * The state of one condition on one process. Windows are contiguous; while the process is idle the
 * value is 0.
 *
 * Start of a burst within a window: the window before the first one that holds contains less than
 * it would at the burst's level, so the burst covers that share of it, at its end. The same applies
 * to the burst's end. A window between two bursts contains a part of both; each gets half. The end
 * is therefore known only one window later (ENDING); by then the threads of that window are known
 * too.
 */
#include "sampler/alert_track.h"

#include <stdio.h>
#include <string.h>

static const uint64_t usual_for_ns = 5 * 1000 * 1000;

static bool holds(const struct ew_alert_rule *rule, double value)
{
    switch (rule->op) {
    case EW_ALERT_ABOVE:
        return value > rule->threshold;
    case EW_ALERT_AT_LEAST:
        return value >= rule->threshold;
    case EW_ALERT_BELOW:
        return value < rule->threshold;
    default:
        return value <= rule->threshold;
    }
}

static bool upwards(const struct ew_alert_rule *rule)
{
    return rule->op == EW_ALERT_ABOVE || rule->op == EW_ALERT_AT_LEAST;
}

static uint64_t least_ns(const struct ew_alert_rule *rule)
{
    return rule->for_ns != 0 ? rule->for_ns : ew_alert_fine(rule) ? usual_for_ns : 0;
}

/* ------------------------------------------------------------------- threads */

static uint64_t weight(const struct ew_track_thread *thread)
{
    return thread->now_ns + thread->before_ns + thread->cpu_ns;
}

/* A free entry, or that of the least busy thread if it used less than cpu_ns. */
static struct ew_track_thread *make_room(struct ew_track *track, uint64_t cpu_ns)
{
    if (track->thread_count < EW_ALERT_THREADS_MAX)
        return &track->threads[track->thread_count++];
    struct ew_track_thread *least = &track->threads[0];
    for (uint32_t i = 1; i < EW_ALERT_THREADS_MAX; i++)
        if (weight(&track->threads[i]) < weight(least))
            least = &track->threads[i];
    track->threads_beyond += weight(least) > 0;
    return weight(least) < cpu_ns ? least : NULL;
}

void ew_track_thread(struct ew_track *track, const struct etwatch_sample *sample)
{
    struct ew_track_thread *thread = NULL;
    if (!etwatch_sample_has(sample, ETWATCH_M_cpu_ns) || sample->cpu_ns == 0)
        return;
    for (uint32_t i = 0; i < track->thread_count && thread == NULL; i++)
        if (track->threads[i].tid == sample->tid)
            thread = &track->threads[i];
    if (thread == NULL) {
        thread = make_room(track, sample->cpu_ns);
        if (thread == NULL)
            return;
        *thread = (struct ew_track_thread){.tid = sample->tid};
        if (sample->thread_name != NULL)
            (void)snprintf(thread->name, sizeof thread->name, "%s", sample->thread_name);
    }
    thread->now_ns += sample->cpu_ns;
}

/* Ends a window; `holding`: it belongs to the alert. */
static void turn_threads(struct ew_track *track, bool holding)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < track->thread_count; i++) {
        struct ew_track_thread *thread = &track->threads[i];
        if (holding) {
            thread->cpu_ns += thread->before_ns + thread->now_ns;
            thread->before_ns = 0;
        } else {
            thread->before_ns = thread->now_ns;
        }
        thread->now_ns = 0;
        if (weight(thread) > 0)
            track->threads[kept++] = *thread;
    }
    track->thread_count = kept;
    track->threads_beyond = holding ? track->threads_beyond : 0;
}

/* Busiest first. Insertion sort: there are few. */
static uint32_t sort_threads(const struct ew_track *track,
                             struct etwatch_alert_thread ret_threads[EW_ALERT_THREADS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < track->thread_count; i++) {
        const struct ew_track_thread *thread = &track->threads[i];
        uint32_t at = count;
        if (thread->cpu_ns == 0)
            continue;
        for (; at > 0 && ret_threads[at - 1].cpu_ns < thread->cpu_ns; at--)
            ret_threads[at] = ret_threads[at - 1];
        ret_threads[at] = (struct etwatch_alert_thread){
            .tid = thread->tid,
            .cpu_ns = thread->cpu_ns,
            .name = thread->name[0] == '\0' ? NULL : thread->name,
        };
        count++;
    }
    return count;
}

/* ---------------------------------------------------------------------- reporting */

static void report(struct ew_track *track, const struct ew_track_config *config, bool ended)
{
    struct etwatch_alert_thread threads[EW_ALERT_THREADS_MAX];
    uint64_t length_ns = track->to_ns - track->from_ns, required_ns = least_ns(config->rule);
    /* Tolerance: clocks of CPUs differ by some µs, and a burst of exactly the required length must
     * be reported. */
    if (length_ns + required_ns / 64 < required_ns)
        return;
    uint32_t thread_entries = sort_threads(track, threads);
    struct etwatch_alert alert = {
        .size = sizeof alert,
        .flags = (track->incomplete ? 0 : ETWATCH_ALERT_COMPLETE) |
                 (ended ? ETWATCH_ALERT_ENDED : 0) | (config->edges ? ETWATCH_ALERT_EXACT : 0),
        .rule = track->rule,
        .metric = config->rule->metric,
        .condition = config->rule->text,
        .source = track->source,
        .pid = track->pid,
        .start_ns = track->start_ns,
        .name = track->name[0] == '\0' ? NULL : track->name,
        .from_ns = track->from_ns,
        .to_ns = track->to_ns,
        .window_ns = track->window_ns,
        .threshold = config->rule->threshold,
        .value = length_ns == 0 ? track->peak : track->area / (double)length_ns,
        .peak = track->peak,
        .thread_count = thread_entries + track->threads_beyond,
        .thread_entries = thread_entries,
        .threads = threads,
    };
    track->reported = true;
    config->alert(config->ctx, &alert);
}

void ew_track_report_open(struct ew_track *track, const struct ew_track_config *config)
{
    if (track->state == EW_TRACK_HOLDS && !track->reported)
        report(track, config, false);
}

static void forget(struct ew_track *track)
{
    track->state = EW_TRACK_IDLE;
    track->incomplete = track->reported = false;
    for (uint32_t i = 0; i < track->thread_count; i++)
        track->threads[i].cpu_ns = track->threads[i].before_ns = 0;
    track->window_ns = 0;
    track->area = track->peak = 0;
    track->before = 0;
    track->before_ns = 0;
}

/* share: the part of the following window that may belong to the alert. */
static void end(struct ew_track *track, const struct ew_track_config *config, double share)
{
    uint64_t length_ns = track->to_ns - track->from_ns;
    double level = length_ns == 0 ? 0 : track->area / (double)length_ns;
    if (config->edges && upwards(config->rule) && level > track->edge && track->edge > 0) {
        double more_ns = share * (double)track->edge_ns * track->edge / level;
        track->to_ns += (uint64_t)(more_ns + 0.5);
        track->area += more_ns * level;
    }
    report(track, config, true);
    forget(track);
}

/* ------------------------------------------------------------------- windows */

static void begin(struct ew_track *track, const struct ew_track_config *config, uint64_t begin_ns,
                  uint64_t end_ns, double value, double share)
{
    track->state = EW_TRACK_HOLDS;
    track->from_ns = begin_ns;
    track->to_ns = end_ns;
    track->area = value * (double)(end_ns - begin_ns);
    track->peak = value;
    if (!config->edges || !upwards(config->rule) || track->before <= 0 || value <= track->before)
        return;
    double more_ns = share * (double)track->before_ns * track->before / value;
    track->from_ns -= (uint64_t)(more_ns + 0.5);
    track->area += more_ns * value;
}

static void rest_window(struct ew_track *track, double value, uint64_t length_ns)
{
    track->before = value;
    track->before_ns = length_ns;
}

/* One whole window. */
static void step(struct ew_track *track, const struct ew_track_config *config, uint64_t begin_ns,
                 uint64_t end_ns, double value)
{
    bool now = holds(config->rule, value);
    double share = 1;
    if (track->state == EW_TRACK_ENDING) {
        double edge = track->edge;
        uint64_t edge_ns = track->edge_ns;
        share = now ? 0.5 : 1;
        end(track, config, share);
        rest_window(track, edge, edge_ns);
    }
    bool held = track->state == EW_TRACK_HOLDS;
    turn_threads(track, held || now);
    if (now)
        track->window_ns =
            end_ns - begin_ns > track->window_ns ? end_ns - begin_ns : track->window_ns;
    if (held && !now) {
        track->state = EW_TRACK_ENDING;
        track->edge = value;
        track->edge_ns = end_ns - begin_ns;
    } else if (held) {
        track->to_ns = end_ns;
        track->area += value * (double)(end_ns - begin_ns);
        track->peak = (value > track->peak) == upwards(config->rule) ? value : track->peak;
    } else if (now) {
        begin(track, config, begin_ns, end_ns, value, share);
    } else {
        rest_window(track, value, end_ns - begin_ns);
        track->incomplete = false;
    }
}

/* Ends the current window, when its threads are known. */
static void close_window(struct ew_track *track, const struct ew_track_config *config)
{
    uint64_t begin_ns = track->begin_ns, end_ns = track->end_ns;
    if (end_ns == begin_ns)
        return;
    double value = track->sum / (double)(end_ns - begin_ns);
    track->begin_ns = end_ns;
    track->sum = 0;
    step(track, config, begin_ns, end_ns, value);
}

static bool window_full(const struct ew_track *track, const struct ew_track_config *config,
                        uint64_t next_ns)
{
    uint64_t length_ns = track->end_ns - track->begin_ns;
    return length_ns > 0 && length_ns + next_ns / 2 >= config->window_ns;
}

void ew_track_add(struct ew_track *track, const struct ew_track_config *config, uint64_t begin_ns,
                  uint64_t end_ns, double value)
{
    if (end_ns <= begin_ns || end_ns <= track->end_ns)
        return;
    if (track->end_ns == 0)
        track->begin_ns = track->end_ns = begin_ns;
    if (begin_ns > track->end_ns)
        ew_track_rest(track, config, begin_ns);
    begin_ns = track->end_ns;
    if (window_full(track, config, end_ns - begin_ns))
        close_window(track, config);
    track->end_ns = end_ns;
    track->sum += value * (double)(end_ns - begin_ns);
}

void ew_track_rest(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns)
{
    if (t_ns <= track->end_ns || track->end_ns == 0)
        return;
    /* Fills the current window with idle time, then adds idle windows. */
    if (track->end_ns > track->begin_ns) {
        uint64_t full_ns = track->begin_ns + config->window_ns;
        if (full_ns > track->end_ns)
            track->end_ns = full_ns < t_ns ? full_ns : t_ns;
        if (track->end_ns < full_ns)
            return;
        close_window(track, config);
    }
    if (t_ns <= track->end_ns)
        return;
    uint64_t begin_ns = track->end_ns;
    track->begin_ns = track->end_ns = t_ns;
    step(track, config, begin_ns, t_ns, 0);
    if (track->state == EW_TRACK_ENDING)
        step(track, config, t_ns, t_ns, 0);
}

void ew_track_read(struct ew_track *track, const struct ew_track_config *config, uint64_t t_ns,
                   double value)
{
    bool now = holds(config->rule, value);
    if (track->end_ns != 0 && t_ns <= track->end_ns)
        return;
    if (track->state == EW_TRACK_HOLDS) {
        track->area += value * (double)(t_ns - track->end_ns);
        track->to_ns = t_ns;
        track->peak = (value > track->peak) == upwards(config->rule) ? value : track->peak;
        if (!now) {
            report(track, config, true);
            forget(track);
        }
    } else if (now) {
        track->state = EW_TRACK_HOLDS;
        track->from_ns = track->to_ns = t_ns;
        track->area = 0;
        track->peak = value;
    }
    track->begin_ns = track->end_ns = t_ns;
}

void ew_track_finish(struct ew_track *track, const struct ew_track_config *config, bool ended)
{
    close_window(track, config);
    if (track->state == EW_TRACK_ENDING)
        end(track, config, 1);
    else if (track->state == EW_TRACK_HOLDS)
        report(track, config, ended);
    forget(track);
}
