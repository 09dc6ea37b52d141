/* SPDX-License-Identifier: MIT */
/*
 * The eBPF source of a build without clang or libbpf: opening it fails and names the fix. It
 * replaces the other files of this folder, so that no other code depends on how the library was
 * built.
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

/* Only open is ever called: the other functions need a source. */
const struct ew_source_ops ew_source_ebpf = {
    .id = ETWATCH_SOURCE_EBPF,
    .open = refuse,
};
