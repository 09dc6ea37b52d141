/* SPDX-License-Identifier: MIT */
/*
 * service: keeps a recording running on Windows, from boot on and without a user.
 *
 * Least rights: the service runs as LocalService, which may start ETW sessions, and its token keeps
 * two privileges. The one that kernel events need is granted to the service's own identity (NT
 * SERVICE\etwatch), as Windows does for its diagnostics service, so no other service gets it.
 * Removing revokes it. An installation that fails is undone.
 */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/service.h"

enum { PATH_SIZE = 4096, STOP_TRIES = 120, STOP_PAUSE_MS = 250 };

static const char profile_right[] = "SeSystemProfilePrivilege";

const struct ew_service ew_service = {
    .name = "etwatch",
    .title = "etwatch recorder",
    .description = "Records what every process does (etwatch service run).",
    .account = "NT AUTHORITY\\LocalService",
    .identity = "NT SERVICE\\etwatch",
    .privileges = {"SeChangeNotifyPrivilege", profile_right, NULL},
    .restart_ms = 5000,
};

static int fail(uint32_t code, const char *what)
{
    if (code == EW_SCM_DENIED) {
        ew_print_error("cannot %s: it needs the rights of an administrator (error 5)", what);
        return EW_EXIT_RIGHTS;
    }
    if (code == EW_SCM_NOT_INSTALLED)
        ew_print_error("cannot %s: it is not installed; install it with: etwatch service install "
                       "FILE",
                       what);
    else if (code == EW_SCM_EXISTS)
        ew_print_error("cannot %s: it is installed already; remove it first with: etwatch service "
                       "remove",
                       what);
    else if (code == EW_SCM_MARKED)
        ew_print_error("cannot %s: it was removed, but a program still has it open; close "
                       "services.msc and try again (error 1072)",
                       what);
    else
        ew_print_error("cannot %s: error %u", what, (unsigned)code);
    return EW_EXIT_FAILED;
}

/* -------------------------------------------------------------------- the options */

static bool is_absolute(const char *path)
{
    bool drive = path[0] != '\0' && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
    return drive || (path[0] == '\\' && path[1] == '\\');
}

/* The options of `record --config FILE`. An exit code; the caller frees them in any case. */
static int read_config(const char *config, struct ew_options *ret_options)
{
    char name[] = "etwatch", command[] = "record", option[] = "--config", file[PATH_SIZE];
    char message[EW_MESSAGE_SIZE];
    char *argv[] = {name, command, option, file, NULL};
    (void)snprintf(file, sizeof file, "%s", config);
    int code = ew_options_parse(4, argv, ret_options, message);
    if (code != 0)
        ew_print_error("%s", message);
    return code;
}

/* What would fail in the service, without a console for the message, or fill the disk. */
static int check_config(const char *config, const struct ew_options *options)
{
    if (!is_absolute(options->output_path)) {
        ew_print_error("%s: output = %s: a service has no current folder; give the whole path",
                       config, options->output_path);
        return EW_EXIT_USAGE;
    }
    if (options->ring_ns == 0 && options->rotate == 0) {
        ew_print_error("%s: a service records without an end: add ring = 60s, or max-size and "
                       "rotate",
                       config);
        return EW_EXIT_USAGE;
    }
    if (options->duration_ns != 0) {
        ew_print_error("%s: a service records without an end: remove duration", config);
        return EW_EXIT_USAGE;
    }
    return EW_EXIT_OK;
}

/* -------------------------------------------------------------------- install */

static int make_command(const struct ew_scm *scm, const char *file, char *config, char *command)
{
    char program[PATH_SIZE];
    uint32_t code = scm->program(scm->ctx, program, sizeof program);
    if (code == 0)
        code = scm->absolute(scm->ctx, file, config, PATH_SIZE);
    if (code != 0)
        return fail(code, "find the path of the program or of the configuration");
    /* Names of files have no quotes on Windows. */
    (void)snprintf(command, 2 * (size_t)PATH_SIZE + 64, "\"%s\" service run \"%s\"", program,
                   config);
    return EW_EXIT_OK;
}

static void grant(const struct ew_scm *scm)
{
    uint32_t code = scm->set_right(scm->ctx, ew_service.identity, profile_right, true);
    if (code != 0)
        ew_print_error("%s cannot get %s (error %u): the service polls instead of recording kernel "
                       "events",
                       ew_service.identity, profile_right, (unsigned)code);
}

static int create_and_start(const struct ew_scm *scm, void *manager, const char *command)
{
    void *service = NULL;
    uint32_t code = scm->create(scm->ctx, manager, &ew_service, command, &service);
    if (code != 0)
        return fail(code, "install the service etwatch");
    const char *what = "set the rights of the service etwatch";
    code = scm->configure(scm->ctx, service, &ew_service);
    if (code == 0) {
        grant(scm);
        what = "start the service etwatch";
        code = scm->start(scm->ctx, service);
    }
    int result = code == 0 ? EW_EXIT_OK : fail(code, what);
    if (code != 0) {
        (void)scm->set_right(scm->ctx, ew_service.identity, profile_right, false);
        (void)scm->remove(scm->ctx, service);
    }
    scm->close(scm->ctx, service);
    return result;
}

int ew_service_install(const struct ew_scm *scm, const struct ew_options *options)
{
    char config[PATH_SIZE], command[2 * PATH_SIZE + 64];
    struct ew_options record;
    void *manager = NULL;
    const char *file = options->files.words[1];
    int result = read_config(file, &record);
    if (result == EW_EXIT_OK)
        result = check_config(file, &record);
    if (result == EW_EXIT_OK)
        result = make_command(scm, file, config, command);
    if (result == EW_EXIT_OK) {
        uint32_t code = scm->open(scm->ctx, true, &manager);
        result = code == 0 ? create_and_start(scm, manager, command)
                           : fail(code, "install the service etwatch");
        if (code == 0)
            scm->close(scm->ctx, manager);
    }
    if (result == EW_EXIT_OK)
        ew_print_info(options,
                      "the service etwatch runs as LocalService and records to %s; that account "
                      "must be able to read %s and to write to the folder of the recording, for "
                      "example: icacls FOLDER /grant \"%s:(OI)(CI)M\"",
                      record.output_path, config, ew_service.identity);
    ew_options_done(&record);
    return result;
}

/* -------------------------------------------------------------------- remove */

/* Requests the end and waits for it: the recorder still writes its file. */
static uint32_t stop(const struct ew_scm *scm, void *service)
{
    bool running = true;
    uint32_t code = scm->stop(scm->ctx, service);
    if (code == EW_SCM_NOT_RUNNING)
        return 0;
    for (int i = 0; code == 0 && running && i < STOP_TRIES; i++) {
        code = scm->query(scm->ctx, service, &running);
        if (code == 0 && running)
            scm->sleep_ms(scm->ctx, STOP_PAUSE_MS);
    }
    if (code == 0 && running)
        ew_print_error("the service etwatch does not end; it is removed when it has ended");
    return code;
}

int ew_service_remove(const struct ew_scm *scm, const struct ew_options *options)
{
    static const char what[] = "remove the service etwatch";
    void *manager = NULL, *service = NULL;
    uint32_t code = scm->open(scm->ctx, false, &manager);
    if (code != 0)
        return fail(code, what);
    code = scm->find(scm->ctx, manager, ew_service.name, &service);
    if (code == 0) {
        code = stop(scm, service);
        if (code == 0) {
            /* First, while the name of its identity still exists. */
            (void)scm->set_right(scm->ctx, ew_service.identity, profile_right, false);
            code = scm->remove(scm->ctx, service);
        }
        scm->close(scm->ctx, service);
    }
    scm->close(scm->ctx, manager);
    if (code != 0)
        return fail(code, what);
    ew_print_info(options, "the service etwatch is removed; its recordings stay");
    return EW_EXIT_OK;
}

/* ------------------------------------------------------------------------ run */

static int record(void *arg)
{
    const char *config = arg;
    struct ew_options options;
    int code = read_config(config, &options);
    if (code == EW_EXIT_OK)
        code = check_config(config, &options);
    if (code == EW_EXIT_OK)
        code = ew_cmd_record(&options);
    ew_options_done(&options);
    return code == EW_EXIT_SIGNAL + SIGTERM ? EW_EXIT_OK : code; /* the end that was requested */
}

int ew_service_run(const struct ew_scm *scm, const struct ew_options *options)
{
    uint32_t code = scm->serve(scm->ctx, ew_service.name, record, options->files.words[1]);
    if (code == EW_SCM_NO_MANAGER) {
        ew_print_error("'etwatch service run' is started by the service manager of Windows; in a "
                       "console use: etwatch record --config %s",
                       options->files.words[1]);
        return EW_EXIT_USAGE;
    }
    return code == 0 ? EW_EXIT_OK : fail(code, "run the service etwatch");
}

int ew_cmd_service(const struct ew_options *options)
{
    const struct ew_scm *scm = ew_scm_real();
    const char *action = options->files.words[0];
    if (scm == NULL) {
        ew_print_error("services of this kind exist on Windows only; on Linux use the systemd unit "
                       "of the package (docs/serve.md)");
        return EW_EXIT_RIGHTS;
    }
    if (strcmp(action, "install") == 0)
        return ew_service_install(scm, options);
    return strcmp(action, "remove") == 0 ? ew_service_remove(scm, options)
                                         : ew_service_run(scm, options);
}
