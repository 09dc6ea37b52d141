# SPDX-License-Identifier: MIT
"""Copies of the public headers as an older and as a newer release would have them.

older: every struct that may grow lacks its last fields, and the last metric is not there.
newer: every such struct has fields appended, and there is one more metric.
Structs are recognised by their first member, `uint32_t size`; batches are only made newer.
"""
import glob
import os
import re

STRUCT = re.compile(r"^struct (etwatch_\w+) \{\n(.*?)^\};\n", re.S | re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUTURE = "    uint64_t etwatch_future[2];\n"
BATCHES = ("etwatch_samples", "etwatch_events", "etwatch_windows", "etwatch_devices")


def structs(text):
    """(name, body) of every struct definition, comments removed."""
    return [(found.group(1), COMMENT.sub("", found.group(2))) for found in STRUCT.finditer(text)]


def grows(body):
    return COMMENT.sub("", body).lstrip().startswith("uint32_t size;")


def statements(body):
    """Where each declaration of a body without comments begins."""
    starts, at = [], 0
    for end in re.finditer(r";", body):
        starts.append(at)
        at = end.end()
    return starts


def cut(body):
    """Without the last declaration, or the last two if the last is of 4 bytes: the size must change."""
    body = COMMENT.sub("", body)
    starts = statements(body)
    last = body[starts[-1]:]
    drop = 2 if re.match(r"\s*(u?int32_t)\s[^*]*;", last) and len(starts) > 3 else 1
    return body[:starts[-drop]] + "\n"


def older(text):
    def change(found):
        name, body = found.groups()
        if not grows(body) or name in BATCHES or "ETWATCH_X" in body:
            return found.group(0)
        return f"struct {name} {{\n{cut(body)}}};\n"

    text = STRUCT.sub(change, text)
    # The last row of a list of metrics: the row before it becomes the last.
    return re.sub(r"(#define ETWATCH_(?:SYSTEM_|DEVICE_)?METRICS\(X\)(?:.*\\\n)+?.*?)\s*\\\n *X\([^)]*\)\n(?!.*\\\n)", r"\1\n", text)


def newer(text):
    def change(found):
        name, body = found.groups()
        if not grows(body) or "ETWATCH_X" in body:
            return found.group(0)
        return f"struct {name} {{\n{body}{FUTURE}}};\n"

    text = STRUCT.sub(change, text)
    text = re.sub(r"(#define ETWATCH_METRICS\(X\)(?:.*\\\n)+.*\))\n", r"\1 \\\n    X(future_count, uint64_t, counter)\n", text)
    # Rows of fields in a fixed order cannot name the new one.
    return re.sub(r"(struct etwatch_\w+ batch = \{.*?items)\};", r"\1, {0, 0}};", text)


def write(root, folder, change):
    """The headers of root, changed, as folder/etwatch/*.h; returns the names of all structs that grow."""
    names = set()
    os.makedirs(os.path.join(folder, "etwatch"), exist_ok=True)
    for path in sorted(glob.glob(os.path.join(root, "include", "etwatch", "*.h"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        names |= {name for name, body in structs(text) if grows(body)}
        with open(os.path.join(folder, "etwatch", os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(change(text))
    return names
