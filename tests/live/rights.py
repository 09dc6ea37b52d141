# SPDX-License-Identifier: MIT
"""An ordinary user with exactly the documented capabilities: events instead of polling, for every live command."""
import os
import shutil

from lib import ETWATCH, cases, check, check_eq, json_lines, main, run, skip, temp_dir

CAPS = "+bpf,+perfmon"


def run_with_documented_rights(arguments, folder):
    if os.getuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv to become an ordinary user")
    os.chmod(folder, 0o777)
    copy = os.path.join(folder, "etwatch")
    shutil.copy(ETWATCH, copy)
    os.chmod(copy, 0o755)
    return run(["--reuid", 65534, "--regid", 65534, "--clear-groups", f"--inh-caps=-all,{CAPS}", f"--ambient-caps={CAPS}",
                f"--bounding-set=-all,{CAPS}", copy, *arguments], program="setpriv", cwd="/")


@cases([("run", ["run", "--json", "-q", "--no-fallback", "--", "true"]),
        ("stat", ["stat", "-a", "--json", "-q", "--no-fallback", "--duration", "0.5"])])
def events_are_measured_with_the_documented_capabilities(arguments):
    with temp_dir() as folder:
        done = run_with_documented_rights(arguments, folder)
        if "not supported" in done.err:
            skip(done.err.strip())
        check_eq(done.code, 0, done.err)
        check_eq(json_lines(done.out)[0]["source"], "ebpf", "source")


@cases([("record", ["record", "-q", "--no-fallback", "-o", "FOLDER/x.pftrace", "--", "true"]),
        ("top", ["top", "--no-fallback", "--duration", "0.5"])])
def other_live_commands_work_with_the_documented_capabilities(arguments):
    with temp_dir() as folder:
        done = run_with_documented_rights([word.replace("FOLDER", folder) for word in arguments], folder)
        check_eq(done.code, 0, done.err)
        check("polling instead" not in done.err, done.err)
        if arguments[0] == "record":
            check(os.path.getsize(os.path.join(folder, "x.pftrace")) > 0, "the recording is empty")


main()
