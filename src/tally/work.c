/* SPDX-License-Identifier: MIT */
/*
 * Page faults, files, disks, the network, and which thread to attribute them to. A disk I/O is
 * recorded when it completes, on any CPU, possibly after the thread that issued it has exited: it
 * is then attributed to the process's pseudo-thread.
 */
#include "base/alloc.h"
#include "tally/internal.h"

/* Thread ids are reused, but not within this time. */
#define GONE_NS UINT64_C(2000000000)

enum { FAULT_HARD = 14 };

static bool is_known(const struct ew_tally_process *process, uint32_t serial)
{
    return process != NULL && serial != 0 && process->serial == serial;
}

/* ----------------------------------------------------------------- attribution */

void ew_work_remember_gone(struct ew_tally *tally, const struct ew_tally_thread *thread)
{
    if (tally->gone == NULL) {
        tally->gone = ew_calloc(EW_GONE, sizeof *tally->gone);
        if (tally->gone == NULL) {
            ew_tally_short_of_memory(tally);
            return;
        }
    }
    uint32_t tid = thread->cold->tid;
    tally->gone[ew_tally_hash(tid) % EW_GONE] =
        (struct ew_tally_gone){.process = thread->process,
                               .end_ns = tally->now_ns,
                               .tid = tid,
                               .serial = thread->process->serial};
}

struct ew_tally_thread *ew_work_thread(struct ew_tally *tally, uint32_t tid, uint64_t t_ns)
{
    struct ew_tally_thread *thread = ew_threads_find(tally, tid);
    if (thread != NULL)
        return thread;
    const struct ew_tally_gone *gone = NULL;
    if (tally->gone != NULL)
        gone = &tally->gone[ew_tally_hash(tid) % EW_GONE];
    if (gone != NULL && gone->tid == tid && is_known(gone->process, gone->serial) &&
        t_ns - gone->end_ns < GONE_NS)
        return ew_threads_own(tally, gone->process);
    return ew_threads_add(tally, NULL, tid);
}

/* The thread that the event names, else the one running on its CPU. */
static struct ew_tally_thread *acting_thread(struct ew_tally *tally, const struct ew_record *record,
                                             const struct ew_event *event)
{
    struct ew_tally_thread *thread = NULL;
    if (event->tid != EW_NO_ID) {
        thread = ew_work_thread(tally, event->tid, event->t_ns);
    } else if (event->pid != EW_NO_ID && event->pid != 0) {
        struct ew_tally_process *process = ew_processes_get(tally, event->pid, event->t_ns);
        thread = process != NULL ? ew_threads_own(tally, process) : NULL;
    } else if (event->cpu < tally->cpu_count) {
        thread = tally->cpus[event->cpu].running;
    }
    if (thread == NULL || (thread->flags & EW_TT_IDLE) != 0)
        return NULL;
    /* A header with both ids names the thread's process. */
    if (thread->process == NULL && record != NULL && record->tid == thread->cold->tid &&
        record->pid != EW_NO_ID && record->pid != 0) {
        struct ew_tally_process *process = ew_processes_get(tally, record->pid, event->t_ns);
        if (process != NULL)
            ew_threads_adopt(tally, thread, process);
    }
    return thread;
}

static void count(struct ew_tally *tally, struct ew_tally_thread *thread,
                  const struct ew_event *event, enum ew_tally_work work, uint64_t more)
{
    if (thread == NULL) {
        tally->unattributed++;
        return;
    }
    ew_facts_active(tally, thread, event->t_ns);
    thread->cold->work[work] += more;
    if (thread->process == NULL)
        thread->cold->orphans++;
}

/* ----------------------------------------------------------------------- disks */

static struct ew_tally_irp *irp_slot(struct ew_tally *tally, uint64_t irp)
{
    if (tally->irps == NULL)
        tally->irps = ew_calloc(EW_IRPS, sizeof *tally->irps);
    if (tally->irps == NULL) {
        ew_tally_short_of_memory(tally);
        return NULL;
    }
    return &tally->irps[ew_tally_hash((uint32_t)(irp >> 4 ^ irp >> 32)) % EW_IRPS];
}

static void disk_init(struct ew_tally *tally, const struct ew_record *record,
                      const struct ew_event *event)
{
    struct ew_tally_irp *slot = irp_slot(tally, event->u.io.irp);
    struct ew_tally_thread *thread = acting_thread(tally, record, event);
    if (slot == NULL || thread == NULL || event->u.io.irp == 0)
        return;
    *slot = (struct ew_tally_irp){.irp = event->u.io.irp, .tid = thread->cold->tid};
    if (thread->process != NULL) {
        slot->process = thread->process;
        slot->serial = thread->process->serial;
    }
}

/* The thread that issued the I/O which has completed. */
static struct ew_tally_thread *issuer(struct ew_tally *tally, const struct ew_event *event)
{
    struct ew_tally_irp *slot = event->u.io.irp != 0 ? irp_slot(tally, event->u.io.irp) : NULL;
    uint32_t tid = event->tid;
    if (slot != NULL && slot->irp == event->u.io.irp) {
        struct ew_tally_irp io = *slot;
        slot->irp = 0;
        struct ew_tally_thread *thread = ew_threads_find(tally, io.tid);
        if (thread != NULL && (io.process == NULL || thread->process == io.process))
            return thread;
        if (is_known(io.process, io.serial))
            return ew_threads_own(tally, io.process);
        tid = io.tid;
    }
    if (tid == EW_NO_ID || tid == 0)
        return NULL;
    return ew_work_thread(tally, tid, event->t_ns);
}

/* --------------------------------------------------------------------- network */

static struct ew_tally_thread *net_thread(struct ew_tally *tally, const struct ew_event *event)
{
    if (event->pid == EW_NO_ID || event->pid == 0)
        return NULL;
    struct ew_tally_thread *thread =
        event->tid != EW_NO_ID ? ew_threads_find(tally, event->tid) : NULL;
    if (thread != NULL && thread->process != NULL && thread->process->pid == event->pid)
        return thread;
    struct ew_tally_process *process = ew_processes_find(tally, event->pid);
    if (process == NULL)
        process = ew_processes_get(tally, event->pid, event->t_ns);
    return process != NULL ? ew_threads_own(tally, process) : NULL;
}

/* ------------------------------------------------------------------------ presents */

static struct ew_tally_thread *presenter(struct ew_tally *tally, const struct ew_record *record,
                                         const struct ew_event *event)
{
    struct ew_tally_thread *thread = acting_thread(tally, record, event);
    return thread != NULL && thread->process != NULL ? ew_threads_own(tally, thread->process)
                                                     : thread;
}

/* ---------------------------------------------------------------------- events */

static void fault(struct ew_tally *tally, const struct ew_record *record,
                  const struct ew_event *event)
{
    struct ew_tally_thread *thread = acting_thread(tally, record, event);
    enum ew_tally_work work = EW_WORK_FAULTS_MINOR;
    if (event->kind == EW_EVENT_HARD_FAULT)
        work = EW_WORK_FAULTS_MAJOR;
    else if (event->u.fault.opcode == FAULT_HARD)
        work = EW_WORK_FAULTS_HARD;
    ew_tally_saw(tally, work == EW_WORK_FAULTS_MAJOR ? EW_TALLY_HARD_FAULTS : EW_TALLY_FAULTS);
    count(tally, thread, event, work, 1);
}

static void file(struct ew_tally *tally, const struct ew_record *record,
                 const struct ew_event *event, enum ew_tally_work bytes, enum ew_tally_work ops)
{
    ew_tally_saw(tally, EW_TALLY_FILES);
    struct ew_tally_thread *thread = acting_thread(tally, record, event);
    count(tally, thread, event, bytes, event->u.io.bytes);
    if (thread != NULL)
        thread->cold->work[ops]++;
}

void ew_work_event(struct ew_tally *tally, const struct ew_record *record,
                   const struct ew_event *event)
{
    switch (event->kind) {
    case EW_EVENT_FAULT:
    case EW_EVENT_HARD_FAULT:
        fault(tally, record, event);
        break;
    case EW_EVENT_FILE_READ:
        file(tally, record, event, EW_WORK_IO_READ_BYTES, EW_WORK_IO_READ_OPS);
        break;
    case EW_EVENT_FILE_WRITE:
        file(tally, record, event, EW_WORK_IO_WRITE_BYTES, EW_WORK_IO_WRITE_OPS);
        break;
    case EW_EVENT_DISK_INIT:
        disk_init(tally, record, event);
        break;
    case EW_EVENT_DISK_READ:
    case EW_EVENT_DISK_WRITE:
        ew_tally_saw(tally, EW_TALLY_DISK);
        count(tally, issuer(tally, event), event,
              event->kind == EW_EVENT_DISK_READ ? EW_WORK_DISK_READ_BYTES
                                                : EW_WORK_DISK_WRITE_BYTES,
              event->u.io.bytes);
        break;
    case EW_EVENT_NET_SEND:
    case EW_EVENT_NET_RECEIVE:
        ew_tally_saw(tally, EW_TALLY_NET);
        count(tally, net_thread(tally, event), event,
              event->kind == EW_EVENT_NET_SEND ? EW_WORK_NET_SENT_BYTES
                                               : EW_WORK_NET_RECEIVED_BYTES,
              event->u.net.bytes);
        break;
    case EW_EVENT_PRESENT:
        ew_tally_saw(tally, EW_TALLY_PRESENTS);
        count(tally, presenter(tally, record, event), event, EW_WORK_PRESENTS, 1);
        break;
    default:
        break;
    }
}
