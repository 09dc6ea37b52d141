/* SPDX-License-Identifier: MIT */
/*
 * Names and fields of the kernel's classes: reads a payload by the items of its layout.
 *
 * All bytes are read with the bounded cursor; the walk ends at the first item for which the payload
 * is too short. Everything before it is reported, and every struct and list is closed.
 */
#include "decode/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "decode/kernel_table.h"

static const struct ew_kernel_class *const classes[EW_KERNEL_CLASS_COUNT] = {
    [EW_KERNEL_EVENTTRACE] = &ew_kernel_eventtrace,
    [EW_KERNEL_DISKIO] = &ew_kernel_diskio,
    [EW_KERNEL_MEMORY] = &ew_kernel_memory,
    [EW_KERNEL_PROCESS] = &ew_kernel_process,
    [EW_KERNEL_FILEIO] = &ew_kernel_fileio,
    [EW_KERNEL_THREAD] = &ew_kernel_thread,
    [EW_KERNEL_TCPIP] = &ew_kernel_tcpip,
    [EW_KERNEL_UDPIP] = &ew_kernel_udpip,
    [EW_KERNEL_REGISTRY] = &ew_kernel_registry,
    [EW_KERNEL_SYSTEMCONFIG] = &ew_kernel_systemconfig,
    [EW_KERNEL_POOL] = &ew_kernel_pool,
    [EW_KERNEL_PERFINFO] = &ew_kernel_perfinfo,
    [EW_KERNEL_HEAP] = &ew_kernel_heap,
    [EW_KERNEL_OBJECT] = &ew_kernel_object,
    [EW_KERNEL_IMAGE] = &ew_kernel_image,
    [EW_KERNEL_STACKWALK] = &ew_kernel_stackwalk,
    [EW_KERNEL_ALPC] = &ew_kernel_alpc,
    [EW_KERNEL_SPLITIO] = &ew_kernel_splitio,
    [EW_KERNEL_LOST] = &ew_kernel_lost,
    [EW_KERNEL_IMAGEID] = &ew_kernel_imageid,
    [EW_KERNEL_SYSCONFIG] = &ew_kernel_sysconfig,
    [EW_KERNEL_WINSAT] = &ew_kernel_winsat,
    [EW_KERNEL_METADATA] = &ew_kernel_metadata,
};

/* Classes of which only the name is known. */
static const char *const bare_names[EW_KERNEL_CLASS_COUNT] = {
    [EW_KERNEL_JOB] = "Job",
    [EW_KERNEL_DEBUGPRINT] = "DebugPrint",
    [EW_KERNEL_POWER] = "Power",
    [EW_KERNEL_CC] = "Cc",
    [EW_KERNEL_CRITSEC] = "CritSec",
    [EW_KERNEL_UMS] = "UmsEvent",
    [EW_KERNEL_THREADPOOL] = "ThreadPool",
};

/* The row of this opcode with the highest version up to `version`; else the lowest one. */
static const struct ew_kernel_event *find_event(uint8_t class_id, uint8_t opcode, uint8_t version)
{
    if (class_id >= EW_KERNEL_CLASS_COUNT || !classes[class_id])
        return NULL;
    const struct ew_kernel_event *best = NULL;
    for (size_t i = 0; i < classes[class_id]->event_count; i++) {
        const struct ew_kernel_event *event = &classes[class_id]->events[i];
        if (event->opcode != opcode) {
            if (best != NULL)
                break; /* the rows of an opcode are adjacent */
        } else if (best == NULL || event->version <= version) {
            best = event;
        }
    }
    return best;
}

bool ew_kernel_names(const struct ew_record *record, char scratch[EW_KERNEL_NAME_SIZE],
                     struct ew_kernel_name *ret)
{
    uint8_t opcode, class_id = ew_kernel_class_of(record, &opcode);
    if (class_id == EW_KERNEL_NO_CLASS && record->kind != EW_RECORD_KERNEL)
        return false;
    const struct ew_kernel_event *event = find_event(class_id, opcode, record->version);
    const struct ew_kernel_class *known =
        class_id < EW_KERNEL_CLASS_COUNT ? classes[class_id] : NULL;
    ret->provider = known ? known->provider : "Windows Kernel";
    /* For these two PerfView uses the name from Windows, which is this provider. */
    if ((class_id == EW_KERNEL_SYSTEMCONFIG && opcode == 25) ||
        (class_id == EW_KERNEL_IMAGE && opcode == 33))
        ret->provider = "MSNT_SystemTrace";
    ret->named = event != NULL;
    ret->laid_out = event != NULL && event->items != NULL;
    if (event) {
        ret->event = event->name;
        return true;
    }
    const char *name = known                              ? known->name
                       : class_id < EW_KERNEL_CLASS_COUNT ? bare_names[class_id]
                                                          : NULL;
    if (name)
        snprintf(scratch, EW_KERNEL_NAME_SIZE, "%s/Opcode(%u)", name, opcode);
    else
        snprintf(scratch, EW_KERNEL_NAME_SIZE, "Group(%u)/Opcode(%u)", record->group, opcode);
    ret->event = scratch;
    return true;
}

/* --------------------------------------------------------------------- fields */

enum { REGISTER_COUNT = 3 };

struct walk {
    struct ew_bytes in;
    struct ew_fields *out;
    size_t pointer_size;
    uint32_t registers[REGISTER_COUNT]; /* 0 is unused: as a count it means "to the end" */
    unsigned open;                      /* number of open structs of the layout */
};

/* Size of a number of this type, 0 if it is not a number. */
static size_t number_size(const struct walk *walk, uint8_t type)
{
    switch (type) {
    case K_U8:
    case K_I8:
    case K_X8:
    case K_BOOL:
        return 1;
    case K_U16:
    case K_I16:
    case K_X16:
    case K_PORT:
        return 2;
    case K_U32:
    case K_I32:
    case K_X32:
        return 4;
    case K_U64:
    case K_I64:
    case K_X64:
    case K_TIME:
        return 8;
    case K_PTR:
    case K_SIZE:
        return walk->pointer_size;
    case K_CONN:
        return ew_bytes_left(&walk->in) >= walk->pointer_size ? walk->pointer_size : 4;
    default:
        return 0;
    }
}

static uint64_t load(const uint8_t *p, size_t size)
{
    return size == 1   ? p[0]
           : size == 2 ? ew_load_u16(p)
           : size == 4 ? ew_load_u32(p)
                       : ew_load_u64(p);
}

static int64_t extend(uint64_t value, size_t size)
{
    uint64_t sign = (uint64_t)1 << (8 * size - 1);
    return (int64_t)((value ^ sign) - sign);
}

static void put_number(struct walk *walk, const struct ew_kernel_item *item, const char *name,
                       size_t size)
{
    const uint8_t *p = ew_bytes_take(&walk->in, size);
    if (!p)
        return;
    uint64_t value = load(p, size);
    size_t len = item->name_len;
    if (item->arg && item->arg < REGISTER_COUNT)
        walk->registers[item->arg] = (uint32_t)value;
    switch (item->type) {
    case K_I8:
    case K_I16:
    case K_I32:
    case K_I64:
        ew_fields_i64(walk->out, name, len, extend(value, size));
        return;
    case K_BOOL:
        ew_fields_u64(walk->out, name, len, EW_FIELD_BOOL, value != 0);
        return;
    case K_PORT:
        ew_fields_u64(walk->out, name, len, EW_FIELD_PORT, (uint64_t)p[0] << 8 | p[1]);
        return;
    case K_TIME:
        ew_fields_u64(walk->out, name, len, EW_FIELD_FILETIME, value);
        return;
    case K_X8:
    case K_X16:
    case K_X32:
    case K_X64:
    case K_PTR:
    case K_CONN:
        ew_fields_u64(walk->out, name, len, EW_FIELD_HEX, value);
        return;
    default:
        ew_fields_u64(walk->out, name, len, EW_FIELD_U64, value);
        return;
    }
}

/* Text up to a NUL or to the end: the last text of a payload may lack its NUL, and if it is empty
 * it may be absent. */
static void put_text(struct walk *walk, const struct ew_kernel_item *item, const char *name,
                     bool is_last)
{
    size_t unit = item->type == K_WIDE ? 2 : 1, left = ew_bytes_left(&walk->in), len = 0;
    if (left == 0 && !is_last) {
        ew_bytes_skip(&walk->in, 1); /* fails */
        return;
    }
    const uint8_t *text = walk->in.data ? walk->in.data + walk->in.pos : NULL;
    while (len + unit <= left && (text[len] || (unit == 2 && text[len + 1])))
        len += unit;
    ew_bytes_skip(&walk->in, len + unit <= left ? len + unit : left);
    if (unit == 2)
        ew_fields_utf16(walk->out, name, item->name_len, text, len);
    else
        ew_fields_ansi(walk->out, name, item->name_len, text, len);
}

static void put_chars(struct walk *walk, const struct ew_kernel_item *item, const char *name)
{
    const uint8_t *text = ew_bytes_take(&walk->in, 2u * item->arg);
    size_t len = 0;
    if (!text)
        return;
    while (len < 2u * item->arg && (text[len] || text[len + 1]))
        len += 2;
    ew_fields_utf16(walk->out, name, item->name_len, text, len);
}

static void put_sid(struct walk *walk, const struct ew_kernel_item *item, const char *name)
{
    const uint8_t *sid;
    size_t sid_len, left = ew_bytes_left(&walk->in);
    size_t size =
        ew_kernel_sid(walk->in.data + walk->in.pos, left, walk->pointer_size, &sid, &sid_len);
    if (!ew_bytes_take(&walk->in, size ? size : left + 1)) /* no size: fails */
        return;
    if (sid)
        ew_fields_raw(walk->out, name, item->name_len, EW_FIELD_SID, sid, sid_len);
    else
        ew_fields_null(walk->out, name, item->name_len);
}

static void put_raw(struct walk *walk, const struct ew_kernel_item *item, const char *name,
                    enum ew_field_type type, size_t size)
{
    const uint8_t *raw = ew_bytes_take(&walk->in, size);
    if (raw)
        ew_fields_raw(walk->out, name, item->name_len, type, raw, size);
}

/* Some bits of the next bytes, which are not consumed. */
static void put_bits(struct walk *walk, const struct ew_kernel_item *item, const char *name)
{
    size_t left = ew_bytes_left(&walk->in);
    if (left == 0) {
        ew_bytes_skip(&walk->in, 1); /* fails */
        return;
    }
    const uint8_t *p = walk->in.data + walk->in.pos;
    unsigned next = left > 1 ? ew_load_u16(p) : p[0], value = next >> item->arg;
    if (item->type == K_FLAG)
        ew_fields_u64(walk->out, name, item->name_len, EW_FIELD_BOOL, value & 1);
    else
        ew_fields_u64(walk->out, name, item->name_len, EW_FIELD_U64,
                      value & ((1u << item->more) - 1));
}

static void put_item(struct walk *walk, const struct ew_kernel_item *item, const char *name,
                     bool is_last)
{
    size_t size = number_size(walk, item->type);
    if (size) {
        put_number(walk, item, name, size);
        return;
    }
    switch (item->type) {
    case K_ANSI:
    case K_WIDE:
        put_text(walk, item, name, is_last);
        return;
    case K_CHARS:
        put_chars(walk, item, name);
        return;
    case K_SID:
        put_sid(walk, item, name);
        return;
    case K_GUID:
        put_raw(walk, item, name, EW_FIELD_GUID, 16);
        return;
    case K_IPV4:
        put_raw(walk, item, name, EW_FIELD_IPV4, 4);
        return;
    case K_IPV6:
        put_raw(walk, item, name, EW_FIELD_IPV6, 16);
        return;
    case K_BYTES:
        put_raw(walk, item, name, EW_FIELD_BINARY, item->arg);
        return;
    case K_BITS:
    case K_FLAG:
        put_bits(walk, item, name);
        return;
    case K_OPEN:
        ew_fields_open(walk->out, name, item->name_len, EW_FIELD_STRUCT);
        walk->open++;
        return;
    default:
        ew_fields_close(walk->out);
        walk->open--;
        return;
    }
}

/* A list: its elements are one unnamed item, or structs of several. A list to the end consists of
 * whole elements; a counted one fails if the payload is too short. */
static void put_list(struct walk *walk, const struct ew_kernel_item *list)
{
    const struct ew_kernel_item *item = list + 1;
    struct ew_kernel_item unnamed = *item;
    unnamed.name_len = 0;
    bool counted = list->more != 0;
    uint32_t count = counted ? walk->registers[list->more] : UINT32_MAX;
    ew_fields_open(walk->out, list->name, list->name_len, EW_FIELD_ARRAY);
    for (uint32_t n = 0; n < count && ew_bytes_ok(&walk->in) && !walk->out->cut; n++) {
        if (ew_bytes_left(&walk->in) == 0 && !counted)
            break;
        if (list->arg == 1) {
            put_item(walk, &unnamed, NULL, false);
            continue;
        }
        ew_fields_open(walk->out, NULL, 0, EW_FIELD_STRUCT);
        for (uint16_t i = 0; i < list->arg && ew_bytes_ok(&walk->in); i++)
            put_item(walk, &item[i], item[i].name, false);
        ew_fields_close(walk->out);
    }
    ew_fields_close(walk->out);
}

static bool walk_items(struct walk *walk, const struct ew_kernel_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].type == K_MAYEND) {
            if (ew_bytes_left(&walk->in) == 0)
                return true;
        } else if (items[i].type == K_LIST) {
            put_list(walk, &items[i]);
            i += items[i].arg;
        } else {
            put_item(walk, &items[i], items[i].name, i + 1 == count);
        }
        if (!ew_bytes_ok(&walk->in))
            return false;
    }
    return true;
}

int ew_kernel_fields(const struct ew_record *record, struct ew_fields *fields)
{
    uint8_t opcode, class_id = ew_kernel_class_of(record, &opcode);
    const struct ew_kernel_event *event = find_event(class_id, opcode, record->version);
    if (!event || !event->items)
        return 0;
    struct walk walk = {.out = fields, .pointer_size = ew_kernel_pointer_size(record, class_id)};
    ew_bytes_init(&walk.in, record->payload, record->payload_size);
    bool whole = walk_items(&walk, event->items, event->item_count);
    for (; walk.open; walk.open--)
        ew_fields_close(fields);
    return whole ? 1 : -1;
}
