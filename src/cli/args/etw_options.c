/* SPDX-License-Identifier: MIT */
/*
 * ETW providers as text, and the options of an ETW session as the struct of the library. The form
 * of a provider is checked here, on every system, so that a script fails in the same way
 * everywhere; whether a provider exists is decided by the library.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/args/args.h"

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

static const char *take_pids(struct ew_provider *provider, const struct ew_list *words)
{
    if (words->count > EW_PROVIDER_PIDS_MAX)
        return "at most 8 process ids";
    for (uint32_t i = 0; i < words->count; i++)
        if (!ew_value_u32(words->words[i], &provider->pids[i]) || provider->pids[i] == 0)
            return "pid= needs process ids, such as pid=12,345";
    provider->pid_count = words->count;
    return NULL;
}

static const char *take_event_ids(struct ew_provider *provider, const struct ew_list *words)
{
    uint32_t id;
    if (words->count > EW_PROVIDER_EVENTS_MAX)
        return "at most 64 event ids";
    for (uint32_t i = 0; i < words->count; i++) {
        if (!ew_value_u32(words->words[i], &id) || id > UINT16_MAX)
            return "id= needs event ids from 0 to 65535, such as id=1,2";
        provider->event_ids[i] = (uint16_t)id;
    }
    provider->event_id_count = words->count;
    return NULL;
}

/* One part after the name; *position: 0 for the level, 1 for the keywords. */
static const char *take_part(struct ew_provider *provider, const char *part, int *position)
{
    struct ew_list words = {0};
    const char *wrong;
    bool pids = strncmp(part, "pid=", 4) == 0;
    if (pids || strncmp(part, "id=", 3) == 0) {
        int rc = ew_args_list_add(&words, part + (pids ? 4 : 3));
        wrong = rc < 0 ? "a list is empty or has an empty entry"
                : pids ? take_pids(provider, &words)
                       : take_event_ids(provider, &words);
        ew_args_list_done(&words);
        return wrong;
    }
    switch ((*position)++) {
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

const char *ew_args_provider_parse(const char *text, struct ew_provider *ret_provider)
{
    char part[512];
    const char *wrong = NULL;
    int position = 0;
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
        wrong = take_part(ret_provider, part, &position);
        text += len;
    }
    return wrong;
}

/* Hidden, for tests and diagnosis: ETWATCH_ETW=flags|providers,events|buffers. Unknown words have
 * no effect. */
static uint32_t read_ways(void)
{
    static const struct {
        const char *word;
        uint32_t way;
    } words[] = {
        {"flags", ETWATCH_SESSION_BY_FLAGS},
        {"providers", ETWATCH_SESSION_BY_PROVIDERS},
        {"events", ETWATCH_SESSION_BY_EVENTS},
        {"buffers", ETWATCH_SESSION_BY_BUFFERS},
    };
    const char *text = getenv("ETWATCH_ETW");
    uint32_t ways = 0;
    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, ",");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strlen(words[i].word) == len && strncmp(text, words[i].word, len) == 0)
                ways |= words[i].way;
        text += len + (text[len] == ',');
    }
    return ways;
}

bool ew_args_session_options(const struct ew_options *options, struct ew_session_options *ret)
{
    const struct ew_etw_options *etw = &options->etw;
    memset(ret, 0, sizeof *ret);
    ret->options = (struct etwatch_session_options){
        .size = sizeof ret->options,
        .buffer_kb = (uint32_t)(etw->buffer_bytes >> 10),
        .min_buffers = etw->min_buffers,
        .max_buffers = etw->max_buffers,
        .flush_ms = (uint32_t)(etw->flush_ns / 1000000),
        .profile_hz = etw->cpu_sample_hz,
        .memory_bytes = etw->memory_bytes,
        .name = etw->name,
        .kernel = etw->kernel,
        .stacks = etw->stacks,
        .providers = ret->providers,
        .provider_count = etw->providers.count,
        .ways = read_ways(),
    };
    for (uint32_t i = 0; i < etw->providers.count; i++) {
        struct ew_provider *parsed = &ret->parsed[i];
        (void)ew_args_provider_parse(etw->providers.words[i], parsed);
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
    return etw->buffer_bytes != 0 || etw->min_buffers != 0 || etw->max_buffers != 0 ||
           etw->flush_ns != 0 || etw->cpu_sample_hz != 0 || etw->memory_bytes != 0 ||
           etw->name != NULL || etw->kernel != NULL || etw->stacks != NULL ||
           etw->providers.count > 0 || ret->options.ways != 0;
}
