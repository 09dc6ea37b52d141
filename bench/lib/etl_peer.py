# SPDX-License-Identifier: MIT
"""The peers that read recordings outside of Windows, each in its own documented way to the fields.

    dissect FILE      dissect.etl
    etl-parser FILE   etl-parser

Runs as its own process and prints JSON: the number of events, the number of those with fields, and the seconds it
took, imports not counted.
"""
import json
import sys
import time


def read_dissect(path):
    from dissect.etl.etl import ETL  # pylint: disable=import-outside-toplevel
    begin, count, decoded = time.perf_counter(), 0, 0
    with open(path, "rb") as file:
        for record in ETL(file):
            count += 1
            try:
                decoded += len(getattr(record, "event", record).event_values()) > 0
            except Exception:  # pylint: disable=broad-except
                pass  # it has no schema for this one
    return count, decoded, time.perf_counter() - begin


def read_etl_parser(path):
    from etl.etl import IEtlFileObserver, build_from_stream  # pylint: disable=import-outside-toplevel

    class Counter(IEtlFileObserver):
        """Takes every event and decodes its fields."""
        count = decoded = 0

        def take(self, ask):
            self.count += 1
            try:
                ask()
                self.decoded += 1
            except Exception:  # pylint: disable=broad-except
                pass  # it has no schema for this one

        def on_event_record(self, event):
            self.take(event.parse_etw)

        def on_trace_record(self, event):
            self.take(event.parse_etw)

        def on_perfinfo_trace(self, obj):
            self.take(obj.get_mof)

        def on_system_trace(self, obj):
            self.take(obj.get_mof)

        def on_win_trace(self, obj):
            self.take(obj.parse_etw)

    counter, begin = Counter(), time.perf_counter()
    with open(path, "rb") as file:
        build_from_stream(file.read()).parse(counter)
    return counter.count, counter.decoded, time.perf_counter() - begin


def main():
    read = {"dissect": read_dissect, "etl-parser": read_etl_parser}[sys.argv[1]]
    count, decoded, seconds = read(sys.argv[2])
    print(json.dumps({"events": count, "decoded": decoded, "seconds": seconds}))


if __name__ == "__main__":
    main()
