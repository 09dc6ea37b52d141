/* SPDX-License-Identifier: MIT */
/* What top shows, as text: a pure function of the figures, so that it can be tested. */
#ifndef EW_CLI_SCREEN_H
#define EW_CLI_SCREEN_H

#include <etwatch/etwatch.h>

#include "base/buf.h"
#include "sink/rollup.h"

enum ew_screen_sort { EW_SORT_CPU, EW_SORT_MEMORY, EW_SORT_IO };

struct ew_screen {
    enum ew_screen_sort sort;
    bool help;
    bool color;
    const char *alert; /* the last one in words; NULL or "": none */
    bool active_only;  /* leave out what did nothing since the last screen */
    uint32_t columns;  /* 0: lines are not cut */
    uint32_t rows;     /* of the whole screen; 0: everything is shown */
};

/* wall_ns: the time that the sums in rollup refer to. Returns 0 or a negative code. */
int ew_screen_write(const struct ew_screen *screen, struct ew_rollup *rollup,
                    const struct etwatch_stats *stats, uint64_t t_ns, uint64_t wall_ns,
                    struct ew_buf *out);

#endif
