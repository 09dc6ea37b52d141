/* SPDX-License-Identifier: MIT */
/* An alert as text: an object of JSON Lines, or words for people. Tables and CSV have no rows for
 * it.
 */
#include <string.h>

#include "base/sized.h"
#include "base/units.h"
#include "sink/json.h"
#include "sink/sink.h"

enum { THREADS_NAMED = 3 };

static void put_threads(struct ew_buf *out, const struct etwatch_alert *alert)
{
    EW_JSON(out, ",\"thread_count\":");
    ew_json_number_if(out, alert->thread_count != 0, alert->thread_count); /* 0: unknown */
    EW_JSON(out, ",\"threads\":[");
    for (uint32_t i = 0; i < alert->thread_entries; i++) {
        if (i > 0)
            ew_buf_char(out, ',');
        EW_JSON(out, "{\"tid\":");
        ew_buf_u64(out, alert->threads[i].tid);
        EW_JSON(out, ",\"thread_name\":");
        ew_json_text(out, alert->threads[i].name);
        EW_JSON(out, ",\"cpu_ns\":");
        ew_buf_u64(out, alert->threads[i].cpu_ns);
        ew_buf_char(out, '}');
    }
    ew_buf_char(out, ']');
}

void ew_jsonl_alert(struct etwatch_sink *sink, const struct etwatch_alert *alert)
{
    struct ew_buf *out = &sink->out;
    EW_JSON(out, "{\"type\":\"alert\",\"pid\":");
    ew_buf_u64(out, alert->pid);
    EW_JSON(out, ",\"start_ns\":");
    ew_json_number_if(out, alert->start_ns != 0, alert->start_ns);
    EW_JSON(out, ",\"name\":");
    ew_json_text(out, alert->name);
    EW_JSON(out, ",\"condition\":");
    ew_json_text(out, alert->condition);
    EW_JSON(out, ",\"metric\":");
    ew_json_text(out, ew_sink_metric_info[alert->metric].name);
    EW_JSON(out, ",\"threshold\":");
    ew_json_double(out, alert->threshold);
    EW_JSON(out, ",\"value\":");
    ew_json_double(out, alert->value);
    EW_JSON(out, ",\"peak\":");
    ew_json_double(out, alert->peak);
    EW_JSON(out, ",\"from_ns\":");
    ew_buf_u64(out, alert->from_ns);
    EW_JSON(out, ",\"to_ns\":");
    ew_buf_u64(out, alert->to_ns);
    EW_JSON(out, ",\"ended\":");
    ew_json_bool(out, (alert->flags & ETWATCH_ALERT_ENDED) != 0);
    EW_JSON(out, ",\"exact\":");
    ew_json_bool(out, (alert->flags & ETWATCH_ALERT_EXACT) != 0);
    EW_JSON(out, ",\"window_ns\":");
    ew_buf_u64(out, alert->window_ns);
    EW_JSON(out, ",\"source\":");
    ew_json_text(out, etwatch_source_name(alert->source));
    EW_JSON(out, ",\"complete\":");
    ew_json_bool(out, (alert->flags & ETWATCH_ALERT_COMPLETE) != 0);
    put_threads(out, alert);
    EW_JSON(out, "}\n");
    ew_buf_end_line(out);
}

/* A name is foreign text and the line goes to a terminal. */
static void put_name(struct ew_buf *out, const char *name)
{
    if (name == NULL)
        ew_buf_char(out, '?');
    else
        (void)ew_buf_screen(out, name, strlen(name), 64);
}

static void put_words(struct ew_buf *out, const struct etwatch_alert *alert)
{
    put_name(out, alert->name);
    ew_buf_text(out, " (");
    ew_buf_u64(out, alert->pid);
    ew_buf_text(out, "): ");
    ew_buf_text(out, alert->condition);
    ew_buf_text(out, (alert->flags & ETWATCH_ALERT_ENDED) != 0 ? ": held for " : ": holds for ");
    ew_units_ns(out, alert->to_ns - alert->from_ns);
    ew_buf_text(out, " from ");
    ew_units_clock(out, alert->from_ns);
    ew_buf_text(out, ", on average ");
    (void)ew_buf_fixed(out, alert->value, 1);
    ew_buf_text(out, ", at most ");
    (void)ew_buf_fixed(out, alert->peak, 1);
    for (uint32_t i = 0; i < alert->thread_entries && i < THREADS_NAMED; i++) {
        const struct etwatch_alert_thread *thread = &alert->threads[i];
        ew_buf_text(out, i == 0 ? "; threads: " : ", ");
        put_name(out, thread->name);
        ew_buf_text(out, " (");
        ew_buf_u64(out, thread->tid);
        ew_buf_text(out, ") ");
        ew_units_ns(out, thread->cpu_ns);
    }
    if (alert->thread_count > THREADS_NAMED) {
        ew_buf_text(out, " and ");
        ew_buf_u64(out, alert->thread_count - THREADS_NAMED);
        ew_buf_text(out, " more");
    }
}

int etwatch_alert_text(const struct etwatch_alert *given, char *ret_text, size_t size)
{
    struct etwatch_alert copy;
    struct ew_buf out;
    const struct etwatch_alert *alert = ew_sized_or_null(given, &copy, sizeof copy);
    if (alert == NULL || (ret_text == NULL && size > 0))
        return ew_sized_error(given, sizeof copy);
    ew_buf_init(&out, 0, NULL, NULL);
    put_words(&out, alert);
    int rc = out.error != 0 ? out.error : (int)out.len;
    size_t len = rc < 0 || size == 0 ? 0 : out.len < size ? out.len : size - 1;
    if (size > 0) {
        memcpy(ret_text, len > 0 ? out.data : "", len);
        ret_text[len] = '\0';
    }
    ew_buf_done(&out);
    return rc;
}
