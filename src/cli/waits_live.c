/* SPDX-License-Identifier: MIT */
/* Between a session and the sums of sampler/waits.c, which know nothing of sessions. */
#include "cli/waits_live.h"

#include "cli/term.h"
#include "cli/watch_run.h"

int ew_waits_live_init(struct ew_waits_live *live)
{
    *live = (struct ew_waits_live){0};
    return ew_waits_new(&live->view.waits);
}

void ew_waits_live_done(struct ew_waits_live *live)
{
    ew_waits_view_done(&live->view);
}

int ew_waits_live_sample(struct ew_waits_live *live, const struct etwatch_sample *sample)
{
    return sample->type == ETWATCH_TYPE_START ? ew_waits_view_add(&live->view, sample->pid) : 0;
}

void ew_waits_live_events(struct ew_waits_live *live, const struct etwatch_events *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct etwatch_event *event = etwatch_event_at(batch, i);
        ew_waits_event(live->view.waits, event);
        live->last_ns = event->t_ns;
    }
}

void ew_waits_live_loss(struct ew_waits_live *live, const struct etwatch_loss *loss,
                        uint32_t source)
{
    /* Of ETW everything is the stream. */
    if (loss->stage == ETWATCH_LOSS_STREAM || source == ETWATCH_SOURCE_ETW)
        ew_waits_gap(live->view.waits);
}

void ew_waits_live_end(struct ew_waits_live *live, const struct ew_options *options)
{
    ew_waits_end(live->view.waits, live->last_ns);
    live->view.faults = live->view.disks = ew_waits_knows_io(live->view.waits);
    if (ew_waits_lost(live->view.waits) > 0)
        ew_say(options, "more threads than there is room for: some waits are missing");
}

int ew_waits_write(const struct ew_waits_view *view, struct ew_output *output, bool json,
                   bool screen, int screen_fd)
{
    struct ew_buf out;
    uint32_t columns = 0, rows = 0;
    screen = screen && ew_term_is(screen_fd);
    if (screen)
        ew_term_size(&columns, &rows);
    ew_buf_init(&out, 0, ew_output_write, output);
    int rc = ew_waits_view_write(view, &out, json, columns, screen && ew_term_color(screen_fd));
    if (rc == 0)
        rc = ew_buf_flush(&out);
    ew_buf_done(&out);
    return rc;
}
