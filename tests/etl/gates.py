# SPDX-License-Identifier: MIT
"""The table that decides what the emulator logs (tests/windows/etw_gates.c) against real recordings.

The group mask in a recording is what its session had enabled. So every kernel event in it must be one that the table
gives for this mask; and each row that claims recordings as its evidence must have events in at least one of them.
"""
import collections

from commandkit import run_tool
from etlkit import corpus, corpus_rows
from lib import cases, check, check_eq, main, skip, test


def gates(path):
    """Kinds of events that the mask does not give, and by row of the table: its name, its evidence, its events."""
    result = run_tool("etw_replay", "gates", path)
    check_eq(result.code, 0, f"exit code of etw_replay gates ({result.err.strip()})")
    words = [line.split() for line in result.out.splitlines()]
    refused = [f"{count} events of group {group}, opcode {opcode}" for kind, group, opcode, count in
               (w for w in words if w[0] == "refused")]
    return refused, [w[2:] for w in words if w[0] == "row"]


NAMES = [row["file"] for row in corpus_rows() if row["file"].endswith(".etl")] or ["any"]


@cases([(name, name) for name in NAMES])
def a_recording_has_only_events_that_its_mask_gives(name):
    refused, _ = gates(corpus("etl", name))
    check_eq(refused, [], "events without an enabled row")


@test
def a_row_with_recordings_as_its_evidence_has_events_in_one():
    corpus("etl")
    given, evidence = collections.Counter(), {}
    for name in NAMES:
        for number, (gate, kind, count) in enumerate(gates(corpus("etl", name))[1]):
            given[number] += int(count)
            evidence[number] = (gate, kind)
    missing = [f"{number} {gate}" for number, (gate, kind) in evidence.items() if kind == "recording" and given[number] == 0]
    check_eq(missing, [], "rows without an event")
    # The other way round: evidence that the table does not mention would be a row to correct.
    found = [f"{number} {gate}" for number, (gate, kind) in evidence.items() if kind != "recording" and given[number] > 0]
    check_eq(found, [], "rows with events that are not marked")
    check(any(kind == "recording" for _, kind in evidence.values()) or skip("no row"), "no row claims recordings")


main()
