/* SPDX-License-Identifier: MIT */
/* The state as Prometheus text 0.0.4 or OpenMetrics 1.0. */
#ifndef EW_SERVE_PROMETHEUS_H
#define EW_SERVE_PROMETHEUS_H

#include "serve/state.h"

#define EW_PROMETHEUS_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define EW_PROMETHEUS_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

void ew_prometheus_write(const struct ew_state *state, bool openmetrics, struct ew_buf *out);
/* A label value without its quotes: backslash, quote and line end escaped, invalid UTF-8 replaced.
 */
void ew_prometheus_label(struct ew_buf *out, const char *text);

#endif
