/* SPDX-License-Identifier: MIT */
/* Operating system services that only the tests need; the library's own are in os/os.h. */
#ifndef TEST_SYSTEM_H
#define TEST_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes an empty folder and writes its path, with slashes. The size must be at least 300 on
 * Windows.
 */
void test_folder(char *folder, size_t size);
/* Removes an empty folder. */
void test_folder_remove(const char *folder);
/* Truncates a file that may be open elsewhere. */
void test_truncate(const char *path, uint64_t size);
/* Makes a named pipe in the file system; returns false where the system has none. */
bool test_pipe(const char *path);

/* Starts a child that computes until it is ended or its parent exits; returns its pid. */
uint32_t test_start_busy(void);
void test_end_child(uint32_t pid);

uint32_t test_own_pid(void);
void test_sleep_ms(unsigned ms);
/* Number of open descriptors or handles of this process. */
int test_open_handles(void);

#endif
