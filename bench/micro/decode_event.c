/* SPDX-License-Identifier: MIT */
/*
 * The cost of decoding one record: to a typed event, with the mix of a session with switches,
 * samples and faults; and to named fields, as `events` prints them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/decode.h"
#include "decode/kernel.h"

enum { RECORDS = 4096, PAYLOAD_BYTES = 64, TYPED_ROUNDS = 4000, NAMED_ROUNDS = 100 };

/* Weights of 20 records; sizes are those of 64-bit Windows 10. */
static const struct {
    uint8_t share, group, opcode, version, size;
} mix[] = {
    {8, 5, 36, 4, 24},  /* switch */
    {5, 5, 50, 2, 8},   /* ready */
    {3, 15, 46, 2, 16}, /* sample */
    {2, 2, 11, 2, 16},  /* page fault */
    {1, 15, 68, 2, 16}, /* DPC */
    {1, 15, 67, 2, 20}, /* ISR */
};

static struct ew_record records[RECORDS];
/* The header directly followed by the payload, as in a buffer. */
enum { HEADER_BYTES = 16 };
static uint8_t payloads[RECORDS][HEADER_BYTES + PAYLOAD_BYTES];

static uint64_t cpu_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t next_random(void)
{
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* In random order, so that branches are as hard to predict as in a recording. */
static void make_records(void)
{
    for (size_t i = 0; i < RECORDS; i++) {
        uint32_t pick = next_random() % 20;
        size_t row = 0;
        while (pick >= mix[row].share)
            pick -= mix[row++].share;
        for (size_t k = 0; k < PAYLOAD_BYTES; k++)
            payloads[i][HEADER_BYTES + k] = (uint8_t)next_random();
        records[i] = (struct ew_record){.t_ns = i,
                                        .header = payloads[i],
                                        .payload = payloads[i] + HEADER_BYTES,
                                        .payload_size = mix[row].size,
                                        .pid = EW_NO_ID,
                                        .tid = EW_NO_ID,
                                        .kind = EW_RECORD_KERNEL,
                                        .header_type = 17,
                                        .pointer_size = 8,
                                        .version = mix[row].version,
                                        .opcode = mix[row].opcode,
                                        .group = mix[row].group};
    }
}

static void report(const char *name, const char *unit, uint64_t spent_ns, uint64_t count)
{
    printf("{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.2f}\n", name, unit,
           (double)spent_ns / (double)count);
}

static uint64_t measure_typed(void)
{
    uint64_t sum = 0, start_ns = cpu_now_ns();
    for (int round = 0; round < TYPED_ROUNDS; round++)
        for (size_t i = 0; i < RECORDS; i++) {
            struct ew_event event;
            if (!ew_decode_event(&records[i], &event))
                exit(1);
            sum += event.tid;
        }
    report("decode to a typed event", "ns an event", cpu_now_ns() - start_ns,
           (uint64_t)TYPED_ROUNDS * RECORDS);
    return sum;
}

static uint64_t measure_named(void)
{
    struct ew_fields fields;
    uint64_t sum = 0, start_ns = cpu_now_ns();
    ew_fields_init(&fields);
    for (int round = 0; round < NAMED_ROUNDS; round++)
        for (size_t i = 0; i < RECORDS; i++) {
            ew_fields_clear(&fields);
            if (ew_kernel_fields(&records[i], &fields) != 1)
                exit(1);
            sum += fields.count;
        }
    report("decode to named fields", "ns an event", cpu_now_ns() - start_ns,
           (uint64_t)NAMED_ROUNDS * RECORDS);
    ew_fields_done(&fields);
    return sum;
}

int main(void)
{
    make_records();
    uint64_t sum = measure_typed() + measure_named();
    return sum == 0; /* uses the result, so that the compiler omits nothing */
}
