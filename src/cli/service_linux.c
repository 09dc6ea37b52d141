/* SPDX-License-Identifier: MIT */
/* There is no service manager of Windows here. */
#include "cli/service.h"

const struct ew_scm *ew_scm_real(void)
{
    return NULL;
}
