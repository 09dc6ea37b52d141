# SPDX-License-Identifier: MIT
"""The program on a pseudo terminal: its screen, keys for it, and whether it restores the terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from commandkit import UNDER_WINE
from lib import ETWATCH, check, check_eq

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


class Screen:
    """The program on its own pseudo terminal."""

    def __init__(self, arguments, rows=24, columns=100, environment=None, user=None):
        self.main, side = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(side)
        self.side = side
        variables = dict(os.environ, TERM="xterm")
        variables.pop("NO_COLOR", None)
        variables.update(environment or {})

        def attach():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if user is not None:
                become(user)
        self.child = subprocess.Popen([ETWATCH, *arguments], stdin=side, stdout=side,
                                      stderr=subprocess.PIPE, env=variables, preexec_fn=attach)
        self.text = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds=0.1):
        if select.select([self.main], [], [], seconds)[0]:
            try:
                self.text += os.read(self.main, 65536).decode(errors="replace")
            except OSError:
                pass

    def wait_for(self, part, seconds=30):
        deadline = time.monotonic() + seconds
        while part not in self.text:
            check(time.monotonic() < deadline, f"no {part!r} in {self.text[-300:]!r}")
            self.read()

    def keys(self, text):
        os.write(self.main, text.encode())

    def wait(self, seconds=30):
        deadline = time.monotonic() + seconds
        while self.child.poll() is None:
            check(time.monotonic() < deadline, "the program does not end")
            self.read()
        self.read()
        return self.child.returncode

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.main)
        os.close(self.side)
        self.child.stderr.close()


def check_restored(screen):
    if UNDER_WINE:  # its console draws some things twice
        check(screen.text.rfind(LEAVE) > screen.text.rfind(ENTER) >= 0, f"the end is {screen.text[-60:]!r}")
        return
    check_eq(screen.text.count(ENTER), screen.text.count(LEAVE), "screens taken over and restored")
    check(screen.text.rstrip().endswith(LEAVE), f"the end is {screen.text[-60:]!r}")
    check_eq(termios.tcgetattr(screen.side), screen.before, "mode of the terminal")
