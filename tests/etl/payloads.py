# SPDX-License-Identifier: MIT
"""Payloads of kernel events with the fields that another decoder found in them, put into recordings.

The table gives class, version, pointer size, bytes and fields, with the names and notation of the tests of the
other decoder. RENAMED lists the documented names that differ. Each payload is read twice: with the kernel's own
short header, and with the GUID of its class in a classic header.
"""
import csv
import datetime
import ipaddress
import os
import re
import struct

from etlkit import classic_event, corpus, events, kernel_event, small_etl
from lib import check, check_eq, main, temp_dir, test

# The group number that replaces the GUID of a class in the kernel's own headers.
GROUPS = {"68fdd900-4a3e-11d1-84f4-0000f80464e3": 0, "3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c": 1,
          "3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c": 2, "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c": 3,
          "90cbdc39-4a3e-11d1-84f4-0000f80464e3": 4, "3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c": 5,
          "9a280ac0-c8e0-11d1-84e2-00c04fb998a2": 6, "ae53722e-c863-11d2-8659-00c04fa321a1": 9,
          "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc": 0xF, "2cb15d1d-5fc1-11d2-abe1-00a0c911f518": 0x14,
          "def2fe46-7bd6-4b80-bd94-f57fe20d0ce3": 0x18}
RENAMED = {"Image": {"BaseAddress": "ImageBase", "ModuleSize": "ImageSize", "ImageCheckSum": "ImageChecksum",
                     "ImageFileName": "FileName"}}
# Not separate fields here, but members of the time zone field.
NESTED = {"Bias", "StandardName", "StandardBias", "DaylightName", "DaylightBias"}


def rows():
    with open(corpus("reference", "kernel_payloads.tsv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def wanted_fields(row):
    """[(name, value)]; the value is a number, a text, or None where the table has only its symbol."""
    text = row["expected_fields"].replace(" [+nested values in source]", "")
    parts = re.split(r"(?:^|; )(\w+)=", text)[1:]
    for name, value in zip(parts[::2], parts[1::2]):
        number = re.fullmatch(r"(-?(?:0x[0-9A-Fa-f]+|\d+))(?:U?L?L?)", value)
        strings = re.findall(r'L?"((?:[^"\\]|\\.)*)"', value)
        if number:
            yield name, int(number[1], 0)
        elif strings:
            yield name, "".join(strings).replace("\\\\", "\\")
        else:
            yield name, None


def filetime(text):
    """100 ns since 1601 of our 2014-02-18T01:38:23.4768955Z."""
    match = re.fullmatch(r"(\d+-\d+-\d+T\d+:\d+:\d+)(?:\.(\d{1,9}))?Z", text)
    if not match:
        return None
    since = datetime.datetime.fromisoformat(match[1]) - datetime.datetime(1601, 1, 1)
    return (since.days * 86400 + since.seconds) * 10_000_000 + int(((match[2] or "") + "0000000")[:7])


def numbers(name, value, bits):
    """Every number that one of our values may represent in the table."""
    if isinstance(value, bool):
        return {int(value)}
    if isinstance(value, int):
        wide = {value, value & 0xFFFFFFFF if value < 0 else value, value & (1 << bits) - 1}
        return wide | {struct.unpack(">H", struct.pack("<H", value))[0]} if name in ("dport", "sport") else wide
    if isinstance(value, str) and name in ("daddr", "saddr"):
        return {int.from_bytes(ipaddress.ip_address(value).packed, "little")}
    if isinstance(value, str) and filetime(value) is not None:
        return {filetime(value)}
    return set()


def in_payload(text, payload):
    return text.encode("utf-16le") in payload or text.encode("latin-1", "replace") in payload


def check_event(row, event):
    bits, payload = int(row["ptr_bits"]), bytes.fromhex(row["payload_hex"])
    renamed = RENAMED.get(row["category"], {})
    for name, want in wanted_fields(row):
        if name in NESTED or name == "Padding":
            continue
        ours = name if name in event["fields"] else renamed.get(name, name)
        check(ours in event["fields"], f"{row['test']}: {ours} is missing: {event['fields']}")
        got = event["fields"][ours]
        if isinstance(want, int):
            check(want in numbers(name, got, bits), f"{row['test']}: {ours} is {got!r}, not {want} ({want:#x})")
        elif isinstance(want, str):
            check_eq(" ".join(got.split()), " ".join(want.split()), f"{row['test']}: {ours}")  # as in the table
        else:
            check(isinstance(got, str) and in_payload(got, payload), f"{row['test']}: {ours} is {got!r}")


def read_back(content):
    """The events of a recording made of these, without its header."""
    with temp_dir() as folder:
        path = os.path.join(folder, "payloads.etl")
        with open(path, "wb") as file:
            file.write(small_etl(content))
        return events(path)[1:]


def check_all(make):
    table = rows()
    read = read_back([make(number, row, bytes.fromhex(row["payload_hex"])) for number, row in enumerate(table)])
    check_eq(len(read), len(table), "events")
    for row, event in zip(table, read):
        check_event(row, event)
    print(f"# {len(table)} payloads")


@test
def payloads_in_the_kernels_own_headers_have_the_expected_fields():
    check_all(lambda number, row, payload: kernel_event(
        GROUPS[row["provider_guid"].lower()], int(row["opcode"]), int(row["version"]), 1000 + number, payload,
        int(row["ptr_bits"]) // 8, pid=5, tid=6))


@test
def payloads_in_classic_headers_have_the_expected_fields():
    check_all(lambda number, row, payload: classic_event(
        row["provider_guid"], int(row["opcode"]), int(row["version"]), 1000 + number, payload,
        int(row["ptr_bits"]) // 8, pid=5, tid=6))


@test
def every_kernel_event_has_a_name():
    table = rows()
    read = read_back([classic_event(row["provider_guid"], int(row["opcode"]), int(row["version"]), 1000 + number,
                                    bytes.fromhex(row["payload_hex"]), int(row["ptr_bits"]) // 8)
                      for number, row in enumerate(table)])
    for row, event in zip(table, read):
        check(event["provider"] in ("Windows Kernel", "MSNT_SystemTrace") and "Opcode(" not in event["event"],
              f"{row['test']}: {event['provider']} {event['event']}")


main()
