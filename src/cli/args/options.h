/* SPDX-License-Identifier: MIT */
/* The command line and the configuration file, turned into what is wanted. */
#ifndef EW_CLI_ARGS_OPTIONS_H
#define EW_CLI_ARGS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/etwatch.h>

enum ew_command {
    EW_CMD_NONE = 0,
    EW_CMD_RUN = 1 << 0,
    EW_CMD_STAT = 1 << 1,
    EW_CMD_TOP = 1 << 2,
    EW_CMD_DOCTOR = 1 << 3,
    EW_CMD_REPORT = 1 << 4,
    EW_CMD_EVENTS = 1 << 5,
    EW_CMD_RECORD = 1 << 6,
    EW_CMD_SESSIONS = 1 << 7,
    EW_CMD_METRICS = 1 << 8,
    EW_CMD_EXPORT = 1 << 9,
    EW_CMD_CONFIG = 1 << 10,
    EW_CMD_WAITS = 1 << 11,
};

/* The exit codes, the same for every command. */
enum ew_exit {
    EW_EXIT_OK = 0,
    EW_EXIT_FAILED = 1,
    EW_EXIT_USAGE = 2,
    EW_EXIT_RIGHTS = 3,
    EW_EXIT_CANNOT_EXEC = 126,
    EW_EXIT_NOT_FOUND = 127,
    EW_EXIT_SIGNAL = 128, /* plus its number */
};

/* Words of a list such as -p 1,2 -p 3; the words are the list's own. */
struct ew_list {
    char **words;
    uint32_t count;
};

/* About ETW sessions; 0 and NULL: not given. */
struct ew_etw_options {
    char *session; /* another's, to be read */
    char *name, *kernel, *stacks;
    uint32_t buffer_kb, min_buffers, max_buffers, flush_ms, memory_mb, profile_hz;
    struct ew_list providers; /* as they were written */
};

struct ew_export_options {
    uint32_t format; /* enum etwatch_export_format; 0: not given */
    uint32_t table;  /* enum etwatch_table; 0: not given */
    bool fields, typed, timestamps;
};

enum { EW_RATES_MAX = 64 };

/* An option as it was given: on the command line (where is "") or in a file. */
struct ew_origin {
    const char *option; /* its long name */
    char *value, *where;
};

/* Which of the values of a window are wanted; none: all. */
enum ew_aggregation {
    EW_AGGREGATE_AVG = 1 << 0,
    EW_AGGREGATE_MAX = 1 << 1,
    EW_AGGREGATE_P95 = 1 << 2,
    EW_AGGREGATE_P99 = 1 << 3,
};

struct ew_options {
    enum ew_command command;
    bool help, version;

    double hz, budget_percent, profile_percent, duration_s, window_s; /* 0: not given */
    bool budget_off;
    uint32_t latency_ms;
    uint32_t source;       /* enum etwatch_source */
    uint32_t config_flags; /* enum etwatch_config_flag */
    bool json, csv, quiet, wait_all;
    char *output_path, *proc_root, *config_path; /* NULL: not given */

    struct etwatch_metric_set metrics;        /* empty: not given */
    struct etwatch_metric_set polled_metrics; /* polled although the source has events */
    struct etwatch_rate rates[EW_RATES_MAX];
    uint32_t rate_count;
    bool show_metrics, system;

    struct ew_list names, cgroups, columns, alerts;
    uint32_t *pids, *uids;
    uint32_t pid_count, uid_count;
    bool uid_numbers;                          /* some user was given by his number */
    uint32_t keep;                             /* samples in the ring; 0: all are written at once */
    uint8_t aggregation[ETWATCH_METRIC_COUNT]; /* enum ew_aggregation, by metric */
    bool aggregates;                           /* it was asked for on the command line */
    bool check, show;                          /* config */
    struct ew_origin *origins;                 /* config: in the order given */
    uint32_t origin_count;
    uint32_t settings; /* of the file */
    uint32_t top_n, top_n_metric;
    bool busiest_by;
    struct ew_list exclude_names, exclude_cgroups;
    uint32_t *exclude_pids, *exclude_uids;
    uint32_t exclude_pid_count, exclude_uid_count;

    /* Recordings. */
    struct ew_list files, providers, events;
    uint64_t from_ns, until_ns, limit; /* 0: not given */
    uint32_t workers;
    bool images, count, raw;
    struct ew_export_options export;

    bool cleanup;                /* sessions */
    bool waits;                  /* run */
    uint64_t max_bytes, ring_ns; /* record; 0: not given */
    uint32_t rotate;             /* likewise */
    uint32_t triggers;           /* bit per alert that is one */
    struct ew_etw_options etw;

    char **child; /* run, record: the command, NULL at its end; part of argv */
};

enum { EW_MESSAGE_SIZE = 512 };

/*
 * Reads argv[1…]. Returns 0, or EW_EXIT_USAGE with one line in message that names what is wrong and
 * the right form. *ret_options is valid in both cases; ew_options_done frees what it holds.
 */
int ew_options_parse(int argc, char **argv, struct ew_options *ret_options, char *message);
void ew_options_done(struct ew_options *options);

/* "run", …; NULL for EW_CMD_NONE. */
const char *ew_command_name(enum ew_command command);

/* One option as the parser and the help know it. */
struct ew_option_info {
    const char *name;  /* without the dashes */
    char letter;       /* 0: none */
    const char *value; /* "N", "FILE"; NULL: a switch */
    const char *help;
    uint32_t commands; /* enum ew_command bits */
};
/* Option i in the order of the help, NULL after the last. */
const struct ew_option_info *ew_option_info(size_t i);

/* The text of --help: of one command, or of the program for EW_CMD_NONE. */
struct ew_buf;
void ew_help_write(struct ew_buf *out, enum ew_command command);

#endif
