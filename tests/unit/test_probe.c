/* SPDX-License-Identifier: MIT */
/* What probes need to know of ONNX Runtime is found in its bytes, or is unknown. */
#include <string.h>

#include <etwatch/etwatch.h>

#include "onnx_library.h"
#include "probe/onnx_elf.h"
#include "probe/tensor_shape.h"
#include "test.h"

static uint8_t library[LIBRARY_SIZE];

static int64_t read_library(void *ctx, uint64_t offset, void *bytes, size_t size)
{
    size_t limit = *(size_t *)ctx;
    size_t left = offset < limit ? limit - (size_t)offset : 0;
    size = size < left ? size : left;
    if (size > 0)
        memcpy(bytes, library + offset, size);
    return (int64_t)size;
}

static int find(size_t limit, uint64_t offsets[EW_ONNX_FUNCTIONS])
{
    struct ew_onnx_file file = {read_library, &limit};
    memset(offsets, 0, EW_ONNX_FUNCTIONS * sizeof *offsets);
    int rc = ew_onnx_find_api(&file, offsets);
    return rc < 0 ? rc : ew_onnx_find_methods(&file, offsets);
}

static void check_found(uint32_t machine)
{
    uint64_t offsets[EW_ONNX_FUNCTIONS];
    make_library(library, machine);
    CHECK_EQ_INT(find(sizeof library, offsets), 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_CREATE], AT_FUNCTIONS + 7 * 16);
    CHECK_EQ_UINT(offsets[EW_ONNX_CREATE_ARRAY], AT_FUNCTIONS + 8 * 16);
    CHECK_EQ_UINT(offsets[EW_ONNX_API_RUN], AT_FUNCTIONS + 9 * 16);
    CHECK_EQ_UINT(offsets[EW_ONNX_INIT], AT_INIT);
    CHECK_EQ_UINT(offsets[EW_ONNX_RUN], AT_RUN);
}

TEST(the_functions_of_a_library_for_x86_are_found)
{
    check_found(LIBRARY_X86);
}

TEST(the_functions_of_a_library_for_arm64_are_found)
{
    check_found(LIBRARY_ARM64);
}

TEST(packed_relocations_leave_the_pointers_in_their_place)
{
    uint64_t offsets[EW_ONNX_FUNCTIONS];
    make_library(library, LIBRARY_X86);
    memset(library + AT_RELA, 0, (TABLE_MEMBERS + 1) * 24);
    put(library, AT_BASE, AT_GET_API, 8);
    for (uint64_t i = 0; i < TABLE_MEMBERS; i++)
        put(library, AT_TABLE + i * 8, AT_FUNCTIONS + i * 16, 8);
    CHECK_EQ_INT(find(sizeof library, offsets), 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_CREATE], AT_FUNCTIONS + 7 * 16);
}

TEST(a_name_that_two_functions_refer_to_is_no_method)
{
    uint64_t offsets[EW_ONNX_FUNCTIONS];
    make_library(library, LIBRARY_X86);
    put_address(library, LIBRARY_X86, AT_OTHER + 8, AT_TEXTS + 36);
    CHECK_EQ_INT(find(sizeof library, offsets), 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_RUN], 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_INIT], AT_INIT);
}

TEST(a_table_whose_members_are_no_functions_is_none)
{
    uint64_t offsets[EW_ONNX_FUNCTIONS];
    make_library(library, LIBRARY_X86);
    put_relocation(library, LIBRARY_X86, 12, AT_TABLE + 11 * 8, AT_DATA);
    CHECK_EQ_INT(find(sizeof library, offsets), 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_CREATE], 0);
    CHECK_EQ_UINT(offsets[EW_ONNX_RUN], AT_RUN);
}

TEST(a_file_that_ends_anywhere_gives_no_false_function)
{
    for (size_t limit = 0; limit < sizeof library; limit += 37) {
        uint64_t offsets[EW_ONNX_FUNCTIONS];
        make_library(library, LIBRARY_X86);
        (void)find(limit, offsets);
        for (uint32_t i = 0; i < EW_ONNX_FUNCTIONS; i++)
            CHECK(offsets[i] == 0 || (offsets[i] >= AT_CODE && offsets[i] < AT_DATA));
    }
}

TEST(another_file_is_refused)
{
    uint64_t offsets[EW_ONNX_FUNCTIONS];
    memset(library, 0, sizeof library);
    CHECK_EQ_INT(find(sizeof library, offsets), ETWATCH_EFORMAT);
    make_library(library, 40 /* arm with 32 bits */);
    CHECK_EQ_INT(find(sizeof library, offsets), ETWATCH_EFORMAT);
}

/* ------------------------------------------------------------------------- shapes */

enum { WORDS = 18 };
static const uint64_t tensor = 0x7f0000001000;

TEST(a_shape_is_found_by_the_pointer_to_itself)
{
    uint64_t words[WORDS] = {0x7f0000200000, 7, 9, 11, 2, tensor + 6 * 8, 16, 256, 0, 0, 0};
    char text[64];
    CHECK_EQ_INT(ew_probe_shape(tensor, words, WORDS, text, sizeof text), 6);
    CHECK_EQ_STR(text, "16x256");
}

TEST(the_number_of_dimensions_may_follow_the_pointer)
{
    uint64_t words[WORDS] = {0x7f0000200000, tensor + 3 * 8, 3, 1, 224, 224};
    char text[64];
    CHECK(ew_probe_shape(tensor, words, WORDS, text, sizeof text) > 0);
    CHECK_EQ_STR(text, "1x224x224");
}

TEST(a_shape_elsewhere_is_unknown)
{
    uint64_t words[WORDS] = {0x7f0000200000, 2, 0x7f0000300000, 16, 256};
    char text[64];
    CHECK_EQ_INT(ew_probe_shape(tensor, words, WORDS, text, sizeof text), 0);
    words[2] = tensor + 3 * 8;
    words[3] = UINT64_C(1) << 60; /* no dimension */
    CHECK_EQ_INT(ew_probe_shape(tensor, words, WORDS, text, sizeof text), 0);
    CHECK_EQ_STR(text, "");
}
