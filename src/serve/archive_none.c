/* SPDX-License-Identifier: MIT */
/* A build without SQLite: --store says so, and no store is ever open. */
#include <stdio.h>

#include "os/os.h"
#include "serve/archive.h"

const char *ew_archive_unavailable(void)
{
    if (ew_os_is_windows())
        return "--store works on Linux only; on Windows record to files: etwatch record";
    return "this build cannot store history: install SQLite (Debian: libsqlite3-dev) and build "
           "again";
}

int ew_archive_prepare(const struct ew_archive_options *options, uint32_t user, char *reterr_text,
                       size_t text_size)
{
    (void)options;
    (void)user;
    (void)snprintf(reterr_text, text_size, "%s", ew_archive_unavailable());
    return ETWATCH_ENOTSUP;
}

int ew_archive_open(const struct ew_archive_options *options, struct ew_state *state,
                    struct ew_archive **ret_store, char *reterr_text, size_t text_size)
{
    (void)state;
    (void)ret_store;
    return ew_archive_prepare(options, 0, reterr_text, text_size);
}

void ew_archive_close(struct ew_archive *store)
{
    (void)store;
}

void ew_archive_second(struct ew_archive *store, uint64_t t_ns)
{
    (void)store;
    (void)t_ns;
}

uint32_t ew_archive_level_s(uint32_t level)
{
    (void)level;
    return 1;
}

uint32_t ew_archive_level_at(const struct ew_archive *store, uint64_t from_ns)
{
    (void)store;
    (void)from_ns;
    return 0;
}

uint64_t ew_archive_oldest_ns(const struct ew_archive *store)
{
    (void)store;
    return 0;
}

int ew_archive_read(struct ew_archive *store, int64_t id, uint32_t level, uint64_t from_ns,
                    uint64_t to_ns, struct ew_history *into, uint64_t *ret_mark)
{
    (void)store;
    (void)id;
    (void)level;
    (void)from_ns;
    (void)to_ns;
    (void)into;
    (void)ret_mark;
    return ETWATCH_ENOTSUP;
}

bool ew_archive_find(struct ew_archive *store, uint32_t pid, uint64_t start_ns,
                     struct ew_archive_process *ret_process)
{
    (void)store;
    (void)pid;
    (void)start_ns;
    (void)ret_process;
    return false;
}

int ew_archive_list(struct ew_archive *store, uint64_t from_ns, uint64_t to_ns, uint32_t max,
                    void (*visit)(void *ctx, const struct ew_archive_process *process), void *ctx)
{
    (void)store;
    (void)from_ns;
    (void)to_ns;
    (void)max;
    (void)visit;
    (void)ctx;
    return ETWATCH_ENOTSUP;
}
