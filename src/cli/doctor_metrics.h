/* SPDX-License-Identifier: MIT */
/* The metrics of this machine. */
#ifndef EW_CLI_DOCTOR_METRICS_H
#define EW_CLI_DOCTOR_METRICS_H

#include "base/buf.h"
#include "cli/args/options.h"

/* Writes the matrix, in JSON Lines or for people. Returns whether any source works. */
bool ew_doctor_metrics(const struct ew_options *options, struct ew_buf *out);

#endif
