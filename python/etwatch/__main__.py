# SPDX-License-Identifier: MIT
"""`python -m etwatch COMMAND ...` and the console script `etwatch`: run the etwatch program.

It is the program that `./dev build` builds; a wheel carries it next to the library.
"""
import os
import subprocess
import sys
from typing import List, NoReturn, Optional


def program() -> str:
    """The path of the program that belongs to this package."""
    name = "etwatch.exe" if sys.platform == "win32" else "etwatch"
    package = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(package))
    folders = [os.path.join(package, "lib")]
    if os.path.isfile(os.path.join(root, "include", "etwatch", "etwatch.h")):
        folders.append(os.path.join(root, "build-windows" if sys.platform == "win32" else "build"))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(f"the program {name} is not in {' or '.join(folders)}; "
                            "in a checkout `./dev build` builds it")


def main(arguments: Optional[List[str]] = None) -> NoReturn:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        path = program()
    except FileNotFoundError as error:
        sys.stderr.write(f"etwatch: {error}\n")
        sys.exit(1)
    if sys.platform != "win32":
        os.execv(path, ["etwatch", *arguments])
    # Windows has no exec. The child receives Ctrl-C too, so wait for it and return its status.
    with subprocess.Popen([path, *arguments]) as child:
        while True:
            try:
                sys.exit(child.wait())
            except KeyboardInterrupt:
                continue


if __name__ == "__main__":
    main()
