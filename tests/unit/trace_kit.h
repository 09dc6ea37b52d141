/* SPDX-License-Identifier: MIT */
/* Small recordings for tests of their readers: written event by event, opened as a trace. */
#ifndef TRACE_KIT_H
#define TRACE_KIT_H

#include <stdio.h>
#include <string.h>

#include <etwatch/trace.h>

#include "etl_kit.h"
#include "system.h"
#include "test.h"

enum { PTR = 8, START_RAW = 1000, TICK_NS = 100 };

/* --------------------------------------------------------------- a recording */

struct file {
    char folder[320], path[400];
    struct etl_memory memory;
    struct ew_etl_writer *writer;
};

static inline void begin_file(struct file *file, uint32_t cpus)
{
    memset(file, 0, sizeof *file);
    struct ew_etl_writer_config config = {
        .cpu_count = cpus,
        .start_raw = START_RAW,
        .ctx = &file->memory,
        .write = etl_memory_write,
        .rewrite = etl_memory_rewrite,
    };
    CHECK_EQ_INT(ew_etl_writer_new(&config, &file->writer), 0);
}

static inline void end_file(struct file *file, uint64_t end_raw, uint32_t lost)
{
    CHECK_EQ_INT(ew_etl_writer_finish(file->writer, end_raw, lost, 0), 0);
    ew_etl_writer_free(file->writer);
    test_folder(file->folder, sizeof file->folder);
    (void)snprintf(file->path, sizeof file->path, "%s/t.etl", file->folder);
    FILE *out = fopen(file->path, "wb");
    CHECK(out != NULL);
    CHECK_EQ_UINT(fwrite(file->memory.bytes, 1, file->memory.size, out), file->memory.size);
    CHECK_EQ_INT(fclose(out), 0);
    etl_memory_free(&file->memory);
}

static inline void remove_file(const struct file *file)
{
    (void)remove(file->path);
    test_folder_remove(file->folder);
}

static inline void put_process(struct file *file, unsigned opcode, uint64_t t_raw, uint32_t pid,
                               uint32_t parent, const char *image)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_process(&payload, 4, PTR,
                &(struct etl_process){.key = pid,
                                      .pid = pid,
                                      .parent_pid = parent,
                                      .session_id = 1,
                                      .exit_status = opcode == 2 ? 7 : 259,
                                      .image = image,
                                      .command_line = "\"a b.exe\" --token s3cret x",
                                      .package = "",
                                      .application = ""});
    CHECK_EQ_INT(
        etl_write_kernel(file->writer, PTR, 0x0300 | opcode, 4, 0, t_raw, pid, 0, &payload), 0);
}

static inline void put_thread(struct file *file, unsigned opcode, uint64_t t_raw, uint32_t pid,
                              uint32_t tid)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_thread(&payload, 3, PTR, &(struct etl_thread){.pid = pid, .tid = tid});
    CHECK_EQ_INT(
        etl_write_kernel(file->writer, PTR, 0x0500 | opcode, 3, 0, t_raw, pid, tid, &payload), 0);
}

static inline void put_switch(struct file *file, uint64_t t_raw, uint32_t from, uint32_t to)
{
    struct etl_payload payload;
    etl_clear(&payload);
    etl_switch(&payload, 4, &(struct etl_switch){.new_tid = to, .old_tid = from, .state = 5});
    CHECK_EQ_INT(etl_write_kernel(file->writer, PTR, 0x0524, 4, 0, t_raw, 0, 0, &payload), 0);
}

static inline struct etwatch_trace *open_file(const struct file *file,
                                              const struct etwatch_trace_options *options)
{
    struct etwatch_trace *trace = NULL;
    const char *path = file->path;
    CHECK_EQ_INT(etwatch_trace_open(&path, 1, options, &trace, NULL), 0);
    return trace;
}

#endif
