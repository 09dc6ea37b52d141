/* SPDX-License-Identifier: MIT */
/*
 * A small inference server that serves itself: a realistic program to watch for a few seconds.
 *
 * A feeder makes requests at uneven times. Each passes through several stages: it is tokenized,
 * multiplied through a few layers by several compute threads, and its answer is decoded; in
 * addition a cache thread writes and reads a file, and a memory arena grows and is released. Now
 * and then a short-lived child process tokenizes a batch. So every value of a monitor changes: CPU
 * by thread, bursts and idle times, page faults, memory that grows and shrinks, reads and writes,
 * starts and exits. Portable C11 and POSIX; it leaves no file behind.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LAYER = 128, /* width of a layer */
    LAYERS_PER_REQUEST = 12,
    MAX_THREADS = 32,
    QUEUE = 64,
    ARENA_BYTES = 4 << 20, /* for each request in flight */
    ARENA_STEPS = 8,
    CACHE_BLOCK = 64 << 10,
    CACHE_BLOCKS = 32,
};

/* ------------------------------------------------------------- a bounded queue */

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t items[QUEUE];
    size_t head, count;
    bool closed;
};

static void queue_init(struct queue *q)
{
    memset(q, 0, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
}

static void queue_put(struct queue *q, uint64_t item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == QUEUE)
        pthread_cond_wait(&q->changed, &q->lock);
    q->items[(q->head + q->count++) % QUEUE] = item;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* False when the queue is closed and empty. */
static bool queue_take(struct queue *q, uint64_t *ret_item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed)
        pthread_cond_wait(&q->changed, &q->lock);
    bool taken = q->count > 0;
    if (taken) {
        *ret_item = q->items[q->head];
        q->head = (q->head + 1) % QUEUE;
        q->count--;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

static void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* ------------------------------------------------------------------- the server */

struct server {
    struct queue tokenize, compute, decode;
    uint64_t seconds, threads;
    atomic_uint_least64_t served, tokens, children;
    atomic_bool ending;
    float weights[LAYER][LAYER];
};

struct server_thread {
    pthread_t thread;
    struct server *server;
    unsigned index;
};

static void name_thread(const char *stage, unsigned index)
{
    char name[16];
    snprintf(name, sizeof name, "%s-%u", stage, index);
    pthread_setname_np(pthread_self(), name);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_us(uint64_t us)
{
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&ts, NULL);
}

/* A fixed sequence, so that two runs do the same work. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

/* Byte pairs counted and merged by hash: arithmetic without meaning. */
static uint64_t tokenize(uint64_t request, unsigned rounds)
{
    uint64_t tokens = 0, state = request;
    for (unsigned i = 0; i < rounds; i++) {
        state = scramble(state + i);
        tokens += state % 97 < 40;
    }
    return tokens;
}

static void *run_tokenizer(void *arg)
{
    struct server_thread *self = arg;
    struct server *server = self->server;
    uint64_t request;
    name_thread("tokenize", self->index);
    while (queue_take(&server->tokenize, &request)) {
        atomic_fetch_add(&server->tokens, tokenize(request, 40000));
        queue_put(&server->compute, request);
    }
    return NULL;
}

static void forward_layer(const float weights[LAYER][LAYER], float in[LAYER][LAYER],
                          float out[LAYER][LAYER])
{
    for (int i = 0; i < LAYER; i++) {
        for (int j = 0; j < LAYER; j++)
            out[i][j] = 0;
        for (int k = 0; k < LAYER; k++) {
            float factor = in[i][k];
            for (int j = 0; j < LAYER; j++)
                out[i][j] += factor * weights[k][j];
        }
        for (int j = 0; j < LAYER; j++)
            out[i][j] = out[i][j] > 0 ? out[i][j] : 0;
    }
}

/* An arena that grows in steps with the layers and is released with the request. */
static void grow_arena(char *arena, unsigned step)
{
    size_t bytes = ARENA_BYTES / ARENA_STEPS;
    memset(arena + step * bytes, (int)step, bytes);
}

static void infer(struct server *server, float (*activations)[LAYER][LAYER])
{
    char *arena =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned layer = 0; layer < LAYERS_PER_REQUEST; layer++) {
        if (arena != MAP_FAILED && layer < ARENA_STEPS)
            grow_arena(arena, layer);
        forward_layer((const float(*)[LAYER])server->weights, activations[layer % 2],
                      activations[(layer + 1) % 2]);
    }
    if (arena != MAP_FAILED)
        munmap(arena, ARENA_BYTES);
}

static void *run_compute(void *arg)
{
    struct server_thread *self = arg;
    static _Thread_local float activations[2][LAYER][LAYER];
    uint64_t request;
    name_thread("compute", self->index);
    while (queue_take(&self->server->compute, &request)) {
        for (int i = 0; i < LAYER; i++)
            activations[0][i][i] = (float)(request % 100) / 100;
        infer(self->server, activations);
        queue_put(&self->server->decode, request);
    }
    return NULL;
}

static void *run_decoder(void *arg)
{
    struct server_thread *self = arg;
    uint64_t request;
    name_thread("decode", self->index);
    while (queue_take(&self->server->decode, &request)) {
        atomic_fetch_add(&self->server->tokens, tokenize(~request, 15000));
        atomic_fetch_add(&self->server->served, 1);
    }
    return NULL;
}

/* A key-value cache on disk; the file is unlinked from the start, so nothing remains. */
static void *run_cache(void *arg)
{
    struct server_thread *self = arg;
    static char block[CACHE_BLOCK];
    name_thread("cache", self->index);
    FILE *file = tmpfile();
    while (file != NULL && !atomic_load(&self->server->ending)) {
        rewind(file);
        for (int i = 0; i < CACHE_BLOCKS; i++)
            fwrite(block, 1, sizeof block, file);
        fflush(file);
        rewind(file);
        for (int i = 0; i < CACHE_BLOCKS; i++) {
            if (fread(block, 1, sizeof block, file) != sizeof block)
                break;
        }
        sleep_us(150000);
    }
    if (file != NULL)
        fclose(file);
    return NULL;
}

/* A batch tokenized by a separate process that lives some tens of milliseconds. */
static void tokenize_in_child(struct server *server, uint64_t batch)
{
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t tokens = tokenize(batch, 8000000);
        _exit(tokens > 0 ? 0 : 1);
    }
    if (pid > 0 && waitpid(pid, NULL, 0) == pid)
        atomic_fetch_add(&server->children, 1);
}

/* Requests arrive in bursts with pauses between them, as from human users. */
static uint64_t feed(struct server *server)
{
    uint64_t end_ns = now_ns() + server->seconds * 1000000000u, request = 1;
    for (uint64_t burst = 1; now_ns() < end_ns; burst++) {
        for (uint64_t i = 0, n = 4 + scramble(burst) % 12; i < n; i++)
            queue_put(&server->tokenize, request++);
        if (burst % 6 == 3)
            tokenize_in_child(server, burst);
        sleep_us(60000 + scramble(burst) % 120000);
    }
    return request - 1;
}

/* ------------------------------------------------------------------------- main */

static void start(struct server_thread *t, struct server *server, unsigned index,
                  void *(*run)(void *))
{
    t->server = server;
    t->index = index;
    int r = pthread_create(&t->thread, NULL, run, t);
    if (r != 0) {
        fprintf(stderr, "workload: no thread: %s\n", strerror(r));
        exit(1);
    }
}

static uint64_t serve(struct server *server)
{
    static struct server_thread compute[MAX_THREADS], tokenizer, decoder, cache;
    for (unsigned i = 0; i < server->threads; i++)
        start(&compute[i], server, i, run_compute);
    start(&tokenizer, server, 0, run_tokenizer);
    start(&decoder, server, 0, run_decoder);
    start(&cache, server, 0, run_cache);
    uint64_t requests = feed(server);
    /* Stage by stage, so that every request is completed. */
    queue_close(&server->tokenize);
    pthread_join(tokenizer.thread, NULL);
    queue_close(&server->compute);
    for (unsigned i = 0; i < server->threads; i++)
        pthread_join(compute[i].thread, NULL);
    queue_close(&server->decode);
    pthread_join(decoder.thread, NULL);
    atomic_store(&server->ending, true);
    pthread_join(cache.thread, NULL);
    return requests;
}

static uint64_t number_of(const char *name, const char *text, uint64_t max)
{
    char *end = NULL;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    if (text == NULL || *text < '0' || *text > '9' || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "workload: %s takes a number from 1 to %llu\n", name,
                (unsigned long long)max);
        exit(2);
    }
    return value;
}

static void parse(int argc, char **argv, struct server *server)
{
    server->seconds = 4;
    server->threads = 3;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            server->seconds = number_of(argv[i], argv[i + 1], 86400);
        } else if (strcmp(argv[i], "--threads") == 0) {
            server->threads = number_of(argv[i], argv[i + 1], MAX_THREADS);
        } else {
            fprintf(stderr, "usage: workload [--seconds N] [--threads N]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct server server;
    parse(argc, argv, &server);
    queue_init(&server.tokenize);
    queue_init(&server.compute);
    queue_init(&server.decode);
    for (int i = 0; i < LAYER; i++) {
        for (int j = 0; j < LAYER; j++)
            server.weights[i][j] = (float)((i * 31 + j * 17) % 13 - 6) / (float)(8 * LAYER);
    }
    uint64_t requests = serve(&server);
    uint64_t served = atomic_load(&server.served);
    printf("workload: %llu of %llu requests served, %llu tokens, %llu child processes\n",
           (unsigned long long)served, (unsigned long long)requests,
           (unsigned long long)atomic_load(&server.tokens),
           (unsigned long long)atomic_load(&server.children));
    return served == requests ? 0 : 1;
}
