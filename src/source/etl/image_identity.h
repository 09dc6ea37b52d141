/* SPDX-License-Identifier: MIT */
/*
 * What a debugger needs to find the symbols of a program file of Windows: the values of its headers
 * and, if the linker wrote one, the identity of its symbol file (PDB).
 */
#ifndef EW_SOURCE_ETL_IMAGE_IDENTITY_H
#define EW_SOURCE_ETL_IMAGE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ew_etl_image_identity {
    uint64_t image_bytes; /* SizeOfImage */
    uint32_t timestamp;
    bool has_pdb; /* the rest is valid */
    uint8_t guid[16];
    uint32_t age;
    char pdb[512]; /* as the linker wrote it: a name or a path */
};

/* A file to read at any offset: the number of bytes read, less than size only at its end; negative
 * on failure. */
struct ew_image_source {
    void *ctx;
    int64_t (*read)(void *ctx, uint64_t offset, void *bytes, size_t size);
};

/* False: not a program file, or it cannot be read. */
bool ew_etl_image_identity_read(const struct ew_image_source *source,
                                struct ew_etl_image_identity *ret_identity);
/* The same of a file by its path. */
bool ew_etl_image_identity_open(const char *path, struct ew_etl_image_identity *ret_identity);

#endif
