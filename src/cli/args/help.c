/* SPDX-License-Identifier: MIT */
/* The text of --help: examples first, then the options that the command really has. */
#include <string.h>

#include "base/buf.h"
#include "cli/args/options.h"

static const char program_help[] =
    "etwatch shows what every process really did, from the kernel's own accounting.\n"
    "\n"
    "  etwatch run -- python3 infer.py      run a command, watch it and its descendants\n"
    "  etwatch stat -n python --hz 100      stream samples of running processes\n"
    "  etwatch top                          live screen\n"
    "  etwatch record -o trace.etl          on Windows: ETW writes a recording of the machine\n"
    "  etwatch report trace.etl             what a Windows recording holds, per process\n"
    "  etwatch events trace.etl             its events, one a line\n"
    "  etwatch export trace.etl -o out.arrow  the same for your own tools: tables, stacks, "
    "timelines\n"
    "  etwatch waits -p 1234                who waited for whom, and how long\n"
    "  etwatch metrics                      every metric: unit, and how exact it is per source\n"
    "  etwatch config --show                the configuration in force, and where it comes from\n"
    "  etwatch doctor                       what works here, what does not, and how to get it\n"
    "  etwatch sessions                     on Windows: the ETW sessions there are\n"
    "\n"
    "'etwatch COMMAND --help' shows the options of a command, 'etwatch --version' the version.\n"
    "Data goes to standard output, words to standard error. Exit status: that of CMD for run,\n"
    "0 ok, 1 failed, 2 usage, 3 missing rights, 128+n ended by signal n.\n";

static const char run_help[] =
    "usage: etwatch run [options] -- CMD [ARG...]\n"
    "\n"
    "Runs CMD, watches it and all its descendants, and ends with a summary and CMD's exit status.\n"
    "\n"
    "  etwatch run -- make -j4\n"
    "  etwatch run --threads --hz 1000 -- ./inference model.onnx\n"
    "  etwatch run --json -o samples.jsonl -- python3 train.py\n";

static const char stat_help[] =
    "usage: etwatch stat [options] (-p PID | -n NAME | -u USER | --cgroup PATH | -a | FILE.etl)\n"
    "\n"
    "Streams samples: a table each second, or every sample with --json or --csv.\n"
    "\n"
    "  etwatch stat -p 1234 --hz 100 --json\n"
    "  etwatch stat -a --csv -o all.csv --duration 60\n"
    "  etwatch stat -n python --window 10\n"
    "  etwatch stat trace.etl --hz 100 --json     a Windows recording as if it were live\n";

static const char report_help[] =
    "usage: etwatch report [options] FILE.etl...\n"
    "\n"
    "Reads Windows recordings (several are merged by time) and tells about the machine, the kinds\n"
    "of events and what each process did. CPU is exact where context switches were recorded;\n"
    "where only profile samples were it is an estimate and marked so (~).\n"
    "\n"
    "  etwatch report trace.etl\n"
    "  etwatch report --threads -n python kernel.etl user.etl\n"
    "  etwatch report --json --from 2.5s --to 3s trace.etl\n";

static const char events_help[] =
    "usage: etwatch events [options] FILE.etl...\n"
    "\n"
    "Every event of Windows recordings in order of time, one a line: seconds since the beginning,\n"
    "time (UTC), CPU, process and thread id, process, provider/event, and all fields by name.\n"
    "\n"
    "  etwatch events --count trace.etl\n"
    "  etwatch events --event CSwitch -p 4321 --from 1s --to 1.1s trace.etl\n"
    "  etwatch events --json --provider Kernel-Process trace.etl\n";

static const char export_help[] =
    "usage: etwatch export [options] -f FORMAT -o OUT FILE...\n"
    "\n"
    "Writes recordings in the format of other tools: tables (arrow, csv, jsonl), stacks "
    "of\n"
    "profile samples for flame graphs (folded, speedscope), timelines (perfetto, chrome). Without\n"
    "-f the ending of OUT says which.\n"
    "\n"
    "  etwatch export trace.etl -o events.arrow\n"
    "  etwatch export trace.etl -f csv --table samples --hz 100 -n python -o samples.csv\n"
    "  etwatch export trace.etl -f arrow --event CSwitch --typed -o switches.arrow\n"
    "  etwatch export trace.etl -f folded | flamegraph.pl > flame.svg\n";

static const char top_help[] = "usage: etwatch top [options]\n"
                               "\n"
                               "A live screen of what runs (all processes unless some are named). "
                               "Keys: q quit, c sort by CPU,\n"
                               "m by memory, i by I/O, h help.\n";

static const char record_help[] =
    "usage: etwatch record -o FILE [options] [-- CMD [ARG...]]\n"
    "\n"
    "Records events into FILE until CMD has ended, --duration is over or it is interrupted. The\n"
    "ending says what is written: .pftrace is a Perfetto trace of what was named (or of all), "
    "with\n"
    "the scheduling of the whole machine; .etl is written by Windows itself (ETW).\n"
    "\n"
    "  etwatch record -o run.pftrace -- ./inference model.onnx\n"
    "  etwatch record -o all.pftrace -a --hz 100 --duration 10\n"
    "  etwatch record -o spike.pftrace --ring 60s --trigger 'cpu_percent>90 for 1s'\n"
    "  etwatch record -o trace.etl --duration 10\n"
    "  etwatch record -o trace.etl -- infer.exe model.onnx\n";

static const char sessions_help[] =
    "usage: etwatch sessions [options]\n"
    "\n"
    "Lists the ETW sessions of this machine (Windows) with their buffers, mode and loss. Those "
    "that\n"
    "etwatch made are marked; with --cleanup those that it left behind are ended, no other.\n"
    "\n"
    "  etwatch sessions\n"
    "  etwatch sessions --cleanup\n";

static const char waits_help[] =
    "usage: etwatch waits [options] (-p PID | -n NAME | -u USER | --cgroup PATH | -a | FILE)\n"
    "\n"
    "What the threads of some processes did with their time (ran, were ready, slept, were blocked\n"
    "by a disk or a page fault), which thread woke which and how long that one had waited, until\n"
    "interrupted, or of a recording (.etl, .pftrace) that has context switches and wake-ups.\n"
    "\n"
    "  etwatch waits -p 1234 --duration 5\n"
    "  etwatch waits -n python --json\n"
    "  etwatch waits -n chrome trace.etl\n";

static const char config_help[] =
    "usage: etwatch config --check FILE | etwatch config --show [options]\n"
    "\n"
    "Checks a configuration file: the first error with file, line and column, exit status 2. Or\n"
    "shows the configuration that --config FILE, --profile and other options of run, stat, top "
    "and\n"
    "record give, as a configuration file, with where each value comes from.\n"
    "\n"
    "  etwatch config --check etwatch.conf\n"
    "  etwatch config --show --config etwatch.conf --profile production\n";

static const char doctor_help[] = "usage: etwatch doctor [options]\n"
                                  "\n"
                                  "Probes what works here, what a missing thing costs, and prints "
                                  "the command that would fix it.\n"
                                  "Exit status 0 if a source works, 3 if none does.\n";

static const char metrics_help[] =
    "usage: etwatch metrics [--json | --csv]\n"
    "\n"
    "Every metric: its group and unit, and for each source whether it is exact, polled, estimated\n"
    "or not to be had (-). --json and --csv add how it is obtained or why it cannot be known, and\n"
    "its names for Prometheus and OpenTelemetry.\n";

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
    case EW_CMD_WAITS:
        return waits_help;
    case EW_CMD_CONFIG:
        return config_help;
    case EW_CMD_METRICS:
        return metrics_help;
    default:
        return program_help;
    }
}

static void put_option(struct ew_buf *out, const struct ew_option_info *info)
{
    enum { TEXT_COLUMN = 26 };
    size_t from = out->len;
    ew_buf_text(out, "  ");
    if (info->letter != 0) {
        ew_buf_char(out, '-');
        ew_buf_char(out, info->letter);
        ew_buf_text(out, ", ");
    } else {
        ew_buf_text(out, "    ");
    }
    ew_buf_text(out, "--");
    ew_buf_text(out, info->name);
    if (info->value != NULL) {
        ew_buf_char(out, ' ');
        ew_buf_text(out, info->value);
    }
    size_t used = out->len - from;
    ew_buf_repeat(out, ' ', used + 2 < TEXT_COLUMN ? TEXT_COLUMN - used : 2);
    ew_buf_text(out, info->help);
    ew_buf_char(out, '\n');
}

void ew_help_write(struct ew_buf *out, enum ew_command command)
{
    ew_buf_text(out, intro_of(command));
    if (command == EW_CMD_NONE)
        return;
    ew_buf_text(out, "\noptions:\n");
    for (size_t i = 0; ew_option_info(i) != NULL; i++)
        if ((ew_option_info(i)->commands & command) != 0)
            put_option(out, ew_option_info(i));
}
