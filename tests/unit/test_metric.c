/* SPDX-License-Identifier: MIT */
/* The metric table: complete and consistent, and matching what the sources declare. */
#include "model/metric.h"

#include <string.h>

#include "metric_kit.h"
#include "test.h"

TEST(every_metric_has_a_complete_row)
{
    static const char *const groups[] = {"cpu",     "memory",  "threads", "io",
                                         "handles", "devices", "exit"};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        CHECK_EQ_INT(etwatch_metric_info(i, &info), 0);
        test_row(info.name);
        CHECK_EQ_UINT(info.metric, i);
        CHECK(info.help != NULL && info.help[0] != '\0');
        CHECK(info.unit != NULL && info.scale > 0);
        size_t group = 0;
        while (group < sizeof groups / sizeof groups[0] && strcmp(groups[group], info.group) != 0)
            group++;
        CHECK(group < sizeof groups / sizeof groups[0]);
        for (uint32_t backend = 0; backend < ETWATCH_BACKEND_COUNT; backend++) {
            struct etwatch_metric_backend cell = {.size = sizeof cell};
            CHECK_EQ_INT(etwatch_metric_backend(i, backend, &cell), 0);
            CHECK(cell.how != NULL && cell.how[0] != '\0');
            CHECK(cell.exactness != ETWATCH_EXACTNESS_UNAVAILABLE || cell.on_request == 0);
        }
    }
}

TEST(no_source_starts_sensors_without_being_asked)
{
    for (uint32_t backend = 0; backend < ETWATCH_BACKEND_COUNT; backend++) {
        struct etwatch_metric_set set = ew_metrics_default(backend);
        CHECK(!ew_metric_set_intersects(&set, &ew_metrics_of_devices));
    }
}

TEST(the_unit_is_the_end_of_the_name)
{
    static const struct {
        const char *end, *unit;
    } ends[] = {{"_ns", "ns"}, {"_bytes", "bytes"}, {"_percent", "percent"}, {"_uj", "uj"}};
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        CHECK_EQ_INT(etwatch_metric_info(i, &info), 0);
        test_row(info.name);
        for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
            size_t len = strlen(info.name), end = strlen(ends[e].end);
            if (len > end && strcmp(info.name + len - end, ends[e].end) == 0 &&
                strcmp(info.unit, "unix_ns") != 0)
                CHECK_EQ_STR(info.unit, ends[e].unit);
        }
    }
}

TEST(exported_names_are_unique_with_their_labels)
{
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        const struct ew_metric_row *a = &ew_metric_rows[i];
        test_row(a->help);
        for (uint32_t j = 0; j < i; j++) {
            const struct ew_metric_row *b = &ew_metric_rows[j];
            CHECK(a->prometheus == NULL || b->prometheus == NULL ||
                  strcmp(a->prometheus, b->prometheus) != 0 ||
                  strcmp(a->prometheus_labels, b->prometheus_labels) != 0);
            CHECK(a->otlp == NULL || b->otlp == NULL || strcmp(a->otlp, b->otlp) != 0 ||
                  strcmp(a->otlp_attribute, b->otlp_attribute) != 0);
        }
    }
}

/*
 * The names that the semantic conventions (1.43, 1.44) define; any other would be an invented name
 * in their namespace.
 */
TEST(opentelemetry_names_are_defined_by_its_conventions)
{
    static const struct {
        const char *name, *unit, *attribute; /* its key; "" if it has none */
    } defined[] = {
        {"process.cpu.time", "s", "cpu.mode"},
        {"process.memory.usage", "By", ""},
        {"process.memory.virtual", "By", ""},
        {"process.disk.io", "By", "disk.io.direction"},
        {"process.disk.operations", "{operation}", "disk.io.direction"},
        {"process.network.io", "By", "network.io.direction"},
        {"process.thread.count", "{thread}", ""},
        {"process.unix.file_descriptor.count", "{file_descriptor}", ""},
        {"process.windows.handle.count", "{handle}", ""},
        {"process.context_switches", "{context_switch}", "process.context_switch.type"},
        {"process.paging.faults", "{fault}", "system.paging.fault.type"},
    };
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        struct etwatch_metric_info info = {.size = sizeof info};
        CHECK_EQ_INT(etwatch_metric_info(i, &info), 0);
        test_row(info.name);
        for (int on_linux = 0; on_linux < 2 && info.otlp != NULL; on_linux++) {
            const char *name = on_linux ? info.otlp_linux : info.otlp;
            const char *unit = on_linux ? info.otlp_linux_unit : info.otlp_unit;
            if (strncmp(name, "etwatch.process.", 16) == 0)
                continue;
            size_t at = 0;
            while (at < sizeof defined / sizeof defined[0] && strcmp(defined[at].name, name) != 0)
                at++;
            CHECK(at < sizeof defined / sizeof defined[0]);
            CHECK_EQ_STR(unit, defined[at].unit);
            size_t len = strlen(defined[at].attribute);
            CHECK(strncmp(info.otlp_attribute, defined[at].attribute, len) == 0);
            CHECK(info.otlp_attribute[len] == (len > 0 ? '=' : '\0'));
        }
    }
    struct etwatch_metric_info handles = {.size = sizeof handles};
    CHECK_EQ_INT(etwatch_metric_info(ETWATCH_M_handles, &handles), 0);
    CHECK_EQ_STR(handles.otlp, "process.windows.handle.count");
    CHECK_EQ_STR(handles.otlp_linux, "process.unix.file_descriptor.count");
}

/* What a name selects; an empty set where there is no such name. */
static struct etwatch_metric_set named(const char *name, int expected)
{
    struct etwatch_metric_set set = {{0}};
    CHECK_EQ_INT(etwatch_metrics_named(name, &set), expected);
    return set;
}

TEST(names_and_groups_select_metrics)
{
    struct etwatch_metric_set set = named("rss_bytes", 0);
    CHECK_METRICS(set, ETWATCH_M_rss_bytes);
    set = named("handles", 0);
    CHECK_METRICS(set, ETWATCH_M_handles, ETWATCH_M_handles_peak, ETWATCH_M_gdi_objects,
                  ETWATCH_M_user_objects);
    set = named("default", 0);
    CHECK_METRICS(set, ETWATCH_METRIC_DEFAULT);
    set = named("rss", ETWATCH_EINVAL);
    CHECK(etwatch_metric_set_is_empty(&set));
    set = named(NULL, ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_metrics_named("all", NULL), ETWATCH_EINVAL);
}

TEST(a_metric_that_no_source_measures_cannot_be_selected)
{
    struct etwatch_metric_set all = named("all", 0), measurable;
    measurable = ew_metrics_measurable();
    CHECK(etwatch_metric_set_equal(&all, &measurable));
    for (uint32_t i = 0; i < ETWATCH_METRIC_COUNT; i++) {
        bool measured = false;
        test_row(ew_metric_rows[i].help);
        for (uint32_t backend = 0; backend < ETWATCH_BACKEND_COUNT; backend++)
            measured |=
                ew_metric_rows[i].backend[backend].exactness != ETWATCH_EXACTNESS_UNAVAILABLE;
        CHECK_EQ_INT(ew_metric_is_measurable(i), measured);
        CHECK_EQ_INT(etwatch_metric_set_has(&all, i), measured);
    }
    CHECK(ew_metric_is_measurable(ETWATCH_M_cpu_ns));
    CHECK(!ew_metric_is_measurable(ETWATCH_METRIC_COUNT));
}

static struct etwatch_metric_set selected(uint32_t backend, struct etwatch_metric_set selection)
{
    return ew_metrics_selected(backend, &selection);
}

TEST(a_selection_depends_on_the_defaults_of_the_source)
{
    struct etwatch_metric_set none = {{0}};
    struct etwatch_metric_set plain = selected(ETWATCH_BACKEND_EBPF, none);
    CHECK(etwatch_metric_set_has(&plain, ETWATCH_M_cpu_ns));
    CHECK(!etwatch_metric_set_has(&plain, ETWATCH_M_net_sent_bytes));
    CHECK(!etwatch_metric_set_has(&plain, ETWATCH_M_handles));
    CHECK(!etwatch_metric_set_has(&plain, ETWATCH_METRIC_DEFAULT));
    struct etwatch_metric_set set =
        selected(ETWATCH_BACKEND_EBPF, EW_METRICS(ETWATCH_METRIC_DEFAULT));
    CHECK(etwatch_metric_set_equal(&set, &plain));
    set = selected(ETWATCH_BACKEND_EBPF, EW_METRICS(ETWATCH_METRIC_DEFAULT, ETWATCH_M_handles));
    etwatch_metric_set_add(&plain, ETWATCH_M_handles);
    CHECK(etwatch_metric_set_equal(&set, &plain));
    set = selected(ETWATCH_BACKEND_EBPF, EW_METRICS(ETWATCH_M_handles));
    CHECK_METRICS(set, ETWATCH_M_handles, ETWATCH_M_exit_ns, ETWATCH_M_exit_code,
                  ETWATCH_M_exit_signal);
    set = selected(ETWATCH_BACKEND_POLL_LINUX, none);
    CHECK(etwatch_metric_set_has(&set, ETWATCH_M_handles));
}

static const struct etwatch_metric_set memory =
    EW_METRIC_SET(ETWATCH_M_rss_bytes, ETWATCH_M_virtual_bytes);

TEST(the_fastest_selected_metric_sets_the_period)
{
    const struct etwatch_rate rates[] = {{memory, 2}, {EW_METRIC_SET(ETWATCH_M_virtual_bytes), 4}};
    struct etwatch_metric_set rss = EW_METRICS(ETWATCH_M_rss_bytes);
    struct etwatch_metric_set cpu = EW_METRICS(ETWATCH_M_cpu_ns);
    CHECK_EQ_UINT(ew_metrics_period_ns(&memory, NULL, 0, &memory), 100000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&memory, rates, 1, &memory), 500000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&memory, rates, 2, &memory), 250000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&rss, rates, 2, &memory), 500000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&cpu, rates, 2, &memory), 0);
    CHECK_EQ_UINT(ew_metrics_period_ns(&cpu, NULL, 0, &cpu), 1);
}

/* No such metrics exist yet; the sets that carry them must. */
TEST(members_beyond_the_first_word_are_selected_rated_and_polled)
{
    const struct etwatch_metric_set high = EW_METRIC_SET(70, 130, 200);
    const struct etwatch_rate rates[] = {{EW_METRIC_SET(130), 8}, {EW_METRIC_SET(70, 200), 4}};
    struct etwatch_metric_set both = high, none = {{0}};
    etwatch_metric_set_add(&both, ETWATCH_METRIC_DEFAULT);
    struct etwatch_metric_set set = selected(ETWATCH_BACKEND_EBPF, both);
    struct etwatch_metric_set plain = selected(ETWATCH_BACKEND_EBPF, none);
    etwatch_metric_set_union(&plain, &high);
    CHECK(etwatch_metric_set_equal(&set, &plain));
    CHECK_EQ_UINT(ew_metrics_period_ns(&set, rates, 2, &high), 125000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&set, rates + 1, 1, &EW_METRICS(200)), 250000000);
    CHECK_EQ_UINT(ew_metrics_period_ns(&set, rates, 2, &EW_METRICS(71)), 0);
    set = ew_metrics_polled(&high);
    CHECK(etwatch_metric_set_equal(&set, &high));
    CHECK(ew_metric_set_intersects(&plain, &high));
}

TEST(a_caller_with_an_older_header_gets_the_fields_it_has)
{
    struct etwatch_metric_info info;
    memset(&info, 0x5a, sizeof info);
    info.size = (uint32_t)offsetof(struct etwatch_metric_info, help);
    const char *before = info.help;
    CHECK_EQ_INT(etwatch_metric_info(ETWATCH_M_cpu_ns, &info), 0);
    CHECK_EQ_STR(info.group, "cpu");
    CHECK(info.help == before);
    info.size = 0;
    CHECK_EQ_INT(etwatch_metric_info(ETWATCH_M_cpu_ns, &info), ETWATCH_EINVAL);
    CHECK_EQ_INT(etwatch_metric_info(ETWATCH_METRIC_COUNT, &info), ETWATCH_EINVAL);
}
