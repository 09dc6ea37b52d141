/* SPDX-License-Identifier: MIT */
/* The reported objects as JSON that can be compared byte for byte, and the same for a recording. */
#ifndef TOLD_KIT_H
#define TOLD_KIT_H

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/sink.h>

#include "etl_kit.h"
#include "system.h"

/* ----------------------------------------------------------------------- the text */

struct text {
    char *bytes;
    size_t len, size;
    struct etwatch_sink *sink;
    uint64_t lost;
};

static inline int append(void *ctx, const void *bytes, size_t len)
{
    struct text *text = ctx;
    if (text->len + len + 1 > text->size) {
        text->size = (text->len + len + 1) * 2;
        text->bytes = realloc(text->bytes, text->size);
        CHECK(text->bytes != NULL);
    }
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    text->bytes[text->len] = '\0';
    return 0;
}

static inline void begin_text(struct text *text)
{
    struct etwatch_sink_options options = {.size = sizeof options, .flags = ETWATCH_SINK_CMDLINE};
    memset(text, 0, sizeof *text);
    CHECK_EQ_INT(etwatch_sink_new(ETWATCH_FORMAT_JSONL, append, text, &options, &text->sink, NULL),
                 0);
}

static inline void end_text(struct text *text)
{
    CHECK_EQ_INT(etwatch_sink_flush(text->sink), 0);
    etwatch_sink_free(text->sink);
    text->sink = NULL;
}

static inline void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    CHECK_EQ_INT(etwatch_sink_samples(((struct text *)ctx)->sink, samples, count), 0);
}

static inline void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    struct text *text = ctx;
    text->lost += loss->count;
    CHECK_EQ_INT(etwatch_sink_loss(text->sink, loss), 0);
}

static inline void check_same(const struct text *got, const struct text *want)
{
    size_t at = 0, line = 1, begin = 0;
    while (at < got->len && at < want->len && got->bytes[at] == want->bytes[at]) {
        if (got->bytes[at++] == '\n') {
            line++;
            begin = at;
        }
    }
    if (at < got->len || at < want->len) {
        printf("# line %zu: got  %.900s\n", line, got->bytes + begin);
        printf("# line %zu: want %.900s\n", line, want->bytes + begin);
    }
    CHECK_EQ_UINT(at, got->len);
    CHECK_EQ_UINT(at, want->len);
}

/* ------------------------------------------------------------- through a recording */

struct recorded {
    char folder[320], path[400];
};

static inline void write_recorded(struct recorded *recorded, const struct etl_memory *memory)
{
    test_folder(recorded->folder, sizeof recorded->folder);
    (void)snprintf(recorded->path, sizeof recorded->path, "%s/t.etl", recorded->folder);
    FILE *file = fopen(recorded->path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_UINT(fwrite(memory->bytes, 1, memory->size, file), memory->size);
    CHECK_EQ_INT(fclose(file), 0);
}

static inline void remove_recorded(const struct recorded *recorded)
{
    (void)remove(recorded->path);
    test_folder_remove(recorded->folder);
}

/* pid selects one process; with NULL the flags decide. */
static inline void report_recording(const char *path, double hz, uint32_t flags,
                                    const uint32_t *pid, struct text *text,
                                    struct etwatch_meta *ret_meta)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_config config = {
        .size = sizeof config,
        .source = ETWATCH_SOURCE_ETL,
        .flags = flags,
        .hz = hz,
        .pids = pid,
        .pid_count = pid != NULL,
        .traces = &path,
        .trace_count = 1,
        .callbacks = {.size = sizeof config.callbacks,
                      .on_samples = on_samples,
                      .on_loss = on_loss,
                      .ctx = text},
    };
    int rc;
    begin_text(text);
    CHECK_EQ_INT(etwatch_monitor_new(&config, &monitor, NULL), 0);
    CHECK_EQ_INT(etwatch_monitor_open(monitor, NULL), 0);
    ret_meta->size = sizeof *ret_meta;
    CHECK_EQ_INT(etwatch_monitor_meta(monitor, ret_meta), 0);
    while ((rc = etwatch_monitor_poll(monitor, 0)) >= 0)
        ;
    CHECK_EQ_INT(rc, ETWATCH_ESTATE);
    etwatch_monitor_free(monitor);
    end_text(text);
}

#endif
