/* SPDX-License-Identifier: MIT */
/*
 * The notation of the tables in kernel_table_*.c, which are read by kernel.c.
 *
 * An event is a row: opcode, first version with its layout, name, items. Of the rows of an opcode,
 * the one with the highest version that is not above the record's is used. A version newer than the
 * tables is read with the newest layout, because fields are only ever appended. An item is a name
 * and a type; a few types control how the others are read.
 */
#ifndef EW_DECODE_KERNEL_TABLE_H
#define EW_DECODE_KERNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

/* The groups of the kernel's short headers, then the classes that have only a GUID. */
enum ew_kernel_class_id {
    EW_KERNEL_EVENTTRACE = 0x00,
    EW_KERNEL_DISKIO = 0x01,
    EW_KERNEL_MEMORY = 0x02,
    EW_KERNEL_PROCESS = 0x03,
    EW_KERNEL_FILEIO = 0x04,
    EW_KERNEL_THREAD = 0x05,
    EW_KERNEL_TCPIP = 0x06,
    EW_KERNEL_JOB = 0x07,
    EW_KERNEL_UDPIP = 0x08,
    EW_KERNEL_REGISTRY = 0x09,
    EW_KERNEL_DEBUGPRINT = 0x0a,
    EW_KERNEL_SYSTEMCONFIG = 0x0b,
    EW_KERNEL_POOL = 0x0e,
    EW_KERNEL_PERFINFO = 0x0f,
    EW_KERNEL_HEAP = 0x10,
    EW_KERNEL_OBJECT = 0x11,
    EW_KERNEL_POWER = 0x12,
    EW_KERNEL_IMAGE = 0x14,
    EW_KERNEL_CC = 0x16,
    EW_KERNEL_CRITSEC = 0x17,
    EW_KERNEL_STACKWALK = 0x18,
    EW_KERNEL_UMS = 0x19,
    EW_KERNEL_ALPC = 0x1a,
    EW_KERNEL_SPLITIO = 0x1b,
    EW_KERNEL_THREADPOOL = 0x1c,
    EW_KERNEL_LOST,      /* RT_LostEvent */
    EW_KERNEL_IMAGEID,   /* KernelTraceControl, in merged recordings: debug ids of images */
    EW_KERNEL_SYSCONFIG, /* KernelTraceControl: build, paths, volumes */
    EW_KERNEL_WINSAT,    /* KernelTraceControl */
    EW_KERNEL_METADATA,  /* KernelTraceControl: schemas */
    EW_KERNEL_CLASS_COUNT,
    EW_KERNEL_NO_CLASS = 0xff,
};

enum ew_kernel_type {
    K_U8 = 1,
    K_U16,
    K_U32, /* arg: register that stores it (1, 2), for a following K_LIST */
    K_U64,
    K_I8,
    K_I16,
    K_I32,
    K_I64,
    K_X8, /* X: flags and codes, shown in hexadecimal */
    K_X16,
    K_X32,
    K_X64,
    K_PTR,  /* an address, as wide as a pointer */
    K_SIZE, /* a number, as wide as a pointer */
    K_BOOL, /* one byte */
    K_TIME, /* FILETIME */
    K_IPV4,
    K_IPV6,
    K_PORT, /* in network order */
    K_GUID,
    K_SID,    /* TOKEN_USER followed by the SID, or a zero: no SID */
    K_ANSI,   /* up to a NUL or the end */
    K_WIDE,   /* up to a NUL or the end */
    K_CHARS,  /* arg UTF-16 units, text up to a NUL */
    K_BYTES,  /* arg bytes */
    K_CONN,   /* a pointer if there is room for one, else four bytes */
    K_BITS,   /* `more` bits of the next two bytes from bit `arg`; consumes nothing */
    K_FLAG,   /* bit `arg` of the next two bytes; consumes nothing */
    K_OPEN,   /* start of a struct */
    K_CLOSE,  /* end of a struct */
    K_LIST,   /* the next `arg` items form an element; register `more` has the count (0: to the end)
               */
    K_MAYEND, /* older payloads end here */
};

struct ew_kernel_item {
    const char *name;
    uint8_t name_len, type;
    uint16_t arg;
    uint8_t more;
};

#define K(type, name)                                      \
    {                                                      \
#name, (uint8_t)(sizeof #name - 1), K_##type, 0, 0 \
    }
#define K_ARG(type, name, arg)                               \
    {                                                        \
#name, (uint8_t)(sizeof #name - 1), K_##type, arg, 0 \
    }
#define K_TWO(type, name, arg, more)                            \
    {                                                           \
#name, (uint8_t)(sizeof #name - 1), K_##type, arg, more \
    }
#define K_ONLY(type)            \
    {                           \
        NULL, 0, K_##type, 0, 0 \
    }

struct ew_kernel_event {
    uint8_t opcode, version;
    uint16_t item_count;
    const char *name;
    const struct ew_kernel_item *items; /* NULL: only the name is known */
};

#define ROW(opcode, version, name, items)                          \
    {                                                              \
        opcode, version, sizeof items / sizeof *items, name, items \
    }
#define ROW_EMPTY(opcode, name)                \
    {                                          \
        opcode, 0, 0, name, ew_kernel_no_items \
    }
#define ROW_NAME(opcode, name)   \
    {                            \
        opcode, 0, 0, name, NULL \
    }

struct ew_kernel_class {
    const char *name, *provider;
    const struct ew_kernel_event *events;
    size_t event_count;
};

#define EW_KERNEL_CLASS(name, provider, events)                \
    {                                                          \
        name, provider, events, sizeof events / sizeof *events \
    }

extern const struct ew_kernel_item ew_kernel_no_items[1];

/* kernel_table_process.c, _perf.c, _io.c, _net.c, _config.c, _system.c */
extern const struct ew_kernel_class ew_kernel_process, ew_kernel_thread, ew_kernel_image;
extern const struct ew_kernel_class ew_kernel_stackwalk, ew_kernel_perfinfo, ew_kernel_memory;
extern const struct ew_kernel_class ew_kernel_diskio, ew_kernel_fileio, ew_kernel_registry,
    ew_kernel_splitio;
extern const struct ew_kernel_class ew_kernel_tcpip, ew_kernel_udpip;
extern const struct ew_kernel_class ew_kernel_systemconfig;
extern const struct ew_kernel_class ew_kernel_eventtrace, ew_kernel_pool, ew_kernel_heap,
    ew_kernel_object, ew_kernel_alpc, ew_kernel_lost, ew_kernel_imageid, ew_kernel_sysconfig,
    ew_kernel_winsat, ew_kernel_metadata;

/* kernel_class.c: class and opcode of a record (the kernel writes image loads into the group of the
 * processes). EW_KERNEL_NO_CLASS: not a kernel class. */
uint8_t ew_kernel_class_of(const struct ew_record *record, uint8_t *ret_opcode);
/* Size of the pointers in this payload. Usually record->pointer_size; but a 32-bit program that
 * replays events of a 64-bit system through the classic interface writes 32-bit headers. */
uint8_t ew_kernel_pointer_size(const struct ew_record *record, uint8_t class_id);
/* Size of the user's TOKEN_USER and SID at the start of bytes; *ret_sid NULL: no SID. 0: not enough
 * bytes. */
size_t ew_kernel_sid(const uint8_t *bytes, size_t size, size_t pointer_size,
                     const uint8_t **ret_sid, size_t *ret_sid_len);

#endif
