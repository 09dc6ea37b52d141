/* SPDX-License-Identifier: MIT */
/* record: the extension of the file selects the format. */
#include "cli/cli.h"

#include <string.h>

static const struct {
    const char *extension;
    int (*record)(const struct ew_options *options);
} formats[] = {
    {".etl", ew_cli_record_etl},
    {".pftrace", ew_cli_record_pftrace},
    {".perfetto-trace", ew_cli_record_pftrace},
};

static bool ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), end_len = strlen(end);
    if (len <= end_len)
        return false;
    for (size_t i = 0; i < end_len; i++) {
        char c = path[len - end_len + i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != end[i])
            return false;
    }
    return true;
}

int ew_cmd_record(const struct ew_options *options)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (ends_with(options->output_path, formats[i].extension))
            return formats[i].record(options);
    ew_print_error(
        "the format of \"%s\" is unknown: -o needs a file that ends in .pftrace, or in .etl "
        "on Windows",
        options->output_path);
    return EW_EXIT_USAGE;
}
