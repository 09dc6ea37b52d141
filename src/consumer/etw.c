/* SPDX-License-Identifier: MIT */
/*
 * Events of an ETW session: the records of source/etw, named and decoded as those of a recording.
 * Layouts that neither the decoder's tables nor the event itself have are queried from
 * Windows, once per kind of event.
 */
#include "consumer/consumer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "decode/guid.h"
#include "recording/trace.h"
#include "source/etw/consumer.h"
#include "source/etw/session_options.h"

enum { QUERIED_MAX = 8192, INFO_MAX = 1 << 20 }; /* QUERIED_MAX: a power of two */

/* A kind of event with a layout that was queried. */
struct queried {
    uint8_t guid[16];
    uint16_t id;
    uint8_t version;
    bool used;
};

struct ew_consumer_etw {
    const struct ew_etw_api *api;
    struct ew_etw_consumer *session;
    struct etwatch_trace *trace;
    struct queried *queried;
    uint32_t queried_count;
    uint8_t *info;
    struct ew_error error; /* of the last call of the feed */
};

/* ------------------------------------------------------------------------- schemas */

/* True the first time; a full table answers no. */
static bool query_once(struct ew_consumer_etw *etw, const struct ew_record *record)
{
    if (etw->queried == NULL)
        etw->queried = ew_calloc(QUERIED_MAX, sizeof *etw->queried);
    if (etw->queried == NULL || etw->queried_count >= QUERIED_MAX / 2)
        return false;
    uint64_t hash = ew_hash_mix(ew_hash_seed(), ew_load_u64(record->provider));
    hash = ew_hash_mix(hash, (uint64_t)record->id << 8 | record->version);
    uint32_t at = (uint32_t)(hash >> 16) & (QUERIED_MAX - 1);
    struct queried *queried;
    while ((queried = &etw->queried[at])->used) {
        if (queried->id == record->id && queried->version == record->version &&
            memcmp(queried->guid, record->provider, 16) == 0)
            return false;
        at = (at + 1) & (QUERIED_MAX - 1);
    }
    *queried = (struct queried){.id = record->id, .version = record->version, .used = true};
    memcpy(queried->guid, record->provider, 16);
    etw->queried_count++;
    return true;
}

static bool schema(void *ctx, const struct ew_record *record, const void **ret_info,
                   size_t *ret_size)
{
    enum { DESCRIPTOR_AT = 0x28 }; /* EVENT_DESCRIPTOR in the header */
    struct ew_consumer_etw *etw = ctx;
    if (etw->api->event_info == NULL || !query_once(etw, record))
        return false;
    uint32_t size = INFO_MAX;
    if (etw->info == NULL)
        etw->info = ew_calloc(1, INFO_MAX);
    if (etw->info == NULL ||
        etw->api->event_info(etw->api->ctx, record->provider, record->header + DESCRIPTOR_AT,
                             etw->info, &size) != 0)
        return false;
    *ret_info = etw->info;
    *ret_size = size < INFO_MAX ? size : INFO_MAX;
    return true;
}

/* ---------------------------------------------------------------------------- open */

static int next(void *ctx, const struct ew_record **ret_records)
{
    struct ew_consumer_etw *etw = ctx;
    return ew_etw_consumer_next(etw->session, ret_records, &etw->error);
}

/* The kernel's processes and threads are always enabled: they name the processes of the others. */
static int describe_session(struct ew_consumer_etw *etw, struct ew_session_options *options,
                            struct ew_etw_config *config, struct ew_error *reterr)
{
    int rc = 0;
    if (options != NULL) {
        rc = ew_session_options_resolve(options, etw->api, reterr);
        config->session = options->session;
        config->flush_ms = options->flush_ms != 0 ? options->flush_ms : config->flush_ms;
    }
    if (config->session.name == NULL)
        config->session.name = "etwatch-events";
    config->session.kernel |= EW_ETW_PROCESS | EW_ETW_THREAD;
    return rc;
}

/* Events without a known layout still have the name under which their provider was enabled. */
static void name_providers(struct ew_consumer_etw *etw, const struct ew_session_options *options)
{
    for (uint32_t i = 0; i < options->session.provider_count; i++) {
        const char *name = options->requests[i].name;
        uint8_t guid[16];
        if (!ew_guid_parse(name, strlen(name), guid))
            ew_decoder_name_provider(etw->trace->decoder, options->providers[i].guid,
                                     name + (name[0] == '*'));
    }
}

int ew_consumer_etw_open(const struct ew_etw_config *given, struct ew_session_options *options,
                         bool cmdline, struct ew_consumer_etw **ret_etw, struct ew_error *reterr)
{
    struct ew_etw_config config = *given;
    const struct ew_etw_api *api = config.api == NULL ? ew_etw_real_api(reterr) : config.api;
    if (api == NULL)
        return ETWATCH_ENOTSUP;
    struct ew_consumer_etw *etw = ew_calloc(1, sizeof *etw);
    if (etw == NULL)
        return ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    etw->api = config.api = api;
    struct ew_trace_feed feed = {.next = next, .schema = schema, .ctx = etw};
    int rc = config.attach != NULL ? 0 : describe_session(etw, options, &config, reterr);
    if (rc == 0 && ew_trace_open_feed(&feed, &etw->trace) < 0)
        rc = ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    if (rc == 0)
        rc = ew_etw_consumer_open(&config, &etw->session, reterr);
    if (rc < 0) {
        ew_consumer_etw_close(etw);
        return rc;
    }
    uint64_t unix_ns, raw_ns;
    api->anchor(api->ctx, &unix_ns, &raw_ns);
    if (options != NULL && config.attach == NULL)
        name_providers(etw, options);
    etw->trace->options.flags = cmdline ? ETWATCH_CONFIG_CMDLINE : 0;
    etw->trace->unix_minus_raw_ns = (int64_t)(unix_ns - raw_ns);
    *ret_etw = etw;
    return 0;
}

void ew_consumer_etw_close(struct ew_consumer_etw *etw)
{
    if (etw == NULL)
        return;
    ew_etw_consumer_close(etw->session);
    etwatch_trace_free(etw->trace);
    ew_free(etw->queried);
    ew_free(etw->info);
    ew_free(etw);
}

/* --------------------------------------------------------------------------- drain */

void ew_consumer_etw_finish(struct ew_consumer_etw *etw)
{
    ew_etw_consumer_finish(etw->session);
}

int ew_consumer_etw_drain(struct ew_consumer_etw *etw, struct etwatch_consumer *consumer,
                          struct ew_error *reterr)
{
    const struct ew_record *record = NULL;
    struct ew_event known;
    struct ew_etw_counts counts;
    int rc = 0, taken = 0;
    while (consumer->room > 0 && (rc = ew_trace_next_record(etw->trace, &record, &known)) > 0) {
        struct etwatch_trace_event event;
        taken++;
        consumer->events++;
        if (known.kind == EW_EVENT_SAMPLE_INTERVAL && known.u.interval.profile_source == 0)
            consumer->sample_interval_ns = known.u.interval.interval_100ns * 100;
        ew_trace_describe(etw->trace, record, &known, &event);
        event.size = sizeof event;
        if (!ew_consumer_wants(consumer, &event))
            continue;
        if (consumer->no_fields)
            event.payload = NULL; /* which of its bytes are private is not known */
        else if ((rc = etwatch_trace_fields(etw->trace, &event)) < 0)
            break;
        event.payload_size = event.payload != NULL ? event.payload_size : 0;
        ew_consumer_deliver(consumer, &event);
    }
    consumer->undecoded = etw->trace->undecoded;
    ew_etw_consumer_counts(etw->session, &counts);
    consumer->lost = counts.lost_session + counts.lost_here;
    if (rc >= 0)
        return taken;
    *reterr = etw->error;
    return reterr->code != 0 ? rc : ew_error_set(reterr, rc, 0, "%s", etwatch_strerror(rc));
}
