/* SPDX-License-Identifier: MIT */
/* Where the data goes: standard output or a file, written in whole batches. */
#ifndef EW_CLI_OUTPUT_H
#define EW_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_output {
    int fd;
    const char *path; /* NULL: standard output */
    int os_error;     /* errno of the write that failed; 0: none did */
};

/* Opens path for writing, or takes standard output if it is NULL. 0 or the errno. */
int ew_output_open(struct ew_output *output, const char *path);
/* 0 or the errno: data that a full disk refuses late is an error too. */
int ew_output_close(struct ew_output *output);
/* An etwatch_write_fn: everything or a negative code, and os_error. */
int ew_output_write(void *output, const void *bytes, size_t len);
/* Cuts a file off after so many bytes, as far as that works. */
void ew_output_cut(struct ew_output *output, uint64_t bytes);
/* The reader has gone: no error for us, only a reason to end. */
bool ew_output_reader_gone(const struct ew_output *output);

/* Whether path is nothing to replace: a device, a pipe, a folder, a link to something. */
bool ew_output_is_special(const char *path);
/* path becomes what is called from; what had that name before is gone. 0 or the errno. */
int ew_output_replace(const char *from, const char *path);

#endif
