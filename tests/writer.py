"""The real writer of the end-to-end tests: pypaimon on the local S3.

    writer.py LOCAL        LOCAL is the description that `cargo xtask up` writes

One order a line on the standard input, one line of JSON for each on the standard output:

    {"do": "create", "database": D, "table": T}
    {"do": "append", "database": D, "table": T, "rows": N}     -> {"snapshotId": .., "commitMs": ..}
    {"do": "history", "tables": N, "commits": M}                -> {"folder": ..}    tables on the local disk, not on S3
"""
import json
import sys
import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

COLUMNS = pa.schema([("id", pa.int64()), ("amount", pa.int64())])


def catalog(local):
    return CatalogFactory.create({
        "warehouse": f"s3://{local['bucket']}/e2e",
        "s3.endpoint": local["endpoint"],
        "s3.access-key": local["accessKeyId"],
        "s3.secret-key": local["secretAccessKey"],
        "s3.region": local["region"],
        "s3.path.style.access": "true",
    })


def create(lake, order):
    lake.create_database(order["database"], True)
    lake.create_table(f"{order['database']}.{order['table']}", Schema.from_pyarrow_schema(COLUMNS), False)
    return {}


def append(lake, order):
    table = lake.get_table(f"{order['database']}.{order['table']}")
    builder = table.new_batch_write_builder()
    writer, committer = builder.new_write(), builder.new_commit()
    rows = [{"id": n, "amount": n * 10} for n in range(order["rows"])]
    writer.write_arrow(pa.Table.from_pylist(rows, schema=COLUMNS))
    committer.commit(writer.prepare_commit())
    writer.close()
    committer.close()
    snapshot = table.snapshot_manager().get_latest_snapshot()
    return {"snapshotId": snapshot.id, "commitMs": snapshot.time_millis}


def history(_, order):
    folder = tempfile.mkdtemp(prefix="lakebell-history-")
    lake = CatalogFactory.create({"warehouse": folder})
    lake.create_database("h", True)
    for at in range(order["tables"]):
        name = f"h.t{at}"
        lake.create_table(name, Schema.from_pyarrow_schema(COLUMNS), False)
        table = lake.get_table(name)
        for commit in range(order["commits"]):
            builder = table.new_batch_write_builder()
            writer, committer = builder.new_write(), builder.new_commit()
            writer.write_arrow(pa.Table.from_pylist([{"id": commit, "amount": at}], schema=COLUMNS))
            committer.commit(writer.prepare_commit())
            writer.close()
            committer.close()
    return {"folder": folder}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lake = catalog(json.load(file))
    orders = {"create": create, "append": append, "history": history}
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(orders[order["do"]](lake, order)), flush=True)


if __name__ == "__main__":
    main()
