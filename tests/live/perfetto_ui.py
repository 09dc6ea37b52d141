# SPDX-License-Identifier: MIT
"""A recording in Perfetto's own UI, as people see it: no error badge, every process has its name.

ETWATCH_SCREENSHOT=FILE writes the picture of docs/recording.md."""
import os

from etlkit import recording
from lib import BUILD, check, check_eq, main, need_ebpf, run, temp_dir, test
import toolkit
import uikit

BROKEN = "select name, value from stats where value != 0 and severity in ('error', 'data_loss')"
NAMELESS = "select pid from process where pid != 0 and ifnull(name, '') = ''"
NAMELESS_THREADS = """select tid from thread join process using (upid)
    where pid != 0 and pid = tid and ifnull(thread.name, '') = ''"""
OVERVIEW = "select distinct s.name from slice s join track t on s.track_id = t.id where t.name = 'watched processes'"


def check_page(page, words):
    check_eq((page["badge"], page["dialog"]), ([], []), "errors on the screen")
    for word in words:
        check(any(word in name for name in page["tracks"]), f"no track {word!r}: {page['tracks'][:40]}")
    unnamed = [name for name in page["tracks"] if name.startswith("Process ")]
    check_eq(unnamed, [], "processes without a name on the screen")


def record(folder):
    path = os.path.join(folder, "run.pftrace")
    program = os.path.join(BUILD, "examples", "workload")
    result = run(["record", "-o", path, "--", program])
    check_eq(result.code, 0, f"exit code ({result.err.strip()})")
    check("lost: 0" in result.err, f"the recording is not complete: {result.err}")
    return path


@test
def perfettos_trace_processor_finds_no_error_in_a_recording_and_knows_every_name():
    need_ebpf()
    with temp_dir() as folder:
        broken, nameless, threads, overview = toolkit.sql(record(folder), BROKEN, NAMELESS, NAMELESS_THREADS, OVERVIEW)
    check_eq(broken, [], "import errors and losses")
    check_eq(nameless, [], "processes without a name")
    check_eq(threads, [], "processes with a first thread without a name")
    check_eq(overview, [["workload"]], "watched processes in the overview")


@test
def perfettos_ui_shows_a_recording_without_an_error():
    need_ebpf()
    with temp_dir() as folder:
        page = uikit.open_in_ui(record(folder), parameters=uikit.PICTURE)
    check_page(page, ("CPU 0 Scheduling", "etwatch", "workload "))
    if "ETWATCH_SCREENSHOT" in os.environ:
        with open(os.environ["ETWATCH_SCREENSHOT"], "wb") as file:
            file.write(page["png"])


@test
def perfettos_ui_shows_an_exported_etl_without_an_error():
    with recording("mixed", "--events", 20000) as path, temp_dir() as folder:
        trace = os.path.join(folder, "exported.pftrace")
        result = run(["export", "-q", "-o", trace, path])
        check_eq(result.code, 0, f"exit code ({result.err})")
        broken, nameless = toolkit.sql(trace, BROKEN, NAMELESS)
        check_eq((broken, nameless), ([], []), "import errors, and processes without a name")
        check_page(uikit.open_in_ui(trace), ("CPU 0 Scheduling", "explorer.exe "))


main()
