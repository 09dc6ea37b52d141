/* SPDX-License-Identifier: MIT */
/*
 * The command line and the configuration file: what is accepted, and what is refused with which
 * message.
 */
#include <stdio.h>
#include <string.h>

#include "cli/args/check.c"
#include "cli/args/config_file.c"
#include "cli/args/config_keys.c"
#include "cli/args/etw_options.c"
#include "cli/args/help.c"
#include "cli/args/option_table.c"
#include "cli/args/options.c"
#include "cli/args/value.c"
#include "test.h"

enum { WORDS_MAX = 48 };

/* A command line as one string, split at blanks; '_' in it becomes a blank. */
struct line {
    char text[512];
    char *words[WORDS_MAX + 1];
    int count;
};

static void cut(struct line *line, const char *text)
{
    line->count = 0;
    (void)snprintf(line->text, sizeof line->text, "etwatch %s", text);
    for (char *at = line->text; *at != '\0' && line->count < WORDS_MAX;) {
        line->words[line->count++] = at;
        at += strcspn(at, " ");
        if (*at == ' ')
            *at++ = '\0';
    }
    line->words[line->count] = NULL;
}

static int parse(struct line *line, const char *text, struct ew_options *options, char *message)
{
    cut(line, text);
    return ew_options_parse(line->count, line->words, options, message);
}

struct refused {
    const char *line;
    const char *part; /* part of the message */
};

static void check_refused(const struct refused *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct line line;
        struct ew_options options;
        char message[EW_MESSAGE_SIZE];
        test_row(rows[i].line);
        CHECK_EQ_INT(parse(&line, rows[i].line, &options, message), EW_EXIT_USAGE);
        CHECK_CONTAINS(message, rows[i].part);
        CHECK(strchr(message, '\n') == NULL);
        ew_options_done(&options);
    }
}

TEST(a_wrong_command_line_is_refused_with_the_right_form)
{
    static const struct refused rows[] = {
        {"", "a command is missing"},
        {"recrod", "the commands are run, stat, top, record, report, events,"},
        {"--hz 10", "the command comes first"},
        {"stat", "-p PID, -n NAME, -u USER, --cgroup PATH, or -a"},
        {"stat --hz", "--hz needs a value: --hz N"},
        {"stat -a --hz abc", "--hz needs a number from 0.1 to 1000"},
        {"stat -a --hz 0", "--hz needs a number from 0.1 to 1000"},
        {"stat -a --hz 1001", "not \"1001\""},
        {"stat -a --hz -1", "not \"-1\""},
        {"stat -a --hz 1e3", "not \"1e3\""},
        {"stat -a --hz 0x10", "not \"0x10\""},
        {"stat -a --hz inf", "not \"inf\""},
        {"stat -a --hz 1,5", "not \"1,5\""},
        {"stat -a --hz=", "not \"\""},
        {"stat -a --latency 0",
         "a duration from 1ms to 60s (such as 20ms; a number without a unit is in milliseconds)"},
        {"stat -a --latency 61s", "not \"61s\""},
        {"stat -a --latency 20x", "not \"20x\""},
        {"stat -a --duration x",
         "--duration needs a duration above 0 (such as 10, 10s, 200ms or 2m)"},
        {"stat -a --duration 0", "above 0"},
        {"stat -a --source proc", "one of auto, ebpf, etw, poll, etl"},
        {"stat -a --budget 0", "--budget needs a percentage of one core from 0.01 to 100"},
        {"stat -a --budget 101", "or \"off\""},
        {"stat -a --budget-profile fast", "development, testing, staging, production, critical"},
        {"stat -p x", "-p needs a process id or a list of them (such as 12,345), not \"x\""},
        {"stat -p 0", "not \"0\""},
        {"stat -p 1,,2", "-p needs a process id"},
        {"stat -p 4294967296", "not \"4294967296\""},
        {"stat -p -5", "not \"-5\""},
        {"stat -p python", "to select by name use -n"},
        {"stat -p", "-p needs a value: -p PID"},
        {"stat -n", "-n needs a value: -n NAME"},
        {"stat -n ,", "a name or a list of names"},
        {"stat -u no-such-user-here", "there is no user \"no-such-user-here\""},
        {"stat -a --json --csv", "choose one"},
        {"stat -a --events", "--events needs --json"},
        {"stat -a --json --events --source poll", "polling sees no events"},
        {"stat -a --columns pid --json", "--columns is for the table and --csv"},
        {"stat -a --columns a,,b", "a list of names (such as pid,name,cpu_percent)"},
        {"stat -a --cmdline", "--cmdline needs --json or --csv"},
        {"stat -a --window 1 --threads", "remove --threads"},
        {"stat -a --window 0", "--window needs a duration from 10ms"},
        {"stat -p 1 --kernel-threads", "--kernel-threads needs -a"},
        {"stat -a --gpus", "did you mean --gpu?"},
        {"report --energy", "--energy is not an option of 'etwatch report'"},
        {"stat -a --jsn", "did you mean --json?"},
        {"stat -a --hz10", "did you mean --hz?"},
        {"stat -a -x", "unknown option -x"},
        {"stat -a --json=yes", "--json takes no value"},
        {"stat -ax", "unknown option -ax"},
        {"stat -a extra", "unexpected argument \"extra\""},
        {"stat -a -o", "-o needs a value: -o FILE"},
        {"stat -a --output=", "--output needs the name of a file"},
        {"run", "run needs a command: etwatch run [options] -- CMD [ARG...]"},
        {"run --", "run needs a command"},
        {"run --hz 10", "run needs a command"},
        {"run -p 1 -- ls",
         "-p is not an option of 'etwatch run'; commands that have it: stat, top, record, report"},
        {"run --window 1 -- ls", "commands that have it: stat"},
        {"record -o a.pftrace --rotate 2", "--rotate needs --max-size"},
        {"record -o a.pftrace --max-size 5", "--max-size needs a size of at least 64K"},
        {"record -o a.pftrace --max-size 5X", "--max-size needs a size of at least 64K"},
        {"record -o a.pftrace --ring 0.1", "--ring needs a duration of at least 1s"},
        {"record -o a.pftrace --trigger cpu_percent>1", "add --ring TIME"},
        {"record -o a.pftrace --ring 5s --json", "choose one"},
        {"top --json",
         "--json is not an option of 'etwatch top'; commands that have it: run, stat, record, "
         "report, events, waits, sessions, metrics, doctor"},
        {"doctor --hz 10", "--hz is not an option of 'etwatch doctor'"},
        {"doctor x", "unexpected argument"},
        {"report", "report needs a recording: etwatch report [options] FILE..."},
        {"events --json", "events needs a recording"},
        {"report x.etl --hz 10", "--hz is not an option of 'etwatch report'"},
        {"report x.etl --from 1 --to 1", "--to must be later than --from"},
        {"report x.etl --from soon", "such as 2, 1.5s or 200ms, not \"soon\""},
        {"report x.etl --to 0", "and above 0"},
        {"report x.etl --to 3d", "not \"3d\""},
        {"report x.etl --images --csv", "use --json"},
        {"report x.etl --json --csv", "choose one"},
        {"report x.etl --workers 0", "a number of threads from 1 to 64"},
        {"events x.etl --csv", "--csv is not an option of 'etwatch events'"},
        {"events x.etl --limit 0", "a number of events above 0"},
        {"events x.etl --count-by-type --payload", "remove --payload and --limit"},
        {"events x.etl --provider ,", "the name or GUID of a provider"},
        {"stat --source etl", "--source etl needs a recording: etwatch stat FILE.etl"},
        {"stat x.etl --source poll", "--source poll cannot read the recording x.etl"},
        {"stat x.etl -u 0", "a recording has no users"},
        {"stat x.etl --json --events", "etwatch events x.etl"},
        {"top --source etl", "etwatch stat, report or events"},
        {"run --source etl -- ls", "etwatch stat, report or events"},
        {"stat -a --config /no/such/file", "cannot read --config /no/such/file"},
    };
    check_refused(rows, sizeof rows / sizeof rows[0]);
}

TEST(a_recording_is_selected_by_its_file)
{
    struct line line;
    struct ew_options options;
    char message[EW_MESSAGE_SIZE];
    CHECK_EQ_INT(parse(&line, "stat a,b.ETL -n python c.etl", &options, message), 0);
    CHECK_EQ_UINT(options.source, ETWATCH_SOURCE_ETL);
    CHECK_EQ_UINT(options.files.count, 2);
    CHECK_EQ_STR(options.files.words[0], "a,b.ETL");
    CHECK_EQ_UINT(options.config_flags & ETWATCH_CONFIG_ALL, 0);
    ew_options_done(&options);
    CHECK_EQ_INT(parse(&line, "stat odd --source etl", &options, message), 0);
    CHECK_EQ_STR(options.files.words[0], "odd");
    ew_options_done(&options);
    CHECK_EQ_INT(parse(&line, "stat --source etl -- -odd", &options, message), 0);
    CHECK_EQ_STR(options.files.words[0], "-odd");
    CHECK((options.config_flags & ETWATCH_CONFIG_ALL) != 0);
    ew_options_done(&options);
    CHECK_EQ_INT(parse(&line, "events x --from 1.5s --to 200000ms --limit 7 --event A,B -p 0",
                       &options, message),
                 0);
    CHECK_EQ_UINT(options.from_ns, 1500000000u);
    CHECK_EQ_UINT(options.until_ns, 200000000000u);
    CHECK_EQ_UINT(options.limit, 7);
    CHECK_EQ_UINT(options.events.count, 2);
    CHECK_EQ_UINT(options.pids.count, 1);
    ew_options_done(&options);
}

TEST(every_form_of_an_option_means_the_same)
{
    static const char *const lines[] = {"stat -p 12,345 --hz 2.5", "stat -p12 --hz=2.5 -p 345",
                                        "stat --pid=12 --pid 345 --hz 2.5"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct line line;
        struct ew_options options;
        char message[EW_MESSAGE_SIZE];
        test_row(lines[i]);
        CHECK_EQ_INT(parse(&line, lines[i], &options, message), 0);
        CHECK_EQ_INT(options.command, EW_CMD_STAT);
        CHECK_EQ_UINT(options.pids.count, 2);
        CHECK_EQ_UINT(options.pids.ids[0], 12);
        CHECK_EQ_UINT(options.pids.ids[1], 345);
        CHECK_NEAR(options.hz, 2.5, 1e-12);
        ew_options_done(&options);
    }
}

TEST(all_options_of_stat_are_kept)
{
    struct line line;
    struct ew_options o;
    char message[EW_MESSAGE_SIZE];
    CHECK_EQ_INT(parse(&line,
                       "stat -aq --name=a,b -u 0 --cgroup x/y --latency 20 --duration 0.5 "
                       "--source poll --no-fallback --budget off --budget-profile critical --csv "
                       "--columns pid,name -o out --dense --cmdline --kernel-threads --proc-root r",
                       &o, message),
                 0);
    CHECK_EQ_UINT(o.config_flags, ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_FALLBACK |
                                      ETWATCH_CONFIG_DENSE | ETWATCH_CONFIG_CMDLINE |
                                      ETWATCH_CONFIG_KERNEL_THREADS);
    CHECK(o.quiet && o.csv && !o.json && o.budget_off);
    CHECK_EQ_UINT(o.names.count, 2);
    CHECK_EQ_STR(o.names.words[1], "b");
    CHECK_EQ_UINT(o.users.count, 1);
    CHECK_EQ_UINT(o.users.ids[0], 0);
    CHECK_EQ_STR(o.cgroups.words[0], "x/y");
    CHECK_EQ_UINT(o.latency_ns, 20000000);
    CHECK_EQ_UINT(o.duration_ns, 500000000);
    CHECK_EQ_UINT(o.source, ETWATCH_SOURCE_POLL);
    CHECK_NEAR(o.profile_percent, 2, 1e-12);
    CHECK_EQ_UINT(o.columns.count, 2);
    CHECK_EQ_STR(o.output_path, "out");
    CHECK_EQ_STR(o.proc_root, "r");
    ew_options_done(&o);
}

TEST(an_option_that_was_renamed_is_refused_with_its_new_name)
{
    static const struct refused rows[] = {
        {"stat -a --max-processes 3", "unknown option --max-processes: it is called --top now"},
        {"stat -a --by=cpu_ns", "--top-by now"},
        {"stat -a --system", "--system-stats now"},
        {"stat -a --no-system", "--exclude-system now"},
        {"top --profile production", "--budget-profile now"},
        {"record -o x.etl --profile-hz 5", "--cpu-sample-hz now"},
        {"record -o x.etl --provider X", "--enable-provider now"},
        {"stat --uid 0", "--user now"},
        {"stat -a --exclude-uid 0", "--exclude-user now"},
        {"stat -a --keep 5", "--last-samples now"},
        {"events x.etl --raw", "--payload now"},
        {"events x.etl --count", "--count-by-type now"},
        {"stat -a --flush 100", "--flush-interval now"},
    };
    check_refused(rows, sizeof rows / sizeof rows[0]);
}

TEST(every_duration_and_size_takes_the_same_units)
{
    static const struct {
        const char *text;
        double bare;
        uint64_t want;
    } times[] =
        {
            {"10", 1e9, 10000000000u},
            {"10", 1e6, 10000000},
            {"10s", 1e6, 10000000000u},
            {"200ms", 1e9, 200000000},
            {"1.5s", 1e9, 1500000000},
            {"2m", 1e9, 120000000000u},
            {"2min", 1e9, 120000000000u},
            {"50us", 1e9, 50000},
            {"7ns", 1e9, 7},
            {"1h", 1e9, 3600000000000u},
            {"0", 1e9, 0},
        },
      sizes[] = {
          {"64K", 1, 65536},      {"10M", 1, 10485760},      {"1GiB", 1, 1073741824},
          {"1G", 1, 1073741824},  {"64", 1024, 65536},       {"64", 1, 64},
          {"1.5MiB", 1, 1572864}, {"2KB", 1, 2000},          {"3MB", 1, 3000000},
          {"100B", 1024, 100},    {"1T", 1, 1099511627776u},
      };
    static const char *const wrong[] = {"",    "s",   "ms",  "-1",    "1e3",
                                        "1 s", "1,5", "10x", "1.2.3", "K"};
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        test_row(times[i].text);
        CHECK(ew_value_duration(times[i].text, times[i].bare, &value));
        CHECK_EQ_UINT(value, times[i].want);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        test_row(sizes[i].text);
        CHECK(ew_value_size(sizes[i].text, sizes[i].bare, &value));
        CHECK_EQ_UINT(value, sizes[i].want);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_row(wrong[i]);
        CHECK(!ew_value_duration(wrong[i], 1e9, &value));
        CHECK(!ew_value_size(wrong[i], 1, &value));
    }
    CHECK(!ew_value_duration("999999999999h", 1e9, &value));
    CHECK(!ew_value_size("99999999999T", 1, &value));
}

TEST(options_with_a_unit_are_kept_in_ns_and_bytes)
{
    struct line line;
    struct ew_options o;
    char message[EW_MESSAGE_SIZE];
    CHECK_EQ_INT(parse(&line,
                       "stat -a --latency 1s --duration 2m --window 500ms --flush-interval 50 "
                       "--buffer-size 1M --buffer-memory 128M",
                       &o, message),
                 0);
    CHECK_EQ_UINT(o.latency_ns, 1000000000);
    CHECK_EQ_UINT(o.duration_ns, 120000000000u);
    CHECK_EQ_UINT(o.window_ns, 500000000);
    CHECK_EQ_UINT(o.etw.flush_ns, 50000000);
    CHECK_EQ_UINT(o.etw.buffer_bytes, 1 << 20);
    CHECK_EQ_UINT(o.etw.memory_bytes, 128 << 20);
    ew_options_done(&o);
    CHECK_EQ_INT(parse(&line, "record -o x.pftrace --max-size 1GiB --ring 5m", &o, message), 0);
    CHECK_EQ_UINT(o.max_bytes, 1 << 30);
    CHECK_EQ_UINT(o.ring_ns, 300000000000u);
    ew_options_done(&o);
}

TEST(the_arguments_of_the_command_of_run_are_not_parsed)
{
    static const char *const lines[] = {"run --threads -- ls -l --hz x",
                                        "run --threads ls -l --hz x"};
    for (size_t i = 0; i < 2; i++) {
        struct line line;
        struct ew_options options;
        char message[EW_MESSAGE_SIZE];
        test_row(lines[i]);
        CHECK_EQ_INT(parse(&line, lines[i], &options, message), 0);
        CHECK_EQ_UINT(options.config_flags, ETWATCH_CONFIG_THREADS);
        CHECK_EQ_STR(options.child[0], "ls");
        CHECK_EQ_STR(options.child[1], "-l");
        CHECK_EQ_STR(options.child[3], "x");
        CHECK(options.child[4] == NULL);
        ew_options_done(&options);
    }
}

TEST(help_and_version_need_no_other_argument)
{
    static const struct {
        const char *line;
        int help;
        enum ew_command command;
    } rows[] = {
        {"--help", 1, EW_CMD_NONE},    {"-h", 1, EW_CMD_NONE},           {"help", 1, EW_CMD_NONE},
        {"help stat", 1, EW_CMD_STAT}, {"stat --help", 1, EW_CMD_STAT},  {"run -h", 1, EW_CMD_RUN},
        {"--version", 0, EW_CMD_NONE}, {"top --version", 0, EW_CMD_TOP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct line line;
        struct ew_options options;
        char message[EW_MESSAGE_SIZE];
        test_row(rows[i].line);
        CHECK_EQ_INT(parse(&line, rows[i].line, &options, message), 0);
        CHECK_EQ_INT(options.help, rows[i].help);
        CHECK_EQ_INT(options.version, !rows[i].help);
        CHECK_EQ_INT(options.command, rows[i].command);
        ew_options_done(&options);
    }
}

/* The help of a command on a system; freed by the caller. */
static void write_help(struct ew_buf *text, enum ew_command command, uint32_t system)
{
    ew_buf_init(text, 0, NULL, NULL);
    ew_help_write(text, command, system);
    ew_buf_char(text, '\0');
}

static void check_help(enum ew_command command, uint32_t system)
{
    struct ew_buf text;
    write_help(&text, command, system);
    const char *options = strstr(text.data, ":\n  "); /* the first section */
    CHECK(options != NULL);
    for (size_t i = 0; ew_option_at(i) != NULL; i++) {
        char name[64];
        const char *word = ew_option_at(i)->name;
        const struct ew_option *meant = ew_option_find(word, strlen(word), command);
        (void)snprintf(name, sizeof name, "--%s ", word);
        test_row(name);
        CHECK_EQ_INT(strstr(options, name) != NULL,
                     (meant->commands & command) != 0 &&
                         (meant->only == 0 || meant->only == system));
    }
    ew_buf_done(&text);
}

TEST(the_help_of_a_command_names_each_of_its_options_for_this_system_and_no_other)
{
    static const enum ew_command all[] = {EW_CMD_RUN, EW_CMD_STAT, EW_CMD_TOP, EW_CMD_DOCTOR};
    for (size_t c = 0; c < 4; c++) {
        check_help(all[c], EW_ON_LINUX);
        check_help(all[c], EW_ON_WINDOWS);
    }
}

TEST(help_shows_what_the_system_has)
{
    static const struct {
        enum ew_command command;
        const char *text;
        bool on_linux, on_windows;
    } rows[] = {
        {EW_CMD_STAT, "ETW sessions:", false, true},
        {EW_CMD_STAT, "--session ", false, true},
        {EW_CMD_STAT, "--cgroup PATH ", true, false},
        {EW_CMD_STAT, "--gpu ", true, true},
        {EW_CMD_STAT, "also has the options for Windows", true, false},
        {EW_CMD_STAT, "also has the options for Linux", false, true},
        {EW_CMD_NONE, "etwatch sessions", false, true},
        {EW_CMD_NONE, "etwatch onnx", true, true},
        {EW_CMD_NONE, "etwatch spans", true, false},
        {EW_CMD_NONE, "etwatch record", true, true},
        {EW_CMD_NONE, "\001", false, false},
        {EW_CMD_NONE, "\002", false, false},
        /* The help of a command for one system is complete everywhere. */
        {EW_CMD_SESSIONS, "--cleanup ", true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_buf text;
        test_row(rows[i].text);
        write_help(&text, rows[i].command, EW_ON_LINUX);
        CHECK_EQ_INT(strstr(text.data, rows[i].text) != NULL, rows[i].on_linux);
        ew_buf_done(&text);
        write_help(&text, rows[i].command, EW_ON_WINDOWS);
        CHECK_EQ_INT(strstr(text.data, rows[i].text) != NULL, rows[i].on_windows);
        ew_buf_done(&text);
    }
}

static int read_config(const char *text, struct ew_options *options, char *message)
{
    struct ew_parser parser = {.options = options, .message = message};
    *options = (struct ew_options){.command = EW_CMD_STAT};
    message[0] = '\0';
    return ew_args_config_file_parse(&parser, "my.conf", text, strlen(text));
}

TEST(wrong_options_of_a_session_are_refused_on_every_system)
{
    static const struct refused rows[] = {
        {"record", "record needs a file"},
        {"record -o x.etl --", "there is no command after --"},
        {"record -o x.etl -a -- ls", "choose one"},
        {"record -o x.etl --session y", "--session is not an option of 'etwatch record'"},
        {"sessions x", "unexpected argument"},
        {"sessions --json --csv", "exclude each other"},
        {"stat -a --session=", "--session needs the name of a session"},
        {"stat -a --session x --kernel process", "remove the options that describe a new one"},
        {"stat -a --source poll --kernel process", "need --source etw, not poll"},
        {"stat x.etl --source etl --session y", "need --source etw, not etl"},
        {"stat -a --buffer-size 3",
         "a size from 4K to 16M (such as 64K; a number without a unit is in KB), not \"3\""},
        {"stat -a --min-buffers 1", "a number of buffers from 2 to 65536"},
        {"stat -a --min-buffers 9 --max-buffers 8", "--min-buffers 9 is more than --max-buffers 8"},
        {"stat -a --flush-interval 0", "a duration from 1ms to 60s"},
        {"stat -a --buffer-memory 0", "a size from 1M to 64G"},
        {"stat -a --cpu-sample-hz 8001", "samples per second from 1 to 8000"},
        {"stat -a --enable-provider :5", "the name or GUID is missing"},
        {"stat -a --enable-provider X:0", "the level is a number from 1 (critical) to 5 (verbose)"},
        {"stat -a --enable-provider X:5:0x", "the keywords are a number, such as 0x10"},
        {"stat -a --enable-provider X:5:0x1:2", "too many parts"},
        {"stat -a --enable-provider X:pid=", "a list is empty"},
        {"stat -a --enable-provider X:pid=0", "pid= needs process ids"},
        {"stat -a --enable-provider X:pid=1,2,3,4,5,6,7,8,9", "at most 8 process ids"},
        {"stat -a --enable-provider X:id=65536", "id= needs event ids"},
    };
    check_refused(rows, sizeof rows / sizeof rows[0]);
}

TEST(options_of_a_session_become_the_struct_of_the_library)
{
    struct line line;
    struct ew_options options;
    struct ew_session_options etw;
    char message[EW_MESSAGE_SIZE];
    CHECK_EQ_INT(
        parse(&line,
              "record -o x.etl --kernel process,cswitch --stacks cswitch --cpu-sample-hz 1000 "
              "--session-name run --buffer-size 128 --min-buffers 8 --max-buffers 16 "
              "--buffer-memory 32 --enable-provider My-Provider:4:0xfF:pid=7,8:id=1,2,3 "
              "--enable-provider *Other.One:id=9",
              &options, message),
        0);
    CHECK(ew_args_session_options(&options, &etw));
    CHECK_EQ_STR(etw.options.kernel, "process,cswitch");
    CHECK_EQ_STR(etw.options.stacks, "cswitch");
    CHECK_EQ_STR(etw.options.name, "run");
    CHECK_EQ_UINT(etw.options.profile_hz, 1000);
    CHECK_EQ_UINT(etw.options.buffer_kb, 128);
    CHECK_EQ_UINT(etw.options.min_buffers, 8);
    CHECK_EQ_UINT(etw.options.max_buffers, 16);
    CHECK_EQ_UINT(etw.options.memory_bytes, 32 << 20);
    CHECK_EQ_UINT(etw.options.provider_count, 2);
    const struct etwatch_provider *first = &etw.options.providers[0];
    CHECK_EQ_STR(first->name, "My-Provider");
    CHECK_EQ_UINT(first->level, 4);
    CHECK_EQ_UINT(first->keywords, 0xff);
    CHECK_EQ_UINT(first->pid_count, 2);
    CHECK_EQ_UINT(first->pids[1], 8);
    CHECK_EQ_UINT(first->event_id_count, 3);
    CHECK_EQ_UINT(first->event_ids[2], 3);
    const struct etwatch_provider *second = &etw.options.providers[1];
    CHECK_EQ_STR(second->name, "*Other.One");
    CHECK_EQ_UINT(second->level, 0);
    CHECK_EQ_UINT(second->keywords, 0);
    CHECK_EQ_UINT(second->event_ids[0], 9);
    ew_options_done(&options);
    CHECK_EQ_INT(parse(&line, "stat -a --session Mine", &options, message), 0);
    CHECK(!ew_args_session_options(&options, &etw));
    CHECK_EQ_STR(options.etw.session, "Mine");
    ew_options_done(&options);
    /* A filter of recordings. */
    CHECK_EQ_INT(parse(&line, "events --provider a,b x.etl", &options, message), 0);
    CHECK_EQ_UINT(options.providers.count, 2);
    CHECK_EQ_UINT(options.etw.providers.count, 0);
    ew_options_done(&options);
}

TEST(a_configuration_file_uses_the_long_names)
{
    struct ew_options o;
    char message[EW_MESSAGE_SIZE];
    CHECK_EQ_INT(read_config("# a comment\n\n hz = 100 \r\nname=python, nginx\nthreads = true\n"
                             "dense=no\nwait-all = true\n\tjson = on",
                             &o, message),
                 0);
    CHECK_NEAR(o.hz, 100, 1e-12);
    CHECK_EQ_UINT(o.names.count, 2);
    CHECK_EQ_UINT(o.config_flags, ETWATCH_CONFIG_THREADS);
    CHECK(o.json);
    CHECK(!o.wait_all); /* an option of run, not of stat */
    ew_options_done(&o);
}

TEST(errors_in_a_configuration_file_name_file_and_line)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {"\nhz = fast\n", "my.conf:2:6: hz needs a number from 0.1 to 1000"},
        {"hertz = 1", "my.conf:1:1: unknown option \"hertz\""},
        {"# x\n# y\njust words\n", "my.conf:3:1: a line has the form \"name = value\""},
        {"threads = maybe", "my.conf:1:11: threads needs true or false, not \"maybe\""},
        {"hz =", "my.conf:1:1: hz needs a value: hz = N"},
        {"= 5", "my.conf:1:1: a line has the form"},
        {"config = other", "my.conf:1:1: unknown option \"config\""},
        {"help = true", "my.conf:1:1: unknown option \"help\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_options options;
        char message[EW_MESSAGE_SIZE];
        test_row(rows[i].text);
        CHECK_EQ_INT(read_config(rows[i].text, &options, message), EW_EXIT_USAGE);
        CHECK_CONTAINS(message, rows[i].want);
        ew_options_done(&options);
    }
}

static int parse_much(void *ctx)
{
    struct line line;
    struct ew_options options;
    char message[EW_MESSAGE_SIZE];
    (void)ctx;
    int rc =
        parse(&line, "stat -p 1,2 -n a,b --columns pid,name -o x -u 0 --csv", &options, message);
    if (rc != 0)
        CHECK_CONTAINS(message, "out of memory");
    ew_options_done(&options);
    return rc == 0 ? 0 : ETWATCH_ENOMEM;
}

TEST(running_out_of_memory_is_reported)
{
    TORTURE(parse_much, NULL);
}
