/* SPDX-License-Identifier: MIT */
/*
 * Every layout of the kernel's classes is written with values that differ from field to field, read
 * back, and truncated at every length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/kernel.h"
#include "decode/kernel_table.h"
#include "kernel_payload.h"

static const struct {
    uint8_t id;
    const struct ew_kernel_class *table;
} classes[] = {
    {EW_KERNEL_EVENTTRACE, &ew_kernel_eventtrace},
    {EW_KERNEL_DISKIO, &ew_kernel_diskio},
    {EW_KERNEL_MEMORY, &ew_kernel_memory},
    {EW_KERNEL_PROCESS, &ew_kernel_process},
    {EW_KERNEL_FILEIO, &ew_kernel_fileio},
    {EW_KERNEL_THREAD, &ew_kernel_thread},
    {EW_KERNEL_TCPIP, &ew_kernel_tcpip},
    {EW_KERNEL_UDPIP, &ew_kernel_udpip},
    {EW_KERNEL_REGISTRY, &ew_kernel_registry},
    {EW_KERNEL_SYSTEMCONFIG, &ew_kernel_systemconfig},
    {EW_KERNEL_POOL, &ew_kernel_pool},
    {EW_KERNEL_PERFINFO, &ew_kernel_perfinfo},
    {EW_KERNEL_HEAP, &ew_kernel_heap},
    {EW_KERNEL_OBJECT, &ew_kernel_object},
    {EW_KERNEL_IMAGE, &ew_kernel_image},
    {EW_KERNEL_STACKWALK, &ew_kernel_stackwalk},
    {EW_KERNEL_ALPC, &ew_kernel_alpc},
    {EW_KERNEL_SPLITIO, &ew_kernel_splitio},
};

/* --------------------------------------------------- every layout of the tables */

enum { LIST_LEN = 2 };

/*
 * A number that fits and differs from that of the previous and next item. Register values are the
 * lengths of the lists that follow.
 */
static uint64_t value_of(const struct ew_kernel_item *item, unsigned i)
{
    return item->arg ? LIST_LEN : 33 + i % 90;
}

static void write_item(struct payload *payload, const struct ew_kernel_item *item, unsigned i)
{
    uint64_t value = value_of(item, i);
    char text[16];
    snprintf(text, sizeof text, "T%u", i);
    switch (item->type) {
    case K_U8:
    case K_I8:
    case K_X8:
        put(payload, value, 1);
        return;
    case K_BOOL:
        put(payload, 1, 1);
        return;
    case K_U16:
    case K_I16:
    case K_X16:
        put(payload, value, 2);
        return;
    case K_PORT:
        put(payload, value << 8, 2);
        return;
    case K_U32:
    case K_I32:
    case K_X32:
        put(payload, value, 4);
        return;
    case K_U64:
    case K_I64:
    case K_X64:
    case K_TIME:
        put(payload, value, 8);
        return;
    case K_PTR:
    case K_SIZE:
    case K_CONN:
        put_pointer(payload, value);
        return;
    case K_IPV4:
        put(payload, value, 4);
        return;
    case K_IPV6:
    case K_GUID:
        put(payload, value, 8);
        put(payload, value, 8);
        return;
    case K_SID:
        put_sid(payload);
        return;
    case K_ANSI:
        put_ansi(payload, text);
        return;
    case K_WIDE:
        put_wide(payload, text);
        return;
    case K_CHARS: {
        uint32_t end = payload->size + 2u * item->arg;
        put(payload, 'T', 2);
        if (item->arg > 1)
            put(payload, 0, 2);
        memset(payload->bytes + payload->size, 0xee, end - payload->size);
        payload->size = end;
        return;
    }
    case K_BYTES:
        for (unsigned n = 0; n < item->arg; n++)
            put(payload, value, 1);
        return;
    default: /* takes no bytes */
        return;
    }
}

static void write_layout(struct payload *payload, const struct ew_kernel_event *event)
{
    payload->size = 0;
    for (unsigned i = 0; i < event->item_count; i++) {
        const struct ew_kernel_item *item = &event->items[i];
        if (item->type != K_LIST) {
            write_item(payload, item, i);
            continue;
        }
        for (unsigned n = 0; n < LIST_LEN; n++)
            for (unsigned k = 1; k <= item->arg; k++)
                write_item(payload, &item[k], i + k);
        i += item->arg;
    }
}

static void check_field(const struct ew_field *field, const struct ew_kernel_item *item, unsigned i)
{
    uint64_t value = value_of(item, i);
    char text[16];
    switch (item->type) {
    case K_BOOL:
        CHECK_EQ_INT(field->type, EW_FIELD_BOOL);
        CHECK_EQ_UINT(field->v.u, 1);
        return;
    case K_I8:
    case K_I16:
    case K_I32:
    case K_I64:
        CHECK_EQ_INT(field->type, EW_FIELD_I64);
        CHECK_EQ_INT(field->v.i, value);
        return;
    case K_ANSI:
    case K_WIDE:
        snprintf(text, sizeof text, "T%u", i);
        CHECK_EQ_INT(field->type, EW_FIELD_TEXT);
        CHECK_EQ_UINT(field->len, strlen(text));
        CHECK_EQ_MEM(field->v.text, text, field->len);
        return;
    case K_CHARS:
        CHECK_EQ_UINT(field->len, 1);
        CHECK_EQ_MEM(field->v.text, "T", 1);
        return;
    case K_IPV4:
    case K_IPV6:
    case K_GUID:
    case K_BYTES:
        CHECK_EQ_UINT(field->len, item->type == K_IPV4    ? 4
                                  : item->type == K_BYTES ? item->arg
                                                          : 16);
        if (item->type != K_BYTES)
            CHECK_EQ_UINT(field->v.raw[0], value);
        return;
    case K_SID:
        CHECK_EQ_INT(field->type, EW_FIELD_SID);
        CHECK_EQ_UINT(field->len, 16);
        return;
    case K_BITS:
    case K_FLAG:
    case K_OPEN:
        return;
    default:
        CHECK_EQ_UINT(field->v.u, value);
        return;
    }
}

/* Two inner structs may have members with the same name. */
static bool named_before(const struct ew_kernel_event *event, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (event->items[k].name && strcmp(event->items[k].name, event->items[i].name) == 0)
            return true;
    return false;
}

static void check_layout(const struct ew_fields *fields, const struct ew_kernel_event *event)
{
    for (unsigned i = 0; i < event->item_count; i++) {
        const struct ew_kernel_item *item = &event->items[i];
        if (!item->name)
            continue;
        const struct ew_field *field = field_named(fields, item->name);
        CHECK(field != NULL);
        if (named_before(event, i))
            continue;
        if (item->type == K_LIST) {
            CHECK_EQ_INT(field->type, EW_FIELD_ARRAY);
            CHECK_EQ_INT(field[1].type, item->arg == 1 ? item[1].type == K_WIDE   ? EW_FIELD_TEXT
                                                         : item[1].type == K_GUID ? EW_FIELD_GUID
                                                                                  : field[1].type
                                                       : EW_FIELD_STRUCT);
            i += item->arg;
            continue;
        }
        check_field(field, item, i);
    }
}

/*
 * Not every truncation is detected: a list may end early, and so may the last string. But nothing
 * outside the payload is read (the payload is at the end of its heap block), and the decoded fields
 * are well formed.
 */
static void check_cuts(const struct payload *payload, uint8_t class_id,
                       const struct ew_kernel_event *event, struct ew_fields *fields)
{
    bool steered = false;
    for (unsigned i = 0; i < event->item_count; i++)
        steered |= event->items[i].type == K_MAYEND || event->items[i].type == K_LIST ||
                   event->items[i].type == K_WIDE || event->items[i].type == K_ANSI;
    for (uint32_t size = 0; size < payload->size; size++) {
        uint8_t *bytes = malloc(size ? size : 1);
        CHECK(bytes != NULL);
        memcpy(bytes, payload->bytes, size);
        struct ew_record record = kernel_record(payload, class_id, event->opcode, event->version);
        record.payload = bytes;
        record.payload_size = size;
        ew_fields_clear(fields);
        int got = ew_kernel_fields(&record, fields);
        free(bytes);
        CHECK_EQ_UINT(fields->open, 0);
        CHECK(got == 1 || got == -1);
        if (!steered && class_id != EW_KERNEL_TCPIP && class_id != EW_KERNEL_UDPIP)
            CHECK_EQ_INT(got, -1);
    }
}

static void check_row(struct payload *payload, uint8_t class_id,
                      const struct ew_kernel_event *event, struct ew_fields *fields)
{
    write_layout(payload, event);
    struct ew_record record = kernel_record(payload, class_id, event->opcode, event->version);
    ew_fields_clear(fields);
    CHECK_EQ_INT(ew_kernel_fields(&record, fields), 1);
    CHECK_EQ_UINT(fields->open, 0);
    check_layout(fields, event);
    uint32_t count = fields->count;
    check_cuts(payload, class_id, event, fields);
    /* A later version has more bytes, which change nothing (a list without a count would take
     * them). */
    if (event->item_count < 2 || event->items[event->item_count - 2].type != K_LIST) {
        put(payload, 0, 8);
        record.payload_size = payload->size;
        ew_fields_clear(fields);
        CHECK_EQ_INT(ew_kernel_fields(&record, fields), 1);
        CHECK_EQ_UINT(fields->count, count);
    }
}

static void check_table(uint8_t pointer_size)
{
    struct ew_fields fields;
    static struct payload payload;
    unsigned rows = 0;
    ew_fields_init(&fields);
    payload.pointer_size = pointer_size;
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++)
        for (size_t i = 0; i < classes[c].table->event_count; i++) {
            const struct ew_kernel_event *event = &classes[c].table->events[i];
            if (!event->items)
                continue;
            test_row(event->name);
            check_row(&payload, classes[c].id, event, &fields);
            rows++;
        }
    CHECK(rows > 300);
    ew_fields_done(&fields);
}

TEST(every_64_bit_layout_reads_back_as_written)
{
    check_table(8);
}

TEST(every_32_bit_layout_reads_back_as_written)
{
    check_table(4);
}

TEST(the_tables_have_each_version_once_and_in_order)
{
    for (size_t c = 0; c < sizeof classes / sizeof *classes; c++) {
        const struct ew_kernel_class *table = classes[c].table;
        for (size_t i = 0; i < table->event_count; i++)
            for (size_t k = i + 1; k < table->event_count; k++) {
                test_row(table->events[i].name);
                CHECK(table->events[i].opcode != table->events[k].opcode ||
                      table->events[i].version < table->events[k].version);
            }
    }
}
