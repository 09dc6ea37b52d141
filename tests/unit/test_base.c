/* SPDX-License-Identifier: MIT */
/* The allocator and the error record, which every other module uses. */
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sid.h"
#include "test.h"

TEST(calloc_gives_zeroed_memory)
{
    static const unsigned char zeros[64];
    unsigned char *block = ew_calloc(8, 8);
    CHECK(block != NULL);
    CHECK_EQ_MEM(block, zeros, sizeof zeros);
    ew_free(block);
}

TEST(an_array_size_that_overflows_is_refused)
{
    CHECK(ew_calloc(SIZE_MAX / 2, 3) == NULL);
    CHECK(ew_realloc_array(NULL, SIZE_MAX / 2, 3) == NULL);
}

TEST(a_grown_array_keeps_its_content)
{
    char *block = ew_calloc(4, 1);
    CHECK(block != NULL);
    memcpy(block, "abc", 4);
    char *grown = ew_realloc_array(block, 4096, 1);
    CHECK(grown != NULL);
    CHECK_EQ_STR(grown, "abc");
    ew_free(grown);
}

TEST(a_sid_becomes_its_text_and_its_name)
{
    static const uint8_t system[] = {1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0};
    static const uint8_t user[] = {1, 5, 0,    0,    0,    0,    0, 5, 21, 0, 0,    0, 1, 0,
                                   0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0,  0, 0xe9, 3, 0, 0};
    char text[EW_SID_SIZE];
    CHECK_EQ_UINT(ew_sid_text(text, system, sizeof system), 8);
    CHECK_EQ_STR(text, "S-1-5-18");
    CHECK_EQ_STR(ew_sid_name(text), "SYSTEM");
    CHECK(ew_sid_text(text, user, sizeof user) > 0);
    CHECK_EQ_STR(text, "S-1-5-21-1-4294967295-2-1001");
    CHECK_EQ_STR(ew_sid_name(text), text);
    CHECK_EQ_UINT(ew_sid_text(text, user, sizeof user - 1), 0);
    CHECK_EQ_UINT(ew_sid_text(text, (const uint8_t[]){1, 16, 0, 0, 0, 0, 0, 5}, 8), 0);
}

TEST(strdup_copies_the_text_and_its_end)
{
    static const char *const texts[] = {"", "a", "a longer text with \xc3\xa9"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        test_row(texts[i]);
        char *copy = ew_strdup(texts[i]);
        CHECK(copy != texts[i]);
        CHECK_EQ_STR(copy, texts[i]);
        ew_free(copy);
    }
}

static int refuse_all(void *ctx, size_t size)
{
    *(size_t *)ctx += size;
    return 1;
}

TEST(the_hook_sees_the_size_and_can_refuse)
{
    size_t requested = 0;
    ew_alloc_set_hook(refuse_all, &requested);
    void *zeroed = ew_calloc(3, 5);
    void *array = ew_realloc_array(NULL, 2, 10);
    char *copy = ew_strdup("four");
    ew_alloc_set_hook(NULL, NULL);
    CHECK(zeroed == NULL && array == NULL && copy == NULL);
    CHECK_EQ_UINT(requested, 15 + 20 + 5);
}

static int copy_two(void *ctx)
{
    (void)ctx;
    int rc = ETWATCH_ENOMEM;
    char *one = ew_strdup("one");
    char *two = one != NULL ? ew_strdup("two") : NULL;
    if (two != NULL)
        rc = 0;
    ew_free(two);
    ew_free(one);
    return rc;
}

TEST(torture_runs_once_more_than_there_are_allocations)
{
    TORTURE(copy_two, NULL);
}

static void copy_one(void *ctx)
{
    ew_free(ew_strdup(ctx));
}

TEST(allocations_are_counted)
{
    char text[] = "text";
    CHECK_EQ_UINT(test_count_allocations(copy_one, text), 1);
}

TEST(an_error_carries_code_os_code_message_and_fix)
{
    struct ew_error err;
    memset(&err, 0x55, sizeof err);
    CHECK_EQ_INT(ew_error_set(&err, ETWATCH_EPERM, 13, "cannot open %s", "map"), ETWATCH_EPERM);
    CHECK_EQ_INT(err.code, ETWATCH_EPERM);
    CHECK_EQ_INT(err.os_code, 13);
    CHECK_EQ_UINT(err.offset, 0);
    CHECK_EQ_STR(err.message, "cannot open map");
    CHECK_EQ_STR(err.fix, "");
    ew_error_fix(&err, "run as %s", "root");
    CHECK_EQ_STR(err.fix, "run as root");
    CHECK_EQ_STR(err.message, "cannot open map");
}

TEST(a_new_error_clears_the_previous_fix)
{
    struct ew_error err;
    ew_error_set(&err, ETWATCH_EPERM, 1, "first");
    ew_error_fix(&err, "the fix of the first");
    ew_error_set(&err, ETWATCH_EOS, 2, "second");
    CHECK_EQ_STR(err.fix, "");
}

TEST(an_error_without_a_destination_still_returns_its_code)
{
    CHECK_EQ_INT(ew_error_set(NULL, ETWATCH_ELIMIT, 0, "unseen"), ETWATCH_ELIMIT);
    ew_error_fix(NULL, "unseen");
}

TEST(a_limit_counts_what_is_held_at_a_time)
{
    struct ew_alloc_limit *limit = ew_alloc_limit_new(1000);
    CHECK(ew_alloc_limit_use(limit) == NULL);
    for (int i = 0; i < 10; i++)
        ew_free(ew_calloc(1, 900)); /* freed memory is available again */
    char *block = ew_calloc(1, 600);
    CHECK(block != NULL);
    CHECK(!ew_alloc_limit_exceeded(limit));
    CHECK(ew_calloc(1, 500) == NULL);
    CHECK(ew_realloc_array(block, 1100, 1) == NULL);
    CHECK(ew_alloc_limit_exceeded(limit));
    CHECK(ew_alloc_limit_use(NULL) == limit);
    char *other = ew_calloc(1, 5000); /* charged to nothing */
    CHECK(other != NULL);
    /* A block stays with its limit, which stays as long as its blocks. */
    CHECK(ew_realloc_array(block, 1100, 1) == NULL);
    block = ew_realloc_array(block, 1000, 1);
    CHECK(block != NULL);
    ew_alloc_limit_drop(limit);
    ew_free(block);
    ew_free(other);
}

TEST(the_seed_of_hashes_does_not_change)
{
    CHECK(ew_hash_seed() != 0);
    CHECK(ew_hash_seed() == ew_hash_seed());
    CHECK_EQ_UINT(ew_hash_identity(1, 2, 3), ew_hash_identity(1, 2, 3));
}

TEST(a_long_message_is_truncated_and_terminated)
{
    char text[600];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct ew_error err;
    ew_error_set(&err, ETWATCH_EINVAL, 0, "%s", text);
    ew_error_fix(&err, "%s", text);
    CHECK_EQ_UINT(strlen(err.message), sizeof err.message - 1);
    CHECK_EQ_UINT(strlen(err.fix), sizeof err.fix - 1);
}
