/* SPDX-License-Identifier: MIT */
/* The text of --help: what the command does, examples, then its options by section. */
#include <string.h>

#include "base/buf.h"
#include "cli/args/args.h"

/* At the start of a line: only for this system. Other lines are for every system. */
#define ON_LINUX "\001"
#define ON_WINDOWS "\002"

static const char program_help[] =
    "etwatch shows what every process did, from the accounting of the kernel: CPU time, memory,\n"
    "I/O, context switches, page faults. eBPF on Linux, ETW on Windows, polling without rights.\n"
    "\n"
    "Watch:\n"
    "  etwatch run -- python3 infer.py        run a command and summarize it and its descendants\n"
    "  etwatch stat -n python --hz 100        stream samples of running processes\n"
    "  etwatch top                            show a live screen\n"
    "  etwatch waits -p 1234                  show which thread waited for which, and how "
    "long\n"
    "  etwatch onnx -p 1234                   show why inferences of ONNX "
    "Runtime are slow\n" ON_LINUX "  etwatch spans -- CMD                   run a command and show "
    "why its marked work is slow\n" ON_LINUX
    "  etwatch serve                          dashboard, Prometheus and JSON on port 9797\n"
    "Record and read recordings (.pftrace, .etl):\n"
    "  etwatch record -o run.pftrace -- CMD   record a run, or the whole machine\n"
    "  etwatch report trace.etl               summarize a recording per process\n"
    "  etwatch events trace.etl               print its events, one per line\n"
    "  etwatch export trace.etl -o out.arrow  convert it: tables, flame graphs, timelines\n"
    "  etwatch compare a.json b.json          say which of two runs is faster, and how sure that "
    "is\n"
    "About this machine and etwatch:\n"
    "  etwatch doctor                         check what works here, and how to fix the rest\n"
    "  etwatch metrics                        list every metric with its unit and exactness\n"
    "  etwatch config --show                  print the effective configuration\n" ON_WINDOWS
    "  etwatch sessions                       list the ETW sessions\n" ON_WINDOWS
    "  etwatch service install FILE           keep a recording running\n"
    "\n"
    "'etwatch COMMAND --help' shows the options of a command, 'etwatch --version' the version.\n"
    "Data goes to standard output, messages to standard error. Exit status: that of CMD for run\n"
    "and record; else 0 success, 1 failure, 2 usage error, 3 missing rights, 128+n ended by signal "
    "n.\n";

static const char run_help[] = "usage: etwatch run [options] -- CMD [ARG...]\n"
                               "\n"
                               "Runs CMD, watches it and all its descendants, prints a summary "
                               "when CMD exits, and exits with\n"
                               "the status of CMD.\n"
                               "\n"
                               "  etwatch run -- make -j4\n"
                               "  etwatch run --threads --hz 1000 -- ./inference model.onnx\n"
                               "  etwatch run --json -o samples.jsonl -- python3 train.py\n";

static const char stat_help[] = ON_LINUX
    "usage: etwatch stat [options] (-p PID | -n NAME | -u USER | --cgroup PATH | -a | "
    "FILE.etl)\n" ON_WINDOWS
    "usage: etwatch stat [options] (-p PID | -n NAME | -u USER | -a | FILE.etl)\n"
    "\n"
    "Streams samples of running processes: a table every second, or every sample with --json or\n"
    "--csv. Ends at Ctrl-C, after --duration, or when all processes of -p have exited.\n"
    "\n"
    "  etwatch stat -p 1234 --hz 100 --json\n"
    "  etwatch stat -a --csv -o all.csv --duration 60s\n"
    "  etwatch stat -n python --window 10s\n"
    "  etwatch stat trace.etl --hz 100 --json     samples of a Windows recording\n";

static const char report_help[] =
    "usage: etwatch report [options] FILE...\n"
    "\n"
    "Summarizes recordings (.etl, .pftrace; several are merged by time): the machine, the types "
    "of\n"
    "events, and what each process did. CPU time is exact if the recording has context switches;\n"
    "from profile samples alone it is an estimate and marked with ~.\n"
    "\n"
    "  etwatch report trace.etl\n"
    "  etwatch report --threads -n python kernel.etl user.etl\n"
    "  etwatch report --json --from 2.5s --to 3s trace.etl\n";

static const char events_help[] =
    "usage: etwatch events [options] FILE...\n"
    "\n"
    "Prints every event of recordings (.etl, .pftrace) in order of time, one per line: seconds "
    "since\n"
    "the start, time (UTC), CPU, process id, thread id, process, provider/event, fields by name.\n"
    "\n"
    "  etwatch events --count-by-type trace.etl\n"
    "  etwatch events --event CSwitch -p 4321 --from 1s --to 1.1s trace.etl\n"
    "  etwatch events --json --provider Kernel-Process trace.etl\n";

static const char export_help[] =
    "usage: etwatch export [options] -f FORMAT -o OUT FILE...\n"
    "\n"
    "Converts recordings (.etl, .pftrace) for other tools: tables (arrow, csv, jsonl), stacks of\n"
    "profile samples for flame graphs (folded, speedscope), timelines (perfetto, chrome). Without\n"
    "-f the extension of OUT selects the format.\n"
    "\n"
    "  etwatch export trace.etl -o events.arrow\n"
    "  etwatch export trace.etl -f csv --table samples --hz 100 -n python -o samples.csv\n"
    "  etwatch export trace.etl -f arrow --event CSwitch --typed -o switches.arrow\n"
    "  etwatch export trace.etl -f folded | flamegraph.pl > flame.svg\n";

static const char top_help[] =
    "usage: etwatch top [options]\n"
    "\n"
    "Shows a live screen of all processes, or of the selected ones, with bars of the CPUs and the\n"
    "memory. Keys: arrows select, c m i < > sort, t tree, H threads (with --threads), / filter,\n"
    "p pause, k end, K kill, [ ] priority (each asks first), h help, q quit; the mouse selects "
    "and\n"
    "sorts. Without a terminal it prints one block per second.\n"
    "\n"
    "  etwatch top\n"
    "  etwatch top -n python,onnx*\n";

static const char record_help[] =
    "usage: etwatch record -o FILE [options] [-- CMD [ARG...]]\n"
    "\n"
    "Records events into FILE until CMD exits, --duration is over, or Ctrl-C. The extension "
    "selects\n"
    "the format. .pftrace: a Perfetto trace of the selected processes (default: all), with the\n"
    "scheduling of the whole machine. .etl: a recording of the whole machine that Windows (ETW) "
    "writes.\n"
    "\n"
    "  etwatch record -o run.pftrace -- ./inference model.onnx\n"
    "  etwatch record -o all.pftrace -a --hz 100 --duration 10s\n"
    "  etwatch record -o spike.pftrace --ring 60s --trigger 'cpu_percent>90 for 1s'\n"
    "  etwatch record -o trace.etl --duration 10s             (Windows)\n"
    "  etwatch record -o trace.etl -- infer.exe model.onnx    (Windows)\n";

static const char sessions_help[] = "usage: etwatch sessions [options]\n"
                                    "\n"
                                    "Lists the ETW sessions of this machine (Windows) with their "
                                    "buffers, mode and losses. Sessions\n"
                                    "of etwatch are marked with *, those that a crashed etwatch "
                                    "left behind with !. --cleanup stops\n"
                                    "only the latter.\n"
                                    "\n"
                                    "  etwatch sessions\n"
                                    "  etwatch sessions --cleanup\n";

static const char service_help[] =
    "usage: etwatch service install FILE | remove | run FILE\n"
    "\n"
    "Keeps a recording running on Windows, from boot on. FILE has the options of record, one per "
    "line;\n"
    "it needs output, and ring or rotate. install creates and starts the service etwatch, which "
    "runs as\n"
    "LocalService with the one privilege that kernel events need; remove stops and deletes it. "
    "run is\n"
    "what the service manager starts. The ring is written when it stops, at --trigger, and by\n"
    "`sc control etwatch 200`.\n"
    "\n"
    "  etwatch service install C:\\etwatch\\ring.conf\n"
    "  etwatch service remove\n";

static const char waits_help[] = ON_LINUX
    "usage: etwatch waits [options] (-p PID | -n NAME | -u USER | --cgroup PATH | -a | "
    "FILE)\n" ON_WINDOWS "usage: etwatch waits [options] (-p PID | -n NAME | -u USER | -a | FILE)\n"
    "\n"
    "Shows how long each thread of the selected processes ran, was ready, slept and was blocked by "
    "a\n"
    "disk or a page fault, which thread woke it, and how long it had waited. Live until Ctrl-C or\n"
    "--duration, or of a recording (.etl, .pftrace) with context switches and wake-ups.\n"
    "\n"
    "  etwatch waits -p 1234 --duration 5s\n"
    "  etwatch waits -n python --json\n"
    "  etwatch waits -n chrome trace.etl\n";

static const char onnx_help[] =
    "usage: etwatch onnx [options] (-p PID | -n NAME | -u USER | --cgroup PATH | -a | FILE.etl)\n"
    "\n"
    "Explains every inference of ONNX Runtime in running processes, of any language, without a "
    "change to\n"
    "them: latency percentiles and causes per session. On a terminal a screen that is renewed "
    "every\n"
    "second; else a report at the end (Ctrl-C or --duration). Linux with eBPF, and Windows;\n"
    "recordings of Windows (with the provider Microsoft.ML.ONNXRuntime and context switches) on "
    "any "
    "system.\n"
    "\n"
    "  etwatch onnx -p 1234\n"
    "  etwatch onnx -n python --duration 10s\n"
    "  etwatch onnx -a --json -o inferences.jsonl\n"
    "  etwatch onnx -n infer.exe trace.etl\n";

static const char spans_help[] =
    "usage: etwatch spans [options] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND and explains the stretches of work that it marks with etwatch.span (Python) or\n"
    "etwatch/span.h (C): percentiles, causes, and why the slowest were slow. The same as\n"
    "'etwatch run --spans', with its options: see etwatch run --help.\n"
    "\n"
    "  etwatch spans -- python3 server.py\n"
    "  etwatch spans --json -o spans.jsonl -- ./server\n";

static const char config_help[] =
    "usage: etwatch config --check FILE\n"
    "       etwatch config --show [--config FILE] [options of run, stat, top, record]\n"
    "\n"
    "--check prints the first error of a configuration file with file, line and column, and exits\n"
    "with 2. --show prints the effective configuration as a configuration file, with the origin "
    "of\n"
    "each value: default, budget profile, file or command line.\n"
    "\n"
    "  etwatch config --check etwatch.conf\n"
    "  etwatch config --show --config etwatch.conf --budget-profile production\n";

static const char doctor_help[] =
    "usage: etwatch doctor [options]\n"
    "\n"
    "Checks what works on this machine, what each missing feature or right costs, and prints the\n"
    "command that fixes it. Exit status 0 if a source works, 3 if none does.\n"
    "\n"
    "  etwatch doctor\n"
    "  etwatch doctor --metrics\n";

static const char metrics_help[] =
    "usage: etwatch metrics [options]\n"
    "\n"
    "Lists every metric: its group and unit, and for each source whether it is exact, polled,\n"
    "estimated or unavailable (-). --json and --csv add how it is obtained, or why it is "
    "unavailable,\n"
    "and its names for Prometheus and OpenTelemetry.\n";

static const char serve_help[] =
    "usage: etwatch serve [options] [FILE.etl... | FILE.pftrace...]\n"
    "\n"
    "Serves a live dashboard at http://127.0.0.1:9797/, /metrics for Prometheus (text and\n"
    "OpenMetrics), and JSON with a live stream below /api/v1/. Watches every process unless some "
    "are\n"
    "selected. The serving process has no rights; it ends with etwatch. With FILE it shows a\n"
    "recording in the same pages.\n"
    "\n"
    "  etwatch serve\n"
    "  etwatch serve --hz 10 --prom-top 50\n"
    "  etwatch serve trace.pftrace\n"
    "  etwatch serve --otlp http://127.0.0.1:4318\n"
    "  etwatch serve --listen 0.0.0.0:9797 --token-file /etc/etwatch/token --allow-host "
    "web1.example\n";

static const char compare_help[] =
    "usage: etwatch compare [options] A B\n"
    "\n"
    "Compares two runs: the latencies of their inferences and marked work, with a statistical "
    "test\n"
    "(Mann-Whitney) and the interval of the ratio of the medians, their causes, CPU time and "
    "energy.\n"
    "Runs without marks: the CPU use and memory of processes with the same name. A and B are "
    "files\n"
    "of 'etwatch run --json' or 'stat --json', or recordings (.pftrace).\n"
    "\n"
    "  etwatch run --onnx --json -o fp32.json -- python3 infer.py fp32.onnx\n"
    "  etwatch run --onnx --json -o int8.json -- python3 infer.py int8.onnx\n"
    "  etwatch compare fp32.json int8.json\n";

static const char *intro_of(enum ew_command command)
{
    switch (command) {
    case EW_CMD_RUN:
        return run_help;
    case EW_CMD_STAT:
        return stat_help;
    case EW_CMD_TOP:
        return top_help;
    case EW_CMD_DOCTOR:
        return doctor_help;
    case EW_CMD_REPORT:
        return report_help;
    case EW_CMD_EVENTS:
        return events_help;
    case EW_CMD_EXPORT:
        return export_help;
    case EW_CMD_RECORD:
        return record_help;
    case EW_CMD_SESSIONS:
        return sessions_help;
    case EW_CMD_SERVICE:
        return service_help;
    case EW_CMD_WAITS:
        return waits_help;
    case EW_CMD_ONNX:
        return onnx_help;
    case EW_CMD_SPANS:
        return spans_help;
    case EW_CMD_SERVE:
        return serve_help;
    case EW_CMD_COMPARE:
        return compare_help;
    case EW_CMD_CONFIG:
        return config_help;
    case EW_CMD_METRICS:
        return metrics_help;
    default:
        return program_help;
    }
}

enum { TEXT_COLUMN = 30, LINE_WIDTH = 100 };

/* Text in lines of LINE_WIDTH columns that begin at TEXT_COLUMN. */
static void put_wrapped(struct ew_buf *out, const char *text)
{
    const size_t room = LINE_WIDTH - TEXT_COLUMN;
    while (strlen(text) > room) {
        size_t len = room;
        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0)
            break;
        ew_buf_bytes(out, text, len);
        ew_buf_char(out, '\n');
        ew_buf_repeat(out, ' ', TEXT_COLUMN);
        text += len + 1;
    }
    ew_buf_text(out, text);
    ew_buf_char(out, '\n');
}

static void put_option(struct ew_buf *out, const struct ew_option *option)
{
    size_t from = out->len;
    ew_buf_text(out, "  ");
    if (option->letter != 0) {
        ew_buf_char(out, '-');
        ew_buf_char(out, option->letter);
        ew_buf_text(out, ", ");
    } else {
        ew_buf_text(out, "    ");
    }
    ew_buf_text(out, "--");
    ew_buf_text(out, option->name);
    if (option->value != NULL) {
        ew_buf_char(out, ' ');
        ew_buf_text(out, option->value);
    }
    size_t used = out->len - from;
    ew_buf_repeat(out, ' ', used + 2 < TEXT_COLUMN ? TEXT_COLUMN - used : 2);
    put_wrapped(out, option->help);
}

static const char *const headings[EW_SECTION_COUNT] = {
    [EW_SECTION_PROCESSES] = "Which processes",
    [EW_SECTION_PART] = "Which part of a recording",
    [EW_SECTION_MEASURE] = "What to measure, and how",
    [EW_SECTION_RECORD] = "Size of a recording (.pftrace)",
    [EW_SECTION_SERVE] = "Serving",
    [EW_SECTION_OUTPUT] = "Output",
    [EW_SECTION_ETW] = "ETW sessions",
    [EW_SECTION_GENERAL] = "General",
};

/* The lines of a text that are for this system. */
static void put_lines(struct ew_buf *out, const char *text, uint32_t system)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        uint32_t only = *text == ON_LINUX[0]     ? EW_ON_LINUX
                        : *text == ON_WINDOWS[0] ? EW_ON_WINDOWS
                                                 : 0;
        if (only == 0 || only == system)
            ew_buf_bytes(out, text + (only != 0), len + 1 - (only != 0));
        text += len + 1; /* every line has its end */
    }
}

void ew_help_write(struct ew_buf *out, enum ew_command command, uint32_t system)
{
    /* Commands that work on one system only show what they have there. */
    bool everything = command == EW_CMD_SESSIONS || command == EW_CMD_ONNX;
    bool omitted = false;
    const struct ew_option *option;
    uint32_t section = EW_SECTION_COUNT;
    put_lines(out, intro_of(command), system);
    bool options = command != EW_CMD_NONE && command != EW_CMD_SPANS;
    for (size_t i = 0; options && (option = ew_option_at(i)) != NULL; i++) {
        if ((option->commands & command) == 0)
            continue;
        if (option->only != 0 && option->only != system && !everything) {
            omitted = true;
            continue;
        }
        if (option->section != section) {
            section = option->section;
            ew_buf_char(out, '\n');
            ew_buf_text(out, headings[section]);
            ew_buf_text(out, ":\n");
        }
        put_option(out, option);
    }
    if (omitted)
        ew_buf_text(out, system == EW_ON_WINDOWS
                             ? "\nThe manual (docs/etwatch.1) also has the options for Linux.\n"
                             : "\nThe manual (man etwatch) also has the options for Windows.\n");
}
