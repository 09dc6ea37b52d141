/* SPDX-License-Identifier: MIT */
/* The entry point: arguments are passed as they are. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return ew_main(argc, argv);
}
