# SPDX-License-Identifier: MIT
"""A recording that gets its manifest: the fields of a provider that no table knows.

The file of elastic's test provider has no schemas. Its manifest is put behind it in the way in which
an EventSource sends its own, and what Windows said about the same events is the measure.
"""
import json
import os
import re
import struct

from etlkit import buffer, corpus, events, manifest_event, walk
from lib import check, check_eq, main, temp_dir, test

PROVIDER = "06f0e00e-422a-4987-922b-2ec13e281ea4"
MANIFEST_ID = 0xFFFE
CHUNK = 3000


def with_manifest(data, t_raw, text, chunk):
    """The recording with one more buffer that holds the manifest, in chunks of so many bytes."""
    parts = [text[i:i + chunk] for i in range(0, len(text), chunk)]
    content = [manifest_event(PROVIDER, MANIFEST_ID, t_raw + i,
                              struct.pack("<BBBBHH", 1, 1, 0, 0x5B, len(parts), i) + part, opcode=0xFE)
               for i, part in enumerate(parts)]
    return data + buffer(content)


def text_of(value):
    """A value of ours as the golden file writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def same(want, got):
    """Whether our value is the one that Windows rendered as text."""
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, dict):  # {"Name": a, "Value": b} of a struct's two fields
        return isinstance(got, dict) and [text_of(v) for v in got.values()] == [want["Name"], want["Value"]]
    if isinstance(got, float):
        return abs(got - float(want)) <= 1e-5 * max(1.0, abs(got))
    if isinstance(got, (bool, str)) and text_of(got).lower() == want.lower():
        return True
    if re.fullmatch(r"0x[0-9A-Fa-f]+", want):
        return got == int(want, 16) or isinstance(got, str) and got.lower().removeprefix("0x") == want[2:].lower()
    if want.startswith("{"):
        return str(got).strip("{}").lower() == want.strip("{}").lower()
    if re.fullmatch(r"\d+-\d+-\d+T.*Z", want):  # not all write the same number of digits
        return str(got).rstrip("Z").rstrip("0").rstrip(".") == want.rstrip("Z").rstrip("0").rstrip(".")
    if want.startswith("Unknown HResult Error code: "):
        return got == int(want.rsplit(" ", 1)[1], 16)
    return text_of(got) == want


def read_with(chunk):
    path = corpus("etl", "beats-sample.etl")
    records = list(walk(path))
    with open(path, "rb") as file, open(corpus("reference", "beats-sample.man"), "rb") as manifest:
        data = with_manifest(file.read(), max(r.t_raw for r in records) + 10, manifest.read(), chunk)
    with temp_dir() as folder:
        copy = os.path.join(folder, "with_manifest.etl")
        with open(copy, "wb") as file:
            file.write(data)
        return events(copy)


def check_against_golden(read):
    with open(corpus("reference", "beats-sample.golden.json"), encoding="utf-8") as file:
        golden = json.load(file)
    ours = [e for e in read if e["provider"] == "Beats-ETW-TestProvider" and e["id"] != MANIFEST_ID]
    check_eq(len(ours), 30, "events of the provider")
    compared = 0
    for want in golden:
        event = next(e for e in ours if e["id"] == want["EventID"])
        check_eq((event["version"], event["opcode"], event["pid"], event["tid"]),
                 (want["Version"], want["OpcodeRaw"], want["ProcessID"], want["ThreadID"]), "header")
        check_eq(list(event["fields"]), [p["Name"] for p in want["Properties"]], "names of fields")
        for prop in want["Properties"]:
            got = event["fields"][prop["Name"]]
            check(same(prop["Value"], got), f"{prop['Name']} is {got!r}, not {prop['Value']!r}")
            compared += 1
    print(f"# {compared} fields equal")


@test
def a_manifest_that_comes_last_decodes_what_came_before_it():
    check_against_golden(read_with(60000))


@test
def a_manifest_in_chunks_is_put_together():
    check_against_golden(read_with(CHUNK))


main()
