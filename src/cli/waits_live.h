/* SPDX-License-Identifier: MIT */
/* Who waits for whom among the processes that a session watches, while it does. */
#ifndef EW_CLI_WAITS_LIVE_H
#define EW_CLI_WAITS_LIVE_H

#include "cli/args/options.h"
#include "cli/output.h"
#include "cli/waits_view.h"

struct ew_waits_live {
    struct ew_waits_view view;
    uint64_t last_ns;
};

/* 0 or ETWATCH_ENOMEM. */
int ew_waits_live_init(struct ew_waits_live *live);
void ew_waits_live_done(struct ew_waits_live *live);
/* What the session hears. */
int ew_waits_live_sample(struct ew_waits_live *live, const struct etwatch_sample *sample);
void ew_waits_live_events(struct ew_waits_live *live, const struct etwatch_events *batch);
/* source: of the session. */
void ew_waits_live_loss(struct ew_waits_live *live, const struct etwatch_loss *loss,
                        uint32_t source);
/* Everything was heard. */
void ew_waits_live_end(struct ew_waits_live *live, const struct ew_options *options);

/* The sums, as JSON Lines or as tables; for a screen as wide as it is. 0 or a negative code. */
int ew_waits_write(const struct ew_waits_view *view, struct ew_output *output, bool json,
                   bool screen, int screen_fd);

#endif
