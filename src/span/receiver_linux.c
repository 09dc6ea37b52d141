/* SPDX-License-Identifier: MIT */
/*
 * Owns the reading side: the rings that processes have sent to a socket of base/ring_socket.h,
 * which decides which are accepted. ring_reader.c reads their bytes.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <etwatch/span.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/ring_socket.h"
#include "span/profile_reader.h"
#include "span/ring.h"
#include "span/ring_reader.h"

enum { RINGS_MAX = 4096, PROFILES_MAX = 256, SESSION_MAX = 128 };

/* Hostile files are read no further, all of them together. */
static const off_t profile_bytes_max = (off_t)4 << 30;

/* The profile of a session. The file has no name any more: it is gone when both ends have closed
 * it. */
struct profile {
    int fd;
    uint32_t pid;
    uint64_t start_ns; /* CLOCK_BOOTTIME */
    char session[SESSION_MAX];
};

struct etwatch_receiver {
    struct ew_ring_socket socket;
    struct ew_spans_ring *rings;
    uint32_t count, size;
    uint64_t lost;
    struct profile *profiles;
    uint32_t profile_count, profile_size;
    uint64_t lost_operators;
};

int etwatch_receiver_new(struct etwatch_receiver **ret_receiver, struct etwatch_error_info *reterr)
{
    struct ew_error err = {0};
    struct etwatch_receiver *receiver =
        ret_receiver == NULL ? NULL : ew_calloc(1, sizeof *receiver);
    int rc;
    if (ret_receiver == NULL)
        return ETWATCH_EINVAL;
    if (receiver == NULL) {
        ew_error_out(reterr, &err, ETWATCH_ENOMEM);
        return ETWATCH_ENOMEM;
    }
    rc = ew_ring_socket_open(&receiver->socket, "spans", &err);
    if (rc == 0) {
        *ret_receiver = receiver;
        return 0;
    }
    ew_error_out(reterr, &err, rc);
    etwatch_receiver_free(receiver);
    return rc;
}

void etwatch_receiver_free(struct etwatch_receiver *receiver)
{
    if (receiver == NULL)
        return;
    for (uint32_t i = 0; i < receiver->count; i++)
        ew_ring_socket_unmap(receiver->rings[i].bytes, EW_SPANS_RING_SIZE);
    ew_free(receiver->rings);
    for (uint32_t i = 0; i < receiver->profile_count; i++)
        (void)close(receiver->profiles[i].fd);
    ew_free(receiver->profiles);
    ew_ring_socket_close(&receiver->socket);
    ew_free(receiver);
}

const char *etwatch_receiver_address(const struct etwatch_receiver *receiver)
{
    return receiver == NULL ? NULL : receiver->socket.address;
}

uint64_t etwatch_receiver_lost(const struct etwatch_receiver *receiver)
{
    return receiver == NULL ? 0 : receiver->lost;
}

/* ----------------------------------------------------------------- accepting rings */

static const unsigned char *map_ring(int fd)
{
    const unsigned char *bytes = ew_ring_socket_map(fd, EW_SPANS_RING_SIZE);
    if (bytes == NULL || ew_spans_ring_valid(bytes))
        return bytes;
    ew_ring_socket_unmap(bytes, EW_SPANS_RING_SIZE);
    return NULL;
}

static bool keep_ring(struct etwatch_receiver *receiver, int fd, uint32_t pid)
{
    if (receiver->count == receiver->size) {
        uint32_t size = receiver->size == 0 ? 8 : receiver->size * 2;
        struct ew_spans_ring *rings =
            size > RINGS_MAX ? NULL : ew_realloc_array(receiver->rings, size, sizeof *rings);
        if (rings == NULL)
            return false;
        receiver->rings = rings;
        receiver->size = size;
    }
    const unsigned char *bytes = map_ring(fd);
    if (bytes == NULL)
        return false;
    receiver->rings[receiver->count++] = (struct ew_spans_ring){.bytes = bytes, .pid = pid};
    return true;
}

/* Keeps the descriptor. The message: its magic, the time, the session. */
static bool keep_profile(struct etwatch_receiver *receiver, int fd, uint32_t pid,
                         const char *message, size_t len)
{
    struct stat info;
    size_t head = sizeof EW_SPANS_PROFILE_MAGIC - 1 + sizeof(uint64_t);
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    if (receiver->profile_count == receiver->profile_size) {
        uint32_t size = receiver->profile_size == 0 ? 8 : receiver->profile_size * 2;
        struct profile *profiles =
            size > PROFILES_MAX ? NULL
                                : ew_realloc_array(receiver->profiles, size, sizeof *profiles);
        if (profiles == NULL)
            return false;
        receiver->profiles = profiles;
        receiver->profile_size = size;
    }
    struct profile *profile = &receiver->profiles[receiver->profile_count++];
    memset(profile, 0, sizeof *profile);
    profile->fd = fd;
    profile->pid = pid;
    memcpy(&profile->start_ns, message + head - sizeof(uint64_t), sizeof(uint64_t));
    len = len - head < SESSION_MAX - 1 ? len - head : SESSION_MAX - 1;
    memcpy(profile->session, message + head, len);
    return true;
}

static bool is_profile(const char *message, size_t len)
{
    size_t magic_len = sizeof EW_SPANS_PROFILE_MAGIC - 1;
    return len >= magic_len + sizeof(uint64_t) &&
           memcmp(message, EW_SPANS_PROFILE_MAGIC, magic_len) == 0;
}

/* One message: the ring and its sender. False: there is none. */
static bool accept_one(struct etwatch_receiver *receiver)
{
    char text[16 + SESSION_MAX];
    struct ew_ring_message message;
    if (!ew_ring_socket_receive(&receiver->socket, text, sizeof text, &message))
        return false;
    bool accepted = message.fd >= 0;
    if (is_profile(text, message.len)) {
        if (accepted && keep_profile(receiver, message.fd, message.pid, text, message.len))
            return true;
        receiver->lost_operators++;
    } else if (!accepted || !keep_ring(receiver, message.fd, message.pid)) {
        receiver->lost++;
    }
    if (message.fd >= 0)
        (void)close(message.fd);
    return true;
}

int etwatch_receiver_read(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns, int last,
                          void (*on_span)(void *ctx, const struct etwatch_span *span), void *ctx)
{
    int count = 0;
    if (receiver == NULL || on_span == NULL)
        return ETWATCH_EINVAL;
    /* A sender that is faster than this must not keep the reader here. */
    for (uint32_t i = 0; i < RINGS_MAX && accept_one(receiver); i++)
        continue;
    struct ew_spans_ring_target target = {
        .unix_minus_raw_ns = unix_minus_raw_ns, .on_span = on_span, .ctx = ctx};
    for (uint32_t i = 0; i < receiver->count; i++)
        count += ew_spans_ring_read(&receiver->rings[i], &target, last != 0, &receiver->lost);
    return count;
}

uint64_t etwatch_receiver_lost_operators(const struct etwatch_receiver *receiver)
{
    return receiver == NULL ? 0 : receiver->lost_operators;
}

/* *left: how many bytes may still be read. */
static int read_profile(const struct profile *from, struct ew_spans_profile *profile, off_t *left)
{
    char bytes[65536];
    ssize_t len = 0;
    int rc = 0;
    for (off_t at = 0; rc == 0 && *left > 0; at += len) {
        len = pread(from->fd, bytes, sizeof bytes, at);
        if (len <= 0)
            break;
        *left -= len;
        rc = ew_spans_profile_add(profile, bytes, (size_t)len);
    }
    ew_spans_profile_end(profile);
    return rc;
}

int etwatch_receiver_operators(struct etwatch_receiver *receiver, int64_t unix_minus_raw_ns,
                               void (*on_operator)(void *ctx, const struct etwatch_operator *op),
                               void *ctx)
{
    uint64_t count = 0;
    off_t left = profile_bytes_max;
    int rc = 0;
    if (receiver == NULL || on_operator == NULL)
        return ETWATCH_EINVAL;
    for (uint32_t i = 0; i < receiver->profile_count && rc == 0; i++) {
        const struct profile *from = &receiver->profiles[i];
        struct ew_spans_profile profile = {
            .pid = from->pid,
            .start_ns = from->start_ns + (uint64_t)unix_minus_raw_ns,
            .session = from->session[0] == '\0' ? NULL : from->session,
            .on_operator = on_operator,
            .ctx = ctx,
        };
        rc = read_profile(from, &profile, &left);
        receiver->lost_operators += profile.lost;
        count += profile.operators;
    }
    for (uint32_t i = 0; i < receiver->profile_count; i++)
        (void)close(receiver->profiles[i].fd);
    receiver->profile_count = 0;
    return rc < 0 ? rc : count < INT_MAX ? (int)count : INT_MAX;
}
