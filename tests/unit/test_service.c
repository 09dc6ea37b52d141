/* SPDX-License-Identifier: MIT */
/* The Windows service with a service manager that can fail at every call: nothing is left behind,
 * the rights are the least ones, and every failure has a message. */
#include "test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd_service.c"

/* ------------------------------------------------------------ the service manager */

enum call {
    NEVER,
    OPEN,
    CREATE,
    FIND,
    CONFIGURE,
    START,
    STOP,
    QUERY,
    REMOVE,
    RIGHT,
    PROGRAM,
    SERVE
};

static struct {
    enum call fails;
    uint32_t code;
    bool exists, running, granted, configured;
    int busy;    /* queries until a stopped service has ended */
    int handles; /* open */
    int naps;
    char command[1024], identity[64], right[64], account[64];
} scm;
static char words[2048];
static struct ew_options record_options;
static int record_code, recorded;

static uint32_t result(enum call call)
{
    return scm.fails == call ? scm.code : 0;
}

static uint32_t fake_open(void *ctx, bool create, void **ret_manager)
{
    (void)ctx;
    (void)create;
    *ret_manager = &scm;
    scm.handles += result(OPEN) == 0;
    return result(OPEN);
}

static uint32_t fake_create(void *ctx, void *manager, const struct ew_service *service,
                            const char *command_line, void **ret_service)
{
    (void)ctx;
    CHECK(manager == &scm);
    (void)snprintf(scm.command, sizeof scm.command, "%s", command_line);
    (void)snprintf(scm.account, sizeof scm.account, "%s", service->account);
    *ret_service = &scm;
    if (scm.exists)
        return EW_SCM_EXISTS;
    scm.exists = result(CREATE) == 0;
    scm.handles += scm.exists;
    return result(CREATE);
}

static uint32_t fake_find(void *ctx, void *manager, const char *name, void **ret_service)
{
    (void)ctx;
    CHECK(manager == &scm);
    CHECK_EQ_STR(name, "etwatch");
    *ret_service = &scm;
    if (!scm.exists)
        return EW_SCM_NOT_INSTALLED;
    scm.handles++;
    return 0;
}

static uint32_t fake_configure(void *ctx, void *handle, const struct ew_service *service)
{
    (void)ctx;
    (void)handle;
    CHECK_EQ_STR(service->privileges[0], "SeChangeNotifyPrivilege");
    CHECK_EQ_STR(service->privileges[1], "SeSystemProfilePrivilege");
    CHECK(service->privileges[2] == NULL);
    scm.configured = result(CONFIGURE) == 0;
    return result(CONFIGURE);
}

static uint32_t fake_start(void *ctx, void *handle)
{
    (void)ctx;
    (void)handle;
    CHECK(scm.configured); /* never with more rights */
    scm.running = result(START) == 0;
    return result(START);
}

static uint32_t fake_stop(void *ctx, void *handle)
{
    (void)ctx;
    (void)handle;
    return scm.running ? result(STOP) : (uint32_t)EW_SCM_NOT_RUNNING;
}

static uint32_t fake_query(void *ctx, void *handle, bool *ret_running)
{
    (void)ctx;
    (void)handle;
    scm.running = scm.busy-- > 0;
    *ret_running = scm.running;
    return result(QUERY);
}

static uint32_t fake_remove(void *ctx, void *handle)
{
    (void)ctx;
    (void)handle;
    scm.exists = scm.exists && result(REMOVE) != 0;
    return result(REMOVE);
}

static void fake_close(void *ctx, void *handle)
{
    (void)ctx;
    (void)handle;
    scm.handles--;
}

static uint32_t fake_right(void *ctx, const char *account, const char *right, bool granted)
{
    (void)ctx;
    CHECK(scm.exists); /* the name of its identity exists only as long as the service */
    (void)snprintf(scm.identity, sizeof scm.identity, "%s", account);
    (void)snprintf(scm.right, sizeof scm.right, "%s", right);
    scm.granted = result(RIGHT) == 0 ? granted : scm.granted;
    return result(RIGHT);
}

static uint32_t fake_program(void *ctx, char *path, size_t size)
{
    (void)ctx;
    (void)snprintf(path, size, "C:\\Program Files\\etwatch\\etwatch.exe");
    return result(PROGRAM);
}

static uint32_t fake_absolute(void *ctx, const char *file, char *path, size_t size)
{
    (void)ctx;
    (void)snprintf(path, size, "C:\\my folder\\%s", file);
    return 0;
}

static uint32_t fake_serve(void *ctx, const char *name, int (*work)(void *arg), void *arg)
{
    (void)ctx;
    CHECK_EQ_STR(name, "etwatch");
    if (result(SERVE) == 0)
        record_code = work(arg);
    return result(SERVE);
}

static void fake_sleep(void *ctx, uint32_t ms)
{
    (void)ctx;
    (void)ms;
    scm.naps++;
}

static const struct ew_scm fake = {
    .open = fake_open,
    .create = fake_create,
    .find = fake_find,
    .configure = fake_configure,
    .start = fake_start,
    .stop = fake_stop,
    .query = fake_query,
    .remove = fake_remove,
    .close = fake_close,
    .set_right = fake_right,
    .program = fake_program,
    .absolute = fake_absolute,
    .serve = fake_serve,
    .sleep_ms = fake_sleep,
};

/* --------------------------------------------------------- the rest of the program */

static void put_words(const char *format, va_list args)
{
    size_t len = strlen(words);
    (void)vsnprintf(words + len, sizeof words - len, format, args);
}

void ew_print_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_words(format, args);
    va_end(args);
}

void ew_print_info(const struct ew_options *options, const char *format, ...)
{
    va_list args;
    (void)options;
    va_start(args, format);
    put_words(format, args);
    va_end(args);
}

int ew_options_parse(int argc, char **argv, struct ew_options *ret_options, char *message)
{
    CHECK_EQ_INT(argc, 4);
    CHECK_EQ_STR(argv[1], "record");
    CHECK_EQ_STR(argv[2], "--config");
    *ret_options = record_options;
    (void)snprintf(message, EW_MESSAGE_SIZE, "%s: no such file", argv[3]);
    return record_options.output_path == NULL ? EW_EXIT_USAGE : 0;
}

void ew_options_done(struct ew_options *options)
{
    *options = (struct ew_options){0};
}

int ew_cmd_record(const struct ew_options *options)
{
    (void)options;
    recorded++;
    return record_code;
}

const struct ew_scm *ew_scm_real(void)
{
    return NULL;
}

/* ------------------------------------------------------------------------- tests */

static char output[] = "D:\\ring.pftrace";

static void begin(enum call fails, uint32_t code)
{
    memset(&scm, 0, sizeof scm);
    scm.fails = fails;
    scm.code = code;
    words[0] = '\0';
    record_options = (struct ew_options){.output_path = output, .ring_ns = 60};
    record_code = recorded = 0;
}

static struct ew_options options_for(char **list, uint32_t count)
{
    return (struct ew_options){.command = EW_CMD_SERVICE, .files = {list, count}};
}

static int install(void)
{
    char action[] = "install", file[] = "ring.conf", *list[] = {action, file};
    struct ew_options options = options_for(list, 2);
    return ew_service_install(&fake, &options);
}

static int remove_it(void)
{
    char action[] = "remove", *list[] = {action};
    struct ew_options options = options_for(list, 1);
    return ew_service_remove(&fake, &options);
}

static int run_it(void)
{
    char action[] = "run", file[] = "C:\\ring.conf", *list[] = {action, file};
    struct ew_options options = options_for(list, 2);
    return ew_service_run(&fake, &options);
}

TEST(an_installed_service_has_the_least_rights_and_runs)
{
    begin(NEVER, 0);
    CHECK_EQ_INT(install(), EW_EXIT_OK);
    CHECK_EQ_STR(scm.command, "\"C:\\Program Files\\etwatch\\etwatch.exe\" service run "
                              "\"C:\\my folder\\ring.conf\"");
    CHECK_EQ_STR(scm.account, "NT AUTHORITY\\LocalService");
    CHECK_EQ_STR(scm.identity, "NT SERVICE\\etwatch");
    CHECK_EQ_STR(scm.right, "SeSystemProfilePrivilege");
    CHECK(scm.exists && scm.running && scm.granted && scm.configured);
    CHECK_EQ_INT(scm.handles, 0);
    CHECK_CONTAINS(words, "icacls");
    scm.busy = 3;
    CHECK_EQ_INT(remove_it(), EW_EXIT_OK);
    CHECK(!scm.exists && !scm.running && !scm.granted);
    CHECK_EQ_INT(scm.naps, 3); /* it ends by itself: the recorder writes its file */
    CHECK_EQ_INT(scm.handles, 0);
}

TEST(an_installation_that_fails_leaves_nothing_behind)
{
    static const struct {
        enum call fails;
        uint32_t code;
        int exit_code;
        const char *part;
    } rows[] = {
        {OPEN, 5, EW_EXIT_RIGHTS, "rights of an administrator"},
        {PROGRAM, 8, EW_EXIT_FAILED, "error 8"},
        {CREATE, EW_SCM_EXISTS, EW_EXIT_FAILED, "service remove"},
        {CREATE, EW_SCM_MARKED, EW_EXIT_FAILED, "services.msc"},
        {CONFIGURE, 87, EW_EXIT_FAILED, "error 87"},
        {START, 1069, EW_EXIT_FAILED, "error 1069"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].fails, rows[i].code);
        CHECK_EQ_INT(install(), rows[i].exit_code);
        CHECK(!scm.exists && !scm.granted && !scm.running);
        CHECK_EQ_INT(scm.handles, 0);
        CHECK_CONTAINS(words, rows[i].part);
    }
    begin(NEVER, 0);
    CHECK_EQ_INT(install(), EW_EXIT_OK);
    CHECK_EQ_INT(install(), EW_EXIT_FAILED);
    CHECK(scm.exists && scm.running && scm.granted); /* the first one stays */
    CHECK_CONTAINS(words, "service remove");
}

TEST(without_the_privilege_the_service_is_installed_and_polls)
{
    begin(RIGHT, 1332);
    CHECK_EQ_INT(install(), EW_EXIT_OK);
    CHECK(scm.exists && scm.running);
    CHECK_CONTAINS(words, "polls");
    CHECK_CONTAINS(words, "1332");
}

TEST(a_configuration_that_cannot_run_unattended_is_refused)
{
    static char relative[] = "ring.pftrace";
    begin(NEVER, 0);
    record_options.output_path = NULL;
    CHECK_EQ_INT(install(), EW_EXIT_USAGE);
    CHECK_CONTAINS(words, "ring.conf: no such file");
    begin(NEVER, 0);
    record_options.output_path = relative;
    CHECK_EQ_INT(install(), EW_EXIT_USAGE);
    CHECK_CONTAINS(words, "whole path");
    begin(NEVER, 0);
    record_options.ring_ns = 0;
    CHECK_EQ_INT(install(), EW_EXIT_USAGE);
    CHECK_CONTAINS(words, "ring = 60s");
    begin(NEVER, 0);
    record_options.duration_ns = 1;
    CHECK_EQ_INT(install(), EW_EXIT_USAGE);
    CHECK_CONTAINS(words, "remove duration");
    CHECK(!scm.exists);
    begin(NEVER, 0);
    record_options.ring_ns = 0;
    record_options.rotate = 3;
    CHECK_EQ_INT(install(), EW_EXIT_OK);
}

TEST(a_service_that_cannot_be_removed_says_why)
{
    begin(NEVER, 0);
    CHECK_EQ_INT(remove_it(), EW_EXIT_FAILED);
    CHECK_CONTAINS(words, "not installed");
    CHECK_EQ_INT(scm.handles, 0);
    begin(STOP, 5);
    scm.exists = scm.running = scm.granted = true;
    CHECK_EQ_INT(remove_it(), EW_EXIT_RIGHTS);
    CHECK(scm.exists && scm.granted); /* it still runs: its rights stay */
    CHECK_EQ_INT(scm.handles, 0);
    begin(NEVER, 0);
    scm.exists = scm.running = true;
    scm.busy = 1 << 20; /* it never ends: the wait does */
    CHECK_EQ_INT(remove_it(), EW_EXIT_OK);
    CHECK_CONTAINS(words, "does not end");
    begin(NEVER, 0);
    scm.exists = true; /* it had ended before */
    CHECK_EQ_INT(remove_it(), EW_EXIT_OK);
    CHECK(!scm.exists);
}

TEST(the_service_ends_with_the_status_of_the_recording)
{
    begin(NEVER, 0);
    record_code = EW_EXIT_SIGNAL + SIGTERM;
    CHECK_EQ_INT(run_it(), EW_EXIT_OK);
    CHECK_EQ_INT(record_code, EW_EXIT_OK); /* the end that was requested is no failure */
    CHECK_EQ_INT(recorded, 1);
    begin(NEVER, 0);
    record_code = EW_EXIT_FAILED; /* the service manager restarts it */
    CHECK_EQ_INT(run_it(), EW_EXIT_OK);
    CHECK_EQ_INT(record_code, EW_EXIT_FAILED);
    begin(NEVER, 0);
    record_options.ring_ns = 0; /* the file was changed after the installation */
    CHECK_EQ_INT(run_it(), EW_EXIT_OK);
    CHECK_EQ_INT(record_code, EW_EXIT_USAGE);
    CHECK_EQ_INT(recorded, 0);
    begin(SERVE, EW_SCM_NO_MANAGER);
    CHECK_EQ_INT(run_it(), EW_EXIT_USAGE);
    CHECK_CONTAINS(words, "etwatch record --config C:\\ring.conf");
}

TEST(other_systems_have_no_such_services)
{
    char action[] = "remove", *list[] = {action};
    struct ew_options options = options_for(list, 1);
    begin(NEVER, 0);
    CHECK_EQ_INT(ew_cmd_service(&options), EW_EXIT_RIGHTS);
    CHECK_CONTAINS(words, "systemd");
}
