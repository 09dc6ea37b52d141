/* SPDX-License-Identifier: MIT */
/*
 * The input is a recording, and everything that a report and a list of events do is done with it:
 * reading, learning, naming, decoding of fields, adding up. For any input, fields are properly
 * nested, strings can be read, and no CPU gets more time than there was.
 */
#include <stdint.h>
#include <string.h>

#include "decode/decode.h"
#include "fuzz.h"
#include "source/etl/reader.h"
#include "tally/tally.h"

struct run {
    struct ew_etl_reader *reader;
    struct ew_decoder *decoder;
    struct ew_tally *tally;
    struct ew_fields fields;
    uint64_t last_ns;
    unsigned sum;
};

static unsigned check_fields(const struct ew_fields *fields)
{
    uint32_t depth = 0;
    unsigned sum = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct ew_field *f = &fields->list[i];
        sum += f->name ? touch(f->name, f->name_len) : 0;
        switch (f->type) {
        case EW_FIELD_ARRAY:
        case EW_FIELD_STRUCT:
            depth++;
            break;
        case EW_FIELD_CLOSE:
            require(depth > 0, "every closed entry was open");
            depth--;
            break;
        case EW_FIELD_TEXT:
            sum += touch(f->v.text, f->len);
            break;
        case EW_FIELD_GUID:
        case EW_FIELD_SID:
        case EW_FIELD_IPV4:
        case EW_FIELD_IPV6:
        case EW_FIELD_BINARY:
            sum += touch(f->v.raw, f->len);
            break;
        default:
            break;
        }
    }
    require(depth == 0, "every open entry is closed");
    return sum;
}

static uint64_t raw_to_ns(void *ctx, const struct ew_record *record, uint64_t raw)
{
    return ew_etl_raw_to_ns(ctx, record, raw);
}

static void learn(struct run *run, const struct ew_record *record)
{
    (void)ew_decoder_learn(run->decoder, record);
}

static void use(struct run *run, const struct ew_record *record)
{
    struct ew_event_names names;
    struct ew_event event;
    run->last_ns = record->t_ns;
    ew_decoder_names(run->decoder, record, &names);
    run->sum +=
        touch(names.provider, strlen(names.provider)) + touch(names.event, strlen(names.event));
    ew_fields_clear(&run->fields);
    (void)ew_decoder_fields(run->decoder, record, &run->fields);
    run->sum += check_fields(&run->fields);
    if (!ew_decode_event(record, &event) || event.kind == EW_EVENT_OTHER)
        return;
    if (event.kind == EW_EVENT_SWITCH && event.u.cswitch.pmc_count > 0)
        require(event.u.cswitch.pmc + 8 * (size_t)event.u.cswitch.pmc_count == record->payload,
                "counters lie before the payload");
    (void)ew_tally_event(run->tally, record, &event, NULL);
}

static void each_record(struct run *run, void (*what)(struct run *, const struct ew_record *))
{
    const struct ew_record *records;
    for (int n; (n = ew_etl_next(run->reader, &records)) > 0;) {
        for (int i = 0; i < n; i++)
            what(run, &records[i]);
    }
}

static int on_total(void *ctx, const struct ew_total *total)
{
    struct run *run = ctx;
    run->sum += touch(total->name, strlen(total->name));
    run->sum += touch(total->command_line, strlen(total->command_line));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_etl_options options = {.workers = 1, .window_bytes = 1 << 20};
    struct run run = {0};
    struct ew_error error;
    if (ew_etl_open_memory(data, size, &options, &run.reader, &error) < 0)
        return 0;
    struct ew_tally_config config = {.max_processes = 64,
                                     .max_threads = 128,
                                     .threads = true,
                                     .images = true,
                                     .clock_ctx = run.reader,
                                     .raw_to_ns = raw_to_ns,
                                     .working_set = ew_decode_working_set};
    require(ew_decoder_new(&run.decoder) == 0, "memory");
    require(ew_tally_new(&config, &run.tally) == 0, "memory");
    ew_fields_init(&run.fields);
    each_record(&run, learn);
    require(ew_etl_rewind(run.reader) == 0, "from the beginning again");
    each_record(&run, use);
    ew_tally_finish(run.tally, run.last_ns, NULL);
    (void)ew_tally_totals(run.tally, true, on_total, &run);
    struct ew_tally_system system;
    ew_tally_system(run.tally, &system);
    uint64_t known_ns = system.busy_ns + system.idle_ns + system.dpc_ns + system.isr_ns;
    if (system.cpu_from_switches && system.cpus > 0)
        require(known_ns / system.cpus <= run.last_ns, "no more time than there was");
    volatile unsigned sum = run.sum; /* only to keep every read */
    (void)sum;
    ew_fields_done(&run.fields);
    ew_tally_free(run.tally);
    ew_decoder_free(run.decoder);
    ew_etl_close(run.reader);
    return 0;
}
