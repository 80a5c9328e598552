//! Names that a writer claims, confirmed by the table's location or by its catalog.

use lakebell_domain::asset::AssetKey;
use lakebell_engine::assets::{self, AssetSpec};
use serde_json::Value;

use super::*;

const KEY: &str = "iceberg://sales/orders";
const FILE: &str = "s3://lake/wh/sales/orders/metadata/00000-a.metadata.json";

/// An Iceberg table with one commit, registered with these settings.
async fn iceberg(settings: &Value) -> Deployment {
    let mut d = Deployment::with(&[]).await;
    let text = json!({
        "format-version": 2, "table-uuid": "85f616f1-4c4e-412a-9119-bd72cf73c9ba",
        "location": "s3://lake/wh/sales/orders", "last-sequence-number": 1, "last-updated-ms": 1, "last-column-id": 1,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-snapshot-id": 7, "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
        "snapshots": [{"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "m",
            "summary": {"operation": "append"}}],
    });
    d.world.storage.put("lake", "wh/sales/orders/metadata/00000-a.metadata.json", text.to_string());
    d.world.catalogs.point(&KEY.parse().unwrap(), FILE);
    d.register_orders(settings).await;
    d
}

impl Deployment {
    async fn register_orders(&mut self, settings: &Value) {
        let mut document = json!({"key": KEY, "location": "s3://lake/wh/sales/orders"});
        for (name, value) in settings.as_object().unwrap() {
            document[name] = value.clone();
        }
        let spec: AssetSpec = serde_json::from_value(document).unwrap();
        let registered = assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
        self.ids.insert("orders".to_owned(), registered.id);
    }

    /// A writer says that the table has this name, too; what confirmed it, if anything did.
    async fn claimed(&self, id: &str, name: &CatalogName) -> Option<String> {
        let location = Some("s3://lake/wh/sales/orders".parse().unwrap());
        let table = TableRef { location, names: vec![name.clone()], ..TableRef::named("orders") };
        self.sent(id, entry(id, vec![Report { table, says: Says::Touched, at: None }])).await;
        self.confirmed(name).await
    }

    async fn confirmed(&self, name: &CatalogName) -> Option<String> {
        let aliases = inbox::aliases(&self.world.quiet_ports(), self.ids["orders"]).await.unwrap().aliases;
        let alias = aliases.into_iter().find(|alias| alias.name == *name).expect("it is kept as claimed");
        assert_eq!(alias.is_verified, alias.confirmed_by.is_some());
        alias.confirmed_by
    }

    async fn found_by(&self, id: &str, name: &CatalogName) -> String {
        let table = TableRef { names: vec![name.clone()], ..TableRef::named("by name") };
        self.sent(id, entry(id, vec![Report { table, says: Says::Touched, at: None }])).await.remove(0)
    }
}

fn rest() -> Value {
    json!({"catalog": {"type": "rest", "url": "https://catalog.internal"}})
}

fn other() -> CatalogName {
    CatalogName::new("https://catalog.internal/", &["other", "name"]).unwrap()
}

#[tokio::test]
async fn a_catalog_of_files_is_borne_out_by_the_location() {
    let d = iceberg(&json!({})).await;
    let name = CatalogName::new("s3://lake", &["wh", "sales", "orders"]).unwrap();
    assert_eq!(d.found_by("0", &name).await, "unknown");
    assert_eq!(d.claimed("1", &name).await.as_deref(), Some("the table's location"));
    assert_eq!(d.found_by("2", &name).await, "duplicate");
    let elsewhere = CatalogName::new("s3://lake", &["elsewhere", "sales", "orders"]).unwrap();
    assert_eq!(d.claimed("3", &elsewhere).await, None);
}

#[tokio::test]
async fn the_catalog_of_the_asset_confirms_a_name_that_leads_to_the_same_metadata() {
    let d = iceberg(&rest()).await;
    assert_eq!(d.claimed("1", &other()).await, None, "the catalog knows no such table");
    d.world.catalogs.point_named("other", "name", "s3://lake/wh/sales/refunds/metadata/00000-b.metadata.json");
    d.world.clock.advance(Duration::from_hours(7));
    assert_eq!(d.claimed("2", &other()).await, None, "it is another table");
    d.world.catalogs.point_named("other", "name", FILE);
    assert_eq!(d.claimed("3", &other()).await, None, "it was asked a short while ago");
    d.world.clock.advance(Duration::from_hours(7));
    d.world.catalogs.fail(Some(ErrorKind::Denied));
    assert_eq!(d.claimed("4", &other()).await, None, "a catalog that refuses confirms nothing");
    d.world.catalogs.fail(None);
    d.world.clock.advance(Duration::from_hours(7));
    d.world.tap.take_log();
    assert_eq!(d.claimed("5", &other()).await.as_deref(), Some("the asset's catalog"));
    let asked = |d: &Deployment| d.world.tap.take_log().iter().filter(|call| call.op == Op::Catalog).count();
    // One question for the name, one for the look that the report asks for.
    assert_eq!(asked(&d), 2);
    d.claimed("6", &other()).await;
    assert_eq!(asked(&d), 1, "what is confirmed is not asked for");
}

#[tokio::test]
async fn a_catalog_that_is_set_later_confirms_what_was_claimed_and_what_waited_under_it_is_worked_on() {
    let mut d = iceberg(&json!({})).await;
    d.world.catalogs.point_named("other", "name", FILE);
    assert_eq!(d.claimed("1", &other()).await, None, "nobody has said which catalog to ask");
    assert_eq!(d.found_by("2", &other()).await, "unknown");
    d.register_orders(&rest()).await;
    assert_eq!(d.confirmed(&other()).await.as_deref(), Some("the asset's catalog"));
    assert_eq!(d.work().await[0].outcome, "duplicate", "it is found, and nothing is new");
}

#[tokio::test]
async fn what_an_asset_is_called_by_its_own_settings_finds_it() {
    let mut d = iceberg(&json!({})).await;
    d.world.catalogs.point_named("Other", "Name", FILE);
    d.world.catalogs.point_named("other", "name", FILE);
    let arn = "arn:aws:glue:eu-central-1:123456789012";
    let name = CatalogName::new(arn, &["Other", "Name"]).unwrap();
    assert_eq!(d.found_by("1", &name).await, "unknown");
    let glue = json!({"type": "glue", "region": "eu-central-1", "account": "123456789012", "database": "Other",
        "table": "Name"});
    d.register_orders(&json!({"catalog": glue})).await;
    assert_eq!(d.confirmed(&name).await.as_deref(), Some("the asset's catalog"));
    assert_eq!(d.work().await[0].outcome, "duplicate", "the event of Glue that came before counts");
    assert_eq!(d.found_by("2", &name).await, "duplicate");
}

#[tokio::test]
async fn a_name_that_is_another_assets_stays_a_claim() {
    let mut d = iceberg(&rest()).await;
    d.register("a").await;
    d.world.catalogs.point_named("other", "name", FILE);
    inbox::confirm(&d.world.quiet_ports(), d.ids["a"], &other(), "somebody", &trace()).await.unwrap();
    assert_eq!(d.claimed("1", &other()).await, None);
    let key: AssetKey = KEY.parse().unwrap();
    assert_eq!(assets::lookup(&d.world.quiet_ports(), &key).await.unwrap(), Some(d.ids["orders"]));
}

#[tokio::test]
async fn a_uuid_finds_what_has_shown_it_and_comes_before_location_and_name() {
    let d = iceberg(&json!({})).await;
    let uuid = Some("85f616f1-4c4e-412a-9119-bd72cf73c9ba".to_owned());
    let report = |id: &str, table: TableRef| entry(id, vec![Report { table, says: Says::Touched, at: None }]);
    let by_uuid = TableRef { uuid: uuid.clone(), ..TableRef::named("by uuid") };
    assert_eq!(d.sent("1", report("1", by_uuid.clone())).await, ["unknown"], "nobody has told of it beside the table");
    let location = Some("s3://lake/wh/sales/orders".parse().unwrap());
    let both = TableRef { location, uuid, ..TableRef::named("both") };
    assert_eq!(d.sent("2", report("2", both.clone())).await, ["duplicate"]);
    assert_eq!(d.sent("3", report("3", by_uuid.clone())).await, ["duplicate"]);
    let moved = TableRef { location: Some("s3://lake/elsewhere".parse().unwrap()), ..by_uuid };
    assert_eq!(d.sent("4", report("4", moved)).await, ["duplicate"], "a uuid comes before the location");
    // A uuid that the table's metadata does not have is not kept, and does not find it by a name either.
    let wrong = Some("00000000-0000-4000-8000-000000000000".to_owned());
    let lies = TableRef { uuid: wrong.clone(), ..both };
    d.sent("5", report("5", lies)).await;
    let named = TableRef {
        names: CatalogName::new("", &["sales", "orders"]).into_iter().collect(),
        uuid: wrong,
        ..TableRef::named("x")
    };
    assert_eq!(d.sent("6", report("6", named)).await, ["unknown"], "another table has the name by now");
}
