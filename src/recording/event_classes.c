/* SPDX-License-Identifier: MIT */
/*
 * Kernel classes are counted in a table by group, opcode and version: one increment. All others are
 * looked up by a hash of what distinguishes kinds: provider, id, opcode, version and, for
 * TraceLogging, the bytes of the schema. The header (with the schema) of the first event of each
 * kind is kept, so that the kind can be named at the end, when every schema has been learned.
 */
#include "recording/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"

enum {
    KERNEL_COUNT = EW_CLASS_GROUPS * 256 * EW_CLASS_VERSIONS,
    OTHERS_MAX = 65536,
    FIRST_SIZE = 64,
    HEADER_BYTES = 0x50, /* the longest header; extended items follow it */
    EXT_TRACELOGGING = 11,
    PAYLOAD_BYTES = 8, /* enough to recognize a chunk of a manifest */
};

struct ew_class {
    uint64_t key;
    uint64_t count;
    struct ew_record record; /* its pointers refer to `bytes` */
    uint8_t *bytes;
};

int ew_recording_classes_init(struct ew_event_classes *classes)
{
    memset(classes, 0, sizeof *classes);
    classes->kernel = ew_calloc(KERNEL_COUNT, sizeof *classes->kernel);
    classes->index = ew_calloc(FIRST_SIZE * 4, sizeof *classes->index);
    classes->index_mask = FIRST_SIZE * 4 - 1;
    if (classes->kernel == NULL || classes->index == NULL) {
        ew_recording_classes_done(classes);
        return ETWATCH_ENOMEM;
    }
    return 0;
}

static void free_others(struct ew_event_classes *classes)
{
    for (uint32_t i = 0; i < classes->other_count; i++)
        ew_free(classes->others[i].bytes);
    classes->other_count = 0;
}

void ew_recording_classes_done(struct ew_event_classes *classes)
{
    free_others(classes);
    ew_free(classes->kernel);
    ew_free(classes->others);
    ew_free(classes->index);
    memset(classes, 0, sizeof *classes);
}

void ew_recording_classes_clear(struct ew_event_classes *classes)
{
    free_others(classes);
    memset(classes->kernel, 0, KERNEL_COUNT * sizeof *classes->kernel);
    memset(classes->index, 0, ((size_t)classes->index_mask + 1) * sizeof *classes->index);
    classes->refused = 0;
    classes->error = 0;
}

/* ----------------------------------------------------------------- counting */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t len)
{
    for (; len >= 8; bytes += 8, len -= 8)
        hash = mix(hash, ew_load_u64(bytes));
    uint64_t rest = len;
    for (size_t i = 0; i < len; i++)
        rest = rest << 8 | bytes[i];
    return mix(hash, rest);
}

/* If events carry their own schema, it distinguishes the kinds. */
static uint64_t mix_schema(uint64_t hash, const struct ew_record *record)
{
    struct ew_bytes items;
    ew_bytes_init(&items, record->header + HEADER_BYTES, record->extended_size);
    while (ew_bytes_left(&items) >= 8) {
        size_t from = items.pos;
        uint16_t size = ew_bytes_u16(&items);
        uint16_t type = ew_bytes_u16(&items);
        ew_bytes_skip(&items, 2);
        uint16_t data_size = ew_bytes_u16(&items);
        if (type == EXT_TRACELOGGING) {
            const uint8_t *data = ew_bytes_take(&items, data_size);
            return data == NULL ? hash : mix_bytes(hash, data, data_size);
        }
        if (size < 8)
            break;
        ew_bytes_seek(&items, from + size);
    }
    return hash;
}

static uint64_t key_of(const struct ew_record *record)
{
    uint64_t hash = (uint64_t)record->kind << 40 | (uint64_t)record->id << 24 |
                    (uint64_t)record->opcode << 16 | (uint64_t)record->version << 8 |
                    (record->kind == EW_RECORD_KERNEL ? record->group : 0);
    hash = mix(ew_hash_seed(), hash);
    if (record->provider != NULL) {
        hash = mix(hash, ew_load_u64(record->provider));
        hash = mix(hash, ew_load_u64(record->provider + 8));
    }
    if (record->kind == EW_RECORD_MANIFEST && record->extended_size > 0)
        hash = mix_schema(hash, record);
    return mix(hash, 1);
}

static bool grow(struct ew_event_classes *classes)
{
    if (classes->other_count < classes->other_size)
        return true;
    uint32_t size = classes->other_size == 0 ? FIRST_SIZE : classes->other_size * 2;
    uint32_t *index = ew_calloc((size_t)size * 4, sizeof *index);
    struct ew_class *others =
        index == NULL ? NULL : ew_realloc_array(classes->others, size, sizeof *others);
    if (others == NULL) {
        ew_free(index);
        return false;
    }
    ew_free(classes->index);
    classes->others = others;
    classes->other_size = size;
    classes->index = index;
    classes->index_mask = size * 4 - 1;
    for (uint32_t i = 0; i < classes->other_count; i++) {
        uint32_t at = (uint32_t)others[i].key & classes->index_mask;
        while (index[at] != 0)
            at = (at + 1) & classes->index_mask;
        index[at] = i + 1;
    }
    return true;
}

/* Size of a header of this type in bytes. */
static size_t header_size(uint8_t header_type)
{
    switch (header_type) {
    case 18:
    case 19:
        return HEADER_BYTES;
    case 11:
    case 21:
        return 0x48;
    case 10:
    case 20:
        return 0x30;
    case 1:
    case 2:
        return 0x20;
    case 3:
    case 4:
        return 0x18;
    case 16:
    case 17:
        return 0x10;
    default:
        return 8;
    }
}

static bool keep(struct ew_class *klass, uint64_t key, const struct ew_record *record)
{
    size_t extended = record->kind == EW_RECORD_MANIFEST ? record->extended_size : 0;
    uint32_t payload = record->payload_size < PAYLOAD_BYTES ? record->payload_size : PAYLOAD_BYTES;
    /* The provider of a message is not within the fixed size of its header: it is stored behind
     * it. */
    uint8_t *bytes = ew_calloc(1, HEADER_BYTES + extended + 16 + PAYLOAD_BYTES);
    if (bytes == NULL)
        return false;
    memcpy(bytes, record->header, header_size(record->header_type));
    if (extended > 0)
        memcpy(bytes + HEADER_BYTES, record->header + HEADER_BYTES, extended);
    *klass = (struct ew_class){.key = key, .record = *record, .bytes = bytes};
    klass->record.header = bytes;
    klass->record.payload = bytes + HEADER_BYTES + extended + 16;
    klass->record.payload_size = payload;
    if (payload > 0)
        memcpy(bytes + HEADER_BYTES + extended + 16, record->payload, payload);
    if (record->provider != NULL) {
        memcpy(bytes + HEADER_BYTES + extended, record->provider, 16);
        klass->record.provider = bytes + HEADER_BYTES + extended;
    }
    return true;
}

static struct ew_class *add(struct ew_event_classes *classes, uint64_t key,
                            const struct ew_record *record)
{
    if (classes->other_count == OTHERS_MAX)
        return NULL;
    if (!grow(classes) || !keep(&classes->others[classes->other_count], key, record)) {
        classes->error = ETWATCH_ENOMEM;
        return NULL;
    }
    uint32_t at = (uint32_t)key & classes->index_mask;
    while (classes->index[at] != 0)
        at = (at + 1) & classes->index_mask;
    classes->index[at] = ++classes->other_count;
    return &classes->others[classes->other_count - 1];
}

void ew_recording_classes_count_other(struct ew_event_classes *classes,
                                      const struct ew_record *record)
{
    uint64_t key = key_of(record);
    uint32_t at = (uint32_t)key & classes->index_mask;
    struct ew_class *klass = NULL;
    while (classes->index[at] != 0) {
        klass = &classes->others[classes->index[at] - 1];
        if (klass->key == key)
            break;
        klass = NULL;
        at = (at + 1) & classes->index_mask;
    }
    if (klass == NULL)
        klass = add(classes, key, record);
    if (klass == NULL)
        classes->refused++;
    else
        klass->count++;
}

/* ------------------------------------------------------------------ results */

struct list {
    struct etwatch_trace_class *items;
    size_t count, size;
};

static void done_list(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        ew_free((void *)(uintptr_t)list->items[i].provider);
        ew_free((void *)(uintptr_t)list->items[i].event);
    }
    ew_free(list->items);
}

static int push(struct list *list, struct ew_decoder *decoder, const struct ew_record *record,
                uint64_t count)
{
    if (list->count == list->size) {
        size_t size = list->size == 0 ? FIRST_SIZE : list->size * 2;
        struct etwatch_trace_class *items = ew_realloc_array(list->items, size, sizeof *items);
        if (items == NULL)
            return ETWATCH_ENOMEM;
        list->items = items;
        list->size = size;
    }
    struct ew_event_names names;
    ew_decoder_names(decoder, record, &names);
    struct etwatch_trace_class *klass = &list->items[list->count++];
    *klass = (struct etwatch_trace_class){
        .size = sizeof *klass,
        .id = record->id,
        .opcode = record->opcode,
        .version = record->version,
        .decoded = names.laid_out,
        .state = names.laid_out ? ETWATCH_CLASS_DECODED
                 : names.named  ? ETWATCH_CLASS_PARTLY
                                : ETWATCH_CLASS_RAW,
        .count = count,
        .provider = ew_strdup(names.provider),
        .event = ew_strdup(names.event),
    };
    return klass->provider == NULL || klass->event == NULL ? ETWATCH_ENOMEM : 0;
}

static int collect(const struct ew_event_classes *classes, struct ew_decoder *decoder,
                   struct list *list)
{
    static const uint8_t no_bytes[HEADER_BYTES];
    for (uint32_t i = 0; i < KERNEL_COUNT; i++) {
        if (classes->kernel[i] == 0)
            continue;
        struct ew_record record = {
            .kind = EW_RECORD_KERNEL,
            .header = no_bytes,
            .payload = no_bytes,
            .header_type = 2,
            .pointer_size = 8,
            .group = (uint8_t)(i / (256 * EW_CLASS_VERSIONS)),
            .opcode = (uint8_t)(i / EW_CLASS_VERSIONS),
            .version = (uint8_t)(i % EW_CLASS_VERSIONS),
            .pid = EW_NO_ID,
            .tid = EW_NO_ID,
        };
        int rc = push(list, decoder, &record, classes->kernel[i]);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < classes->other_count; i++) {
        int rc = push(list, decoder, &classes->others[i].record, classes->others[i].count);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct etwatch_trace_class *x = a, *y = b;
    int order = strcmp(x->provider, y->provider);
    if (order == 0)
        order = strcmp(x->event, y->event);
    if (order == 0)
        order = (x->id > y->id) - (x->id < y->id);
    if (order == 0)
        order = (x->opcode > y->opcode) - (x->opcode < y->opcode);
    return order != 0 ? order : (x->version > y->version) - (x->version < y->version);
}

static int by_count(const void *a, const void *b)
{
    const struct etwatch_trace_class *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return by_name(a, b);
}

static void merge(struct list *list)
{
    size_t kept = 0;
    qsort(list->items, list->count, sizeof *list->items, by_name);
    for (size_t i = 0; i < list->count; i++) {
        struct etwatch_trace_class *item = &list->items[i];
        if (kept > 0 && by_name(&list->items[kept - 1], item) == 0) {
            list->items[kept - 1].count += item->count;
            ew_free((void *)(uintptr_t)item->provider);
            ew_free((void *)(uintptr_t)item->event);
        } else {
            list->items[kept++] = *item;
        }
    }
    list->count = kept;
    qsort(list->items, list->count, sizeof *list->items, by_count);
}

int ew_recording_classes_for_each(const struct ew_event_classes *classes,
                                  struct ew_decoder *decoder,
                                  int (*on_class)(void *ctx,
                                                  const struct etwatch_trace_class *klass),
                                  void *ctx, uint64_t *ret_unknown)
{
    struct list list = {0};
    uint64_t unknown = classes->refused;
    int rc = collect(classes, decoder, &list);
    if (rc == 0 && list.count > 0)
        merge(&list);
    for (size_t i = 0; i < list.count && rc == 0; i++) {
        unknown += list.items[i].decoded == 0 ? list.items[i].count : 0;
        if (on_class != NULL)
            rc = on_class(ctx, &list.items[i]);
    }
    done_list(&list);
    *ret_unknown = unknown;
    return rc;
}
