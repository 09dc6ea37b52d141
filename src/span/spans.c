/* SPDX-License-Identifier: MIT */
/*
 * Owns the analysis: the history, the spans that wait for their events, and the statistics. A span
 * is explained when the caller says that all events up to its end have been added; until then it is
 * kept as it came. Names are interned: programs have few of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "span/attribute.h"
#include "span/explain.h"
#include "span/gpu_ops.h"

enum {
    PENDING_MAX = 1 << 20,
    RUNS_MAX = 1 << 20,
    RUNS_AHEAD = 256,
    GROUPS_MAX = 4096,
    GROUP_CAUSES = 32,
    SHAPES_MAX = 1024,
    SHAPE_SIZE = 40,
};

/* Events of different CPUs may be out of order by less than this. */
static const uint64_t order_ns = 1000000;
static const uint32_t given_flags = ETWATCH_SPAN_FAILED | ETWATCH_SPAN_ASYNC | ETWATCH_SPAN_PROBED;

struct pending {
    uint64_t start_ns, end_ns;
    uint32_t kind, flags, pid, tid, end_tid, group;
    uint32_t shape; /* its number; 0: unknown */
};

struct group {
    char *name, *session; /* session NULL: none */
    struct etwatch_span_group sum;
    struct etwatch_cause causes[GROUP_CAUSES];
    uint32_t cause_count;
};

/* An inference, for the operators in it. */
struct run {
    uint64_t start_ns, end_ns;
    uint32_t pid, tid;
};

struct etwatch_spans {
    struct ew_spans_history history;
    struct ew_spans_gpu gpu;
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    void (*on_operator)(void *ctx, const struct etwatch_operator *op);
    void *ctx;
    struct run *runs; /* with on_operator: by their end */
    size_t run_count, run_size;
    struct pending *pending;
    size_t pending_count, pending_size;
    struct group *groups;
    uint32_t group_count, group_size;
    char (*shapes)[SHAPE_SIZE]; /* from number 1 on */
    size_t shape_count, shape_size;
    struct ew_spans_kept *kept;
    size_t kept_count, kept_size;
    uint64_t dropped; /* spans that found no room */
};

int etwatch_spans_new(const struct etwatch_spans_options *given, struct etwatch_spans **ret_spans)
{
    struct etwatch_spans_options options = {.size = sizeof options};
    if (ret_spans == NULL)
        return ETWATCH_EINVAL;
    int rc = given == NULL ? 0 : ew_sized_in(&options, sizeof options, given, "options", NULL);
    if (rc < 0)
        return rc;
    struct etwatch_spans *spans = ew_calloc(1, sizeof *spans);
    if (spans == NULL)
        return ETWATCH_ENOMEM;
    ew_spans_history_init(&spans->history,
                          options.history_ns == 0 ? 20000000000u : options.history_ns,
                          options.history_max == 0 ? 2000000 : options.history_max);
    spans->on_span = options.on_span;
    spans->on_operator = options.on_operator;
    spans->ctx = options.ctx;
    *ret_spans = spans;
    return 0;
}

void etwatch_spans_free(struct etwatch_spans *spans)
{
    if (spans == NULL)
        return;
    ew_spans_history_done(&spans->history);
    ew_spans_gpu_done(&spans->gpu);
    for (uint32_t i = 0; i < spans->group_count; i++) {
        ew_free(spans->groups[i].name);
        ew_free(spans->groups[i].session);
    }
    ew_free(spans->groups);
    ew_free(spans->pending);
    ew_free(spans->kept);
    ew_free(spans->runs);
    ew_free(spans->shapes);
    ew_free(spans);
}

int etwatch_spans_add_process(struct etwatch_spans *spans, uint32_t pid, const char *name)
{
    return spans == NULL ? ETWATCH_EINVAL : ew_spans_history_process(&spans->history, pid, name);
}

int etwatch_spans_add_event(struct etwatch_spans *spans, const struct etwatch_event *given)
{
    struct etwatch_event copy;
    const struct etwatch_event *event =
        spans == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (event == NULL)
        return ew_sized_error(given, sizeof copy);
    ew_spans_history_event(&spans->history, event);
    return 0;
}

int etwatch_spans_add_loss(struct etwatch_spans *spans, const struct etwatch_loss *given)
{
    struct etwatch_loss copy;
    const struct etwatch_loss *loss =
        spans == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (loss == NULL)
        return ew_sized_error(given, sizeof copy);
    if (loss->stage == ETWATCH_LOSS_STREAM)
        ew_spans_history_gap(&spans->history, loss->from_ns, loss->to_ns);
    return 0;
}

int etwatch_spans_add_gpu_op(struct etwatch_spans *spans, const struct etwatch_gpu_op *given)
{
    struct etwatch_gpu_op copy;
    const struct etwatch_gpu_op *op =
        spans == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    return op == NULL ? ew_sized_error(given, sizeof copy) : ew_spans_gpu_add(&spans->gpu, op);
}

int etwatch_spans_add_gpu_process(struct etwatch_spans *spans,
                                  const struct etwatch_gpu_process *given)
{
    struct etwatch_gpu_process copy;
    const struct etwatch_gpu_process *process =
        spans == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    return process == NULL ? ew_sized_error(given, sizeof copy)
                           : ew_spans_gpu_process(&spans->gpu, process);
}

uint64_t etwatch_spans_late_gpu_ops(const struct etwatch_spans *spans)
{
    return spans == NULL ? 0 : spans->gpu.late;
}

void etwatch_spans_on_samples(void *spans, const struct etwatch_samples *batch)
{
    struct etwatch_sample scratch;
    struct ew_items items;
    if (ew_items_in(&items, batch) < 0)
        return;
    for (size_t i = 0; i < items.count; i++) {
        const struct etwatch_sample *sample = ew_items_at(&items, i, &scratch, sizeof scratch);
        if (sample->type == ETWATCH_TYPE_START || sample->type == ETWATCH_TYPE_SAMPLE)
            (void)etwatch_spans_add_process(spans, sample->pid, sample->name);
    }
}

void etwatch_spans_on_events(void *spans, const struct etwatch_events *batch)
{
    struct etwatch_event scratch;
    struct ew_items items;
    if (ew_items_in(&items, batch) < 0)
        return;
    for (size_t i = 0; i < items.count; i++)
        (void)etwatch_spans_add_event(spans, ew_items_at(&items, i, &scratch, sizeof scratch));
}

void etwatch_spans_on_loss(void *spans, const struct etwatch_loss *loss)
{
    (void)etwatch_spans_add_loss(spans, loss);
}

static uint32_t strip_state(uint32_t state)
{
    switch (state) {
    case EW_SPANS_RUN:
        return ETWATCH_STRIP_RUN;
    case EW_SPANS_READY:
        return ETWATCH_STRIP_READY;
    case EW_SPANS_SLEEP:
        return ETWATCH_STRIP_SLEEP;
    case EW_SPANS_DISK:
        return ETWATCH_STRIP_DISK;
    case EW_SPANS_FAULT:
        return ETWATCH_STRIP_FAULT;
    default:
        return 0;
    }
}

int etwatch_spans_strips(const struct etwatch_spans *spans, uint32_t pid, uint64_t from_ns,
                         uint64_t to_ns,
                         void (*on_strip)(void *ctx, const struct etwatch_strip *strip), void *ctx)
{
    int count = 0;
    if (spans == NULL || on_strip == NULL || to_ns < from_ns)
        return ETWATCH_EINVAL;
    const struct ew_spans_process *process = ew_spans_history_find(&spans->history, pid);
    const struct ew_spans_thread *thread;
    for (uint32_t ref = process == NULL ? 0 : process->threads; ref != 0; ref = thread->next) {
        thread = ew_pool_at(&spans->history.threads, ref);
        uint32_t i = ew_spans_list_find(&thread->parts, sizeof(struct ew_spans_part), from_ns);
        for (; i < thread->parts.count && ew_spans_part_at(thread, i)->from_ns < to_ns; i++) {
            const struct ew_spans_part *part = ew_spans_part_at(thread, i);
            uint64_t end_ns =
                i + 1 < thread->parts.count ? ew_spans_part_at(thread, i + 1)->from_ns : to_ns;
            struct etwatch_strip strip = {
                .size = sizeof strip,
                .state = strip_state(part->state),
                .tid = thread->tid,
                .cpu = part->state == EW_SPANS_RUN ? part->cpu : 0,
                .from_ns = part->from_ns > from_ns ? part->from_ns : from_ns,
                .to_ns = end_ns < to_ns ? end_ns : to_ns,
                .name = thread->name,
            };
            if (strip.state == 0 || strip.to_ns <= strip.from_ns)
                continue;
            on_strip(ctx, &strip);
            count++;
        }
    }
    return count;
}

/* ------------------------------------------------------------------------ groups */

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Makes room for one more element. The array, or NULL: out of memory or over the maximum. */
static void *room(void *items, size_t count, size_t *size, size_t item_size, size_t max)
{
    if (count < *size)
        return items;
    size_t wanted = *size == 0 ? 16 : *size * 2;
    wanted = wanted < max ? wanted : max;
    void *grown = count < wanted ? ew_realloc_array(items, wanted, item_size) : NULL;
    if (grown != NULL)
        *size = wanted;
    return grown;
}

static int group_of(struct etwatch_spans *spans, uint32_t kind, const char *name,
                    const char *session, uint32_t *ret_group)
{
    for (uint32_t i = 0; i < spans->group_count; i++) {
        const struct group *group = &spans->groups[i];
        if (group->sum.kind == kind && strcmp(group->name, name) == 0 &&
            same(group->session, session)) {
            *ret_group = i;
            return 0;
        }
    }
    size_t size = spans->group_size;
    struct group *groups =
        room(spans->groups, spans->group_count, &size, sizeof *groups, GROUPS_MAX);
    if (groups == NULL)
        return ETWATCH_ENOMEM;
    spans->groups = groups;
    spans->group_size = (uint32_t)size;
    struct group *group = &groups[spans->group_count];
    memset(group, 0, sizeof *group);
    group->sum.kind = kind;
    group->name = ew_strdup(name);
    group->session = session == NULL ? NULL : ew_strdup(session);
    if (group->name == NULL || (session != NULL && group->session == NULL)) {
        ew_free(group->name);
        ew_free(group->session);
        return ETWATCH_ENOMEM;
    }
    *ret_group = spans->group_count++;
    return 0;
}

/* Programs have few shapes; the latest are looked at first. */
static uint32_t shape_of(struct etwatch_spans *spans, const char *shape)
{
    if (shape == NULL || strlen(shape) >= SHAPE_SIZE)
        return 0;
    for (size_t i = spans->shape_count; i > 0; i--)
        if (strcmp(spans->shapes[i - 1], shape) == 0)
            return (uint32_t)i;
    char(*shapes)[SHAPE_SIZE] =
        room(spans->shapes, spans->shape_count, &spans->shape_size, sizeof *shapes, SHAPES_MAX);
    if (shapes == NULL)
        return 0;
    spans->shapes = shapes;
    memcpy(shapes[spans->shape_count], shape, strlen(shape) + 1);
    return (uint32_t)++spans->shape_count;
}

int etwatch_spans_add(struct etwatch_spans *spans, const struct etwatch_span *given)
{
    struct etwatch_span copy;
    const struct etwatch_span *span =
        spans == NULL || given == NULL ? NULL : ew_sized_or_null(given, &copy, sizeof copy);
    if (span == NULL || span->end_ns < span->start_ns)
        return ew_sized_error(given, sizeof copy);
    struct pending *pending = room(spans->pending, spans->pending_count, &spans->pending_size,
                                   sizeof *pending, PENDING_MAX);
    uint32_t group = 0;
    if (pending == NULL || group_of(spans, span->kind, span->name == NULL ? "" : span->name,
                                    span->session, &group) < 0) {
        if (pending != NULL)
            spans->pending = pending;
        spans->dropped++;
        return ETWATCH_ENOMEM;
    }
    spans->pending = pending;
    pending[spans->pending_count++] = (struct pending){
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .kind = span->kind,
        .flags = span->flags & given_flags,
        .pid = span->pid,
        .tid = span->tid,
        .end_tid = span->end_tid,
        .group = group,
    };
    pending[spans->pending_count - 1].shape = shape_of(spans, span->shape);
    return 0;
}

static void count_span(struct etwatch_span_group *sum, const struct etwatch_span *span)
{
    uint64_t latency_ns = span->end_ns - span->start_ns;
    if (sum->count++ == 0) {
        sum->flags = ETWATCH_SPAN_HAS_FAULTS | ETWATCH_SPAN_HAS_GPU;
        sum->first_ns = span->start_ns;
        sum->cold_ns = latency_ns;
    }
    sum->last_ns = span->end_ns > sum->last_ns ? span->end_ns : sum->last_ns;
    sum->max_ns = latency_ns > sum->max_ns ? latency_ns : sum->max_ns;
    sum->mean_ns += latency_ns; /* the sum until it is read */
    sum->flags &= span->flags;
    sum->failed += (span->flags & ETWATCH_SPAN_FAILED) != 0;
    sum->incomplete += (span->flags & ETWATCH_SPAN_COMPLETE) == 0;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        sum->total[i] += span->ns[i];
    sum->helper_cpu_ns += span->helper_cpu_ns;
    sum->helper_ready_ns += span->helper_ready_ns;
    sum->shared_cpu_ns += span->shared_cpu_ns;
    sum->wait_cpu_ns += span->wait_cpu_ns;
    sum->preempted += span->preempted;
    sum->fault_count += span->fault_count;
    sum->gpu_ns += span->gpu_ns;
    sum->wait_gpu_ns += span->wait_gpu_ns;
    sum->gpu_kernels += span->gpu_kernels;
    sum->helpers = span->helpers > sum->helpers ? span->helpers : sum->helpers;
}

static void add_to_group(struct group *group, const struct etwatch_span *span)
{
    count_span(&group->sum, span);
    for (uint32_t i = 0; i < span->cause_count; i++)
        ew_spans_cause_add(group->causes, &group->cause_count, GROUP_CAUSES, &span->causes[i]);
}

static void keep(struct etwatch_spans *spans, const struct etwatch_span *span, uint32_t number)
{
    add_to_group(&spans->groups[number], span);
    struct ew_spans_kept *kept =
        room(spans->kept, spans->kept_count, &spans->kept_size, sizeof *kept, EW_SPANS_KEPT_MAX);
    if (kept == NULL) {
        spans->dropped++;
        return;
    }
    spans->kept = kept;
    kept = &kept[spans->kept_count++];
    memset(kept, 0, sizeof *kept);
    kept->latency_ns = span->end_ns - span->start_ns;
    kept->end_ns = span->end_ns;
    kept->group = number;
    kept->flags = span->flags;
    kept->helper_cpu_ns = span->helper_cpu_ns;
    kept->helper_ready_ns = span->helper_ready_ns;
    kept->shared_cpu_ns = span->shared_cpu_ns;
    kept->wait_cpu_ns = span->wait_cpu_ns;
    kept->fault_count = span->fault_count;
    kept->preempted = span->preempted;
    kept->helpers = span->helpers;
    kept->gpu_ns = span->gpu_ns;
    kept->wait_gpu_ns = span->wait_gpu_ns;
    kept->gpu_kernels = span->gpu_kernels;
    memcpy(kept->ns, span->ns, sizeof kept->ns);
    kept->cause_count =
        span->cause_count < EW_SPANS_KEPT_CAUSES ? span->cause_count : EW_SPANS_KEPT_CAUSES;
    memcpy(kept->causes, span->causes, kept->cause_count * sizeof *kept->causes);
}

/* The thread that works for an asynchronous inference is the one that ends it. */
static void keep_run(struct etwatch_spans *spans, const struct etwatch_span *span)
{
    struct run *runs =
        room(spans->runs, spans->run_count, &spans->run_size, sizeof *runs, RUNS_MAX);
    if (runs == NULL) {
        spans->dropped++;
        return;
    }
    spans->runs = runs;
    bool async = (span->flags & ETWATCH_SPAN_ASYNC) != 0;
    runs[spans->run_count++] = (struct run){.start_ns = span->start_ns,
                                            .end_ns = span->end_ns,
                                            .pid = span->pid,
                                            .tid = async ? span->end_tid : span->tid};
}

static int by_end(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

int etwatch_spans_advance(struct etwatch_spans *spans, uint64_t t_ns)
{
    if (spans == NULL)
        return ETWATCH_EINVAL;
    if (t_ns == 0) {
        uint64_t last_ns = spans->history.last_ns;
        t_ns = last_ns > order_ns ? last_ns - order_ns : 0;
    }
    if (spans->pending_count > 0)
        qsort(spans->pending, spans->pending_count, sizeof *spans->pending, by_end);
    size_t done = 0;
    for (; done < spans->pending_count && spans->pending[done].end_ns <= t_ns; done++) {
        const struct pending *pending = &spans->pending[done];
        const struct group *group = &spans->groups[pending->group];
        if ((pending->flags & ETWATCH_SPAN_PROBED) != 0 &&
            ew_spans_history_find(&spans->history, pending->pid) == NULL)
            continue; /* of another program with the same library */
        if (pending->kind == ETWATCH_SPAN_LOAD)
            ew_spans_history_loaded(&spans->history, pending->pid, pending->start_ns,
                                    pending->end_ns);
        struct etwatch_span span = {
            .size = sizeof span,
            .kind = pending->kind,
            .flags = pending->flags,
            .pid = pending->pid,
            .tid = pending->tid,
            .end_tid = pending->end_tid,
            .start_ns = pending->start_ns,
            .end_ns = pending->end_ns,
            .name = group->name,
            .session = group->session,
            .shape = pending->shape != 0 ? spans->shapes[pending->shape - 1] : NULL,
        };
        ew_spans_attribute(&spans->history, &span);
        ew_spans_gpu_join(&spans->gpu, &span);
        keep(spans, &span, pending->group);
        if (spans->on_operator != NULL && span.kind == ETWATCH_SPAN_INFERENCE)
            keep_run(spans, &span);
        if (spans->on_span != NULL)
            spans->on_span(spans->ctx, &span);
    }
    if (done > 0)
        memmove(spans->pending, spans->pending + done,
                (spans->pending_count - done) * sizeof *spans->pending);
    spans->pending_count -= done;
    if (t_ns != UINT64_MAX) {
        uint64_t keep_ns = spans->history.history_ns;
        ew_spans_gpu_trim(&spans->gpu, t_ns, t_ns > keep_ns ? t_ns - keep_ns : 0);
        ew_spans_history_trim(&spans->history, t_ns);
    }
    return 0;
}

/* The end of the inference of an operator, or 0. The profile has whole microseconds of another
 * clock. */
static uint64_t inference_of(const struct etwatch_spans *spans, const struct etwatch_span *op)
{
    const uint64_t slack_ns = 20000;
    size_t low = 0, high = spans->run_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans->runs[middle].end_ns + slack_ns < op->end_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < spans->run_count && i - low < RUNS_AHEAD; i++) {
        const struct run *run = &spans->runs[i];
        if (run->pid == op->pid && run->tid == op->tid && run->start_ns <= op->start_ns + slack_ns)
            return run->end_ns;
    }
    return 0;
}

int etwatch_spans_add_operator(struct etwatch_spans *spans, const struct etwatch_operator *given)
{
    struct etwatch_operator op = {.size = sizeof op};
    struct etwatch_span copy;
    if (spans == NULL || given == NULL)
        return ETWATCH_EINVAL;
    int rc = ew_sized_in(&op, sizeof op, given, "operator", NULL);
    if (rc < 0)
        return rc;
    const struct etwatch_span *mark = ew_sized_or_null(op.span, &copy, sizeof copy);
    if (mark == NULL || mark->end_ns < mark->start_ns)
        return ew_sized_error(op.span, sizeof copy);
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = ETWATCH_SPAN_OPERATOR,
        .pid = mark->pid,
        .tid = mark->tid,
        .end_tid = mark->end_tid,
        .start_ns = mark->start_ns,
        .end_ns = mark->end_ns,
        .name = mark->name == NULL ? "" : mark->name,
        .session = mark->session,
    };
    uint64_t run_ns, time_ns = (span.end_ns - span.start_ns) * op.pool_threads;
    ew_spans_attribute(&spans->history, &span);
    ew_spans_gpu_join(&spans->gpu, &span);
    uint32_t others = ew_spans_pool(&spans->history, &span, &run_ns);
    bool known = op.pool_threads > 0 && others + 1 == op.pool_threads && time_ns > 0 &&
                 (span.flags & ETWATCH_SPAN_COMPLETE) != 0;
    op.pool_percent = known ? 100.0 * (double)(span.cpu_ns + run_ns) / (double)time_ns : -1;
    op.inference_ns = inference_of(spans, &span);
    op.span = &span;
    if (spans->on_operator != NULL)
        spans->on_operator(spans->ctx, &op);
    return 0;
}

uint64_t etwatch_spans_dropped(const struct etwatch_spans *spans)
{
    return spans == NULL ? 0 : spans->dropped + spans->history.dropped;
}

int etwatch_spans_clear(struct etwatch_spans *spans)
{
    if (spans == NULL)
        return ETWATCH_EINVAL;
    spans->kept_count = 0;
    for (uint32_t i = 0; i < spans->group_count; i++) {
        struct group *group = &spans->groups[i];
        group->sum = (struct etwatch_span_group){.kind = group->sum.kind};
        group->cause_count = 0;
    }
    return 0;
}

/* The span as it was counted. */
static void span_of(const struct etwatch_spans *spans, const struct ew_spans_kept *kept,
                    struct etwatch_span *ret_span)
{
    *ret_span = (struct etwatch_span){
        .size = sizeof *ret_span,
        .kind = spans->groups[kept->group].sum.kind,
        .flags = kept->flags,
        .start_ns = kept->end_ns - kept->latency_ns,
        .end_ns = kept->end_ns,
        .helper_cpu_ns = kept->helper_cpu_ns,
        .helper_ready_ns = kept->helper_ready_ns,
        .shared_cpu_ns = kept->shared_cpu_ns,
        .wait_cpu_ns = kept->wait_cpu_ns,
        .fault_count = kept->fault_count,
        .preempted = kept->preempted,
        .helpers = kept->helpers,
        .cause_count = kept->cause_count,
        .gpu_ns = kept->gpu_ns,
        .wait_gpu_ns = kept->wait_gpu_ns,
        .gpu_kernels = kept->gpu_kernels,
    };
    memcpy(ret_span->ns, kept->ns, sizeof kept->ns);
    memcpy(ret_span->causes, kept->causes, kept->cause_count * sizeof *kept->causes);
}

int etwatch_spans_forget(struct etwatch_spans *spans, uint64_t t_ns)
{
    struct etwatch_span span;
    if (spans == NULL)
        return ETWATCH_EINVAL;
    size_t kept = 0, count = spans->kept_count;
    (void)etwatch_spans_clear(spans);
    for (size_t i = 0; i < count; i++) {
        if (spans->kept[i].end_ns < t_ns)
            continue;
        spans->kept[kept] = spans->kept[i];
        span_of(spans, &spans->kept[kept], &span);
        add_to_group(&spans->groups[spans->kept[kept].group], &span);
        kept++;
    }
    spans->kept_count = kept;
    return 0;
}

int etwatch_spans_group(struct etwatch_spans *spans, uint32_t i,
                        struct etwatch_span_group *ret_group)
{
    if (spans == NULL || ret_group == NULL || i >= spans->group_count)
        return ETWATCH_EINVAL;
    const struct group *group = &spans->groups[i];
    struct etwatch_span_group out = group->sum;
    struct etwatch_cause causes[GROUP_CAUSES];
    size_t count = 0;
    struct ew_spans_kept *mine =
        spans->kept_count == 0 ? NULL : ew_calloc(spans->kept_count, sizeof *mine);
    if (spans->kept_count > 0 && mine == NULL)
        return ETWATCH_ENOMEM;
    for (size_t k = 0; k < spans->kept_count; k++)
        if (spans->kept[k].group == i)
            mine[count++] = spans->kept[k];
    ew_spans_explain(mine, count, &out);
    ew_free(mine);
    out.name = group->name;
    out.session = group->session;
    out.mean_ns = out.count == 0 ? 0 : out.mean_ns / out.count;
    memcpy(causes, group->causes, sizeof causes);
    ew_spans_cause_sort(causes, group->cause_count);
    out.cause_count =
        group->cause_count < ETWATCH_SPAN_CAUSES ? group->cause_count : ETWATCH_SPAN_CAUSES;
    memcpy(out.causes, causes, out.cause_count * sizeof *causes);
    return ew_sized_out(ret_group, &out, sizeof out);
}
