# SPDX-License-Identifier: MIT
"""The API reference: every public name has a docstring with an example, help() shows them, and pdoc renders all."""
import ast
import inspect
import os
import pydoc
import re

import etwatch
from etlkit import make_etl
from examplekit import examples
from lib import ROOT, check, check_eq, check_in, has_ebpf, main, run, temp_dir, test
from toolkit import environment, need, python

NAMES = [name for name in etwatch.__all__ if not name.startswith("__")]
OBJECTS = {name: getattr(etwatch, name) for name in NAMES}
# They take addresses of the library's memory.
LOW_LEVEL = ("Batch.take", "Table.from_stream")
DOCUMENTED = {name: thing for name, thing in OBJECTS.items() if inspect.isclass(thing) or callable(thing)}


def own_members(kind):
    """(name, docstring) of the public methods and properties that a class of ours defines."""
    for name, member in vars(kind).items():
        if name.startswith("_") or not (callable(getattr(kind, name)) or isinstance(member, property)):
            continue
        if inspect.isclass(member):
            continue
        yield name, member.__doc__ if isinstance(member, property) else getattr(kind, name).__doc__


@test
def every_public_name_has_a_docstring_with_an_example_that_parses():
    for name, thing in DOCUMENTED.items():
        found = examples(thing.__doc__)
        check(found and found[0].strip(), f"{name} has no example")
        for code in found:
            ast.parse(code)


@test
def every_public_method_and_property_has_a_docstring():
    for name, thing in DOCUMENTED.items():
        if not inspect.isclass(thing):
            continue
        for member, text in own_members(thing):
            check(text and text.strip(), f"{name}.{member} has no docstring")
            found = examples(text)
            check(found or f"{name}.{member}" in LOW_LEVEL or isinstance(vars(thing)[member], property),
                  f"{name}.{member} has no example")
            for code in found:
                ast.parse(code)


@test
def every_example_runs():
    with temp_dir() as folder:
        recording = os.path.join(folder, "boot.etl")
        make_etl("consumers", recording)
        result = run([os.path.join(ROOT, "tests", "examplekit.py"), recording], program=python(), timeout=110,
                     env=environment(**({} if has_ebpf() else {"ETWATCH_NO_EVENTS": "1"})))
    last = (result.out.splitlines() or [""])[-1]
    check_eq(result.code, 0, result.out[-4000:] + result.err)
    count = re.fullmatch(r"(\d+) examples, 0 failed", last)
    check(count and int(count.group(1)) > 100, last)


@test
def help_of_the_package_starts_with_the_three_things_and_names_everything():
    text = pydoc.plain(pydoc.render_doc(etwatch))
    head = text[:2500]
    for word in ("etwatch.run(", "etwatch.watch(", "etwatch.open(", "ETWMonitor", "Process"):
        check_in(word, head, "the beginning of help(etwatch)")
    for name in NAMES:
        check(re.search(rf"\b{name}\b", text), f"help(etwatch) does not have {name}")


@test
def pdoc_renders_every_public_name():
    need("pdoc")
    with temp_dir() as folder:
        result = run([os.path.join(ROOT, "scripts", "reference.py"), folder], program=python(), env=environment(),
                     timeout=110)
        check_eq(result.code, 0, result.err)
        with open(os.path.join(folder, "etwatch.html"), encoding="utf-8") as file:
            page = file.read()
    for name in NAMES:
        check_in(f'id="{name}"', page, "the reference")
    check("<pre><code>" in page or 'class="pdoc-code codehilite"' in page, "the examples are not shown as code")


main()
