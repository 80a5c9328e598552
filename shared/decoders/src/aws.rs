//! What AWS services say through EventBridge: changes of the Glue Data Catalog, results of Glue Data
//! Quality, and S3 Tables through CloudTrail. All of it is best effort, and may be missing or late.

use lakebell_domain::asset::Format;
use lakebell_domain::state::{CheckResult, Severity};

use crate::node::Node;
use crate::report::{Content, Entry, Lifecycle, Refusal, Report, Says, bounded, check_name, moment};
use crate::table::{CatalogName, TableRef};

/// Whether an event of EventBridge is one of these.
pub fn is_known(event: &Node<'_>) -> bool {
    let source = event.get("source").text().unwrap_or_default();
    matches!(source, "aws.glue" | "aws.glue-dataquality") || is_s3_tables(event)
}

/// Rules in the wild use different sources: what CloudTrail recorded says itself what it is about.
fn is_s3_tables(event: &Node<'_>) -> bool {
    event.at(&["detail", "eventSource"]).text() == Some("s3tables.amazonaws.com")
}

/// Decodes an event of EventBridge.
///
/// Errors: the field that is missing or wrong.
pub fn decode(event: &Node<'_>) -> Result<Entry, Refusal> {
    let id = event.get("id").id().ok_or_else(|| missing("id"))?;
    let kind = event.get("detail-type").text().ok_or_else(|| missing("detail-type"))?;
    let at = moment(event.get("time"));
    let word = if is_s3_tables(event) { "aws.s3tables" } else { event.get("source").text().unwrap_or("aws") };
    let account = event.get("account").text().unwrap_or_default();
    let source = bounded(&format!("{word}:{account}:{}", event.get("region").text().unwrap_or_default()));
    let mut content = Content::default();
    let detail = event.get("detail");
    match kind {
        _ if is_s3_tables(event) => s3_tables(&mut content, detail, at)?,
        "Glue Data Catalog Table State Change" => {
            let name = detail.get("tableName").text().ok_or_else(|| missing("detail.tableName"))?;
            let says = match detail.get("typeOfChange").text().unwrap_or_default() {
                "CreateTable" => Says::Lifecycle(Lifecycle::Created),
                "DeleteTable" => Says::Lifecycle(Lifecycle::Dropped),
                // An Iceberg commit is an update, and partitions are printed, not told.
                _ => Says::Touched,
            };
            content.report(Report { table: glue_table(event, name)?, says, at })?;
        }
        "Glue Data Catalog Database State Change" => {
            let lifecycle = match detail.get("typeOfChange").text().unwrap_or_default() {
                "CreateTable" => Lifecycle::Created,
                "DeleteTable" | "BatchDeleteTable" => Lifecycle::Dropped,
                "UpdateTable" => Lifecycle::Altered,
                other => {
                    content.skip(other, "it changes no table");
                    return Ok(Entry { source, id, content });
                }
            };
            for name in detail.get("changedTables").list().iter().filter_map(Node::text) {
                let table = glue_table(event, name)?;
                content.report(Report { table, says: Says::Lifecycle(lifecycle.clone()), at })?;
            }
        }
        "Data Quality Evaluation Results Available" => data_quality(&mut content, event, at)?,
        other => content.skip(other, "events of this type mean nothing here"),
    }
    Ok(Entry { source, id, content })
}

/// Decodes the bytes of an event.
///
/// Errors: what is none of these events.
pub fn decode_bytes(bytes: &[u8]) -> Result<Entry, Refusal> {
    let event = Node::read(bytes)?;
    if !is_known(&event) {
        return Err(Refusal::new(
            "source",
            "it is no event that is known",
            "send events of aws.glue or aws.glue-dataquality",
        ));
    }
    decode(&event)
}

fn missing(field: &str) -> Refusal {
    Refusal::new(field, "it is missing or no text", "hand on the event of EventBridge as it is")
}

/// A table of the event's own catalog. Its format is not told.
fn glue_table(event: &Node<'_>, name: &str) -> Result<TableRef, Refusal> {
    let database = event.at(&["detail", "databaseName"]).text();
    table_in(event, database.ok_or_else(|| missing("detail.databaseName"))?, name)
}

fn table_in(event: &Node<'_>, database: &str, name: &str) -> Result<TableRef, Refusal> {
    let (region, account) = (event.get("region").text(), event.get("account").text());
    let (Some(region), Some(account)) = (region, account) else { return Err(missing("account")) };
    let mut table = TableRef::named(&format!("{database}.{name}"));
    table.add(CatalogName::new(&format!("arn:aws:glue:{region}:{account}"), &[database, name]));
    Ok(table)
}

/// One verdict for each ruleset that was evaluated on a table of the catalog.
fn data_quality(content: &mut Content, event: &Node<'_>, at: Option<jiff::Timestamp>) -> Result<(), Refusal> {
    let detail = event.get("detail");
    let about = detail.get("context");
    let (Some(database), Some(name)) = (about.get("databaseName").text(), about.get("tableName").text()) else {
        content.skip("Data Quality Evaluation Results Available", "a job's own evaluation names no table");
        return Ok(());
    };
    let skipped = detail.get("numRulesSkipped").int().unwrap_or_default();
    let failed = detail.get("numRulesFailed").int().unwrap_or_default();
    let result = match detail.get("state").text() {
        _ if failed > 0 => CheckResult::Failed,
        Some("SUCCEEDED") if skipped == 0 => CheckResult::Passed,
        Some("FAILED") => CheckResult::Failed,
        // Rules that were not evaluated are no verdict.
        _ => CheckResult::Errored,
    };
    let run = about.get("runId").text().or_else(|| detail.get("resultId").text()).map(bounded);
    let rulesets: Vec<&str> = detail.get("rulesetNames").list().iter().filter_map(Node::text).collect();
    for ruleset in if rulesets.is_empty() { vec!["glue data quality"] } else { rulesets } {
        let says = Says::Check {
            check: check_name(ruleset),
            result,
            severity: Severity::Error,
            run: run.clone(),
            started_at: None,
            snapshot: None,
        };
        content.report(Report { table: table_in(event, database, name)?, says, at })?;
    }
    Ok(())
}

/// A call of S3 Tables, or its own maintenance.
fn s3_tables(content: &mut Content, detail: &Node<'_>, at: Option<jiff::Timestamp>) -> Result<(), Refusal> {
    let call = detail.get("eventName").text().ok_or_else(|| missing("detail.eventName"))?;
    if detail.get("errorCode").is_there() {
        content.skip(call, "the call failed");
        return Ok(());
    }
    let says = match call {
        "UpdateTableMetadataLocation" | "TablesMaintenanceEvent" => Says::Touched,
        "CreateTable" => Says::Lifecycle(Lifecycle::Created),
        "DeleteTable" => Says::Lifecycle(Lifecycle::Dropped),
        "RenameTable" => Says::Lifecycle(Lifecycle::Renamed { previous: String::new() }),
        other => {
            content.skip(other, "the call changes no table");
            return Ok(());
        }
    };
    let parameters = detail.get("requestParameters");
    let name = parameters.get("newName").text().or_else(|| parameters.get("name").text());
    let namespace = parameters.get("namespace");
    let namespace = namespace.text().or_else(|| namespace.list().first().and_then(Node::text));
    let bucket = parameters.get("tableBucketARN").text().unwrap_or_default();
    let mut table = TableRef::named(&[namespace, name].into_iter().flatten().collect::<Vec<_>>().join("."))
        .format(Some(Format::Iceberg));
    if let (Some(namespace), Some(name)) = (namespace, name) {
        table.add(CatalogName::new(bucket, &[namespace, name]));
    }
    for place in ["requestParameters", "responseElements"] {
        table.at(detail.at(&[place, "metadataLocation"]).text().unwrap_or_default());
    }
    let of_table = |resource: &&Node<'_>| resource.get("type").text() == Some("AWS::S3Tables::Table");
    let resource = detail.get("resources").list().iter().find(of_table);
    let arn = resource.and_then(|resource| resource.get("ARN").text().or_else(|| resource.get("arn").text()));
    if let Some((bucket, id)) = arn.and_then(|arn| arn.split_once("/table/")) {
        table.add(CatalogName::new(bucket, &["table", id]));
    }
    content.report(Report { table, says, at })
}
