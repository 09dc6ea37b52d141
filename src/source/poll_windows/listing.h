/* SPDX-License-Identifier: MIT */
/*
 * The list of all processes and threads that Windows gives in one piece: what
 * NtQuerySystemInformation writes for SystemProcessInformation on a 64-bit system, Windows 7 to 11.
 * Bytes in, numbers out, no system call.
 */
#ifndef EW_POLL_WINDOWS_LISTING_H
#define EW_POLL_WINDOWS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EW_LISTED_PROCESS_SIZE 0x100u /* what its threads follow */
#define EW_LISTED_THREAD_SIZE 0x50u

struct ew_listing {
    const uint8_t *data;
    size_t size;
    uint64_t address; /* that data had when it was written: names are told by address */
    size_t pos;       /* of the next process */
    bool over;
};

/* Times are units of 100 ns, `created` since 1601. */
struct ew_listed_process {
    uint32_t pid, ppid, session_id;
    int32_t priority;
    uint64_t created, user, kernel;
    uint32_t faults, faults_hard; /* these start over at 2^32 */
    uint32_t thread_count, handles;
    uint64_t virtual_bytes, rss_bytes, rss_peak_bytes, private_bytes;
    uint64_t read_ops, write_ops, read_bytes, write_bytes;
    const uint8_t *name; /* UTF-16, not terminated */
    uint32_t name_len;   /* bytes */
    const uint8_t *threads;
};

struct ew_listed_thread {
    uint32_t tid;
    int32_t priority;
    uint64_t created, user, kernel;
};

void ew_listing_init(struct ew_listing *listing, const void *data, size_t size, uint64_t address);
/* 1 and the next process, 0 after the last, ETWATCH_ETRUNC or ETWATCH_EFORMAT. */
int ew_listing_next(struct ew_listing *listing, struct ew_listed_process *ret_process);
/* Thread i < thread_count. */
void ew_listed_thread(const struct ew_listed_process *process, uint32_t i,
                      struct ew_listed_thread *ret_thread);
/* In UTF-8, cut at size, which is > 0. */
void ew_listed_name(const struct ew_listed_process *process, char *buffer, size_t size);

#endif
