/* SPDX-License-Identifier: MIT */
/*
 * Frames in both directions. A sample carries only its known values, which are a third of all; the
 * other structs are rare and are sent as they are.
 */
#include "serve/wire.h"

#include <stddef.h>
#include <string.h>

#include <etwatch/metrics.h>

#include "serve/catalog.h"

enum { NO_TEXT = 0xffff };

/* ----------------------------------------------------------------------- writing */

static void put_u16(struct ew_buf *out, uint32_t value)
{
    char bytes[2] = {(char)value, (char)(value >> 8)};
    ew_buf_bytes(out, bytes, sizeof bytes);
}

static void put_u32(struct ew_buf *out, uint32_t value)
{
    put_u16(out, value & 0xffff);
    put_u16(out, value >> 16);
}

/* With its terminator, so that the reader needs no copy. */
static void put_text(struct ew_buf *out, const char *text)
{
    if (text == NULL) {
        put_u16(out, NO_TEXT);
        return;
    }
    size_t len = strlen(text);
    if (len > 8191)
        len = 8191;
    put_u16(out, (uint32_t)len);
    ew_buf_bytes(out, text, len);
    ew_buf_char(out, '\0');
}

static size_t begin(struct ew_buf *out, enum ew_frame_type type)
{
    size_t mark = out->len;
    put_u32(out, 0);
    ew_buf_char(out, (char)type);
    return mark;
}

static void end(struct ew_buf *out, size_t mark)
{
    if (out->error != 0)
        return;
    size_t len = out->len - mark - 4;
    for (int i = 0; i < 4; i++)
        out->data[mark + (size_t)i] = (char)(len >> 8 * i);
}

static void put_struct(struct ew_buf *out, enum ew_frame_type type, const void *bytes, size_t size)
{
    size_t mark = begin(out, type);
    ew_buf_bytes(out, bytes, size);
    end(out, mark);
}

void ew_wire_meta(struct ew_buf *out, const struct ew_serve_meta *meta)
{
    put_struct(out, EW_FRAME_META, meta, sizeof *meta);
}

void ew_wire_loss(struct ew_buf *out, const struct etwatch_loss *loss)
{
    put_struct(out, EW_FRAME_LOSS, loss, sizeof *loss);
}

void ew_wire_stats(struct ew_buf *out, const struct etwatch_stats *stats)
{
    put_struct(out, EW_FRAME_STATS, stats, sizeof *stats);
}

void ew_wire_end(struct ew_buf *out)
{
    end(out, begin(out, EW_FRAME_END));
}

/* Samples are nearly all that is sent: they are put together in one piece. */
enum {
    SAMPLE_HEAD_BYTES = 7 * 4 + 3 * 8 + ETWATCH_METRIC_SET_WORDS * 8,
    SAMPLE_BYTES = SAMPLE_HEAD_BYTES + ETWATCH_METRIC_COUNT * 8,
};

static char *add_u32(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(value >> 8 * i);
    return at + 4;
}

static char *add_u64(char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (char)(value >> 8 * i);
    return at + 8;
}

/* What the serving process shows of a thread. */
static struct etwatch_metric_set sent_metrics(const struct etwatch_sample *sample)
{
    struct etwatch_metric_set has = {{0}};
    if (sample->type != ETWATCH_TYPE_THREAD)
        return sample->has;
    if (etwatch_sample_has(sample, ETWATCH_M_cpu_ns))
        etwatch_metric_set_add(&has, ETWATCH_M_cpu_ns);
    if (etwatch_sample_has(sample, ETWATCH_M_runq_wait_ns))
        etwatch_metric_set_add(&has, ETWATCH_M_runq_wait_ns);
    return has;
}

void ew_wire_sample(struct ew_buf *out, const struct etwatch_sample *sample)
{
    char bytes[SAMPLE_BYTES], *at = bytes;
    struct etwatch_metric_set has = sent_metrics(sample);
    size_t mark = begin(out, EW_FRAME_SAMPLE);
    at = add_u32(at, sample->type);
    at = add_u32(at, sample->source);
    at = add_u32(at, sample->flags);
    at = add_u32(at, sample->pid);
    at = add_u32(at, sample->tid);
    at = add_u32(at, sample->ppid);
    at = add_u32(at, sample->session_id);
    at = add_u64(at, sample->start_ns);
    at = add_u64(at, sample->t_ns);
    at = add_u64(at, sample->dt_ns);
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        at = add_u64(at, has.words[i]);
    for (uint32_t m = etwatch_metric_set_next(&has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&has, m + 1))
        at = add_u64(at, ew_catalog_raw(sample, m));
    ew_buf_bytes(out, bytes, (size_t)(at - bytes));
    /* Only a start sets the last three, and no thread needs the name of its process. */
    bool start = sample->type == ETWATCH_TYPE_START;
    put_text(out, sample->type != ETWATCH_TYPE_THREAD ? sample->name : NULL);
    put_text(out, sample->thread_name);
    put_text(out, start ? sample->user : NULL);
    put_text(out, start ? sample->cgroup : NULL);
    put_text(out, start ? sample->cmdline : NULL);
    end(out, mark);
}

static void copy_text(char *to, size_t size, const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);
    if (len >= size)
        len = size - 1;
    if (len > 0)
        memcpy(to, text, len);
    to[len] = '\0';
}

void ew_wire_alert(struct ew_buf *out, const struct etwatch_alert *alert, const char *text)
{
    struct ew_serve_alert sent;
    struct etwatch_metric_info info = {.size = sizeof info};
    memset(&sent, 0, sizeof sent);
    sent.pid = alert->pid;
    sent.ended = (alert->flags & ETWATCH_ALERT_ENDED) != 0;
    sent.start_ns = alert->start_ns;
    sent.from_ns = alert->from_ns;
    sent.to_ns = alert->to_ns;
    sent.value = alert->value;
    sent.peak = alert->peak;
    sent.threshold = alert->threshold;
    if (etwatch_metric_info(alert->metric, &info) == 0)
        copy_text(sent.metric, sizeof sent.metric, info.name);
    copy_text(sent.condition, sizeof sent.condition, alert->condition);
    copy_text(sent.name, sizeof sent.name, alert->name);
    copy_text(sent.text, sizeof sent.text, text);
    put_struct(out, EW_FRAME_ALERT, &sent, sizeof sent);
}

void ew_wire_system(struct ew_buf *out, const struct etwatch_system *system)
{
    struct ew_serve_system sent;
    memset(&sent, 0, sizeof sent);
    memcpy(&sent.system, system, sizeof sent.system);
    sent.system.cpu_percents = NULL;
    sent.cpu_count = system->cpu_count < EW_SERVE_CPUS_MAX ? system->cpu_count : EW_SERVE_CPUS_MAX;
    for (uint32_t i = 0; i < sent.cpu_count; i++)
        sent.cpus[i] = system->cpu_percents[i];
    put_struct(out, EW_FRAME_SYSTEM, &sent, sizeof sent);
}

void ew_wire_device(struct ew_buf *out, const struct etwatch_device *device)
{
    static const uint16_t offsets[] = {
#define ETWATCH_X(name, type, kind) offsetof(struct etwatch_device, name),
        ETWATCH_DEVICE_METRICS(ETWATCH_X)
#undef ETWATCH_X
    };
    struct ew_serve_device sent;
    memset(&sent, 0, sizeof sent);
    sent.kind = device->kind;
    sent.flags = device->flags;
    sent.index = device->index;
    sent.t_ns = device->t_ns;
    sent.dt_ns = device->dt_ns;
    sent.has = device->has;
    sent.estimated = device->estimated;
    for (uint32_t m = 0; m < ETWATCH_DEVICE_METRIC_COUNT; m++)
        memcpy(&sent.values[m], (const char *)device + offsets[m], sizeof sent.values[m]);
    copy_text(sent.driver, sizeof sent.driver, device->driver);
    copy_text(sent.id, sizeof sent.id, device->id);
    copy_text(sent.name, sizeof sent.name, device->name);
    copy_text(sent.problem, sizeof sent.problem, device->problem);
    put_struct(out, EW_FRAME_DEVICE, &sent, sizeof sent);
}

void ew_wire_span(struct ew_buf *out, const struct etwatch_span *span)
{
    struct ew_serve_span sent;
    memset(&sent, 0, sizeof sent);
    sent.span = *span;
    sent.span.name = sent.span.session = sent.span.thread_name = sent.span.shape = NULL;
    sent.has_session = span->session != NULL;
    copy_text(sent.name, sizeof sent.name, span->name);
    copy_text(sent.session, sizeof sent.session, span->session);
    copy_text(sent.shape, sizeof sent.shape, span->shape);
    put_struct(out, EW_FRAME_SPAN, &sent, sizeof sent);
}

void ew_wire_sched(struct ew_buf *out, const struct ew_serve_event *events, size_t count)
{
    put_struct(out, EW_FRAME_SCHED, events, count * sizeof *events);
}

void ew_wire_stacks(struct ew_buf *out, const char *text, size_t len)
{
    put_struct(out, EW_FRAME_STACKS, text, len);
}

void ew_wire_detail_end(struct ew_buf *out, const struct ew_serve_detail_end *detail_end)
{
    put_struct(out, EW_FRAME_DETAIL_END, detail_end, sizeof *detail_end);
}

/* ----------------------------------------------------------------------- reading */

bool ew_wire_next(const uint8_t *bytes, size_t len, size_t *at, uint32_t *ret_type,
                  struct ew_bytes *ret_body, bool *ret_broken)
{
    struct ew_bytes input;
    ew_bytes_init(&input, bytes + *at, len - *at);
    uint32_t size = ew_bytes_u32(&input);
    *ret_broken = ew_bytes_ok(&input) && (size == 0 || size > EW_FRAME_MAX);
    if (!ew_bytes_ok(&input) || *ret_broken || ew_bytes_left(&input) < size)
        return false;
    ew_bytes_sub(&input, size, ret_body);
    *ret_type = ew_bytes_u8(ret_body);
    *at += 4 + (size_t)size;
    return true;
}

static bool read_struct(struct ew_bytes *body, void *to, size_t size)
{
    const uint8_t *bytes = ew_bytes_take(body, size);
    if (bytes == NULL || ew_bytes_left(body) != 0)
        return false;
    memcpy(to, bytes, size);
    return true;
}

bool ew_wire_read_meta(struct ew_bytes *body, struct ew_serve_meta *ret_meta)
{
    return read_struct(body, ret_meta, sizeof *ret_meta);
}

bool ew_wire_read_loss(struct ew_bytes *body, struct etwatch_loss *ret_loss)
{
    return read_struct(body, ret_loss, sizeof *ret_loss);
}

bool ew_wire_read_alert(struct ew_bytes *body, struct ew_serve_alert *ret_alert)
{
    return read_struct(body, ret_alert, sizeof *ret_alert);
}

bool ew_wire_read_system(struct ew_bytes *body, struct ew_serve_system *ret_system)
{
    return read_struct(body, ret_system, sizeof *ret_system) &&
           ret_system->cpu_count <= EW_SERVE_CPUS_MAX;
}

/* Foreign texts are terminated, whatever was sent. */
bool ew_wire_read_device(struct ew_bytes *body, struct ew_serve_device *ret_device)
{
    if (!read_struct(body, ret_device, sizeof *ret_device))
        return false;
    ret_device->driver[sizeof ret_device->driver - 1] = '\0';
    ret_device->id[sizeof ret_device->id - 1] = '\0';
    ret_device->name[sizeof ret_device->name - 1] = '\0';
    ret_device->problem[sizeof ret_device->problem - 1] = '\0';
    return true;
}

/* The span came from this program, its texts from another one. */
bool ew_wire_read_span(struct ew_bytes *body, struct ew_serve_span *ret_span)
{
    struct ew_serve_span *span = ret_span;
    if (!read_struct(body, span, sizeof *span))
        return false;
    span->span.name = span->span.session = span->span.thread_name = span->span.shape = NULL;
    span->name[sizeof span->name - 1] = '\0';
    span->session[sizeof span->session - 1] = '\0';
    span->shape[sizeof span->shape - 1] = '\0';
    for (uint32_t i = 0; i < ETWATCH_SPAN_CAUSES; i++)
        span->span.causes[i].name[sizeof span->span.causes[i].name - 1] = '\0';
    /* Sums and differences of what follows stay within 64 bits. */
    uint64_t most_ns = span->span.end_ns - span->span.start_ns;
    for (uint32_t i = 0; i < ETWATCH_CAUSE_COUNT; i++)
        most_ns = span->span.ns[i] > most_ns ? span->span.ns[i] : most_ns;
    return span->span.start_ns <= span->span.end_ns && most_ns < EW_SERVE_SPAN_NS_MAX &&
           span->span.cause_count <= ETWATCH_SPAN_CAUSES;
}

bool ew_wire_read_event(struct ew_bytes *body, struct ew_serve_event *ret_event)
{
    const uint8_t *bytes =
        ew_bytes_left(body) < sizeof *ret_event ? NULL : ew_bytes_take(body, sizeof *ret_event);
    if (bytes == NULL)
        return false;
    memcpy(ret_event, bytes, sizeof *ret_event);
    ret_event->name[sizeof ret_event->name - 1] = '\0';
    ret_event->next_name[sizeof ret_event->next_name - 1] = '\0';
    return true;
}

bool ew_wire_read_detail_end(struct ew_bytes *body, struct ew_serve_detail_end *ret_end)
{
    if (!read_struct(body, ret_end, sizeof *ret_end))
        return false;
    ret_end->text[sizeof ret_end->text - 1] = '\0';
    return true;
}

bool ew_wire_read_stats(struct ew_bytes *body, struct etwatch_stats *ret_stats)
{
    return read_struct(body, ret_stats, sizeof *ret_stats);
}

static const char *read_text(struct ew_bytes *body)
{
    uint32_t len = ew_bytes_u16(body);
    if (len == NO_TEXT)
        return NULL;
    const uint8_t *text = ew_bytes_take(body, (size_t)len + 1);
    if (text != NULL && text[len] != '\0')
        ew_bytes_fail(body, ETWATCH_EFORMAT);
    return ew_bytes_ok(body) ? (const char *)text : NULL;
}

bool ew_wire_read_sample(struct ew_bytes *body, struct etwatch_sample *ret_sample)
{
    struct etwatch_sample *sample = ret_sample;
    const uint8_t *at = ew_bytes_take(body, SAMPLE_HEAD_BYTES);
    *sample = (struct etwatch_sample){.size = sizeof *sample};
    if (at == NULL)
        return false;
    sample->type = ew_load_u32(at);
    sample->source = ew_load_u32(at + 4);
    sample->flags = ew_load_u32(at + 8);
    sample->pid = ew_load_u32(at + 12);
    sample->tid = ew_load_u32(at + 16);
    sample->ppid = ew_load_u32(at + 20);
    sample->session_id = ew_load_u32(at + 24);
    sample->start_ns = ew_load_u64(at + 28);
    sample->t_ns = ew_load_u64(at + 36);
    sample->dt_ns = ew_load_u64(at + 44);
    for (uint32_t i = 0; i < ETWATCH_METRIC_SET_WORDS; i++)
        sample->has.words[i] = ew_load_u64(at + 52 + (size_t)i * 8);
    for (uint32_t m = etwatch_metric_set_next(&sample->has, 0); m < ETWATCH_METRIC_COUNT;
         m = etwatch_metric_set_next(&sample->has, m + 1))
        ew_catalog_set_raw(sample, m, ew_bytes_u64(body));
    sample->name = read_text(body);
    sample->thread_name = read_text(body);
    sample->user = read_text(body);
    sample->cgroup = read_text(body);
    sample->cmdline = read_text(body);
    return ew_bytes_ok(body) && ew_bytes_left(body) == 0;
}
