/* SPDX-License-Identifier: MIT */
/* Excluded processes are not reported, and are checked again after an exec. */
#include <stdio.h>
#include <string.h>

#include "monitor/monitor.h"
#include "test.h"

struct log {
    char text[512];
};

static void note(struct log *log, const char *what, uint32_t pid)
{
    size_t len = strlen(log->text);
    (void)snprintf(log->text + len, sizeof log->text - len, "%s%s %u", len > 0 ? ", " : "", what,
                   pid);
}

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    static const char *const kinds[] = {"", "seen", "start", "exec", "rename", "exit"};
    note(ctx, kinds[fact->kind], fact->pid);
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    note(ctx, "reading", reading->pid);
}

static void on_forget(void *ctx, uint32_t pid)
{
    note(ctx, "forget", pid);
}

static void on_exclude(void *ctx, uint32_t pid, uint64_t start_ns, bool excluded)
{
    CHECK_EQ_UINT(start_ns, 100 + pid);
    note(ctx, excluded ? "exclude" : "include", pid);
}

static struct ew_process_fact fact_of(enum ew_process_kind kind, uint32_t pid, const char *name)
{
    struct ew_process_fact fact = {.kind = kind,
                                   .has = EW_HAS_NAME | EW_HAS_UID,
                                   .pid = pid,
                                   .uid = pid,
                                   .start_ns = 100 + pid};
    (void)snprintf(fact.name, sizeof fact.name, "%s", name);
    return fact;
}

static void send_fact(struct ew_facts *facts, enum ew_process_kind kind, uint32_t pid,
                      const char *name)
{
    struct ew_process_fact fact = fact_of(kind, pid, name);
    facts->process(facts->ctx, &fact);
}

static void send_reading(struct ew_facts *facts, uint32_t pid)
{
    struct ew_reading reading = {.kind = EW_READING_AT, .pid = pid};
    facts->reading(facts->ctx, &reading);
}

static void open_filter(struct ew_process_filter *filter, struct ew_facts *facts, struct log *log,
                        const struct ew_process_filter_rules *rules)
{
    memset(filter, 0, sizeof *filter);
    memset(log, 0, sizeof *log);
    *facts = (struct ew_facts){.ctx = log, .process = on_process, .reading = on_reading};
    filter->rules = *rules;
    filter->ctx = log;
    filter->forget = on_forget;
    filter->shut = on_exclude;
    CHECK(ew_process_filter_needed(rules));
    ew_process_filter_open(filter, facts);
}

TEST(a_process_is_excluded_until_its_name_changes)
{
    static const char *const names[] = {"sh*"};
    struct ew_process_filter filter;
    struct ew_facts facts;
    struct log log;
    open_filter(&filter, &facts, &log,
                &(struct ew_process_filter_rules){.names = names, .name_count = 1});
    send_fact(&facts, EW_PROCESS_START, 1, "sh");
    send_reading(&facts, 1);
    CHECK_EQ_STR(log.text, "exclude 1");
    send_fact(&facts, EW_PROCESS_EXEC, 1, "python3");
    send_reading(&facts, 1);
    CHECK_EQ_STR(log.text, "exclude 1, include 1, start 1, reading 1");
    send_fact(&facts, EW_PROCESS_RENAME, 1, "shell");
    send_reading(&facts, 1);
    CHECK_EQ_STR(log.text, "exclude 1, include 1, start 1, reading 1, forget 1, exclude 1");
    send_fact(&facts, EW_PROCESS_EXIT, 1, "shell");
    CHECK_EQ_STR(log.text,
                 "exclude 1, include 1, start 1, reading 1, forget 1, exclude 1, include 1");
    CHECK_EQ_UINT(filter.processes.used, 0);
    ew_process_filter_close(&filter);
}

TEST(a_preexisting_process_is_reported_as_seen_when_included)
{
    static const char *const names[] = {"sh"};
    struct ew_process_filter filter;
    struct ew_facts facts;
    struct log log;
    open_filter(&filter, &facts, &log,
                &(struct ew_process_filter_rules){.names = names, .name_count = 1});
    send_reading(&facts, 7); /* name unknown so far: it may have to be excluded */
    send_fact(&facts, EW_PROCESS_SEEN, 7, "sh");
    send_fact(&facts, EW_PROCESS_EXEC, 7, "cat");
    send_fact(&facts, EW_PROCESS_EXIT, 7, "cat");
    CHECK_EQ_STR(log.text, "exclude 7, include 7, seen 7, exit 7");
    ew_process_filter_close(&filter);
}

TEST(ids_users_and_the_system_are_excluded)
{
    static const uint32_t pids[] = {3}, uids[] = {5};
    struct ew_process_filter filter;
    struct ew_facts facts;
    struct log log;
    open_filter(&filter, &facts, &log,
                &(struct ew_process_filter_rules){.pids = pids,
                                                  .pid_count = 1,
                                                  .uids = uids,
                                                  .uid_count = 1,
                                                  .system = true,
                                                  .windows = true});
    send_fact(&facts, EW_PROCESS_SEEN, 0, "Idle");
    send_fact(&facts, EW_PROCESS_SEEN, 4, "System");
    send_fact(&facts, EW_PROCESS_SEEN, 96, "Registry");
    send_fact(&facts, EW_PROCESS_SEEN, 3, "a.exe");
    send_fact(&facts, EW_PROCESS_SEEN, 5, "b.exe");
    send_fact(&facts, EW_PROCESS_SEEN, 6, "c.exe");
    CHECK_EQ_STR(log.text, "exclude 0, exclude 4, exclude 96, exclude 3, exclude 5, seen 6");
    ew_process_filter_close(&filter);
}

TEST(on_linux_the_system_is_its_kernel_threads)
{
    struct ew_process_filter filter;
    struct ew_facts facts;
    struct log log;
    open_filter(&filter, &facts, &log, &(struct ew_process_filter_rules){.system = true});
    struct ew_process_fact fact = fact_of(EW_PROCESS_SEEN, 2, "kthreadd");
    fact.kernel_thread = true;
    facts.process(facts.ctx, &fact);
    send_fact(&facts, EW_PROCESS_SEEN, 4, "System");
    CHECK_EQ_STR(log.text, "exclude 2, seen 4");
    ew_process_filter_close(&filter);
}
