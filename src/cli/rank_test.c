/* SPDX-License-Identifier: MIT */
#include "cli/rank_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <etwatch/etwatch.h>

#include "base/alloc.h"

/* EXACT_MAX: the product of both counts up to which the exact distribution is computed. LAGS_MAX:
 * how far apart measurements are compared with each other. */
enum { EXACT_MAX = 400, RATIO_MIN = 6, LAGS_MAX = 200 };

/* Correlations below this end the sum: noise would add up. */
static const double least_correlation = 0.05;

struct item {
    double value;
    size_t at; /* place in A, or a_count + place in B */
};

struct job {
    size_t a_count, b_count;
    struct item *items; /* all values, sorted */
    double *ranks;      /* by place */
    double ties;        /* sum of t^3 - t */
};

static int by_value(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Equal values get the mean of their ranks. */
static void rank_all(struct job *job)
{
    size_t count = job->a_count + job->b_count;
    qsort(job->items, count, sizeof *job->items, by_value);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count && !(job->items[end].value > job->items[i].value))
            end++;
        double tied = (double)(end - i);
        job->ties += tied * tied * tied - tied;
        for (; i < end; i++)
            job->ranks[job->items[i].at] = (double)end - (tied - 1) / 2;
    }
}

/* Probability of a standard normal value above z. */
static double above(double z)
{
    return 0.5 * erfc(z / sqrt(2));
}

/* The z with this probability above it, from 0 to 0.5. */
static double z_of(double probability)
{
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (above(middle) > probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ------------------------------------------------------------------------------- U */

/* Probability that U is at least `u` (a whole number): the number of arrangements by U are the
 * coefficients of the Gaussian binomial. They are exact in a double up to 2^53, and far beyond
 * precise enough. */
static double exact_above(size_t a_count, size_t b_count, double u)
{
    double ways[EXACT_MAX + 1] = {1};
    size_t most = a_count * b_count;
    double all = 0, over = 0;
    for (size_t i = 1; i <= a_count; i++) {
        for (size_t k = most + 1; k-- > b_count + i;)
            ways[k] -= ways[k - b_count - i];
        for (size_t k = i; k <= most; k++)
            ways[k] += ways[k - i];
    }
    for (size_t k = 0; k <= most; k++) {
        all += ways[k];
        over += (double)k >= u ? ways[k] : 0;
    }
    return over / all;
}

static double normal_p(const struct job *job, double u, double inflation)
{
    double a = (double)job->a_count, b = (double)job->b_count, all = a + b;
    double variance = a * b / 12 * (all + 1 - (all > 1 ? job->ties / (all * (all - 1)) : 0));
    double distance = fabs(u - a * b / 2) - 0.5;
    if (variance <= 0 || distance <= 0)
        return 1;
    double p = 2 * above(distance / sqrt(variance * inflation));
    return p < 1 ? p : 1;
}

static double p_of(const struct job *job, double u)
{
    bool small = job->a_count <= EXACT_MAX && job->b_count <= EXACT_MAX &&
                 job->a_count * job->b_count <= EXACT_MAX;
    double most = (double)job->a_count * (double)job->b_count;
    if (!small || job->ties > 0)
        return normal_p(job, u, 1);
    double p = 2 * exact_above(job->a_count, job->b_count, u > most / 2 ? u : most - u);
    return p < 1 ? p : 1;
}

/* ----------------------------------------------------------------- autocorrelation */

/* 1 + 2 * the sum of the correlations of the ranks with those that follow. */
static double inflation_of(const double *ranks, size_t count)
{
    double mean = 0, variance = 0, sum = 1;
    for (size_t i = 0; i < count; i++)
        mean += ranks[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        variance += (ranks[i] - mean) * (ranks[i] - mean);
    for (size_t lag = 1; variance > 0 && lag <= LAGS_MAX && lag * 4 <= count; lag++) {
        double product = 0;
        for (size_t i = lag; i < count; i++)
            product += (ranks[i] - mean) * (ranks[i - lag] - mean);
        if (product / variance < least_correlation)
            break;
        sum += 2 * product / variance;
    }
    return sum;
}

/* -------------------------------------------------------------------------- medians */

/* The logarithm of n!, by Stirling's series. */
static double log_factorial(size_t n)
{
    double x = (double)n, sum = 0;
    if (n < 20) {
        for (size_t i = 2; i <= n; i++)
            sum += log((double)i);
        return sum;
    }
    return (x + 0.5) * log(x) - x + 0.91893853320467274178 + 1 / (12 * x) - 1 / (360 * x * x * x);
}

/* Probability of fewer than `limit` heads in n throws; limit is at most n / 2. */
static double binomial_below(size_t n, size_t limit)
{
    double sum = 0;
    for (size_t k = limit; k-- > 0;) {
        double term = exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) -
                          (double)n * 0.69314718055994530942);
        sum += term;
        if (term < sum * 1e-15)
            break;
    }
    return sum;
}

/* Standard error of the logarithm of the median: values: sorted, positive. */
static double median_error(const double *values, size_t count)
{
    double n = (double)count, wanted = floor(n / 2 - sqrt(n) + 0.5);
    size_t at = wanted < 1 ? 1 : (size_t)wanted;
    double z = z_of(binomial_below(count, at));
    return (log(values[count - at]) - log(values[at - 1])) / (2 * z);
}

static double median_of(const double *values, size_t count)
{
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void compare_medians(const double *a, const double *b, const struct job *job,
                            struct ew_rank_test *test)
{
    test->a_median = median_of(a, job->a_count);
    test->b_median = median_of(b, job->b_count);
    test->has_ratio =
        job->a_count >= RATIO_MIN && job->b_count >= RATIO_MIN && a[0] > 0 && b[0] > 0;
    if (!test->has_ratio)
        return;
    double a_error = median_error(a, job->a_count), b_error = median_error(b, job->b_count);
    double error = 1.959963984540054 * sqrt(a_error * a_error * test->a_inflation +
                                            b_error * b_error * test->b_inflation);
    test->ratio = test->b_median / test->a_median;
    test->low = test->ratio * exp(-error);
    test->high = test->ratio * exp(error);
}

/* --------------------------------------------------------------------------- entry */

/* The values of each sample in order, from the common order. */
static void split(const struct job *job, double *a, double *b)
{
    size_t a_next = 0, b_next = 0;
    for (size_t i = 0; i < job->a_count + job->b_count; i++) {
        if (job->items[i].at < job->a_count)
            a[a_next++] = job->items[i].value;
        else
            b[b_next++] = job->items[i].value;
    }
}

static void run_test(struct job *job, double *sorted, struct ew_rank_test *test)
{
    double rank_sum = 0, a_count = (double)job->a_count, b_count = (double)job->b_count;
    rank_all(job);
    for (size_t i = 0; i < job->a_count; i++)
        rank_sum += job->ranks[i];
    test->u = rank_sum - a_count * (a_count + 1) / 2;
    test->larger = 1 - test->u / (a_count * b_count);
    test->a_inflation = inflation_of(job->ranks, job->a_count);
    test->b_inflation = inflation_of(job->ranks + job->a_count, job->b_count);
    double inflation =
        (b_count * test->a_inflation + a_count * test->b_inflation) / (a_count + b_count);
    test->p = p_of(job, test->u);
    test->p_serial = inflation > 1 ? normal_p(job, test->u, inflation) : test->p;
    if (test->p_serial < test->p)
        test->p_serial = test->p;
    split(job, sorted, sorted + job->a_count);
    compare_medians(sorted, sorted + job->a_count, job, test);
}

int ew_rank_test(const double *a, size_t a_count, const double *b, size_t b_count,
                 struct ew_rank_test *ret_test)
{
    size_t count = a_count + b_count;
    struct job job = {.a_count = a_count, .b_count = b_count};
    struct ew_rank_test test = {0};
    if (a_count == 0 || b_count == 0 || count < a_count)
        return ETWATCH_EINVAL;
    job.items = ew_calloc(count, sizeof *job.items);
    job.ranks = ew_calloc(count, sizeof *job.ranks);
    double *sorted = ew_calloc(count, sizeof *sorted);
    int rc = job.items == NULL || job.ranks == NULL || sorted == NULL ? ETWATCH_ENOMEM : 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        job.items[i] = (struct item){.value = i < a_count ? a[i] : b[i - a_count], .at = i};
    if (rc == 0) {
        run_test(&job, sorted, &test);
        *ret_test = test;
    }
    ew_free(job.items);
    ew_free(job.ranks);
    ew_free(sorted);
    return rc;
}
