/* SPDX-License-Identifier: MIT */
/*
 * SQLite, loaded when a store is opened. WAL with synchronous=NORMAL: a killed process loses
 * nothing that was committed, a killed machine at most the last commits, and neither damages the
 * file. Locking is exclusive: no second process can write, and no reader can keep the WAL growing.
 *
 * Every statement goes through run(): the first error ends the batch, and what was in it is
 * counted.
 */
#include "serve/archive.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/proto.h"
#include "serve/loader.h"

enum {
    VALUES = (int)ETWATCH_METRIC_COUNT > (int)ETWATCH_SYSTEM_METRIC_COUNT
                 ? (int)ETWATCH_METRIC_COUNT
                 : (int)ETWATCH_SYSTEM_METRIC_COUNT,
    SHAPES_MAX = 1024,
    CHUNK_S = 600,
    FINE_KEEP_S = 2 * 86400,
    PATH_LEN = 4096,
    PAGE = 4096,
    RECORD_MAX = (4 + VALUES) * EW_PROTO_VARINT_MAX,
    TRIES = 64, /* of freeing room */
};

#define S EW_STATE_SECOND_NS
static const uint32_t level_s[EW_ARCHIVE_LEVELS] = {10, 300};
static const char file_name[] = "etwatch.db";

#define SQL_FUNCTIONS(X) \
    X(bind_blob)         \
    X(bind_int64)        \
    X(bind_text)         \
    X(busy_timeout)      \
    X(changes)           \
    X(close_v2)          \
    X(column_blob)       \
    X(column_bytes)      \
    X(column_int64)      \
    X(column_text)       \
    X(errmsg)            \
    X(errstr)            \
    X(exec)              \
    X(finalize)          \
    X(open_v2)           \
    X(prepare_v2)        \
    X(reset)             \
    X(step)

static struct {
#define SQL_X(name) __typeof__(&sqlite3_##name) name;
    SQL_FUNCTIONS(SQL_X)
#undef SQL_X
} sql;

/* What is prepared once. */
enum statement {
    ADD_RECENT,
    ADD_PROCESS,
    END_PROCESS,
    ADD_SHAPE,
    LIST_RECENT,
    ADD_CHUNK,
    STATEMENTS,
};

static const char *const statements[STATEMENTS] = {
    [ADD_RECENT] = "INSERT INTO recent(process, level, t, data) VALUES(?1, ?2, ?3, ?4)",
    [ADD_PROCESS] =
        "INSERT INTO process(pid, start_ns, ppid, name, user, first_t, last_t) VALUES(?1, ?2, ?3, "
        "?4, ?5, ?6, ?6) ON CONFLICT(pid, start_ns) DO UPDATE SET name = excluded.name, last_t = "
        "excluded.last_t RETURNING id",
    [END_PROCESS] = "UPDATE process SET last_t = ?2, exit_ns = ?3, name = ?4 WHERE id = ?1",
    [ADD_SHAPE] = "INSERT INTO shape(names) VALUES(?1) ON CONFLICT(names) DO UPDATE SET names = "
                  "excluded.names RETURNING id",
    [LIST_RECENT] = "SELECT process, level, t, data FROM recent ORDER BY process, level, id",
    [ADD_CHUNK] = "INSERT INTO chunk(process, level, t, data) VALUES(?1, ?2, ?3, ?4) ON "
                  "CONFLICT(process, level, t) DO UPDATE SET data = data || excluded.data",
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS shape(id INTEGER PRIMARY KEY, names TEXT NOT NULL UNIQUE);"
    "CREATE TABLE IF NOT EXISTS process(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, start_ns "
    "INTEGER NOT NULL, ppid INTEGER, name TEXT, user TEXT, first_t INTEGER NOT NULL, last_t "
    "INTEGER "
    "NOT NULL, exit_ns INTEGER NOT NULL DEFAULT 0, UNIQUE(pid, start_ns));"
    "CREATE INDEX IF NOT EXISTS process_last ON process(last_t);"
    "CREATE TABLE IF NOT EXISTS recent(id INTEGER PRIMARY KEY, process INTEGER NOT NULL, level "
    "INTEGER NOT NULL, t INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS chunk(process INTEGER NOT NULL, level INTEGER NOT NULL, t INTEGER "
    "NOT NULL, data BLOB NOT NULL, PRIMARY KEY(process, level, t)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS chunk_t ON chunk(level, t);"
    "PRAGMA user_version = 1;";

/* What a track did in the open stretch of a level. */
struct window {
    bool any;
    struct etwatch_metric_set has;
    uint64_t values[VALUES];
};

struct track {
    uint32_t pid;
    uint64_t start_ns; /* 0 and pid 0: free */
    int64_t id;        /* 0: not in the database yet */
    struct window windows[EW_ARCHIVE_LEVELS];
};

struct shape {
    struct etwatch_metric_set has;
    bool machine;
    int64_t id;
};

struct ew_archive {
    struct ew_archive_options options;
    struct ew_state *state;
    struct ew_state_store *figures;
    char path[PATH_LEN];
    sqlite3 *db; /* NULL: it could not be opened again */
    sqlite3_stmt *prepared[STATEMENTS];
    struct track machine, *tracks; /* by slot of the state */
    uint32_t track_size;
    struct shape shapes[SHAPES_MAX];
    uint32_t shape_count;
    uint64_t open_s[EW_ARCHIVE_LEVELS]; /* the end of the open stretch; 0: none */
    uint64_t system_t_ns;               /* of the latest reading that was taken over */
    uint64_t compact_s;                 /* when the recent records are moved */
    uint64_t oldest_s;                  /* of the oldest record; 0: none */
    uint64_t batch_records;             /* in the open transaction */
    bool in_batch, failing;
    int error; /* of the batch; 0: none */
};

const char *ew_archive_unavailable(void)
{
    return NULL;
}

uint32_t ew_archive_level_s(uint32_t level)
{
    return level_s[level];
}

uint64_t ew_archive_oldest_ns(const struct ew_archive *store)
{
    return store->oldest_s * S;
}

uint32_t ew_archive_level_at(const struct ew_archive *store, uint64_t from_ns)
{
    return from_ns + FINE_KEEP_S * S < store->state->now_ns ? 1 : 0;
}

/* ---------------------------------------------------------------------------- SQLite */

static bool load(void)
{
    static const char *const names[] = {"libsqlite3.so.0", "libsqlite3.so"};
    void *library = ew_loader_open(names, sizeof names / sizeof names[0]);
    if (library == NULL)
        return false;
    bool found = true;
#define SQL_X(name) found = ew_loader_find(library, "sqlite3_" #name, &sql.name) && found;
    SQL_FUNCTIONS(SQL_X)
#undef SQL_X
    return found;
}

static void say(struct ew_archive *store, const char *what, const char *why)
{
    char line[PATH_LEN + 256];
    if (store->options.say == NULL)
        return;
    (void)snprintf(line, sizeof line, "store: %s %s%s%s", store->path, what,
                   why[0] != '\0' ? ": " : "", why);
    store->options.say(line);
}

/* Keeps the first error of a batch. */
static bool good(struct ew_archive *store, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE && store->error == 0) {
        store->error = rc & 0xff;
        (void)snprintf(store->figures->error, sizeof store->figures->error, "%s",
                       store->db != NULL ? sql.errmsg(store->db) : sql.errstr(rc));
    }
    return store->error == 0;
}

static bool execute(struct ew_archive *store, const char *text)
{
    return store->error == 0 && good(store, sql.exec(store->db, text, NULL, NULL, NULL));
}

/* Runs a prepared statement without a result, or with one number. */
static bool run(struct ew_archive *store, enum statement which, int64_t *ret_number)
{
    sqlite3_stmt *statement = store->prepared[which];
    int rc = sql.step(statement);
    if (rc == SQLITE_ROW && ret_number != NULL) {
        *ret_number = sql.column_int64(statement, 0);
        rc = sql.step(statement);
    }
    bool done = good(store, rc);
    (void)sql.reset(statement);
    return done;
}

static int64_t number_of(struct ew_archive *store, const char *query)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = 0;
    if (sql.prepare_v2(store->db, query, -1, &statement, NULL) == SQLITE_OK &&
        sql.step(statement) == SQLITE_ROW)
        number = sql.column_int64(statement, 0);
    (void)sql.finalize(statement);
    return number;
}

/* ------------------------------------------------------------------------------ open */

static void close_database(struct ew_archive *store)
{
    for (int i = 0; i < STATEMENTS; i++) {
        (void)sql.finalize(store->prepared[i]);
        store->prepared[i] = NULL;
    }
    (void)sql.close_v2(store->db);
    store->db = NULL;
    store->in_batch = false;
    store->shape_count = 0;
    store->machine.id = 0;
    for (uint32_t i = 0; i < store->track_size; i++)
        store->tracks[i].id = 0;
}

static bool configure(struct ew_archive *store)
{
    char text[256];
    uint64_t pages = store->options.size_bytes / PAGE;
    (void)snprintf(text, sizeof text,
                   "PRAGMA max_page_count = %llu; PRAGMA journal_size_limit = 4194304; PRAGMA "
                   "cache_size = -4096; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;",
                   (unsigned long long)pages);
    /* Page size and vacuum count only in a new file. */
    return execute(store, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA "
                          "locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;") &&
           execute(store, text) && execute(store, "BEGIN IMMEDIATE") && execute(store, schema) &&
           execute(store, "COMMIT");
}

/* Damage that a query would meet later is found now. */
static bool is_sound(struct ew_archive *store)
{
    sqlite3_stmt *statement = NULL;
    bool sound = false;
    int rc = sql.prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sql.step(statement)) == SQLITE_ROW)
        sound = strcmp((const char *)sql.column_text(statement, 0), "ok") == 0;
    (void)sql.finalize(statement);
    if (!sound)
        (void)good(store, rc == SQLITE_ROW ? SQLITE_CORRUPT : rc);
    return sound;
}

static void find_oldest(struct ew_archive *store)
{
    int64_t first = number_of(store, "SELECT min(t) FROM chunk WHERE level = 0"),
            second = number_of(store, "SELECT min(t) FROM chunk WHERE level = 1"),
            third = number_of(store, "SELECT min(t) FROM recent");
    int64_t all[] = {first, second, third}, oldest = 0;
    for (int i = 0; i < 3; i++)
        if (all[i] > 0 && (oldest == 0 || all[i] < oldest))
            oldest = all[i];
    store->oldest_s = (uint64_t)oldest;
}

/* False: store->error says why. */
static bool open_database(struct ew_archive *store)
{
    store->error = 0;
    int rc = sql.open_v2(store->path, &store->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_NOFOLLOW,
                         NULL);
    bool opened = good(store, rc) && configure(store) && is_sound(store);
    for (int i = 0; i < STATEMENTS && opened; i++)
        opened =
            good(store, sql.prepare_v2(store->db, statements[i], -1, &store->prepared[i], NULL));
    if (opened)
        find_oldest(store);
    else
        close_database(store);
    return opened;
}

static bool is_damage(int error)
{
    return error == SQLITE_CORRUPT || error == SQLITE_NOTADB;
}

/* The damaged file stays for an inspection; an older one is overwritten. */
static bool keep_damaged(struct ew_archive *store)
{
    char to[PATH_LEN + 16];
    static const char *const ends[] = {"", "-wal", "-shm"};
    bool moved = true;
    for (int i = 0; i < 3; i++) {
        char from[PATH_LEN + 8];
        (void)snprintf(from, sizeof from, "%s%s", store->path, ends[i]);
        (void)snprintf(to, sizeof to, "%s.damaged%s", store->path, ends[i]);
        if (rename(from, to) != 0)
            moved = moved && errno == ENOENT && i > 0;
    }
    store->figures->replaced += moved;
    return moved;
}

static bool open_or_replace(struct ew_archive *store)
{
    if (open_database(store))
        return true;
    if (!is_damage(store->error))
        return false;
    say(store, "is damaged; it is moved to *.damaged, and a new one begins", store->figures->error);
    return keep_damaged(store) && open_database(store);
}

int ew_archive_prepare(const struct ew_archive_options *options, uint32_t user, char *reterr_text,
                       size_t text_size)
{
    struct stat facts;
    if (!load()) {
        (void)snprintf(reterr_text, text_size,
                       "--store: the library SQLite is missing (Debian: libsqlite3-0)");
        return ETWATCH_ENOTSUP;
    }
    bool made = mkdir(options->dir, 0700) == 0;
    if (made && user != 0 && chown(options->dir, user, user) != 0)
        made = false;
    if (!made && errno != EEXIST) {
        (void)snprintf(reterr_text, text_size, "--store %s: cannot make the folder: %s",
                       options->dir, strerror(errno));
        return ETWATCH_EOS;
    }
    if (stat(options->dir, &facts) != 0 || !S_ISDIR(facts.st_mode) ||
        strlen(options->dir) + 64 > PATH_LEN) {
        (void)snprintf(reterr_text, text_size, "--store %s: not a folder", options->dir);
        return ETWATCH_EINVAL;
    }
    return 0;
}

int ew_archive_open(const struct ew_archive_options *options, struct ew_state *state,
                    struct ew_archive **ret_store, char *reterr_text, size_t text_size)
{
    struct ew_archive *store = ew_calloc(1, sizeof *store);
    if (store == NULL) {
        (void)snprintf(reterr_text, text_size, "out of memory");
        return ETWATCH_ENOMEM;
    }
    store->options = *options;
    store->state = state;
    store->figures = &state->store;
    if (store->options.keep_ns == 0)
        store->options.keep_ns = EW_ARCHIVE_KEEP_NS;
    if (store->options.size_bytes == 0)
        store->options.size_bytes = EW_ARCHIVE_SIZE_BYTES;
    (void)snprintf(store->path, sizeof store->path, "%s/%s", options->dir, file_name);
    (void)umask(077);
    if (open_or_replace(store)) {
        state->store.enabled = true;
        state->store.error[0] = '\0';
        *ret_store = store;
        return 0;
    }
    if (store->error == SQLITE_BUSY)
        (void)snprintf(reterr_text, text_size,
                       "--store: %s is in use by another process: end it, or use another folder",
                       store->path);
    else
        (void)snprintf(reterr_text, text_size,
                       "--store: cannot use %s: %s; the folder must be writable for user %u",
                       store->path, state->store.error, (unsigned)geteuid());
    ew_free(store);
    return ETWATCH_EOS;
}

/* ---------------------------------------------------------------------------- batches */

static void begin_batch(struct ew_archive *store)
{
    if (store->in_batch || store->db == NULL)
        return;
    store->error = 0;
    store->batch_records = 0;
    store->in_batch = execute(store, "BEGIN");
}

/* Ids and shapes that the batch added are gone with it. */
static void fail_batch(struct ew_archive *store)
{
    store->figures->dropped_records += store->batch_records;
    if (!store->failing)
        say(store, "cannot be written; records are dropped until it can", store->figures->error);
    store->failing = true;
    if (is_damage(store->error)) {
        close_database(store);
        (void)open_or_replace(store);
        return;
    }
    (void)sql.exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store->in_batch = false;
    store->shape_count = 0;
    for (uint32_t i = 0; i < store->track_size; i++)
        store->tracks[i].id = 0;
}

static void end_batch(struct ew_archive *store)
{
    if (store->in_batch && execute(store, "COMMIT")) {
        store->in_batch = false;
        store->figures->records += store->batch_records;
        store->figures->error[0] = '\0';
        if (store->failing)
            say(store, "is written again", "");
        store->failing = false;
    } else if (store->db != NULL) {
        fail_batch(store);
    } else {
        (void)open_or_replace(store); /* the next batch may succeed */
    }
}

/* ---------------------------------------------------------------------------- records */

static const struct etwatch_metric_info *infos_of(const struct ew_archive *store, bool machine)
{
    return machine ? store->state->catalog.system : store->state->catalog.process;
}

static const uint8_t *types_of(const struct ew_archive *store, bool machine)
{
    return machine ? store->state->catalog.system_types : store->state->catalog.process_types;
}

/* Names, not numbers: another version may number metrics otherwise. */
static int64_t shape_of(struct ew_archive *store, const struct etwatch_metric_set *has,
                        bool machine)
{
    char names[4096] = "";
    size_t len = 0;
    int64_t id = 0;
    for (uint32_t i = 0; i < store->shape_count; i++)
        if (store->shapes[i].machine == machine &&
            etwatch_metric_set_equal(&store->shapes[i].has, has))
            return store->shapes[i].id;
    if (store->shape_count == SHAPES_MAX)
        return 0;
    for (uint32_t m = etwatch_metric_set_next(has, 0); m != ETWATCH_METRIC_SET_END;
         m = etwatch_metric_set_next(has, m + 1))
        len += (size_t)snprintf(names + len, sizeof names - len, "%s,",
                                infos_of(store, machine)[m].name);
    (void)sql.bind_text(store->prepared[ADD_SHAPE], 1, names, (int)len, SQLITE_STATIC);
    if (!run(store, ADD_SHAPE, &id))
        return 0;
    store->shapes[store->shape_count++] = (struct shape){*has, machine, id};
    return id;
}

static void add_track(struct ew_archive *store, struct track *track,
                      const struct ew_state_process *process, uint64_t t_s)
{
    sqlite3_stmt *statement = store->prepared[ADD_PROCESS];
    const char *name = process->name != NULL ? process->name : "",
               *user = process->user != NULL ? process->user : "";
    (void)sql.bind_int64(statement, 1, process->pid);
    (void)sql.bind_int64(statement, 2, (int64_t)process->start_ns);
    (void)sql.bind_int64(statement, 3, process->ppid);
    (void)sql.bind_text(statement, 4, name, -1, SQLITE_STATIC);
    (void)sql.bind_text(statement, 5, user, -1, SQLITE_STATIC);
    (void)sql.bind_int64(statement, 6, (int64_t)t_s);
    (void)run(store, ADD_PROCESS, &track->id);
}

/* The values are in the order of the metrics; the record begins with the length of what follows. */
static void write_window(struct ew_archive *store, struct track *track, uint32_t level,
                         uint64_t t_s)
{
    struct window *window = &track->windows[level];
    bool machine = track == &store->machine;
    char record[RECORD_MAX], *at = record;
    const uint8_t *types = types_of(store, machine);
    if (!window->any)
        return;
    begin_batch(store);
    store->batch_records++;
    int64_t shape = store->error == 0 ? shape_of(store, &window->has, machine) : 0;
    if (shape != 0) {
        at = ew_proto_raw(at, t_s);
        at = ew_proto_raw(at, (uint64_t)shape);
        for (uint32_t m = etwatch_metric_set_next(&window->has, 0); m != ETWATCH_METRIC_SET_END;
             m = etwatch_metric_set_next(&window->has, m + 1))
            at = ew_proto_raw(at, ew_history_pack(types[m], window->values[m]));
        sqlite3_stmt *statement = store->prepared[ADD_RECENT];
        (void)sql.bind_int64(statement, 1, track->id);
        (void)sql.bind_int64(statement, 2, level);
        (void)sql.bind_int64(statement, 3, (int64_t)t_s);
        (void)sql.bind_blob(statement, 4, record, (int)(at - record), SQLITE_STATIC);
        (void)run(store, ADD_RECENT, NULL);
    }
    *window = (struct window){0};
}

static void write_track(struct ew_archive *store, struct track *track, uint32_t level, uint64_t t_s,
                        const struct ew_state_process *process)
{
    if (!track->windows[level].any || store->db == NULL)
        return;
    begin_batch(store);
    if (track->id == 0 && process != NULL && store->error == 0)
        add_track(store, track, process, t_s);
    write_window(store, track, level, t_s);
    if (process == NULL || (level == 0 && process->exit_ns == 0) || store->error != 0)
        return;
    sqlite3_stmt *statement = store->prepared[END_PROCESS];
    (void)sql.bind_int64(statement, 1, track->id);
    (void)sql.bind_int64(statement, 2, (int64_t)t_s);
    (void)sql.bind_int64(statement, 3, (int64_t)process->exit_ns);
    (void)sql.bind_text(statement, 4, process->name != NULL ? process->name : "", -1,
                        SQLITE_STATIC);
    (void)run(store, END_PROCESS, NULL);
}

static void add_values(struct track *track, const struct etwatch_metric_set *has,
                       const struct etwatch_metric_set *counters, const uint8_t *types,
                       const uint64_t *deltas, const uint64_t *gauges)
{
    for (uint32_t level = 0; level < EW_ARCHIVE_LEVELS; level++) {
        struct window *window = &track->windows[level];
        for (uint32_t m = etwatch_metric_set_next(has, 0); m < VALUES;
             m = etwatch_metric_set_next(has, m + 1)) {
            bool counter = etwatch_metric_set_has(counters, m);
            window->values[m] =
                counter ? ew_catalog_sum(types[m], window->values[m], deltas[m]) : gauges[m];
        }
        etwatch_metric_set_union(&window->has, has);
        window->any = true;
    }
}

static bool grow_tracks(struct ew_archive *store)
{
    uint32_t size = store->state->process_size;
    if (store->track_size >= size)
        return true;
    struct track *grown = ew_realloc_array(store->tracks, size, sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + store->track_size, 0, (size - store->track_size) * sizeof *grown);
    store->tracks = grown;
    store->track_size = size;
    return true;
}

static void take_process(struct ew_archive *store, uint32_t slot, uint64_t t_s)
{
    const struct ew_state *state = store->state;
    const struct ew_state_process *process = &state->processes[slot];
    struct track *track = &store->tracks[slot];
    struct etwatch_metric_set has = process->last_has;
    if (process->seen_ns == 0)
        return;
    if (track->pid != process->pid || track->start_ns != process->start_ns) {
        /* The slot has a new process; the old one is in the database unless it was short. */
        for (uint32_t level = 0; level < EW_ARCHIVE_LEVELS && track->id != 0; level++)
            write_track(store, track, level, store->open_s[level] != 0 ? store->open_s[level] : t_s,
                        NULL);
        *track = (struct track){.pid = process->pid, .start_ns = process->start_ns};
    }
    etwatch_metric_set_remove(&has, ETWATCH_M_cpu_percent); /* from cpu_ns */
    add_values(track, &has, &state->catalog.process_counters, state->catalog.process_types,
               process->last, process->values);
}

static void take_machine(struct ew_archive *store)
{
    const struct ew_state *state = store->state;
    const struct etwatch_system *system = &state->system.system;
    struct etwatch_metric_set has = system->has;
    uint64_t values[VALUES] = {0};
    /* Coverage: the machine has a record even before its first reading. */
    store->machine.windows[0].any = store->machine.windows[1].any = true;
    if (system->t_ns <= store->system_t_ns)
        return;
    store->system_t_ns = system->t_ns;
    for (uint32_t m = 0; m < ETWATCH_SYSTEM_METRIC_COUNT; m++)
        values[m] = etwatch_metric_set_has(&has, m) ? ew_catalog_system_raw(system, m) : 0;
    add_values(&store->machine, &has, &state->catalog.system_counters, state->catalog.system_types,
               values, values);
}

/* ------------------------------------------------------------------ moving and forgetting */

static bool put_chunk(struct ew_archive *store, int64_t process, int64_t level, int64_t t,
                      const struct ew_buf *data)
{
    sqlite3_stmt *statement = store->prepared[ADD_CHUNK];
    if (data->len == 0)
        return true;
    (void)sql.bind_int64(statement, 1, process);
    (void)sql.bind_int64(statement, 2, level);
    (void)sql.bind_int64(statement, 3, t);
    (void)sql.bind_blob(statement, 4, data->data, (int)data->len, SQLITE_STATIC);
    return run(store, ADD_CHUNK, NULL);
}

/* The recent records become one row per process and level. */
static void compact(struct ew_archive *store)
{
    sqlite3_stmt *list = store->prepared[LIST_RECENT];
    int64_t process = -1, level = -1, t = 0;
    struct ew_buf data;
    ew_buf_init(&data, 16 << 20, NULL, NULL);
    int rc = sql.step(list);
    for (; rc == SQLITE_ROW && store->error == 0; rc = sql.step(list)) {
        int64_t next = sql.column_int64(list, 0), next_level = sql.column_int64(list, 1);
        if (next != process || next_level != level) {
            (void)put_chunk(store, process, level, t, &data);
            data.len = 0;
            process = next;
            level = next_level;
            t = sql.column_int64(list, 2);
        }
        size_t len = (size_t)sql.column_bytes(list, 3);
        char head[EW_PROTO_VARINT_MAX];
        ew_buf_bytes(&data, head, (size_t)(ew_proto_raw(head, len) - head));
        ew_buf_bytes(&data, sql.column_blob(list, 3), len);
    }
    (void)good(store, data.error != 0 ? SQLITE_NOMEM : rc);
    (void)put_chunk(store, process, level, t, &data);
    (void)sql.reset(list);
    (void)execute(store, "DELETE FROM recent");
    ew_buf_done(&data);
}

static void forget_before(struct ew_archive *store, uint64_t fine_s, uint64_t coarse_s)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "DELETE FROM chunk WHERE level = 0 AND t < %llu; DELETE FROM chunk WHERE level "
                   "= 1 AND t < %llu; DELETE FROM process WHERE last_t < %llu; PRAGMA "
                   "incremental_vacuum(256);",
                   (unsigned long long)fine_s, (unsigned long long)coarse_s,
                   (unsigned long long)coarse_s);
    (void)execute(store, text);
}

static void forget(struct ew_archive *store, uint64_t now_s)
{
    uint64_t keep_s = store->options.keep_ns / S;
    uint64_t fine_keep_s = keep_s < FINE_KEEP_S ? keep_s : FINE_KEEP_S;
    forget_before(store, now_s > fine_keep_s ? now_s - fine_keep_s : 0,
                  now_s > keep_s ? now_s - keep_s : 0);
    /* Room for the next hour: free pages are used again, so only full ones count. */
    int64_t most = (int64_t)(store->options.size_bytes / PAGE / 10 * 9);
    for (int i = 0; i < TRIES && store->error == 0; i++) {
        int64_t used = number_of(store, "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM "
                                        "pragma_freelist_count)");
        if (used <= most)
            return;
        find_oldest(store);
        if (store->oldest_s == 0 || store->oldest_s >= now_s)
            return;
        uint64_t limit_s = store->oldest_s + (now_s - store->oldest_s) / 16 + CHUNK_S;
        forget_before(store, limit_s, limit_s);
    }
}

static void maintain(struct ew_archive *store, uint64_t t_s)
{
    begin_batch(store);
    if (!store->in_batch)
        return;
    compact(store);
    if (store->error == 0)
        forget(store, t_s);
    find_oldest(store);
    store->figures->bytes = (uint64_t)number_of(store, "SELECT * FROM pragma_page_count") * PAGE;
}

static void write_level(struct ew_archive *store, uint32_t level, uint64_t t_s)
{
    write_track(store, &store->machine, level, t_s, NULL);
    for (uint32_t i = 0; i < store->track_size; i++) {
        const struct ew_state_process *process = ew_state_at(store->state, i);
        bool same = process != NULL && process->pid == store->tracks[i].pid &&
                    process->start_ns == store->tracks[i].start_ns;
        if (same || store->tracks[i].id != 0)
            write_track(store, &store->tracks[i], level, t_s, same ? process : NULL);
        else
            store->tracks[i].windows[level] = (struct window){0};
    }
    store->open_s[level] = 0;
}

void ew_archive_second(struct ew_archive *store, uint64_t t_ns)
{
    const struct ew_state *state = store->state;
    uint64_t t_s = t_ns / S;
    if (store->compact_s == 0)
        store->compact_s = t_s; /* what the run before left */
    /* Seconds without a fact are not closed: the end of a stretch may be among them. */
    for (uint32_t level = 0; level < EW_ARCHIVE_LEVELS; level++)
        if (store->open_s[level] != 0 && t_s > store->open_s[level])
            write_level(store, level, store->open_s[level]);
    take_machine(store);
    for (uint32_t n = 0; grow_tracks(store) && n < state->active_count; n++)
        take_process(store, state->active[n], t_s);
    for (uint32_t level = 0; level < EW_ARCHIVE_LEVELS; level++) {
        store->open_s[level] = (t_s + level_s[level] - 1) / level_s[level] * level_s[level];
        if (store->open_s[level] == t_s)
            write_level(store, level, t_s);
    }
    if (t_s >= store->compact_s) {
        store->compact_s = (t_s / CHUNK_S + 1) * CHUNK_S;
        maintain(store, t_s);
    }
    if (store->in_batch || store->db == NULL || store->error != 0)
        end_batch(store);
    if (store->oldest_s == 0 && store->figures->records > 0)
        store->oldest_s = t_s;
}

void ew_archive_close(struct ew_archive *store)
{
    if (store == NULL)
        return;
    for (uint32_t level = 0; level < EW_ARCHIVE_LEVELS && store->db != NULL; level++)
        if (store->open_s[level] != 0)
            write_level(store, level, store->open_s[level]);
    if (store->in_batch)
        end_batch(store);
    if (store->db != NULL)
        (void)sql.exec(store->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    close_database(store);
    ew_free(store->tracks);
    ew_free(store);
}

/* ---------------------------------------------------------------------------- queries */

/* The metrics of a record by the names of its shape. */
struct layout {
    int64_t id;
    uint32_t count;
    uint32_t metrics[VALUES];
};

static bool read_layout(struct ew_archive *store, int64_t id, bool machine,
                        struct layout *ret_layout)
{
    sqlite3_stmt *statement = NULL;
    *ret_layout = (struct layout){.id = id};
    bool found = sql.prepare_v2(store->db, "SELECT names FROM shape WHERE id = ?1", -1, &statement,
                                NULL) == SQLITE_OK &&
                 sql.bind_int64(statement, 1, id) == SQLITE_OK && sql.step(statement) == SQLITE_ROW;
    const char *at = found ? (const char *)sql.column_text(statement, 0) : NULL;
    while (at != NULL && *at != '\0' && ret_layout->count < VALUES) {
        size_t len = strcspn(at, ",");
        uint32_t metric = machine ? ew_catalog_find_system(&store->state->catalog, at, len)
                                  : ew_catalog_find(&store->state->catalog, at, len);
        ret_layout->metrics[ret_layout->count++] = metric;
        at += len + (at[len] == ',');
    }
    (void)sql.finalize(statement);
    return found;
}

struct reading {
    struct ew_archive *store;
    bool machine;
    uint32_t level;
    uint64_t from_s, to_s;
    struct layout layout;
    struct ew_history *into;
    uint64_t mark;
};

static void take_record(struct reading *reading, struct ew_bytes *body)
{
    uint64_t values[EW_HISTORY_VALUES];
    struct etwatch_metric_set has = {{0}};
    const uint8_t *types = types_of(reading->store, reading->machine);
    uint32_t most =
        reading->machine ? (uint32_t)ETWATCH_SYSTEM_METRIC_COUNT : (uint32_t)ETWATCH_METRIC_COUNT;
    uint64_t t_s = ew_proto_read_varint(body);
    int64_t shape = (int64_t)ew_proto_read_varint(body);
    if (!ew_bytes_ok(body) || t_s <= reading->from_s || t_s > reading->to_s)
        return;
    if (shape != reading->layout.id &&
        !read_layout(reading->store, shape, reading->machine, &reading->layout))
        return;
    for (uint32_t i = 0; i < reading->layout.count; i++) {
        uint32_t m = reading->layout.metrics[i];
        uint64_t packed = ew_proto_read_varint(body);
        if (m >= most)
            continue;
        values[m] = ew_history_unpack(types[m], packed);
        etwatch_metric_set_add(&has, m);
    }
    if (ew_bytes_ok(body))
        (void)ew_history_append(reading->into, &reading->mark, t_s * S, level_s[reading->level] * S,
                                true, &has, values);
}

static void take_row(struct reading *reading, sqlite3_stmt *row, bool whole)
{
    struct ew_bytes data, body;
    ew_bytes_init(&data, sql.column_blob(row, 0), (size_t)sql.column_bytes(row, 0));
    if (whole) {
        take_record(reading, &data);
        return;
    }
    while (ew_bytes_left(&data) > 0) {
        uint64_t len = ew_proto_read_varint(&data);
        ew_bytes_sub(&data, (size_t)len, &body);
        if (!ew_bytes_ok(&data))
            return;
        take_record(reading, &body);
    }
}

static int read_rows(struct reading *reading, const char *query, int64_t id, bool whole)
{
    struct ew_archive *store = reading->store;
    sqlite3_stmt *statement = NULL;
    uint64_t chunk_s = CHUNK_S + level_s[reading->level];
    int rc = sql.prepare_v2(store->db, query, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        uint64_t begin_s = reading->from_s > chunk_s ? reading->from_s - chunk_s : 0;
        (void)sql.bind_int64(statement, 1, id);
        (void)sql.bind_int64(statement, 2, reading->level);
        (void)sql.bind_int64(statement, 3, (int64_t)begin_s);
        (void)sql.bind_int64(statement, 4, (int64_t)reading->to_s);
        while ((rc = sql.step(statement)) == SQLITE_ROW)
            take_row(reading, statement, whole);
    }
    (void)sql.finalize(statement);
    if (rc == SQLITE_DONE)
        return 0;
    store->figures->read_errors++;
    return ETWATCH_EOS;
}

int ew_archive_read(struct ew_archive *store, int64_t id, uint32_t level, uint64_t from_ns,
                    uint64_t to_ns, struct ew_history *into, uint64_t *ret_mark)
{
    struct reading reading = {.store = store,
                              .machine = id == 0,
                              .level = level,
                              .from_s = from_ns / S,
                              .to_s = to_ns / S,
                              .into = into};
    if (store->db == NULL)
        return ETWATCH_EOS;
    int rc = read_rows(&reading,
                       "SELECT data FROM chunk WHERE process = ?1 AND level = ?2 AND t BETWEEN ?3 "
                       "AND ?4 ORDER BY t",
                       id, false);
    if (rc == 0)
        rc = read_rows(&reading,
                       "SELECT data FROM recent WHERE process = ?1 AND level = ?2 AND t BETWEEN ?3 "
                       "AND ?4 ORDER BY id",
                       id, true);
    *ret_mark = reading.mark;
    return rc;
}

static void copy_text(char *to, size_t size, const unsigned char *text)
{
    (void)snprintf(to, size, "%s", text != NULL ? (const char *)text : "");
}

static void read_process(sqlite3_stmt *row, struct ew_archive_process *ret_process)
{
    *ret_process = (struct ew_archive_process){
        .id = sql.column_int64(row, 0),
        .pid = (uint32_t)sql.column_int64(row, 1),
        .start_ns = (uint64_t)sql.column_int64(row, 2),
        .ppid = (uint32_t)sql.column_int64(row, 3),
        .first_ns = (uint64_t)sql.column_int64(row, 4) * S,
        .last_ns = (uint64_t)sql.column_int64(row, 5) * S,
        .exit_ns = (uint64_t)sql.column_int64(row, 6),
    };
    copy_text(ret_process->name, sizeof ret_process->name, sql.column_text(row, 7));
    copy_text(ret_process->user, sizeof ret_process->user, sql.column_text(row, 8));
}

#define PROCESS_COLUMNS "id, pid, start_ns, ppid, first_t, last_t, exit_ns, name, user"

bool ew_archive_find(struct ew_archive *store, uint32_t pid, uint64_t start_ns,
                     struct ew_archive_process *ret_process)
{
    sqlite3_stmt *statement = NULL;
    bool found =
        store->db != NULL &&
        sql.prepare_v2(store->db,
                       "SELECT " PROCESS_COLUMNS " FROM process WHERE pid = ?1 AND start_ns = ?2",
                       -1, &statement, NULL) == SQLITE_OK &&
        sql.bind_int64(statement, 1, pid) == SQLITE_OK &&
        sql.bind_int64(statement, 2, (int64_t)start_ns) == SQLITE_OK &&
        sql.step(statement) == SQLITE_ROW;
    if (found)
        read_process(statement, ret_process);
    (void)sql.finalize(statement);
    return found;
}

int ew_archive_list(struct ew_archive *store, uint64_t from_ns, uint64_t to_ns, uint32_t max,
                    void (*visit)(void *ctx, const struct ew_archive_process *process), void *ctx)
{
    sqlite3_stmt *statement = NULL;
    struct ew_archive_process process;
    if (store->db == NULL)
        return ETWATCH_EOS;
    int rc = sql.prepare_v2(store->db,
                            "SELECT " PROCESS_COLUMNS
                            " FROM process WHERE last_t >= ?1 AND first_t <= ?2 ORDER BY last_t "
                            "DESC LIMIT ?3",
                            -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        (void)sql.bind_int64(statement, 1, (int64_t)(from_ns / S));
        (void)sql.bind_int64(statement, 2, (int64_t)(to_ns / S));
        (void)sql.bind_int64(statement, 3, max);
        while ((rc = sql.step(statement)) == SQLITE_ROW) {
            read_process(statement, &process);
            visit(ctx, &process);
        }
    }
    (void)sql.finalize(statement);
    store->figures->read_errors += rc != SQLITE_DONE;
    return rc == SQLITE_DONE ? 0 : ETWATCH_EOS;
}
