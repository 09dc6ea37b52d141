/* SPDX-License-Identifier: MIT */
/* What the loop of the serving process needs of http_windows.c besides http.h. */
#ifndef EW_SERVE_HTTP_WINDOWS_H
#define EW_SERVE_HTTP_WINDOWS_H

#include "serve/http.h"

/* The event that is set when ew_http_run has something to do: Windows has no descriptors. */
void *ew_http_event(const struct ew_http *http);

#endif
