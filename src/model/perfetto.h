/* SPDX-License-Identifier: MIT */
/*
 * The part of Perfetto's trace format that etwatch writes and reads: field numbers of its messages
 * (protos/perfetto/trace), and the contents of etwatch's own events.
 *
 * Scheduling is written as kernel messages (ftrace bundles on Linux, ETW bundles for Windows
 * recordings), so Perfetto draws it like its own recordings. Samples, starts and exits are instants
 * of the category "etwatch" with debug annotations that carry every value by name, exactly; the
 * counter tracks duplicate some of them for display.
 */
#ifndef EW_MODEL_PERFETTO_H
#define EW_MODEL_PERFETTO_H

#include <stdint.h>

enum { EW_PF_TRACE_PACKET = 1 };

enum ew_pf_packet {
    EW_PF_FTRACE_EVENTS = 1,
    EW_PF_PROCESS_TREE = 2,
    EW_PF_CLOCK_SNAPSHOT = 6,
    EW_PF_TIMESTAMP = 8,
    EW_PF_SEQUENCE_ID = 10,
    EW_PF_TRACK_EVENT = 11,
    EW_PF_INTERNED_DATA = 12,
    EW_PF_SEQUENCE_FLAGS = 13,
    EW_PF_SYSTEM_INFO = 45,
    EW_PF_COMPRESSED = 50, /* part of a trace, compressed with zlib */
    EW_PF_CLOCK_ID = 58,
    EW_PF_TRACK_DESCRIPTOR = 60,
    EW_PF_ETW_EVENTS = 95,
    EW_PF_ZSTD_COMPRESSED = 133,
};

enum { EW_PF_CLOCK_REALTIME = 1, EW_PF_CLOCK_BOOTTIME = 6 };
enum { EW_PF_SEQ_CLEARED = 1, EW_PF_SEQ_NEEDS_STATE = 2 };

enum ew_pf_track {
    EW_PF_TRACK_UUID = 1,
    EW_PF_TRACK_NAME = 2,
    EW_PF_TRACK_PROCESS = 3,
    EW_PF_TRACK_THREAD = 4,
    EW_PF_TRACK_PARENT = 5,
    EW_PF_TRACK_COUNTER = 8,
};

enum ew_pf_track_event {
    EW_PF_EVENT_CATEGORY_IID = 3,
    EW_PF_EVENT_ANNOTATION = 4,
    EW_PF_EVENT_TYPE = 9,
    EW_PF_EVENT_NAME_IID = 10,
    EW_PF_EVENT_TRACK = 11,
    EW_PF_EVENT_CATEGORY = 22,
    EW_PF_EVENT_NAME = 23,
    EW_PF_EVENT_COUNTER = 30,
    EW_PF_EVENT_DOUBLE = 44,
    EW_PF_EVENT_FLOW = 47, /* fixed64: slices with the same id are joined by arrows */
};
enum { EW_PF_TYPE_BEGIN = 1, EW_PF_TYPE_END = 2, EW_PF_TYPE_INSTANT = 3, EW_PF_TYPE_COUNTER = 4 };

enum ew_pf_annotation {
    EW_PF_ANNOTATION_NAME_IID = 1,
    EW_PF_ANNOTATION_BOOL = 2,
    EW_PF_ANNOTATION_U64 = 3,
    EW_PF_ANNOTATION_I64 = 4,
    EW_PF_ANNOTATION_DOUBLE = 5,
    EW_PF_ANNOTATION_TEXT = 6,
    EW_PF_ANNOTATION_POINTER = 7,
    EW_PF_ANNOTATION_NAME = 10,
};

enum ew_pf_interned {
    EW_PF_INTERNED_CATEGORY = 1,
    EW_PF_INTERNED_EVENT_NAME = 2,
    EW_PF_INTERNED_ANNOTATION_NAME = 3,
};

enum ew_pf_bundle {
    EW_PF_BUNDLE_CPU = 1,
    EW_PF_BUNDLE_EVENT = 2,
    EW_PF_BUNDLE_LOST = 3,
    EW_PF_BUNDLE_COMPACT = 4,
};

enum ew_pf_compact {
    EW_PF_SWITCH_TIME = 1,
    EW_PF_SWITCH_PREV_STATE = 2,
    EW_PF_SWITCH_NEXT_PID = 3,
    EW_PF_SWITCH_NEXT_PRIO = 4,
    EW_PF_INTERN_TABLE = 5,
    EW_PF_SWITCH_NEXT_COMM = 6,
    EW_PF_WAKING_TIME = 7,
    EW_PF_WAKING_PID = 8,
    EW_PF_WAKING_CPU = 9,
    EW_PF_WAKING_PRIO = 10,
    EW_PF_WAKING_COMM = 11,
};

enum ew_pf_ftrace {
    EW_PF_FTRACE_TIME = 1,
    EW_PF_FTRACE_PID = 2,
    EW_PF_FTRACE_SWITCH = 4,
    EW_PF_FTRACE_WAKEUP = 17,
    EW_PF_FTRACE_WAKING = 20,
    EW_PF_FTRACE_WAKEUP_NEW = 114,
    EW_PF_FTRACE_NEWTASK = 235,
    EW_PF_FTRACE_RENAME = 236,
    EW_PF_FTRACE_EXEC = 237,
    EW_PF_FTRACE_EXIT = 238,
    EW_PF_FTRACE_FORK = 239,
    EW_PF_FTRACE_FREE = 240,
};

/* sched_switch numbers priorities from the highest real-time one, etwatch from the lowest. */
enum { EW_PF_PRIO_BASE = 100, EW_PF_CLONE_THREAD = 0x10000 };
/* Task states of ftrace where they differ from the kernel's own. */
enum { EW_PF_STATE_PREEMPTED = 0x100, EW_PF_STATE_DEAD = 0x10, EW_PF_STATE_ZOMBIE = 0x20 };
enum { EW_PF_KERNEL_DEAD = 0x80, EW_PF_KERNEL_REPORTED = 0x7F, EW_PF_KERNEL_IDLE = 0x402 };

/* Messages for Windows events. States and reasons are those of Windows. */
enum ew_pf_etw {
    EW_PF_ETW_TIME = 1,
    EW_PF_ETW_CSWITCH = 2,
    EW_PF_ETW_READY = 3,
    EW_PF_ETW_CPU = 4,
    EW_PF_ETW_TID = 5,
};

enum ew_pf_cswitch {
    EW_PF_CSWITCH_NEW_TID = 1,
    EW_PF_CSWITCH_OLD_TID = 2,
    EW_PF_CSWITCH_NEW_PRIORITY = 3,
    EW_PF_CSWITCH_OLD_PRIORITY = 4,
    EW_PF_CSWITCH_C_STATE = 5,
    EW_PF_CSWITCH_REASON = 6, /* as an enumeration; REASON_INT is the number */
    EW_PF_CSWITCH_STATE = 8,
    EW_PF_CSWITCH_IDEAL_CPU = 9,
    EW_PF_CSWITCH_WAIT_TIME = 10,
    EW_PF_CSWITCH_REASON_INT = 11,
    EW_PF_CSWITCH_MODE_INT = 12,
    EW_PF_CSWITCH_STATE_INT = 13,
};

/* The sequence id of etwatch's own packets, and the track for events without a process. */
enum { EW_PF_SEQUENCE = 0x6577, EW_PF_OWN_TRACK = 1 };
/* First id of the empty tracks that only name processes. */
#define EW_PF_NAME_TRACK (UINT64_C(1) << 48)

/* The names of etwatch's instants. */
#define EW_PF_EVENTS(X) \
    X(start)            \
    X(exit)             \
    X(sample)           \
    X(thread)           \
    X(meta)             \
    X(loss)             \
    X(stats)            \
    X(alert)            \
    X(total)            \
    X(system)

enum ew_pf_event {
#define EW_X(name) EW_PF_E_##name,
    EW_PF_EVENTS(EW_X)
#undef EW_X
        EW_PF_EVENT_COUNT
};

/* Annotations of samples in addition to the metrics, which keep their own names. */
#define EW_PF_VALUES(X) \
    X(pid)              \
    X(tid)              \
    X(ppid)             \
    X(session_id)       \
    X(start_ns)         \
    X(dt_ns)            \
    X(flags)            \
    X(source)           \
    X(name)             \
    X(thread_name)      \
    X(user)             \
    X(cgroup)           \
    X(cmdline)          \
    X(stage)            \
    X(count)            \
    X(from_ns)          \
    X(to_ns)            \
    X(t_ns)             \
    X(estimated)

/* A set of metrics is written as its words: the first always, the others if they are not 0. */
#define EW_PF_SET_NAMES(name)                      \
    {                                              \
        name, name "_64", name "_128", name "_192" \
    }

enum ew_pf_value {
#define EW_X(name) EW_PF_V_##name,
    EW_PF_VALUES(EW_X)
#undef EW_X
        EW_PF_VALUE_COUNT
};

#endif
