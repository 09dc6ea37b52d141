# SPDX-License-Identifier: MIT
"""top on a terminal: it takes over the screen, responds to keys, and restores the screen however it ends."""
import os
import re
import signal
import subprocess
import sys
import termios
import time

from commandkit import UNDER_WINE, linux_only, running_process
from lib import BUILD, cases, check, check_eq, check_in, end, main, run, skip, start, temp_dir, test
from screenkit import ENTER, LEAVE, Screen, become, check_restored


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


def last_block(screen):
    """The lines of the latest whole screen, without escapes."""
    screen.text = screen.text[-60000:]
    blocks = [b for b in screen.text.split("\x1b[H") if "\x1b[J" in b]
    return re.sub("\x1b\\[[0-9;]*m", "", blocks[-1].replace("\x1b[K", "")).split("\n") if blocks else []


def wait_until(screen, what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition(last_block(screen)):
        check(time.monotonic() < deadline, f"{what}: {last_block(screen)}")
        screen.read()


@test
def t_shows_children_below_their_parents():
    linux_only("needs a shell")
    parent = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)

    def body(screen):
        wait_until(screen, "both processes", lambda lines: any(str(parent.pid) in line for line in lines) and any("sleep" in line for line in lines))
        flat = next(line for line in last_block(screen) if "sleep" in line)
        screen.keys("t")
        wait_until(screen, "an indented child", lambda lines: any("sleep" in line and line.index("sleep") > flat.index("sleep") for line in lines))
        lines = last_block(screen)
        above = next(i for i, line in enumerate(lines) if f"{parent.pid} " in line)
        check_in("sleep", lines[above + 1], "the row below the parent")
        screen.keys("t")
        wait_until(screen, "the flat list", lambda lines: any("sleep" in line and line.index("sleep") == flat.index("sleep") for line in lines))
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
    try:
        on_screen(["-p", str(parent.pid)], body)
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


@test
def H_hides_the_threads_and_says_if_there_are_none():
    linux_only("names of threads")
    code = "import threading, time\n[threading.Thread(target=time.sleep, args=(60,), daemon=True).start() for _ in range(3)]\nwhile True: time.sleep(0.01)"
    child = start(["-c", code], program=sys.executable)

    def rows(lines):
        return sum(bool(re.match(rf"\s*{child.pid}\b", line)) for line in lines)

    def hidden(screen):
        wait_until(screen, "the threads", lambda lines: rows(lines) > 1)
        screen.keys("H")
        wait_until(screen, "only the process", lambda lines: rows(lines) == 1)
        screen.keys("H")
        wait_until(screen, "the threads again", lambda lines: rows(lines) > 1)
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")

    def unwatched(screen):
        screen.keys("H")
        screen.wait_for("start etwatch top --threads")
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
    on_screen(["-p", str(child.pid), "--threads"], hidden)
    on_screen(["-p", str(child.pid)], unwatched)
    end(child)


@test
def control_z_restores_the_screen_and_fg_takes_it_over_again():
    linux_only("Windows cannot suspend a program")

    def body(screen):
        screen.keys("\x1a")
        screen.wait_for(LEAVE)
        deadline = time.monotonic() + 30

        def state():
            with open(f"/proc/{screen.child.pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        while state() != "T":
            check(time.monotonic() < deadline, f"state {state()}")
            time.sleep(0.05)
        check_eq(termios.tcgetattr(screen.side), screen.before, "mode of the terminal while it is stopped")
        screen.text = ""
        screen.child.send_signal(signal.SIGCONT)
        screen.wait_for(ENTER)
        screen.wait_for("own cost")
        screen.keys("q")
        check_eq(screen.wait(), 0, "exit code")
    on_screen([], body)


@cases([("] lowers the priority", "]", 1), ("[ cannot raise it without rights, and says so", "[", 0)])
def the_priority_of_a_process_is_changed_after_a_confirmation(key, nice):
    linux_only("there is no child of this kind under Wine")
    # A process without capabilities cannot change the priority of one that has some.
    user = 65534 if os.getuid() == 0 else None
    child = subprocess.Popen(["sleep", "60"], preexec_fn=(lambda: become(user)) if user else None)

    def body(screen):
        screen.wait_for(f"{child.pid} ")
        screen.keys("\x1b[B")
        screen.wait_for("\x1b[7m")
        screen.keys(key)
        screen.wait_for(f"the priority of {child.pid} (sleep)? y/n")
        check_eq(os.getpriority(os.PRIO_PROCESS, child.pid), 0, "before the answer")
        screen.keys("y")
        screen.wait_for(f"{child.pid} (sleep) has nice value 1 now" if nice else "not permitted")
        check_eq(os.getpriority(os.PRIO_PROCESS, child.pid), nice, "nice value")
        screen.keys("q")
        screen.wait()
    try:
        on_screen(["-p", str(child.pid)], body, user=user)
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
