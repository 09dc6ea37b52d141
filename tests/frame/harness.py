# SPDX-License-Identifier: MIT
"""The harnesses themselves: a failure must be detected, or no other test means anything."""
import os
import shutil
import sys

from lib import ROOT, check, check_eq, check_in, main, run, temp_dir, test

C_TESTS = r"""
#include <stdlib.h>
#include "test.h"
#include "base/alloc.h"
TEST(passes) { CHECK_EQ_INT(1, 1); }
TEST(compares_numbers) { CHECK_EQ_INT(3, 4); FAIL("went on"); }
TEST(compares_texts) { test_row("row seven"); CHECK_EQ_STR("a", NULL); }
TEST(is_skipped) { SKIP("no such thing here"); }
static int ignores_failure(void *ctx) { (void)ctx; ew_free(ew_strdup("x")); return 0; }
TEST(is_tortured) { TORTURE(ignores_failure, NULL); }
TEST(dies) { abort(); }
"""

PY_TESTS = r"""
from lib import *
@test
def passes(): check_eq(1, 1)
@test
def compares(): check_eq(3, 4, "three")
@test
def is_skipped(): skip("no such thing here")
@test
def raises(): {}["missing"]
@test(seconds=1)
def hangs():
    import time
    time.sleep(30)
@test
def leaves_a_child_behind():
    child = start(["60"], program="/bin/sleep")
    print("# pid", child.pid)
main()
"""


FLAKY_TESTS = r"""
import os
from lib import *
@test
def passes(): check_eq(1, 1)
@cases([(str(i), str(i)) for i in range(%d)])
def fails_first(number):
    path = "%s/tried" + number
    tried = os.path.exists(path)
    open(path, "w").close()
    check(tried)
@test
def fails(): check_eq(1, 2)
main()
"""


def build(folder):
    compiler = os.environ.get("CC", "cc")
    source, program = os.path.join(folder, "t.c"), os.path.join(folder, "t")
    with open(source, "w", encoding="utf-8") as file:
        file.write(C_TESTS)
    done = run(["-std=c11", "-D_GNU_SOURCE", f'-DTESTS_DIR="{ROOT}/tests"', f"-I{ROOT}/src",
                f"-I{ROOT}/tests/unit", f"-I{ROOT}/include", source, f"{ROOT}/tests/unit/test.c",
                f"{ROOT}/src/base/alloc.c", "-lm", "-o", program], program=compiler)
    check_eq(done.code, 0, done.err)
    return program


@test
def a_failed_check_shows_both_values_and_ends_its_test():
    with temp_dir() as folder:
        result = run(["passes", "compares_numbers"], program=build(folder))
        check_eq(result.code, 1)
        check_in("ok 1 - passes\n", result.out)
        check_in("3 is 3, not 4", result.out)
        check_in("not ok 2 - compares_numbers", result.out)
        check("went on" not in result.out)


@test
def a_failure_names_its_table_row():
    with temp_dir() as folder:
        result = run(["compares_texts"], program=build(folder))
        check_in('is "a", not NULL [row: row seven]', result.out)


@test
def a_program_with_only_skips_exits_77():
    with temp_dir() as folder:
        result = run(["is_skipped"], program=build(folder))
        check_eq(result.code, 77)
        check_in("ok 1 - is_skipped # SKIP no such thing here", result.out)


@test
def torture_sees_an_ignored_allocation_failure():
    with temp_dir() as folder:
        result = run(["is_tortured"], program=build(folder))
        check_eq(result.code, 1)
        check_in("although allocation 1 failed", result.out)


@test
def an_unknown_test_name_is_a_failure():
    with temp_dir() as folder:
        check_eq(run(["no_such_test"], program=build(folder)).code, 1)


@test
def python_tests_fail_skip_time_out_and_end_their_children():
    with temp_dir() as folder:
        path = os.path.join(folder, "t.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PY_TESTS)
        result = run([path], program=sys.executable,
                     env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "tests")})
        check_eq(result.code, 1)
        check_in("ok 1 - passes\n", result.out)
        check_in("three is 3, not 4", result.out)
        check_in("not ok 2 - compares\n", result.out)
        check_in("ok 3 - is_skipped # SKIP no such thing here\n", result.out)
        check_in("not ok 4 - raises\n", result.out)
        check_in("not ok 5 - hangs\n", result.out)
        check_in("ok 6 - leaves_a_child_behind\n", result.out)
        pid = int(result.out.split("# pid ")[1].split()[0])
        check(not os.path.exists(f"/proc/{pid}"), f"process {pid} is still there")


@test
def the_runner_counts_single_results_and_a_crash_as_a_failure():
    with temp_dir() as folder:
        info = os.path.join(folder, "meson-info")
        os.mkdir(info)
        program = build(folder)
        with open(os.path.join(info, "intro-tests.json"), "w", encoding="utf-8") as file:
            file.write('[{"name": "sample", "suite": ["unit"], "cmd": ["%s"], "env": {}}]' % program)
        result = run(["--build", folder, "--only", "unit/sample"],
                     program=os.path.join(ROOT, "tests", "run"))
        check_eq(result.code, 1)
        # passes; two comparisons and the torture fail; one skip; the crash ends it.
        check_eq(result.out.splitlines()[-1], "1 passed, 4 failed, 1 skipped")
        check_in("unit/sample: is_skipped: no such thing here", result.out)


def copy_of_the_runner(folder, suite, listed="", count=1):
    """A copy with one script, in which tests fail first and pass then, and another always fails: its last lines."""
    tests = os.path.join(folder, "tests")
    for name in (os.path.join(folder, "build", "meson-info"), os.path.join(tests, "live"), os.path.join(tests, suite)):
        os.makedirs(name, exist_ok=True)
    with open(os.path.join(folder, "build", "meson-info", "intro-tests.json"), "w", encoding="utf-8") as file:
        file.write("[]")
    for name in ("run", "winekit.py", "lib.py"):
        shutil.copy(os.path.join(ROOT, "tests", name), tests)
    with open(os.path.join(tests, suite, "sample.py"), "w", encoding="utf-8") as file:
        file.write(FLAKY_TESTS % (count, folder))
    with open(os.path.join(tests, "live", "known_flaky"), "w", encoding="utf-8") as file:
        file.write(listed + "\n")
    return run(["--build", os.path.join(folder, "build")], program=os.path.join(tests, "run")).out.splitlines()[-2:]


@test
def a_live_test_that_passes_at_its_second_try_is_a_failure_unless_it_is_listed():
    with temp_dir() as folder:
        check_eq(copy_of_the_runner(folder, "live")[-1], "1 passed, 2 failed, 0 skipped", "last line")
    with temp_dir() as folder:
        listed = "live/sample: fails_first*: for a test"
        check_eq(copy_of_the_runner(folder, "live", listed), ["1 retried", "2 passed, 1 failed, 0 skipped"], "last lines")


@test
def a_test_that_fails_next_to_others_and_passes_alone_is_retried():
    with temp_dir() as folder:
        check_eq(copy_of_the_runner(folder, "contract"), ["1 retried", "2 passed, 1 failed, 0 skipped"], "last lines")


@test
def more_than_a_few_retried_tests_are_failures():
    for suite, most, listed in (("live", 3, "live/s*: fails*: for a test"), ("contract", 8, "")):
        with temp_dir() as folder:
            check_eq(copy_of_the_runner(folder, suite, listed, most + 1),
                     [f"{most} retried", f"{most + 1} passed, 2 failed, 0 skipped"], f"last lines of {suite}")


main()
