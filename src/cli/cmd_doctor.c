/* SPDX-License-Identifier: MIT */
/*
 * doctor: the checks of the library, then the proof: each source is opened for a moment. The checks
 * explain; the last lines show whether a source works.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "os/os.h"

struct doctor {
    const struct ew_options *options;
    struct ew_buf out;
    bool color;
};

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    return names[state <= ETWATCH_CHECK_FAIL ? state : ETWATCH_CHECK_FAIL];
}

static void put_json_text(struct ew_buf *out, const char *key, const char *text)
{
    ew_buf_text(out, key);
    if (text == NULL || text[0] == '\0')
        ew_buf_text(out, "null");
    else
        ew_buf_json_string(out, text, strlen(text));
}

static void put_json(struct doctor *doctor, const struct etwatch_check *check)
{
    struct ew_buf *out = &doctor->out;
    put_json_text(out, "{\"type\":\"check\",\"id\":", check->id);
    put_json_text(out, ",\"state\":", state_name(check->state));
    put_json_text(out, ",\"what\":", check->what);
    put_json_text(out, ",\"found\":", check->found);
    put_json_text(out, ",\"cost\":", check->cost);
    put_json_text(out, ",\"fix\":", check->fix);
    ew_buf_text(out, "}\n");
}

static void put_padded(struct ew_buf *out, const char *text, size_t width)
{
    size_t used = ew_buf_screen(out, text, strlen(text), 200);
    ew_buf_repeat(out, ' ', used < width ? width - used : 0);
}

static void put_text(struct doctor *doctor, const struct etwatch_check *check)
{
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    struct ew_buf *out = &doctor->out;
    if (doctor->color)
        ew_buf_text(out, colors[check->state <= ETWATCH_CHECK_FAIL ? check->state : 2]);
    put_padded(out, state_name(check->state), 4);
    if (doctor->color)
        ew_buf_text(out, "\033[0m");
    ew_buf_text(out, "  ");
    put_padded(out, check->what, 54);
    ew_buf_text(out, "  ");
    put_padded(out, check->found, 0);
    ew_buf_char(out, '\n');
    if (check->cost[0] != '\0') {
        ew_buf_text(out, "      costs: ");
        ew_buf_text(out, check->cost);
        ew_buf_char(out, '\n');
    }
    if (check->fix[0] != '\0') {
        ew_buf_text(out, "      fix:   ");
        ew_buf_text(out, check->fix);
        ew_buf_char(out, '\n');
    }
}

static void on_check(void *ctx, const struct etwatch_check *check)
{
    struct doctor *doctor = ctx;
    if (doctor->options->json)
        put_json(doctor, check);
    else
        put_text(doctor, check);
}

/* Opens a source for a moment. A source that this system does not have is skipped. */
static bool try_source(struct doctor *doctor, uint32_t source, const char *id, const char *what)
{
    struct etwatch_monitor *monitor = NULL;
    struct etwatch_error_info err = {.size = sizeof err};
    struct etwatch_config config = {
        .size = sizeof config,
        .source = source,
        .flags = ETWATCH_CONFIG_ALL | ETWATCH_CONFIG_NO_FALLBACK,
        .proc_root = doctor->options->proc_root,
    };
    int rc = etwatch_monitor_new(&config, NULL, &monitor, &err);
    if (rc == ETWATCH_ENOTSUP)
        return false;
    if (rc == 0)
        rc = etwatch_monitor_open(monitor, &err);
    etwatch_monitor_free(monitor);
    struct etwatch_check check = {
        .size = sizeof check,
        .state = rc == 0 ? ETWATCH_CHECK_OK : ETWATCH_CHECK_FAIL,
        .id = id,
        .what = what,
        .found = rc == 0                  ? "works"
                 : err.message[0] != '\0' ? err.message
                                          : etwatch_strerror(rc),
        .cost = rc == 0 ? ""
                : source != ETWATCH_SOURCE_POLL
                    ? "etwatch polls instead"
                    : "without a source for events, nothing can be watched",
        .fix = err.fix,
    };
    on_check(doctor, &check);
    return rc == 0;
}

/* The devices of one kind in one line: their names, or why there are none. */
static void check_devices(struct doctor *doctor, const struct etwatch_devices *batch, uint32_t kind)
{
    static const char *const ids[] = {"", "device_gpu", "device_npu", "device_energy"};
    static const char *const whats[] = {"", "GPU (--gpu)", "NPU (--npu)", "energy (--energy)"};
    static const char fix_mark[] = "; fix: ";
    char found[400] = "", fix[256] = "";
    size_t used = 0;
    uint32_t state = ETWATCH_CHECK_OK;
    for (size_t i = 0; i < batch->count && used < sizeof found; i++) {
        const struct etwatch_device *device = etwatch_device_at(batch, i);
        bool problem = (device->flags & ETWATCH_DEVICE_PROBLEM) != 0;
        const char *name = problem                ? device->problem
                           : device->name != NULL ? device->name
                                                  : device->id;
        bool meter = kind == ETWATCH_DEVICE_ENERGY && !problem &&
                     etwatch_device_has(device, ETWATCH_D_power_watts); /* of a GPU */
        if (device->kind != kind && !meter)
            continue;
        name = name != NULL ? name : "?";
        /* A device that is there, but does not work. */
        if (problem && (device->flags & ETWATCH_DEVICE_ABSENT) == 0)
            state = ETWATCH_CHECK_WARN;
        /* Missing rights have a fix; a machine without the device has none. */
        const char *mark = problem ? strstr(name, fix_mark) : NULL;
        int len = mark != NULL ? (int)(mark - name) : (int)strlen(name);
        if (mark != NULL) {
            state = ETWATCH_CHECK_WARN;
            (void)snprintf(fix, sizeof fix, "%s", mark + sizeof fix_mark - 1);
        }
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%.*s (%s)",
                                 used > 0 ? ", " : "", len, name, device->driver);
    }
    const struct etwatch_check check = {
        .size = sizeof check,
        .state = state,
        .id = ids[kind],
        .what = whats[kind],
        .found = found[0] != '\0' ? found : "none: no sensor for it on this system",
        .cost = state == ETWATCH_CHECK_OK ? "" : "its metrics are null",
        .fix = fix,
    };
    on_check(doctor, &check);
}

/* Reads each device once. A driver that hangs costs two seconds and is reported. */
static void try_devices(struct doctor *doctor)
{
    struct etwatch_devices batch = {.size = sizeof batch};
    struct etwatch_device_reader *reader = NULL;
    const struct etwatch_device_options options = {
        .size = sizeof options,
        .proc_root = doctor->options->proc_root,
        .sys_root = doctor->options->sys_root,
        .nvml_library = doctor->options->nvml_library,
        .amdsmi_library = doctor->options->amdsmi_library,
    };
    if (etwatch_device_reader_open(&options, &reader) == 0 &&
        etwatch_device_reader_read(reader, 2000, &batch) >= 0)
        for (uint32_t kind = ETWATCH_DEVICE_GPU; kind <= ETWATCH_DEVICE_ENERGY; kind++)
            check_devices(doctor, &batch, kind);
    etwatch_device_reader_close(reader);
}

/* Whether CUDA programs will find CUPTI. Files are looked for, and only if there is a driver. */
static void check_cupti(struct doctor *doctor)
{
    char path[1024], refused[1100];
    enum ew_cupti cupti = ew_cli_gpu_cupti(doctor->options->proc_root, path, sizeof path);
    bool missing = cupti == EW_CUPTI_MISSING, wanted = missing && path[0] != '\0';
    if (cupti == EW_CUPTI_UNUSED)
        return;
    (void)snprintf(refused, sizeof refused, "%s (ETWATCH_CUPTI) cannot be read", path);
    const struct etwatch_check check = {
        .size = sizeof check,
        .state = missing ? ETWATCH_CHECK_WARN : ETWATCH_CHECK_OK,
        .id = "cupti",
        .what = "CUPTI, for exact GPU time (--gpu-trace)",
        .found = cupti == EW_CUPTI_NO_DRIVER ? "not needed: no NVIDIA driver on this system"
                 : wanted                    ? refused
                 : missing                   ? "not in the usual folders"
                                             : path,
        .cost = !missing ? ""
                : wanted
                    ? "--gpu-trace has no exact GPU time"
                    : "--gpu-trace has no exact GPU time, unless the program brings CUPTI (that "
                      "of PyTorch is found)",
        .fix = !missing ? ""
               : wanted ? "unset ETWATCH_CUPTI, or set it to the path of libcupti.so.13 or .12"
                        : "install the CUDA toolkit (its package cuda-cupti is enough), or set "
                          "ETWATCH_CUPTI to the path of libcupti.so.13 or .12",
    };
    on_check(doctor, &check);
}

static int finish(struct doctor *doctor, struct ew_output *output, int rc, bool any_source)
{
    ew_buf_done(&doctor->out);
    if (rc < 0 && !ew_output_reader_gone(output)) {
        ew_print_error("%s", etwatch_strerror(rc));
        return EW_EXIT_FAILED;
    }
    return any_source ? EW_EXIT_OK : EW_EXIT_RIGHTS;
}

int ew_cmd_doctor(const struct ew_options *options)
{
    struct ew_output output;
    struct doctor doctor = {.options = options, .color = ew_term_color(EW_TERM_OUT)};
    ew_signals_init();
    ew_output_init(&output, -1, NULL);
    ew_buf_init(&doctor.out, 0, ew_output_write, &output);
    if (options->show_metrics) {
        bool any = ew_cli_doctor_metrics(options, &doctor.out);
        return finish(&doctor, &output, ew_buf_flush(&doctor.out), any);
    }
    int rc = etwatch_doctor(options->proc_root, on_check, &doctor);
    bool events = false;
    if (options->proc_root == NULL)
        events = try_source(&doctor, ETWATCH_SOURCE_EBPF, "source_ebpf", "source ebpf") ||
                 try_source(&doctor, ETWATCH_SOURCE_ETW, "source_etw", "source etw");
    bool poll = try_source(&doctor, ETWATCH_SOURCE_POLL, "source_poll", "source poll");
    if (options->proc_root == NULL || options->sys_root != NULL)
        try_devices(&doctor);
    check_cupti(&doctor);
    if (rc == 0)
        rc = ew_buf_flush(&doctor.out);
    return finish(&doctor, &output, rc, events || poll);
}
