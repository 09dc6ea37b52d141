# SPDX-License-Identifier: MIT
"""top on a terminal: it takes over the screen, responds to keys, and restores the screen however it ends."""
import os
import re
import signal
import subprocess
import sys
import time

from commandkit import UNDER_WINE, linux_only, running_process
from lib import BUILD, cases, check, check_eq, check_in, end, main, run, skip, start, temp_dir, test
from screenkit import ENTER, Screen, check_restored


def on_screen(arguments, body, **options):
    screen = Screen(["top", "--source", "poll", *arguments], **options)
    try:
        screen.wait_for("own cost")
        body(screen)
    finally:
        screen.close()


@test
def q_quits_and_restores_the_screen():
    def body(screen):
        check_in(ENTER, screen.text)
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
        check_restored(screen)
    on_screen([], body)


@cases([("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP)])
def a_signal_restores_the_screen(number):
    if number != signal.SIGINT:
        linux_only("Windows has no signals but Ctrl-C and Ctrl-Break")

    def body(screen):
        screen.child.send_signal(number)
        check_eq(screen.wait(), 128 + number, "exit code")
        check_restored(screen)
    on_screen([], body)


@test
def control_c_restores_the_screen():
    def body(screen):
        screen.keys("\x03")
        check_eq(screen.wait(), 128 + signal.SIGINT, "exit code")
        check_restored(screen)
    on_screen([], body)


@test
def keys_select_the_order_and_show_help():
    def body(screen):
        check_in("by CPU", screen.text)
        screen.keys("m")
        screen.wait_for("by memory")
        screen.keys("i")
        screen.wait_for("by I/O")
        screen.keys("h")
        screen.wait_for("keys: q quit, c by CPU, m by memory, i by I/O")
        screen.keys("c")
        screen.text = ""
        screen.wait_for("by CPU")
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
    on_screen([], body)


@test
def no_line_is_wider_than_the_screen_and_a_resize_is_followed():
    linux_only("Wine's console breaks lines itself and gets no resize notification")

    def widest(text):
        lines = text.replace("\x1b[K", "").replace("\x1b[H", "\n").replace("\x1b[J", "")
        lines = re.sub("\x1b\\[[0-9]*m", "", lines).split("\n")
        return max(len(line.rstrip("\r")) for line in lines[1:])

    def body(screen):
        screen.text = ""
        screen.wait_for("own cost")
        screen.wait_for("\x1b[J")
        check(widest(screen.text) <= 60, f"{widest(screen.text)} columns on a screen of 60")
        screen.resize(10, 40)
        screen.child.send_signal(signal.SIGWINCH)
        time.sleep(0.5)
        screen.read()
        screen.text = ""
        screen.wait_for("own cost")
        screen.wait_for("\x1b[J")
        block = screen.text.split("\x1b[H")[-1]
        check(widest("\n" + block) <= 40, f"{widest(block)} columns on a screen of 40")
        check(block.count("\n") <= 10, f"{block.count(chr(10))} lines on a screen of 10")
        screen.keys("q")
        screen.wait()
    on_screen([], body, rows=20, columns=60)


@test
def colours_are_used_on_a_terminal_and_not_with_no_color():
    def with_colour(screen):
        check_in("\x1b[1m", screen.text)
        screen.keys("q")
        screen.wait()

    def without(screen):
        check("\x1b[1m" not in screen.text, "bold text although NO_COLOR is set")
        screen.keys("q")
        screen.wait()
    on_screen([], with_colour)
    on_screen([], without, environment={"NO_COLOR": "1"})


@test
def a_busy_process_is_on_the_first_screen():
    def body(screen):
        screen.wait_for(str(pid))
        screen.keys("q")
        screen.wait()
    if UNDER_WINE:
        with running_process() as pid:
            on_screen(["-p", str(pid)], body)
        return
    busy = start(["-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"], program=sys.executable)
    pid = busy.pid
    on_screen(["-p", str(pid)], body)
    end(busy)


@test
def bars_show_the_cpus_and_the_memory():
    linux_only("needs a console with at least 16 lines")

    def body(screen):
        screen.wait_for("  0[")
        screen.wait_for("Mem[")
        screen.keys("q")
        screen.wait()
    on_screen([], body, environment={"NO_COLOR": "1"})


@test
def a_gpu_has_a_bar():
    linux_only("a shared library")
    library = os.path.join(BUILD, "tests", "libfakenvml.so")
    if not os.path.exists(library):
        skip("the fake driver was not built")
    with temp_dir() as folder:
        control = os.path.join(folder, "control")
        with open(control, "w", encoding="ascii") as file:
            file.write("util 40\n")

        def body(screen):
            screen.wait_for("GPU0[")
            screen.wait_for("40%")
            screen.keys("q")
            screen.wait()
        on_screen(["--gpu", "--sys-root", folder, "--nvml-library", library], body,
                  environment={"NO_COLOR": "1", "FAKE_NVML": control})


@test
def a_filter_applies_while_it_is_typed_and_esc_clears_it():
    linux_only("Wine's console delivers keys in other pieces")

    def body(screen):
        screen.keys("/no-such-name")
        screen.wait_for("with: no-such-name_")
        screen.keys("\r")
        screen.wait_for("only *no-such-name*")
        screen.keys("\x1b")
        screen.text = ""
        screen.wait_for("by CPU; h help")
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
    on_screen([], body)


@cases([("y ends it", "y", True), ("n leaves it alone", "n", False)])
def a_process_is_ended_only_after_a_confirmation(answer, ends):
    linux_only("there is no child of this kind under Wine")
    child = subprocess.Popen(["sleep", "60"])

    def body(screen):
        screen.wait_for(f"{child.pid} ")
        screen.keys("\x1b[B")
        screen.wait_for("\x1b[7m")
        screen.keys("k")
        screen.wait_for(f"request the end of {child.pid} (sleep)? y/n")
        check_eq(child.poll(), None, "the child before the answer")
        screen.keys(answer)
        if ends:
            check_eq(child.wait(30), -signal.SIGTERM, "status of the child")
        else:
            screen.text = ""
            screen.wait_for("by CPU; h help")
            check_eq(child.poll(), None, "the child")
        screen.keys("q")
        screen.wait()
    try:
        on_screen(["-p", str(child.pid)], body)
    finally:
        child.kill()
        child.wait()


@test
def a_click_selects_a_row():
    linux_only("the console of Wine has no mouse here")
    child = subprocess.Popen(["sleep", "60"])

    def body(screen):
        screen.wait_for(f"{child.pid} ")
        block = screen.text.split("\x1b[H")[-1].split("\n")
        row = next(i for i, line in enumerate(block) if f"{child.pid} " in line)
        screen.keys(f"\x1b[<0;5;{row + 1}M")
        screen.wait_for("\x1b[7m")
        screen.keys("q")
        screen.wait()
    try:
        on_screen(["-p", str(child.pid)], body)
    finally:
        child.kill()
        child.wait()


@test
def without_a_terminal_there_are_plain_blocks():
    result = run(["top", "--source", "poll", "--duration", "2.5"])
    check_eq(result.code, 0, "exit code")
    check("\x1b" not in result.out, "escape sequences")
    check(result.out.count("own cost") >= 1, "no block")
    check_in("lost: ", result.out)


main()
