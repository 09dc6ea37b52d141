/* SPDX-License-Identifier: MIT */
/*
 * The interface to the operating system: one header, one folder per system with the same file
 * names. Everything else in the library is portable C11, except the sources that are named after a
 * system.
 */
#ifndef EW_OS_OS_H
#define EW_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The raw clock of all facts: CLOCK_BOOTTIME on Linux. */
uint64_t ew_os_raw_ns(void);
/* Unix time and raw clock at the same instant. */
void ew_os_anchor(uint64_t *ret_unix_ns, uint64_t *ret_raw_ns);
/* Seconds by which local time is ahead of UTC at this instant; 0 if unknown. */
int32_t ew_os_utc_offset_s(uint64_t unix_ns);

/* CPU time of the calling thread, in ns; on Windows with the resolution of a tick (15.6 ms). */
uint64_t ew_os_thread_cpu_ns(void);
/* Resident memory of this process now and at its peak; false if unknown. */
bool ew_os_self_rss(uint64_t *ret_rss_bytes, uint64_t *ret_peak_bytes);

uint32_t ew_os_cpu_count(void);

/* The user's name, or the number as text. Never fails; buffer is always terminated. */
void ew_os_user_name(uint32_t uid, char *buffer, size_t size);
/* For systems without numeric user ids (Windows): a key of the process's user, the same for all of
 * a user's processes, and the user's name unless buffer is NULL. False: unknown, or the system has
 * numeric ids, which sources report. */
bool ew_os_process_user(uint32_t pid, uint64_t *ret_key, char *buffer, size_t size);
/* The same for the user with this SID (S-1-…). False: not Windows, or the user has no name here. */
bool ew_os_sid_user(const char *sid, uint64_t *ret_key, char *buffer, size_t size);
/* Whether users have numeric ids and processes have cgroups on this system. */
bool ew_os_has_uids(void);
bool ew_os_is_windows(void);
/* The arguments of a process, each ending in NUL, truncated to size; false if unreadable. They may
 * contain secrets: pass them on only through ew_mask_cmdline (model/mask.h). */
bool ew_os_cmdline(const char *proc_root, uint32_t pid, char *buffer, size_t size, size_t *ret_len);

bool ew_os_process_exists(const char *proc_root, uint32_t pid);
/* Whether process ids of the whole machine, as drivers report them, are not those of this process:
 * a container has its own. */
bool ew_os_pids_are_foreign(const char *proc_root);
/* True if the process does not exist or is a zombie: it will do nothing any more. */
bool ew_os_process_ended(const char *proc_root, uint32_t pid);
/* The cgroup of a process for display, "/" for the root; false if there is none or it cannot be
 * read. *ret_only as in model/cgroup.h. */
bool ew_os_cgroup(const char *proc_root, uint32_t pid, char *buffer, size_t size, bool *ret_only);

/* The id of a user; false if no user has that name. */
bool ew_os_user_id(const char *name, uint32_t *ret_uid);
/* The name of this machine, and of its system ("Linux 6.1.0"). Always terminated. */
void ew_os_host_name(char *buffer, size_t size);
void ew_os_system_name(char *buffer, size_t size);
/* Permanently drops every privilege of this process that monitoring does not need once it has
 * started. Call after a source is open and after children that need privileges were started. */
void ew_os_drop_rights(void);
/* The same for every privilege. */
void ew_os_drop_all_rights(void);
/* The same for the calling thread alone, where rights belong to threads (Linux); else nothing. For
 * threads of the library. */
void ew_os_thread_drop_rights(void);
/*
 * For programs, not for a library in a foreign process: restricts this process and its later
 * threads to what a reader of recordings needs (what is open, memory, time), or what a monitor
 * that is already open needs. Other system calls fail. Cannot be undone. The reader also loses
 * every privilege; see ew_os_file_keep for its files. 1: the filter is effective. 0: the system has
 * no such filter, or the build was made for a sanitizer, which needs other calls. -errno: the
 * system has filters and refuses this one.
 */
int ew_os_confine_reader(void);
int ew_os_confine_live(void);
/* For the process that serves; its libraries use too many calls to list them. Starting programs,
 * looking into other processes, loading code into the kernel are refused, and, unless `connect`,
 * new sockets: it can then answer, but reach nothing by itself. Needs no_new_privs. On Windows it
 * gives up its privileges, writing to what has more than low integrity, and starting processes. */
int ew_os_confine_server(bool connect);

/*
 * A file that can be read at any offset and from any thread. Opening fails with ETWATCH_EPERM,
 * ETWATCH_EOS (and the system's code) or ETWATCH_ENOMEM; a file without offsets (a pipe, a folder)
 * is ETWATCH_EOS.
 */
struct ew_os_file;
int ew_os_file_open(const char *path, struct ew_os_file **ret_file, uint64_t *ret_bytes,
                    int64_t *reterr_os_code);
/* Returns the number of bytes read, less than size only at the end of the file; or ETWATCH_EOS. */
int64_t ew_os_file_read(struct ew_os_file *file, uint64_t offset, void *bytes, size_t size);
void ew_os_file_close(struct ew_os_file *file);
/* Opens files for later: ew_os_file_open with the same path then opens nothing, also if it failed
 * now. Once per process; paths must stay valid. 0 or ETWATCH_ENOMEM. */
int ew_os_file_keep(const char *const *paths, size_t count);
/* Tests whether a file can be written; creates it if it does not exist (*ret_made). 0 or errno. */
int ew_os_file_try_write(const char *path, bool *ret_made);
void ew_os_file_remove(const char *path);
/* Creates a file that does not exist yet; NULL and errno on error. */
FILE *ew_os_stream_create(const char *path);
/* Gives a file the name of another one, which it replaces. 0 or errno. */
int ew_os_file_rename(const char *from, const char *to);
/* The name under which programs can open a file of this machine that the kernel names path
 * (\Device\…, \SystemRoot\…). False: it has none, or is on another machine. */
bool ew_os_kernel_path(const char *path, char *buffer, size_t size);
/* Makes a path absolute. False: it does not fit. */
bool ew_os_full_path(const char *path, char *buffer, size_t size);
/* Opens a file of any kind for reading it once from its start; NULL and errno on error. */
FILE *ew_os_stream_open(const char *path);

/* A shared library that is loaded at run time. NULL: not there; *reterr_text (size bytes) has the
 * system's reason. */
struct ew_os_library;
struct ew_os_library *ew_os_library_open(const char *path, char *reterr_text, size_t size);
/* NULL: no such function. */
void (*ew_os_library_function(struct ew_os_library *library, const char *name))(void);
void ew_os_library_close(struct ew_os_library *library);

/* A waiter sleeps until a raw time, until it is woken, or until fd becomes readable. */
struct ew_waiter;
int ew_waiter_new(struct ew_waiter **ret_waiter);
void ew_waiter_free(struct ew_waiter *waiter);
/* fd may be -1. Returns 1 if woken, readable or interrupted by a signal, 0 at the deadline,
 * negative on error. A wake before the call counts. */
int ew_waiter_wait(struct ew_waiter *waiter, uint64_t until_raw_ns, int fd);
/* May be called from any thread and from a signal handler. */
void ew_waiter_wake(struct ew_waiter *waiter);

/* Threads and locks, as far as the monitor needs them. */
void ew_os_sleep_ms(uint32_t ms);

struct ew_thread_handle;
int ew_os_thread_start(void (*run)(void *), void *arg, struct ew_thread_handle **ret_thread);
void ew_os_thread_join(struct ew_thread_handle *thread);
/* The thread is never joined; the handle is freed. */
void ew_os_thread_detach(struct ew_thread_handle *thread);
bool ew_os_thread_is_self(const struct ew_thread_handle *thread);

struct ew_mutex;
int ew_mutex_new(struct ew_mutex **ret_mutex);
void ew_mutex_free(struct ew_mutex *mutex);
void ew_mutex_lock(struct ew_mutex *mutex);
void ew_mutex_unlock(struct ew_mutex *mutex);

struct ew_cond;
int ew_cond_new(struct ew_cond **ret_cond);
void ew_cond_free(struct ew_cond *cond);
void ew_cond_signal(struct ew_cond *cond);
/* False on timeout. timeout_ms < 0: no limit. */
bool ew_cond_wait(struct ew_cond *cond, struct ew_mutex *mutex, int timeout_ms);

#endif
