/* SPDX-License-Identifier: MIT */
/* What tests need of the system they run on, beside what the library itself has in os/os.h. */
#ifndef TEST_SYSTEM_H
#define TEST_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes an empty folder and writes its path, with slashes; size at least 300 on Windows. */
void test_folder(char *folder, size_t size);
/* Removes a folder that is empty again. */
void test_folder_remove(const char *folder);
/* Cuts a file that others may have open. */
void test_truncate(const char *path, uint64_t size);
/* A pipe by this name; false where a system has no such things. */
bool test_pipe(const char *path);

/* A child that computes until it is ended or its parent is gone; its pid. */
uint32_t test_start_busy(void);
void test_end_child(uint32_t pid);

uint32_t test_own_pid(void);
void test_sleep_ms(unsigned ms);
/* Descriptors or handles of this process. */
int test_open_handles(void);

#endif
