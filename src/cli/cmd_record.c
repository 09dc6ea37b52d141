/* SPDX-License-Identifier: MIT */
/* record: the ending of the file says what is written, and so who records. */
#include "cli/commands.h"

#include <string.h>

#include "cli/record.h"
#include "cli/watch_run.h"

static const struct {
    const char *ending;
    int (*record)(const struct ew_options *options);
} kinds[] = {
    {".etl", ew_record_etl},
    {".pftrace", ew_record_pftrace},
    {".perfetto-trace", ew_record_pftrace},
};

static bool ends_with(const char *path, const char *ending)
{
    size_t len = strlen(path), end_len = strlen(ending);
    if (len <= end_len)
        return false;
    for (size_t i = 0; i < end_len; i++) {
        char c = path[len - end_len + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != ending[i])
            return false;
    }
    return true;
}

int ew_cmd_record(const struct ew_options *options)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ends_with(options->output_path, kinds[i].ending))
            return kinds[i].record(options);
    ew_complain("\"%s\" says not what to record: -o needs a file that ends in .pftrace, or in .etl "
                "on Windows",
                options->output_path);
    return EW_EXIT_USAGE;
}
