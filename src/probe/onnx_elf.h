/* SPDX-License-Identifier: MIT */
/*
 * Finds the functions of ONNX Runtime in a shared library or executable, by its bytes alone: the
 * file is foreign and nothing of it is run.
 */
#ifndef EW_PROBE_ONNX_ELF_H
#define EW_PROBE_ONNX_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ew_onnx_function {
    EW_ONNX_CREATE,       /* OrtApi CreateSession */
    EW_ONNX_CREATE_ARRAY, /* OrtApi CreateSessionFromArray */
    EW_ONNX_API_RUN,      /* OrtApi Run: until the next one but one is found */
    EW_ONNX_INIT,         /* the C++ method that prepares a session */
    EW_ONNX_RUN,          /* the C++ method that all ways to run a session end in */
    EW_ONNX_FUNCTIONS,
};

/* A file. read returns the number of bytes, less than size only at its end, or a negative code. */
struct ew_onnx_file {
    int64_t (*read)(void *ctx, uint64_t offset, void *bytes, size_t size);
    void *ctx;
};

/*
 * Offsets in the file; 0: not found. _api finds those of the C API (a moment), _methods the others
 * (reads the whole code, some 30 ms for 30 MB). 0; ETWATCH_EFORMAT: not an ELF file of
 * x86-64 or arm64; ETWATCH_ENOMEM.
 */
int ew_onnx_find_api(const struct ew_onnx_file *file, uint64_t ret_offsets[EW_ONNX_FUNCTIONS]);
int ew_onnx_find_methods(const struct ew_onnx_file *file, uint64_t ret_offsets[EW_ONNX_FUNCTIONS]);

#endif
