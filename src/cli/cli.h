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

#include <etwatch/rollup.h>
#include <etwatch/sink.h>
#include <etwatch/trace.h>
#include <etwatch/waits.h>
#include <etwatch/window.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/grid.h"
#include "cli/args/args.h"

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
int ew_cmd_sessions(const struct ew_options *options);
int ew_cmd_stat(const struct ew_options *options);
int ew_cmd_top(const struct ew_options *options);
int ew_cmd_waits(const struct ew_options *options);

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

/* Opens path for writing, or standard output if it is NULL. 0 or the errno. */
int ew_output_open(struct ew_output *output, const char *path);
/* 0 or the errno: a full disk may be reported as late as this. */
int ew_output_close(struct ew_output *output);
/* An etwatch_write_fn: writes everything, or returns a negative code and sets os_error. */
int ew_output_write(void *output, const void *bytes, size_t len);
/* Truncates a file to this size, if possible. */
void ew_output_truncate(struct ew_output *output, uint64_t bytes);
/* The reader of a pipe has exited: not an error, but the end of the output. */
bool ew_output_reader_gone(const struct ew_output *output);
/* Whether path must not be replaced: a device, a pipe, a directory, a symbolic link. */
bool ew_output_is_special(const char *path);
/* Renames `from` to `path`, replacing it. 0 or the errno. */
int ew_output_replace(const char *from, const char *path);

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
/* The next pending key, or 0. */
int ew_term_key(void);

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

/* quote.c: a Windows command line from arguments. */

/* Adds one argument so that a program that splits its command line by the rules of Microsoft's C
 * library (and CommandLineToArgvW) gets exactly this text. */
void ew_quote_argument(struct ew_buf *out, const char *argument);
/* Adds the program. No escapes exist there: false if it contains a quote. */
bool ew_quote_program(struct ew_buf *out, const char *program);
/* Whether Windows runs this program with its command interpreter, which has other rules and
 * executes what follows an & in an argument. */
bool ew_quote_is_batch(const char *program);

/* ------------------------------------------------- watch_run.c: one watch, from start to end */

/* Gets everything, in the order of delivery. Each returns 0 or a negative code, which ends the
 * watch. */
struct ew_watch_tap {
    int (*meta)(void *ctx, const struct etwatch_meta *meta);
    int (*samples)(void *ctx, const struct etwatch_samples *batch);
    int (*events)(void *ctx, const struct etwatch_events *batch);
    int (*loss)(void *ctx, const struct etwatch_loss *loss);
    int (*alert)(void *ctx, const struct etwatch_alert *alert);
    int (*flush)(void *ctx); /* the end of a delivery */
    int (*stats)(void *ctx, const struct etwatch_stats *stats);
};

struct ew_watch {
    const struct ew_options *options;
    const struct ew_watch_tap *tap; /* may be NULL */
    void *tap_ctx;
    struct ew_output output;
    bool output_open;
    struct etwatch_sink *sink; /* NULL: no lines are written (top, run without --json or --csv) */
    struct etwatch_monitor *monitor;
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
    /* After the last sample, before the last line; may write to output. */
    int (*on_end)(void *ctx);
    struct etwatch_system_reader *system;  /* --system-stats */
    uint64_t system_next_ns;               /* raw clock: the next reading */
    uint64_t system_started, system_ended; /* processes since the last reading */
    bool no_samples;                       /* write neither samples nor events */
    bool no_events;                        /* write no events */
    void *ctx;
};

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
    char *part;    /* the temporary name of the output until it is complete; NULL: none */
    bool complete; /* the output may get its name */
    struct etwatch_sink *sink;
    struct etwatch_trace *trace;
    bool show_progress, progress_shown;
    uint64_t begun_ns, shown_ns; /* raw clock */
};

/* The processes that the options select; the caller sets the rest. */
struct etwatch_trace_options ew_cli_recording_selection(const struct ew_options *options);
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
    const char *path;    /* as given */
    uint64_t max_bytes;  /* of a file, or of the ring; 0: no limit */
    uint32_t keep_files; /* --rotate; 0: a single file */
    uint64_t ring_ns;    /* 0: no ring */

    struct ew_output output;
    bool open;
    uint32_t number; /* of the current file, or of the next dump, from 1 */
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

/* Opens the file, so that its errors are reported before anything is started. 0 or the errno. */
int ew_cli_record_file_open(struct ew_record_file *file, const char *path, uint64_t max_bytes,
                            uint32_t keep_files, uint64_t ring_ns);
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
/* 0 or the errno. A ring that was never written leaves no file. */
int ew_cli_record_file_close(struct ew_record_file *file);

/* ----------------------------------------- process_table.c, screen.c, summary.c: tables */

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
};

struct ew_grid_column ew_cli_process_column(enum ew_cli_process_column id);
/* Adds the cell of a row. wall_ns: the time that CPU% refers to. */
void ew_cli_process_column_put(struct ew_grid *grid, enum ew_cli_process_column id,
                               const struct etwatch_sample *sum, uint64_t wall_ns);

enum ew_screen_sort { EW_SORT_CPU, EW_SORT_MEMORY, EW_SORT_IO };

struct ew_screen {
    enum ew_screen_sort sort;
    bool help;
    bool color;
    const char *alert; /* the last alert in words; NULL or "": none */
    bool active_only;  /* only processes that ran since the last screen */
    uint32_t columns;  /* 0: lines are not cut */
    uint32_t rows;     /* of the whole screen; 0: no limit */
};

/* One screen of top as text. wall_ns: the time that the sums refer to. 0 or a negative code. */
int ew_screen_write(const struct ew_screen *screen, struct etwatch_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t wall_ns, struct ew_buf *out);

/* The summary at the end of run: what each process and thread did. */
struct ew_summary {
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

#endif
