"""The Iceberg table of the demo's mixed group: refunds, written by pyiceberg in the Glue of the local AWS.

    refunds.py --local FILE prepare        make the table, and the workflow in the scheduler stand-in
    refunds.py --local FILE commit         write a batch of rows

FILE is the description that `cargo xtask up` writes. Each call prints one line of JSON.
"""
from __future__ import annotations

import argparse
import json
import random
import urllib.request

import pyarrow as pa
from pyiceberg.catalog import load_catalog

PROJECT, WORKFLOW, CODE = 1001, "refund_report", 2004
TABLE = ("ods_db", "ods_refund_latest")
COLUMNS = pa.schema([("order_id", pa.int64()), ("amount", pa.int64())])


def catalog(local):
    access = {"endpoint": local["endpoint"], "region": local["region"],
              "access-key-id": local["accessKeyId"], "secret-access-key": local["secretAccessKey"]}
    return load_catalog("glue", type="glue", **{f"{kind}.{name}": value for kind in ("glue", "s3")
                                                for name, value in access.items()})


def prepare(local):
    lake = catalog(local)
    lake.create_namespace_if_not_exists(TABLE[0])
    location = f"s3://{local['bucket']}/iceberg/{'/'.join(TABLE)}"
    lake.create_table_if_not_exists(TABLE, schema=COLUMNS, location=location)
    definition = {"project": PROJECT, "code": CODE, "name": WORKFLOW, "online": True}
    request = urllib.request.Request(
        f"{local['schedulerUrl']}/_standin/definitions", data=json.dumps(definition).encode(),
        headers={"token": local["schedulerToken"], "content-type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=10).close()
    return {"table": ".".join(TABLE), "location": location, "workflow": WORKFLOW}


def commit(local):
    table = catalog(local).load_table(TABLE)
    rows = [{"order_id": n, "amount": random.randint(1, 100)} for n in range(1, 6)]
    table.append(pa.Table.from_pylist(rows, schema=COLUMNS))
    snapshot = catalog(local).load_table(TABLE).current_snapshot()
    return {"table": ".".join(TABLE), "snapshotId": str(snapshot.snapshot_id), "rows": len(rows)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local", required=True)
    parser.add_argument("do", choices=["prepare", "commit"])
    arguments = parser.parse_args()
    with open(arguments.local, encoding="utf-8") as file:
        local = json.load(file)
    print(json.dumps({"prepare": prepare, "commit": commit}[arguments.do](local)))


if __name__ == "__main__":
    main()
