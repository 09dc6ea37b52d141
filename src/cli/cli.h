/* SPDX-License-Identifier: MIT */
/*
 * The program: one user of the public API. A command (cmd_*.c) reads its options (args/), opens a
 * watch (watch_run.c) or a recording (recording.c), and writes data to standard output or -o FILE
 * and messages to standard error. Files that end in _linux.c or _windows.c implement the same
 * functions for one system.
 */
#ifndef EW_CLI_H
#define EW_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/device.h>
#include <etwatch/rollup.h>
#include <etwatch/sink.h>
#include <etwatch/span.h>
#include <etwatch/system.h>
#include <etwatch/trace.h>
#include <etwatch/waits.h>
#include <etwatch/window.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/grid.h"
#include "cli/args/args.h"
#include "cli/py_spy.h"
#include "serve/server.h"

/* ------------------------------------------------------------------- the commands */

/* The program, with its arguments in UTF-8. An exit code. */
int ew_main(int argc, char **argv);

/* Each returns the exit code of the program. */
int ew_cmd_config(const struct ew_options *options);
int ew_cmd_doctor(const struct ew_options *options);
int ew_cmd_events(const struct ew_options *options);
int ew_cmd_export(const struct ew_options *options);
int ew_cmd_metrics(const struct ew_options *options);
int ew_cmd_record(const struct ew_options *options);
int ew_cmd_report(const struct ew_options *options);
int ew_cmd_run(const struct ew_options *options);
int ew_cmd_serve(const struct ew_options *options);
int ew_cmd_sessions(const struct ew_options *options);
int ew_cmd_service(const struct ew_options *options);
int ew_cmd_stat(const struct ew_options *options);
int ew_cmd_top(const struct ew_options *options);
int ew_cmd_waits(const struct ew_options *options);
int ew_cmd_onnx(const struct ew_options *options);
int ew_cmd_compare(const struct ew_options *options);

/* record, by the extension of its file: .etl (Windows) and .pftrace. */
int ew_cli_record_etl(const struct ew_options *options);
int ew_cli_record_pftrace(const struct ew_options *options);

/* doctor --metrics: as JSON Lines or a table. Returns whether any source works. */
bool ew_cli_doctor_metrics(const struct ew_options *options, struct ew_buf *out);

/* ------------------------------------------------------------------ message.c: messages */

/* One line on standard error that begins with "etwatch: ". */
void ew_print_error(const char *format, ...) EW_PRINTF(1, 2);
/* The same for information: nothing with -q. */
void ew_print_info(const struct ew_options *options, const char *format, ...) EW_PRINTF(2, 3);
/* Says, also with -q, that the system refused the filter; confined: of ew_os_confine_reader etc. */
void ew_print_if_unconfined(int confined);
/* Messages go to this function instead, without the name of the program and the line end; NULL: to
 * standard error. Set before other threads print. */
void ew_messages_to(void (*write)(void *ctx, const char *line), void *ctx);
/* The exit code for an error code of the library. */
int ew_exit_code(int rc);
/* Prints the error of a library call with its fix. An exit code. */
int ew_print_failure(const struct etwatch_error_info *err, int rc);
/* Prints that path (NULL: standard output) cannot be written. EW_EXIT_FAILED. */
int ew_print_write_error(const char *path, int os_error);

/* ------------------------------------------------------------ output_*.c: where data goes */

struct ew_output {
    int fd;
    const char *path; /* NULL: standard output */
    int os_error;     /* errno of the write that failed; 0: none did */
};

/* Opens path for writing, or standard output if it is NULL. mode: --mode. 0 or the errno. */
int ew_output_open(struct ew_output *output, const char *path, uint32_t mode);
struct ew_place;
/* The same for a file that is unusable without its end: it gets its name when it is closed as
 * complete, and is removed otherwise, also after kill -9. *ret_place: for closing; NULL if path is
 * no file. */
int ew_output_open_whole(struct ew_output *output, const char *path, uint32_t mode,
                         struct ew_place **ret_place);
int ew_output_close_whole(struct ew_output *output, struct ew_place *place, bool complete);
/* An output that is already open; path NULL: standard output. */
void ew_output_init(struct ew_output *output, int fd, const char *path);
/* 0 or the errno: a full disk may be reported as late as this. */
int ew_output_close(struct ew_output *output);
/* An etwatch_write_fn: writes everything, or returns a negative code and sets os_error. */
int ew_output_write(void *output, const void *bytes, size_t len);
/* Truncates a file to this size, if possible. */
void ew_output_truncate(struct ew_output *output, uint64_t bytes);
/* The reader of a pipe has exited: not an error, but the end of the output. */
bool ew_output_reader_gone(const struct ew_output *output);

/* ------------------------------------------------------- place_*.c: files that are created */

/*
 * A place for output: the folder of a path, opened once, and the name in it. Everything that the
 * program writes is created here, by these rules:
 * - A new file has the requested mode, or 0600 if mode is 0. Without a requested mode an existing
 *   file keeps its own. (Windows: the access rights of the folder, and mode must be 0.)
 * - Linux: root acts with the rights of the folder's owner, so the file belongs to that user.
 * - Linux: a symbolic link of another user in a folder that others can write to is not followed,
 *   except by root with the rights of that user. There an existing file is only reused if it
 *   belongs to the acting user; others are replaced, not overwritten.
 * - The name of a temporary file is random.
 */
struct ew_place;
/* 0 or the errno; ELOOP: a link is not followed. */
int ew_place_open(const char *path, uint32_t mode, struct ew_place **ret_place);
/* The name is a device, a pipe or a folder: it cannot be replaced. */
bool ew_place_is_special(const struct ew_place *place);
/* Makes the calls below work after ew_os_drop_rights and ew_os_confine: a process with the rights
 * of the acting user performs them, and nothing else. 0 or the errno. Call before other threads
 * and before resources that this process must not inherit exist. */
int ew_place_detach(struct ew_place *place);
/* Creates the file with this number (base/path.h; 1: the path itself), or 0: a temporary one. The
 * caller closes *ret_fd. 0 or the errno. */
int ew_place_create(struct ew_place *place, uint32_t number, int *ret_fd);
/* Gives the temporary file the name of the place, replacing a file. 0 or the errno. */
int ew_place_commit(struct ew_place *place);
/* Removes the file with this number. 0 or the errno. */
int ew_place_remove(struct ew_place *place, uint32_t number);
/* Also removes a temporary file that was not committed. NULL is allowed. */
void ew_place_close(struct ew_place *place);

/* ------------------------------------------------------------------- keys.c: keys and mouse */

enum ew_key_code { /* smaller values: a byte of text or a control character */
                   EW_KEY_UP = 256,
                   EW_KEY_DOWN,
                   EW_KEY_LEFT,
                   EW_KEY_RIGHT,
                   EW_KEY_PAGE_UP,
                   EW_KEY_PAGE_DOWN,
                   EW_KEY_HOME,
                   EW_KEY_END,
                   EW_KEY_ESCAPE,
                   EW_KEY_CLICK,
                   EW_KEY_WHEEL_UP,
                   EW_KEY_WHEEL_DOWN,
};

struct ew_key {
    int code;             /* enum ew_key_code or a byte; 0: nothing that has a meaning */
    uint32_t column, row; /* of the mouse, from 0 */
};

/* Takes the first key of the bytes. Returns how many bytes it had; 0: its end is missing. more:
 * the rest may still arrive; otherwise a lone ESC is the key of that name. */
size_t ew_keys_parse(const char *bytes, size_t len, bool more, struct ew_key *ret_key);

/* ---------------------------------------------------------------- term_*.c: the terminal */

enum { EW_TERM_OUT = 1, EW_TERM_ERR = 2 };

bool ew_term_is(int which);
/* Colour for this output: a terminal, and NO_COLOR is not set. */
bool ew_term_color(int which);
/* 80 x 24 if unknown. */
void ew_term_size(uint32_t *ret_columns, uint32_t *ret_rows);
/* Keys are delivered one by one and not echoed; false if there is no keyboard. */
bool ew_term_raw(void);
/* Undoes ew_term_raw. May be called twice. */
void ew_term_restore(void);
/* The next pending key; false if there is none. A code of 0 is a key without a meaning. */
bool ew_term_key(struct ew_key *ret_key);
/* The terminal shows UTF-8. */
bool ew_term_is_utf8(void);
/* Asks the terminal for mouse events, or to stop them, where this needs a system call; elsewhere
 * the sequences of top do. */
void ew_term_mouse(bool on);

/* ------------------------------------------- process_control_*.c: what top does to processes */

enum ew_process_signal { EW_SIGNAL_TERMINATE, EW_SIGNAL_KILL };

/* Acts on the process with this identity only: a process that reused its pid is left alone. 0,
 * ETWATCH_ENOENT (it has exited), ETWATCH_EPERM or ETWATCH_EOS. */
int ew_cli_process_signal(uint32_t pid, uint64_t start_ns, enum ew_process_signal signal);
/* Makes the process yield to others more (steps > 0) or less. *ret_nice: its new value, -20 to 19;
 * on Windows the same scale in steps of priority classes. */
int ew_cli_process_renice(uint32_t pid, uint64_t start_ns, int steps, int *ret_nice);

/* ------------------------------------------------------------------ signals_*.c: signals */

/* Signals are only noted from now on; the main loop queries them. A closed pipe becomes an error of
 * write. Signals that were ignored at the start stay ignored. */
void ew_signals_init(void);
void ew_signals_watch_child(void);  /* SIGCHLD */
void ew_signals_watch_screen(void); /* window changes and Ctrl-Z */
void ew_signals_watch_user(void);   /* SIGUSR1, where it exists */
/* True once after SIGUSR1. */
bool ew_signals_take_user(void);
/* The signal that requests the end, or 0. */
int ew_signals_ending(void);
/* True if there was more than one: the user does not want to wait for a slow reader. */
bool ew_signals_insisting(void);
/* A signal to pass on to the child, each once, or 0. Only signals that were sent to this process:
 * the terminal sends its signals to the child as well. */
int ew_signals_take_forward(void);
bool ew_signals_take_resize(void);
/* True if Ctrl-Z was pressed; ew_signals_suspend then stops the program. */
bool ew_signals_take_suspend(void);
void ew_signals_suspend(void);
/* In a child, before exec: restores the state before ew_signals_init. */
void ew_signals_restore(void);
/* "SIGTERM", or "signal 40". Valid until the next call. */
const char *ew_signals_name(int number);

/* ------------------------------------------------------- child_*.c: the command of run */

/* The process is created first, held before exec until the monitor watches it, then released. */
struct ew_child {
    uint32_t pid;
    /* Linux */
    int go_fd;     /* one byte lets it exec; closing it ends it */
    int failed_fd; /* carries the errno of a failed exec */
    /* Windows */
    void *process, *thread, *job, *port; /* handles; the port reports the processes of the job */
    int failed;                          /* errno: why it could not be created */
    bool ended;
    bool reaped;
    int status; /* exit status as a shell reports it; once ended */
    int signal; /* the signal that ended it, or 0 */
};

/* Creates the process, held. 0 or the errno. */
int ew_child_hold(struct ew_child *child, char **command);
/* Lets it run. 0, or the errno: the command cannot be run, and the process has been reaped. */
int ew_child_release(struct ew_child *child);
/* True once it has exited. It stays a zombie, so that its last values can still be read. */
bool ew_child_ended(struct ew_child *child);
/* The next process that the command started, directly or not, or 0. Always 0 on systems that do not
 * report it: there the source follows the tree by parent ids. */
uint32_t ew_child_take_started(struct ew_child *child);
/* False while a descendant of the command is known to run. */
bool ew_child_tree_ended(struct ew_child *child);
/* Removes the zombie. If the child was never released, ends it. */
void ew_child_reap(struct ew_child *child);
void ew_child_signal(const struct ew_child *child, int number);
/* Sleeps until it has exited or a signal arrives. */
void ew_child_wait(struct ew_child *child);
/* Prints why the command cannot be run. An exit code: 127 not found, 126 otherwise. */
int ew_child_print_error(char **command, int error);

/* name_hint.c: says that no process matched the names of the options; live: with similar names of
 * running processes. */
void ew_cli_hint_names(const struct ew_options *options, bool live);

/* quote.c: a Windows command line from arguments. */

/* Adds one argument so that a program that splits its command line by the rules of Microsoft's C
 * library (and CommandLineToArgvW) gets exactly this text. */
void ew_quote_argument(struct ew_buf *out, const char *argument);
/* Adds the program. No escapes exist there: false if it contains a quote. */
bool ew_quote_program(struct ew_buf *out, const char *program);
/* Whether Windows runs this program with its command interpreter, which has other rules and
 * executes what follows an & in an argument. */
bool ew_quote_is_batch(const char *program);
/* The command line with which that interpreter runs a batch file, so that no argument is taken for
 * a command. False: an argument or the name has a character that cannot be passed on (a line end).
 */
bool ew_quote_batch(struct ew_buf *out, const char *interpreter, const char *program,
                    char *const *arguments);

/* All arguments from argv[first] on, each quoted as above. */
void ew_quote_arguments(struct ew_buf *out, int argc, char *const *argv, int first);

/* ---------------------------------------------- elevate.c: more rights, for --elevate (Windows) */

/* The first argument of the process that restart starts: this, a process id, a colon, a folder. */
#define EW_ELEVATED_FROM "--elevated-from="
/* What Windows does for it, as a table for tests. */
struct ew_elevator {
    void *ctx;
    /* This process has the rights of an administrator. */
    bool (*has_rights)(void *ctx);
    /* Standard output is a console, which the other process can write to. */
    bool (*has_console)(void *ctx);
    /* Runs this program again with these arguments and those rights; waits for its end. Returns 0,
     * or a code of Windows. */
    uint32_t (*restart)(void *ctx, int argc, char *const *argv, int *ret_exit_code);
};
/* NULL on other systems. */
const struct ew_elevator *ew_elevator_real(void);
/* True: this process is done and *ret_code is its exit code. False: it has the rights, or was
 * started by restart, and continues. */
bool ew_elevate(const struct ew_elevator *elevator, int argc, char *const *argv,
                const struct ew_options *options, int *ret_code);
/* This process was started by restart. */
void ew_elevate_arrived(void);

/* ------------------------------------------------- watch_run.c: one watch, from start to end */

/* Gets everything, in the order of delivery. Each returns 0 or a negative code, which ends the
 * watch. */
struct ew_watch_tap {
    int (*meta)(void *ctx, const struct etwatch_meta *meta);
    int (*samples)(void *ctx, const struct etwatch_samples *batch);
    int (*events)(void *ctx, const struct etwatch_events *batch);
    int (*loss)(void *ctx, const struct etwatch_loss *loss);
    int (*alert)(void *ctx, const struct etwatch_alert *alert);
    int (*system)(void *ctx, const struct etwatch_system *system);  /* may be NULL */
    int (*flush)(void *ctx);                                        /* the end of a delivery */
    int (*devices)(void *ctx, const struct etwatch_devices *batch); /* may be NULL */
    int (*stats)(void *ctx, const struct etwatch_stats *stats);
};

struct ew_watch {
    const struct ew_options *options;
    const struct ew_watch_tap *tap; /* may be NULL */
    void *tap_ctx;
    struct ew_output output;
    bool output_open;
    struct ew_place *place;    /* of an output that gets its name when it is complete; or NULL */
    struct etwatch_sink *sink; /* NULL: no lines are written (top, run without --json or --csv) */
    struct etwatch_monitor *monitor;
    struct etwatch_gpu_trace *gpu_trace; /* --gpu-trace; or NULL */
    struct etwatch_meta meta;
    bool meta_known;
    bool stopped;
    struct etwatch_stats stats;         /* after ew_cli_watch_stop */
    struct etwatch_aggregator *windows; /* --window */
    uint64_t end_raw_ns;                /* --duration; 0: no end */
    uint64_t end_unix_ns;               /* the same for a recording, in its own time */
    bool past_end;
    uint64_t opened_cpu_ns; /* CPU time of this thread when watching began */
    uint64_t live;          /* processes that started and have not exited */
    bool any_started;
    uint64_t alerts;
    char last_alert[512]; /* in words; "": none yet */
    int error;            /* of the sink, the monitor or a callback: ETWATCH_E* */
    /* May be NULL. Each sample, before it is written; 0 or a negative code. */
    int (*on_sample)(void *ctx, const struct etwatch_sample *sample);
    void (*on_events)(void *ctx, const struct etwatch_events *batch);
    void (*on_loss)(void *ctx, const struct etwatch_loss *loss);
    void (*on_device)(void *ctx, const struct etwatch_device *device);
    /* After the last sample, before the last line; may write to output. */
    int (*on_end)(void *ctx);
    struct etwatch_system_reader *system;  /* --system-stats */
    uint64_t system_next_ns;               /* raw clock: the next reading */
    uint64_t system_started, system_ended; /* processes since the last reading */
    bool no_samples;                       /* write neither samples nor events */
    bool no_events;                        /* write no events */
    void *ctx;
};

/* The format of the data: JSON Lines, CSV or the table. */
uint32_t ew_cli_text_format(const struct ew_options *options);
/* Opens the output and creates the sink (format 0: none). Nothing is watched yet. An exit code. */
int ew_cli_watch_prepare(struct ew_watch *watch, const struct ew_options *options, uint32_t format);
/* Watches the selected processes, and pid unless it is 0; then drops privileges. An exit code. */
int ew_cli_watch_open(struct ew_watch *watch, uint32_t pid);
/* Waits for the next delivery, at most a quarter of a second. False: the watch is over. */
bool ew_cli_watch_step(struct ew_watch *watch, int max_ms);
/* Stops and writes the last lines; watch->stats is valid afterwards. */
void ew_cli_watch_stop(struct ew_watch *watch);
/* Stops if necessary, prints errors, frees everything. An exit code. */
int ew_cli_watch_close(struct ew_watch *watch);
/* One line about the cost and the losses of the watch, for people. */
void ew_cli_watch_put_cost(struct ew_buf *out, const struct etwatch_stats *stats);

/* --------------------------------------------------- recording.c: reading recordings */

struct ew_recording {
    const struct ew_options *options;
    struct ew_output output;
    bool output_open;
    struct ew_place *place; /* of an output that gets its name when it is complete; or NULL */
    bool complete;
    struct etwatch_sink *sink;
    struct etwatch_trace *trace;
    bool show_progress, progress_shown;
    uint64_t begun_ns, shown_ns; /* raw clock */
};

/* The processes that the options select; the caller sets the rest. */
struct etwatch_trace_options ew_cli_recording_selection(const struct ew_options *options);
/* Opens the files, and gives up every right but to read them and to write what is open: a recording
 * may be hostile. Call when the output is open. An exit code; a filter that the system refuses is
 * reported and no failure. */
int ew_cli_recording_confine(const struct ew_options *options);
/* Opens the output, then the recordings. format 0: no sink. sink_flags: in addition to those of the
 * options. An exit code. */
int ew_cli_recording_open(struct ew_recording *recording, const struct ew_options *options,
                          uint32_t format, uint32_t sink_flags);
/* Prints errors (rc: the result of reading), losses and damage, and frees everything. An exit code.
 */
int ew_cli_recording_close(struct ew_recording *recording, int rc,
                           const struct etwatch_error_info *error);
/* Writes what is known about the recordings as a whole. system may be NULL. */
int ew_cli_recording_put_trace(struct ew_recording *recording,
                               const struct etwatch_trace_system *system);
/* Prints damage also with -q: the data alone looks complete. */
void ew_cli_recording_report_damage(const struct ew_recording *recording,
                                    const struct etwatch_trace_stats *stats);
/* The progress bar: an on_progress with the recording as its ctx. */
int ew_cli_recording_on_progress(void *recording, uint64_t done, uint64_t all);
/* Removes the bar. */
void ew_cli_recording_hide_progress(struct ew_recording *recording);

/* events --count-by-type: the number of events of each type. */
struct ew_histogram {
    struct etwatch_trace_class *kinds; /* their strings belong to the histogram */
    uint32_t count, size;
    uint32_t *index; /* hash table: position + 1, or 0 */
    uint32_t mask;
};

void ew_histogram_init(struct ew_histogram *histogram);
void ew_histogram_done(struct ew_histogram *histogram);
/* 0 or ETWATCH_ENOMEM. */
int ew_histogram_add(struct ew_histogram *histogram, const struct etwatch_trace_event *event);
/* Writes them to the sink, the most frequent first. */
int ew_histogram_put(struct ew_histogram *histogram, struct etwatch_sink *sink);

/* ------------------------------------------------ record_file.c: the file of a recording */

enum { EW_RING_PARTS = 16 };

/* A part of the ring, readable by itself. */
struct ew_ring_part {
    char *bytes;
    size_t len, size;
    uint64_t begun_ns;
};

/* One file, a sequence of files of which the last few are kept, or a ring in memory that becomes a
 * file on request. */
struct ew_record_file {
    const char *path; /* as given */
    struct ew_place *place;
    uint64_t max_bytes;  /* of a file, or of the ring; 0: no limit */
    uint32_t keep_files; /* --rotate; 0: a single file */
    uint64_t ring_ns;    /* 0: no ring */

    struct ew_output output;
    bool open;
    uint32_t number; /* of the current file, or of the next dump, from 1; 0: none yet */
    char *name;      /* of that file */
    uint64_t bytes;  /* in that file */
    uint64_t total_bytes;
    int os_error;

    struct ew_ring_part parts[EW_RING_PARTS]; /* the newest last */
    uint32_t part_count;
    uint64_t ring_bytes;
    uint64_t dropped_parts;
    uint32_t dumps;
};

/* Opens the file, so that its errors are reported before anything is started. mode: --mode. 0 or
 * the errno. */
int ew_cli_record_file_open(struct ew_record_file *file, const char *path, uint32_t mode,
                            uint64_t max_bytes, uint32_t keep_files, uint64_t ring_ns);
/* An etwatch_write_fn. A packet that a full disk took only in part is removed again. */
int ew_cli_record_file_write(void *file, const void *bytes, size_t len);
/* The file has its maximum size. */
bool ew_cli_record_file_full(const struct ew_record_file *file);
/* The next file or part must begin: flush, call ew_cli_record_file_next, restart the sink. */
bool ew_cli_record_file_due(const struct ew_record_file *file, uint64_t now_ns);
/* 0 or the errno. */
int ew_cli_record_file_next(struct ew_record_file *file, uint64_t now_ns);
/* Writes the ring to its file and empties it. 0 or the errno. */
int ew_cli_record_file_dump(struct ew_record_file *file);
/* 0 or the errno. A ring that was never written leaves no file, and neither does an empty recording
 * if it has failed. May be called twice. */
int ew_cli_record_file_close(struct ew_record_file *file, bool failed);

/* ------------------------------------------------ process_table.c, summary.c: tables */

/* The columns of top and of the summary of run. */
enum ew_cli_process_column {
    EW_PROCESS_PID,
    EW_PROCESS_NAME,
    EW_PROCESS_OWNER,
    EW_PROCESS_CPU_PERCENT,
    EW_PROCESS_CPU,
    EW_PROCESS_USER,
    EW_PROCESS_KERNEL,
    EW_PROCESS_WAIT,
    EW_PROCESS_SWITCHES_VOLUNTARY,
    EW_PROCESS_SWITCHES_INVOLUNTARY,
    EW_PROCESS_FAULTS_MINOR,
    EW_PROCESS_FAULTS_MAJOR,
    EW_PROCESS_RSS,
    EW_PROCESS_RSS_PEAK,
    EW_PROCESS_READ,
    EW_PROCESS_WRITE,
    EW_PROCESS_THREADS,
    EW_PROCESS_GPU,
    EW_PROCESS_NPU,
    EW_PROCESS_ENERGY,
};

void ew_cli_put_joules(struct ew_buf *out, uint64_t uj);
struct ew_grid_column ew_cli_process_column(enum ew_cli_process_column id);
/* Adds the cell of a row. wall_ns: the time that CPU% refers to. */
void ew_cli_process_column_put(struct ew_grid *grid, enum ew_cli_process_column id,
                               const struct etwatch_sample *sum, uint64_t wall_ns);

/* The same; depth: of the row in a tree, which indents its name. */
void ew_cli_process_column_put_at(struct ew_grid *grid, enum ew_cli_process_column id,
                                  const struct etwatch_sample *sum, uint64_t wall_ns,
                                  uint32_t depth);

/* ------------------------------------------------- top_list.c, top_screen.c: the screen of top */

enum ew_screen_sort {
    EW_SORT_CPU,
    EW_SORT_WAIT,
    EW_SORT_MEMORY,
    EW_SORT_FAULTS,
    EW_SORT_SWITCHES,
    EW_SORT_READ,
    EW_SORT_WRITE,
    EW_SORT_THREADS,
    EW_SORT_COUNT,
};

/* A process or thread. Samples arrive between two screens and invalidate the rows of the rollup,
 * so an entry carries the identity of what the user sees. */
struct ew_top_identity {
    uint32_t pid, tid;
    uint64_t start_ns;
    char name[24];
};

struct ew_top_entry {
    struct ew_top_identity identity;
    uint32_t row;   /* of the last etwatch_rollup_sort */
    uint16_t depth; /* in the tree */
};

struct ew_top_node {
    uint32_t parent, first_child, last_child, next_sibling; /* UINT32_MAX: none */
    uint32_t row;
    bool visited;
    struct ew_top_identity identity;
};

struct ew_top_pid {
    uint32_t pid, node;
    uint64_t start_ns;
};

struct ew_top_list {
    struct ew_top_entry *entries; /* in the order of the screen */
    uint32_t count, size;
    struct ew_top_node *nodes;
    struct ew_top_pid *by_pid;
};

enum {
    EW_TOP_COLUMNS_MAX = 16,
    EW_TOP_HISTORY = 300,
    EW_TOP_FILTER_SIZE = 48,
    EW_TOP_PROMPT_SIZE = 160
};

/* What top shows and how. Zeroed storage is a valid one; ew_screen_done frees it. */
enum { EW_TOP_DEVICES_MAX = 8 };

/* The latest reading of a device: a bar, or only its text. */
struct ew_top_device {
    uint32_t kind, index;
    char driver[16], id[32];
    double percent; /* < 0: unknown */
    char text[64];
};

struct ew_screen {
    enum ew_screen_sort sort;
    bool help, color, utf8, tree, hide_threads, paused;
    ew_utc_offset utc_offset; /* NULL: times are in UTC */
    const char *alert;        /* the last alert in words; NULL or "": none */
    bool active_only;         /* only processes that ran since the last screen */
    uint32_t columns;         /* 0: lines are not cut */
    uint32_t rows;            /* of the whole screen; 0: no limit */
    char filter[EW_TOP_FILTER_SIZE];
    char prompt[EW_TOP_PROMPT_SIZE]; /* instead of the keys; "": none */
    bool any_selected;
    struct ew_top_identity selected;
    bool system_known;
    struct etwatch_system system;
    struct ew_top_device devices[EW_TOP_DEVICES_MAX];
    uint32_t device_count;
    double history[EW_TOP_HISTORY]; /* CPU use of the machine, once per second, newest last */
    uint32_t history_count;
    /* Set by ew_screen_write. */
    struct ew_top_list list;
    uint32_t at;              /* the entry that is selected */
    uint32_t first;           /* the first entry on the screen */
    uint32_t page, table_row; /* rows of the table, and where it begins */
    /* The columns that fit, and where their headings end. */
    enum ew_cli_process_column visible[EW_TOP_COLUMNS_MAX];
    uint32_t visible_count;
    uint32_t heading_ends[EW_TOP_COLUMNS_MAX];
};

uint32_t ew_screen_sort_metric(enum ew_screen_sort sort);
/* One screen of top as text. wall_ns: the time that the sums refer to. 0 or a negative code. */
int ew_screen_write(struct ew_screen *screen, struct etwatch_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *out);
/* Keeps the reading of a device for the next screen. */
void ew_screen_device(struct ew_screen *screen, const struct etwatch_device *device);
/* Selects an entry of the list; values outside are moved to its ends. */
void ew_screen_select(struct ew_screen *screen, int64_t at);
/* Sorts by the column of the heading at this position; false if there is no such order. */
bool ew_screen_sort_at(struct ew_screen *screen, uint32_t column);
/* The rows that the screen shows, in their order. 0 or a negative code. */
int ew_screen_list_fill(struct ew_top_list *list, const struct ew_screen *screen,
                        struct etwatch_rollup *rollup);
void ew_screen_list_done(struct ew_top_list *list);

/* The devices of a run (device_summary.c). */
enum { EW_DEVICE_SUMS_MAX = 64 };
struct ew_device_sum {
    uint32_t kind;
    char id[64], name[96];
    bool has_energy, has_parts;
    uint64_t energy_uj, idle_uj, watched_uj, other_uj;
};
struct ew_device_summary {
    struct ew_device_sum sums[EW_DEVICE_SUMS_MAX];
    uint32_t count;
    bool has_gpu, has_npu;
    uint64_t gpu_ns, npu_ns;
    uint64_t memory_ns, memory_bytes, memory_peak_bytes; /* of all processes */
};
void ew_cli_devices_add(struct ew_device_summary *summary, const struct etwatch_device *device);
void ew_cli_devices_sample(struct ew_device_summary *summary, const struct etwatch_sample *sample);
/* estimated: metrics of processes that are estimates. Writes nothing if nothing is known. */
void ew_cli_devices_write(const struct ew_device_summary *summary, const char *command,
                          const struct etwatch_metric_set *estimated, struct ew_buf *out);

/* The summary at the end of run: what each process and thread did. */
struct ew_summary {
    struct ew_device_summary devices;
    struct etwatch_metric_set estimated;
    struct etwatch_rollup *rollup;
    uint64_t started;
    uint64_t exited;
    /* The child, when it was released and when it exited. It was held before; that time is not its
     * own. 0: unknown. */
    uint32_t child_pid;
    uint64_t released_ns, ended_ns;
};

/* 0 or ETWATCH_ENOMEM. */
int ew_summary_init(struct ew_summary *summary);
void ew_summary_done(struct ew_summary *summary);
int ew_summary_add(struct ew_summary *summary, const struct etwatch_sample *sample);
/* how_it_ended: "exit status 0", …; width 0: lines are not cut. 0 or a negative code. */
int ew_summary_write(struct ew_summary *summary, struct ew_buf *out, const char *command,
                     const char *how_it_ended, const struct etwatch_stats *stats, uint32_t width,
                     bool color);

/* ------------------------------------------- gpu_view.c: run and record --gpu-trace */

struct ew_gpu_view {
    const struct ew_options *options;
    struct etwatch_gpu_trace *trace;
    struct etwatch_sink *sink;   /* gets each operation; NULL: none does */
    struct etwatch_spans *spans; /* likewise, to be joined with spans */
    uint64_t ops;
    int error;
};

/* Listens, and prepares the environment of the command. An exit code. */
int ew_cli_gpu_init(struct ew_gpu_view *view, const struct ew_options *options);
void ew_cli_gpu_done(struct ew_gpu_view *view);
/* After a reading: passes the states of the processes to the spans. */
void ew_cli_gpu_step(struct ew_gpu_view *view);
/* Writes the sums to the sink, which must not be NULL. 0 or a negative code. */
int ew_cli_gpu_end(struct ew_gpu_view *view);
/* Whether the GPU time of all CUDA processes is exact, and there are some. */
bool ew_cli_gpu_is_exact(const struct ew_gpu_view *view);
/* The report for people. 0 or a negative code. */
int ew_cli_gpu_write(const struct ew_gpu_view *view, struct ew_buf *out);
/* gpu_environment_*.c: sets the variables that the command inherits. An exit code. */
int ew_cli_gpu_environment(const char *address);
enum ew_cupti {
    EW_CUPTI_UNUSED, /* no --gpu-trace on this system */
    EW_CUPTI_NO_DRIVER,
    EW_CUPTI_MISSING,
    EW_CUPTI_FOUND,
};
/* Where a CUDA program finds CUPTI. Missing: the path is that of ETWATCH_CUPTI, or "". proc_root:
 * NULL is /proc. */
enum ew_cupti ew_cli_gpu_cupti(const char *proc_root, char *ret_path, size_t size);

/* --------------------------------------------------- waits_view.c: waits and run --waits */

struct ew_waits_view {
    struct etwatch_waits *waits;
    struct ew_ids pids; /* the processes to show */
    bool all;
};

/* 0 or ETWATCH_ENOMEM. */
int ew_cli_waits_init(struct ew_waits_view *view);
void ew_cli_waits_done(struct ew_waits_view *view);
/* Also shows this process. 0 or ETWATCH_ENOMEM. */
int ew_cli_waits_add(struct ew_waits_view *view, uint32_t pid);
/* What a watch delivers: processes that start are shown. */
int ew_cli_waits_sample(struct ew_waits_view *view, const struct etwatch_sample *sample);
void ew_cli_waits_events(struct ew_waits_view *view, const struct etwatch_events *batch);
/* After the last event. */
void ew_cli_waits_end(struct ew_waits_view *view, const struct ew_options *options);
/* Writes tables, or JSON Lines. width 0: lines are not cut. 0 or a negative code. */
int ew_cli_waits_write(const struct ew_waits_view *view, struct ew_buf *out, bool json,
                       uint32_t width, bool color);
/* The same to an output; to_screen: with the width and colour of terminal `which`, if it is one. */
int ew_cli_waits_print(const struct ew_waits_view *view, struct ew_output *output, bool json,
                       bool to_screen, int which);

/* ------------------------------------------------------- operators_*.c: run --operators */

/* Where ONNX Runtime creates its profiles. */
struct ew_operators_folder {
    char path[512];
    int pipe_fd;
    int64_t guard; /* the process that removes the folder; 0: there is none */
};

/* Creates the folder and sets ETWATCH_OPERATORS. An exit code. */
int ew_cli_operators_folder_open(struct ew_operators_folder *folder);
/* Returns when the folder is gone. Also after a failed or missing open. */
void ew_cli_operators_folder_close(struct ew_operators_folder *folder);

struct ew_operator_sum;

/* Zeroed is empty. */
struct ew_operators_view {
    struct ew_operator_sum *sums; /* by session and node */
    uint32_t count;
    uint32_t *places; /* number of a sum + 1, by its hash */
    uint32_t place_count;
    uint64_t operators, dropped;
    uint64_t lost; /* as the receiver counts them */
};

void ew_cli_operators_add(struct ew_operators_view *view, const struct etwatch_operator *op);
void ew_cli_operators_write(struct ew_operators_view *view, struct ew_buf *out);
void ew_cli_operators_done(struct ew_operators_view *view);

/* ---------------------------------------------------------------- py_spy_*.c: run --py-spy */

struct ew_cli_py_spy {
    struct ew_child child;
    int out_fd, message_fd; /* memory; 0 or -1: none */
    bool held;
};

/* Lets the hook mark the time. False: py-spy is not in PATH. */
bool ew_cli_py_spy_prepare(void);
/* Creates it, held, for the process with this pid. 0 or the errno. */
int ew_cli_py_spy_hold(struct ew_cli_py_spy *spy, uint32_t pid);
void ew_cli_py_spy_release(struct ew_cli_py_spy *spy);
/* Until it has ended; it is ended if that takes longer than 10 s. */
void ew_cli_py_spy_wait(struct ew_cli_py_spy *spy);
/* What it wrote, to be freed; NULL: nothing. */
char *ew_cli_py_spy_text(const struct ew_cli_py_spy *spy, size_t *ret_size);
/* Its messages in one line. */
void ew_cli_py_spy_message(const struct ew_cli_py_spy *spy, char *text, size_t size);
void ew_cli_py_spy_close(struct ew_cli_py_spy *spy);

/* ------------------ spans_python.c: run --onnx: inferences of Python programs without the hook */

struct ew_spans_held;

struct ew_spans_python {
    struct etwatch_probes *probes; /* in the Python package; NULL: none */
    uint32_t *hooked;              /* processes that mark inferences themselves */
    size_t hooked_count, hooked_size;
    struct ew_spans_held *held; /* by probes, until it is known whether the process marks them */
    size_t held_count, held_size;
    uint64_t lost; /* found no room */
};

void ew_cli_spans_python_init(struct ew_spans_python *python);
void ew_cli_spans_python_done(struct ew_spans_python *python);
/* A mark of a program. */
void ew_cli_spans_python_mark(struct ew_spans_python *python, const struct etwatch_span *mark);
/* Reads the probes and passes on what ended before until_ns and is of a process that marks nothing.
 * 0 or a negative code. */
int ew_cli_spans_python_read(struct ew_spans_python *python, int64_t unix_minus_raw_ns,
                             uint64_t until_ns,
                             void (*on_span)(void *ctx, const struct etwatch_span *span),
                             void *ctx);

/* ------------------------- spans_tables.c: spans and operators as rows of CSV and Arrow */

struct etwatch_collector;

struct ew_spans_tables {
    struct ew_buf csv;                   /* --csv */
    struct etwatch_collector *collector; /* -o FILE.arrow; NULL: none */
    struct ew_output *output;            /* of the rows of spans */
    char *operators_path;                /* FILE.operators.arrow; NULL: none */
    struct ew_output operators;
    struct ew_place *operators_place;
};

/* Creates the file of the operators, if there is one. An exit code. */
int ew_cli_spans_tables_init(struct ew_spans_tables *tables, const struct ew_options *options);
/* Without an end before, the file of the operators is removed. */
void ew_cli_spans_tables_done(struct ew_spans_tables *tables);
/* Where the rows of spans are written. */
void ew_cli_spans_tables_output(struct ew_spans_tables *tables, struct ew_output *output);
void ew_cli_spans_tables_span(struct ew_spans_tables *tables, const struct etwatch_span *span);
void ew_cli_spans_tables_operator(struct ew_spans_tables *tables,
                                  const struct etwatch_operator *op);
/* CSV: what waits. 0 or a negative code. */
int ew_cli_spans_tables_flush(struct ew_spans_tables *tables);
/* Arrow: writes the files. 0 or a negative code. */
int ew_cli_spans_tables_end(struct ew_spans_tables *tables);
/* Rows that are not in the Arrow files. */
uint64_t ew_cli_spans_tables_dropped(const struct ew_spans_tables *tables);

/* ----------------------------------------------- spans_view.c: run --spans and --onnx */

struct ew_spans_view {
    const struct ew_options *options;
    struct etwatch_receiver *receiver;
    struct etwatch_probes *probes; /* --onnx; may be NULL */
    struct ew_spans_python python; /* run --onnx */
    struct etwatch_spans *spans;
    struct etwatch_sink *sink;     /* JSON; may be NULL */
    struct ew_spans_tables tables; /* --csv, -o FILE.arrow */
    uint64_t events, marks;
    uint64_t events_ns;                /* the latest event */
    bool with_gpu;                     /* --gpu-trace: operations arrive later than events */
    struct ew_operators_folder folder; /* --operators */
    struct ew_operators_view operators;
    struct ew_recorded_mark *recorded; /* of a recording, by their end */
    size_t recorded_count, recorded_size, recorded_at;
    struct ew_kept_span *kept; /* --py-spy */
    size_t kept_count, kept_size;
    uint64_t not_kept;
    struct ew_output folded; /* of --py-spy */
    bool folded_open;
    int error;
    void (*each)(void *ctx, const struct etwatch_span *span); /* serve; may be NULL */
    void *each_ctx;
};

/* Listens for marks and prepares the environment of the command. An exit code. */
int ew_cli_spans_init(struct ew_spans_view *view, const struct ew_options *options);
/* The same for processes that run already: probes, and no marks. */
int ew_cli_spans_init_running(struct ew_spans_view *view, const struct ew_options *options);
/* The same for a recording: what ew_cli_spans_read finds in it. */
int ew_cli_spans_init_recording(struct ew_spans_view *view, const struct ew_options *options);
/* Reads the inferences of the recording; their causes are in the events of the watch. An exit code.
 */
int ew_cli_spans_read(struct ew_spans_view *view);
/* serve: --spans receives the marks of programs that have the address in their environment, --onnx
 * probes every process. each gets every explained span. */
int ew_cli_spans_init_serve(struct ew_spans_view *view, const struct ew_options *options,
                            void (*each)(void *ctx, const struct etwatch_span *span), void *ctx);
void ew_cli_spans_done(struct ew_spans_view *view);
/* Where spans are written. */
void ew_cli_spans_output(struct ew_spans_view *view, struct etwatch_sink *sink,
                         struct ew_output *output);
/* What the watch delivers. */
int ew_cli_spans_sample(struct ew_spans_view *view, const struct etwatch_sample *sample);
void ew_cli_spans_events(struct ew_spans_view *view, const struct etwatch_events *batch);
void ew_cli_spans_loss(struct ew_spans_view *view, const struct etwatch_loss *loss);
/* Reads new marks and explains the spans with complete events; last: all of them. 0 or a
 * negative code. */
int ew_cli_spans_step(struct ew_spans_view *view, const struct etwatch_meta *meta, bool last);
/* Joins the samples of py-spy, which has ended, with the spans, and writes them. */
void ew_cli_spans_py_spy(struct ew_spans_view *view, const struct etwatch_meta *meta,
                         const struct ew_cli_py_spy *spy);
/* JSON: the groups. */
int ew_cli_spans_end(struct ew_spans_view *view);
/* The report for people. */
int ew_cli_spans_write(struct ew_spans_view *view, struct ew_buf *out);
/* spans_environment_*.c: sets the variables that the command inherits. An exit code. */
int ew_cli_spans_environment(const char *address, bool onnx);

/* ---------------------------------------------------------------------------- serve */

/* Whether the files of serve are Perfetto traces, which have the samples that were recorded. */
bool ew_cli_serve_is_perfetto(const struct ew_options *options);
/* Reads them and appends everything as frames, which are sent now and then. An exit code. */
int ew_cli_serve_replay(const struct ew_options *options, struct ew_buf *frames);
/* An ew_server_details_fn; ctx: const struct ew_options. */
void ew_cli_serve_details(void *ctx, const struct ew_serve_request *request,
                          struct ew_server_link *to);

#endif
