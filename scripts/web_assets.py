#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web_assets.py --cache DIR OUT.c FILE...: the files of the dashboard as C arrays.

Files are compressed with gzip (fixed time stamp, so that the build is reproducible); those that programs read
(.json) are not. The charts are drawn by uPlot, which is not in the tree: its package is taken from DIR, or fetched by
name from the npm registry into DIR, and used only if its SHA-512 is the one below. Without it the program is built
all the same and says that the dashboard is missing.
"""
import base64
import gzip
import hashlib
import io
import os
import sys
import tarfile
import urllib.request

PACKAGE = "uplot-1.6.32.tgz"
URL = "https://registry.npmjs.org/uplot/-/" + PACKAGE
SHA512 = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
PARTS = {"package/dist/uPlot.iife.min.js": "uPlot.js", "package/dist/uPlot.min.css": "uPlot.css",
         "package/LICENSE": "uPlot.LICENSE.txt"}
MISSING = ("the dashboard is missing in this build, because uPlot could not be fetched from the npm registry; "
           "/metrics and /api/v1/ work")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".json": "application/json; charset=utf-8",
         ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}


def fetch(cache):
    """The bytes of the package, or None."""
    path = os.path.join(cache, PACKAGE)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        if os.environ.get("ETWATCH_NO_FETCH"):
            return None
        try:
            with urllib.request.urlopen(URL, timeout=20) as answer:
                data = answer.read(4 << 20)
        except (OSError, ValueError):
            return None
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != SHA512:
        print(f"web_assets.py: {PACKAGE} has another checksum: not used", file=sys.stderr)
        return None
    if not os.path.exists(path):
        os.makedirs(cache, exist_ok=True)
        with open(f"{path}.{os.getpid()}", "wb") as file:
            file.write(data)
        os.replace(f"{path}.{os.getpid()}", path)
    return data


def charts(cache):
    """{name: bytes} of uPlot; empty if it is not there."""
    package = fetch(cache)
    if package is None:
        return {}
    with tarfile.open(fileobj=io.BytesIO(package)) as tar:
        return {name: tar.extractfile(member).read() for member, name in PARTS.items()}


def array(number, data):
    lines = [f"static const uint8_t bytes_{number}[] = {{"]
    for at in range(0, len(data), 24):
        lines.append("    " + ",".join(str(byte) for byte in data[at:at + 24]) + ",")
    return "\n".join(lines + ["};"])


def main(argv):
    if len(argv) < 4 or argv[1] != "--cache":
        sys.exit(__doc__)
    cache, out = argv[2], argv[3]
    files = {}
    for path in argv[4:]:
        with open(path, "rb") as file:
            files[os.path.basename(path)] = file.read()
    library = charts(cache)
    if library:
        files.update(library)
    else:
        files = {name: data for name, data in files.items() if name.endswith(".json")}
    text = ["/* SPDX-License-Identifier: MIT */", "/* Made by scripts/web_assets.py. */",
            '#include "serve/routes.h"', ""]
    rows = []
    for number, (name, data) in enumerate(sorted(files.items())):
        kind = os.path.splitext(name)[1]
        packed = kind != ".json"
        stored = gzip.compress(data, 9, mtime=0) if packed else data
        text.append(array(number, stored))
        rows.append(f'    {{"/{name}", "{TYPES[kind]}", "{hashlib.sha256(data).hexdigest()[:16]}", '
                    f'bytes_{number}, sizeof bytes_{number}, {str(packed).lower()}, {str(kind == ".html").lower()}}},')
    text += ["const struct ew_asset ew_assets[] = {", *rows, "    {NULL, NULL, NULL, NULL, 0, false, false},", "};",
             "const char *const ew_assets_missing = " + ("NULL;" if library else f'"{MISSING}";'), ""]
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
