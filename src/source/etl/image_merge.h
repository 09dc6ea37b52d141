/* SPDX-License-Identifier: MIT */
/*
 * Adds the identities of program files to a recording, as `xperf -merge` does: before each event of
 * an image that could be read from its disk stand the events ImageID and DbgID_RSDS, with its time,
 * in its buffer. Tools such as Windows Performance Analyzer find symbols by them on any machine.
 *
 * The recording is rewritten into a second file that then takes its place, so it is never half
 * done. Nothing else in it changes, except the numbers of buffers that follow an added one.
 */
#ifndef EW_SOURCE_ETL_IMAGE_MERGE_H
#define EW_SOURCE_ETL_IMAGE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "source/etl/image_identity.h"

struct ew_image_merge {
    uint64_t events; /* of images in the recording */
    uint64_t added;  /* those with an identity */
    uint32_t files;  /* different files that were read */
};

/* The identity of the file that the kernel names path. False: unknown. */
struct ew_image_files {
    void *ctx;
    bool (*identity)(void *ctx, const char *path, struct ew_etl_image_identity *ret_identity);
};

/*
 * Rewrites the recording at path. files NULL: those of this machine. Returns 0 (*ret_merge has what
 * was added, maybe nothing), ETWATCH_EFORMAT if the recording is compressed or damaged,
 * ETWATCH_ELIMIT if it is larger than 4 GiB, ETWATCH_ENOMEM, or ETWATCH_EOS. The recording is
 * unchanged after an error.
 */
int ew_etl_image_merge_file(const char *path, const struct ew_image_files *files,
                            struct ew_image_merge *ret_merge);

#endif
