/* SPDX-License-Identifier: MIT */
/*
 * What a command needs in its environment so that its CUDA programs are traced. The library is
 * found relative to this program: in a build tree, in an installation, and in the Python wheel.
 *
 * For doctor also where a CUDA program will find CUPTI: the files that cuda/library.c opens. They
 * are not loaded here, because this program may have rights that its user does not have.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static const char *const places[] = {
    "/libetwatch-cuda.so",                /* build/etwatch, and etwatch/lib/etwatch of the wheel */
    "/../lib/etwatch/libetwatch-cuda.so", /* bin/etwatch */
};

static bool find_library(char *ret_path, size_t size)
{
    char program[PATH_SIZE];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0)
        return false;
    program[len] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int path_len = snprintf(ret_path, size, "%s%s", program, places[i]);
        if (path_len > 0 && (size_t)path_len < size && access(ret_path, R_OK) == 0)
            return true;
    }
    return false;
}

int ew_cli_gpu_environment(const char *address)
{
    char path[2 * PATH_SIZE];
    const char *other = getenv("CUDA_INJECTION64_PATH");
    if (!find_library(path, sizeof path)) {
        ew_print_error("libetwatch-cuda.so is not installed: it belongs to this program");
        return EW_EXIT_FAILED;
    }
    if (other != NULL && other[0] != '\0') {
        ew_print_error(
            "CUDA_INJECTION64_PATH is set to \"%s\": CUDA programs load one such library "
            "only; unset it for --gpu-trace",
            other);
        return EW_EXIT_FAILED;
    }
    if (setenv("CUDA_INJECTION64_PATH", path, 1) != 0 ||
        (getenv("NVTX_INJECTION64_PATH") == NULL &&
         setenv("NVTX_INJECTION64_PATH", path, 1) != 0) ||
        setenv("ETWATCH_GPU", address, 1) != 0) {
        ew_print_error("out of memory");
        return EW_EXIT_FAILED;
    }
    return EW_EXIT_OK;
}

static bool found_in(const char *folder, size_t len, const char *name, char *ret_path, size_t size)
{
    int used = snprintf(ret_path, size, "%.*s/%s", (int)len, folder, name);
    return len > 0 && used > 0 && (size_t)used < size && access(ret_path, R_OK) == 0;
}

/* In one of the folders of a list such as "/a:/b". */
static bool found_in_list(const char *list, const char *name, char *ret_path, size_t size)
{
    for (const char *at = list; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ":");
        if (len < size && found_in(at, len, name, ret_path, size))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static bool has_driver(const char *proc_root)
{
    char path[PATH_SIZE];
    int len =
        snprintf(path, sizeof path, "%s/driver/nvidia/version", proc_root ? proc_root : "/proc");
    if (len > 0 && (size_t)len < sizeof path && access(path, F_OK) == 0)
        return true;
    return proc_root == NULL && access("/usr/lib/wsl/lib/libcuda.so.1", F_OK) == 0;
}

enum ew_cupti ew_cli_gpu_cupti(const char *proc_root, char *ret_path, size_t size)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                        "libcupti.so.11.7"};
    static const char folders[] =
        "/usr/local/lib:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
        "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:"
        "/usr/local/cuda/extras/CUPTI/lib64:/usr/local/cuda/lib64:"
        "/usr/local/cuda-13/extras/CUPTI/lib64:/usr/local/cuda-12/extras/CUPTI/lib64";
    const char *wanted = getenv("ETWATCH_CUPTI");
    ret_path[0] = '\0';
    if (!has_driver(proc_root))
        return EW_CUPTI_NO_DRIVER;
    if (wanted != NULL && wanted[0] != '\0') {
        (void)snprintf(ret_path, size, "%s", wanted);
        return access(wanted, R_OK) == 0 ? EW_CUPTI_FOUND : EW_CUPTI_MISSING;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (found_in_list(getenv("LD_LIBRARY_PATH"), names[i], ret_path, size) ||
            found_in_list(folders, names[i], ret_path, size))
            return EW_CUPTI_FOUND;
    ret_path[0] = '\0';
    return EW_CUPTI_MISSING;
}
