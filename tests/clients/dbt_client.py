"""Builds and tests one model with dbt on DuckDB under OpenLineage's wrapper, and pushes dbt's own results.

    dbt_client.py identity FOLDER            prints namespace and name of the model as the wrapper will say them
    dbt_client.py build FOLDER URL ENDPOINT TOKEN
                                             `dbt-ol build`: one test of the model passes, one fails
    dbt_client.py results FOLDER ROUTE TOKEN ASSET
                                             pushes `run_results.json` with the manifest, and prints the status

The project is made in FOLDER. Exits with an error where something else comes of it.
"""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

MODEL = "select 1 as id, 10 as amount union all select 1 as id, null as amount"
SCHEMA = """
version: 2
models:
  - name: orders
    columns:
      - name: id
        data_tests: [not_null]
      - name: amount
        data_tests: [not_null]
"""


def project(folder):
    (folder / "models").mkdir(parents=True, exist_ok=True)
    (folder / "models" / "orders.sql").write_text(MODEL)
    (folder / "models" / "schema.yml").write_text(SCHEMA)
    (folder / "dbt_project.yml").write_text(
        json.dumps({"name": "shop", "version": "1.0", "profile": "shop", "models": {"shop": {"+materialized": "table"}}})
    )
    profile = {"target": "dev", "outputs": {"dev": {"type": "duckdb", "path": str(folder / "lake.duckdb"), "threads": 1}}}
    (folder / "profiles.yml").write_text(json.dumps({"shop": profile}))


def build(folder, url, endpoint, token):
    environment = os.environ | {
        "OPENLINEAGE_URL": url, "OPENLINEAGE_ENDPOINT": endpoint, "OPENLINEAGE_API_KEY": token,
        "OPENLINEAGE_NAMESPACE": "shop", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1",
    }
    wrapper = pathlib.Path(sys.executable).with_name("dbt-ol")
    command = [sys.executable, str(wrapper), "build", "--project-dir", str(folder), "--profiles-dir", str(folder)]
    environment["PATH"] = f"{wrapper.parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    print(ran.stdout, ran.stderr, sep="\n", file=sys.stderr)
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    statuses = sorted(result["status"] for result in results)
    if statuses != ["fail", "pass", "success"]:
        sys.exit(f"dbt came to {statuses}")
    if "Emitted" not in ran.stdout + ran.stderr:
        sys.exit("the wrapper does not say that it has emitted anything")


def results(folder, route, token, asset):
    read = lambda name: json.loads((folder / "target" / name).read_text())
    body = {"result": read("run_results.json"), "manifest": read("manifest.json"), "tables": {"lake.main.orders": asset}}
    request = urllib.request.Request(
        route, data=json.dumps(body).encode(), method="POST",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        print(answer.status)


folder = pathlib.Path(sys.argv[2]).resolve()
project(folder)
match sys.argv[1]:
    case "identity":
        print(f"duckdb://{folder / 'lake.duckdb'}", "lake.main.orders")
    case "build":
        build(folder, *sys.argv[3:6])
    case "results":
        results(folder, *sys.argv[3:6])
