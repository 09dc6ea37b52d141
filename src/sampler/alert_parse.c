/* SPDX-License-Identifier: MIT */
/*
 * Parses a condition. Errors are reported with their position, so that the program can point at it
 * and a configuration file can name the column. Units depend on the kind of metric, which follows
 * from its name (_bytes, _ns, _percent), so that "rss_bytes>80%" is rejected instead of read as 80
 * bytes.
 */
#include "sampler/alert.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/quantity.h"
#include "model/metric.h"

enum kind { GAUGE, COUNTER };
#define gauge GAUGE
#define counter COUNTER
static const struct {
    const char *name;
    enum kind kind;
} metrics[] = {
#define ETWATCH_X(name, type, kind) {#name, kind},
    ETWATCH_METRICS(ETWATCH_X)
#undef ETWATCH_X
};
#undef gauge
#undef counter

static bool unit_of_percent(const char *unit, size_t len, double *ret_factor)
{
    *ret_factor = 1;
    return len == 1 && unit[0] == '%';
}

static bool unit_of_count(const char *unit, size_t len, double *ret_factor)
{
    *ret_factor = len != 1                           ? 0
                  : unit[0] == 'k' || unit[0] == 'K' ? 1e3
                  : unit[0] == 'M'                   ? 1e6
                  : unit[0] == 'G'                   ? 1e9
                                                     : 0;
    return *ret_factor > 0;
}

/* The factor of a unit, or false. */
typedef bool (*unit_fn)(const char *unit, size_t len, double *ret_factor);

static const char form[] = "the form is METRIC OP VALUE [for TIME], such as "
                           "'cpu_percent>80 for 20ms'";

struct parse {
    struct ew_bytes bytes;
    struct ew_error *err;
};

static int fail_at(struct parse *p, size_t at, const char *what, struct ew_span found)
{
    int len = (int)(found.len < 40 ? found.len : 40);
    int rc = ew_error_set(p->err, ETWATCH_EINVAL, 0, "at column %zu: %s%s%.*s%s", at + 1, what,
                          len > 0 ? ", not \"" : "", len, len > 0 ? found.text : "",
                          len > 0 ? "\"" : "");
    ew_error_fix(p->err, "%s", form);
    if (p->err != NULL)
        p->err->offset = at;
    return rc;
}

static bool in_word(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '%';
}

/* The word at the cursor, which may be empty. */
static struct ew_span take_word(struct parse *p)
{
    struct ew_span word = {(const char *)p->bytes.data + p->bytes.pos, 0};
    while (in_word(ew_bytes_peek(&p->bytes))) {
        ew_bytes_skip(&p->bytes, 1);
        word.len++;
    }
    return word;
}

/* The text at the cursor, for the message: a word, or one byte. */
static struct ew_span rest(struct parse *p)
{
    struct ew_span word = take_word(p);
    if (word.len == 0 && ew_bytes_left(&p->bytes) > 0)
        word.len = 1;
    return word;
}

static bool never_watched(uint32_t metric)
{
    return metric == ETWATCH_M_affinity || metric == ETWATCH_M_exit_ns ||
           metric == ETWATCH_M_exit_code || metric == ETWATCH_M_exit_signal;
}

static int take_metric(struct parse *p, struct ew_alert_rule *rule)
{
    ew_bytes_skip_spaces(&p->bytes);
    size_t at = p->bytes.pos;
    struct ew_span word = rest(p);
    for (uint32_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        if (!ew_span_equals(word, metrics[i].name))
            continue;
        if (never_watched(i))
            return fail_at(p, at, "a metric that goes up and down is needed", word);
        if (!ew_metric_is_measurable(i)) {
            char what[96];
            (void)snprintf(what, sizeof what, "no source measures %s yet", metrics[i].name);
            return fail_at(p, at, what, (struct ew_span){"", 0});
        }
        rule->metric = i;
        return 0;
    }
    return fail_at(p, at, "the name of a metric is needed, such as cpu_percent or rss_bytes", word);
}

static int take_op(struct parse *p, struct ew_alert_rule *rule)
{
    ew_bytes_skip_spaces(&p->bytes);
    size_t at = p->bytes.pos;
    if (ew_bytes_accept(&p->bytes, ">="))
        rule->op = EW_ALERT_AT_LEAST;
    else if (ew_bytes_accept(&p->bytes, "<="))
        rule->op = EW_ALERT_AT_MOST;
    else if (ew_bytes_accept(&p->bytes, ">"))
        rule->op = EW_ALERT_ABOVE;
    else if (ew_bytes_accept(&p->bytes, "<"))
        rule->op = EW_ALERT_BELOW;
    else
        return fail_at(p, at, "one of > >= < <= is needed", rest(p));
    return 0;
}

/* Digits with an optional fraction: no exponent, independent of the locale. */
static int take_number(struct parse *p, const char *what, double *ret_number)
{
    double number = 0, place = 1;
    unsigned digits = 0;
    bool fraction = false;
    ew_bytes_skip_spaces(&p->bytes);
    size_t at = p->bytes.pos;
    for (int c; (c = ew_bytes_peek(&p->bytes)) >= 0; ew_bytes_skip(&p->bytes, 1)) {
        if (c == '.' && !fraction) {
            fraction = true;
        } else if (c >= '0' && c <= '9') {
            digits++;
            place = fraction ? place / 10 : place;
            number = fraction ? number + (c - '0') * place : number * 10 + (c - '0');
        } else {
            break;
        }
    }
    if (digits == 0 || digits > 18)
        return fail_at(p, at, what, digits == 0 ? rest(p) : (struct ew_span){"", 0});
    *ret_number = number;
    return 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static unit_fn units_of(const char *name, const char **ret_what)
{
    if (ends_with(name, "_bytes")) {
        *ret_what = "a unit of memory is needed here (B, KB, MB, GB, KiB, MiB, GiB)";
        return ew_unit_of_memory;
    }
    if (ends_with(name, "_ns")) {
        *ret_what = "a unit of time is needed here (ns, us, ms, s)";
        return ew_unit_of_time;
    }
    if (ends_with(name, "_percent")) {
        *ret_what = "only % or nothing fits here";
        return unit_of_percent;
    }
    *ret_what = "only K, M, G or nothing fits here";
    return unit_of_count;
}

/* Multiplies by the unit at the cursor, if any. Only spaces, "/s" or the end may follow it. */
static int take_unit(struct parse *p, unit_fn units, const char *what, double *number)
{
    double factor = 0;
    ew_bytes_skip_spaces(&p->bytes);
    size_t at = p->bytes.pos;
    struct ew_span word = take_word(p);
    if (word.len == 0)
        return 0;
    if (units(word.text, word.len, &factor)) {
        *number *= factor;
        return 0;
    }
    if (ew_span_equals(word, "for")) {
        ew_bytes_seek(&p->bytes, at);
        return 0;
    }
    return fail_at(p, at, what, word);
}

static int take_value(struct parse *p, struct ew_alert_rule *rule)
{
    const char *name = metrics[rule->metric].name, *what;
    int rc = take_number(p, "a number is needed", &rule->threshold);
    unit_fn units = units_of(name, &what);
    if (rc == 0)
        rc = take_unit(p, units, what, &rule->threshold);
    if (rc != 0)
        return rc;
    size_t at = p->bytes.pos;
    if (ew_bytes_accept(&p->bytes, "/s") && metrics[rule->metric].kind != COUNTER)
        return fail_at(p, at, "a gauge has no rate: leave out \"/s\"", (struct ew_span){"", 0});
    return 0;
}

static int take_duration(struct parse *p, struct ew_alert_rule *rule)
{
    double ns = 0;
    ew_bytes_skip_spaces(&p->bytes);
    size_t at = p->bytes.pos;
    if (ew_bytes_left(&p->bytes) == 0)
        return 0;
    struct ew_span word = rest(p);
    if (!ew_span_equals(word, "for"))
        return fail_at(p, at, "\"for TIME\" or nothing may follow", word);
    int rc = take_number(p, "a time is needed, such as 20ms", &ns);
    if (rc != 0)
        return rc;
    ew_bytes_skip_spaces(&p->bytes);
    at = p->bytes.pos;
    if (!in_word(ew_bytes_peek(&p->bytes)))
        return fail_at(p, at, "a unit of time is needed here (ms, s, m, h)", rest(p));
    rc = take_unit(p, ew_unit_of_time, "a unit of time is needed here (ms, s, m, h)", &ns);
    if (rc != 0)
        return rc;
    if (ns < 1e6 || ns > 86400e9)
        return fail_at(p, at, "the time must be between 1ms and one day", (struct ew_span){"", 0});
    rule->for_ns = (uint64_t)(ns + 0.5);
    ew_bytes_skip_spaces(&p->bytes);
    at = p->bytes.pos;
    if (ew_bytes_left(&p->bytes) > 0)
        return fail_at(p, at, "nothing may follow", rest(p));
    return 0;
}

int ew_alert_parse(const char *text, struct ew_alert_rule *ret_rule, struct ew_error *reterr)
{
    struct ew_alert_rule rule = {0};
    struct parse p = {.err = reterr};
    size_t len = strlen(text);
    ew_bytes_init(&p.bytes, text, len);
    if (len >= sizeof rule.text)
        return fail_at(&p, sizeof rule.text - 1, "the condition is too long",
                       (struct ew_span){"", 0});
    int rc = take_metric(&p, &rule);
    if (rc == 0)
        rc = take_op(&p, &rule);
    if (rc == 0)
        rc = take_value(&p, &rule);
    if (rc == 0)
        rc = take_duration(&p, &rule);
    if (rc != 0)
        return rc;
    (void)snprintf(rule.text, sizeof rule.text, "%s", text);
    *ret_rule = rule;
    return 0;
}

int etwatch_alert_check(const char *condition, uint32_t *ret_metric,
                        struct etwatch_error_info *reterr)
{
    struct ew_alert_rule rule;
    struct ew_error err = {0};
    int rc = condition == NULL ? ew_error_set(&err, ETWATCH_EINVAL, 0, "there is no condition")
                               : ew_alert_parse(condition, &rule, &err);
    if (rc < 0)
        ew_error_out(reterr, &err, rc);
    else if (ret_metric != NULL)
        *ret_metric = rule.metric;
    return rc;
}

bool ew_alert_fine(const struct ew_alert_rule *rule)
{
    return rule->metric == ETWATCH_M_cpu_percent || rule->metric == ETWATCH_M_cpu_ns ||
           rule->metric == ETWATCH_M_cpu_user_ns || rule->metric == ETWATCH_M_cpu_kernel_ns;
}

uint64_t ew_alert_window_ns(const struct ew_alert_rule *rule)
{
    static const uint64_t ms = 1000 * 1000, usual_ns = 5 * 1000 * 1000;
    uint64_t window_ns = (rule->for_ns == 0 ? usual_ns : rule->for_ns) / 4;
    return window_ns < ms ? ms : window_ns > 100 * ms ? 100 * ms : window_ns;
}
