/* SPDX-License-Identifier: MIT */
/*
 * History on disk (--store DIR): one SQLite database, written and read by the serving process
 * alone, which has no rights. What a process did in 10 s is a record of level 0 (kept for two
 * days), in 5 minutes one of level 1 (kept for --store-keep). Records are committed every 10 s into
 * a table that only grows at its end and are moved into one row per process, level and 10 minutes
 * afterwards: a query reads few rows, and writing touches few pages.
 *
 * The database is bounded by its maximal number of pages; near it the oldest rows go. What cannot
 * be written is dropped and counted. A damaged database is renamed, counted, and a new one
 * begins. Without a fact there is no record: a stretch in which etwatch did not run has no record
 * of the machine either, and is unknown.
 */
#ifndef EW_SERVE_ARCHIVE_H
#define EW_SERVE_ARCHIVE_H

#include "serve/state.h"

#define EW_ARCHIVE_KEEP_NS (UINT64_C(30) * 86400 * 1000000000)
#define EW_ARCHIVE_SIZE_BYTES (UINT64_C(1) << 30)

enum { EW_ARCHIVE_LEVELS = 2 };

struct ew_archive_options {
    const char *dir;               /* NULL: no store */
    uint64_t keep_ns, size_bytes;  /* 0: the default */
    void (*say)(const char *text); /* one line when the state changes; may be NULL */
};

struct ew_archive;

/* NULL: this build can store; else why not and what to do. */
const char *ew_archive_unavailable(void);
/* With the rights of the start: loads SQLite and makes the folder, for the user that will write (0:
 * the same). 0, or a negative code with one line in reterr_text. */
int ew_archive_prepare(const struct ew_archive_options *options, uint32_t user, char *reterr_text,
                       size_t text_size);
/* After rights were dropped. state must outlive the store. */
int ew_archive_open(const struct ew_archive_options *options, struct ew_state *state,
                    struct ew_archive **ret_store, char *reterr_text, size_t text_size);
/* Writes what is left. NULL is allowed. */
void ew_archive_close(struct ew_archive *store);
/* A second of the state was closed. */
void ew_archive_second(struct ew_archive *store, uint64_t t_ns);

/* A process of the store; id 0 is the machine. */
struct ew_archive_process {
    int64_t id;
    uint32_t pid, ppid;
    uint64_t start_ns, first_ns, last_ns, exit_ns; /* exit_ns 0: not known */
    char name[64], user[64];
};

/* The seconds that a record of a level stands for. */
uint32_t ew_archive_level_s(uint32_t level);
/* The finest level that has records as old as this. */
uint32_t ew_archive_level_at(const struct ew_archive *store, uint64_t from_ns);
/* The time of the oldest record; 0: there is none. */
uint64_t ew_archive_oldest_ns(const struct ew_archive *store);
/* Appends the records of a track to an empty history, oldest first. 0 or a negative code. */
int ew_archive_read(struct ew_archive *store, int64_t id, uint32_t level, uint64_t from_ns,
                    uint64_t to_ns, struct ew_history *into, uint64_t *ret_mark);
/* False: it is not there. */
bool ew_archive_find(struct ew_archive *store, uint32_t pid, uint64_t start_ns,
                     struct ew_archive_process *ret_process);
/* Calls visit for each process with records in the range, latest first, at most max. */
int ew_archive_list(struct ew_archive *store, uint64_t from_ns, uint64_t to_ns, uint32_t max,
                    void (*visit)(void *ctx, const struct ew_archive_process *process), void *ctx);

/* --------------------------------------------------------------------- archive_api.c */

/* The history of a process, or of the machine (NULL), from disk, as the API shows it. from, to and
 * step: 0 is not given. 0; ETWATCH_EINVAL: the range is empty; another negative code. */
int ew_archive_api_history(struct ew_archive *store, const struct ew_state *state,
                           const struct ew_archive_process *process, uint64_t from_ns,
                           uint64_t to_ns, uint64_t step_ns,
                           const struct etwatch_metric_set *metrics, struct ew_buf *out);
/* What is known of a process that only the disk knows: no values, no totals, no threads. */
void ew_archive_api_process(const struct ew_archive_process *process, struct ew_buf *out);
int ew_archive_api_processes(struct ew_archive *store, uint64_t from_ns, uint64_t to_ns,
                             struct ew_buf *out);
void ew_archive_api_info(const struct ew_archive *store, const struct ew_state *state,
                         struct ew_buf *out);

#endif
