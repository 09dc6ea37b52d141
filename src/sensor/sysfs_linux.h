/* SPDX-License-Identifier: MIT */
/* Small files of /sys and /proc: one number or one line of text. */
#ifndef EW_SENSOR_SYSFS_LINUX_H
#define EW_SENSOR_SYSFS_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens FOLDER/NAME for reading; -1 and errno. */
int ew_sysfs_open(const char *folder, const char *name);
/* Reads a kept descriptor from its start. False: unreadable, or not a number. */
bool ew_sysfs_number(int fd, uint64_t *ret_value);
/* The same of a file that is opened for it. */
bool ew_sysfs_read_number(const char *folder, const char *name, uint64_t *ret_value);
/* The first line, without its end; false: unreadable. */
bool ew_sysfs_read_text(const char *folder, const char *name, char *text, size_t size);
/* The last part of what a symbolic link points to; false: not a link. */
bool ew_sysfs_link_name(const char *folder, const char *name, char *text, size_t size);

/* Calls `each` for every entry of the folder, in the order of names. False: no such folder. */
bool ew_sysfs_list(const char *folder, void (*each)(void *ctx, const char *name), void *ctx);

#endif
