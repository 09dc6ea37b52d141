/* SPDX-License-Identifier: MIT */
/*
 * Parsers for the text of /proc. Pure functions; the input may be truncated anywhere or be invalid.
 *
 * status and io are parsed by label and not by line number: kernels add lines in the middle. An
 * unknown label is skipped, a known one with an invalid value is an error, because half a number at
 * the end of a truncated text would look like a whole one.
 */
#include "source/poll/proc_text.h"

#include <string.h>

#define PF_KTHREAD 0x00200000u

static int finish(const struct ew_bytes *in, const char *what, struct ew_error *reterr)
{
    if (ew_bytes_ok(in))
        return 0;
    ew_error_set(reterr, in->error, 0, "%s %s at byte %llu", what,
                 in->error == ETWATCH_ETRUNC ? "ends early" : "is malformed",
                 (unsigned long long)in->error_offset);
    if (reterr)
        reterr->offset = in->error_offset;
    return in->error;
}

/* A number and the blank after it. */
static uint64_t field_u64(struct ew_bytes *in)
{
    uint64_t value = ew_bytes_dec_u64(in);
    ew_bytes_skip_spaces(in);
    return value;
}

static int64_t field_i64(struct ew_bytes *in)
{
    int64_t value = ew_bytes_dec_i64(in);
    ew_bytes_skip_spaces(in);
    return value;
}

static uint32_t field_u32(struct ew_bytes *in)
{
    struct ew_bytes before = *in;
    uint64_t value = field_u64(in);
    if (value > UINT32_MAX) {
        *in = before;
        ew_bytes_fail(in, ETWATCH_EFORMAT);
        return 0;
    }
    return (uint32_t)value;
}

/* A session or parent outside this pid namespace is printed as 0, by old kernels as -1. */
static uint32_t field_id(struct ew_bytes *in)
{
    if (ew_bytes_accept(in, "-1 "))
        return 0;
    return field_u32(in);
}

/* A number must be followed by a separator, otherwise it may be truncated. */
static void expect_end(struct ew_bytes *in)
{
    int next = ew_bytes_peek(in);
    if (next != ' ' && next != '\n' && ew_bytes_ok(in))
        ew_bytes_fail(in, next < 0 ? ETWATCH_ETRUNC : ETWATCH_EFORMAT);
}

/*
 * 8303 (cat) R 8286 8286 5052 0 -1 4194304 104 0 0 0 0 0 0 0 20 0 1 0 168334 3133440 413 1844… …
 *
 * The name may contain anything, including blanks, newlines and parentheses, but nothing after it
 * contains a closing parenthesis: the name ends at the last one.
 */
int ew_proc_parse_stat(const void *text, size_t size, struct ew_proc_stat *ret_stat,
                       struct ew_error *reterr)
{
    struct ew_proc_stat stat = {0};
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    stat.pid = field_u32(&in);
    ew_bytes_expect(&in, "(");
    struct ew_span comm = ew_bytes_until_last(&in, ')');
    (void)ew_span_copy(comm, stat.comm, sizeof stat.comm);
    ew_bytes_expect(&in, " ");
    stat.state = (char)ew_bytes_u8(&in);
    ew_bytes_expect(&in, " ");
    stat.ppid = field_id(&in);
    ew_bytes_skip_fields(&in, 1); /* pgrp */
    stat.session = field_id(&in);
    ew_bytes_skip_fields(&in, 2); /* tty_nr tpgid */
    stat.kernel_thread = (field_u64(&in) & PF_KTHREAD) != 0;
    stat.faults_minor = field_u64(&in);
    ew_bytes_skip_fields(&in, 1); /* cminflt */
    stat.faults_major = field_u64(&in);
    ew_bytes_skip_fields(&in, 1); /* cmajflt */
    stat.user_ticks = field_u64(&in);
    stat.kernel_ticks = field_u64(&in);
    ew_bytes_skip_fields(&in, 2); /* cutime cstime */
    stat.priority = field_i64(&in);
    ew_bytes_skip_fields(&in, 1); /* nice */
    stat.threads = field_u64(&in);
    ew_bytes_skip_fields(&in, 1); /* itrealvalue */
    stat.start_ticks = field_u64(&in);
    stat.virtual_bytes = field_u64(&in);
    stat.rss_pages = field_u64(&in);
    ew_bytes_skip_fields(&in, 27); /* rsslim … env_end */
    stat.exit_code = (int32_t)(ew_bytes_dec_i64(&in) & 0xffff);
    expect_end(&in);
    int rc = finish(&in, "stat", reterr);
    if (rc == 0)
        *ret_stat = stat;
    return rc;
}

/* "596615 1182447 1\n" */
int ew_proc_parse_schedstat(const void *text, size_t size, struct ew_proc_schedstat *ret_schedstat,
                            struct ew_error *reterr)
{
    struct ew_proc_schedstat schedstat;
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    schedstat.run_ns = field_u64(&in);
    schedstat.wait_ns = field_u64(&in);
    schedstat.slices = ew_bytes_dec_u64(&in);
    expect_end(&in);
    int rc = finish(&in, "schedstat", reterr);
    if (rc == 0)
        *ret_schedstat = schedstat;
    return rc;
}

/* Skips the rest of the line including its end. */
static void end_line(struct ew_bytes *in)
{
    (void)ew_bytes_until(in, '\n');
}

/* "rchar: 6993\n", and so on. Every kernel that has the file prints all six. */
int ew_proc_parse_io(const void *text, size_t size, struct ew_proc_io *ret_io,
                     struct ew_error *reterr)
{
    struct ew_proc_io io = {0};
    const struct {
        const char *label;
        uint64_t *value;
    } known[] = {
        {"rchar:", &io.read_chars},      {"wchar:", &io.write_chars},
        {"syscr:", &io.read_calls},      {"syscw:", &io.write_calls},
        {"read_bytes:", &io.read_bytes}, {"write_bytes:", &io.write_bytes},
    };
    const size_t known_count = sizeof known / sizeof known[0];
    unsigned seen = 0;
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    while (ew_bytes_left(&in) > 0) {
        for (size_t i = 0; i < known_count; i++) {
            if (!ew_bytes_accept(&in, known[i].label))
                continue;
            ew_bytes_skip_spaces(&in);
            *known[i].value = ew_bytes_dec_u64(&in);
            expect_end(&in);
            seen |= 1u << i;
            break;
        }
        end_line(&in);
    }
    if (seen != (1u << known_count) - 1)
        ew_bytes_fail(&in, ETWATCH_ETRUNC);
    int rc = finish(&in, "io", reterr);
    if (rc == 0)
        *ret_io = io;
    return rc;
}

/* "VmRSS:\t    1756 kB\n", after the label. */
static uint64_t value_kib(struct ew_bytes *in)
{
    ew_bytes_skip_spaces(in);
    struct ew_bytes before = *in;
    uint64_t kib = ew_bytes_dec_u64(in);
    ew_bytes_expect(in, " kB");
    if (kib > UINT64_MAX / 1024) {
        *in = before;
        ew_bytes_fail(in, ETWATCH_EFORMAT);
        return 0;
    }
    return kib * 1024;
}

static uint64_t value_count(struct ew_bytes *in)
{
    ew_bytes_skip_spaces(in);
    uint64_t value = ew_bytes_dec_u64(in);
    expect_end(in);
    return value;
}

/* "Cpus_allowed:\tff,ffffffff\n": groups of 32 bits, the highest first. Known only if no CPU
 * beyond the first 64 is set. */
static void read_affinity(struct ew_bytes *in, struct ew_proc_status *status)
{
    uint64_t mask = 0;
    bool fits = true;
    ew_bytes_skip_spaces(in);
    do {
        struct ew_bytes before = *in;
        uint64_t group = ew_bytes_hex_u64(in);
        if (group > UINT32_MAX) {
            *in = before;
            ew_bytes_fail(in, ETWATCH_EFORMAT);
        }
        fits = fits && mask >> 32 == 0;
        mask = mask << 32 | group;
    } while (ew_bytes_accept(in, ","));
    expect_end(in);
    status->affinity = mask;
    if (fits)
        status->has |= EW_STATUS_AFFINITY;
}

/* One line with its label at the cursor; unknown labels are not consumed. */
static void read_status_line(struct ew_bytes *in, struct ew_proc_status *status)
{
    switch (ew_bytes_peek(in)) {
    case 'U':
        if (ew_bytes_accept(in, "Uid:")) {
            ew_bytes_skip_spaces(in);
            status->uid = field_u32(in);
            status->has |= EW_STATUS_UID;
        }
        break;
    case 'V':
        if (ew_bytes_accept(in, "VmRSS:")) {
            status->rss_bytes = value_kib(in);
            status->has |= EW_STATUS_RSS;
        } else if (ew_bytes_accept(in, "VmHWM:")) {
            status->peak_bytes = value_kib(in);
            status->has |= EW_STATUS_PEAK;
        } else if (ew_bytes_accept(in, "VmSize:")) {
            status->virtual_bytes = value_kib(in);
            status->has |= EW_STATUS_VIRTUAL;
        } else if (ew_bytes_accept(in, "VmSwap:")) {
            status->swap_bytes = value_kib(in);
            status->has |= EW_STATUS_SWAP;
        }
        break;
    case 'R':
        if (ew_bytes_accept(in, "RssAnon:")) {
            status->anon_bytes = value_kib(in);
            status->has |= EW_STATUS_ANON;
        }
        break;
    case 'C':
        if (ew_bytes_accept(in, "Cpus_allowed:"))
            read_affinity(in, status);
        break;
    case 'v':
        if (ew_bytes_accept(in, "voluntary_ctxt_switches:"))
            status->switches_voluntary = value_count(in);
        break;
    case 'n':
        if (ew_bytes_accept(in, "nonvoluntary_ctxt_switches:")) {
            status->switches_involuntary = value_count(in);
            status->has |= EW_STATUS_SWITCHES; /* the last line: the text is complete */
        }
        break;
    default:
        break;
    }
}

int ew_proc_parse_status(const void *text, size_t size, struct ew_proc_status *ret_status,
                         struct ew_error *reterr)
{
    struct ew_proc_status status = {0};
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    while (ew_bytes_left(&in) > 0) {
        read_status_line(&in, &status);
        end_line(&in);
    }
    if (size == 0)
        ew_bytes_fail(&in, ETWATCH_ETRUNC);
    int rc = finish(&in, "status", reterr);
    if (rc == 0)
        *ret_status = status;
    return rc;
}

/* "0::/system.slice/cron.service\n"; lines with other numbers belong to cgroup v1. */
int ew_proc_parse_cgroup(const void *text, size_t size, struct ew_span *ret_path,
                         struct ew_error *reterr)
{
    struct ew_span path = {.text = ""};
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    while (ew_bytes_left(&in) > 0) {
        if (ew_bytes_accept(&in, "0::"))
            path = ew_bytes_until(&in, '\n');
        else
            end_line(&in);
    }
    int rc = finish(&in, "cgroup", reterr);
    if (rc == 0)
        *ret_path = path;
    return rc;
}

/* "0.15 0.13 0.15 3/88 10391\n" */
int ew_proc_parse_last_pid(const void *text, size_t size, uint32_t *ret_pid,
                           struct ew_error *reterr)
{
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    ew_bytes_skip_fields(&in, 4);
    uint32_t pid = field_u32(&in);
    ew_bytes_expect(&in, "\n");
    int rc = finish(&in, "loadavg", reterr);
    if (rc == 0)
        *ret_pid = pid;
    return rc;
}

/* "NSpid:\t10393\n"; further numbers are the ids in inner namespaces. */
bool ew_proc_same_namespace(const void *text, size_t size, uint32_t pid)
{
    struct ew_bytes in;
    ew_bytes_init(&in, text, size);
    while (ew_bytes_left(&in) > 0) {
        if (ew_bytes_accept(&in, "NSpid:")) {
            ew_bytes_skip_spaces(&in);
            uint64_t id = field_u64(&in);
            return ew_bytes_peek(&in) == '\n' && id == pid;
        }
        end_line(&in);
    }
    return false;
}

uint32_t ew_proc_parse_pid_name(const char *name)
{
    struct ew_bytes in;
    if (name[0] < '1' || name[0] > '9')
        return 0;
    ew_bytes_init(&in, name, strlen(name));
    uint64_t pid = ew_bytes_dec_u64(&in);
    return ew_bytes_ok(&in) && ew_bytes_left(&in) == 0 && pid <= INT32_MAX ? (uint32_t)pid : 0;
}
