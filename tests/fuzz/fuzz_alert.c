/* SPDX-License-Identifier: MIT */
/*
 * Text up to the first NUL is a condition; each byte after it is a window of a process: how much it
 * ran, 0 for no sample. A condition is parsed completely or refused with a position; every alert
 * lies in the time that was fed, and lasts at least as long as required.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "sampler/alert.h"

enum { INPUT_MAX = 1024, WINDOW_NS = 1000000, BEGIN_NS = 1000000000 };

struct reported {
    const struct ew_alert_rule *rule;
    uint64_t until_ns;
};

static void on_alert(void *ctx, const struct etwatch_alert *alert)
{
    const struct reported *reported = ctx;
    require(alert->from_ns >= BEGIN_NS - WINDOW_NS && alert->from_ns <= alert->to_ns, "a time");
    require(alert->to_ns <= reported->until_ns, "not after the end");
    uint64_t least_ns = reported->rule->for_ns;
    require(alert->to_ns - alert->from_ns + least_ns / 64 >= least_ns, "long enough");
    require(alert->thread_entries <= alert->thread_count, "threads");
}

static void feed(struct ew_alerts *alerts, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        struct etwatch_sample samples[2] = {{0}};
        uint64_t t_ns = BEGIN_NS + (uint64_t)i * WINDOW_NS;
        samples[0] = (struct etwatch_sample){
            .size = sizeof samples[0],
            .type = data[i] == 255 ? ETWATCH_TYPE_EXIT : ETWATCH_TYPE_SAMPLE,
            .pid = 1 + data[i] % 2,
            .start_ns = 1,
            .t_ns = t_ns,
            .dt_ns = WINDOW_NS,
            .cpu_ns = (uint64_t)data[i] * 4000,
            .cpu_percent = data[i] / 2.5,
            .rss_bytes = (uint64_t)data[i] << 20,
        };
        memset(&samples[0].has, 0xFF, sizeof samples[0].has);
        samples[1] = samples[0];
        samples[1].type = ETWATCH_TYPE_THREAD;
        samples[1].tid = data[i] % 40u;
        if (data[i] != 0)
            ew_alerts_feed(alerts, samples, data[i] == 255 ? 1 : 2);
        if (i % 16 == 15)
            ew_alerts_advance(alerts, t_ns);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[INPUT_MAX + 1];
    struct ew_alert_rule rule;
    struct ew_error err = {0};
    if (size > INPUT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    size_t len = strlen(text);
    int rc = ew_alert_parse(text, &rule, &err);
    require(rc == 0 || (rc == ETWATCH_EINVAL && err.message[0] != '\0' && err.offset <= len),
            "parsed completely or refused with a position");
    if (rc != 0)
        return 0;
    struct reported reported = {.rule = &rule, .until_ns = BEGIN_NS + (uint64_t)size * WINDOW_NS};
    struct ew_alerts_config config = {
        .rules = &rule,
        .rule_count = 1,
        .classes = EW_ALERT_FINE | EW_ALERT_COARSE,
        .edges = true,
        .ctx = &reported,
        .alert = on_alert,
    };
    struct ew_alerts *alerts;
    if (ew_alerts_new(&config, &alerts) < 0)
        return 0;
    if (len < size)
        feed(alerts, data + len + 1, size - len - 1);
    ew_alerts_finish(alerts);
    ew_alerts_free(alerts);
    return 0;
}
