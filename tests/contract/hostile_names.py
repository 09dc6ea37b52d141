# SPDX-License-Identifier: MIT
"""Names that other users choose reach the terminal only as text: no control character, no reordering of it."""
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time

from commandkit import UNDER_WINE
from etlkit import kernel_event, manifest_event, small_etl
from lib import ETWATCH, cases, check, check_eq, check_in, end, json_lines, main, run, skip, start, temp_dir, test
from servekit import serve, wait_for

# ESC, BEL, a C1 control (CSI), a right-to-left override, a line end, a line separator.
HOSTILE = "a\x1b[31mb\x07c\u009bd\u202ee\nf\u2028g"
FORBIDDEN = ("\x1b", "\x07", "\u009b", "\u202e", "\u2028")


def messages(*arguments):
    done = subprocess.run([ETWATCH, *arguments], check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.stderr.decode("utf-8", "replace")


def check_safe(text):
    check(text != "", "no message at all")
    for character in FORBIDDEN:
        check(character not in text, f"{character!r} in {text!r}")
    for line in text.splitlines():
        check(line.startswith(("etwatch: ", " ", "usage")) or line == "", f"a line that is not ours: {line!r}")


@cases([("a recording that is not there", ["report", HOSTILE]),
        ("an output that cannot be opened", ["stat", "-a", "-o", f"/nowhere/{HOSTILE}", "--duration", "0.1"]),
        ("a command that is not there", ["run", "--", HOSTILE]),
        ("an option that is not known", [f"--{HOSTILE}"]),
        ("a subcommand that is not known", [HOSTILE]),
        ("a value that is refused", ["stat", "-a", "--hz", HOSTILE]),
        ("a condition that is refused", ["stat", "-a", "--alert", HOSTILE]),
        ("a metric that is not known", ["stat", "-a", "--metrics", HOSTILE]),
        ("a configuration that is not there", ["stat", "-a", "--config", HOSTILE])])
def a_message_shows_a_hostile_name_as_text(arguments):
    if UNDER_WINE:
        skip("Windows does not allow such names")
    check_safe(messages(*arguments))

# ------------------------------------------------------------- every command and view

# In the 15 bytes of a process name: a sequence that no command uses, BEL, CSI as one character, an override, a line end.
NAME = "\x1b[9m\x07\u009bA\u202e\nz"
SEQUENCES = ("\x1b[9m", "\x07", "\u009b", "\u202e")


def check_text(out, what, columns=True):
    """Text for people: nothing of the name acts, and its line end ends no line."""
    for sequence in SEQUENCES:
        check(sequence not in out, f"{what}: {sequence!r} in {out[-400:]!r}")
    if columns:
        for line in out.splitlines():
            check(not line.startswith("z"), f"{what}: the name ends a line: {line!r}")


def check_output(out, err, arguments):
    """What the command wrote, by its format."""
    what = " ".join(map(str, arguments))
    check_text(err, f"{what}: messages")
    check_text(out, what, columns="--csv" not in arguments and "csv" not in arguments)
    if "--json" in arguments or "jsonl" in arguments:
        json_lines(out)


def texts_of(value):
    """Every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_of(part)


def hostile_program(folder):
    """A program with that name, which uses some CPU time."""
    if UNDER_WINE:
        skip("Windows does not allow such names")
    program = os.path.join(folder, NAME)
    shutil.copy(os.path.realpath(sys.executable), program)
    return [program, "-c", "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"]


def shows(out, arguments):
    """Whether the name arrived in some form: without it the test would show nothing."""
    if "--json" in arguments:
        return any(NAME in text for o in json_lines(out) for text in texts_of(o))
    return "A" in out and "[9m" in out


@cases([("a table", ["run", "--source", "poll"]), ("JSON", ["run", "--source", "poll", "--json"]),
        ("CSV", ["run", "--source", "poll", "--csv"]), ("events in JSON", ["run", "--json", "--events"]),
        ("threads", ["run", "--source", "poll", "--json", "--threads"]),
        ("an alert", ["run", "--source", "poll", "--hz", "50", "--alert", "cpu_percent>20"])])
def a_live_command_shows_a_hostile_process_name_as_text(arguments):
    with temp_dir() as folder:
        done = run([*arguments, "--", *hostile_program(folder)])
        if "not supported" in done.err or "needs eBPF" in done.err or "CAP_BPF" in done.err:
            skip(done.err.strip())
        check_eq(done.code, 0, done.err)
        check_output(done.out, done.err, arguments)
        check(shows(done.out + done.err if "--json" not in arguments else done.out, arguments), f"not in {done.out[-600:]!r} {done.err[-600:]!r}")


RECORDED = [["report"], ["report", "--json"], ["report", "--csv"], ["report", "--threads", "--images"], ["events"], ["events", "--json"],
            ["events", "--count-by-type"], ["waits"], ["waits", "--json"], ["export", "-f", "csv"], ["export", "-f", "jsonl"],
            ["export", "-f", "csv", "--fields"], ["export", "-f", "csv", "--typed"], ["export", "-f", "chrome"], ["export", "-f", "folded"],
            ["export", "-f", "speedscope"], ["export", "-f", "csv", "--table", "processes"], ["export", "-f", "csv", "--table", "images"],
            ["export", "-f", "csv", "--table", "samples"], ["report", "-n", "*"]]


def read_all(path, more=()):
    """Every command that reads the file; how many of them show the name."""
    shown = 0
    for arguments in [*RECORDED, *more]:
        done = run([*arguments, path] if arguments[0] != "compare" else [*arguments, path, path])
        check_in(done.code, (0, 1), f"{arguments}: {done.err}")
        check_output(done.out, done.err, arguments)
        shown += "[9m" in done.out
    return shown


@test
def every_reader_shows_a_hostile_name_of_a_recording_as_text():
    with temp_dir() as folder:
        path = os.path.join(folder, "x.pftrace")
        done = run(["record", "-q", "-o", path, "--", *hostile_program(folder)])
        check_eq(done.code, 0, done.err)
        check(read_all(path, [["compare"], ["compare", "--json"]]) >= 8, "the name is in too few outputs")


@test
def every_reader_shows_hostile_names_of_a_windows_recording_as_text():
    name = NAME.encode()
    wide = NAME.encode("utf-16-le") + b"\0\0"
    payload = struct.pack("<QIIIiQII", 0xFFFF1000, 1000, 4, 1, 259, 0x1000, 0, 0)
    fields = name + b"\0\1" + b"f\0\1"  # two texts: UTF-16
    data = struct.pack("<HB", len(name) + 1 + len(fields) + 3, 0) + name + b"\0" + fields
    item = struct.pack("<HHHH", 8 + len(data) + -len(data) % 8, 11, 0, len(data)) + data + bytes(-len(data) % 8)
    provider = struct.pack("<H", len(name) + 3) + name + b"\0"
    item = item[:4] + struct.pack("<H", 1) + item[6:] + struct.pack("<HHHH", 8 + len(provider) + -len(provider) % 8, 12, 0, len(provider))
    item += provider + bytes(-len(provider) % 8)
    logged = manifest_event("11111111-2222-3333-4444-555555555555", 1, 3000, item + wide + wide, pid=1000)
    image = struct.pack("<QQIIIIQIIII", 0x7FF000000000, 0x1000, 1000, 0, 0, 0, 0x7FF000000000, 0, 0, 0, 0)
    events = [kernel_event(3, 1, 4, 1000, payload + name + b"\0" + wide), kernel_event(0x14, 10, 3, 2000, image + wide, pid=1000),
              logged[:4] + struct.pack("<H", 1) + logged[6:], kernel_event(3, 2, 4, 10**6, payload + name + b"\0" + wide)]
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        with open(path, "wb") as file:
            file.write(small_etl(events))
        check(read_all(path, [["stat"], ["stat", "--json"], ["stat", "--csv"], ["report", "--json", "--cmdline"],
                              ["events", "--cmdline"], ["events", "--payload", "--json"]]) >= 8, "the name is in too few outputs")


@test
def the_screen_of_top_shows_a_hostile_process_name_as_text():
    with temp_dir() as folder:
        command = hostile_program(folder)[:2] + ["import time\nwhile True: pass"]
        # Python for Windows has none of these.
        import fcntl
        import pty
        import termios
        master, side = pty.openpty()
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        busy = start(command[1:], program=command[0])
        child = start(["top", "--source", "poll", "-p", busy.pid], stdin=side, stdout=side, env={**os.environ, "TERM": "xterm"})
        text, deadline = "", time.monotonic() + 30
        while "[9m" not in text and time.monotonic() < deadline:
            if select.select([master], [], [], 0.2)[0]:
                text += os.read(master, 65536).decode(errors="replace")
        end(child)
        end(busy)
        os.close(master)
        os.close(side)
        check("[9m" in text, f"the name is not on the screen: {text[-400:]!r}")
        check_text(text, "top", columns=False)


@test
def a_server_shows_a_hostile_process_name_as_text():
    with temp_dir() as folder:
        command = hostile_program(folder)[:2] + ["import time\nwhile True: pass"]
        busy = start(command[1:], program=command[0])
        server = serve("-p", str(busy.pid))
        wait_for("the name in the metrics", lambda: "[9m" in server.metrics())
        check_text(server.metrics(), "/metrics")
        text = server.get("/api/v1/processes")[2].decode()
        check(any(NAME in part for part in texts_of(json.loads(text))), f"the name is not in {text[:400]!r}")
        check_text(text, "/api/v1/processes")
        check_text(server.stop(), "messages")
        end(busy)


main()
