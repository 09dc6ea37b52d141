/* SPDX-License-Identifier: MIT */
/*
 * Owns a session of ours that ETW writes to a file: no event passes through this process. It has
 * its own name, so that watching and recording do not stop each other. When it has ended, the
 * identities of the program files are added, so that symbols are found on any machine.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "os/os.h"
#include "source/etl/image_merge.h"
#include "source/etw/session_options.h"

static const char *const default_name = EW_ETW_OURS "-record";
enum { PATH_ROOM = 3072 };

struct etwatch_recorder {
    const struct ew_etw_api *api;
    struct ew_etw_session *session;
    uint64_t started_ns, stopped_ns; /* 0: not yet */
    char path[PATH_ROOM];
};

static int prepare_file(struct etwatch_recorder *recorder, const char *path, bool *ret_made,
                        struct ew_error *reterr)
{
    if (!ew_os_full_path(path, recorder->path, sizeof recorder->path))
        return ew_error_set(reterr, ETWATCH_EINVAL, 0, "the file name is too long: %.80s…", path);
    int os_error = ew_os_file_try_write(recorder->path, ret_made);
    if (os_error == 0)
        return 0;
    return ew_error_set(reterr, ETWATCH_EOS, os_error, "cannot write to %.150s: %s", path,
                        strerror(os_error));
}

static int start(struct etwatch_recorder *recorder, const char *path,
                 struct ew_session_options *options, struct ew_error *reterr)
{
    struct ew_etw_session_config *config = &options->session;
    bool made = false;
    if (config->name == NULL)
        config->name = default_name;
    if (config->kernel == 0)
        config->kernel = EW_ETW_KERNEL_WATCH | EW_ETW_IMAGE;
    int error = ew_session_options_resolve(options, recorder->api, reterr);
    if (error == 0)
        error = prepare_file(recorder, path, &made, reterr);
    if (error != 0)
        return error;
    config->file = recorder->path;
    error = ew_etw_session_start(recorder->api, config, &recorder->session, reterr);
    if (error != 0 && made)
        ew_os_file_remove(recorder->path);
    recorder->started_ns = recorder->api->now_ns(recorder->api->ctx);
    return error;
}

int ew_recorder_start(const struct ew_etw_api *api, const char *path,
                      const struct etwatch_session_options *options,
                      struct etwatch_recorder **ret_recorder, struct ew_error *reterr)
{
    struct ew_session_options wanted;
    memset(&wanted, 0, sizeof wanted);
    int error = options == NULL ? 0 : ew_session_options_copy(&wanted, options, reterr);
    if (error != 0)
        return error;
    struct etwatch_recorder *recorder = ew_calloc(1, sizeof *recorder);
    if (recorder == NULL) {
        error = ew_error_set(reterr, ETWATCH_ENOMEM, 0, "out of memory");
    } else {
        recorder->api = api;
        error = start(recorder, path, &wanted, reterr);
    }
    ew_session_options_done(&wanted);
    if (error != 0)
        ew_free(recorder);
    else
        *ret_recorder = recorder;
    return error;
}

int etwatch_recorder_start(const char *path, const struct etwatch_session_options *options,
                           struct etwatch_recorder **ret_recorder,
                           struct etwatch_error_info *reterr)
{
    struct ew_error error;
    memset(&error, 0, sizeof error);
    if (path == NULL || path[0] == '\0' || ret_recorder == NULL)
        return ETWATCH_EINVAL;
    const struct ew_etw_api *api = ew_etw_real_api(&error);
    int rc = api == NULL ? error.code : ew_recorder_start(api, path, options, ret_recorder, &error);
    if (rc < 0)
        ew_error_out(reterr, &error, error.code);
    return rc;
}

static uint64_t file_bytes(const struct etwatch_recorder *recorder)
{
    struct ew_os_file *file;
    uint64_t bytes = 0;
    int64_t os_code;
    if (ew_os_file_open(recorder->path, &file, &bytes, &os_code) != 0)
        return 0;
    ew_os_file_close(file);
    return bytes;
}

int etwatch_recorder_stats(struct etwatch_recorder *recorder,
                           struct etwatch_recorder_stats *ret_stats)
{
    struct ew_etw_totals totals;
    if (recorder == NULL || ret_stats == NULL)
        return ETWATCH_EINVAL;
    bool running = ew_etw_session_totals(recorder->session, &totals);
    uint64_t end_ns = recorder->stopped_ns != 0 ? recorder->stopped_ns
                                                : recorder->api->now_ns(recorder->api->ctx);
    uint64_t written = (uint64_t)totals.buffers_written * totals.buffer_kb * 1024;
    struct etwatch_recorder_stats stats = {
        .running = running,
        .duration_ns = end_ns - recorder->started_ns,
        /* While a file is being written, its directory entry has an outdated size. */
        .file_bytes = running ? written : file_bytes(recorder),
        .events_lost = totals.events_lost,
        .buffers_lost = totals.log_buffers_lost,
        .buffers_written = totals.buffers_written,
    };
    return ew_sized_out(ret_stats, &stats, sizeof stats);
}

const char *etwatch_recorder_unavailable_reason(const struct etwatch_recorder *recorder,
                                                uint32_t metric)
{
    return recorder == NULL
               ? NULL
               : ew_etw_pmc_unavailable_reason(ew_etw_session_pmc(recorder->session), metric);
}

int etwatch_recorder_stop(struct etwatch_recorder *recorder)
{
    if (recorder == NULL)
        return ETWATCH_EINVAL;
    if (recorder->stopped_ns == 0) {
        struct ew_image_merge merged;
        (void)ew_etw_session_halt(recorder->session);
        recorder->stopped_ns = recorder->api->now_ns(recorder->api->ctx);
        /* Without them the recording is still complete. */
        (void)ew_etl_image_merge_file(recorder->path, NULL, &merged);
    }
    return 0;
}

void etwatch_recorder_free(struct etwatch_recorder *recorder)
{
    if (recorder == NULL)
        return;
    ew_etw_session_stop(recorder->session);
    ew_free(recorder);
}
