/* SPDX-License-Identifier: MIT */
/* The options about ETW sessions: from the command line to the struct of the library. */
#ifndef EW_CLI_ARGS_ETW_OPTIONS_H
#define EW_CLI_ARGS_ETW_OPTIONS_H

#include <etwatch/session.h>

#include "cli/args/options.h"

enum { EW_CLI_PROVIDERS_MAX = 16, EW_CLI_PIDS_MAX = 8, EW_CLI_EVENT_IDS_MAX = 64 };

/* One --provider: NAME[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST] */
struct ew_cli_provider {
    char name[128];
    uint32_t level;
    uint64_t keywords;
    uint32_t pids[EW_CLI_PIDS_MAX];
    uint32_t pid_count;
    uint16_t event_ids[EW_CLI_EVENT_IDS_MAX];
    uint32_t event_id_count;
};

/* NULL, or what is wrong with the text, for a message. */
const char *ew_cli_provider_parse(const char *text, struct ew_cli_provider *ret_provider);

/* The library's struct with what its pointers point to. */
struct ew_cli_session_options {
    struct etwatch_session_options options;
    struct etwatch_provider providers[EW_CLI_PROVIDERS_MAX];
    struct ew_cli_provider parsed[EW_CLI_PROVIDERS_MAX];
};

/* False: no option asks for anything, so that the defaults are meant. */
bool ew_cli_session_options(const struct ew_options *options, struct ew_cli_session_options *ret);

#endif
