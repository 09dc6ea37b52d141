/* SPDX-License-Identifier: MIT */
/*
 * Do two series of measurements differ, and by how much? Free of assumptions about their
 * distribution: latencies are skewed, and a mean says little about them.
 *
 *   p          Mann-Whitney U, two-sided: exact for small samples without ties, else the normal
 *              approximation with corrections for ties and continuity.
 *   ratio      of the medians, with the confidence interval of Price and Bonett (2002), which comes
 *              from order statistics.
 *   p_serial,  Both methods assume independent values. Measurements that follow each other are not:
 *   low, high  a busy second slows down all of them. Their variance is multiplied by the integrated
 *              autocorrelation of the ranks of each series. `p` is without it.
 */
#ifndef EW_CLI_RANK_TEST_H
#define EW_CLI_RANK_TEST_H

#include <stdbool.h>
#include <stddef.h>

struct ew_rank_test {
    double u; /* pairs in which the value of A is larger; ties count half */
    double p; /* probability of such a difference between samples of one distribution */
    double p_serial;
    double larger; /* share of pairs in which B is larger than A; ties count half: 0.5 = alike */
    double a_median, b_median;
    bool has_ratio;   /* both samples have 6 values or more, all positive */
    double ratio;     /* b_median / a_median; with has_ratio only, like low and high */
    double low, high; /* its confidence interval of 95 % */
    double a_inflation, b_inflation; /* of the variance, by autocorrelation; 1: independent */
};

/* The values in the order of time, not NaN. 0, ETWATCH_EINVAL if a sample is empty, or
 * ETWATCH_ENOMEM. */
int ew_rank_test(const double *a, size_t a_count, const double *b, size_t b_count,
                 struct ew_rank_test *ret_test);

#endif
