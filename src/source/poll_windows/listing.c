/* SPDX-License-Identifier: MIT */
/*
 * Each process is a record of fixed size, followed by its threads, its name and the offset to the
 * next; a record is checked as a whole and then read at fixed offsets.
 */
#include "source/poll_windows/listing.h"

#include <etwatch/etwatch.h>

#include "base/bytes.h"
#include "base/utf16.h"

void ew_listing_init(struct ew_listing *listing, const void *data, size_t size, uint64_t address)
{
    *listing = (struct ew_listing){.data = data, .size = size, .address = address};
}

/* The idle process has no name. */
static int take_name(const struct ew_listing *listing, const uint8_t *record,
                     struct ew_listed_process *process)
{
    uint32_t len = ew_load_u16(record + 0x38);
    uint64_t address = ew_load_u64(record + 0x40);
    if (address == 0 || len == 0)
        return 0;
    if (address < listing->address || address - listing->address > listing->size ||
        len > listing->size - (address - listing->address))
        return ETWATCH_EFORMAT;
    process->name = listing->data + (address - listing->address);
    process->name_len = len;
    return 0;
}

static void take_figures(const uint8_t *record, struct ew_listed_process *process)
{
    process->thread_count = ew_load_u32(record + 0x04);
    process->rss_private_bytes = ew_load_u64(record + 0x08);
    process->faults_hard = ew_load_u32(record + 0x10);
    process->cycles = ew_load_u64(record + 0x18);
    process->created = ew_load_u64(record + 0x20);
    process->user = ew_load_u64(record + 0x28);
    process->kernel = ew_load_u64(record + 0x30);
    process->priority = (int32_t)ew_load_u32(record + 0x48);
    process->pid = (uint32_t)ew_load_u64(record + 0x50);
    process->ppid = (uint32_t)ew_load_u64(record + 0x58);
    process->handles = ew_load_u32(record + 0x60);
    process->session_id = ew_load_u32(record + 0x64);
    process->virtual_bytes = ew_load_u64(record + 0x78);
    process->faults = ew_load_u32(record + 0x80);
    process->rss_peak_bytes = ew_load_u64(record + 0x88);
    process->rss_bytes = ew_load_u64(record + 0x90);
    process->pool_paged_bytes = ew_load_u64(record + 0xA0);
    process->pool_nonpaged_bytes = ew_load_u64(record + 0xB0);
    process->private_bytes = ew_load_u64(record + 0xC8);
    process->read_ops = ew_load_u64(record + 0xD0);
    process->write_ops = ew_load_u64(record + 0xD8);
    process->other_ops = ew_load_u64(record + 0xE0);
    process->read_bytes = ew_load_u64(record + 0xE8);
    process->write_bytes = ew_load_u64(record + 0xF0);
    process->other_bytes = ew_load_u64(record + 0xF8);
}

int ew_listing_next(struct ew_listing *listing, struct ew_listed_process *ret_process)
{
    struct ew_listed_process process = {0};
    if (listing->over)
        return 0;
    size_t left = listing->size - listing->pos;
    const uint8_t *record = listing->data + listing->pos;
    if (left < EW_LISTED_PROCESS_SIZE)
        return ETWATCH_ETRUNC;
    take_figures(record, &process);
    if (process.thread_count > (left - EW_LISTED_PROCESS_SIZE) / EW_LISTED_THREAD_SIZE)
        return ETWATCH_ETRUNC;
    process.threads = record + EW_LISTED_PROCESS_SIZE;
    int rc = take_name(listing, record, &process);
    if (rc < 0)
        return rc;
    uint32_t distance = ew_load_u32(record);
    if (distance != 0 && (distance < EW_LISTED_PROCESS_SIZE || distance > left))
        return ETWATCH_EFORMAT;
    listing->over = distance == 0;
    listing->pos += distance;
    *ret_process = process;
    return 1;
}

void ew_listed_thread(const struct ew_listed_process *process, uint32_t i,
                      struct ew_listed_thread *ret_thread)
{
    const uint8_t *record = process->threads + (size_t)i * EW_LISTED_THREAD_SIZE;
    ret_thread->kernel = ew_load_u64(record);
    ret_thread->user = ew_load_u64(record + 0x08);
    ret_thread->created = ew_load_u64(record + 0x10);
    ret_thread->tid = (uint32_t)ew_load_u64(record + 0x30);
    ret_thread->priority = (int32_t)ew_load_u32(record + 0x38);
    ret_thread->state = ew_load_u32(record + 0x44);
    ret_thread->wait_reason = ew_load_u32(record + 0x48);
}

bool ew_listed_runs(const struct ew_listed_process *process)
{
    struct ew_listed_thread thread;
    for (uint32_t i = 0; i < process->thread_count && process->pid != 0; i++) {
        ew_listed_thread(process, i, &thread);
        if (thread.state == EW_LISTED_RUNNING)
            return true;
    }
    return false;
}

static uint32_t gauge_states(const struct ew_listed_process *process,
                             uint64_t gauge[EW_GAUGE_COUNT])
{
    struct ew_listed_thread thread;
    gauge[EW_G_threads_running] = gauge[EW_G_threads_ready] = 0;
    gauge[EW_G_threads_waiting] = gauge[EW_G_threads_suspended] = 0;
    for (uint32_t i = 0; i < process->thread_count; i++) {
        ew_listed_thread(process, i, &thread);
        switch (thread.state) {
        case EW_LISTED_RUNNING:
            gauge[EW_G_threads_running]++;
            break;
        case EW_LISTED_READY:
        case EW_LISTED_STANDBY:
        case EW_LISTED_TRANSITION:
        case EW_LISTED_DEFERRED_READY:
            gauge[EW_G_threads_ready]++;
            break;
        case EW_LISTED_WAITING:
            gauge[thread.wait_reason == EW_LISTED_SUSPENDED ? EW_G_threads_suspended
                                                            : EW_G_threads_waiting]++;
            break;
        default:
            break;
        }
    }
    return EW_HAS_G(threads_running) | EW_HAS_G(threads_ready) | EW_HAS_G(threads_waiting) |
           EW_HAS_G(threads_suspended);
}

uint32_t ew_listed_gauges(const struct ew_listed_process *process, bool states,
                          uint64_t gauge[EW_GAUGE_COUNT])
{
    const struct {
        enum ew_gauge which;
        uint64_t value;
    } every[] = {
        {EW_G_rss_bytes, process->rss_bytes},
        {EW_G_rss_peak_bytes, process->rss_peak_bytes},
        {EW_G_rss_private_bytes, process->rss_private_bytes},
        {EW_G_private_bytes, process->private_bytes},
        {EW_G_virtual_bytes, process->virtual_bytes},
        {EW_G_pool_paged_bytes, process->pool_paged_bytes},
        {EW_G_pool_nonpaged_bytes, process->pool_nonpaged_bytes},
        {EW_G_handles, process->handles},
    };
    uint32_t has = EW_HAS_G(threads) | EW_HAS_G(priority);
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
        gauge[every[i].which] = every[i].value;
        has |= every[i].value != 0 ? 1u << every[i].which : 0;
    }
    gauge[EW_G_threads] = process->thread_count;
    gauge[EW_G_priority] = (uint64_t)(int64_t)process->priority;
    return has | (states ? gauge_states(process, gauge) : 0);
}

void ew_listed_name(const struct ew_listed_process *process, char *buffer, size_t size)
{
    (void)ew_utf16_to_utf8(process->name, process->name_len, buffer, size);
}
