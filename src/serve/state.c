/* SPDX-License-Identifier: MIT */
/*
 * The table of processes and the closing of seconds. Slots are reused; an exited process keeps its
 * slot until EW_STATE_EXITED_MAX others have exited after it. A free slot has start_ns 0 and name
 * NULL and is in the list of free slots.
 */
#include "serve/state.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { INDEX_SIZE = 65536, FIRST_SLOTS = 256, MACHINE_BYTES = 4 << 20, DEVICE_BYTES = 2 << 20 };

#define MACHINE_KEEP_NS (UINT64_C(24) * 3600 * EW_STATE_SECOND_NS)

static bool grow(void *array, uint32_t *size, uint32_t max, size_t element)
{
    void **at = array;
    uint32_t wanted = *size == 0 ? FIRST_SLOTS : *size * 2;
    if (*size >= max)
        return false;
    if (wanted > max)
        wanted = max;
    void *grown = ew_realloc_array(*at, wanted, element);
    if (grown == NULL)
        return false;
    memset((char *)grown + *size * element, 0, (wanted - *size) * element);
    *at = grown;
    *size = wanted;
    return true;
}

static uint32_t *new_index(void)
{
    uint32_t *index = ew_calloc(INDEX_SIZE, sizeof *index);
    for (uint32_t i = 0; index != NULL && i < INDEX_SIZE; i++)
        index[i] = EW_STATE_NONE;
    return index;
}

int ew_state_init(struct ew_state *state, const struct ew_state_options *options)
{
    memset(state, 0, sizeof *state);
    state->options = *options;
    ew_catalog_init(&state->catalog);
    state->free_process = state->free_thread = state->free_group = EW_STATE_NONE;
    state->process_index = new_index();
    state->thread_index = new_index();
    state->group_index = new_index();
    state->exited = ew_calloc(EW_STATE_EXITED_MAX, sizeof *state->exited);
    size_t fine = options->fine_bytes != 0 ? options->fine_bytes : EW_STATE_FINE_BYTES;
    size_t coarse = options->coarse_bytes != 0 ? options->coarse_bytes : EW_STATE_COARSE_BYTES;
    int rc =
        ew_history_init(&state->fine, fine, options->fine_keep_ns, state->catalog.process_types);
    if (rc == 0)
        rc = ew_history_init(&state->coarse, coarse, options->coarse_keep_ns,
                             state->catalog.process_types);
    if (rc == 0)
        rc = ew_history_init(&state->machine, MACHINE_BYTES, MACHINE_KEEP_NS,
                             state->catalog.system_types);
    if (rc == 0)
        rc = ew_history_init(&state->device, DEVICE_BYTES, MACHINE_KEEP_NS,
                             state->catalog.device_types);
    if (rc == 0 && (state->process_index == NULL || state->thread_index == NULL ||
                    state->group_index == NULL || state->exited == NULL))
        rc = ETWATCH_ENOMEM;
    if (rc < 0)
        ew_state_done(state);
    return rc;
}

static void free_texts(struct ew_state_process *process)
{
    ew_free(process->name);
    ew_free(process->user);
    ew_free(process->cgroup);
    ew_free(process->cmdline);
}

void ew_state_done(struct ew_state *state)
{
    for (uint32_t i = 0; i < state->process_size; i++)
        free_texts(&state->processes[i]);
    for (uint32_t i = 0; i < state->group_size; i++) {
        ew_free(state->groups[i].key);
        ew_free(state->groups[i].name);
    }
    ew_free(state->processes);
    ew_free(state->threads);
    ew_free(state->groups);
    ew_free(state->process_index);
    ew_free(state->thread_index);
    ew_free(state->group_index);
    ew_free(state->exited);
    ew_free(state->active);
    ew_free(state->active_threads);
    ew_free(state->news);
    ew_history_done(&state->fine);
    ew_history_done(&state->coarse);
    ew_history_done(&state->machine);
    ew_history_done(&state->device);
    ew_strip_done(&state->sched);
    ew_latest_spans_done(&state->spans);
    memset(state, 0, sizeof *state);
}

/* ------------------------------------------------------------------------ the table */

static uint32_t *chain_of(const struct ew_state *state, uint32_t pid, uint64_t start_ns)
{
    return &state->process_index[ew_hash_identity(pid, start_ns, 0) % INDEX_SIZE];
}

uint32_t ew_state_find(const struct ew_state *state, uint32_t pid, uint64_t start_ns)
{
    uint32_t i = *chain_of(state, pid, start_ns);
    while (i != EW_STATE_NONE &&
           (state->processes[i].pid != pid || state->processes[i].start_ns != start_ns))
        i = state->processes[i].next;
    return i;
}

const struct ew_state_process *ew_state_at(const struct ew_state *state, uint32_t i)
{
    return i < state->process_size && state->processes[i].seen_ns != 0 ? &state->processes[i]
                                                                       : NULL;
}

static void unlink_process(struct ew_state *state, uint32_t i)
{
    uint32_t *link = chain_of(state, state->processes[i].pid, state->processes[i].start_ns);
    while (*link != i)
        link = &state->processes[*link].next;
    *link = state->processes[i].next;
}

static void forget_oldest_exited(struct ew_state *state)
{
    uint32_t i = state->exited[state->exited_first];
    struct ew_state_process *process = &state->processes[i];
    state->exited_first = (state->exited_first + 1) % EW_STATE_EXITED_MAX;
    state->exited_count--;
    /* The stream refers to its slot until the second is closed. */
    for (uint32_t n = 0; n < state->news_count; n++)
        if (state->news[n] == i)
            state->news[n] = EW_STATE_NONE;
    for (uint32_t n = 0; n < state->active_count; n++)
        if (state->active[n] == i)
            state->active[n--] = state->active[--state->active_count];
    ew_state_threads_free_of(state, process);
    unlink_process(state, i);
    free_texts(process);
    memset(process, 0, sizeof *process);
    process->next = state->free_process;
    state->free_process = i;
    state->process_count--;
}

/* Slots that were never used come after those in the list of free slots. */
static uint32_t take_slot(struct ew_state *state)
{
    uint32_t i = state->free_process;
    if (i != EW_STATE_NONE) {
        state->free_process = state->processes[i].next;
        state->process_count++;
        return i;
    }
    if (state->process_count == state->process_size &&
        !grow(&state->processes, &state->process_size, EW_STATE_PROCESSES_MAX,
              sizeof *state->processes)) {
        if (state->exited_count == 0)
            return EW_STATE_NONE;
        forget_oldest_exited(state);
        return take_slot(state);
    }
    return state->process_count++;
}

/* Whether the text changed. */
static bool set_text(char **text, const char *value)
{
    if (value == NULL || (*text != NULL && strcmp(*text, value) == 0))
        return false;
    char *copy = ew_strdup(value);
    if (copy == NULL)
        return false;
    ew_free(*text);
    *text = copy;
    return true;
}

static void add_news(struct ew_state *state, uint32_t i)
{
    if (state->news_count == state->news_size &&
        !grow(&state->news, &state->news_size, EW_STATE_PROCESSES_MAX, sizeof *state->news))
        return;
    state->news[state->news_count++] = i;
}

/* A sample may come without a start if the table of the collecting process was full. */
static uint32_t find_or_add(struct ew_state *state, const struct etwatch_sample *sample)
{
    uint32_t i = ew_state_find(state, sample->pid, sample->start_ns);
    if (i != EW_STATE_NONE)
        return i;
    i = take_slot(state);
    if (i == EW_STATE_NONE) {
        state->dropped++;
        return i;
    }
    struct ew_state_process *process = &state->processes[i];
    uint32_t *chain = chain_of(state, sample->pid, sample->start_ns);
    *process = (struct ew_state_process){
        .pid = sample->pid,
        .ppid = sample->ppid,
        .session_id = sample->session_id,
        .flags = sample->flags,
        .start_ns = sample->start_ns,
        .seen_ns = sample->t_ns != 0 ? sample->t_ns : 1,
        .threads = EW_STATE_NONE,
        .next = *chain,
    };
    *chain = i;
    (void)set_text(&process->name, sample->name);
    process->group = ew_groups_join(state, process);
    state->live++;
    add_news(state, i);
    return i;
}

/* ----------------------------------------------------------------------- one second */

static void close_process(struct ew_state *state, struct ew_state_process *process, uint64_t t_ns)
{
    uint64_t dt_ns =
        process->second_dt_ns > EW_STATE_SECOND_NS ? process->second_dt_ns : EW_STATE_SECOND_NS;
    uint64_t values[ETWATCH_METRIC_COUNT];
    for (uint32_t m = etwatch_metric_set_next(&process->second_has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&process->second_has, m + 1))
        values[m] = etwatch_metric_set_has(&state->catalog.process_counters, m)
                        ? process->second[m]
                        : process->values[m];
    (void)ew_history_append(&state->coarse, &process->coarse, t_ns, dt_ns, !process->incomplete,
                            &process->second_has, values);
    process->last_has = process->second_has;
    memcpy(process->last, process->second, sizeof process->last);
    process->last_t_ns = t_ns;
    process->last_dt_ns = dt_ns;
    memset(process->second, 0, sizeof process->second);
    process->second_has = (struct etwatch_metric_set){{0}};
    process->in_second = process->incomplete = false;
    process->second_dt_ns = 0;
}

static void close_second(struct ew_state *state)
{
    uint64_t t_ns = (state->second + 1) * EW_STATE_SECOND_NS;
    for (uint32_t n = 0; n < state->active_count; n++)
        close_process(state, &state->processes[state->active[n]], t_ns);
    ew_state_threads_close_second(state, t_ns);
    state->now_ns = t_ns;
    ew_groups_rank(state);
    if (state->on_second != NULL)
        state->on_second(state->ctx, t_ns);
    state->active_count = 0;
    state->news_count = 0;
    state->alerts_told = state->alert_count;
}

/* A fact at this time: closes the seconds before. Long gaps are skipped, there is nothing in them.
 */
static void reach(struct ew_state *state, uint64_t t_ns)
{
    uint64_t second = t_ns == 0 ? 0 : (t_ns - 1) / EW_STATE_SECOND_NS;
    if (t_ns == 0 || (state->second != 0 && second <= state->second))
        return;
    if (state->second != 0)
        close_second(state);
    else
        state->first_ns = t_ns;
    state->second = second;
}

static void set_active(struct ew_state *state, uint32_t i)
{
    struct ew_state_process *process = &state->processes[i];
    if (process->in_second)
        return;
    if (state->active_count == state->active_size &&
        !grow(&state->active, &state->active_size, EW_STATE_PROCESSES_MAX, sizeof *state->active))
        return;
    process->in_second = true;
    state->active[state->active_count++] = i;
}

/* --------------------------------------------------------------------------- facts */

static void take_values(struct ew_state *state, uint32_t i, const struct etwatch_sample *sample)
{
    struct ew_state_process *process = &state->processes[i];
    const struct ew_catalog *catalog = &state->catalog;
    for (uint32_t m = etwatch_metric_set_next(&sample->has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&sample->has, m + 1)) {
        uint64_t raw = ew_catalog_raw(sample, m);
        if (!etwatch_metric_set_has(&catalog->process_counters, m)) {
            process->values[m] = raw;
            continue;
        }
        process->values[m] = ew_catalog_sum(catalog->process_types[m], process->values[m], raw);
        process->second[m] = ew_catalog_sum(catalog->process_types[m], process->second[m], raw);
    }
    etwatch_metric_set_union(&process->has, &sample->has);
    etwatch_metric_set_union(&process->second_has, &sample->has);
    process->second_dt_ns += sample->dt_ns;
    process->incomplete |= (sample->flags & ETWATCH_SAMPLE_COMPLETE) == 0;
}

static void take_sample(struct ew_state *state, const struct etwatch_sample *sample)
{
    uint64_t values[ETWATCH_METRIC_COUNT];
    uint32_t i = find_or_add(state, sample);
    if (i == EW_STATE_NONE)
        return;
    struct ew_state_process *process = &state->processes[i];
    state->samples++;
    process->sampled = true;
    /* exec: a new name, so another group, and the stream shows it again. */
    if (set_text(&process->name, sample->name)) {
        process->group = ew_groups_rename(state, process);
        add_news(state, i);
    }
    set_active(state, i);
    take_values(state, i, sample);
    ew_groups_add(state, process->group, sample);
    if (sample->dt_ns >= EW_STATE_SECOND_NS)
        return; /* the coarse history has the same record */
    for (uint32_t m = etwatch_metric_set_next(&sample->has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&sample->has, m + 1))
        values[m] = ew_catalog_raw(sample, m);
    (void)ew_history_append(&state->fine, &process->fine, sample->t_ns, sample->dt_ns,
                            (sample->flags & ETWATCH_SAMPLE_COMPLETE) != 0, &sample->has, values);
}

static void take_start(struct ew_state *state, const struct etwatch_sample *sample)
{
    uint32_t i = find_or_add(state, sample);
    if (i == EW_STATE_NONE)
        return;
    struct ew_state_process *process = &state->processes[i];
    (void)set_text(&process->user, sample->user);
    (void)set_text(&process->cgroup, sample->cgroup);
    (void)set_text(&process->cmdline, sample->cmdline);
    if ((sample->flags & ETWATCH_SAMPLE_PREEXISTING) == 0) {
        state->started++;
        struct ew_state_group *group =
            process->group == EW_STATE_NONE ? &state->other : &state->groups[process->group];
        if (group->shown || group == &state->other)
            group->started++;
        else
            state->other.started++;
    }
    for (uint32_t m = etwatch_metric_set_next(&sample->has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&sample->has, m + 1)) {
        if (etwatch_metric_set_has(&state->catalog.process_counters, m))
            continue;
        process->values[m] = ew_catalog_raw(sample, m);
        etwatch_metric_set_add(&process->has, m);
    }
}

static void take_exit(struct ew_state *state, const struct etwatch_sample *sample)
{
    uint32_t i = find_or_add(state, sample);
    if (i == EW_STATE_NONE || state->processes[i].exit_ns != 0)
        return;
    struct ew_state_process *process = &state->processes[i];
    process->exit_ns = sample->t_ns != 0 ? sample->t_ns : 1;
    for (uint32_t m = ETWATCH_M_exit_ns; m <= ETWATCH_M_exit_signal; m++) {
        if (!etwatch_sample_has(sample, m))
            continue;
        process->values[m] = ew_catalog_raw(sample, m);
        etwatch_metric_set_add(&process->has, m);
    }
    state->exited_total++;
    state->live--;
    ew_groups_leave(state, process->group, sample->t_ns);
    add_news(state, i);
    if (state->exited_count == EW_STATE_EXITED_MAX)
        forget_oldest_exited(state);
    state->exited[(state->exited_first + state->exited_count++) % EW_STATE_EXITED_MAX] = i;
}

static void take_system(struct ew_state *state, const struct ew_serve_system *reading)
{
    uint64_t values[EW_HISTORY_VALUES];
    struct etwatch_metric_set has = reading->system.has;
    state->system = *reading;
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++) {
        if (!etwatch_metric_set_has(&has, m))
            continue;
        values[m] = ew_catalog_system_raw(&reading->system, m);
        if (etwatch_metric_set_has(&state->catalog.system_counters, m))
            state->system_counters[m] = ew_catalog_sum(state->catalog.system_types[m],
                                                       state->system_counters[m], values[m]);
        else
            state->system_counters[m] = values[m];
    }
    etwatch_metric_set_union(&state->system_has, &has);
    for (uint32_t i = 0; i < reading->cpu_count; i++) {
        if (!(reading->cpus[i] >= 0))
            continue;
        memcpy(&values[EW_CATALOG_CPU + i], &reading->cpus[i], sizeof values[0]);
        etwatch_metric_set_add(&has, EW_CATALOG_CPU + i);
    }
    (void)ew_history_append(&state->machine, &state->machine_mark, reading->system.t_ns,
                            reading->system.dt_ns, true, &has, values);
    /* Facts are up to half a second late; a quiet machine must still move on. */
    if (reading->system.t_ns > 3 * EW_STATE_SECOND_NS / 2)
        reach(state, reading->system.t_ns - 3 * EW_STATE_SECOND_NS / 2);
}

/* Drivers number their devices; a problem without a device concerns all of a driver. */
static struct ew_state_device *find_device(struct ew_state *state,
                                           const struct ew_serve_device *reading)
{
    uint32_t i = 0;
    while (i < state->device_count &&
           (state->devices[i].latest.kind != reading->kind ||
            state->devices[i].latest.index != reading->index ||
            strcmp(state->devices[i].latest.driver, reading->driver) != 0 ||
            strcmp(state->devices[i].latest.id, reading->id) != 0))
        i++;
    if (i == state->device_count) {
        if (i == EW_STATE_DEVICES_MAX)
            return NULL;
        state->device_count++;
        state->devices[i] = (struct ew_state_device){.latest = *reading};
    }
    return &state->devices[i];
}

static void take_device(struct ew_state *state, const struct ew_serve_device *reading)
{
    uint64_t values[EW_HISTORY_VALUES];
    bool absent = (reading->flags & ETWATCH_DEVICE_ABSENT) != 0;
    struct ew_state_device *device = absent ? NULL : find_device(state, reading);
    if (absent)
        return;
    if (device == NULL) {
        state->dropped++;
        return;
    }
    if ((reading->flags & ETWATCH_DEVICE_PROBLEM) != 0) {
        bool over = (reading->flags & ETWATCH_DEVICE_RECOVERED) != 0;
        memcpy(device->problem, over ? "" : reading->problem, over ? 1 : sizeof device->problem);
        return;
    }
    device->latest = *reading;
    device->seen_ns = device->seen_ns == 0 ? reading->t_ns : device->seen_ns;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++) {
        values[m] = reading->values[m];
        if (etwatch_metric_set_has(&reading->has, m) &&
            etwatch_metric_set_has(&state->catalog.device_counters, m))
            device->totals[m] += values[m];
    }
    etwatch_metric_set_union(&device->has, &reading->has);
    (void)ew_history_append(&state->device, &device->mark, reading->t_ns, reading->dt_ns, true,
                            &reading->has, values);
}

static void take_alert(struct ew_state *state, const struct ew_serve_alert *alert)
{
    state->alerts[state->alert_count++ % EW_STATE_ALERTS_MAX] = *alert;
}

static bool take_any_sample(struct ew_state *state, struct ew_bytes *body)
{
    struct etwatch_sample sample;
    if (!ew_wire_read_sample(body, &sample))
        return false;
    reach(state, sample.t_ns);
    switch (sample.type) {
    case ETWATCH_TYPE_START:
        take_start(state, &sample);
        return true;
    case ETWATCH_TYPE_EXIT:
        take_exit(state, &sample);
        return true;
    case ETWATCH_TYPE_SAMPLE:
        take_sample(state, &sample);
        return true;
    case ETWATCH_TYPE_THREAD:
        ew_state_threads_add(state, &sample);
        return true;
    default:
        return false;
    }
}

void ew_state_frame(struct ew_state *state, uint32_t type, struct ew_bytes *body)
{
    struct ew_serve_system system;
    struct ew_serve_alert alert;
    struct ew_serve_device device;
    struct ew_serve_span span;
    struct etwatch_loss loss;
    bool good = false;
    switch (type) {
    case EW_FRAME_META:
        good = state->meta_known = ew_wire_read_meta(body, &state->meta);
        break;
    case EW_FRAME_SAMPLE:
        good = take_any_sample(state, body);
        break;
    case EW_FRAME_LOSS:
        good = ew_wire_read_loss(body, &loss);
        if (good)
            state->lost += loss.count;
        state->loss_count += good;
        break;
    case EW_FRAME_ALERT:
        good = ew_wire_read_alert(body, &alert);
        if (good)
            take_alert(state, &alert);
        break;
    case EW_FRAME_SYSTEM:
        good = ew_wire_read_system(body, &system);
        if (good)
            take_system(state, &system);
        break;
    case EW_FRAME_STATS:
        good = ew_wire_read_stats(body, &state->stats);
        break;
    case EW_FRAME_DEVICE:
        good = ew_wire_read_device(body, &device);
        if (good)
            take_device(state, &device);
        break;
    case EW_FRAME_SPAN:
        good = ew_wire_read_span(body, &span);
        if (good)
            ew_latest_spans_add(&state->spans, &span);
        break;
    case EW_FRAME_SCHED:
    case EW_FRAME_STACKS:
    case EW_FRAME_DETAIL_END:
        good = ew_strip_frame(&state->sched, type, body);
        break;
    case EW_FRAME_END:
        good = state->ended = true;
        if (state->second != 0)
            close_second(state);
        break;
    default:
        break;
    }
    state->malformed += !good;
}

/* ------------------------------------------------------------------------- queries */

/* A recording has no latest second: counters a second, over the part of it in which the process
 * lived. */
static double average_of(const struct ew_state *state, const struct ew_state_process *process,
                         uint32_t metric)
{
    uint64_t to_ns = process->exit_ns != 0 ? process->exit_ns : state->now_ns;
    uint64_t from_ns = process->seen_ns > state->first_ns ? process->seen_ns : state->first_ns;
    bool cpu = metric == ETWATCH_M_cpu_percent;
    uint32_t m = cpu ? (uint32_t)ETWATCH_M_cpu_ns : metric;
    if (to_ns <= from_ns || !etwatch_metric_set_has(&process->has, m))
        return NAN;
    double sum = ew_catalog_number(state->catalog.process_types[m], process->values[m]);
    return sum / (double)(to_ns - from_ns) * (cpu ? 100 : (double)EW_STATE_SECOND_NS);
}

double ew_state_shown(const struct ew_state *state, const struct ew_state_process *process,
                      uint32_t metric)
{
    uint8_t type = state->catalog.process_types[metric];
    bool counter = etwatch_metric_set_has(&state->catalog.process_counters, metric);
    /* A process without a sample did nothing: that is what the absence of a sample means. */
    if (!etwatch_metric_set_has(&process->has, metric))
        return process->sampled || (!counter && metric != ETWATCH_M_cpu_percent) ? NAN : 0;
    /* cpu_percent is a gauge that ends with its interval. */
    if (!counter && metric != ETWATCH_M_cpu_percent)
        return ew_catalog_number(type, process->values[metric]);
    if (state->ended)
        return average_of(state, process, metric);
    if (process->last_t_ns == 0 || process->last_t_ns < state->now_ns)
        return 0;
    if (metric == ETWATCH_M_cpu_percent)
        return 100.0 * (double)process->last[ETWATCH_M_cpu_ns] / (double)process->last_dt_ns;
    return ew_catalog_number(type, process->last[metric]) * (double)EW_STATE_SECOND_NS /
           (double)process->last_dt_ns;
}

struct etwatch_metric_set ew_state_columns(const struct ew_state *state)
{
    struct etwatch_metric_set columns = {{0}};
    for (uint32_t i = 0; i < state->process_size; i++)
        etwatch_metric_set_union(&columns, &state->processes[i].has);
    return columns;
}

uint32_t ew_state_exactness(const struct ew_state *state, uint32_t metric)
{
    static const uint32_t by_source[] = {
        [ETWATCH_SOURCE_ETW] = ETWATCH_BACKEND_ETW,
        [ETWATCH_SOURCE_ETL] = ETWATCH_BACKEND_ETL,
        [ETWATCH_SOURCE_EBPF] = ETWATCH_BACKEND_EBPF,
        [ETWATCH_SOURCE_POLL] = ETWATCH_BACKEND_POLL_LINUX,
    };
    struct etwatch_metric_backend backend = {.size = sizeof backend};
    uint32_t source = state->meta.meta.source;
    if (etwatch_metric_set_has(&state->meta.meta.estimated, metric))
        return ETWATCH_EXACTNESS_ESTIMATED;
    if (source >= sizeof by_source / sizeof by_source[0] ||
        etwatch_metric_backend(metric, by_source[source], &backend) < 0)
        return ETWATCH_EXACTNESS_UNAVAILABLE;
    return backend.exactness;
}
