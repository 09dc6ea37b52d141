/* SPDX-License-Identifier: MIT */
/*
 * How a watched program gives memory to its watcher (Linux): a datagram at an abstract address,
 * with the descriptor of a sealed memfd. The kernel states the sender (its pid here, even if it
 * runs in a container), so nothing can claim to be of another process. The address is no secret
 * (/proc/net/unix lists it): memory is accepted only from the own user, from root, and, if this is
 * root, from descendants. What is in the memory is foreign bytes.
 */
#ifndef EW_BASE_RING_SOCKET_H
#define EW_BASE_RING_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ew_ring_socket {
    int fd;           /* -1: closed */
    char address[64]; /* "@" and the abstract address */
};

/* purpose: part of the address. */
int ew_ring_socket_open(struct ew_ring_socket *ring_socket, const char *purpose,
                        struct ew_error *reterr);
void ew_ring_socket_close(struct ew_ring_socket *ring_socket);
struct ew_ring_message {
    int fd;       /* the caller closes it; -1: none, or its sender is refused */
    uint32_t pid; /* the sender */
    size_t len;   /* of the text */
};

/* Takes one message and its text; false: there is none. */
bool ew_ring_socket_receive(const struct ew_ring_socket *ring_socket, char *text, size_t size,
                            struct ew_ring_message *ret_message);
/* The memory behind a descriptor, mapped for reading; NULL if it is refused: smaller than `size`,
 * not sealed, or no memory. */
const unsigned char *ew_ring_socket_map(int fd, size_t size);
/* Takes one message; false: there is none. *ret_bytes is the memory, mapped for reading, which has
 * at least `size` bytes; NULL if it was refused. */
bool ew_ring_socket_take(const struct ew_ring_socket *ring_socket, size_t size,
                         const unsigned char **ret_bytes, uint32_t *ret_pid);
void ew_ring_socket_unmap(const unsigned char *bytes, size_t size);

#endif
