/* SPDX-License-Identifier: MIT */
/*
 * Owns the counts of one run. The result depends only on the order of the facts, not on how they
 * arrive: a live run and its recording, which keeps the order, yield the same report to the last
 * digit.
 */
#include "sampler/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/sized.h"
#include "model/metric.h"

enum own_kind { START, EXIT, SAMPLE, THREAD, LOST, OWN_COUNT };
static const char *const own_names[OWN_COUNT] = {"start", "exit", "sample", "thread", "loss"};
/* By enum etwatch_event_kind. */
static const char *const sched_names[] = {
    "", "sched_switch", "sched_waking", "task_newtask", "sched_process_exec", "sched_process_exit",
};
enum { SCHED_COUNT = sizeof sched_names / sizeof sched_names[0] };

struct other_kind {
    char provider[24], event[64];
    uint64_t count;
    bool decoded;
};

struct cpu {
    uint64_t since_ns;
    uint32_t tid, pid;
    bool known;
};

struct total {
    struct etwatch_sample sample; /* owns its strings */
    struct etwatch_metric_set estimated;
};

struct etwatch_account {
    struct ew_account_options options;
    struct etwatch_meta meta;
    struct etwatch_stats stats;
    bool ended;       /* stats is valid */
    bool by_switches; /* no samples: CPU time is computed from switches */
    uint64_t own[OWN_COUNT], sched[SCHED_COUNT];
    struct other_kind *others;
    uint32_t other_count;
    uint16_t other_index[2 * EW_ACCOUNT_KINDS_MAX]; /* hash of the names: index + 1, or 0 */
    uint64_t beyond;                                /* events of kinds beyond the limit */
    uint64_t events, undecoded, lost, refused;
    uint64_t first_ns, last_ns;
    uint64_t busy_ns, idle_ns;
    struct cpu cpus[EW_ACCOUNT_CPUS_MAX];
    struct ew_account_rows rows;
    struct total *totals;
    uint32_t total_count, total_size;
    struct etwatch_trace_system system; /* size 0: unknown */
};

struct etwatch_account *ew_account_new(const struct ew_account_options *options)
{
    struct etwatch_account *account = ew_calloc(1, sizeof *account);
    if (account != NULL && options != NULL)
        account->options = *options;
    return account;
}

void etwatch_account_free(struct etwatch_account *account)
{
    if (account == NULL)
        return;
    ew_account_rows_done(&account->rows);
    for (uint32_t i = 0; i < account->total_count; i++)
        ew_account_strings_done(&account->totals[i].sample);
    ew_free(account->totals);
    ew_free(account->others);
    ew_free(account);
}

static void note_time(struct etwatch_account *account, uint64_t t_ns)
{
    if (account->first_ns == 0 || t_ns < account->first_ns)
        account->first_ns = t_ns;
    if (t_ns > account->last_ns)
        account->last_ns = t_ns;
    account->events++;
}

void ew_account_meta(struct etwatch_account *account, const struct etwatch_meta *meta)
{
    account->meta = *meta;
}

void ew_account_stats(struct etwatch_account *account, const struct etwatch_stats *stats)
{
    account->stats = *stats;
    account->ended = true;
}

void ew_account_loss(struct etwatch_account *account, const struct etwatch_loss *loss)
{
    account->own[LOST]++;
    account->lost += loss->count;
    note_time(account, loss->to_ns);
    /* The running threads are unknown after a loss, so their time is not attributed. */
    bool stream = loss->stage == ETWATCH_LOSS_STREAM || account->meta.source == ETWATCH_SOURCE_ETW;
    for (uint32_t i = 0; i < EW_ACCOUNT_CPUS_MAX && stream; i++)
        account->cpus[i].known = false;
}

/* ------------------------------------------------------------------- samples */

static struct ew_account_row *row_of(struct etwatch_account *account,
                                     const struct etwatch_sample *s)
{
    uint32_t tid = s->type == ETWATCH_TYPE_THREAD ? s->tid : 0;
    uint32_t owner = 0;
    if (tid != 0) {
        const struct ew_account_row *process =
            ew_account_row(&account->rows, s->pid, s->start_ns, 0);
        if (process == NULL)
            return NULL;
        owner = process->order;
    }
    struct ew_account_row *row = ew_account_row(&account->rows, s->pid, s->start_ns, tid);
    if (row != NULL && tid != 0)
        row->owner = owner;
    return row;
}

void ew_account_sample(struct etwatch_account *account, const struct etwatch_sample *s)
{
    static const enum own_kind kinds[] = {
        [ETWATCH_TYPE_START] = START,
        [ETWATCH_TYPE_EXIT] = EXIT,
        [ETWATCH_TYPE_SAMPLE] = SAMPLE,
        [ETWATCH_TYPE_THREAD] = THREAD,
    };
    if (s->type < ETWATCH_TYPE_START || s->type > ETWATCH_TYPE_THREAD)
        return;
    account->own[kinds[s->type]]++;
    note_time(account, s->t_ns);
    if (s->type == ETWATCH_TYPE_THREAD && !account->options.threads)
        return;
    struct ew_account_row *row = row_of(account, s);
    if (row == NULL) {
        account->refused++;
        return;
    }
    if (s->type == ETWATCH_TYPE_START) {
        row->started = row->started || (s->flags & ETWATCH_SAMPLE_PREEXISTING) == 0;
        struct etwatch_sample gauges = *s;
        gauges.flags |= ETWATCH_SAMPLE_COMPLETE;
        ew_account_row_end(row, &gauges, false);
        row->exited = false;
    } else if (s->type == ETWATCH_TYPE_EXIT) {
        ew_account_row_end(row, s, row->started && !account->options.part);
    } else {
        ew_account_row_add(row, s);
    }
}

/* -------------------------------------------------------------------- events */

void ew_account_by_switches(struct etwatch_account *account)
{
    account->by_switches = true;
}

static void add_run(struct etwatch_account *account, uint32_t pid, uint32_t tid, const char *name,
                    uint64_t from_ns, const struct etwatch_event *e)
{
    struct etwatch_sample s = {
        .size = sizeof s,
        .type = ETWATCH_TYPE_SAMPLE,
        .flags = ETWATCH_SAMPLE_COMPLETE,
        .pid = pid,
        .t_ns = e->t_ns,
        .name = pid == tid ? name : NULL,
        .thread_name = NULL,
        .has = EW_METRIC_SET(ETWATCH_M_cpu_ns, ETWATCH_M_switches_voluntary,
                             ETWATCH_M_switches_involuntary),
        .cpu_ns = e->t_ns - from_ns,
        .switches_voluntary = e->state != 0,
        .switches_involuntary = e->state == 0,
    };
    struct ew_account_row *row = row_of(account, &s);
    if (row == NULL) {
        account->refused++;
        return;
    }
    ew_account_row_add(row, &s);
    if (!account->options.threads)
        return;
    s.type = ETWATCH_TYPE_THREAD;
    s.tid = tid;
    s.thread_name = name;
    row = row_of(account, &s);
    if (row != NULL)
        ew_account_row_add(row, &s);
}

static void take_switch(struct etwatch_account *account, const struct etwatch_event *e)
{
    if (e->cpu >= EW_ACCOUNT_CPUS_MAX)
        return;
    struct cpu *cpu = &account->cpus[e->cpu];
    if (cpu->known && e->t_ns >= cpu->since_ns && cpu->tid == e->tid) {
        uint64_t ran_ns = e->t_ns - cpu->since_ns;
        *(e->tid != 0 ? &account->busy_ns : &account->idle_ns) += ran_ns;
        if (account->by_switches && e->tid != 0)
            add_run(account, e->pid, e->tid, e->name, cpu->since_ns, e);
    }
    cpu->known = true;
    cpu->tid = e->next_tid;
    cpu->since_ns = e->t_ns;
}

void ew_account_event(struct etwatch_account *account, const struct etwatch_event *e)
{
    if (e->kind == 0 || e->kind >= SCHED_COUNT)
        return;
    account->sched[e->kind]++;
    note_time(account, e->t_ns);
    if (e->kind == ETWATCH_EVENT_SWITCH)
        take_switch(account, e);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = ew_hash_mix(hash, (uint8_t)*text);
    return ew_hash_mix(hash, 0);
}

/* The slot of a kind, or the free one for it: there are twice as many slots as kinds. */
static uint16_t *other_slot(struct etwatch_account *account, const char *provider,
                            const char *event)
{
    enum { MASK = 2 * EW_ACCOUNT_KINDS_MAX - 1 };
    uint64_t hash = hash_text(hash_text(ew_hash_seed(), provider), event);
    for (uint32_t at = (uint32_t)(hash >> 16) & MASK;; at = (at + 1) & MASK) {
        uint16_t *slot = &account->other_index[at];
        if (*slot == 0)
            return slot;
        const struct other_kind *kind = &account->others[*slot - 1];
        if (strcmp(kind->event, event) == 0 && strcmp(kind->provider, provider) == 0)
            return slot;
    }
}

void ew_account_other(struct etwatch_account *account, const char *provider, const char *event,
                      uint64_t t_ns, bool decoded)
{
    if (t_ns != 0)
        note_time(account, t_ns);
    else
        account->events++;
    account->undecoded += !decoded;
    uint16_t *slot = other_slot(account, provider, event);
    if (*slot != 0) {
        account->others[*slot - 1].count++;
        return;
    }
    if (account->others == NULL)
        account->others = ew_calloc(EW_ACCOUNT_KINDS_MAX, sizeof *account->others);
    if (account->others == NULL || account->other_count == EW_ACCOUNT_KINDS_MAX) {
        account->beyond++;
        return;
    }
    struct other_kind *kind = &account->others[account->other_count++];
    *slot = (uint16_t)account->other_count;
    (void)snprintf(kind->provider, sizeof kind->provider, "%s", provider);
    (void)snprintf(kind->event, sizeof kind->event, "%s", event);
    kind->count = 1;
    kind->decoded = decoded;
}

/* -------------------------------------------------------------------- totals */

void ew_account_system(struct etwatch_account *account, const struct etwatch_trace_system *system)
{
    account->system = *system;
}

void ew_account_total(struct etwatch_account *account, const struct etwatch_sample *total,
                      const struct etwatch_metric_set *estimated)
{
    if (total->type == ETWATCH_TYPE_THREAD && !account->options.threads)
        return;
    if (account->total_count == account->total_size) {
        uint32_t size = account->total_size == 0 ? 64 : account->total_size * 2;
        struct total *larger = size > EW_ACCOUNT_ROWS_MAX
                                   ? NULL
                                   : ew_realloc_array(account->totals, size, sizeof *larger);
        if (larger == NULL) {
            account->refused++;
            return;
        }
        account->totals = larger;
        account->total_size = size;
    }
    struct total *kept = &account->totals[account->total_count++];
    *kept = (struct total){.sample = *total, .estimated = *estimated};
    ew_account_strings_copy(&kept->sample);
}

/* Threads follow their process and inherit its name and whether it is selected. */
struct visit {
    const struct ew_account_visitor *visitor;
    const char *name;
    bool selected;
};

static int visit_one(struct visit *visit, struct etwatch_sample s, bool thread,
                     const struct etwatch_metric_set *estimated)
{
    const struct ew_account_visitor *visitor = visit->visitor;
    if (!thread) {
        visit->selected = visitor->wants == NULL || visitor->wants(visitor->ctx, &s);
        visit->name = s.name;
    }
    s.name = visit->name;
    if (!visitor->cmdline)
        s.cmdline = NULL;
    return visit->selected ? visitor->on_process(visitor->ctx, &s, estimated) : 0;
}

static int visit_totals(const struct etwatch_account *account,
                        const struct ew_account_visitor *visitor)
{
    struct visit visit = {.visitor = visitor, .selected = true};
    int rc = 0;
    for (uint32_t i = 0; i < account->total_count && rc == 0; i++) {
        const struct total *total = &account->totals[i];
        rc = visit_one(&visit, total->sample, total->sample.type == ETWATCH_TYPE_THREAD,
                       &total->estimated);
    }
    return rc;
}

/* ------------------------------------------------------------------- visiting */

uint64_t ew_account_end_ns(const struct etwatch_account *account)
{
    return account->ended ? account->meta.anchor_unix_ns + account->stats.duration_ns : 0;
}

void ew_account_sum(const struct etwatch_account *account, struct etwatch_trace_stats *ret_stats,
                    struct etwatch_trace_system *ret_system)
{
    uint64_t lost =
        account->ended && account->stats.lost > account->lost ? account->stats.lost : account->lost;
    ret_stats->events = account->events;
    ret_stats->undecoded = account->undecoded + account->stats.undecoded;
    ret_stats->lost = lost + account->refused;
    ret_stats->late = account->stats.late;
    ret_stats->first_ns = account->first_ns;
    ret_stats->last_ns = account->last_ns;
    *ret_system = (struct etwatch_trace_system){
        .size = sizeof *ret_system,
        .cpu_from_switches = account->sched[ETWATCH_EVENT_SWITCH] > 0,
        .busy_ns = account->busy_ns,
        .idle_ns = account->idle_ns,
        .switches = account->sched[ETWATCH_EVENT_SWITCH],
    };
    if (account->system.size != 0 && !account->options.part)
        *ret_system = account->system;
}

static int visit_class(const struct ew_account_visitor *visitor, const char *provider,
                       const char *event, uint64_t count, bool decoded)
{
    struct etwatch_trace_class klass = {
        .size = sizeof klass,
        .decoded = decoded,
        .state = decoded ? ETWATCH_CLASS_DECODED : ETWATCH_CLASS_RAW,
        .count = count,
        .provider = provider,
        .event = event,
    };
    return count == 0 ? 0 : visitor->on_class(visitor->ctx, &klass);
}

int ew_account_visit_classes(struct etwatch_account *account,
                             const struct ew_account_visitor *visitor)
{
    int rc = 0;
    for (uint32_t i = 0; i < OWN_COUNT && rc == 0; i++)
        rc = visit_class(visitor, "etwatch", own_names[i], account->own[i], true);
    for (uint32_t i = 1; i < SCHED_COUNT && rc == 0; i++)
        rc = visit_class(visitor, "sched", sched_names[i], account->sched[i], true);
    for (uint32_t i = 0; i < account->other_count && rc == 0; i++) {
        const struct other_kind *kind = &account->others[i];
        rc = visit_class(visitor, kind->provider, kind->event, kind->count, kind->decoded);
    }
    return rc == 0 ? visit_class(visitor, "perfetto", "other", account->beyond, false) : rc;
}

/* Completes a row for the report: its start and end, and cpu_percent over that time. */
static struct etwatch_sample finish_row(const struct etwatch_account *account,
                                        const struct ew_account_row *row)
{
    struct etwatch_sample s = row->sum;
    uint64_t begin_ns =
        account->meta.anchor_unix_ns != 0 ? account->meta.anchor_unix_ns : account->first_ns;
    uint64_t end_ns = ew_account_end_ns(account);
    if (end_ns == 0)
        end_ns = account->last_ns;
    if (account->options.from_ns > begin_ns)
        begin_ns = account->options.from_ns;
    if (account->options.until_ns != 0 && account->options.until_ns < end_ns)
        end_ns = account->options.until_ns;
    uint64_t from_ns = s.start_ns > begin_ns ? s.start_ns : begin_ns;
    uint64_t to_ns = row->exited && s.t_ns < end_ns ? s.t_ns : end_ns;
    s.t_ns = to_ns;
    s.dt_ns = to_ns > from_ns ? to_ns - from_ns : 0;
    s.flags |= row->started ? 0 : (uint32_t)ETWATCH_SAMPLE_PREEXISTING;
    etwatch_metric_set_remove(&s.has, ETWATCH_M_cpu_percent);
    if (etwatch_sample_has(&s, ETWATCH_M_cpu_ns) && s.dt_ns > 0) {
        s.cpu_percent = 100.0 * (double)s.cpu_ns / (double)s.dt_ns;
        etwatch_metric_set_add(&s.has, ETWATCH_M_cpu_percent);
    }
    return s;
}

static int by_owner(const void *a, const void *b)
{
    const struct ew_account_row *x = *(const struct ew_account_row *const *)a;
    const struct ew_account_row *y = *(const struct ew_account_row *const *)b;
    bool x_thread = x->sum.tid != 0, y_thread = y->sum.tid != 0;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    if (x_thread != y_thread)
        return x_thread ? 1 : -1;
    return (x->order > y->order) - (x->order < y->order);
}

static int visit_rows(struct etwatch_account *account, const struct ew_account_row **list,
                      const struct ew_account_visitor *visitor)
{
    struct visit visit = {.visitor = visitor, .selected = true};
    int rc = 0;
    for (uint32_t i = 0; i < account->rows.count && rc == 0; i++) {
        struct etwatch_sample s = finish_row(account, list[i]);
        struct etwatch_metric_set estimated = account->meta.estimated;
        etwatch_metric_set_intersect(&estimated, &s.has);
        rc = visit_one(&visit, s, s.tid != 0, &estimated);
    }
    return rc;
}

int ew_account_visit_processes(struct etwatch_account *account,
                               const struct ew_account_visitor *visitor)
{
    if (account->total_count > 0 && !account->options.part)
        return visit_totals(account, visitor);
    const struct ew_account_row **list = ew_calloc(account->rows.count + 1u, sizeof *list);
    if (list == NULL)
        return ETWATCH_ENOMEM;
    for (uint32_t i = 0; i < account->rows.count; i++)
        list[i] = &account->rows.rows[i];
    qsort(list, account->rows.count, sizeof *list, by_owner);
    int rc = visit_rows(account, list, visitor);
    ew_free(list);
    return rc;
}

/* -------------------------------------------------------------------- public */

int etwatch_account_new(const struct etwatch_account_options *given,
                        struct etwatch_account **ret_account)
{
    struct etwatch_account_options options = {.size = sizeof options};
    if (ret_account == NULL)
        return ETWATCH_EINVAL;
    int rc = given == NULL
                 ? 0
                 : ew_sized_in(&options, sizeof options, given, "etwatch_account_options", NULL);
    if (rc < 0)
        return rc;
    struct ew_account_options own = {.threads = (options.flags & ETWATCH_REPORT_THREADS) != 0};
    struct etwatch_account *account = ew_account_new(&own);
    if (account == NULL)
        return ETWATCH_ENOMEM;
    *ret_account = account;
    return 0;
}

int etwatch_account_add_meta(struct etwatch_account *account, const struct etwatch_meta *given)
{
    struct etwatch_meta copy;
    const struct etwatch_meta *meta =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (meta == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_meta(account, meta);
    return 0;
}

int etwatch_account_add_sample(struct etwatch_account *account, const struct etwatch_sample *given)
{
    struct etwatch_sample copy;
    const struct etwatch_sample *sample =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (sample == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_sample(account, sample);
    return 0;
}

int etwatch_account_add_event(struct etwatch_account *account, const struct etwatch_event *given)
{
    struct etwatch_event copy;
    const struct etwatch_event *event =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (event == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_event(account, event);
    return 0;
}

int etwatch_account_add_loss(struct etwatch_account *account, const struct etwatch_loss *given)
{
    struct etwatch_loss copy;
    const struct etwatch_loss *loss =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (loss == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_loss(account, loss);
    return 0;
}

int etwatch_account_add_alert(struct etwatch_account *account, const struct etwatch_alert *given)
{
    struct etwatch_alert copy;
    const struct etwatch_alert *alert =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (alert == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_other(account, "etwatch", "alert", alert->from_ns, true);
    return 0;
}

int etwatch_account_add_stats(struct etwatch_account *account, const struct etwatch_stats *given)
{
    struct etwatch_stats copy;
    const struct etwatch_stats *stats =
        account == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (stats == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_account_stats(account, stats);
    return 0;
}

int etwatch_account_stats(const struct etwatch_account *account,
                          struct etwatch_trace_stats *ret_stats)
{
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace_system system;
    if (account == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    ew_account_sum(account, &stats, &system);
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}

static int skip_class(void *ctx, const struct etwatch_trace_class *klass)
{
    (void)ctx;
    (void)klass;
    return 0;
}

static int skip_process(void *ctx, const struct etwatch_sample *process,
                        const struct etwatch_metric_set *estimated)
{
    (void)ctx;
    (void)process;
    (void)estimated;
    return 0;
}

int etwatch_account_report(struct etwatch_account *account,
                           const struct etwatch_report_callbacks *given)
{
    struct etwatch_report_callbacks callbacks;
    struct etwatch_trace_stats stats = {.size = sizeof stats};
    struct etwatch_trace_system system;
    if (account == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_in(&callbacks, sizeof callbacks, given, "etwatch_report_callbacks", NULL);
    if (rc < 0)
        return rc;
    struct ew_account_visitor visitor = {
        .ctx = callbacks.ctx,
        .on_class = callbacks.on_class != NULL ? callbacks.on_class : skip_class,
        .on_process = callbacks.on_process != NULL ? callbacks.on_process : skip_process,
        .cmdline = (callbacks.flags & ETWATCH_REPORT_CMDLINE) != 0,
    };
    ew_account_sum(account, &stats, &system);
    if (callbacks.on_system != NULL)
        rc = callbacks.on_system(callbacks.ctx, &system);
    if (rc == 0)
        rc = ew_account_visit_classes(account, &visitor);
    return rc == 0 ? ew_account_visit_processes(account, &visitor) : rc;
}
