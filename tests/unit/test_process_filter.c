/* SPDX-License-Identifier: MIT */
/* Who is left out is not told of, and is judged again when it becomes another program. */
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

static void on_shut(void *ctx, uint32_t pid, uint64_t start_ns, bool shut)
{
    CHECK_EQ_UINT(start_ns, 100 + pid);
    note(ctx, shut ? "shut" : "open", pid);
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

static void tell(struct ew_facts *facts, enum ew_process_kind kind, uint32_t pid, const char *name)
{
    struct ew_process_fact fact = fact_of(kind, pid, name);
    facts->process(facts->ctx, &fact);
}

static void read(struct ew_facts *facts, uint32_t pid)
{
    struct ew_reading reading = {.kind = EW_READING_AT, .pid = pid};
    facts->reading(facts->ctx, &reading);
}

static void open_gate(struct ew_process_filter *gate, struct ew_facts *facts, struct log *log,
                      const struct ew_process_filter_rules *rules)
{
    memset(gate, 0, sizeof *gate);
    memset(log, 0, sizeof *log);
    *facts = (struct ew_facts){.ctx = log, .process = on_process, .reading = on_reading};
    gate->rules = *rules;
    gate->ctx = log;
    gate->forget = on_forget;
    gate->set_excluded = on_shut;
    CHECK(ew_process_filter_needed(rules));
    ew_process_filter_open(gate, facts);
}

TEST(a_name_is_left_out_until_it_is_another)
{
    static const char *const names[] = {"sh*"};
    struct ew_process_filter gate;
    struct ew_facts facts;
    struct log log;
    open_gate(&gate, &facts, &log,
              &(struct ew_process_filter_rules){.names = names, .name_count = 1});
    tell(&facts, EW_PROCESS_START, 1, "sh");
    read(&facts, 1);
    CHECK_EQ_STR(log.text, "shut 1");
    tell(&facts, EW_PROCESS_EXEC, 1, "python3");
    read(&facts, 1);
    CHECK_EQ_STR(log.text, "shut 1, open 1, start 1, reading 1");
    tell(&facts, EW_PROCESS_RENAME, 1, "shell");
    read(&facts, 1);
    CHECK_EQ_STR(log.text, "shut 1, open 1, start 1, reading 1, forget 1, shut 1");
    tell(&facts, EW_PROCESS_EXIT, 1, "shell");
    CHECK_EQ_STR(log.text, "shut 1, open 1, start 1, reading 1, forget 1, shut 1, open 1");
    CHECK_EQ_UINT(gate.processes.used, 0);
    ew_process_filter_close(&gate);
}

TEST(one_who_was_there_before_is_seen_when_let_in)
{
    static const char *const names[] = {"sh"};
    struct ew_process_filter gate;
    struct ew_facts facts;
    struct log log;
    open_gate(&gate, &facts, &log,
              &(struct ew_process_filter_rules){.names = names, .name_count = 1});
    read(&facts, 7); /* not known yet: it may be one to leave out */
    tell(&facts, EW_PROCESS_SEEN, 7, "sh");
    tell(&facts, EW_PROCESS_EXEC, 7, "cat");
    tell(&facts, EW_PROCESS_EXIT, 7, "cat");
    CHECK_EQ_STR(log.text, "shut 7, open 7, seen 7, exit 7");
    ew_process_filter_close(&gate);
}

TEST(ids_users_and_the_system_are_left_out)
{
    static const uint32_t pids[] = {3}, uids[] = {5};
    struct ew_process_filter gate;
    struct ew_facts facts;
    struct log log;
    open_gate(&gate, &facts, &log,
              &(struct ew_process_filter_rules){.pids = pids,
                                                .pid_count = 1,
                                                .uids = uids,
                                                .uid_count = 1,
                                                .system = true,
                                                .windows = true});
    tell(&facts, EW_PROCESS_SEEN, 0, "Idle");
    tell(&facts, EW_PROCESS_SEEN, 4, "System");
    tell(&facts, EW_PROCESS_SEEN, 96, "Registry");
    tell(&facts, EW_PROCESS_SEEN, 3, "a.exe");
    tell(&facts, EW_PROCESS_SEEN, 5, "b.exe");
    tell(&facts, EW_PROCESS_SEEN, 6, "c.exe");
    CHECK_EQ_STR(log.text, "shut 0, shut 4, shut 96, shut 3, shut 5, seen 6");
    ew_process_filter_close(&gate);
}

TEST(on_linux_the_system_is_its_kernel_threads)
{
    struct ew_process_filter gate;
    struct ew_facts facts;
    struct log log;
    open_gate(&gate, &facts, &log, &(struct ew_process_filter_rules){.system = true});
    struct ew_process_fact fact = fact_of(EW_PROCESS_SEEN, 2, "kthreadd");
    fact.kernel_thread = true;
    facts.process(facts.ctx, &fact);
    tell(&facts, EW_PROCESS_SEEN, 4, "System");
    CHECK_EQ_STR(log.text, "shut 2, seen 4");
    ew_process_filter_close(&gate);
}
