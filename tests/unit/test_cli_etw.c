/* SPDX-License-Identifier: MIT */
/*
 * The commands sessions and record with the ETW emulator: their output, their exit codes, and that
 * no session is left running however they end. The test provides signals, the command and the
 * screen.
 */
#include "test.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/session.h>

#include "etw_emulator.h"
#include "monitor/monitor.h"
#include "os/os.h"
#include "source/etw/controller.h"
#include "system.h"

/* ------------------------------------------------- the library, using the emulator */

static struct etw_emulator *emulator;

static void give(struct etwatch_error_info *to, const struct ew_error *from)
{
    to->code = from->code;
    to->os_code = from->os_code;
    memcpy(to->message, from->message, sizeof to->message);
    memcpy(to->fix, from->fix, sizeof to->fix);
}

static int start_recorder(const char *path, const struct etwatch_session_options *options,
                          struct etwatch_recorder **ret_recorder, struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    int rc = ew_recorder_start(etw_emulator_api(emulator), path, options, ret_recorder, &error);
    if (rc < 0)
        give(reterr, &error);
    return rc;
}

static int list_sessions(void (*on_session)(void *ctx, const struct etwatch_session_info *info),
                         void *ctx, struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    int rc = ew_sessions_list(etw_emulator_api(emulator), on_session, ctx, &error);
    if (rc < 0)
        give(reterr, &error);
    return rc;
}

static int clean_sessions(struct etwatch_error_info *reterr)
{
    struct ew_error error = {0};
    int rc = ew_etw_session_cleanup(etw_emulator_api(emulator), &error);
    if (rc < 0)
        give(reterr, &error);
    return rc;
}

#define etwatch_recorder_start start_recorder
#define etwatch_session_list list_sessions
#define etwatch_session_cleanup clean_sessions
#include "cli/args/etw_options.c"
#include "cli/args/value.c"
#include "cli/cmd_sessions.c"
#include "cli/record_etl.c"

/* ------------------------------------------------------------------ the rest of the program */

static char words[4096]; /* on standard error */
static char data[1 << 16];
static size_t data_len;
static int ending;      /* the signal to deliver ... */
static int looks;       /* ... after this many calls */
static int child_looks; /* the command exits after this many calls */
static bool child_made, child_let_go, child_reaped;
static int hold_error, release_error;

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

int ew_exit_code(int rc)
{
    return rc == ETWATCH_EINVAL                           ? EW_EXIT_USAGE
           : rc == ETWATCH_EPERM || rc == ETWATCH_ENOTSUP ? EW_EXIT_RIGHTS
                                                          : EW_EXIT_FAILED;
}

int ew_print_failure(const struct etwatch_error_info *err, int rc)
{
    ew_print_error("%s; %s", err->message, err->fix);
    return ew_exit_code(rc);
}

int ew_print_write_error(const char *path, int os_error)
{
    ew_print_error("cannot write to %s: %s", path, strerror(os_error));
    return EW_EXIT_FAILED;
}

int ew_child_print_error(char **command, int error)
{
    ew_print_error("cannot run %s: %s", command[0], strerror(error));
    return error == ENOENT ? EW_EXIT_NOT_FOUND : EW_EXIT_CANNOT_EXEC;
}

int ew_output_open(struct ew_output *output, const char *path, uint32_t mode)
{
    (void)mode;
    *output = (struct ew_output){.path = path};
    return 0;
}

int ew_output_close(struct ew_output *output)
{
    (void)output;
    return 0;
}

int ew_output_write(void *output, const void *bytes, size_t len)
{
    (void)output;
    CHECK(data_len + len < sizeof data);
    memcpy(data + data_len, bytes, len);
    data_len += len;
    data[data_len] = '\0';
    return 0;
}

bool ew_output_reader_gone(const struct ew_output *output)
{
    (void)output;
    return false;
}

bool ew_term_is(int fd)
{
    (void)fd;
    return false;
}

void ew_signals_init(void)
{
}

void ew_signals_watch_child(void)
{
}

int ew_signals_ending(void)
{
    return looks-- > 0 ? 0 : ending;
}

int ew_signals_take_forward(void)
{
    return 0;
}

int ew_child_hold(struct ew_child *child, char **command)
{
    (void)command;
    *child = (struct ew_child){.pid = 4711};
    child_made = hold_error == 0;
    return hold_error;
}

int ew_child_release(struct ew_child *child)
{
    (void)child;
    child_let_go = release_error == 0;
    return release_error;
}

bool ew_child_ended(struct ew_child *child)
{
    child->status = 42;
    return child_looks-- <= 0;
}

void ew_child_wait(struct ew_child *child)
{
    (void)child;
}

void ew_child_signal(const struct ew_child *child, int number)
{
    (void)child;
    (void)number;
}

void ew_child_reap(struct ew_child *child)
{
    (void)child;
    child_reaped = true;
}

static void begin(const struct etw_emulator_config *config)
{
    struct etw_emulator_config with_owners = *config;
    with_owners.knows_owners = true;
    with_owners.real_time = true;
    emulator = etw_emulator_new(&with_owners);
    words[0] = data[0] = '\0';
    data_len = 0;
    ending = looks = child_looks = hold_error = release_error = 0;
    child_made = child_let_go = child_reaped = false;
}

static uint32_t sessions_now(void)
{
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    return counts.sessions;
}

/* ------------------------------------------------------------------------------ sessions */

static void add_sessions(void)
{
    etw_emulator_add(emulator, "NT Kernel Logger", 0x100, 0x11);
    etw_emulator_add(emulator, "etwatch-watch", 0x02000100, 0);
    etw_emulator_add(emulator, "a, \"b\" \xc3\xa4", 0, 0);
}

TEST(sessions_are_shown_as_a_table)
{
    struct ew_options options = {.command = EW_CMD_SESSIONS};
    begin(&(struct etw_emulator_config){0});
    add_sessions();
    CHECK_EQ_INT(ew_cmd_sessions(&options), 0);
    CHECK_CONTAINS(data, "  SESSION ");
    CHECK_CONTAINS(data, "\n  NT Kernel Logger                     real-time         64");
    CHECK_CONTAINS(data, "  process,cswitch\n");
    CHECK_CONTAINS(data, "\n! etwatch-watch ");
    CHECK_CONTAINS(words,
                   "3 sessions, 1 of etwatch (*), 1 of them left behind (!); stop these with: "
                   "etwatch sessions --cleanup");
    etw_emulator_free(emulator);
}

TEST(sessions_as_json_and_csv_have_fixed_names)
{
    struct ew_options options = {.command = EW_CMD_SESSIONS, .json = true};
    begin(&(struct etw_emulator_config){0});
    add_sessions();
    CHECK_EQ_INT(ew_cmd_sessions(&options), 0);
    CHECK_EQ_STR(
        data,
        "{\"type\":\"session\",\"name\":\"NT Kernel Logger\",\"ours\":false,\"orphan\":false,"
        "\"system\":false,\"mode\":\"real-time\",\"buffer_kb\":64,\"min_buffers\":4,"
        "\"max_buffers\":64,\"buffers\":4,\"free_buffers\":0,\"buffers_written\":0,"
        "\"events_lost\":0,\"buffers_lost\":0,\"real_time_buffers_lost\":0,\"clock\":null,"
        "\"kernel\":\"process,cswitch\",\"file\":null}\n"
        "{\"type\":\"session\",\"name\":\"etwatch-watch\",\"ours\":true,\"orphan\":true,"
        "\"system\":true,\"mode\":\"real-time\",\"buffer_kb\":64,\"min_buffers\":4,"
        "\"max_buffers\":64,\"buffers\":4,\"free_buffers\":0,\"buffers_written\":0,"
        "\"events_lost\":0,\"buffers_lost\":0,\"real_time_buffers_lost\":0,\"clock\":null,"
        "\"kernel\":null,\"file\":null}\n"
        "{\"type\":\"session\",\"name\":\"a, \\\"b\\\" \xc3\xa4\",\"ours\":false,\"orphan\":false,"
        "\"system\":false,\"mode\":\"memory\",\"buffer_kb\":64,\"min_buffers\":4,"
        "\"max_buffers\":64,\"buffers\":4,\"free_buffers\":0,\"buffers_written\":0,"
        "\"events_lost\":0,\"buffers_lost\":0,\"real_time_buffers_lost\":0,\"clock\":null,"
        "\"kernel\":null,\"file\":null}\n");
    etw_emulator_free(emulator);
    begin(&(struct etw_emulator_config){0});
    add_sessions();
    options = (struct ew_options){.command = EW_CMD_SESSIONS, .csv = true};
    CHECK_EQ_INT(ew_cmd_sessions(&options), 0);
    CHECK_CONTAINS(data, "name,ours,orphan,system,mode,buffer_kb,min_buffers,max_buffers,buffers,"
                         "free_buffers,buffers_written,events_lost,buffers_lost,"
                         "real_time_buffers_lost,clock,kernel,file\n");
    CHECK_CONTAINS(data, "\netwatch-watch,true,true,true,real-time,64,4,64,4,0,0,0,0,0,,,\n");
    CHECK_CONTAINS(data, "\"a, \"\"b\"\" \xc3\xa4\",false");
    etw_emulator_free(emulator);
}

TEST(cleanup_reports_how_many_sessions_it_ended_and_ends_no_others)
{
    struct ew_options options = {.command = EW_CMD_SESSIONS, .cleanup = true};
    begin(&(struct etw_emulator_config){0});
    add_sessions();
    etw_emulator_add(emulator, "etwatch-record", 0x02000001, 0);
    CHECK_EQ_INT(ew_cmd_sessions(&options), 0);
    CHECK_EQ_STR(data, "stopped 2 sessions of etwatch\n");
    CHECK_EQ_UINT(sessions_now(), 2);
    data_len = 0;
    options.json = true;
    CHECK_EQ_INT(ew_cmd_sessions(&options), 0);
    CHECK_EQ_STR(data, "{\"type\":\"cleanup\",\"ended\":0}\n");
    etw_emulator_free(emulator);
    begin(&(struct etw_emulator_config){.no_rights = true});
    add_sessions();
    CHECK_EQ_INT(ew_cmd_sessions(&options), EW_EXIT_RIGHTS);
    CHECK_CONTAINS(words,
                   "cannot stop the session 'etwatch-watch': access is denied (error 5); run "
                   "it as an administrator");
    CHECK_EQ_STR(data, "");
    etw_emulator_free(emulator);
}

/* -------------------------------------------------------------------------------- record */

struct place {
    char folder[320], path[340];
};

static void make_folder(struct place *place)
{
    test_folder(place->folder, sizeof place->folder);
    (void)snprintf(place->path, sizeof place->path, "%s/x.etl", place->folder);
}

static void remove_folder(struct place *place)
{
    (void)remove(place->path);
    test_folder_remove(place->folder);
    struct etw_emulator_counts counts;
    etw_emulator_counts(emulator, &counts);
    CHECK_EQ_UINT(counts.ours, 0);
    etw_emulator_free(emulator);
}

TEST(a_recording_ends_after_its_duration_with_0_and_is_summarized)
{
    struct place place;
    begin(&(struct etw_emulator_config){0});
    make_folder(&place);
    looks = 1 << 30;
    struct ew_options options = {.output_path = place.path, .duration_ns = 150000000};
    CHECK_EQ_INT(ew_cli_record_etl(&options), 0);
    CHECK_CONTAINS(words, "recorded ");
    CHECK_CONTAINS(words, "lost: 0; own cost ");
    remove_folder(&place);
}

TEST(a_signal_ends_a_recording_with_128_plus_its_number)
{
    struct place place;
    begin(&(struct etw_emulator_config){0});
    make_folder(&place);
    looks = 2;
    ending = 2;
    struct ew_options options = {.output_path = place.path};
    CHECK_EQ_INT(ew_cli_record_etl(&options), 130);
    CHECK_CONTAINS(words, "recorded ");
    remove_folder(&place);
}

TEST(a_recording_of_a_command_ends_with_the_command_and_returns_its_status)
{
    struct place place;
    char name[] = "x", *command[] = {name, NULL};
    begin(&(struct etw_emulator_config){0});
    make_folder(&place);
    child_looks = 2;
    struct ew_options options = {.output_path = place.path, .child = command};
    CHECK_EQ_INT(ew_cli_record_etl(&options), 42);
    CHECK(child_let_go && child_reaped);
    remove_folder(&place);
}

TEST(a_failed_start_leaves_no_session_and_does_not_release_the_command)
{
    static const struct {
        const char *part;
        struct etw_emulator_config emulated;
        int hold, release, code;
        uint32_t pid_count;
        bool made;
    } rows[] = {
        {"access is denied (error 5)", {.no_rights = true}, 0, 0, EW_EXIT_RIGHTS, 0, true},
        {"all system loggers", {.loggers_in_use = true}, 0, 0, EW_EXIT_FAILED, 0, true},
        {"cannot create a process", {0}, EAGAIN, 0, EW_EXIT_FAILED, 0, false},
        {"cannot run x: ", {0}, 0, ENOENT, EW_EXIT_NOT_FOUND, 0, true},
        {"cannot run x: ", {0}, 0, EACCES, EW_EXIT_CANNOT_EXEC, 0, true},
        {"ETW records the whole machine", {0}, 0, 0, EW_EXIT_USAGE, 1, false},
    };
    char name[] = "x", *command[] = {name, NULL};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct place place;
        uint32_t pid = 4;
        test_row(rows[i].part);
        begin(&rows[i].emulated);
        make_folder(&place);
        hold_error = rows[i].hold;
        release_error = rows[i].release;
        struct ew_options options = {
            .output_path = place.path, .child = command, .pids = {&pid, rows[i].pid_count}};
        CHECK_EQ_INT(ew_cli_record_etl(&options), rows[i].code);
        CHECK_CONTAINS(words, rows[i].part);
        CHECK_EQ_INT(child_made, rows[i].made);
        CHECK_EQ_INT(child_reaped, rows[i].made);
        CHECK(!child_let_go);
        remove_folder(&place);
    }
}

TEST(a_recording_stopped_from_outside_ends_with_1_and_a_message)
{
    struct place place;
    begin(&(struct etw_emulator_config){.stop_after = 0});
    make_folder(&place);
    looks = 1 << 30;
    struct ew_options options = {.output_path = place.path, .duration_ns = 30000000000u};
    /* The name is free for a moment: the next one ends ours as an orphan. */
    struct ew_etw_api *api = (struct ew_etw_api *)(uintptr_t)etw_emulator_api(emulator);
    api->claim = NULL;
    struct recording recording = {.options = &options};
    CHECK_EQ_INT(ew_waiter_new(&recording.waiter), 0);
    CHECK_EQ_INT(begin_recording(&recording), 0);
    CHECK_EQ_INT(ew_etw_session_cleanup(api, NULL), 1);
    CHECK_EQ_INT(record(&recording), EW_EXIT_FAILED);
    CHECK_CONTAINS(words, "was stopped by another program");
    etwatch_recorder_free(recording.recorder);
    ew_waiter_free(recording.waiter);
    remove_folder(&place);
}
