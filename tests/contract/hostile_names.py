# SPDX-License-Identifier: MIT
"""Names that other users choose reach the terminal only as text: no control character, no reordering of it."""
import os
import shutil
import subprocess
import sys

from commandkit import UNDER_WINE
from lib import ETWATCH, cases, check, check_eq, main, skip, temp_dir

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


@cases([("with its name", [])])
def an_alert_shows_a_hostile_process_name_as_text(more):
    if UNDER_WINE:
        skip("Windows does not allow such names")
    with temp_dir() as folder:
        program = os.path.join(folder, "x\x1b[31m\x07y")
        shutil.copy(os.path.realpath(sys.executable), program)
        text = messages("run", "--source", "poll", "--hz", "50", "--alert", "cpu_percent>20", *more, "--", program, "-c",
                        "import time\nend = time.time() + 1\nwhile time.time() < end: pass")
        check("alert: " in text, f"no alert: {text!r}")
        check("\x1b" not in text and "\x07" not in text, f"{text!r}")


main()
