# SPDX-License-Identifier: MIT
"""Names of programs in recordings: whole, although the events have them in an unknown code page."""
import os

from commandkit import run
from etlkit import make_etl
from lib import cases, check_eq, json_lines, main, temp_dir

NAMES = {5000: "café.exe", 5004: "テスト.exe", 5008: "тест.exe", 5012: "plain.exe", 5016: "na?ve.exe"}


def output(*arguments):
    with temp_dir() as folder:
        path = os.path.join(folder, "x.etl")
        make_etl("code-page", path)
        return json_lines(run([*arguments, "--json", path]).out)


@cases([("report", "process", "report"), ("samples", "exit", "stat"), ("events", "event", "events", "--event", "Process/*")])
def a_name_is_that_of_the_command_line_where_the_event_has_a_code_page(kind, *arguments):
    found = {o["pid"]: o["name"] for o in output(*arguments) if o["type"] == kind and o["pid"] in NAMES}
    wanted = dict(NAMES)
    if kind == "event":
        wanted[5016] = found[5016]  # how a letter of an unknown code page is shown is not the point here
    check_eq(found, wanted, "names")


@cases([("a letter", "café"), ("a glob", "тест*"), ("kana", "テスト")])
def a_name_filter_finds_it(name):
    found = [o["name"] for o in output("report", "-n", name) if o["type"] == "process"]
    check_eq([name.rstrip("*") + ".exe"], found, "processes")


main()
