/* SPDX-License-Identifier: MIT */
/* Alerts as text: an object of JSON Lines, or a readable line. */
#ifndef EW_SINK_ALERT_H
#define EW_SINK_ALERT_H

#include <etwatch/etwatch.h>

#include "base/buf.h"

/* One line without its end: process, condition, start, duration, and the busiest threads. */
void ew_alert_text(struct ew_buf *out, const struct etwatch_alert *alert);

#endif
