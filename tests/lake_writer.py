"""The real writers of the other formats in the end-to-end tests: pyiceberg and delta-rs on the local S3.

    lake_writer.py LOCAL FOLDER     LOCAL is the description that `cargo xtask up` writes; the SQL catalog is kept in FOLDER

One order a line on the standard input, one line of JSON for each on the standard output:

    {"do": "iceberg-create", "catalog": "glue"|"sql", "database": D, "table": T, "location": URL}
    {"do": "iceberg-append", "catalog": .., "database": D, "table": T, "rows": N}    -> {"metadata": URL, "snapshotId": ..}
    {"do": "iceberg-lose", ..}      a commit that loses a race against another one   -> {"metadata": URL, "snapshotId": ..}
    {"do": "iceberg-rollback", ..}  main back to its first snapshot                  -> {"metadata": URL, "snapshotId": ..}
    {"do": "delta-append", "location": URL, "rows": N}                               -> {"version": ..}
    {"do": "delta-restore", "location": URL, "version": N}                           -> {"version": ..}
"""
import json
import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

COLUMNS = pa.schema([("id", pa.int64()), ("amount", pa.int64())])
CATALOGS = {}


def rows(order):
    return pa.Table.from_pylist([{"id": n, "amount": n * 10} for n in range(order.get("rows", 1))], schema=COLUMNS)


def catalog(kind):
    if kind not in CATALOGS:
        access = {
            "s3.endpoint": LOCAL["endpoint"], "s3.region": LOCAL["region"],
            "s3.access-key-id": LOCAL["accessKeyId"], "s3.secret-access-key": LOCAL["secretAccessKey"],
        }
        if kind == "glue":
            access |= {name.replace("s3.", "glue."): value for name, value in access.items()}
            CATALOGS[kind] = load_catalog("glue", type="glue", **access)
        else:
            CATALOGS[kind] = load_catalog("sql", type="sql", uri=f"sqlite:///{FOLDER}/catalog.db", **access)
            CATALOGS[kind].create_tables()
    return CATALOGS[kind]


def name(order):
    return (order["database"], order["table"])


def stands(table):
    snapshot = table.current_snapshot()
    return {"metadata": table.metadata_location, "snapshotId": snapshot and str(snapshot.snapshot_id)}


def iceberg_create(order):
    lake = catalog(order["catalog"])
    lake.create_namespace_if_not_exists(order["database"])
    return stands(lake.create_table(name(order), schema=COLUMNS, location=order["location"]))


def iceberg_append(order):
    table = catalog(order["catalog"]).load_table(name(order))
    table.append(rows(order))
    return stands(catalog(order["catalog"]).load_table(name(order)))


def iceberg_lose(order):
    """Two writers begin with the same table. The first one wins; pyiceberg leaves the loser's file behind."""
    lake = catalog(order["catalog"])
    loser, winner = lake.load_table(name(order)), lake.load_table(name(order))
    winner.append(rows(order))
    try:
        loser.append(rows(order))
    except CommitFailedException:
        return stands(lake.load_table(name(order)))
    raise AssertionError("both writers won")


def iceberg_rollback(order):
    table = catalog(order["catalog"]).load_table(name(order))
    first = min(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)
    with table.manage_snapshots() as change:
        change.rollback_to_snapshot(first.snapshot_id)
    return stands(catalog(order["catalog"]).load_table(name(order)))


def storage():
    return {
        "AWS_ENDPOINT_URL": LOCAL["endpoint"], "AWS_REGION": LOCAL["region"], "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": LOCAL["accessKeyId"], "AWS_SECRET_ACCESS_KEY": LOCAL["secretAccessKey"],
    }


def delta_append(order):
    write_deltalake(order["location"], rows(order), mode="append", storage_options=storage())
    return {"version": DeltaTable(order["location"], storage_options=storage()).version()}


def delta_restore(order):
    table = DeltaTable(order["location"], storage_options=storage())
    table.restore(order["version"])
    return {"version": DeltaTable(order["location"], storage_options=storage()).version()}


def main():
    global LOCAL, FOLDER
    with open(sys.argv[1], encoding="utf-8") as file:
        LOCAL = json.load(file)
    FOLDER = sys.argv[2]
    orders = {do.__name__.replace("_", "-"): do for do in
              (iceberg_create, iceberg_append, iceberg_lose, iceberg_rollback, delta_append, delta_restore)}
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(orders[order["do"]](order)), flush=True)


if __name__ == "__main__":
    main()
