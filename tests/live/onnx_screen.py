# SPDX-License-Identifier: MIT
"""onnx on a terminal: a screen of the last ten seconds, which is restored at the end."""
import re
import signal
import subprocess
import termios
import time

from lib import check, check_eq, check_in, main, need_ebpf, temp_dir, test
from onnxkit import PYTHON, environment, make_model
from screenkit import ENTER, LEAVE, Screen

SERVER = """
import sys, time, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = 1
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print("ready", flush=True)
while True:
    session.run(None, {"x": np.ones((16, 256), np.float32)})
    time.sleep(0.01)
"""

LINE = re.compile(r"inferences of the last (\d+) s.*?run of small\.onnx: (\d+) times, ([0-9.]+) a second", re.DOTALL)


def full_screens(screen):
    """From the first full window on: the length that the title states, and the one that follows from count and rate."""
    found = [(int(seconds), int(count) / float(rate)) for seconds, count, rate in LINE.findall(screen.text)]
    return [found[at:] for at, (seconds, _) in enumerate(found) if seconds == 10][:1]


@test
def the_screen_shows_a_sliding_window():
    need_ebpf()
    with temp_dir() as folder:
        model = make_model(folder)
        with subprocess.Popen([PYTHON, "-c", SERVER, model], env=environment(), stdout=subprocess.PIPE) as server:
            screen = None
            try:
                check_eq(server.stdout.readline(), b"ready\n", "output of the server")
                screen = Screen(["onnx", "-p", str(server.pid)])
                screen.wait_for("run of small.onnx", 60)
                deadline = time.monotonic() + 120
                # Two screens after the first window: a window that starts anew would have begun with nothing.
                while not full_screens(screen) or len(full_screens(screen)[0]) < 4:
                    check(time.monotonic() < deadline, "no window of 10 s")
                    screen.read()
                check_in(ENTER, screen.text)
                for part in ("latency: p50 ", "time: ", "Ctrl-C ends"):
                    check_in(part, screen.text)
                for seconds, length in full_screens(screen)[0]:
                    check(seconds == 10 and 8 < length < 10.5, f"lengths of the windows: {full_screens(screen)[0]}")
                screen.child.send_signal(signal.SIGINT)
                check_eq(screen.wait(), 0, "exit code")
                # The report follows on the restored screen.
                check_eq((screen.text.count(ENTER), screen.text.count(LEAVE)), (1, 1), "screens taken over and restored")
                check_in("run of small.onnx: ", screen.text[screen.text.index(LEAVE):])
                check_eq(termios.tcgetattr(screen.side), screen.before, "mode of the terminal")
            finally:
                server.kill()
                if screen is not None:
                    screen.close()


main()
