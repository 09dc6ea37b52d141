#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exports.py OUTPUT HEADER...: a module definition file with every function that public headers declare.

Functions marked with ETWATCH_API in a header are exported: on Linux by the linker's version script, on Windows by
this list.
"""
import re
import sys

FUNCTION = re.compile(r"^ETWATCH_API\s[^;(]*?\b(etwatch_\w+)\s*\(", re.MULTILINE)


def exported(paths):
    names = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = FUNCTION.findall(text)
        if len(found) != len(re.findall(r"^ETWATCH_API\b", text, re.MULTILINE)):
            raise SystemExit(f"{path}: cannot parse a declaration with ETWATCH_API")
        names.update(found)
    return sorted(names)


def main():
    output, *headers = sys.argv[1:]
    with open(output, "w", encoding="utf-8") as file:
        file.write("EXPORTS\n" + "".join(f"    {name}\n" for name in exported(headers)))


if __name__ == "__main__":
    main()
