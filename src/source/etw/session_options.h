/* SPDX-License-Identifier: MIT */
/*
 * The caller's options for a session of ours (etwatch_session_options), checked, copied and
 * converted.
 */
#ifndef EW_SOURCE_ETW_SESSION_OPTIONS_H
#define EW_SOURCE_ETW_SESSION_OPTIONS_H

#include <etwatch/session.h>

#include "base/error.h"
#include "source/etw/controller.h"

enum { EW_PROVIDER_PIDS_MAX = 8, EW_PROVIDER_IDS_MAX = 64, EW_PROVIDER_NAME_MAX = 256 };

struct ew_provider_request {
    char name[EW_PROVIDER_NAME_MAX];
    uint32_t pids[EW_PROVIDER_PIDS_MAX];
    uint16_t ids[EW_PROVIDER_IDS_MAX];
};

struct ew_session_options {
    struct ew_etw_session_config session; /* its pointers refer to the members below */
    uint32_t flush_ms;
    bool no_buffers;
    char name[EW_ETW_NAME_MAX];
    struct ew_etw_provider *providers;
    struct ew_provider_request *requests; /* one per provider */
};

/* Rejects invalid options, naming the field. No pointer of `from` is kept. */
int ew_session_options_copy(struct ew_session_options *to,
                            const struct etwatch_session_options *from, struct ew_error *reterr);
/* Finds the GUIDs of the providers; EINVAL names an unknown one. */
int ew_session_options_resolve(struct ew_session_options *options, const struct ew_etw_api *api,
                               struct ew_error *reterr);
void ew_session_options_done(struct ew_session_options *options);

/* Parses names of kinds of kernel events; what: the option, for the error. */
int ew_session_options_kernel(const char *what, const char *names, uint32_t *ret_set,
                              struct ew_error *reterr);

#endif
