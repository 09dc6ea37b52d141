/* SPDX-License-Identifier: MIT */
/*
 * Setters of the options about ETW sessions, and their way into the library. What can be seen to be
 * wrong without Windows is refused here, on every system, so that a script fails the same
 * everywhere, and a configuration file with line and column; names of providers are the library's
 * business.
 */
#include "cli/args/etw_options.h"

#include <stdio.h>
#include <string.h>

#include <etwatch/session.h>

#include "base/alloc.h"
#include "cli/args/parser.h"
#include "cli/args/value.h"

/* ----------------------------------------------------------------------- numbers */

static int set_u32(struct ew_parser *p, const char *shown, const char *value, uint32_t min,
                   uint32_t max, const char *what, uint32_t *ret_number)
{
    uint32_t number;
    if (!ew_value_u32(value, &number) || number < min || number > max)
        return ew_parser_fail(p, "%s needs %s from %u to %u, not \"%s\"", shown, what,
                              (unsigned)min, (unsigned)max, value);
    *ret_number = number;
    return 0;
}

int ew_set_buffer_kb(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 4, 16384, "a number of KB", &p->options->etw.buffer_kb);
}

int ew_set_min_buffers(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 2, 65536, "a number of buffers", &p->options->etw.min_buffers);
}

int ew_set_max_buffers(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 2, 65536, "a number of buffers", &p->options->etw.max_buffers);
}

int ew_set_flush(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 1, 60000, "a number of milliseconds",
                   &p->options->etw.flush_ms);
}

int ew_set_buffer_memory(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 1, 65536, "a number of MB", &p->options->etw.memory_mb);
}

int ew_set_profile_hz(struct ew_parser *p, const char *shown, const char *value)
{
    return set_u32(p, shown, value, 1, 8000, "a number of samples a second",
                   &p->options->etw.profile_hz);
}

/* -------------------------------------------------------------------------- texts */

int ew_set_session(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_keep_text(p, shown, value, "the name of a session (see: etwatch sessions)",
                        &p->options->etw.session);
}

int ew_set_session_name(struct ew_parser *p, const char *shown, const char *value)
{
    return ew_keep_text(p, shown, value, "a name, such as inference", &p->options->etw.name);
}

static bool is_kind(const char *word)
{
    for (uint32_t i = 0; etwatch_session_kernel_name(i) != NULL; i++)
        if (strcmp(etwatch_session_kernel_name(i), word) == 0)
            return true;
    return strncmp(word, "EVENT_TRACE_FLAG_", 17) == 0; /* the library knows which there are */
}

static int check_kinds(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_list words = {0};
    char all[400] = "";
    size_t used = 0;
    int rc =
        ew_list_add(&words, value) < 0 && value[0] != '\0'
            ? ew_parser_fail(p, "%s needs a list without empty parts, not \"%s\"", shown, value)
            : 0;
    for (uint32_t i = 0; etwatch_session_kernel_name(i) != NULL && used < sizeof all; i++)
        used +=
            (size_t)snprintf(all + used, sizeof all - used, " %s", etwatch_session_kernel_name(i));
    for (uint32_t i = 0; rc == 0 && i < words.count; i++)
        if (!is_kind(words.words[i]))
            rc = ew_parser_fail(p, "%s: \"%s\" is no kind of kernel event; one of:%s", shown,
                                words.words[i], all);
    ew_list_done(&words);
    return rc;
}

int ew_set_kernel(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = check_kinds(p, shown, value);
    if (rc != 0)
        return rc;
    return ew_keep_text(p, shown, value, "kinds of kernel events, such as process,thread,cswitch",
                        &p->options->etw.kernel);
}

int ew_set_stacks(struct ew_parser *p, const char *shown, const char *value)
{
    int rc = check_kinds(p, shown, value);
    if (rc != 0)
        return rc;
    return ew_keep_text(p, shown, value, "kinds of kernel events, such as profile,cswitch",
                        &p->options->etw.stacks);
}

/* ---------------------------------------------------------------------- providers */

static bool read_hex(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; text[i] != '\0' && i < 16; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return false;
        number = number << 4 | (uint64_t)digit;
    }
    *ret_number = number;
    return i > 0 && text[i] == '\0';
}

static bool read_keywords(const char *text, uint64_t *ret_number)
{
    bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';
    return hex ? read_hex(text + 2, ret_number) : ew_value_u64(text, ret_number);
}

static const char *take_pids(struct ew_cli_provider *provider, const struct ew_list *words)
{
    if (words->count > EW_CLI_PIDS_MAX)
        return "at most 8 process ids";
    for (uint32_t i = 0; i < words->count; i++)
        if (!ew_value_u32(words->words[i], &provider->pids[i]) || provider->pids[i] == 0)
            return "pid= needs process ids, such as pid=12,345";
    provider->pid_count = words->count;
    return NULL;
}

static const char *take_ids(struct ew_cli_provider *provider, const struct ew_list *words)
{
    uint32_t id;
    if (words->count > EW_CLI_EVENT_IDS_MAX)
        return "at most 64 event ids";
    for (uint32_t i = 0; i < words->count; i++) {
        if (!ew_value_u32(words->words[i], &id) || id > UINT16_MAX)
            return "id= needs ids of events from 0 to 65535, such as id=1,2";
        provider->event_ids[i] = (uint16_t)id;
    }
    provider->event_id_count = words->count;
    return NULL;
}

/* One part behind the name; at: which of level and keywords is next. */
static const char *take_part(struct ew_cli_provider *provider, const char *part, int *at)
{
    struct ew_list words = {0};
    const char *wrong;
    bool pids = strncmp(part, "pid=", 4) == 0;
    if (pids || strncmp(part, "id=", 3) == 0) {
        int rc = ew_list_add(&words, part + (pids ? 4 : 3));
        wrong = rc < 0 ? "a list is empty or has an empty part"
                : pids ? take_pids(provider, &words)
                       : take_ids(provider, &words);
        ew_list_done(&words);
        return wrong;
    }
    switch ((*at)++) {
    case 0:
        return ew_value_u32(part, &provider->level) && provider->level >= 1 &&
                       provider->level <= 255
                   ? NULL
                   : "the level is a number from 1 (critical) to 5 (verbose), at most 255";
    case 1:
        return read_keywords(part, &provider->keywords) ? NULL
                                                        : "the keywords are a number, such as 0x10";
    default:
        return "too many parts";
    }
}

const char *ew_cli_provider_parse(const char *text, struct ew_cli_provider *ret_provider)
{
    char part[512];
    const char *wrong = NULL;
    int at = 0;
    memset(ret_provider, 0, sizeof *ret_provider);
    size_t len = strcspn(text, ":");
    if (len == 0 || len >= sizeof ret_provider->name)
        return "the name or GUID is missing, or too long";
    memcpy(ret_provider->name, text, len);
    text += len;
    while (*text == ':' && wrong == NULL) {
        len = strcspn(++text, ":");
        if (len >= sizeof part)
            return "a part is too long";
        memcpy(part, text, len);
        part[len] = '\0';
        wrong = take_part(ret_provider, part, &at);
        text += len;
    }
    return wrong;
}

int ew_add_etw_provider(struct ew_parser *p, const char *shown, const char *value)
{
    struct ew_cli_provider parsed;
    const char *wrong = ew_cli_provider_parse(value, &parsed);
    if (wrong == NULL && p->options->etw.providers.count == EW_CLI_PROVIDERS_MAX)
        wrong = "at most 16 providers";
    if (wrong != NULL)
        return ew_parser_fail(p,
                              "%s needs NAME[:LEVEL[:KEYWORDS]][:pid=LIST][:id=LIST], not \"%s\": "
                              "%s",
                              shown, value, wrong);
    return ew_list_add_word(&p->options->etw.providers, value) < 0
               ? ew_parser_fail(p, "out of memory")
               : 0;
}

/* ----------------------------------------------------------------- to the library */

bool ew_cli_session_options(const struct ew_options *options, struct ew_cli_session_options *ret)
{
    const struct ew_etw_options *etw = &options->etw;
    memset(ret, 0, sizeof *ret);
    ret->options = (struct etwatch_session_options){
        .size = sizeof ret->options,
        .buffer_kb = etw->buffer_kb,
        .min_buffers = etw->min_buffers,
        .max_buffers = etw->max_buffers,
        .flush_ms = etw->flush_ms,
        .profile_hz = etw->profile_hz,
        .memory_bytes = (uint64_t)etw->memory_mb << 20,
        .name = etw->name,
        .kernel = etw->kernel,
        .stacks = etw->stacks,
        .providers = ret->providers,
        .provider_count = etw->providers.count,
    };
    for (uint32_t i = 0; i < etw->providers.count; i++) {
        struct ew_cli_provider *parsed = &ret->parsed[i];
        (void)ew_cli_provider_parse(etw->providers.words[i], parsed);
        ret->providers[i] = (struct etwatch_provider){
            .size = sizeof ret->providers[i],
            .level = parsed->level,
            .name = parsed->name,
            .keywords = parsed->keywords,
            .pids = parsed->pids,
            .pid_count = parsed->pid_count,
            .event_id_count = parsed->event_id_count,
            .event_ids = parsed->event_ids,
        };
    }
    return etw->buffer_kb != 0 || etw->min_buffers != 0 || etw->max_buffers != 0 ||
           etw->flush_ms != 0 || etw->profile_hz != 0 || etw->memory_mb != 0 || etw->name != NULL ||
           etw->kernel != NULL || etw->stacks != NULL || etw->providers.count > 0;
}

void ew_etw_options_done(struct ew_etw_options *etw)
{
    ew_free(etw->session);
    ew_free(etw->name);
    ew_free(etw->kernel);
    ew_free(etw->stacks);
    ew_list_done(&etw->providers);
}
