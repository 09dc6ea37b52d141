# SPDX-License-Identifier: MIT
"""What packaging/ has for Prometheus, Grafana and systemd."""
import ast
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

from lib import ETWATCH, ROOT, check, check_eq, json_lines, main, run, skip, temp_dir, test
from servekit import serve, wait_for
from toolkit import need, python

PACKAGING = os.path.join(ROOT, "packaging")


@test
def the_rules_pass_their_unit_tests():
    if not shutil.which("promtool"):
        skip("promtool is missing (Debian: prometheus)")
    for arguments in (["check", "rules", "etwatch.rules.yml"], ["test", "rules", "etwatch.rules.test.yml"]):
        result = subprocess.run(["promtool", *arguments], cwd=os.path.join(PACKAGING, "prometheus"), capture_output=True,
                                text=True, check=False)
        check_eq(result.returncode, 0, f"promtool {' '.join(arguments)}: {result.stdout} {result.stderr}: status")


def names_in(text):
    return set(re.findall(r"\betwatch_[a-z_]+[a-z]\b", text)) - {"etwatch_process_cpu", "etwatch_process_runqueue_wait"}


@test
def rules_and_dashboard_use_only_names_that_are_served():
    server = serve()
    wait_for("processes", lambda: "etwatch_process_cpu_seconds_total{" in server.metrics())
    wait_for("the machine", lambda: "etwatch_system_cpu_ratio" in server.metrics())  # known from the second reading on
    served = set(re.findall(r"^# TYPE (\S+)", server.metrics(), re.M))
    # Those of a push and of a store are served only with --otlp and --store.
    with open(os.path.join(ROOT, "src", "serve", "prometheus.c"), encoding="utf-8") as file:
        served |= set(re.findall(r'"(etwatch_(?:otlp|store)_\w+)"', file.read()))
    # Those of GPUs and energy meters are served only where there are some.
    served |= {m["prometheus"] for m in json_lines(run(["metrics", "--json"]).out) if m.get("group") == "devices" and m.get("prometheus")}
    for path in ("prometheus/etwatch.rules.yml", "grafana/etwatch.json"):
        with open(os.path.join(PACKAGING, path), encoding="utf-8") as file:
            used = names_in(file.read())
        check(used, f"{path} uses names")
        check(used <= served, f"{path}: not served: {sorted(used - served)}")


@test
def hosts_of_the_simulated_fleet_differ_and_their_counters_only_grow():
    # The module cannot be imported: its package has the name of the tests' own library.
    with open(os.path.join(ROOT, "bench", "lib", "fleet.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    replayer = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "REPLAYER")
    text = "# TYPE a_total counter\n" + "".join(f'a_total{{name="n{i}"}} {{}}\n' for i in range(40)) + 'a_total{name="other"} 7\ng 0.5\n'
    with temp_dir() as folder:
        paths = [os.path.join(folder, f"{step}.txt") for step in range(2)]
        for step, path in enumerate(paths):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("{}", str(step)))
        space = {"__name__": "replayer"}
        before, sys.argv = sys.argv, ["-", "0", *paths]
        try:
            exec(replayer, space)  # pylint: disable=exec-used
        finally:
            sys.argv = before

        def values(host, step):
            lines = gzip.decompress(space["body_of"](host, step)).decode().splitlines()
            return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line[0] != "#"}
        first, second, other = values("h1", 0), values("h1", 1), values("h2", 0)
    check_eq(set(first), set(second), "series of two scrapes of a host")
    check(all(second[key] > first[key] for key in first if key.startswith('a_total{name="n')), "counters grow")
    own = [key for key in first if "-h1" in key]
    check(2 < len(own) < 25, f"{len(own)} of 40 names are of this host alone")
    check('a_total{name="other"}' in first and 'a_total{name="other"}' in other, "other is of every host")
    shared = [key for key in first if key in other]
    check(all(first[key] != other[key] for key in shared), "values of two hosts")


@test
def the_grafana_dashboard_can_be_imported_anywhere():
    with open(os.path.join(PACKAGING, "grafana", "etwatch.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    check(dashboard["id"] is None and dashboard["uid"], "id null, uid fixed")
    check_eq({p["datasource"]["uid"] for p in dashboard["panels"]}, {"${datasource}"}, "data sources")
    ids = [p["id"] for p in dashboard["panels"]]
    check_eq(len(ids), len(set(ids)), "panels with an id of their own")


@test
def the_unit_grants_only_what_is_needed():
    with open(os.path.join(PACKAGING, "systemd", "etwatch.service"), encoding="utf-8") as file:
        unit = dict(line.strip().split("=", 1) for line in file if "=" in line and not line.startswith("#"))
    check_eq(unit["AmbientCapabilities"], unit["CapabilityBoundingSet"], "capabilities")
    check_eq((unit["NoNewPrivileges"], unit["DynamicUser"], unit["ProtectSystem"]), ("yes", "yes", "strict"), "hardening")


@test
def systemd_finds_no_fault_with_the_unit():
    if not shutil.which("systemd-analyze"):
        skip("systemd-analyze is missing (Debian: systemd)")
    with open(os.path.join(PACKAGING, "systemd", "etwatch.service"), encoding="utf-8") as file:
        text = file.read()
    with temp_dir() as folder:
        # Neither the program nor its manual page is installed here.
        path = os.path.join(folder, "etwatch.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^Documentation=.*\n", "", text.replace("/usr/bin/etwatch", ETWATCH), flags=re.M))
        done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False)
        complaints = [line for line in done.stderr.splitlines() if "etwatch.service" in line]
        check_eq(complaints, [], "systemd-analyze verify")
        version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=False).stdout
        if int(re.search(r"systemd (\d+)", version)[1]) < 250:
            skip("systemd-analyze security --offline needs systemd 250")
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=40", path],
                              capture_output=True, text=True, check=False)
        check_eq(done.returncode, 0, f"exposure above 4.0: {done.stdout[-200:]}: status")


@test
def the_expressions_of_the_grafana_dashboard_are_promql():
    if not shutil.which("promtool"):
        skip("promtool is missing (Debian: prometheus)")
    with open(os.path.join(PACKAGING, "grafana", "etwatch.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    check(len(expressions) >= 5, f"{len(expressions)} expressions")
    with temp_dir() as folder:
        path = os.path.join(folder, "rules.yml")
        with open(path, "w", encoding="utf-8") as file:
            rules = [{"record": f"panel:{i}", "expr": re.sub(r"\$__(rate_)?interval", "5m", expr)}
                     for i, expr in enumerate(expressions)]
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)  # JSON is YAML
        done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
        check_eq(done.returncode, 0, f"promtool: {done.stdout} {done.stderr}: status")


GRAFANA = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

def lost(before, after, path=""):
    if isinstance(before, dict):
        for key in before:
            if not isinstance(after, dict) or key not in after:
                yield f"{path}/{key}"
            else:
                yield from lost(before[key], after[key], f"{path}/{key}")
    elif isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            yield path
        else:
            for number, (a, b) in enumerate(zip(before, after)):
                yield from lost(a, b, f"{path}/{number}")
    elif before != after:
        yield path

with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
again = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
print(json.dumps(list(lost(dashboard, again))))
"""


@test
def the_grafana_dashboard_fits_the_types_of_grafana():
    """Grafana's own types read it and write it again; what they do not know would be missing."""
    need("grafana_foundation_sdk.models.dashboard")
    path = os.path.join(PACKAGING, "grafana", "etwatch.json")
    done = subprocess.run([python(), "-c", GRAFANA, path], capture_output=True, text=True, check=False)
    check_eq(done.returncode, 0, f"{done.stderr[-500:]}: status")
    # A null is not written, and "definition" repeats the query of a variable for old versions.
    unknown = [field for field in json.loads(done.stdout) if field != "/id" and not field.endswith("/definition")]
    check_eq(unknown, [], "fields that Grafana does not know")


@test
def every_panel_of_the_grafana_dashboard_has_what_grafana_needs():
    with open(os.path.join(PACKAGING, "grafana", "etwatch.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    check(isinstance(dashboard["schemaVersion"], int) and dashboard["schemaVersion"] >= 36, "schemaVersion")
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    check({"datasource", "instance"} <= variables, f"variables {variables}")
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard["panels"])))
    check_eq(used - variables, set(), "variables that are not defined")
    taken = set()
    for panel in dashboard["panels"]:
        grid = panel["gridPos"]
        check(panel["title"] and panel["type"] and grid["x"] + grid["w"] <= 24, f"panel {panel['id']}")
        cells = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
        check(not cells & taken, f"panel {panel['id']} covers another")
        taken |= cells
        if panel["type"] != "row":
            check(len({t["refId"] for t in panel["targets"]}) == len(panel["targets"]), "refIds")


main()
