/* SPDX-License-Identifier: MIT */
/*
 * The test harness: TEST(a_sentence) { … } in tests/unit/test_*.c, one program per file, TAP on
 * standard output, exit 0 all passed or skipped, 1 something failed, 77 everything was skipped.
 *
 *   program                 runs every test of the file
 *   program NAME…           runs those
 *   program --list          prints the names
 *
 * A failed CHECK ends its test. In a thread that the test started, the failure is recorded and the
 * thread continues, because longjmp works only in the test's own thread.
 */
#ifndef TEST_H
#define TEST_H

#include <stddef.h>
#include <stdint.h>

struct test_case {
    const char *name;
    int line;
    void (*run)(void);
    struct test_case *next;
};

void test_register(struct test_case *test);

#define TEST(sentence)                                                               \
    static void sentence(void);                                                      \
    static struct test_case sentence##_case = {#sentence, __LINE__, sentence, NULL}; \
    __attribute__((constructor)) static void sentence##_register(void)               \
    {                                                                                \
        test_register(&sentence##_case);                                             \
    }                                                                                \
    static void sentence(void)

#define CHECK(condition) test_check((condition) != 0, __FILE__, __LINE__, #condition)
#define CHECK_EQ_INT(got, want) \
    test_eq_int((intmax_t)(got), (intmax_t)(want), __FILE__, __LINE__, #got)
#define CHECK_EQ_UINT(got, want) \
    test_eq_uint((uintmax_t)(got), (uintmax_t)(want), __FILE__, __LINE__, #got)
/* NULL equals only NULL. */
#define CHECK_EQ_STR(got, want) test_eq_str((got), (want), __FILE__, __LINE__, #got)
#define CHECK_EQ_MEM(got, want, size) test_eq_mem((got), (want), (size), __FILE__, __LINE__, #got)
/* |got - want| <= tolerance; NaN is never near. */
#define CHECK_NEAR(got, want, tolerance) \
    test_near((double)(got), (double)(want), (double)(tolerance), __FILE__, __LINE__, #got)
#define CHECK_CONTAINS(text, part) test_contains((text), (part), __FILE__, __LINE__, #text)
#define FAIL(reason) test_check(0, __FILE__, __LINE__, reason)

/* Ends the test as skipped. The reason states what is missing and is shown in the summary. */
#define SKIP(reason) test_skip(reason)

/*
 * For loops over a table: describes the current row; shown with every failure until the next call.
 */
void test_row(const char *remark);

/* The path of a file below tests/. Valid until the next call. */
const char *test_path(const char *relative);

/*
 * Runs body repeatedly: first with the first allocation failing, then with the second, and so on
 * until a run completes without a failed allocation. Body returns 0 for success or a negative code:
 * a run in which an allocation failed must return a negative code, the last run must return 0. In
 * both cases body must free everything it made (the address sanitizer build finds leaks).
 */
#define TORTURE(body, ctx) test_torture((body), (ctx), __FILE__, __LINE__)

/* The number of allocator calls that body made on this thread. */
size_t test_count_allocations(void (*body)(void *ctx), void *ctx);

/* Used by the macros. */
void test_check(int ok, const char *file, int line, const char *what);
void test_eq_int(intmax_t got, intmax_t want, const char *file, int line, const char *what);
void test_eq_uint(uintmax_t got, uintmax_t want, const char *file, int line, const char *what);
void test_eq_str(const char *got, const char *want, const char *file, int line, const char *what);
void test_eq_mem(const void *got, const void *want, size_t size, const char *file, int line,
                 const char *what);
void test_near(double got, double want, double tolerance, const char *file, int line,
               const char *what);
void test_contains(const char *text, const char *part, const char *file, int line,
                   const char *what);
_Noreturn void test_skip(const char *reason);
void test_torture(int (*body)(void *ctx), void *ctx, const char *file, int line);

#endif
