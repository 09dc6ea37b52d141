/* SPDX-License-Identifier: MIT */
/*
 * Owns the state between two readings: the handles of the disks, functions that not every Windows
 * has or that only this file needs (iphlpapi is loaded, not imported), and 32-bit counters extended
 * to 64 bits.
 *
 * Values that Windows, or Wine, does not provide are omitted. Neither counts starts and exits of
 * processes and threads: started are those in the list that are younger than the youngest of the
 * previous list, so any that start and end in between are missing; events (ETW) report all. Windows
 * has no load average either: it is computed like that of Linux, from the number of running and
 * ready threads at each reading; until a window has passed, the average is over the time since the
 * start.
 */
/* Must precede windows.h, which otherwise includes an older socket header. */
#include <winsock2.h>

#include <windows.h>
#include <ws2ipdef.h>

#include <iphlpapi.h>
#include <netioapi.h>
#include <psapi.h>
#include <winioctl.h>
#include <winternl.h>

#include <etwatch/system.h>
#include <string.h>

#include "base/alloc.h"
#include "sensor/system.h"
#include "source/poll_windows/poll.h"

enum { DISKS_MAX = 64, FIND_DISKS_EVERY = 30, GROUP_CPUS_MAX = 64 };

const struct etwatch_metric_set ew_system_source_estimates =
    EW_METRIC_SET(ETWATCH_S_load_1, ETWATCH_S_load_5, ETWATCH_S_load_15, ETWATCH_S_threads_started,
                  ETWATCH_S_threads_ended, ETWATCH_S_processes_started, ETWATCH_S_processes_ended);

/* winternl.h hides these fields. */
struct performance {
    uint64_t idle_time, read_bytes, write_bytes, other_bytes;
    uint32_t io_ops[3], available_pages, committed[3], faults[5];
    uint32_t pages_read, page_reads, cache[2];
    uint32_t dirty_pages_written, dirty_writes, mapped_pages_written, mapped_writes;
    uint32_t pool[16], cache_manager[30];
    uint32_t switches, tb_fills[2], system_calls;
    uint64_t newer[8]; /* from Windows 8 on */
};
_Static_assert(offsetof(struct performance, pages_read) == 80 &&
                   offsetof(struct performance, dirty_pages_written) == 96 &&
                   offsetof(struct performance, switches) == 296,
               "layout of Windows");

/* A 32-bit counter extended to 64 bits. */
struct carried {
    uint32_t last;
    uint64_t sum;
};

typedef ULONG(WINAPI *get_if_table2_fn)(PMIB_IF_TABLE2 *);
typedef void(WINAPI *free_mib_table_fn)(void *);
typedef NTSTATUS(NTAPI *query_ex_fn)(ULONG, void *, ULONG, void *, ULONG, ULONG *);

struct ew_system_source {
    uint32_t page_bytes, readings;
    HANDLE disks[DISKS_MAX]; /* NULL: not present */
    get_if_table2_fn get_if_table2;
    free_mib_table_fn free_mib_table;
    query_ex_fn query_ex; /* per processor group */
    struct carried pages_read, dirty_written, mapped_written, switches;
    struct ew_winpoll_system lister;
    bool lists, listed;
    uint64_t newest_process, newest_thread; /* start times of the youngest in the last list */
    uint64_t process_count, processes_started, processes_ended, threads_started;
    uint64_t load_ticks; /* time of the last update, ms */
    double load[3];
};

static uint64_t carry(struct carried *counter, uint32_t now)
{
    counter->sum += (uint32_t)(now - counter->last);
    counter->last = now;
    return counter->sum;
}

/* ---------------------------------------------------------------------- processors */

static void take_cpus(const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *all, uint32_t count,
                      struct ew_system_text *out)
{
    for (uint32_t i = 0; i < count && out->cpu_count < EW_SYSTEM_CPUS_MAX; i++) {
        /* Kernel time includes idle time. */
        uint64_t total = (uint64_t)(all[i].KernelTime.QuadPart + all[i].UserTime.QuadPart);
        uint64_t idle = (uint64_t)all[i].IdleTime.QuadPart;
        struct ew_system_cpu *cpu = &out->cpus[out->cpu_count++];
        cpu->total = total;
        cpu->busy = total > idle ? total - idle : 0;
        out->all.total += cpu->total;
        out->all.busy += cpu->busy;
    }
}

/* Per group of at most 64: a plain call returns only the CPUs of our own group. */
static void read_cpus(struct ew_system_source *source, struct ew_system_text *out)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION all[GROUP_CPUS_MAX];
    WORD groups = GetActiveProcessorGroupCount();
    ULONG used = 0;
    if (groups <= 1 || source->query_ex == NULL) {
        if (NtQuerySystemInformation(SystemProcessorPerformanceInformation, all, sizeof all,
                                     &used) >= 0)
            take_cpus(all, used / (ULONG)sizeof all[0], out);
    }
    for (USHORT group = 0; groups > 1 && source->query_ex != NULL && group < groups; group++)
        if (source->query_ex(SystemProcessorPerformanceInformation, &group, sizeof group, all,
                             sizeof all, &used) >= 0)
            take_cpus(all, used / (ULONG)sizeof all[0], out);
    if (out->cpu_count > 0)
        out->has |= EW_SYSTEM_STAT;
}

/* -------------------------------------------------------------------------- memory */

static BOOL CALLBACK on_page_file(void *ctx, PENUM_PAGE_FILE_INFORMATION info, LPCWSTR name)
{
    struct ew_system_text *out = ctx;
    (void)name;
    out->swap_total += info->TotalSize;
    out->swap_free += info->TotalSize - info->TotalInUse;
    out->has |= EW_SYSTEM_SWAP;
    return TRUE;
}

static void read_memory(struct ew_system_source *source, struct ew_system_text *out,
                        uint64_t *ret_processes)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    PERFORMANCE_INFORMATION counts = {.cb = sizeof counts};
    if (GlobalMemoryStatusEx(&memory)) {
        out->memory_total = memory.ullTotalPhys;
        out->memory_available = memory.ullAvailPhys;
        out->has |= EW_SYSTEM_MEMORY;
    }
    if (GetPerformanceInfo(&counts, sizeof counts)) {
        out->threads = counts.ThreadCount;
        if (counts.ProcessCount != 0)
            *ret_processes = counts.ProcessCount;
    }
    (void)EnumPageFilesW(on_page_file, out); /* in pages */
    out->swap_total *= source->page_bytes;
    out->swap_free *= source->page_bytes;
}

/* Wine fills in almost nothing; a count of 0 switches means that the values are not valid. */
static void read_performance(struct ew_system_source *source, struct ew_system_text *out)
{
    struct performance now;
    ULONG used = 0;
    memset(&now, 0, sizeof now);
    if (NtQuerySystemInformation(SystemPerformanceInformation, &now, sizeof now, &used) < 0 ||
        now.switches == 0)
        return;
    out->switches = carry(&source->switches, now.switches);
    out->paged_in = carry(&source->pages_read, now.pages_read) * source->page_bytes;
    out->paged_out = (carry(&source->dirty_written, now.dirty_pages_written) +
                      carry(&source->mapped_written, now.mapped_pages_written)) *
                     source->page_bytes;
    out->has |= EW_SYSTEM_PAGING;
}

/* ---------------------------------------------------------------- process list */

struct list_counts {
    uint64_t processes, threads, started, threads_started;
    uint64_t running, ready;
    uint64_t newest_process, newest_thread;
    bool states; /* the list has valid thread states */
};

static void count_threads(const struct ew_system_source *source,
                          const struct ew_listed_process *process, struct list_counts *counts)
{
    for (uint32_t i = 0; i < process->thread_count; i++) {
        struct ew_listed_thread thread;
        ew_listed_thread(process, i, &thread);
        counts->threads++;
        counts->threads_started += thread.created > source->newest_thread;
        if (thread.created > counts->newest_thread)
            counts->newest_thread = thread.created;
        if (process->pid == 0)
            continue; /* idle threads, one per CPU */
        counts->running += thread.state == EW_LISTED_RUNNING;
        counts->ready += thread.state == EW_LISTED_READY || thread.state == EW_LISTED_STANDBY ||
                         thread.state == EW_LISTED_DEFERRED_READY;
    }
}

static bool count_list(struct ew_system_source *source, struct list_counts *counts)
{
    struct ew_listing listing;
    struct ew_listed_process process;
    *counts = (struct list_counts){.newest_process = source->newest_process,
                                   .newest_thread = source->newest_thread};
    if (!source->lists || source->lister.list(source->lister.ctx, &listing, NULL) < 0)
        return false;
    while (ew_listing_next(&listing, &process) > 0) {
        counts->processes++;
        counts->started += process.created > source->newest_process;
        if (process.created > counts->newest_process)
            counts->newest_process = process.created;
        count_threads(source, &process, counts);
    }
    counts->states = counts->running > 0; /* at least the calling thread runs */
    return counts->processes > 0;
}

static void read_list(struct ew_system_source *source, struct ew_system_text *out,
                      uint64_t *ret_processes)
{
    struct list_counts counts;
    if (!count_list(source, &counts))
        return;
    if (source->listed) {
        source->processes_started += counts.started;
        source->threads_started += counts.threads_started;
        if (source->process_count + counts.started > counts.processes)
            source->processes_ended += source->process_count + counts.started - counts.processes;
    }
    source->listed = true;
    source->process_count = *ret_processes = counts.processes;
    source->newest_process = counts.newest_process;
    source->newest_thread = counts.newest_thread;
    out->threads = counts.threads;
    out->processes_started = source->processes_started;
    out->processes_ended = source->processes_ended;
    out->has |= EW_SYSTEM_PROCESSES;
    if (counts.newest_thread != 0) /* Wine does not provide it for threads */
        out->forks = source->threads_started + 1;
    if (!counts.states)
        return;
    out->running = counts.running;
    uint64_t now = GetTickCount64();
    ew_system_average(counts.running + counts.ready, source->load_ticks, now, source->load);
    source->load_ticks = now;
    memcpy(out->load, source->load, sizeof out->load);
    out->has |= EW_SYSTEM_LOAD;
}

/* --------------------------------------------------------------------------- disks */

/* Opens without access to the content, which needs no privileges. */
static void find_disks(struct ew_system_source *source)
{
    for (uint32_t i = 0; i < DISKS_MAX; i++) {
        WCHAR name[] = L"\\\\.\\PhysicalDrive\0\0";
        size_t at = sizeof name / sizeof name[0] - 3;
        if (source->disks[i] != NULL)
            continue;
        if (i >= 10)
            name[at++] = (WCHAR)(L'0' + i / 10);
        name[at] = (WCHAR)(L'0' + i % 10);
        HANDLE disk =
            CreateFileW(name, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
        source->disks[i] = disk == INVALID_HANDLE_VALUE ? NULL : disk;
    }
}

static void read_disks(struct ew_system_source *source, struct ew_system_text *out)
{
    if (source->readings++ % FIND_DISKS_EVERY == 0)
        find_disks(source);
    for (uint32_t i = 0; i < DISKS_MAX; i++) {
        DISK_PERFORMANCE disk;
        DWORD used = 0;
        memset(&disk, 0, sizeof disk);
        if (source->disks[i] == NULL)
            continue;
        if (!DeviceIoControl(source->disks[i], IOCTL_DISK_PERFORMANCE, NULL, 0, &disk, sizeof disk,
                             &used, NULL)) {
            (void)CloseHandle(source->disks[i]); /* removed, or it has no counters */
            source->disks[i] = NULL;
            continue;
        }
        out->disk_read += (uint64_t)disk.BytesRead.QuadPart;
        out->disk_write += (uint64_t)disk.BytesWritten.QuadPart;
        out->has |= EW_SYSTEM_DISKS;
    }
}

/* ------------------------------------------------------------------------- network */

/* Counts each byte once: filters and virtual adapters repeat the counts of their adapter. */
static void read_net(struct ew_system_source *source, struct ew_system_text *out)
{
    MIB_IF_TABLE2 *table = NULL;
    if (source->get_if_table2 == NULL || source->get_if_table2(&table) != NO_ERROR || table == NULL)
        return;
    for (ULONG i = 0; i < table->NumEntries; i++) {
        const MIB_IF_ROW2 *row = &table->Table[i];
        if (row->Type == IF_TYPE_SOFTWARE_LOOPBACK ||
            row->InterfaceAndOperStatusFlags.FilterInterface ||
            !row->InterfaceAndOperStatusFlags.HardwareInterface)
            continue;
        out->net_received += row->InOctets;
        out->net_sent += row->OutOctets;
        out->has |= EW_SYSTEM_NET;
    }
    source->free_mib_table(table);
}

/* ------------------------------------------------------------------- open and close */

static FARPROC find(const WCHAR *library, const char *name)
{
    HMODULE module = LoadLibraryExW(library, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    return module == NULL ? NULL : GetProcAddress(module, name);
}

static void find_functions(struct ew_system_source *source)
{
    union {
        FARPROC found;
        get_if_table2_fn get;
        free_mib_table_fn release;
        query_ex_fn query;
    } call = {find(L"iphlpapi.dll", "GetIfTable2")};
    source->get_if_table2 = call.get;
    call.found = find(L"iphlpapi.dll", "FreeMibTable");
    source->free_mib_table = call.release;
    if (call.found == NULL)
        source->get_if_table2 = NULL;
    call.found = find(L"ntdll.dll", "NtQuerySystemInformationEx");
    source->query_ex = call.query;
}

int ew_system_source_open(const char *proc_root, struct ew_system_source **ret_source)
{
    SYSTEM_INFO info;
    (void)proc_root;
    struct ew_system_source *source = ew_calloc(1, sizeof *source);
    if (source == NULL)
        return ETWATCH_ENOMEM;
    GetSystemInfo(&info);
    source->page_bytes = info.dwPageSize;
    find_functions(source);
    source->lists = ew_winpoll_system(&source->lister) == 0;
    *ret_source = source;
    return 0;
}

void ew_system_source_close(struct ew_system_source *source)
{
    for (uint32_t i = 0; i < DISKS_MAX; i++)
        if (source->disks[i] != NULL)
            (void)CloseHandle(source->disks[i]);
    if (source->lists)
        source->lister.close(source->lister.ctx);
    ew_free(source);
}

/* The list is always read, because it also has the thread states. */
int ew_system_source_read(struct ew_system_source *source, bool lists,
                          struct ew_system_text *ret_text, uint64_t *ret_processes)
{
    (void)lists;
    read_cpus(source, ret_text);
    read_memory(source, ret_text, ret_processes);
    read_list(source, ret_text, ret_processes);
    read_performance(source, ret_text);
    read_disks(source, ret_text);
    read_net(source, ret_text);
    return 0;
}
