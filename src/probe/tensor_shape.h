/* SPDX-License-Identifier: MIT */
/* The shape of a tensor of ONNX Runtime, from the bytes of its object. */
#ifndef EW_PROBE_TENSOR_SHAPE_H
#define EW_PROBE_TENSOR_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/*
 * A shape of up to five dimensions lies in the object itself, and next to it the object points to
 * it, with the number of dimensions. This is looked for, because its place differs between
 * versions; what does not point to itself is not taken. Writes "16x256" and returns its length; 0:
 * not found ("" is written).
 */
int ew_probe_shape(uint64_t address, const uint64_t *words, size_t count, char *text, size_t size);

#endif
