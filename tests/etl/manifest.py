# SPDX-License-Identifier: MIT
"""A provider that no table knows, and its manifest in the form in which an EventSource sends its own.

The manifest is that of elastic's test provider. Its recording has no schemas: the manifest is appended to it. What
Windows reported about two events of another recording is available as text: these events are rebuilt from the text
and the manifest, and must be decoded to the same values.
"""
import datetime
import json
import os
import re
import struct
import uuid
import xml.etree.ElementTree

from etlkit import buffer, corpus, events, manifest_event, small_etl, walk
from lib import cases, check, check_eq, main, temp_dir, test

PROVIDER = "06f0e00e-422a-4987-922b-2ec13e281ea4"
MANIFEST_ID = 0xFFFE
SPACE = "{http://schemas.microsoft.com/win/2004/08/events}"


def manifest_text():
    with open(corpus("reference", "beats-sample.man"), "rb") as file:
        return file.read()


def manifest_chunks(t_raw, chunk):
    text = manifest_text()
    parts = [text[i:i + chunk] for i in range(0, len(text), chunk)]
    return [manifest_event(PROVIDER, MANIFEST_ID, t_raw + i,
                           struct.pack("<BBBBHH", 1, 1, 0, 0x5B, len(parts), i) + part, opcode=0xFE)
            for i, part in enumerate(parts)]


def read_back(data):
    with temp_dir() as folder:
        path = os.path.join(folder, "with_manifest.etl")
        with open(path, "wb") as file:
            file.write(data)
        return [e for e in events(path) if e["id"] in (1, 2)]


def golden():
    with open(corpus("reference", "beats-sample.golden.json"), encoding="utf-8") as file:
        return json.load(file)


# ----------------------------------------------------------- from text to bytes


def pack_time(text, system):
    whole, part = text.rstrip("Z").split(".")
    when = datetime.datetime.fromisoformat(whole)
    if system:
        return struct.pack("<8H", when.year, when.month, when.isoweekday() % 7, when.day, when.hour, when.minute,
                           when.second, int(part[:3]))
    since = when - datetime.datetime(1601, 1, 1)
    return struct.pack("<Q", (since.days * 86400 + since.seconds) * 10_000_000 + int(part[:7]))


def pack_sid(text):
    parts = [int(part) for part in text.split("-")[1:]]
    return struct.pack("<BB", parts[0], len(parts) - 2) + struct.pack(">Q", parts[1])[2:] + \
        b"".join(struct.pack("<I", part) for part in parts[2:])


def number(text):
    return int(text.rsplit(" ", 1)[-1], 0)


PACK = {
    "win:UnicodeString": lambda v: v.encode("utf-16le") + b"\0\0", "win:AnsiString": lambda v: v.encode() + b"\0",
    "win:Int8": lambda v: struct.pack("<b", number(v)), "win:UInt8": lambda v: struct.pack("<B", number(v)),
    "win:Int16": lambda v: struct.pack("<h", number(v)), "win:UInt16": lambda v: struct.pack("<H", number(v)),
    "win:Int32": lambda v: struct.pack("<i", number(v)), "win:UInt32": lambda v: struct.pack("<I", number(v)),
    "win:Int64": lambda v: struct.pack("<q", number(v)), "win:UInt64": lambda v: struct.pack("<Q", number(v)),
    "win:HexInt32": lambda v: struct.pack("<I", number(v)), "win:HexInt64": lambda v: struct.pack("<Q", number(v)),
    "win:Pointer": lambda v: struct.pack("<Q", number(v)), "win:Boolean": lambda v: struct.pack("<I", v == "true"),
    "win:Float": lambda v: struct.pack("<f", float(v)), "win:Double": lambda v: struct.pack("<d", float(v)),
    "win:Binary": lambda v: bytes.fromhex(v[2:]), "win:GUID": lambda v: uuid.UUID(v).bytes_le,
    "win:FILETIME": lambda v: pack_time(v, False), "win:SYSTEMTIME": lambda v: pack_time(v, True),
    "win:SID": pack_sid,
}


def templates():
    """{event id: template element}"""
    root = xml.etree.ElementTree.fromstring(manifest_text())
    by_id = {t.get("tid"): t for t in root.iter(SPACE + "template")}
    return {int(e.get("value")): by_id[e.get("template")] for e in root.iter(SPACE + "event")}


def pack(element, value):
    if element.tag == SPACE + "struct":
        return b"".join(pack(member, item[member.get("name")]) for item in value for member in element)
    one = PACK[element.get("inType")]
    return b"".join(map(one, value)) if isinstance(value, list) else one(value)


def golden_event(want, t_raw):
    values = {prop["Name"]: prop["Value"] for prop in want["Properties"]}
    payload = b"".join(pack(element, values[element.get("name")]) for element in templates()[want["EventID"]])
    return manifest_event(PROVIDER, want["EventID"], t_raw, payload, want["Version"], want["OpcodeRaw"],
                          want["ProcessID"], want["ThreadID"], want["KeywordsRaw"])


# -------------------------------------------------------------- back to text


def same(want, got):
    """Whether our value is the one that Windows rendered as text."""
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, dict):
        return isinstance(got, dict) and all(same(want[name], got[name]) for name in want)
    if isinstance(got, bool):
        return want == str(got).lower()
    if isinstance(got, float):
        return struct.pack("<f", got) == struct.pack("<f", float(want))
    if isinstance(got, int):
        return got == number(want)
    if re.match(r"\d+-\d+-\d+T", want):  # the number of digits varies
        return got.rstrip("Z").rstrip("0") == want.rstrip("Z").rstrip("0")
    return got.lower() in (want.lower(), want.lower().strip("{}"), want.lower().removeprefix("0x"))


def check_golden(read):
    compared = 0
    check_eq([e["id"] for e in read], [want["EventID"] for want in golden()], "events")
    for event, want in zip(read, golden()):
        check_eq((event["provider"], event["event"]),
                 (want["ProviderName"], f"{want['Task']}/{want['Opcode']}"), "name")
        check_eq((event["version"], event["opcode"], event["pid"], event["tid"]),
                 (want["Version"], want["OpcodeRaw"], want["ProcessID"], want["ThreadID"]), "header")
        check_eq(list(event["fields"]), [prop["Name"] for prop in want["Properties"]], "names of fields")
        for prop in want["Properties"]:
            got = event["fields"][prop["Name"]]
            check(same(prop["Value"], got), f"{prop['Name']} is {got!r}, not {prop['Value']!r}")
            compared += 1
    print(f"# {compared} fields")


@cases([("in one piece", 60000), ("in chunks", 3000)])
def events_rebuilt_from_windows_text_decode_to_the_same_values(chunk):
    what = [golden_event(want, 1000 + i) for i, want in enumerate(golden())]
    check_golden(read_back(small_etl(what) + buffer(manifest_chunks(2000, chunk))))


@test
def chunks_with_events_between_them_are_assembled():
    what = [golden_event(want, 1001 + 2 * i) for i, want in enumerate(golden())]
    chunks = [bytes(c) for c in manifest_chunks(1000, 3000)]
    for i, chunk in enumerate(chunks):
        chunks[i] = chunk[:0x10] + struct.pack("<q", 1000 + 2 * i) + chunk[0x18:]
    merged = sorted(what + chunks, key=lambda e: struct.unpack_from("<q", e, 0x10)[0])
    check_golden(read_back(small_etl(merged)))


@test
def a_manifest_at_the_end_decodes_a_real_recording():
    path = corpus("etl", "beats-sample.etl")
    records = list(walk(path))
    with open(path, "rb") as file:
        data = file.read() + buffer(manifest_chunks(max(r.t_raw for r in records) + 10, 60000))
    read = read_back(data)
    names = {want["EventID"]: [prop["Name"] for prop in want["Properties"]] for want in golden()}
    check_eq(len(read), 30, "events of the provider")
    for event in read:
        check_eq(list(event["fields"]), names[event["id"]], "names of fields")
        check(all(value is not None for value in event["fields"].values()), f"a field without a value: {event}")


main()
