/* SPDX-License-Identifier: MIT */
/*
 * Owns the list of tests of one program and the verdict on the running test. Tests register
 * themselves before main; the list is kept in source order, because constructors run in opposite
 * orders on ELF and on Windows. Every line is flushed at once, so that after a crash the last line
 * shows which test ran.
 */
#include "test.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum verdict { PASSED, FAILED, SKIPPED };

static struct test_case *first_test;
static jmp_buf test_end;
static atomic_int failure_count;
static const char *skip_reason;
static const char *row_remark;
static _Thread_local int on_test_thread;

void test_register(struct test_case *test)
{
    struct test_case **at = &first_test;
    while (*at != NULL && (*at)->line < test->line)
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

void test_row(const char *remark)
{
    row_remark = remark;
}

const char *test_path(const char *relative)
{
    static char path[1024];
    int len = snprintf(path, sizeof path, "%s/%s", TESTS_DIR, relative);
    CHECK(len > 0 && (size_t)len < sizeof path);
    return path;
}

static void fail(const char *file, int line, const char *format, ...) EW_PRINTF(3, 4);

static void fail(const char *file, int line, const char *format, ...)
{
    const char *slash = strrchr(file, '/');
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = '~';
    printf("# %s:%d: %s", slash != NULL ? slash + 1 : file, line, text);
    if (row_remark != NULL)
        printf(" [row: %s]", row_remark);
    printf("\n");
    (void)fflush(stdout);
    atomic_fetch_add(&failure_count, 1);
    if (on_test_thread)
        longjmp(test_end, FAILED);
}

void test_skip(const char *reason)
{
    skip_reason = reason;
    longjmp(test_end, SKIPPED);
}

void test_check(int ok, const char *file, int line, const char *what)
{
    if (!ok)
        fail(file, line, "%s", what);
}

void test_eq_int(intmax_t got, intmax_t want, const char *file, int line, const char *what)
{
    if (got != want)
        fail(file, line, "%s is %jd, not %jd", what, got, want);
}

void test_eq_uint(uintmax_t got, uintmax_t want, const char *file, int line, const char *what)
{
    if (got != want)
        fail(file, line, "%s is %ju, not %ju", what, got, want);
}

void test_eq_str(const char *got, const char *want, const char *file, int line, const char *what)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0))
        return;
    fail(file, line, "%s is %s%s%s, not %s%s%s", what, got ? "\"" : "", got ? got : "NULL",
         got ? "\"" : "", want ? "\"" : "", want ? want : "NULL", want ? "\"" : "");
}

void test_eq_mem(const void *got, const void *want, size_t size, const char *file, int line,
                 const char *what)
{
    const unsigned char *a = got, *b = want;
    for (size_t at = 0; at < size; at++)
        if (a[at] != b[at])
            fail(file, line, "%s at byte %zu is 0x%02x, not 0x%02x", what, at, a[at], b[at]);
}

void test_near(double got, double want, double tolerance, const char *file, int line,
               const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail(file, line, "%s is %.17g, not %.17g within %g", what, got, want, tolerance);
}

void test_contains(const char *text, const char *part, const char *file, int line, const char *what)
{
    if (text == NULL || strstr(text, part) == NULL)
        fail(file, line, "%s is \"%s\", without \"%s\"", what, text ? text : "NULL", part);
}

struct refusal {
    size_t call;   /* allocations so far */
    size_t refuse; /* number of the allocation that fails, from 1; 0 = none */
};

static int count_and_refuse(void *ctx, size_t size)
{
    (void)size;
    struct refusal *refusal = ctx;
    return ++refusal->call == refusal->refuse;
}

size_t test_count_allocations(void (*body)(void *ctx), void *ctx)
{
    struct refusal counted = {0, 0};
    ew_alloc_set_hook(count_and_refuse, &counted);
    body(ctx);
    ew_alloc_set_hook(NULL, NULL);
    return counted.call;
}

void test_torture(int (*body)(void *ctx), void *ctx, const char *file, int line)
{
    /* More allocations than any single operation makes: beyond this the loop would never end. */
    const size_t limit = 20000;
    for (size_t n = 1; n <= limit; n++) {
        struct refusal refusal = {0, n};
        ew_alloc_set_hook(count_and_refuse, &refusal);
        int rc = body(ctx);
        ew_alloc_set_hook(NULL, NULL);
        if (refusal.call < n) {
            if (rc != 0)
                fail(file, line, "returned %d although no allocation failed", rc);
            return;
        }
        if (rc >= 0)
            fail(file, line, "returned %d although allocation %zu failed", rc, n);
    }
    fail(file, line, "still allocating after %zu failures", limit);
}

static enum verdict run_test(const struct test_case *test)
{
    atomic_store(&failure_count, 0);
    skip_reason = NULL;
    row_remark = NULL;
    on_test_thread = 1;
    int ended = setjmp(test_end);
    if (ended == 0)
        test->run();
    on_test_thread = 0;
    ew_alloc_set_hook(NULL, NULL);
    if (atomic_load(&failure_count) != 0)
        return FAILED;
    return ended == SKIPPED ? SKIPPED : PASSED;
}

static int is_wanted(const struct test_case *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], test->name) == 0)
            return 1;
    return argc <= 1;
}

int main(int argc, char **argv)
{
    const struct test_case *test;
    int planned = 0, number = 0, count[3] = {0, 0, 0};
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (test = first_test; test != NULL; test = test->next)
            printf("%s\n", test->name);
        return 0;
    }
    for (test = first_test; test != NULL; test = test->next)
        planned += is_wanted(test, argc, argv);
    printf("1..%d\n", planned);
    (void)fflush(stdout);
    for (test = first_test; test != NULL; test = test->next) {
        if (!is_wanted(test, argc, argv))
            continue;
        enum verdict verdict = run_test(test);
        count[verdict]++;
        printf("%sok %d - %s", verdict == FAILED ? "not " : "", ++number, test->name);
        if (verdict == SKIPPED)
            printf(" # SKIP %s", skip_reason);
        printf("\n");
        (void)fflush(stdout);
    }
    if (planned == 0) {
        printf("# no test of that name\n");
        return 1;
    }
    if (count[FAILED] > 0)
        return 1;
    return count[PASSED] == 0 ? 77 : 0;
}
