/* SPDX-License-Identifier: MIT */
/*
 * The command line and the configuration file. One table (option_table.c) describes every option:
 * its names, its value type, where the value goes, which commands have it, its help. The command
 * line (options.c), the configuration file (config_file.c, config_keys.c), --help (help.c) and
 * `config --show` walk that table.
 */
#ifndef EW_CLI_ARGS_H
#define EW_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <etwatch/session.h>

#include "base/error.h"

/* -------------------------------------------------------------------- the options */

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
    EW_CMD_SERVE = 1 << 12,
    EW_CMD_COMPARE = 1 << 14,
    EW_CMD_ONNX = 1 << 15,
    EW_CMD_SPANS = 1 << 16, /* becomes RUN with `spans` when it is parsed; has help of its own */
    EW_CMD_SERVICE = 1 << 17,
};

/* The exit codes, the same for every command. */
enum ew_exit {
    EW_EXIT_OK = 0,
    EW_EXIT_FAILED = 1,
    EW_EXIT_USAGE = 2,
    EW_EXIT_RIGHTS = 3,
    EW_EXIT_CANNOT_EXEC = 126,
    EW_EXIT_NOT_FOUND = 127,
    EW_EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* The words of -n a,b -n c; owned by the list. */
struct ew_list {
    char **words;
    uint32_t count;
};

/* The numbers of -p 1,2 -p 3; owned by the list. */
struct ew_ids {
    uint32_t *ids;
    uint32_t count;
};

/* ETW sessions; 0 and NULL: not given. */
struct ew_etw_options {
    char *session; /* an existing session to read */
    char *name, *kernel, *stacks;
    uint64_t buffer_bytes, memory_bytes, flush_ns;
    uint32_t min_buffers, max_buffers, cpu_sample_hz;
    struct ew_list providers; /* as written; ew_args_provider_parse has accepted them */
};

/* serve; NULL and 0: not given. */
struct ew_serve_options {
    char *listen, *token_file, *cert, *key;
    struct ew_list hosts;
    uint32_t prom_top;
    bool pid_label;
    bool no_details;
    uint64_t history_bytes;
    char *otlp;
    uint64_t otlp_interval_ns, otlp_queue_bytes;
    char *store;
    uint64_t store_keep_ns, store_bytes;
};

struct ew_export_options {
    uint32_t format; /* enum etwatch_export_format; 0: not given */
    uint32_t table;  /* enum etwatch_table; 0: not given */
    bool fields, typed, timestamps;
};

enum { EW_RATES_MAX = 64 };

/* An option as it was given, for config --show: on the command line (where is "") or in a file. */
struct ew_origin {
    const char *option; /* its long name */
    char *value, *where;
};

struct ew_options {
    enum ew_command command;
    bool help, version;
    bool elevate;

    double hz, budget_percent, profile_percent; /* 0: not given */
    uint64_t latency_ns, duration_ns, window_ns;
    bool budget_off;
    uint32_t source;       /* enum etwatch_source */
    uint32_t config_flags; /* enum etwatch_config_flag */
    bool json, csv, csv_raw, quiet, wait_all;
    uint64_t max_memory;                         /* bytes; 0: not given */
    uint32_t mode;                               /* of created files; 0: not given */
    char *output_path, *proc_root, *config_path; /* NULL: not given */
    bool gpu, npu, energy;
    bool gpu_trace;                                 /* run, record */
    char *sys_root, *nvml_library, *amdsmi_library; /* NULL: not given */

    struct etwatch_metric_set metrics;        /* empty: not given */
    struct etwatch_metric_set polled_metrics; /* gauges to poll next to an event source */
    struct etwatch_rate rates[EW_RATES_MAX];
    uint32_t rate_count;
    bool show_metrics, system_stats;

    struct ew_list names, cgroups, columns, alerts;
    struct ew_ids pids, users;
    struct ew_list exclude_names, exclude_cgroups;
    struct ew_ids exclude_pids, exclude_users;
    bool user_numbers;                         /* a user was given by number */
    uint32_t last_samples;                     /* samples in the ring; 0: no ring */
    uint8_t aggregation[ETWATCH_METRIC_COUNT]; /* enum etwatch_window_value, by metric */
    bool aggregate_given;                      /* on the command line */
    uint32_t top_n, top_n_metric;
    bool top_by_given;

    /* config */
    bool check, show;
    struct ew_origin *origins; /* in the order given */
    uint32_t origin_count;
    uint32_t settings; /* of the file */

    /* recordings */
    struct ew_list files, providers, events; /* files: of service, the action and its file */
    uint64_t from_ns, until_ns, limit;       /* 0: not given */
    uint32_t workers;
    bool images, count_by_type, payload;
    struct ew_export_options export;
    struct ew_serve_options serve;

    bool cleanup;          /* sessions */
    bool waits;            /* run */
    bool spans, onnx;      /* run, record */
    bool operators;        /* run --onnx */
    char *py_spy_path;     /* run --onnx; NULL: not given */
    uint32_t spans_format; /* their file, by its name: ETWATCH_EXPORT_ARROW, _PERFETTO, or 0 */
    uint64_t max_bytes, ring_ns; /* record; 0: not given */
    uint32_t rotate;             /* record */
    uint32_t triggers;           /* record: bit per alert that is a trigger */
    struct ew_etw_options etw;

    char **child; /* run, record: the command with a NULL at its end; part of argv */
};

enum { EW_MESSAGE_SIZE = 512 };

/*
 * Reads argv[1…]. Returns 0, or EW_EXIT_USAGE with one line in message (EW_MESSAGE_SIZE bytes) that
 * says what is wrong and the right form. *ret_options is valid in both cases; ew_options_done frees
 * it.
 */
int ew_options_parse(int argc, char **argv, struct ew_options *ret_options, char *message);
void ew_options_done(struct ew_options *options);

/* Whether any process is selected: -p, -n, -u, --cgroup, --container or -a. */
bool ew_options_select(const struct ew_options *options);
/* Whether only -p selects processes: watching ends with the last of them. */
bool ew_options_only_pids(const struct ew_options *options);

/* "run", …; NULL for EW_CMD_NONE. */
const char *ew_command_name(enum ew_command command);

/* The text of --help: of one command, or of the program for EW_CMD_NONE. */
struct ew_buf;
/* system: enum ew_system. Everything is parsed everywhere, but only what works here is shown. */
void ew_help_write(struct ew_buf *out, enum ew_command command, uint32_t system);

/* -------------------------------------------------------- etw_options.c: ETW sessions */

enum { EW_PROVIDERS_MAX = 16, EW_PROVIDER_PIDS_MAX = 8, EW_PROVIDER_EVENTS_MAX = 64 };

/* One --enable-provider: NAME[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST] */
struct ew_provider {
    char name[128];
    uint32_t level;
    uint64_t keywords;
    uint32_t pids[EW_PROVIDER_PIDS_MAX];
    uint32_t pid_count;
    uint16_t event_ids[EW_PROVIDER_EVENTS_MAX];
    uint32_t event_id_count;
};

/* NULL, or what is wrong with the text, for a message. */
const char *ew_args_provider_parse(const char *text, struct ew_provider *ret_provider);

/* The library's struct together with what its pointers point to. */
struct ew_session_options {
    struct etwatch_session_options options;
    struct etwatch_provider providers[EW_PROVIDERS_MAX];
    struct ew_provider parsed[EW_PROVIDERS_MAX];
};

/* False: no option describes a session, so the defaults apply. */
bool ew_args_session_options(const struct ew_options *options, struct ew_session_options *ret);

/* ---------------------------------------------------------------- the option table */

struct ew_parser {
    struct ew_options *options;
    char *message;   /* EW_MESSAGE_SIZE bytes */
    char where[256]; /* "" or "FILE:LINE:COLUMN: " */
    /* Keys of [storage] that the file has had so far. */
    bool storage_is_stream, storage_has_samples;
};

/* Writes the message and returns EW_EXIT_USAGE. */
int ew_parser_fail(struct ew_parser *parser, const char *format, ...) EW_PRINTF(2, 3);

enum ew_option_type {
    EW_OPTION_SWITCH,   /* bool; no value */
    EW_OPTION_FLAG,     /* a bit of config_flags; no value */
    EW_OPTION_NUMBER,   /* double */
    EW_OPTION_COUNT,    /* uint32_t */
    EW_OPTION_BIG,      /* uint64_t */
    EW_OPTION_DURATION, /* uint64_t in ns */
    EW_OPTION_SIZE,     /* uint64_t in bytes */
    EW_OPTION_TEXT,     /* char *; not empty */
    EW_OPTION_LIST,     /* struct ew_list; grows */
    EW_OPTION_PIDS,     /* struct ew_ids; grows */
    EW_OPTION_USERS,    /* struct ew_ids; grows */
    EW_OPTION_OTHER,    /* set() */
};

enum ew_system { EW_ON_LINUX = 1, EW_ON_WINDOWS };

/* The headings of --help. */
enum ew_option_section {
    EW_SECTION_PROCESSES,
    EW_SECTION_PART,
    EW_SECTION_MEASURE,
    EW_SECTION_RECORD,
    EW_SECTION_SERVE,
    EW_SECTION_OUTPUT,
    EW_SECTION_ETW,
    EW_SECTION_GENERAL,
    EW_SECTION_COUNT,
};

struct ew_option {
    const char *name;  /* without the dashes */
    char letter;       /* 0: none */
    const char *value; /* "N", "FILE"; NULL: a switch */
    const char *help;
    uint32_t commands; /* enum ew_command */
    enum ew_option_section section;
    enum ew_option_type type;
    uint32_t flag;    /* FLAG: enum etwatch_config_flag */
    size_t offset;    /* of the member in struct ew_options */
    double unit;      /* DURATION, SIZE: what a number without a unit is, in ns or bytes */
    double min, max;  /* of the member; DURATION, SIZE: in ns, bytes */
    const char *form; /* what the value must be, after "needs" in a message */
    int (*set)(struct ew_parser *parser, const char *shown, const char *value); /* OTHER */
    const char *standard; /* the default, for config --show; NULL: not set */
    bool grows;           /* OTHER: values add up instead of replacing each other */
    bool no_key;          /* not allowed in a configuration file */
    uint32_t only;        /* enum ew_system: --help of other systems omits it; 0: every system */
};

/* Option i in the order of the help, NULL after the last. */
const struct ew_option *ew_option_at(size_t i);
/* The option with this long name (len bytes) or letter; NULL: none. Where two commands have options
 * of the same name, that of the given command. */
const struct ew_option *ew_option_find(const char *name, size_t len, enum ew_command command);
const struct ew_option *ew_option_find_letter(char letter);
/* Whether several values add up. */
bool ew_option_grows(const struct ew_option *option);
/* Sets one option. shown is how the user wrote it ("-p"). A switch has no value (NULL), or "false".
 */
int ew_option_apply(struct ew_parser *parser, const struct ew_option *option, const char *shown,
                    const char *value);
/* The present name of an option that was renamed, for a hint; NULL: it never existed. */
const char *ew_option_renamed(const char *name, size_t len, enum ew_command command);

/* Fails: the metric or group exists, but no source measures it. */
int ew_fail_not_measured(struct ew_parser *parser, const char *shown, const char *name);

/* check.c: whether the options of a command fit together. Sets what follows from them. */
int ew_options_check(struct ew_parser *parser);
/* A word that the command has no use for. */
int ew_fail_unexpected(struct ew_parser *parser, const char *word);

/* -------------------------------------------------------------- value.c: value types */

/* All return false if the text has another form, and then set nothing. */

/* Digits with an optional fraction ("10", "0.5"): no sign, no exponent. */
bool ew_value_number(const char *text, double *ret_number);
bool ew_value_u32(const char *text, uint32_t *ret_number);
bool ew_value_u64(const char *text, uint64_t *ret_number);
/* "10", "1.5s", "200ms", "2m", "50us", "1h"; unit_ns: the unit of a bare number. */
bool ew_value_duration(const char *text, double unit_ns, uint64_t *ret_ns);
/* "64K", "10M", "1GiB", "500MB"; unit_bytes: the unit of a bare number. */
bool ew_value_size(const char *text, double unit_bytes, uint64_t *ret_bytes);

/* Adds the words between commas. 0, ETWATCH_EINVAL for an empty word, ETWATCH_ENOMEM. */
int ew_args_list_add(struct ew_list *list, const char *words);
/* Adds one word with its commas. 0, ETWATCH_EINVAL if it is empty, ETWATCH_ENOMEM. */
int ew_args_list_add_word(struct ew_list *list, const char *word);
void ew_args_list_done(struct ew_list *list);
/* 0 or ETWATCH_ENOMEM. */
int ew_ids_add(struct ew_ids *ids, uint32_t id);
void ew_ids_done(struct ew_ids *ids);

/* ------------------------------------------------------------- configuration files */

enum { EW_CONFIG_KEY_SIZE = 64 };

/* Reads a file of `name = value` lines. */
int ew_args_config_file_read(struct ew_parser *parser, const char *path);
/* The same from memory, for tests. */
int ew_args_config_file_parse(struct ew_parser *parser, const char *path, const void *text,
                              size_t size);

/* A group of metrics, one metric, or "storage". */
bool ew_args_config_section_known(const char *section);
/* 0, or EW_EXIT_USAGE with a message. key: "hz", "memory.rate". */
int ew_args_config_key_check(struct ew_parser *parser, const char *key);
int ew_args_config_key_apply(struct ew_parser *parser, const char *key, const char *value);

#endif
