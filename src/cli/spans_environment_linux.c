/* SPDX-License-Identifier: MIT */
/*
 * What a command needs in its environment so that it marks spans. The folder of the Python hook is
 * found relative to this program: in a build tree, in an installation, and in the Python wheel.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static const char *const folders[] = {
    "/../share/etwatch/_hook",  /* bin/etwatch */
    "/../python/etwatch/_hook", /* build/etwatch */
    "/../_hook",                /* etwatch/lib/etwatch of the wheel */
};

/* The folder with sitecustomize.py; false: it is not installed. */
static bool find_hook(char *ret_path, size_t size)
{
    char program[PATH_SIZE], file[2 * PATH_SIZE];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0)
        return false;
    program[len] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        int path_len = snprintf(ret_path, size, "%s%s", program, folders[i]);
        (void)snprintf(file, sizeof file, "%s/sitecustomize.py", ret_path);
        if (path_len > 0 && (size_t)path_len < size && access(file, R_OK) == 0)
            return true;
    }
    return false;
}

int ew_cli_spans_environment(const char *address, bool onnx)
{
    char folder[PATH_SIZE], path[4 * PATH_SIZE];
    int rc = setenv("ETWATCH_SPANS", address, 1);
    if (rc == 0 && onnx) {
        const char *old = getenv("PYTHONPATH");
        if (!find_hook(folder, sizeof folder)) {
            ew_print_error("the Python hook is not installed: share/etwatch/_hook is missing next "
                           "to this program");
            return EW_EXIT_FAILED;
        }
        bool more = old != NULL && old[0] != '\0';
        int len = snprintf(path, sizeof path, "%s%s%s", folder, more ? ":" : "", more ? old : "");
        if (len < 0 || (size_t)len >= sizeof path) {
            ew_print_error("PYTHONPATH is too long");
            return EW_EXIT_FAILED;
        }
        rc = setenv("PYTHONPATH", path, 1);
        if (rc == 0)
            rc = setenv("ETWATCH_ONNX", "1", 1);
    }
    if (rc != 0)
        ew_print_error("out of memory");
    return rc == 0 ? EW_EXIT_OK : EW_EXIT_FAILED;
}
