/* SPDX-License-Identifier: MIT */
/* The two ways to see inferences without a mark: probes in the library of ONNX Runtime (Linux with
 * eBPF), and the events of its own ETW provider. probes.c has the choice. */
#ifndef EW_PROBE_NATIVE_H
#define EW_PROBE_NATIVE_H

#include <stdint.h>

#include <etwatch/span.h>

#include "base/error.h"

/* ------------------------------------------------- probes_linux.c, or no_probes.c without eBPF */

struct ew_probe_native;

int ew_probe_native_open(uint32_t flags, struct ew_probe_native **ret_native,
                         struct ew_error *reterr);
void ew_probe_native_close(struct ew_probe_native *native);
void ew_probe_native_add_process(struct ew_probe_native *native, uint32_t pid);
int ew_probe_native_read(struct ew_probe_native *native, int64_t unix_minus_raw_ns,
                         void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx);
void ew_probe_native_stats(struct ew_probe_native *native, struct etwatch_probes_stats *ret_stats);

/* ---------------------------------------------------------------------- probes_etw.c */

struct ew_etw_config;
struct ew_probe_etw;

/* etw: another ETW than the system's, for tests; may be NULL. */
int ew_probe_etw_open(const struct ew_etw_config *etw, struct ew_probe_etw **ret_probe,
                      struct etwatch_error_info *reterr);
void ew_probe_etw_close(struct ew_probe_etw *probe);
/* Times are Unix times by the session's own anchor, which is that of a monitor to a microsecond. */
int ew_probe_etw_read(struct ew_probe_etw *probe,
                      void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx);
void ew_probe_etw_stats(const struct ew_probe_etw *probe, struct etwatch_probes_stats *ret_stats);

#endif
