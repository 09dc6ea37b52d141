/* SPDX-License-Identifier: MIT */
/* History on disk: what was committed is there after a kill, a damaged file is replaced, a full
 * disk and a second process are errors that are reported and survived. Time is that of the facts.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "serve/archive.h"
#include "test.h"

#define S UINT64_C(1000000000)

/* A multiple of 300 s and of 600 s. */
static const uint64_t begin_s = 1800000000;

static void on_second(void *ctx, uint64_t t_ns)
{
    struct ew_archive **store = ctx;
    if (*store != NULL)
        ew_archive_second(*store, t_ns);
}

static void tick(struct ew_state *state, uint32_t pid, const char *name, uint64_t t_ns,
                 uint64_t cpu_ns)
{
    struct etwatch_sample sample = {.size = sizeof sample,
                                    .type = ETWATCH_TYPE_SAMPLE,
                                    .pid = pid,
                                    .start_ns = pid * S,
                                    .t_ns = t_ns,
                                    .dt_ns = S / 10,
                                    .name = name,
                                    .flags = ETWATCH_SAMPLE_COMPLETE};
    struct ew_buf frame;
    struct ew_bytes body;
    size_t at = 0;
    uint32_t type;
    bool broken = false;
    etwatch_metric_set_add(&sample.has, ETWATCH_M_cpu_ns);
    etwatch_metric_set_add(&sample.has, ETWATCH_M_rss_bytes);
    sample.cpu_ns = cpu_ns;
    sample.rss_bytes = 4096 * pid;
    ew_buf_init(&frame, 0, NULL, NULL);
    ew_wire_sample(&frame, &sample);
    CHECK(ew_wire_next((const uint8_t *)frame.data, frame.len, &at, &type, &body, &broken));
    ew_state_frame(state, type, &body);
    ew_buf_done(&frame);
}

static struct ew_state *new_state(struct ew_archive **store)
{
    struct ew_state_options options = {.fine_bytes = 1 << 16, .coarse_bytes = 1 << 16, .top = 5};
    struct ew_state *state = ew_calloc(1, sizeof *state);
    CHECK(state != NULL);
    CHECK_EQ_INT(ew_state_init(state, &options), 0);
    *store = NULL;
    state->on_second = on_second;
    state->ctx = store;
    return state;
}

static char folder[64];

static void new_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/etwatch-store-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    static const char *const names[] = {
        "etwatch.db",         "etwatch.db-wal",         "etwatch.db-shm",
        "etwatch.db.damaged", "etwatch.db.damaged-wal", "etwatch.db.damaged-shm",
        "etwatch.db-journal"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int open_with(struct ew_state *state, struct ew_archive **store,
                     const struct ew_archive_options *options, char *text, size_t size)
{
    int rc = ew_archive_prepare(options, 0, text, size);
    return rc < 0 ? rc : ew_archive_open(options, state, store, text, size);
}

/* Skips where there is no SQLite. */
static void open_store(struct ew_state *state, struct ew_archive **store, uint64_t size_bytes)
{
    const struct ew_archive_options options = {.dir = folder, .size_bytes = size_bytes};
    char text[256] = "";
    if (ew_archive_unavailable() != NULL)
        SKIP("this build has no SQLite");
    int rc = open_with(state, store, &options, text, sizeof text);
    if (rc < 0)
        test_row(text);
    CHECK_EQ_INT(rc, 0);
}

static void free_all(struct ew_state *state, struct ew_archive **store)
{
    ew_archive_close(*store);
    *store = NULL;
    ew_state_done(state);
    ew_free(state);
}

/* Process 7 works 0.1 s in each second of [from, to), process 8 only in every 20th. */
static void work(struct ew_state *state, uint64_t from_s, uint64_t to_s)
{
    for (uint64_t t = from_s; t < to_s; t++) {
        tick(state, 7, "worker", t * S + S / 2, S / 10);
        if (t % 20 == 0)
            tick(state, 8, "idler", t * S + S / 2, S / 100);
    }
    tick(state, 7, "worker", to_s * S + S / 2, 0); /* closes the last second */
}

static const char *json_of(struct ew_archive *store, const struct ew_state *state, uint32_t pid,
                           uint64_t from_s, uint64_t to_s, uint64_t step_s)
{
    static char text[1 << 18];
    struct ew_archive_process process;
    struct etwatch_metric_set cpu = {{0}};
    struct ew_buf out;
    etwatch_metric_set_add(&cpu, ETWATCH_M_cpu_ns);
    ew_buf_init(&out, 0, NULL, NULL);
    CHECK(ew_archive_find(store, pid, pid * S, &process));
    CHECK_EQ_INT(ew_archive_api_history(store, state, &process, from_s * S, to_s * S, step_s * S,
                                        &cpu, &out),
                 0);
    CHECK(out.len < sizeof text);
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    ew_buf_done(&out);
    return text;
}

TEST(history_of_a_run_before_is_exact_idle_is_zero_and_gaps_are_unknown)
{
    struct ew_archive *store;
    new_folder();
    struct ew_state *state = new_state(&store);
    open_store(state, &store, 0);
    work(state, begin_s, begin_s + 60);
    free_all(state, &store);
    state = new_state(&store);
    open_store(state, &store, 0);
    work(state, begin_s + 80, begin_s + 120);
    const char *json = json_of(store, state, 7, begin_s, begin_s + 120, 10);
    CHECK_CONTAINS(json, "\"resolution\":\"10s\"");
    CHECK_CONTAINS(json, "\"cpu_ns\":[100000000,100000000,100000000,100000000,100000000,100000000,"
                         "null,null,100000000,100000000,100000000,100000000]");
    json = json_of(store, state, 8, begin_s, begin_s + 60, 10);
    CHECK_CONTAINS(json, "\"cpu_ns\":[1000000,0,1000000,0,1000000,0]");
    CHECK_EQ_UINT(state->store.replaced + state->store.dropped_records, 0);
    free_all(state, &store);
    remove_folder();
}

TEST(five_minutes_have_the_sum_of_their_seconds)
{
    struct ew_archive *store;
    new_folder();
    struct ew_state *state = new_state(&store);
    open_store(state, &store, 0);
    work(state, begin_s, begin_s + 1210);
    /* Three days later only the coarse level is left. */
    work(state, begin_s + 3 * 86400, begin_s + 3 * 86400 + 20);
    const char *json = json_of(store, state, 7, begin_s, begin_s + 1200, 300);
    CHECK_CONTAINS(json, "\"resolution\":\"5m\"");
    CHECK_CONTAINS(json, "\"cpu_ns\":[100000000,100000000,100000000,100000000]");
    free_all(state, &store);
    remove_folder();
}

TEST(the_size_is_a_bound_and_the_oldest_go)
{
    struct ew_archive *store;
    struct stat facts;
    new_folder();
    struct ew_state *state = new_state(&store);
    const uint64_t size = 1 << 20;
    open_store(state, &store, size);
    char name[16];
    for (uint64_t t = begin_s; t < begin_s + 24 * 3600; t += 5)
        for (uint32_t p = 0; p < 10; p++) {
            (void)snprintf(name, sizeof name, "p%u", p);
            tick(state, 100 + p, name, t * S + p + 1, (t * 7919 + p * 104729) % S);
        }
    CHECK_EQ_INT(stat(path_of("etwatch.db"), &facts), 0);
    CHECK((uint64_t)facts.st_size <= size);
    CHECK_EQ_UINT(state->store.dropped_records, 0);
    CHECK(ew_archive_oldest_ns(store) > (begin_s + 3600) * S);
    CHECK(ew_archive_oldest_ns(store) < (begin_s + 23 * 3600) * S);
    free_all(state, &store);
    remove_folder();
}

TEST(a_second_process_is_refused_with_the_reason)
{
    struct ew_archive *store, *second;
    const struct ew_archive_options options = {.dir = folder};
    char text[256] = "";
    new_folder();
    struct ew_state *state = new_state(&store), *other = new_state(&second);
    open_store(state, &store, 0);
    CHECK(open_with(other, &second, &options, text, sizeof text) < 0);
    CHECK_CONTAINS(text, "in use by another process");
    CHECK_EQ_UINT(other->store.replaced, 0);
    free_all(other, &second);
    free_all(state, &store);
    remove_folder();
}

/* Writes facts as fast as it can until it is killed; reports each minute of them. */
static void write_until_killed(uint64_t from_s, int report)
{
    struct ew_archive *store;
    struct ew_state *state = new_state(&store);
    const struct ew_archive_options options = {.dir = folder};
    char text[256] = "";
    if (open_with(state, &store, &options, text, sizeof text) < 0)
        _exit(3);
    for (uint64_t t = from_s;; t++) {
        tick(state, 7, "worker", t * S + S / 2, S / 10);
        tick(state, 8, "other", t * S + S / 2 + 1, S / 5);
        if (t % 60 == 0)
            (void)!write(report, "", 1);
    }
}

TEST(a_kill_at_any_moment_damages_nothing)
{
    struct ew_archive *store;
    uint64_t from_s = begin_s, written = 0;
    if (ew_archive_unavailable() != NULL)
        SKIP("this build has no SQLite");
    new_folder();
    for (int round = 0; round < 25; round++) {
        int ends[2];
        char byte;
        CHECK_EQ_INT(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0)
            write_until_killed(from_s, ends[1]);
        const struct timespec wait = {.tv_nsec = round * 7919 % 60 * 500000};
        /* Every third is killed while it opens the database. */
        for (int minutes = 0; round % 3 != 0 && minutes < 2; minutes++)
            CHECK_EQ_INT(read(ends[0], &byte, 1), 1);
        (void)nanosleep(&wait, NULL);
        (void)close(ends[0]);
        CHECK_EQ_INT(kill(pid, SIGKILL), 0);
        int status = 0;
        CHECK_EQ_INT(waitpid(pid, &status, 0), pid);
        (void)close(ends[1]);
        CHECK(WIFSIGNALED(status));
        struct ew_state *state = new_state(&store);
        open_store(state, &store, 0);
        CHECK_EQ_UINT(state->store.replaced, 0);
        /* Every record is whole: a tenth of each second, and nothing else. */
        struct ew_history history;
        struct ew_archive_process process;
        struct ew_history_point point;
        uint64_t mark = 0, newest_s = from_s;
        CHECK_EQ_INT(ew_history_init(&history, 8 << 20, 0, state->catalog.process_types), 0);
        if (ew_archive_find(store, 7, 7 * S, &process))
            CHECK_EQ_INT(
                ew_archive_read(store, process.id, 0, from_s * S, UINT64_MAX / 2, &history, &mark),
                0);
        bool first = true;
        while (ew_history_read(&history, mark, &point)) {
            uint64_t t_s = point.t_ns / S;
            newest_s = first ? t_s : newest_s;
            first = false;
            CHECK_EQ_UINT(t_s % 10, 0);
            CHECK_EQ_UINT(point.values[ETWATCH_M_cpu_ns], S);
            mark = point.before;
            written++;
        }
        ew_history_done(&history);
        from_s = newest_s + 86400 / 4; /* a gap, multiple of 10 s as before */
        free_all(state, &store);
    }
    CHECK(written >= 16 * 5);
    remove_folder();
}

static void overwrite(const char *name, off_t at, size_t len)
{
    char junk[4096];
    int fd = open(path_of(name), O_WRONLY | O_CLOEXEC);
    memset(junk, 0x5a, sizeof junk);
    CHECK(fd >= 0);
    CHECK_EQ_INT(pwrite(fd, junk, len, at), (int)len);
    (void)close(fd);
}

TEST(a_damaged_file_is_replaced_and_counted)
{
    static const struct {
        const char *remark;
        off_t at;
        size_t len;
    } rows[] = {{"the head", 0, 100}, {"a page", 4096, 4096}, {"the schema", 100, 3000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_archive *store;
        test_row(rows[i].remark);
        new_folder();
        struct ew_state *state = new_state(&store);
        open_store(state, &store, 0);
        work(state, begin_s, begin_s + 1300);
        free_all(state, &store);
        overwrite("etwatch.db", rows[i].at, rows[i].len);
        state = new_state(&store);
        open_store(state, &store, 0);
        CHECK_EQ_UINT(state->store.replaced, 1);
        CHECK_EQ_INT(access(path_of("etwatch.db.damaged"), F_OK), 0);
        work(state, begin_s + 2000, begin_s + 2020);
        CHECK(state->store.records > 0);
        CHECK_EQ_UINT(state->store.dropped_records, 0);
        free_all(state, &store);
        remove_folder();
    }
}

TEST(a_full_disk_drops_records_until_there_is_room)
{
    struct ew_archive *store;
    struct rlimit limit = {0, 0};
    new_folder();
    struct ew_state *state = new_state(&store);
    open_store(state, &store, 0);
    work(state, begin_s, begin_s + 30);
    uint64_t records = state->store.records;
    CHECK(records > 0);
    /* A file may not grow any more: write(2) fails as on a full disk. */
    CHECK_EQ_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {4096, limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ_INT(setrlimit(RLIMIT_FSIZE, &small), 0);
    work(state, begin_s + 40, begin_s + 100);
    CHECK_EQ_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQ_UINT(state->store.records, records);
    CHECK(state->store.dropped_records > 0);
    CHECK(state->store.error[0] != '\0');
    work(state, begin_s + 110, begin_s + 150);
    CHECK(state->store.records > records);
    CHECK_EQ_STR(state->store.error, "");
    CHECK_EQ_UINT(state->store.replaced, 0);
    CHECK_CONTAINS(json_of(store, state, 7, begin_s + 120, begin_s + 140, 10),
                   "\"cpu_ns\":[100000000,100000000]");
    free_all(state, &store);
    remove_folder();
}

TEST(a_folder_that_cannot_be_used_is_an_error)
{
    struct ew_archive *store;
    char text[256] = "";
    struct ew_archive_options options = {.dir = "/proc/etwatch"};
    if (ew_archive_unavailable() != NULL)
        SKIP("this build has no SQLite");
    struct ew_state *state = new_state(&store);
    CHECK(open_with(state, &store, &options, text, sizeof text) < 0);
    CHECK_CONTAINS(text, "cannot make the folder");
    options.dir = "/dev/null";
    CHECK(open_with(state, &store, &options, text, sizeof text) < 0);
    CHECK_CONTAINS(text, "not a folder");
    free_all(state, &store);
}
