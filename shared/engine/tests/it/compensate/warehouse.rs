//! New tables of a warehouse, found by the clock.

use jiff::Timestamp;
use lakebell_domain::asset::Location;
use lakebell_engine::compensate::{self, Looked};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::{ErrorKind, assets, settings};
use lakebell_testkit::Op;
use serde_json::json;

use crate::support::{BUCKET, Deployment, trace};

const SNAPSHOT: &str = r#"{"version":3,"id":1,"schemaId":0,"commitUser":"j","commitIdentifier":1,"commitKind":"APPEND","timeMillis":1767225600000}"#;

fn root() -> Location {
    format!("s3://{BUCKET}/wh").parse().unwrap()
}

async fn warehouse(format: &str) -> Deployment {
    let d = Deployment::with(&[]).await;
    d.world.storage.make_bucket(BUCKET);
    let warehouse = serde_json::from_value(json!({"location": root(), "format": format, "project": 7})).unwrap();
    settings::put_warehouse(&d.world.quiet_ports(), &warehouse, &trace()).await.unwrap();
    d
}

impl Deployment {
    fn write_table(&self, database: &str, table: &str) {
        self.world.storage.put(BUCKET, &format!("wh/{database}/{table}/snapshot/snapshot-1"), SNAPSHOT);
    }

    async fn look_for_tables(&self, deadline: Timestamp) -> Looked {
        compensate::look_for_tables(&self.world.ports(), &root(), &trace(), deadline).await.unwrap()
    }

    async fn found(&self) -> Vec<String> {
        let looked = self.look_for_tables(Timestamp::MAX).await;
        assert!(looked.is_complete && looked.refused.is_empty(), "{looked:?}");
        looked.registered.iter().map(ToString::to_string).collect()
    }
}

#[tokio::test]
async fn a_table_whose_first_commit_was_notified_to_nobody_is_found_by_a_pass() {
    let d = warehouse("paimon").await;
    d.write_table("sales.db", "orders");
    let pass = compensate::pass(&d.world.ports(), &trace(), Timestamp::MAX).await.unwrap();
    assert_eq!(pass.warehouses, 1);
    for message in d.world.queue.drain() {
        d.carry(&message).await.unwrap();
    }
    let listed = assets::list(&d.world.quiet_ports(), None).await.unwrap();
    assert_eq!(listed.iter().map(|asset| asset.key.to_string()).collect::<Vec<_>>(), ["paimon://sales/orders"]);
}

#[tokio::test]
async fn what_is_known_costs_no_request_and_data_files_are_never_listed() {
    let d = warehouse("paimon").await;
    for n in 0..120 {
        d.write_table("sales.db", &format!("t{n}"));
        for file in 0..20 {
            d.world.storage.put(BUCKET, &format!("wh/sales.db/t{n}/bucket-0/data-{file}.parquet"), "x");
        }
    }
    d.write_table("hr.db", "people");
    assert_eq!(d.found().await.len(), 121);
    d.world.tap.take_log();
    assert_eq!(d.found().await, [""; 0]);
    let count = |op| d.world.tap.count(op);
    assert_eq!((count(Op::List), count(Op::Read), count(Op::Write)), (0, 0, 0));
    assert_eq!(count(Op::Folders), 3, "the warehouse and its two databases");
    assert_eq!(count(Op::Get), 2 + 4, "the warehouse and its place, and 50 tables at a time");
}

#[tokio::test]
async fn a_deregistered_table_stays_so_until_a_person_registers_it() {
    let d = warehouse("paimon").await;
    d.write_table("sales.db", "orders");
    assert_eq!(d.found().await, ["paimon://sales/orders"]);
    assets::deregister(&d.world.quiet_ports(), &"paimon://sales/orders".parse().unwrap()).await.unwrap();
    assert_eq!(d.found().await, [""; 0]);
}

#[tokio::test]
async fn a_look_that_runs_out_of_time_is_continued() {
    let d = warehouse("paimon").await;
    for (database, tables) in [("a.db", 120), ("b.db", 3), ("c.db", 70)] {
        for n in 0..tables {
            d.write_table(database, &format!("t{n:03}"));
        }
    }
    let mut registered = 0;
    let mut looks = 0;
    loop {
        // The time is over once some tables were registered: each takes a second.
        let clock = d.world.clock.clone();
        d.world.tap.before(Op::Write, 30, move || async move {
            clock.advance(std::time::Duration::from_mins(1));
        });
        let looked = d.look_for_tables(d.world.clock.now() + jiff::SignedDuration::from_secs(30)).await;
        registered += looked.registered.len();
        looks += 1;
        d.world.tap.calm();
        if looked.is_complete {
            break;
        }
        assert!(looks < 50, "it gets on: {looked:?}");
    }
    assert_eq!(registered, 193);
    assert!(looks > 3, "{looks} looks");
    assert_eq!(d.found().await, [""; 0], "the next one begins anew");
}

#[tokio::test]
async fn folders_that_are_no_tables_are_asked_within_bounds() {
    let d = warehouse("delta").await;
    for n in 0..450 {
        d.world.storage.put(BUCKET, &format!("wh/misc/notes-{n:03}/readme"), "x");
    }
    d.world.storage.put(BUCKET, "wh/zoo/animals/_delta_log/00000000000000000000.json", "{\"commitInfo\":{}}\n");
    let mut looks = Vec::new();
    loop {
        d.world.tap.take_log();
        let looked = d.look_for_tables(Timestamp::MAX).await;
        looks.push(looked.registered.len());
        assert!(d.world.tap.count(Op::List) <= 260);
        if looked.is_complete {
            break;
        }
    }
    assert_eq!(looks, [0, 0, 1]);
}

#[tokio::test]
async fn one_that_is_gone_or_refused_says_so() {
    let d = warehouse("paimon").await;
    let other: Location = format!("s3://{BUCKET}/other").parse().unwrap();
    let gone = compensate::look_for_tables(&d.world.ports(), &other, &trace(), Timestamp::MAX).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    d.world.storage.deny(BUCKET);
    let denied = compensate::look_for_tables(&d.world.ports(), &root(), &trace(), Timestamp::MAX).await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
}
