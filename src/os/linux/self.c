/* SPDX-License-Identifier: MIT */
/*
 * Memory of this process. Both values come from one read of /proc/self/status: statm has no peak,
 * and getrusage's peak includes the memory of the program that called exec.
 */
#include "os/os.h"

#include "base/bytes.h"

/* "VmRSS:\t    1792 kB" */
static bool read_kib(struct ew_span line, const char *label, uint64_t *ret_bytes)
{
    struct ew_bytes in;
    ew_bytes_init(&in, line.text, line.len);
    if (!ew_bytes_accept(&in, label))
        return false;
    ew_bytes_skip_spaces(&in);
    uint64_t kib = ew_bytes_dec_u64(&in);
    if (!ew_bytes_ok(&in) || kib > UINT64_MAX / 1024)
        return false;
    *ret_bytes = kib * 1024;
    return true;
}

bool ew_os_self_rss(uint64_t *ret_rss_bytes, uint64_t *ret_peak_bytes)
{
    char text[4096];
    struct ew_os_file *file;
    uint64_t bytes;
    int64_t os_code;
    /* Also works in a confined process: ew_os_file_keep has opened it. */
    if (ew_os_file_open("/proc/self/status", &file, &bytes, &os_code) < 0)
        return false;
    int64_t len = ew_os_file_read(file, 0, text, sizeof text);
    ew_os_file_close(file);
    if (len <= 0)
        return false;

    struct ew_bytes in;
    struct ew_span line;
    uint64_t rss_bytes = 0, peak_bytes = 0;
    bool has_rss = false, has_peak = false;
    ew_bytes_init(&in, text, (size_t)len);
    while (!(has_rss && has_peak) && ew_bytes_line(&in, &line)) {
        has_peak = has_peak || read_kib(line, "VmHWM:", &peak_bytes);
        has_rss = has_rss || read_kib(line, "VmRSS:", &rss_bytes);
    }
    if (!has_rss || !has_peak)
        return false;
    *ret_rss_bytes = rss_bytes;
    *ret_peak_bytes = peak_bytes;
    return true;
}
