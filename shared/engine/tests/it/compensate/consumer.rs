//! Consumer files of Paimon tables.

use lakebell_domain::asset::AssetKey;
use lakebell_engine::ErrorKind;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::consumer::{self, Kept};
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_testkit::Op;
use serde_json::json;

use crate::support::{BUCKET, Deployment, PROJECT, key, trace};

impl Deployment {
    async fn kept(&self) -> Kept {
        let (asset, source) = (self.ids["a"], lakebell_domain::event::Source::Poll);
        let hint = Hint { asset, look: Look::Whole, source, trace: trace() };
        let observed = observe::observe(&self.world.ports(), &hint).await.unwrap();
        consumer::keep(&self.world.ports(), &observed).await.unwrap()
    }

    fn object(&self) -> String {
        format!("wh/ods_db.db/a/consumer/consumer-lakebell-{}", self.ids["a"])
    }

    fn file(&self) -> Option<String> {
        let bytes = self.world.storage.get_now(BUCKET, &self.object())?;
        Some(String::from_utf8(bytes).unwrap())
    }
}

async fn keeping() -> Deployment {
    let d = Deployment::with(&["a"]).await;
    let document = json!({"key": key("a"), "location": d.tables["a"].location(), "keepConsumer": true});
    let spec: AssetSpec = serde_json::from_value(document).unwrap();
    assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    d
}

#[tokio::test]
async fn it_is_written_only_where_it_is_asked_for_and_only_when_it_moves() {
    let mut plain = Deployment::with(&["a"]).await;
    plain.commit("a", "APPEND").await;
    assert_eq!((plain.kept().await, plain.world.tap.count(Op::Put)), (Kept::NotAsked, 0));

    let mut d = keeping().await;
    assert_eq!(d.kept().await, Kept::NotAsked, "nothing was read yet");
    d.commit("a", "APPEND").await;
    d.commit("a", "COMPACT").await;
    assert_eq!(d.kept().await, Kept::Moved(3));
    assert_eq!(d.file().unwrap(), r#"{"nextSnapshot":3}"#);
    assert_eq!(d.kept().await, Kept::Unchanged);
    assert_eq!(d.world.tap.count(Op::Put), 1);
    // Its table's expiry of consumers took it.
    d.world.storage.remove(BUCKET, &d.object());
    assert_eq!(d.kept().await, Kept::Moved(3));
}

#[tokio::test]
async fn it_never_goes_back() {
    let mut d = keeping().await;
    d.commit("a", "APPEND").await;
    d.world.storage.put(BUCKET, &d.object(), r#"{"nextSnapshot": 9}"#);
    assert_eq!(d.kept().await, Kept::Unchanged);

    // Another scan, which has seen more, writes between the read and the write of this one.
    d.world.storage.put(BUCKET, &d.object(), r#"{"nextSnapshot": 1}"#);
    let (storage, object) = (d.world.storage.clone(), d.object());
    d.world.tap.before(Op::Put, 1, move || async move {
        storage.put(BUCKET, &object, r#"{"nextSnapshot": 7}"#);
    });
    assert_eq!(d.kept().await, Kept::Lost);
    assert_eq!(d.file().unwrap(), r#"{"nextSnapshot": 7}"#);

    // While a rewrite is held, nothing is said to have been read.
    d.world.storage.remove(BUCKET, &d.object());
    d.table("a").drop_table();
    assert_eq!((d.kept().await, d.file()), (Kept::NotAsked, None));
}

#[tokio::test]
async fn a_right_that_is_missing_is_an_error_of_its_own_and_not_of_the_asset() {
    let mut d = keeping().await;
    d.commit("a", "APPEND").await;
    d.world.storage.refuse(BUCKET, "wh/ods_db.db/a/consumer", ErrorKind::Denied);
    let observed = observe::observe(
        &d.world.ports(),
        &Hint { asset: d.ids["a"], look: Look::Whole, source: lakebell_domain::event::Source::Poll, trace: trace() },
    )
    .await
    .unwrap();
    let error = consumer::keep(&d.world.ports(), &observed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(d.head("a").state.trouble.is_none());
    d.world.storage.heal();
    d.world.storage.put(BUCKET, &d.object(), "no JSON");
    let error = consumer::keep(&d.world.ports(), &observed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

#[tokio::test]
async fn tables_of_other_formats_have_none() {
    let d = Deployment::with(&[]).await;
    d.world.storage.make_bucket(BUCKET);
    let key: AssetKey = "delta://ods_db/a".parse().unwrap();
    let document = json!({"key": key, "location": format!("s3://{BUCKET}/x"), "keepConsumer": true});
    let spec: AssetSpec = serde_json::from_value(document).unwrap();
    let error = assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap_err();
    assert_eq!((error.kind(), error.about("field")), (ErrorKind::Invalid, Some("keepConsumer")), "{error}");
}
