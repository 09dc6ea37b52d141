# SPDX-License-Identifier: MIT
"""Breaks chosen lines on purpose and counts how many breaks the tests detect.

usage: scripts/mutate.py [--count N] [--seed N] [--only PART-OF-A-PATH] [--again LOG]

Works in a copy of the tree (build-mutate/tree), one break at a time: build with the sanitizers, run the tests of that
file, restore. A break that does not compile is not counted, nor is one that changes nothing (a comment, the equal case of
a minimum). --again tries the survivors in the output of an earlier run, after new tests. Ends with the kill rate and the
survivors; exit status 1 below 90 %. For the night: a break takes two to ten seconds.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "build-mutate")
TREE, BUILD = os.path.join(HOME, "tree"), os.path.join(HOME, "build")

# Parsers, limits, rights, masking and accounting, each with its quick tests: unit tests by name, "replay_NAME" for the
# corpus of a fuzz target, "SUITE/NAME" for a script that runs the program.
SAMPLER = ["sampler_cpu", "sampler_rounds", "sampler_loss", "sampler_identity", "sampler_life", "sampler_missed",
           "sampler_ticks", "sampler_walk", "sampler_gauges", "monitor"]
PERFETTO = ["perfetto", "trace", "waits", "account", "replay_pftrace"]
TARGETS = {
    "src/base/alloc.c": ["base", "limits", "etl_damage"],
    "src/base/bytes.c": ["bytes", "proc_text", "replay_bytes"],
    "src/base/buf.c": ["buf", "sink", "quote", "replay_escape"],
    "src/model/mask.c": ["mask", "replay_mask"],
    "src/model/windows_cmdline.c": ["mask", "replay", "export"],
    "src/os/linux/confine.c": ["confine"],
    "src/os/linux/rights.c": ["confine", "os_linux"],
    "src/os/linux/file.c": ["confine", "os_linux", "os"],
    "src/source/ebpf/log.c": ["ebpf_log", "monitor"],
    "src/source/pftrace/inflate.c": ["inflate", "perfetto", "replay_inflate"],
    "src/source/pftrace/reader.c": PERFETTO,
    "src/source/pftrace/sched.c": PERFETTO,
    "src/source/pftrace/etwatch_events.c": PERFETTO,
    "src/source/etl/xpress.c": ["xpress", "etl_round", "replay_xpress"],
    "src/source/etl/merge.c": ["etl_reader", "etl_damage", "etl_files", "replay", "replay_etl_whole"],
    "src/cli/child_linux.c": ["child"],
    "src/cli/record_file.c": ["record_file"],
    "src/cli/place_linux.c": ["place", "record_file", "contract/output_files"],
    "src/cli/quote.c": ["quote"],
    "src/sink/perfetto_sched.c": ["perfetto", "trace", "account"],
    "src/sink/csv.c": ["sink", "buf"],
    "src/sampler/account.c": ["account", "trace", "perfetto"],
    "src/sampler/distribute.c": SAMPLER,
    "src/sampler/budget.c": ["budget"],
    "src/serve/request.c": ["serve", "replay_http_request"],
    "src/serve/range.c": ["serve"],
    "src/span/receiver_linux.c": ["span_marks"],
    "src/span/ring_reader.c": ["span_marks", "span", "replay_span_ring"],
    "src/tally/run.c": ["tally", "tally_work", "tally_facts", "tally_pmc", "tally_random", "etl_truth", "replay"],
    "src/monitor/queue.c": ["queue", "monitor_threads"],
}
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), ("return true", "return false"),
         ("return false", "return true"), ("++;", "--;"), (" += ", " -= "), (" -= ", " += ")]
STATEMENT = re.compile(r"^\s+(?!return|break|continue|goto|case|default|static|const|struct|enum|typedef|else|if|for|"
                       r"while|switch|do|uint|int|size_t|bool|char|double)[\w>.\[\]*&-]+.*;$")


# a < b ? a : b is the same with <=.
EXTREME = re.compile(r"([\w.>\[\]-]+) [<>]=? ([\w.>\[\]-]+) \? (?:\1 : \2|\2 : \1)\b")


def breaks(path):
    """(line number, new line) for every way to break the file."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    comment = False
    for number, line in enumerate(lines):
        comment = comment or line.lstrip().startswith("/*")
        if not comment and not line.startswith(("#", "static const", " *", "enum")):
            code, mark, remark = line.partition("/*")
            for old, new in SWAPS:
                if old in code and not (old.strip()[0] in "<>" and EXTREME.search(code)):
                    yield number, code.replace(old, new, 1) + mark + remark
            if STATEMENT.match(line) and "(void)" not in line and "CHECK" not in line:
                yield number, line[:len(line) - len(line.lstrip())] + ";"
        comment = comment and "*/" not in line


def copy_tree():
    shutil.rmtree(TREE, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for name in filter(None, listed.decode().split("\0")):
        if os.path.isfile(os.path.join(ROOT, name)):
            os.makedirs(os.path.dirname(os.path.join(TREE, name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), os.path.join(TREE, name))
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["meson", "setup", BUILD, TREE, "-Debpf=auto", "-Doptimization=1", "-Ddebug=false",
                        "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dc_args=-fno-sanitize-recover=all -w"],
                       check=True, stdout=subprocess.DEVNULL)


def commands(tests):
    """(what to build, [command with its environment])."""
    targets, run = [], []
    for name in tests:
        if "/" in name:
            targets += ["etwatch"]
            run.append(([sys.executable, os.path.join(TREE, "tests", name + ".py")],
                        {"PYTHONPATH": os.path.join(TREE, "tests"), "ETWATCH_BUILD": BUILD,
                         "ETWATCH_BIN": os.path.join(BUILD, "etwatch"), "PYTHONDONTWRITEBYTECODE": "1"}))
        elif name.startswith("replay_"):
            targets.append(f"tests/{name}")
            run.append(([os.path.join(BUILD, "tests", name),
                         os.path.join(TREE, "tests", "fuzz", "corpus", name[len("replay_"):])], {}))
        else:
            targets.append(f"tests/test_{name}")
            run.append(([os.path.join(BUILD, "tests", f"test_{name}")], {}))
    return targets, run


def passes(tests):
    """None: does not compile. Otherwise whether all tests pass. They run in a folder of their own."""
    targets, run = commands(tests)
    if subprocess.run(["ninja", "-C", BUILD, *targets], check=False, stdout=subprocess.DEVNULL).returncode != 0:
        return None
    for command, environment in run:
        try:
            done = subprocess.run(command, check=False, cwd=HOME, timeout=120, env={**os.environ, **environment},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (0, 77):
            return False
    return True


def line_of(path, number):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().split("\n")[number]


def known(tests):
    """Those that exist, the slow ones last."""
    def file_of(name):
        return f"{name}.py" if "/" in name else \
            f"fuzz/fuzz_{name[len('replay_'):]}.c" if name.startswith("replay_") else f"unit/test_{name}.c"
    found = [name for name in tests if os.path.exists(os.path.join(ROOT, "tests", file_of(name)))]
    return sorted(found, key=lambda name: "/" in name)


def survivors_of(log):
    """{(path, broken line)} of an earlier run; line numbers may have changed."""
    with open(log, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(":", 2) for line in file if "  ->  " in line]
    return {(path, *change.strip().split("  ->  ")) for path, _, change in rows}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", metavar="LOG")
    arguments = parser.parse_args()
    copy_tree()
    targets = {path: known(tests) for path, tests in TARGETS.items()
               if arguments.only in path and os.path.exists(os.path.join(ROOT, path))}
    every = [(path, *one) for path in targets for one in breaks(path)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    if arguments.again:
        survivors = survivors_of(arguments.again)
        chosen = [(path, number, line) for path, number, line in every
                  if (path, line_of(path, number).strip(), line.strip()) in survivors]
    for path, tests in targets.items():
        if any(path == other for other, _, _ in chosen) and passes(tests) is not True:
            sys.exit(f"mutate: the tests of {path} ({', '.join(tests)}) fail without any break")
    killed, survivors = 0, []
    for path, number, line in chosen:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines = file.read().split("\n")
        before, lines[number] = lines[number], line
        with open(os.path.join(TREE, path), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        result = passes(targets[path])
        shutil.copyfile(os.path.join(ROOT, path), os.path.join(TREE, path))
        if result:
            survivors.append(f"{path}:{number + 1}: {before.strip()}  ->  {line.strip()}")
            print(survivors[-1], flush=True)
        killed += result is False
    counted = killed + len(survivors)
    rate = 100 * killed / counted if counted else 0
    print(f"{len(every)} possible breaks, {counted} tried (seed {arguments.seed}): {killed} detected, "
          f"{len(survivors)} survived: kill rate {rate:.0f} %")
    return 0 if rate >= 90 else 1


if __name__ == "__main__":
    sys.exit(main())
