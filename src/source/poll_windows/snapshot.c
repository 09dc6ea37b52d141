/* SPDX-License-Identifier: MIT */
/*
 * Owns a poll source for one round. Windows lists one process only together with all others, so the
 * first round of a source is the cheapest way to read it.
 */
#include "source/snapshot.h"

#include "os/os.h"
#include "source/source.h"

/* Windows assigns pids in steps of four. */
#define LISTED_MAX 4194304u

/* Forwards facts, and notes if there was not enough space. */
struct one_round {
    const struct ew_facts *facts;
    bool lost;
};

static void on_process(void *ctx, const struct ew_process_fact *fact)
{
    const struct ew_facts *facts = ((struct one_round *)ctx)->facts;
    facts->process(facts->ctx, fact);
}

static void on_reading(void *ctx, const struct ew_reading *reading)
{
    const struct ew_facts *facts = ((struct one_round *)ctx)->facts;
    facts->reading(facts->ctx, reading);
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    (void)loss;
    ((struct one_round *)ctx)->lost = true;
}

static int round_of(const struct ew_source_config *config, const struct ew_facts *facts,
                    struct ew_error *reterr)
{
    struct one_round round = {.facts = facts};
    struct ew_facts forward = {
        .ctx = &round, .process = on_process, .reading = on_reading, .loss = on_loss};
    struct ew_source *source;
    uint64_t horizon_ns;
    int rc = ew_source_poll.open(config, &source, reterr);
    if (rc < 0)
        return rc;
    rc = source->ops->drain(source, ew_os_raw_ns(), &forward, &horizon_ns, reterr);
    source->ops->close(source);
    if (rc >= 0 && round.lost)
        rc = ew_error_set(reterr, ETWATCH_ENOMEM, 0, "no room for all processes");
    return rc < 0 ? rc : 0;
}

int ew_snapshot_process(uint32_t pid, bool threads, const struct ew_facts *facts,
                        struct ew_error *reterr)
{
    struct ew_source_config config = {.filter = {.pids = &pid, .pid_count = 1},
                                      .threads = threads,
                                      .max_processes = 65536,
                                      .proc_root = "/proc"};
    return round_of(&config, facts, reterr);
}

int ew_snapshot_all(const struct ew_facts *facts, struct ew_error *reterr)
{
    struct ew_source_config config = {.filter = {.all = true, .kernel_threads = true},
                                      .max_processes = LISTED_MAX,
                                      .proc_root = "/proc"};
    return round_of(&config, facts, reterr);
}
