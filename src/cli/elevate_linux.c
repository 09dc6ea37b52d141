/* SPDX-License-Identifier: MIT */
/* sudo does this here. */
#include "cli/cli.h"

const struct ew_elevator *ew_elevator_real(void)
{
    return NULL;
}
