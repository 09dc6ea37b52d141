/* SPDX-License-Identifier: MIT */
/* Counts the kinds of events of a recording, for nearly nothing per event. */
#ifndef EW_RECORDING_EVENT_CLASSES_H
#define EW_RECORDING_EVENT_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/trace.h>

#include "decode/decode.h"
#include "model/record.h"

enum { EW_CLASS_GROUPS = 64, EW_CLASS_VERSIONS = 8 };

struct ew_class;

struct ew_event_classes {
    uint64_t *kernel; /* by group, opcode and version */
    struct ew_class *others;
    uint32_t other_count, other_size;
    uint32_t *index; /* hash: place + 1, or 0 */
    uint32_t index_mask;
    uint64_t refused; /* events of kinds beyond the maximum */
    int error;
};

int ew_event_classes_init(struct ew_event_classes *classes);
void ew_event_classes_done(struct ew_event_classes *classes);
/* As it was after init. */
void ew_event_classes_clear(struct ew_event_classes *classes);

void ew_event_classes_count_other(struct ew_event_classes *classes, const struct ew_record *record);

static inline void ew_event_classes_count(struct ew_event_classes *classes,
                                          const struct ew_record *record)
{
    if (record->kind == EW_RECORD_KERNEL && record->group < EW_CLASS_GROUPS &&
        record->version < EW_CLASS_VERSIONS)
        classes->kernel[((size_t)record->group << 8 | record->opcode) * EW_CLASS_VERSIONS +
                        record->version]++;
    else
        ew_event_classes_count_other(classes, record);
}

/*
 * Every kind once, most frequent first, named by what the decoder has learned by now. Kinds that
 * differ only in their layout (TraceLogging) are one. Returns what on_class returned if that was
 * not 0, or ETWATCH_ENOMEM. *ret_unknown: events of kinds without a known layout.
 */
int ew_event_classes_for_each(const struct ew_event_classes *classes, struct ew_decoder *decoder,
                              int (*on_class)(void *ctx, const struct etwatch_trace_class *klass),
                              void *ctx, uint64_t *ret_unknown);

#endif
