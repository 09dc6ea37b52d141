/* SPDX-License-Identifier: MIT */
/*
 * Internals of the scenario: the state of the synthetic machine. scenario.c decides what happens,
 * scenario_emit.c writes it as events.
 */
#ifndef ETL_SCENARIO_MACHINE_H
#define ETL_SCENARIO_MACHINE_H

#include "etl_kit.h"
#include "scenario.h"

#define ETL_IDLE UINT32_MAX /* the idle thread's index */

enum { ETL_MAX_CPUS = 256, ETL_MAX_IO = 64 };

enum etl_thread_state { ETL_WAITING = 1, ETL_IS_READY, ETL_RUNNING, ETL_DEAD };

struct machine_thread {
    uint32_t place; /* position in the list of waiting or of ready threads */
    uint8_t state;
    int8_t priority;
    uint32_t io_count; /* I/O requests that are not complete */
    uint64_t ready_raw;
};

struct machine_cpu {
    uint32_t thread;    /* index or ETL_IDLE */
    uint64_t since_raw; /* time of the switch-in */
    uint64_t last_raw;  /* time of its last event */
    uint64_t next_sample_raw;
    uint64_t counters[ETL_COUNTER_COUNT];
    bool counters_known; /* its last switch carried them */
};

struct machine_io {
    uint64_t irp, began_raw;
    uint32_t thread, bytes;
    bool is_write;
};

struct machine_list {
    uint32_t *items;
    uint32_t count;
};

struct machine {
    struct etl_scenario_config config;
    struct ew_etl_writer *writer;
    struct etl_truth truth;
    struct machine_thread *threads; /* parallel to truth.threads */
    struct machine_cpu cpus[ETL_MAX_CPUS];
    struct machine_list waiting, ready;
    struct machine_io ios[ETL_MAX_IO];
    uint32_t io_count;
    uint32_t *free_ids;
    uint32_t free_count, next_id;
    uint64_t random;
    uint64_t counter_random; /* a separate generator: the other events are the same as without
                                counters */
    bool counters_fell;
    uint64_t now; /* raw */
    uint64_t next_irp, next_key;
    uint64_t next_memory_raw;
    int error; /* sticky */
    struct etl_payload payload;
};

static inline uint32_t machine_random(struct machine *m, uint32_t below)
{
    return (uint32_t)(etl_random(&m->random) >> 33) % below;
}

static inline bool machine_has(const struct machine *m, uint32_t class)
{
    return (m->config.classes & class) != 0;
}

/* Each writes one or more events at m->now. cpu is the CPU on which it happens. */
void emit_process(struct machine *m, uint16_t cpu, uint32_t process, unsigned opcode, uint32_t by);
void emit_thread(struct machine *m, uint16_t cpu, uint32_t thread, unsigned opcode, uint32_t by);
void emit_image(struct machine *m, uint16_t cpu, uint32_t process, unsigned hook, uint32_t nth);
void emit_switch(struct machine *m, uint16_t cpu, uint32_t from, uint32_t to, unsigned state);
void emit_ready(struct machine *m, uint16_t cpu, uint32_t thread);
void emit_sample(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t t_raw);
void emit_interrupt(struct machine *m, uint16_t cpu, bool is_isr, uint64_t began_raw);
void emit_fault(struct machine *m, uint16_t cpu, unsigned opcode);
void emit_hard_fault(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t began_raw);
void emit_virtual(struct machine *m, uint16_t cpu, uint32_t process, bool is_free);
void emit_disk_begin(struct machine *m, uint16_t cpu, const struct machine_io *io);
void emit_disk_end(struct machine *m, uint16_t cpu, const struct machine_io *io);
void emit_file(struct machine *m, uint16_t cpu, uint32_t thread, bool is_write, uint32_t bytes);
void emit_net(struct machine *m, uint16_t cpu, uint32_t process, bool is_send, uint32_t bytes);
void emit_counters(struct machine *m, uint16_t cpu, uint32_t process, unsigned opcode);
void emit_terminate(struct machine *m, uint16_t cpu, uint32_t process, uint32_t by);
void emit_memory(struct machine *m, uint16_t cpu);
void emit_stack(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t event_raw);
/* Adds the hardware counters of a CPU since its last switch to the given thread. */
void count_run(struct machine *m, uint16_t cpu, uint32_t thread, uint64_t ticks);
/* The counters that a switch carries; returns their number. */
uint32_t carry_counters(const struct machine *m, uint16_t cpu, uint64_t to[ETL_COUNTER_COUNT]);
void emit_counter_names(struct machine *m, bool others);
void emit_counters_disturbed(struct machine *m);
/* Writes the current payload now. */
void emit_short(struct machine *m, uint16_t cpu, unsigned hook);
void emit_session_start(struct machine *m);

#endif
