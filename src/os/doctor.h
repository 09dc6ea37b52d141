/* SPDX-License-Identifier: MIT */
/* The probes of etwatch_doctor, with the examined file trees as parameters. */
#ifndef EW_OS_DOCTOR_H
#define EW_OS_DOCTOR_H

#include <etwatch/etwatch.h>

struct ew_doctor_config {
    const char *proc_root;
    const char *sys_root;
    int (*try_bpf)(void); /* 0, or the errno of the attempt; NULL: do not try */
    void (*on_check)(void *ctx, const struct etwatch_check *check);
    void *ctx;
};

int ew_doctor_probe(const struct ew_doctor_config *config);

#endif
