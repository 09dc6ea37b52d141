/* SPDX-License-Identifier: MIT */
/*
 * Plays a recording to a live session of the emulator and writes the result: samples as JSON Lines,
 * or the events that the session delivered as a recording for the report.
 *
 *   etw_replay samples FILE.etl OUT.jsonl HZ [threads]
 *   etw_replay events FILE.etl OUT.etl
 *   etw_replay gates FILE.etl: which rows of etw_gates.c the recording has events of, and which
 *                              kernel events its mask should not have let pass
 *   -b before these: whole buffers, as Windows 11 delivers them
 *
 * The recording is shifted to one second after the start of the machine, so that its ticks become
 * the same nanoseconds as when it is read; the result is shifted back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/sink.h>

#include "base/bytes.h"
#include "decode/decode.h"
#include "etw_buffers.h"
#include "etw_emulator.h"
#include "etw_gates.h"
#include "etw_move.h"
#include "os/os.h"
#include "sampler/sampler.h"
#include "source/etl/reader.h"
#include "source/etw/consumer.h"
#include "source/record_accounting.h"
#include "source/source.h"

enum { FLUSH_MS = 2, BUFFER_HEADER = 72, TYPE_HEADER = 4, BUFFERS_WRITTEN = 36, POOL = 1 << 28 };
#define BASE_NS UINT64_C(1000000000)

struct play {
    uint8_t *bytes;
    size_t size;
    struct ew_etl_file_info info;
    int64_t unix_minus_raw_ns;
    uint64_t first_ns, last_ns;          /* as the reader has them */
    uint64_t there_ns;                   /* the last process logged by the rundown */
    uint64_t kinds;                      /* EW_KIND */
    uint64_t ticks;                      /* the recording is shifted by this much */
    uint8_t head[BUFFER_HEADER + 65536]; /* the log-file header, as a buffer */
    uint32_t head_size;
    uint32_t count_at; /* offset of BuffersWritten in it */
    struct etw_emulator *emulator;
    struct ew_etw_config etw;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "etw_replay: %s\n", what);
    exit(1);
}

static void must(bool holds, const char *what)
{
    if (!holds)
        fail(what);
}

static void read_file(struct play *play, const char *path)
{
    FILE *file = fopen(path, "rb");
    must(file != NULL && fseek(file, 0, SEEK_END) == 0, "cannot read the recording");
    play->size = (size_t)ftell(file);
    rewind(file);
    play->bytes = malloc(play->size);
    must(play->bytes != NULL && fread(play->bytes, 1, play->size, file) == play->size,
         "cannot read the recording");
    (void)fclose(file);
}

/* ---------------------------------------------------------------------- the recording */

static bool is_head(const struct ew_record *record)
{
    return record->kind == EW_RECORD_KERNEL && record->group == 0 && record->opcode == 0;
}

static void keep_head(struct play *play, const struct ew_record *record)
{
    uint32_t event = (uint32_t)(record->payload - record->header) + record->payload_size;
    uint32_t size = play->info.buffer_bytes, filled = BUFFER_HEADER + ((event + 7) & ~7u);
    uint16_t flags = 0x20, kind = TYPE_HEADER, cpu = 0;
    must(play->head_size == 0 && filled <= size && filled <= sizeof play->head, "an odd header");
    memcpy(play->head, play->bytes, BUFFER_HEADER);
    memcpy(play->head, &size, 4);
    memcpy(play->head + 4, &filled, 4);
    memcpy(play->head + 0x28, &cpu, 2);
    memcpy(play->head + 0x30, &filled, 4);
    memcpy(play->head + 0x34, &flags, 2);
    memcpy(play->head + 0x36, &kind, 2);
    memcpy(play->head + BUFFER_HEADER, record->header, event);
    play->head_size = filled;
    play->count_at = BUFFER_HEADER + (uint32_t)(record->payload - record->header) + BUFFERS_WRITTEN;
}

static void learn_record(struct play *play, const struct ew_record *record)
{
    struct ew_event event;
    if (record->kind == EW_RECORD_LOSS)
        fail("the recording has losses");
    play->last_ns = record->t_ns;
    if (is_head(record) && play->head_size == 0)
        keep_head(play, record);
    if (!ew_decode_event(record, &event) || event.kind == EW_EVENT_OTHER)
        return;
    play->kinds |= UINT64_C(1) << event.kind;
    if (event.kind == EW_EVENT_PROCESS_THERE || event.kind == EW_EVENT_THREAD_THERE)
        play->there_ns = record->t_ns;
}

static void learn(struct play *play)
{
    struct ew_etl_reader *reader;
    const struct ew_record *records;
    struct ew_etl_counts counts;
    int count;
    must(ew_etl_open_memory(play->bytes, play->size, NULL, &reader, NULL) == 0, "no recording");
    play->info = *ew_etl_file_info(reader, 0);
    play->unix_minus_raw_ns = ew_etl_unix_minus_raw_ns(reader);
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++)
            learn_record(play, &records[i]);
    ew_etl_counts(reader, &counts);
    /* The rundown is only at the end of a recording: a session must log it before it begins. */
    if (play->there_ns == 0)
        play->there_ns = play->last_ns;
    must(play->head_size != 0, "no header");
    must(counts.late == 0 && counts.bad_buffers + counts.bad_records == 0 &&
             play->info.events_lost + play->info.buffers_lost == 0,
         "the recording has losses, damage or is out of order");
    ew_etl_close(reader);
}

/* ---------------------------------------------------------------------- the session */

/* The kernel events that the session must log for these events. */
static uint32_t kernel_of(uint64_t kinds)
{
    static const struct {
        uint64_t kinds;
        uint32_t kernel;
    } rows[] = {
        {EW_KIND(PROCESS_COUNTERS), EW_ETW_COUNTERS},
        {EW_KIND(SWITCH), EW_ETW_CSWITCH},
        {EW_KIND(READY), EW_ETW_DISPATCHER},
        {EW_KIND(SAMPLE), EW_ETW_PROFILE},
        {EW_KIND(INTERRUPT), EW_ETW_DPC | EW_ETW_INTERRUPT},
        {EW_KIND(FAULT), EW_ETW_PAGE_FAULTS},
        {EW_KIND(HARD_FAULT), EW_ETW_HARD_FAULTS},
        {EW_KIND(DISK_READ) | EW_KIND(DISK_WRITE), EW_ETW_DISK},
        {EW_KIND(FILE_READ) | EW_KIND(FILE_WRITE), EW_ETW_FILE_IO_INIT},
        {EW_KIND(NET_SEND) | EW_KIND(NET_RECEIVE), EW_ETW_NETWORK},
        {EW_KIND(PROCESS_END), EW_ETW_PROCESS},
        {EW_KIND(THREAD_START) | EW_KIND(THREAD_THERE), EW_ETW_THREAD},
    };
    uint32_t kernel = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        kernel |= (kinds & rows[i].kinds) != 0 ? rows[i].kernel : 0;
    return kernel;
}

static void start(struct play *play, bool buffers)
{
    const struct ew_etl_file_info *info = &play->info;
    uint32_t clock = info->clock == 2 || info->clock == 3 ? info->clock : 1;
    uint64_t hz = clock == 2   ? UINT64_C(10000000)
                  : clock == 3 ? info->cpu_mhz * UINT64_C(1000000)
                               : info->perf_frequency;
    uint64_t begin_raw = hz + (clock == 2 ? ETW_EMULATOR_START_FILETIME : 0);
    play->ticks = begin_raw - info->header_raw;
    play->emulator = etw_emulator_new(&(struct etw_emulator_config){
        .cpu_count = info->cpu_count,
        .clock = clock,
        .perf_frequency = info->perf_frequency,
        .cpu_mhz = info->cpu_mhz,
        .start_raw = begin_raw,
        .recording = play->bytes,
        .recording_size = play->size,
        .move_ticks = play->ticks,
        .now_ns = BASE_NS + play->there_ns,
        .offers_buffers = buffers,
        .own_mask = true,
    });
    play->etw = (struct ew_etw_config){
        .api = etw_emulator_api(play->emulator),
        .flush_ms = FLUSH_MS,
        .pool_bytes = POOL,
        .session = {.kernel = kernel_of(play->kinds), .buffer_kb = info->buffer_bytes / 1024}};
}

static void sleep_ms(struct ew_waiter *waiter, int ms)
{
    (void)ew_waiter_wait(waiter, ew_os_raw_ns() + (uint64_t)ms * 1000000, -1);
}

/* ------------------------------------------------------------------------- samples */

static int write_out(void *ctx, const void *bytes, size_t len)
{
    return fwrite(bytes, 1, len, ctx) == len ? 0 : ETWATCH_EOS;
}

static void on_samples(void *ctx, const struct etwatch_sample *samples, size_t count)
{
    struct etwatch_samples batch = etwatch_samples_of(samples, count);
    must(etwatch_sink_samples(ctx, &batch) == 0, "cannot write");
}

static void on_loss(void *ctx, const struct etwatch_loss *loss)
{
    must(etwatch_sink_loss(ctx, loss) == 0, "cannot write");
}

static struct ew_sampler *new_sampler(struct play *play, const struct ew_source *source,
                                      uint64_t interval_ns, bool threads, struct etwatch_sink *sink)
{
    struct ew_sampler *sampler = NULL;
    struct ew_sampler_config config = {
        .source = ETWATCH_SOURCE_ETW,
        .threads = threads,
        .available = source->ops->available,
        .epoch_ns = BASE_NS,
        .interval_ns = interval_ns,
        .unix_minus_raw_ns = play->unix_minus_raw_ns - (int64_t)BASE_NS,
        .max_processes = 65536,
        .max_threads = 131072,
        .ctx = sink,
        .emit = on_samples,
        .loss = on_loss,
    };
    must(ew_sampler_new(&config, &sampler) == 0, "no memory");
    return sampler;
}

static struct ew_source *open_source(struct play *play, uint64_t interval_ns, bool threads)
{
    struct ew_source *source = NULL;
    struct ew_error error = {0};
    struct ew_source_config config = {
        .filter = {.all = true},
        .threads = threads,
        .max_processes = 65536,
        .max_threads = 131072,
        .proc_root = "/proc",
        .epoch_ns = BASE_NS,
        .interval_ns = interval_ns,
        .etw = &play->etw,
    };
    if (ew_source_etw.open(&config, &source, &error) != 0)
        fail(error.message);
    return source;
}

static void write_samples(struct play *play, const char *path, double hz, bool threads)
{
    FILE *file = fopen(path, "wb");
    uint64_t interval_ns = (uint64_t)(1e9 / hz + 0.5), end_ns = BASE_NS + play->last_ns;
    uint64_t horizon_ns = 0;
    struct etwatch_sink *sink = NULL;
    struct ew_facts facts;
    struct ew_waiter *waiter = NULL;
    struct ew_error error = {0};
    must(file != NULL && ew_waiter_new(&waiter) == 0 &&
             etwatch_sink_new(ETWATCH_FORMAT_JSONL, write_out, file, NULL, &sink, NULL) == 0,
         "cannot write");
    struct ew_source *source = open_source(play, interval_ns, threads);
    struct ew_sampler *sampler = new_sampler(play, source, interval_ns, threads, sink);
    ew_sampler_facts(sampler, &facts);
    for (bool over = false; !over;) {
        sleep_ms(waiter, 1);
        bool done = etw_emulator_done(play->emulator);
        if (source->ops->drain(source, end_ns, &facts, &horizon_ns, &error) != 0)
            fail(error.message);
        over = done && horizon_ns >= end_ns;
        must(over || ew_sampler_deliver(sampler, horizon_ns) >= 0, "cannot cut");
    }
    must(source->ops->finish(source, end_ns, &facts, &error) == 0, "cannot finish");
    must(ew_sampler_finish(sampler, end_ns) >= 0 && etwatch_sink_flush(sink) == 0, "cannot finish");
    source->ops->close(source);
    ew_sampler_free(sampler);
    etwatch_sink_free(sink);
    must(fclose(file) == 0, "cannot write");
    ew_waiter_free(waiter);
}

/* -------------------------------------------------------------------------- events */

struct writing {
    FILE *file;
    struct etw_buffers *buffers;
    struct etw_moved moved;
    bool head_seen;
    uint32_t count; /* of buffers, with the header */
};

static void write_full(struct writing *writing)
{
    struct etw_buffer *buffer;
    while ((buffer = etw_buffers_take(writing->buffers)) != NULL) {
        size_t size = ew_load_u32(buffer->bytes);
        must(fwrite(buffer->bytes, 1, size, writing->file) == size, "cannot write");
        etw_buffers_give(writing->buffers, buffer);
        writing->count++;
    }
}

static void write_record(const struct play *play, struct writing *writing,
                         const struct ew_record *record)
{
    must(record->kind != EW_RECORD_LOSS, "something was lost");
    if (is_head(record) && !writing->head_seen) {
        writing->head_seen = true;
        return;
    }
    const struct ew_record *back = etw_move(&writing->moved, record, 0 - play->ticks);
    uint32_t size = (uint32_t)(back->payload - back->header) + back->payload_size;
    if (etw_buffers_write(writing->buffers, back->cpu, back->t_raw, back->header, size))
        return;
    write_full(writing);
    must(etw_buffers_write(writing->buffers, back->cpu, back->t_raw, back->header, size),
         "an event fits no buffer");
}

static void write_head(const struct play *play, FILE *file)
{
    uint32_t rest = play->info.buffer_bytes - play->head_size;
    must(fwrite(play->head, 1, play->head_size, file) == play->head_size, "cannot write");
    while (rest-- > 0)
        (void)fputc(0xFF, file);
}

/* The events may need fewer buffers than in the recording. */
static void write_count(const struct play *play, struct writing *writing)
{
    writing->count++;
    must(fseek(writing->file, (long)play->count_at, SEEK_SET) == 0 &&
             fwrite(&writing->count, 4, 1, writing->file) == 1,
         "cannot write");
}

static void take_all(const struct play *play, struct ew_etw_consumer *consumer,
                     struct writing *writing)
{
    const struct ew_record *records;
    struct ew_error error = {0};
    int count;
    while ((count = ew_etw_consumer_next(consumer, &records, &error)) > 0)
        for (int i = 0; i < count; i++)
            write_record(play, writing, &records[i]);
    if (count < 0)
        fail(error.message);
}

static void write_events(struct play *play, const char *path)
{
    static struct writing writing;
    struct ew_etw_consumer *consumer = NULL;
    struct ew_waiter *waiter = NULL;
    writing.file = fopen(path, "wb");
    must(writing.file != NULL && ew_waiter_new(&waiter) == 0, "cannot write");
    write_head(play, writing.file);
    writing.buffers = etw_buffers_new(play->info.cpu_count, play->info.buffer_bytes,
                                      play->info.cpu_count * 2 + 8);
    must(ew_etw_consumer_open(&play->etw, &consumer, NULL) == 0, "cannot open the session");
    while (!etw_emulator_done(play->emulator)) {
        take_all(play, consumer, &writing);
        sleep_ms(waiter, 1);
    }
    ew_etw_consumer_finish(consumer);
    take_all(play, consumer, &writing);
    ew_etw_consumer_close(consumer);
    etw_buffers_flush(writing.buffers, 0);
    write_full(&writing);
    write_count(play, &writing);
    etw_buffers_free(writing.buffers);
    must(fclose(writing.file) == 0, "cannot write");
    ew_waiter_free(waiter);
}

/* ------------------------------------------------------------------------------ gates */

enum { KERNEL_KINDS = 65536 }; /* group and opcode */

static void take_kernel_events(const struct play *play, uint32_t mask[8], bool *ret_has_mask,
                               uint64_t *counts)
{
    struct ew_etl_reader *reader = NULL;
    const struct ew_record *records;
    int count;
    must(ew_etl_open_memory(play->bytes, play->size, &(struct ew_etl_options){.workers = 1},
                            &reader, NULL) == 0,
         "cannot open the recording");
    while ((count = ew_etl_next(reader, &records)) > 0)
        for (int i = 0; i < count; i++) {
            *ret_has_mask |= etw_gate_add_mask(mask, &records[i]);
            if (records[i].kind == EW_RECORD_KERNEL)
                counts[records[i].group << 8 | records[i].opcode]++;
        }
    ew_etl_close(reader);
}

/* Without a mask there is nothing to compare. */
static int write_gates(const struct play *play)
{
    static uint64_t counts[KERNEL_KINDS];
    uint32_t mask[8] = {0};
    bool has_mask = false;
    take_kernel_events(play, mask, &has_mask, counts);
    for (uint32_t i = 0; i < KERNEL_KINDS && has_mask; i++)
        if (counts[i] > 0 && !etw_gate_mask_passes(mask, (uint8_t)(i >> 8), (uint8_t)i))
            printf("refused %u %u %u\n", i >> 8, i & 255, (unsigned)counts[i]);
    for (size_t row = 0; row < etw_gate_count; row++) {
        const struct etw_gate *gate = &etw_gates[row];
        uint64_t given = 0;
        for (uint32_t i = 0; i < KERNEL_KINDS && has_mask; i++)
            if (etw_gate_mask_gives(gate, mask, (uint8_t)(i >> 8), (uint8_t)i))
                given += counts[i];
        printf("row %u %s %s %u\n", (unsigned)row, gate->name,
               (gate->sources & ETW_GATE_RECORDING) != 0 ? "recording" : "documentation",
               (unsigned)given);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct play play;
    bool buffers = argc > 1 && strcmp(argv[1], "-b") == 0;
    char **word = argv + 1 + buffers;
    bool samples = argc - buffers >= 5 && strcmp(word[0], "samples") == 0;
    bool gates = argc == 3 && strcmp(word[0], "gates") == 0;
    must(samples || gates || argc - buffers == 4,
         "samples FILE OUT HZ [threads] | events FILE OUT | gates FILE");
    read_file(&play, word[1]);
    if (gates)
        return write_gates(&play);
    learn(&play);
    start(&play, buffers);
    if (samples)
        write_samples(&play, word[2], strtod(word[3], NULL), argc - buffers > 5);
    else
        write_events(&play, word[2]);
    etw_emulator_free(play.emulator);
    free(play.bytes);
    return 0;
}
