/* SPDX-License-Identifier: MIT */
/*
 * The eBPF source of a build without clang or libbpf: it can never be opened, and says how to get
 * one that can. It stands in by file, so that nobody else has to ask whether eBPF was built.
 */
#include "source/source.h"

static int refuse(const struct ew_source_config *config, struct ew_source **ret_source,
                  struct ew_error *reterr)
{
    (void)config;
    (void)ret_source;
    ew_error_set(reterr, ETWATCH_ENOTSUP, 0, "this build of etwatch has no eBPF source");
    ew_error_fix(reterr, "install clang and libbpf-dev, then build again with -Debpf=enabled");
    return ETWATCH_ENOTSUP;
}

/* Only open is ever called: no source exists that the others could be given. */
const struct ew_source_ops ew_source_ebpf = {
    .id = ETWATCH_SOURCE_EBPF,
    .open = refuse,
};
