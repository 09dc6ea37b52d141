/* SPDX-License-Identifier: MIT */
/*
 * The trace event format: JSON with an object for each event. Times are microseconds since the
 * start of the recording; three decimals keep the nanoseconds. Each object is on its own line, so
 * that a truncated file can be repaired by hand: readers tolerate a missing end.
 */
#include "sink/chrome.h"

#include <string.h>

#include <etwatch/etwatch.h>

#define RAW(at, literal) \
    (memcpy((at), (literal), sizeof(literal) - 1), (at) + (sizeof(literal) - 1))

enum { SLICE_ROOM = 512 };

void ew_chrome_begin(struct ew_buf *out, const char *idle)
{
    ew_buf_text(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                     "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":");
    ew_buf_json_string(out, idle, strlen(idle));
    ew_buf_text(out, "}}");
}

void ew_chrome_name(struct ew_buf *out, uint32_t pid, uint32_t tid, const char *name)
{
    if (name == NULL)
        return;
    ew_buf_text(out, ",\n{\"ph\":\"M\",\"pid\":");
    ew_buf_u64(out, pid);
    if (tid != 0) {
        ew_buf_text(out, ",\"tid\":");
        ew_buf_u64(out, tid);
    }
    ew_buf_text(out, tid == 0 ? ",\"name\":\"process_name\",\"args\":{\"name\":"
                              : ",\"name\":\"thread_name\",\"args\":{\"name\":");
    ew_buf_json_string(out, name, strlen(name));
    ew_buf_text(out, "}}");
    ew_buf_end_line(out);
}

static char *raw_us(char *at, uint64_t ns)
{
    at = ew_raw_u64(at, ns / 1000);
    *at++ = '.';
    *at++ = (char)('0' + ns / 100 % 10);
    *at++ = (char)('0' + ns / 10 % 10);
    *at++ = (char)('0' + ns % 10);
    return at;
}

static char *raw_text(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

const char *ew_chrome_windows_state(uint8_t state)
{
    static const char *const names[] = {"initialized", "ready",   "running",    "standby",
                                        "terminated",  "waiting", "transition", "deferred_ready"};
    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

const char *ew_chrome_linux_state(uint32_t state)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{1, "waiting"}, {2, "waiting_uninterruptible"},
                 {4, "stopped"}, {8, "traced"},
                 {16, "dead"},   {32, "zombie"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((state & names[i].bit) != 0)
            return names[i].name;
    return state == 0 ? "preempted" : "other";
}

void ew_chrome_slice(struct ew_buf *out, const struct ew_chrome_slice *slice)
{
    if (!ew_buf_reserve(out, SLICE_ROOM))
        return;
    char *at = ew_buf_end(out);
    at = RAW(at, ",\n{\"ph\":\"X\",\"pid\":");
    at = ew_raw_u64(at, slice->pid);
    at = RAW(at, ",\"tid\":");
    at = ew_raw_u64(at, slice->tid);
    at = RAW(at, ",\"ts\":");
    at = raw_us(at, slice->from_ns);
    at = RAW(at, ",\"dur\":");
    at = raw_us(at, slice->to_ns - slice->from_ns);
    at = RAW(at, ",\"cat\":\"sched\",\"name\":\"CPU ");
    at = ew_raw_u64(at, slice->cpu);
    at = RAW(at, "\",\"args\":{\"cpu\":");
    at = ew_raw_u64(at, slice->cpu);
    at = RAW(at, ",\"priority\":");
    if (slice->priority < 0)
        *at++ = '-';
    at = ew_raw_u64(
        at, (uint64_t)(slice->priority < 0 ? -(int64_t)slice->priority : (int64_t)slice->priority));
    if (slice->end_state != NULL) {
        at = RAW(at, ",\"end_state\":\"");
        at = raw_text(at, slice->end_state);
        *at++ = '"';
    }
    if (slice->wait_reason >= 0) {
        at = RAW(at, ",\"wait_reason\":");
        at = ew_raw_u64(at, (uint64_t)slice->wait_reason);
    }
    at = RAW(at, "}}");
    ew_buf_take(out, at);
    ew_buf_end_line(out);
}

void ew_chrome_end(struct ew_buf *out, uint64_t start_unix_ns)
{
    ew_buf_text(out, "\n],\"otherData\":{\"producer\":\"etwatch ");
    ew_buf_text(out, etwatch_version());
    ew_buf_text(out, "\",\"start_ns\":\"");
    ew_buf_u64(out, start_unix_ns);
    ew_buf_text(out, "\"}}\n");
    ew_buf_end_line(out);
}
