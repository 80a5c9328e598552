"""The tables and workflows of the demo: a GMV chain from orders and payments to a dashboard.

    gmv.py --local FILE prepare            make the tables, and the workflows in the scheduler stand-in
    gmv.py --local FILE commit TABLE       write a batch of rows, as a CDC job would
    gmv.py --local FILE run WORKFLOW       what the workflow does when the stand-in starts it
    gmv.py --local FILE redeliver TABLE    send the newest commit's notification once more
    gmv.py --local FILE settled            wait until no message is on its way

FILE is the description that `cargo xtask up` writes. Each call prints one line of JSON.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import urllib.request

PROJECT = 1001
# workflow -> (code, tables that it reads, table that it writes)
WORKFLOWS = {
    "dwd_trade_event": (2001, ["ods_db.ods_order_latest", "ods_db.ods_payment_latest"], "dw_db.dwd_trade_event_fact"),
    "dws_gmv_daily": (2002, ["dw_db.dwd_trade_event_fact"], "dws_db.dws_gmv_daily"),
    "ads_gmv_dashboard": (2003, ["dws_db.dws_gmv_daily"], "ads_db.ads_gmv_dashboard"),
}
TABLES = ["ods_db.ods_order_latest", "ods_db.ods_payment_latest"] + [written for _, _, written in WORKFLOWS.values()]
COLUMNS = [("order_id", "int64"), ("amount", "int64"), ("dt", "string")]


def catalog(local):
    from pypaimon import CatalogFactory

    return CatalogFactory.create({
        "warehouse": f"s3://{local['bucket']}/warehouse",
        "s3.endpoint": local["endpoint"],
        "s3.access-key": local["accessKeyId"],
        "s3.secret-key": local["secretAccessKey"],
        "s3.region": local["region"],
        "s3.path.style.access": "true",
    })


def columns():
    import pyarrow as pa

    types = {"int64": pa.int64(), "string": pa.string()}
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS])


def append(local, name, rows):
    """One commit; returns the new snapshot's id and the table's rows."""
    import pyarrow as pa

    table = catalog(local).get_table(name)
    builder = table.new_batch_write_builder()
    writer, committer = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.Table.from_pylist(rows, schema=columns()))
    committer.commit(writer.prepare_commit())
    writer.close()
    committer.close()
    snapshot = table.snapshot_manager().get_latest_snapshot()
    return {"table": name, "snapshotId": snapshot.id, "rows": len(rows), "commitMs": snapshot.time_millis}


def read(local, name):
    table = catalog(local).get_table(name)
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_arrow(splits).to_pylist()


def prepare(local, arguments):
    from pypaimon import Schema

    lake = catalog(local)
    for name in TABLES:
        lake.create_database(name.split(".")[0], True)
        lake.create_table(name, Schema.from_pyarrow_schema(columns()), True)
    for name, (code, _, _) in WORKFLOWS.items():
        command = [sys.executable, os.path.abspath(__file__), "--local", os.path.abspath(arguments.local), "run", name]
        control(local, "definitions", {"project": PROJECT, "code": code, "name": name, "command": command, "online": True})
    return {"tables": TABLES, "workflows": {name: code for name, (code, _, _) in WORKFLOWS.items()}}


def control(local, route, body):
    """The stand-in's own control routes; a real DolphinScheduler has none."""
    request = urllib.request.Request(
        f"{local['schedulerUrl']}/_standin/{route}",
        data=json.dumps(body).encode(),
        headers={"token": local["schedulerToken"], "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def commit(local, arguments):
    """A batch of orders, or of their payments."""
    rows = [{"order_id": n, "amount": random.randint(1, 500), "dt": "2026-01-01"} for n in range(1, 21)]
    return append(local, arguments.table, rows)


def run(local, arguments):
    """Reads what the workflow depends on and writes one table, with the versions that it was started for."""
    _, sources, written = WORKFLOWS[arguments.workflow]
    taken = {source.split(".")[1]: os.environ.get(f"LAKEBELL_{source.split('.')[1].upper()}_TO") for source in sources}
    rows = read(local, sources[-1])
    if arguments.workflow != "dwd_trade_event":
        rows = [{"order_id": 0, "amount": sum(row["amount"] for row in rows), "dt": "2026-01-01"}]
    return {"workflow": arguments.workflow, "taken": taken, **append(local, written, rows)}


def client(local, service):
    import boto3

    return boto3.client(service, endpoint_url=local["endpoint"], region_name=local["region"],
                        aws_access_key_id=local["accessKeyId"], aws_secret_access_key=local["secretAccessKey"])


def redeliver(local, arguments):
    """The same notification again, in the shape in which EventBridge delivers it to the queue."""
    database, table = arguments.table.split(".")
    snapshot = catalog(local).get_table(arguments.table).snapshot_manager().get_latest_snapshot()
    key = f"warehouse/{database}.db/{table}/snapshot/snapshot-{snapshot.id}"
    etag = client(local, "s3").head_object(Bucket=local["bucket"], Key=key)["ETag"].strip('"')
    event = {"version": "0", "id": "redelivered", "detail-type": "Object Created", "source": "aws.s3",
             "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "detail": {"version": "0", "bucket": {"name": local["bucket"]}, "object": {"key": key, "etag": etag},
                        "reason": "PutObject"}}
    queue = local["queues"]["hints"]["url"]
    client(local, "sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(event))
    return {"table": arguments.table, "snapshotId": snapshot.id}


def settled(local, _arguments):
    """Waits until every queue is empty, for at most 30 s."""
    sqs = client(local, "sqs")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    for _ in range(300):
        waiting = 0
        for queue in ("hints", "evaluate", "dispatch"):
            counts = sqs.get_queue_attributes(QueueUrl=local["queues"][queue]["url"], AttributeNames=names)["Attributes"]
            waiting += sum(int(counts[name]) for name in names)
        if waiting == 0:
            return {"settled": True}
        time.sleep(0.1)
    return {"settled": False, "waiting": waiting}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local", required=True)
    commands = parser.add_subparsers(required=True)
    for name, function, argument in [("prepare", prepare, None), ("commit", commit, "table"), ("run", run, "workflow"),
                                     ("redeliver", redeliver, "table"), ("settled", settled, None)]:
        command = commands.add_parser(name)
        if argument:
            command.add_argument(argument)
        command.set_defaults(function=function)
    arguments = parser.parse_args()
    with open(arguments.local, encoding="utf-8") as file:
        local = json.load(file)
    print(json.dumps(arguments.function(local, arguments)))


if __name__ == "__main__":
    main()
