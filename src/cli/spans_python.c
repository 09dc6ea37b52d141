/* SPDX-License-Identifier: MIT */
/*
 * Python interpreters that run --onnx starts mark their inferences by a hook. Those that ignore the
 * hook (python -I, another PYTHONPATH, a frozen program) are seen by probes in the Python package.
 *
 * A probe sees the inferences of both kinds, and the first mark of a process arrives after the
 * probe's record of the same call. So records are held for half a second, and dropped if the
 * process has marked an inference or a load by then: each inference is counted once.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"

enum { HELD_MAX = 1 << 16, HOOKED_MAX = 1 << 16 };

/* A mark is one store into shared memory: it is there much earlier. */
static const uint64_t hold_ns = 500000000;

struct ew_spans_held {
    struct etwatch_span span; /* its strings are unset */
    char name[32], session[64], shape[40];
};

void ew_cli_spans_python_init(struct ew_spans_python *python)
{
    struct etwatch_probes_options options = {.size = sizeof options,
                                             .flags = ETWATCH_PROBES_ONLY_PYTHON};
    memset(python, 0, sizeof *python);
    /* Without probes, those in other programs have reported why. */
    (void)etwatch_probes_new(&options, &python->probes, NULL);
}

void ew_cli_spans_python_done(struct ew_spans_python *python)
{
    etwatch_probes_free(python->probes);
    ew_free(python->hooked);
    ew_free(python->held);
    memset(python, 0, sizeof *python);
}

static bool is_hooked(const struct ew_spans_python *python, uint32_t pid)
{
    for (size_t i = python->hooked_count; i > 0; i--)
        if (python->hooked[i - 1] == pid)
            return true;
    return false;
}

void ew_cli_spans_python_mark(struct ew_spans_python *python, const struct etwatch_span *mark)
{
    if (python->probes == NULL || mark->kind == ETWATCH_SPAN_WORK || is_hooked(python, mark->pid))
        return;
    if (python->hooked_count == python->hooked_size) {
        size_t size = python->hooked_size == 0 ? 16 : python->hooked_size * 2;
        uint32_t *hooked =
            size > HOOKED_MAX ? NULL : ew_realloc_array(python->hooked, size, sizeof *hooked);
        if (hooked == NULL)
            return;
        python->hooked = hooked;
        python->hooked_size = size;
    }
    python->hooked[python->hooked_count++] = mark->pid;
}

static void copy_text(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text == NULL ? "" : text);
}

static void hold(void *ctx, const struct etwatch_span *span)
{
    struct ew_spans_python *python = ctx;
    if (is_hooked(python, span->pid))
        return;
    if (python->held_count == python->held_size) {
        size_t size = python->held_size == 0 ? 256 : python->held_size * 2;
        struct ew_spans_held *held =
            size > HELD_MAX ? NULL : ew_realloc_array(python->held, size, sizeof *held);
        if (held == NULL) {
            python->lost++;
            return;
        }
        python->held = held;
        python->held_size = size;
    }
    struct ew_spans_held *held = &python->held[python->held_count++];
    held->span = *span;
    copy_text(held->name, sizeof held->name, span->name);
    copy_text(held->session, sizeof held->session, span->session);
    copy_text(held->shape, sizeof held->shape, span->shape);
}

int ew_cli_spans_python_read(struct ew_spans_python *python, int64_t unix_minus_raw_ns,
                             uint64_t until_ns,
                             void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    size_t kept = 0;
    if (python->probes == NULL)
        return 0;
    int rc = etwatch_probes_read(python->probes, unix_minus_raw_ns, hold, python);
    for (size_t i = 0; i < python->held_count; i++) {
        struct ew_spans_held *held = &python->held[i];
        if (until_ns != UINT64_MAX && held->span.end_ns + hold_ns > until_ns) {
            python->held[kept++] = *held;
            continue;
        }
        if (is_hooked(python, held->span.pid))
            continue;
        held->span.name = held->name;
        held->span.session = held->session[0] == '\0' ? NULL : held->session;
        held->span.shape = held->shape[0] == '\0' ? NULL : held->shape;
        on_span(ctx, &held->span);
    }
    python->held_count = kept;
    return rc < 0 ? rc : 0;
}
