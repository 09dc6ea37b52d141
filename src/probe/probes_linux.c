/* SPDX-License-Identifier: MIT */
/*
 * Owns the programs at functions of ONNX Runtime (bpf/onnx.bpf.c) and turns their records into
 * spans. The programs belong to descriptors of this process: when it ends, however it ends, the
 * kernel takes the probes out of the libraries.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "probe/libraries_linux.h"
#include "probe/native.h"
#include "probe/record.h"
#include "probe/sessions_linux.h"
#include "probe/tensor_shape.h"
#include "source/ebpf/load.h"

extern const struct ew_image ew_probe_onnx;

struct ew_probe_native {
    struct ew_loaded loaded;
    struct ring_buffer *ring;
    struct ew_probe_libraries *libraries;
    struct ew_probe_sessions sessions;
    int lost_fd;
    uint64_t spans, refused;
    /* Only while reading. */
    int64_t unix_minus_raw_ns;
    void (*on_span)(void *ctx, const struct etwatch_span *span);
    void *ctx;
    int count;
};

/* ------------------------------------------------------------------------ records */

static void deliver(struct ew_probe_native *probes, const struct ew_probe_record *head,
                    const char *session, const char *shape)
{
    struct etwatch_span span = {
        .size = sizeof span,
        .kind = head->kind == EW_PROBE_RUN ? ETWATCH_SPAN_INFERENCE : ETWATCH_SPAN_LOAD,
        .flags = ETWATCH_SPAN_PROBED | (head->failed != 0 ? (uint32_t)ETWATCH_SPAN_FAILED : 0),
        .pid = head->pid,
        .tid = head->tid,
        .end_tid = head->tid,
        .start_ns = head->start_ns + (uint64_t)probes->unix_minus_raw_ns,
        .end_ns = head->end_ns + (uint64_t)probes->unix_minus_raw_ns,
        .name = head->kind == EW_PROBE_RUN ? "run" : "load",
        .session = session,
        .shape = shape,
    };
    probes->spans++;
    probes->count++;
    probes->on_span(probes->ctx, &span);
}

static int on_record(void *ctx, void *data, size_t size)
{
    struct ew_probe_native *probes = ctx;
    struct ew_probe_record head;
    if (size < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    if (head.end_ns < head.start_ns) {
        probes->refused++;
    } else if (head.kind == EW_PROBE_RUN && size >= sizeof(struct ew_probe_run)) {
        struct ew_probe_run run;
        char shape[128];
        memcpy(&run, data, sizeof run);
        int known = run.tensor != 0 ? ew_probe_shape(run.tensor, run.words, EW_PROBE_TENSOR_WORDS,
                                                     shape, sizeof shape)
                                    : 0;
        deliver(probes, &head,
                ew_probe_session_name(&probes->sessions, head.pid, head.session, "", 0),
                known > 0 ? shape : NULL);
    } else if (head.kind == EW_PROBE_LOAD && size >= sizeof(struct ew_probe_load)) {
        struct ew_probe_load load;
        memcpy(&load, data, sizeof load);
        load.path[sizeof load.path - 1] = '\0';
        deliver(probes, &head,
                ew_probe_session_name(&probes->sessions, head.pid, head.session, load.path, 1),
                NULL);
    } else {
        probes->refused++;
    }
    return 0;
}

/* ------------------------------------------------------------------------ loading */

static int index_of_program(const char *name)
{
    for (size_t i = 0; i < ew_probe_onnx.function_count; i++)
        if (strcmp(ew_probe_onnx.functions[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int program_of(const struct ew_probe_native *probes, const char *name)
{
    int index = index_of_program(name);
    return index < 0 ? -1 : probes->loaded.program_fds[index];
}

static int map_of(const struct ew_probe_native *probes, const char *name)
{
    for (size_t i = 0; i < ew_probe_onnx.map_count; i++)
        if (strcmp(ew_probe_onnx.maps[i].name, name) == 0)
            return probes->loaded.map_fds[i];
    return -1;
}

static int load(struct ew_probe_native *probes)
{
    static const struct ew_k_config none;
    struct ew_load_plan plan = {.image = &ew_probe_onnx, .config = &none};
    for (size_t i = 0; i < ew_probe_onnx.function_count; i++)
        plan.programs[i] = ew_probe_onnx.functions[i].section != NULL;
    for (size_t i = 0; i < ew_probe_onnx.map_count; i++)
        plan.map_entries[i] = ew_probe_onnx.maps[i].max_entries;
    int error = ew_load_directly(&plan, &probes->loaded);
    if (error != 0)
        return error;
    probes->lost_fd = map_of(probes, "lost");
    probes->ring = ring_buffer__new(map_of(probes, "records"), on_record, probes, NULL);
    return libbpf_get_error(probes->ring) != 0 ? ENOMEM : 0;
}

static int open_libraries(struct ew_probe_native *probes, uint32_t flags)
{
    struct ew_probe_programs programs;
    int run = program_of(probes, "ew_ort_run_return"),
        loaded = program_of(probes, "ew_ort_load_return");
    for (uint32_t i = 0; i < EW_ONNX_FUNCTIONS; i++)
        programs.leave[i] = i == EW_ONNX_RUN || i == EW_ONNX_API_RUN ? run : loaded;
    programs.enter[EW_ONNX_API_RUN] = program_of(probes, "ew_ort_api_run_enter");
    programs.enter[EW_ONNX_RUN] = program_of(probes, "ew_ort_run_enter");
    programs.enter[EW_ONNX_INIT] = program_of(probes, "ew_ort_init_enter");
    programs.enter[EW_ONNX_CREATE] = program_of(probes, "ew_ort_create_enter");
    programs.enter[EW_ONNX_CREATE_ARRAY] = program_of(probes, "ew_ort_create_array_enter");
    return ew_probe_libraries_new(&programs, flags, &probes->libraries);
}

static int explain(struct ew_error *err, int error)
{
    if (error == ENOMEM)
        return ew_error_set(err, ETWATCH_ENOMEM, error, "out of memory");
    if (error == EPERM || error == EACCES) {
        (void)ew_error_set(err, ETWATCH_EPERM, error, "no probes in ONNX Runtime: %s",
                           strerror(error));
        ew_error_fix(err, "run as root, or: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,"
                          "cap_dac_read_search+ep \"$(command -v etwatch)\"");
        return ETWATCH_EPERM;
    }
    return ew_error_set(err, ETWATCH_ENOTSUP, error, "no probes in ONNX Runtime: %s",
                        strerror(error));
}

/* ---------------------------------------------------------------------- interface */

int ew_probe_native_open(uint32_t flags, struct ew_probe_native **ret_native,
                         struct ew_error *reterr)
{
    struct ew_probe_native *probes = ew_calloc(1, sizeof *probes);
    int error = probes == NULL ? ENOMEM : 0;
    if (error == 0) {
        ew_loaded_init(&probes->loaded);
        error = load(probes);
    }
    if (error == 0)
        error = open_libraries(probes, flags);
    if (error == 0) {
        *ret_native = probes;
        return 0;
    }
    ew_probe_native_close(probes);
    return explain(reterr, error);
}

void ew_probe_native_close(struct ew_probe_native *probes)
{
    if (probes == NULL)
        return;
    ew_probe_libraries_free(probes->libraries);
    if (probes->ring != NULL && libbpf_get_error(probes->ring) == 0)
        ring_buffer__free(probes->ring);
    ew_loaded_close(&probes->loaded);
    ew_free(probes);
}

void ew_probe_native_add_process(struct ew_probe_native *probes, uint32_t pid)
{
    ew_probe_libraries_of(probes->libraries, pid);
}

int ew_probe_native_read(struct ew_probe_native *probes, int64_t unix_minus_raw_ns,
                         void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    probes->unix_minus_raw_ns = unix_minus_raw_ns;
    probes->on_span = on_span;
    probes->ctx = ctx;
    probes->count = 0;
    (void)ring_buffer__consume(probes->ring);
    return probes->count;
}

void ew_probe_native_stats(struct ew_probe_native *probes, struct etwatch_probes_stats *ret_stats)
{
    uint32_t zero = 0;
    uint64_t lost = 0;
    ew_probe_libraries_stats(probes->libraries, &ret_stats->libraries, &ret_stats->unusable,
                             ret_stats->problem, sizeof ret_stats->problem);
    (void)bpf_map_lookup_elem(probes->lost_fd, &zero, &lost);
    ret_stats->spans = probes->spans;
    ret_stats->lost = lost + probes->refused;
}
