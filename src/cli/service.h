/* SPDX-License-Identifier: MIT */
/*
 * The Windows service: what it is (struct ew_service) and the functions of Windows that it takes,
 * as a table, so that the order of the calls and every failure are tested without Windows.
 */
#ifndef EW_CLI_SERVICE_H
#define EW_CLI_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Codes of Windows that have a meaning here. */
enum {
    EW_SCM_DENIED = 5,
    EW_SCM_ALREADY_RUNNING = 1056,
    EW_SCM_NOT_INSTALLED = 1060,
    EW_SCM_NOT_RUNNING = 1062,
    EW_SCM_NO_MANAGER = 1063, /* run was not started by the service manager */
    EW_SCM_MARKED = 1072,     /* removed, but something still has it open */
    EW_SCM_EXISTS = 1073,
};

struct ew_service {
    const char *name, *title, *description;
    const char *account;       /* that it runs as */
    const char *identity;      /* the account that its rights are granted to: only this service */
    const char *privileges[3]; /* all that its token keeps; the last is NULL */
    uint32_t restart_ms;       /* after a failure */
};

/* Every function returns 0 or the code of Windows. Texts are UTF-8. */
struct ew_scm {
    void *ctx;
    uint32_t (*open)(void *ctx, bool create, void **ret_manager);
    uint32_t (*create)(void *ctx, void *manager, const struct ew_service *service,
                       const char *command_line, void **ret_service);
    uint32_t (*find)(void *ctx, void *manager, const char *name, void **ret_service);
    /* Description, privileges, its own identity, restart after a failure. */
    uint32_t (*configure)(void *ctx, void *handle, const struct ew_service *service);
    uint32_t (*start)(void *ctx, void *handle);
    uint32_t (*stop)(void *ctx, void *handle);
    /* *ret_running: until it has ended. */
    uint32_t (*query)(void *ctx, void *handle, bool *ret_running);
    uint32_t (*remove)(void *ctx, void *handle);
    void (*close)(void *ctx, void *handle); /* of a manager or a service */
    /* Grants or revokes a privilege of an account. */
    uint32_t (*set_right)(void *ctx, const char *account, const char *right, bool granted);
    /* The absolute path of this program, and of a file. */
    uint32_t (*program)(void *ctx, char *path, size_t size);
    uint32_t (*absolute)(void *ctx, const char *file, char *path, size_t size);
    /* Serves the service manager until `work` returns, on a thread of its own; its result is the
     * service's exit code. A request to stop arrives as ew_signals_ending. */
    uint32_t (*serve)(void *ctx, const char *name, int (*work)(void *arg), void *arg);
    void (*sleep_ms)(void *ctx, uint32_t ms);
};

/* NULL on other systems. */
const struct ew_scm *ew_scm_real(void);

/* signals_windows.c: as if this signal had been sent, or the ring had been requested. */
void ew_signals_request(int number);
void ew_signals_request_user(void);

/* What is installed. */
extern const struct ew_service ew_service;

/* Exit codes of the program; messages are printed. config: a path as the user wrote it. */
struct ew_options;
int ew_service_install(const struct ew_scm *scm, const struct ew_options *options);
int ew_service_remove(const struct ew_scm *scm, const struct ew_options *options);
int ew_service_run(const struct ew_scm *scm, const struct ew_options *options);

#endif
