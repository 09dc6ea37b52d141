/* SPDX-License-Identifier: MIT */
/* The JSON of /api/v1/ and of the stream. Each function appends one whole document. */
#ifndef EW_SERVE_API_H
#define EW_SERVE_API_H

#include "serve/range.h"
#include "serve/request.h"

/* "PID-START" of a process: its id in the whole API. */
void ew_api_put_id(struct ew_buf *out, const struct ew_state_process *process);

void ew_api_meta(const struct ew_state *state, struct ew_buf *out);
/* trend: with the CPU time of each of the last 60 seconds, in percent of a CPU. */
void ew_api_processes(const struct ew_state *state, bool exited, bool trend, struct ew_buf *out);
void ew_api_process(const struct ew_state *state, const struct ew_state_process *process,
                    struct ew_buf *out);
void ew_api_alerts(const struct ew_state *state, struct ew_buf *out);
/* 0 or ETWATCH_ENOMEM. metrics: of a process; empty: all that it has. */
int ew_api_history(const struct ew_state *state, const struct ew_state_process *process,
                   const struct ew_range *range, const struct etwatch_metric_set *metrics,
                   struct ew_buf *out);
int ew_api_threads(const struct ew_state *state, const struct ew_state_process *process,
                   const struct ew_range *range, struct ew_buf *out);
/* Every device with its latest reading; the history of one. */
void ew_api_devices(const struct ew_state *state, struct ew_buf *out);
int ew_api_device(const struct ew_state *state, const struct ew_state_device *device,
                  const struct ew_range *range, struct ew_buf *out);
int ew_api_machine(const struct ew_state *state, const struct ew_range *range, struct ew_buf *out);
/* The event of one closed second. */
void ew_api_second(const struct ew_state *state, uint64_t t_ns, struct ew_buf *out);

#endif
