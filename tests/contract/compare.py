# SPDX-License-Identifier: MIT
"""compare: the statistics agree with independent ones, the sentence follows from them, and nonsense is refused."""
import json
import math
import os
import random
import statistics

from lib import cases, check, check_between, check_eq, check_in, json_lines, main, run, temp_dir, test

CAUSES = ("work_ns", "runq_wait_ns", "throttled_ns", "fault_ns", "disk_wait_ns", "lock_wait_ns", "process_wait_ns",
          "sleep_ns", "unknown_ns")


def series(seed, count, center, tie=1, spread=0.2):
    """Latencies as a program has them: skewed; with many equal ones if tie is above 1."""
    source = random.Random(seed)
    return [int(center * math.exp(source.gauss(0, spread))) // tie * tie for _ in range(count)]


def span(latency, **more):
    """As run --onnx --json writes it."""
    return {"type": "span", "kind": "inference", "name": "run", "session": "mlp.onnx", "pid": 7, "tid": 7, "dt_ns": latency,
            "cpu_ns": latency, **{name: 0 for name in CAUSES}, "work_ns": latency, "failed": False, "complete": True,
            "causes": [{"cause": "cpu", "pid": 1, "tid": None, "name": "x\"y", "ns": 1}], **more}


def sample(cpu_ns, energy_uj=None, **more):
    return {"type": "sample", "pid": 7, "name": "python3", "dt_ns": 100_000_000, "cpu_ns": cpu_ns,
            "cpu_percent": cpu_ns / 1e6, "rss_bytes": 1 << 20, "energy_uj": energy_uj, **more}


def compared(a, b, *options, code=0):
    """Runs compare on two lists of objects (or texts)."""
    with temp_dir() as folder:
        for name, objects in (("a.json", a), ("b.json", b)):
            text = objects if isinstance(objects, str) else "".join(json.dumps(o) + "\n" for o in objects)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        result = run(["compare", *options, "a.json", "b.json"], cwd=folder)
    check_eq(result.code, code, f"exit code ({result.err})")
    return result


def comparison(a, b):
    """The first comparison object of two series of latencies."""
    return json_lines(compared([span(x) for x in a], [span(x) for x in b], "--json").out)[0]


# U and p were computed by scipy.stats.mannwhitneyu 1.16 (two-sided; exact for the first two, else with continuity).
@cases([("exact", 1, 7, 6500000, 2, 8, 5000000, 1, 46.0, 0.04009324009324009),
        ("exact and alike", 3, 10, 1000000, 4, 12, 1000000, 1, 71.0, 0.49650658938584646),
        ("many and alike", 5, 300, 6500000, 6, 250, 6300000, 1, 37934.0, 0.8152953343457637),
        ("many ties", 7, 200, 6500000, 8, 200, 6200000, 500000, 21719.5, 0.13424364666327043),
        ("very different", 9, 400, 2000000, 10, 400, 1000000, 1, 159191.0, 1.0261805774621271e-129)])
def u_and_p_are_those_of_scipy(a_seed, a_count, a_center, b_seed, b_count, b_center, tie, u, p):
    got = comparison(series(a_seed, a_count, a_center, tie), series(b_seed, b_count, b_center, tie))
    check_between(got["u"], u, u, "U")
    check_between(got["p"], p * 0.999999, p * 1.000001, "p")
    check(got["p_serial"] >= got["p"], "the correction makes a difference more certain")
    check_between(got["b_larger"], 1 - u / (a_count * b_count) - 1e-8, 1 - u / (a_count * b_count) + 1e-8, "effect")


def log_median_error(values):
    """Price and Bonett (2002), written anew from the paper's formula."""
    values, n = sorted(values), len(values)
    at = max(1, math.floor(n / 2 - math.sqrt(n) + 0.5))
    below = sum(math.comb(n, k) for k in range(at)) / 2 ** n
    return math.log(values[n - at] / values[at - 1]) / (2 * statistics.NormalDist().inv_cdf(1 - below))


@cases([("few", 6), ("some", 25), ("many", 400)])
def the_interval_of_the_ratio_is_that_of_its_formula(count):
    # An alternating order has no positive correlation, so nothing is corrected.
    a, b = sorted(series(21, count, 6500000)), sorted(series(22, count, 3000000))
    a = [x for pair in zip(a[:(count + 1) // 2], reversed(a)) for x in pair][:count] if count % 2 == 0 else a[::2] + a[1::2]
    got = comparison(a, b)
    check_eq(got["a_count"], len(a), "count")
    ratio = statistics.median(b) / statistics.median(a)
    check_between(got["ratio"], ratio * 0.999999, ratio * 1.000001, "ratio")
    error = 1.959964 * math.hypot(log_median_error(a), log_median_error(b))
    low, high = ratio * math.exp(-error), ratio * math.exp(error)
    # Whatever follows each other in order makes the interval wider, never narrower.
    check(got["ratio_low"] <= low * 1.00001 and got["ratio_high"] >= high * 0.99999, f"interval {got}, {low}, {high}")


@test
def the_interval_of_independent_values_is_exact():
    a, b = series(31, 300, 6500000), series(32, 300, 3000000)
    got = comparison(a, b)
    error = 1.959964 * math.hypot(log_median_error(a), log_median_error(b))
    ratio = statistics.median(b) / statistics.median(a)
    width = math.log(got["ratio_high"] / got["ratio_low"]) / (2 * error)
    check_between(width, 0.9999, 1.35, "width: chance may look like a little correlation")
    check_between(math.sqrt(got["ratio_low"] * got["ratio_high"]), ratio * 0.9999, ratio * 1.0001, "middle")


@test
def values_that_depend_on_each_other_are_no_evidence():
    """A slow second: the classical test is certain, and would be wrong."""
    source = random.Random(41)
    drift, a, b = 0.0, [], []
    for run_of in (a, b):
        for _ in range(400):
            drift = 0.99 * drift + source.gauss(0, 0.02)
            run_of.append(int(5e6 * math.exp(drift + source.gauss(0, 0.002))))
    got = comparison(a, b)
    check(got["p"] < 0.001, f"the classical test is not certain: {got['p']}")
    check_eq(got["different"], False, f"difference ({got['p_serial']})")
    check_in("no significant difference", got["text"], "sentence")


@test
def twice_as_fast_is_said_with_cpu_time_and_energy():
    a = [span(x) for x in series(1, 200, 8000000)] + [sample(80_000_000, 2_000_000)] * 20
    b = [span(x, session="int8.onnx") for x in series(2, 200, 4000000)] + [sample(80_000_000, 2_400_000)] * 10
    out = compared(a, b).out
    check_in("run of mlp.onnx and int8.onnx", out)
    sentence = [line for line in out.splitlines() if line.startswith("  B: ")][0]
    ratio = float(sentence.split()[1].rstrip("x"))
    check_between(ratio, 1.8, 2.2, sentence)
    check_in("faster (p < 0.001", sentence)
    check_in("0.50x CPU time, 0.60x energy", sentence)
    total = json_lines(compared(a, b, "--json").out)[-1]
    check_eq((total["per"], total["a_cpu_ns"], total["a_energy_uj"]), ("inference", 8_000_000, 200_000), "per inference")


@test
def an_unknown_energy_is_null():
    a = [span(x) for x in series(1, 20, 8000000)] + [sample(80_000_000, 2_000_000), sample(80_000_000)]
    total = json_lines(compared(a, [span(x) for x in series(2, 20, 8000000)], "--json").out)[-1]
    check_eq([total[name] for name in ("a_energy_uj", "b_energy_uj", "b_cpu_ns")], [None] * 3, "unknown totals")


@test
def unknown_page_faults_are_null_and_causes_are_averages():
    a = [span(x, fault_ns=None, runq_wait_ns=1000) for x in series(1, 20, 8000000)]
    got = json_lines(compared(a, [span(x, fault_ns=50) for x in series(2, 20, 8000000)], "--json").out)[0]
    check_eq((got["a_fault_ns"], got["b_fault_ns"], got["a_runq_wait_ns"], got["b_runq_wait_ns"]), (None, 50, 1000, 0),
             "causes")


@test
def few_values_make_no_statement():
    got = comparison([5000000] * 5, [1000000] * 5)
    check_eq((got["ratio"], got["different"]), (None, None), "ratio")
    check_in("too few values", got["text"])


@test
def the_same_run_is_no_difference():
    values = series(3, 100, 5000000)
    got = comparison(values, values)
    check_eq((got["ratio"], got["different"], got["b_larger"]), (1, False, 0.5), "result")


@test
def runs_without_marks_are_compared_by_their_processes():
    source = random.Random(9)
    a = [sample(source.randrange(40_000_000, 60_000_000)) for _ in range(60)]
    b = [sample(source.randrange(80_000_000, 99_000_000)) for _ in range(60)]
    found = json_lines(compared(a, b, "--json").out)
    check_eq([o.get("metric") for o in found], ["cpu_percent", "rss_bytes", None], "objects")
    check_in("more CPU", found[0]["text"])
    check_eq(found[1]["different"], False, "memory")


@cases([
    ("marks in one only", [span(1)] * 9, [sample(1)] * 9, "has spans and b.json has none"),
    ("other intervals", [sample(1)] * 9, [sample(1, dt_ns=10_000_000)] * 9, "same --hz"),
    ("nothing in common", [span(1)], [span(1, name="tokenize", kind="work")], "nothing in common: a.json has run of"),
    ("no data", [{"type": "meta"}], [span(1)], "a.json has neither spans nor samples"),
    ("not JSON", "hello\nworld\n", [span(1)], "a.json:1: not an object of etwatch --json"),
    ("an array", "[1]\n", [span(1)], "a.json:1: not an object"),
    ("a broken line", json.dumps(span(1)) + "\n{\"type\":\n" + json.dumps(span(1)) + "\n", [span(1)], "a.json:2: not"),
    ("a long line", "{\"type\":\"" + "x" * 3_000_000, [span(1)], "a.json:1: the line is longer"),
])
def what_cannot_be_compared_is_refused(a, b, words):
    result = compared(a, b, code=1)
    check_in(words, result.err)
    check_eq(result.out, "", "output")


@test
def the_cut_end_of_a_killed_run_is_reported():
    text = "".join(json.dumps(span(x)) + "\n" for x in series(1, 50, 5000000)) + "{\"type\":\"sp"
    out = compared(text, [span(x) for x in series(2, 50, 5000000)]).out
    check_in("its end is missing", out)


@test
def two_files_are_needed_and_a_missing_one_is_named():
    check_eq(run(["compare", "one.json"]).code, 2, "exit code")
    result = run(["compare", "/nonexistent/a.json", "/nonexistent/b.json"])
    check_eq(result.code, 1, "exit code")
    check_in("cannot read /nonexistent/a.json", result.err)


main()
