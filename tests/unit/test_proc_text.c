/* SPDX-License-Identifier: MIT */
/* Parsing of /proc text: the values, and the position at which malformed text is reported. */
#include <stdio.h>
#include <string.h>

#include "source/poll/proc_text.h"
#include "test.h"

#include <etwatch/etwatch.h>

/* Fields 4 to 52 of a stat line. */
#define FIELDS_TO_25 "1 7 42 0 -1 4194304 1234 7 5 3 70 30 11 13 39 0 4 0 4200 4096000 250 99 "
#define FIELDS_TO_51 "0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 "
#define STAT(head) head FIELDS_TO_25 FIELDS_TO_51 "768\n"

static int parse_stat(const char *text, struct ew_proc_stat *ret_stat, struct ew_error *reterr)
{
    return ew_proc_parse_stat(text, strlen(text), ret_stat, reterr);
}

TEST(a_stat_line_gives_its_fields)
{
    struct ew_proc_stat stat;
    CHECK_EQ_INT(parse_stat(STAT("100 (worker) S "), &stat, NULL), 0);
    CHECK_EQ_UINT(stat.pid, 100);
    CHECK_EQ_STR(stat.comm, "worker");
    CHECK_EQ_INT(stat.state, 'S');
    CHECK_EQ_UINT(stat.ppid, 1);
    CHECK_EQ_UINT(stat.session, 42);
    CHECK(!stat.kernel_thread);
    CHECK_EQ_UINT(stat.faults_minor, 1234);
    CHECK_EQ_UINT(stat.faults_major, 5);
    CHECK_EQ_UINT(stat.user_ticks, 70);
    CHECK_EQ_UINT(stat.kernel_ticks, 30);
    CHECK_EQ_INT(stat.priority, 39);
    CHECK_EQ_UINT(stat.threads, 4);
    CHECK_EQ_UINT(stat.start_ticks, 4200);
    CHECK_EQ_UINT(stat.virtual_bytes, 4096000);
    CHECK_EQ_UINT(stat.rss_pages, 250);
    CHECK_EQ_INT(stat.exit_code, 768);
}

TEST(a_name_may_contain_any_bytes)
{
    static const struct {
        const char *line, *comm;
    } rows[] = {
        {STAT("1 (a b) S "), "a b"},
        {STAT("1 ((sd-pam)) S "), "(sd-pam)"},
        {STAT("1 (x) R 1 (y) S "), "x) R 1 (y"},
        {STAT("1 (two\nlines) S "), "two\nlines"},
        {STAT("1 () S "), ""},
        {STAT("1 (\xff\xfe) S "), "\xff\xfe"},
        {STAT("1 ())) S "), "))"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_stat stat;
        test_row(rows[i].comm);
        CHECK_EQ_INT(parse_stat(rows[i].line, &stat, NULL), 0);
        CHECK_EQ_STR(stat.comm, rows[i].comm);
        CHECK_EQ_INT(stat.state, 'S');
        CHECK_EQ_UINT(stat.start_ticks, 4200);
    }
}

TEST(a_name_longer_than_its_buffer_is_truncated)
{
    struct ew_proc_stat stat;
    char line[512];
    (void)snprintf(line, sizeof line, "1 (%0100d) S %s", 7, STAT(""));
    CHECK_EQ_INT(parse_stat(line, &stat, NULL), 0);
    CHECK_EQ_UINT(strlen(stat.comm), EW_PROC_COMM_SIZE - 1);
    CHECK_EQ_UINT(stat.start_ticks, 4200);
}

TEST(a_malformed_stat_line_is_refused_at_its_byte)
{
    static const struct {
        const char *line, *remark;
        int error;
        uint64_t offset;
    } rows[] = {
        {"", "empty", ETWATCH_ETRUNC, 0},
        {"x (a) S 1", "no pid", ETWATCH_EFORMAT, 0},
        {"99999999999 (a) S 1", "a pid too large", ETWATCH_EFORMAT, 0},
        {"1 a S 1", "no name", ETWATCH_EFORMAT, 2},
        {"1 (a", "a name without end", ETWATCH_ETRUNC, 3},
        {"1 (a)", "nothing after the name", ETWATCH_ETRUNC, 5},
        {"1 (a)S 1", "no blank after the name", ETWATCH_EFORMAT, 5},
        {"1 (a) S x", "a malformed parent", ETWATCH_EFORMAT, 8},
        {"1 (a) S 1 7", "cut after the group", ETWATCH_ETRUNC, 11},
        {"1 (a) S 1 7 42 0 -1 18446744073709551616 ", "too large", ETWATCH_EFORMAT, 20},
        {"1 (a) S 1 7 42 0 -1 0 -5 ", "a negative count", ETWATCH_EFORMAT, 22},
        {"1 (a) S " FIELDS_TO_25, "cut after the memory", ETWATCH_ETRUNC, 80},
        {"1 (a) S " FIELDS_TO_25 FIELDS_TO_51 "76", "cut within the last", ETWATCH_ETRUNC, 135},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_stat stat = {.pid = 4711};
        struct ew_error error;
        test_row(rows[i].remark);
        CHECK_EQ_INT(parse_stat(rows[i].line, &stat, &error), rows[i].error);
        CHECK_EQ_INT(error.code, rows[i].error);
        CHECK_EQ_UINT(error.offset, rows[i].offset);
        CHECK_EQ_UINT(stat.pid, 4711);
    }
}

TEST(a_stat_line_truncated_anywhere_is_refused)
{
    static const char line[] = STAT("100 (worker) S ");
    struct ew_proc_stat stat;
    for (size_t len = 0; len < sizeof line - 2; len++)
        CHECK(ew_proc_parse_stat(line, len, &stat, NULL) != 0);
}

TEST(an_id_outside_the_namespace_is_zero)
{
    struct ew_proc_stat stat;
    CHECK_EQ_INT(parse_stat("1 (a) S -1 7 -1 0 -1 0 0 0 0 0 0 0 0 0 -2 0 1 0 5 0 0 0 " FIELDS_TO_51
                            "0\n",
                            &stat, NULL),
                 0);
    CHECK_EQ_UINT(stat.ppid, 0);
    CHECK_EQ_UINT(stat.session, 0);
    CHECK_EQ_INT(stat.priority, -2);
}

TEST(the_kernel_thread_bit_is_recognized)
{
    struct ew_proc_stat stat;
    CHECK_EQ_INT(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 "
                            "99 " FIELDS_TO_51 "0\n",
                            &stat, NULL),
                 0);
    CHECK(stat.kernel_thread);
}

#define IO "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"

TEST(an_io_file_gives_its_counts_whatever_else_it_holds)
{
    static const char *const texts[] = {IO, IO "cancelled_write_bytes: 9\n", "new_line: x\n" IO};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct ew_proc_io io;
        CHECK_EQ_INT(ew_proc_parse_io(texts[i], strlen(texts[i]), &io, NULL), 0);
        CHECK_EQ_UINT(io.read_chars, 1);
        CHECK_EQ_UINT(io.write_chars, 2);
        CHECK_EQ_UINT(io.read_calls, 3);
        CHECK_EQ_UINT(io.write_calls, 4);
        CHECK_EQ_UINT(io.read_bytes, 5);
        CHECK_EQ_UINT(io.write_bytes, 6);
    }
}

TEST(a_malformed_io_file_is_refused_at_its_byte)
{
    static const struct {
        const char *text, *remark;
        int error;
        uint64_t offset;
    } rows[] = {
        {"", "empty", ETWATCH_ETRUNC, 0},
        {"rchar: 12", "cut within a number", ETWATCH_ETRUNC, 9},
        {"rchar: 12\n", "five are missing", ETWATCH_ETRUNC, 10},
        {"rchar: x\n", "no number", ETWATCH_EFORMAT, 7},
        {"rchar: 1x\n", "trailing text", ETWATCH_EFORMAT, 8},
        {"rchar: 1\nwchar: 18446744073709551616\n", "too large", ETWATCH_EFORMAT, 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_io io;
        struct ew_error error;
        test_row(rows[i].remark);
        CHECK_EQ_INT(ew_proc_parse_io(rows[i].text, strlen(rows[i].text), &io, &error),
                     rows[i].error);
        CHECK_EQ_UINT(error.offset, rows[i].offset);
    }
}

TEST(schedstat_gives_three_numbers_or_an_error)
{
    static const struct {
        const char *text;
        int error;
        uint64_t offset;
    } rows[] = {{"596615 1182447 1\n", 0, 0},
                {"596615 1182447 1 7\n", 0, 0},
                {"596615 1182447 1", ETWATCH_ETRUNC, 16},
                {"596615 1182447\n", ETWATCH_EFORMAT, 14},
                {"596615", ETWATCH_ETRUNC, 6},
                {"596615 -1 1\n", ETWATCH_EFORMAT, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_schedstat schedstat;
        struct ew_error error = {.offset = 0};
        test_row(rows[i].text);
        CHECK_EQ_INT(
            ew_proc_parse_schedstat(rows[i].text, strlen(rows[i].text), &schedstat, &error),
            rows[i].error);
        CHECK_EQ_UINT(error.offset, rows[i].offset);
        if (rows[i].error)
            continue;
        CHECK_EQ_UINT(schedstat.run_ns, 596615);
        CHECK_EQ_UINT(schedstat.wait_ns, 1182447);
        CHECK_EQ_UINT(schedstat.slices, 1);
    }
}

static int parse_status(const char *text, struct ew_proc_status *ret, struct ew_error *reterr)
{
    return ew_proc_parse_status(text, strlen(text), ret, reterr);
}

TEST(status_gives_the_fields_it_has)
{
    struct ew_proc_status status;
    CHECK_EQ_INT(parse_status("Name:\tx\nUid:\t1000\t0\t0\t0\nVmPeak:\t 9 kB\nVmSize:\t 4 kB\n"
                              "VmHWM:\t 3 kB\nVmRSS:\t 2 kB\nRssAnon:\t 1 kB\nVmSwap:\t 5 kB\n"
                              "Cpus_allowed:\tff,00000003\nCpus_allowed_list:\t0-1\n"
                              "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n",
                              &status, NULL),
                 0);
    CHECK_EQ_UINT(status.has, 0xff);
    CHECK_EQ_UINT(status.uid, 1000);
    CHECK_EQ_UINT(status.virtual_bytes, 4096);
    CHECK_EQ_UINT(status.peak_bytes, 3072);
    CHECK_EQ_UINT(status.rss_bytes, 2048);
    CHECK_EQ_UINT(status.anon_bytes, 1024);
    CHECK_EQ_UINT(status.swap_bytes, 5120);
    CHECK_EQ_UINT(status.affinity, UINT64_C(0xff00000003));
    CHECK_EQ_UINT(status.switches_voluntary, 7);
    CHECK_EQ_UINT(status.switches_involuntary, 8);
    CHECK_EQ_INT(parse_status("Name:\tkworker\nUid:\t0\t0\t0\t0\n", &status, NULL), 0);
    CHECK_EQ_UINT(status.has, EW_STATUS_UID);
}

TEST(a_malformed_status_is_refused_at_its_byte)
{
    static const struct {
        const char *text, *remark;
        int error;
        uint64_t offset;
    } rows[] = {
        {"", "empty", ETWATCH_ETRUNC, 0},
        {"Name:\tx", "no line end", ETWATCH_ETRUNC, 0},
        {"VmRSS:\t12 k", "cut within the unit", ETWATCH_ETRUNC, 9},
        {"VmRSS:\t12 MB\n", "another unit", ETWATCH_EFORMAT, 9},
        {"VmRSS:\t-1 kB\n", "negative", ETWATCH_EFORMAT, 7},
        {"VmRSS:\t18446744073709551615 kB\n", "too large in bytes", ETWATCH_EFORMAT, 7},
        {"Uid:\t4294967296\t0\n", "a uid too large", ETWATCH_EFORMAT, 5},
        {"Cpus_allowed:\txyz\n", "no mask", ETWATCH_EFORMAT, 14},
        {"Cpus_allowed:\t1ffffffff\n", "a group of the mask too large", ETWATCH_EFORMAT, 14},
        {"voluntary_ctxt_switches:\t7", "cut after a count", ETWATCH_ETRUNC, 26},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_status status;
        struct ew_error error;
        test_row(rows[i].remark);
        CHECK_EQ_INT(parse_status(rows[i].text, &status, &error), rows[i].error);
        CHECK_EQ_UINT(error.offset, rows[i].offset);
    }
}

TEST(an_affinity_beyond_64_cpus_is_unknown)
{
    static const struct {
        const char *text;
        uint32_t has;
        uint64_t affinity;
    } rows[] = {
        {"Cpus_allowed:\tffffffff,ffffffff\n", EW_STATUS_AFFINITY, UINT64_MAX},
        {"Cpus_allowed:\t00000000,00000000,00000001\n", EW_STATUS_AFFINITY, 1},
        {"Cpus_allowed:\t1,00000000,00000000\n", 0, 0},
        {"Cpus_allowed:\t00000001,00000000,00000000,00000000\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_proc_status status;
        test_row(rows[i].text);
        CHECK_EQ_INT(parse_status(rows[i].text, &status, NULL), 0);
        CHECK_EQ_UINT(status.has, rows[i].has);
        if (status.has)
            CHECK_EQ_UINT(status.affinity, rows[i].affinity);
    }
}

TEST(the_cgroup_is_that_of_version_2)
{
    static const struct {
        const char *text, *path;
    } rows[] = {{"0::/a/b.service\n", "/a/b.service"},
                {"4:memory:/x\n0::/y\n1:cpu:/z\n", "/y"},
                {"4:memory:/x\n", ""},
                {"10::/x\n", ""},
                {"", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_span path;
        test_row(rows[i].text);
        CHECK_EQ_INT(ew_proc_parse_cgroup(rows[i].text, strlen(rows[i].text), &path, NULL), 0);
        CHECK(ew_span_equals(path, rows[i].path));
    }
    struct ew_span path;
    struct ew_error error;
    CHECK_EQ_INT(ew_proc_parse_cgroup("1:x\n0::/cut", 11, &path, &error), ETWATCH_ETRUNC);
    CHECK_EQ_UINT(error.offset, 7);
}

TEST(loadavg_gives_the_last_id)
{
    uint32_t pid = 0;
    struct ew_error error;
    CHECK_EQ_INT(ew_proc_parse_last_pid("0.15 0.13 0.15 3/88 10391\n", 26, &pid, NULL), 0);
    CHECK_EQ_UINT(pid, 10391);
    CHECK_EQ_INT(ew_proc_parse_last_pid("0.15 0.13 0.15 3/88 10391", 25, &pid, &error),
                 ETWATCH_ETRUNC);
    CHECK_EQ_UINT(error.offset, 25);
    CHECK_EQ_INT(ew_proc_parse_last_pid("0.15 0.13 0.15\n", 15, &pid, &error), ETWATCH_ETRUNC);
    CHECK_EQ_UINT(error.offset, 14);
}

TEST(only_a_single_id_equal_to_our_pid_means_our_namespace)
{
    static const struct {
        const char *text;
        int same;
    } rows[] = {{"Pid:\t7\nNSpid:\t7\n", 1},
                {"NSpid:\t1234\t7\n", 0},
                {"NSpid:\t7\t1\n", 0},
                {"NSpid:\t8\n", 0},
                {"NSpid:\t7", 0},
                {"Pid:\t7\n", 0},
                {"", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].text);
        CHECK_EQ_INT(ew_proc_same_namespace(rows[i].text, strlen(rows[i].text), 7), rows[i].same);
    }
}

TEST(only_plain_decimal_names_are_processes)
{
    static const struct {
        const char *name;
        uint32_t pid;
    } rows[] = {{"1", 1},
                {"4194304", 4194304},
                {"2147483647", 2147483647},
                {"0", 0},
                {"2147483648", 0},
                {"01", 0},
                {"-1", 0},
                {"12a", 0},
                {"self", 0},
                {"", 0},
                {"1 ", 0},
                {"99999999999999999999999", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_EQ_UINT(ew_proc_parse_pid_name(rows[i].name), rows[i].pid);
    }
}
