//! Callbacks that writers have of their own: Paimon's mark-done report, Hudi's commit callback,
//! Iceberg's metrics report.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;

use crate::node::Node;
use crate::report::{Committed, Content, Entry, Refusal, Report, Says, bounded, digest, partition_of};
use crate::table::{CatalogName, TableRef, dotted};

/// A partition that Paimon marked done, by its `http-report` action (`PartitionMarkDoneAction`).
///
/// It has no id and no time: path and partition make it distinct, so that a partition that is opened
/// and done again is the same event, which is evaluated again.
///
/// Errors: the field that is missing or wrong.
pub fn paimon_mark_done(bytes: &[u8]) -> Result<Entry, Refusal> {
    let document = Node::read(bytes)?;
    let path = required(&document, "path", "the location of the table")?;
    let partition = required(&document, "partition", "the partition, as in dt=2026-01-15/")?;
    let Some(partition) = partition_of(partition) else {
        return Err(Refusal::new(
            "partition",
            "it is no path of key=value",
            "send what Paimon writes, as in dt=2026-01-15/",
        ));
    };
    let name = document.get("table").text();
    let mut table = TableRef::named(name.unwrap_or(path)).format(Some(Format::Paimon));
    table.at(path);
    if let Some((database, name)) = name.and_then(|name| name.rsplit_once('.')) {
        table.add(CatalogName::new("", &[database, name]));
    }
    let id = digest(&[path.trim_end_matches('/'), &partition]);
    let mut content = Content::default();
    content.report(Report { table, says: Says::Partition { partition }, at: None })?;
    Ok(Entry { source: "paimon:http-report".to_owned(), id, content })
}

/// A commit, by Hudi's HTTP commit callback (`HoodieWriteCommitCallbackMessage`).
///
/// Errors: the field that is missing or wrong.
pub fn hudi_commit(bytes: &[u8]) -> Result<Entry, Refusal> {
    let document = Node::read(bytes)?;
    let instant = document.get("commitTime").id().ok_or_else(|| {
        Refusal::new("commitTime", "it is missing", "send the instant of the commit, as Hudi's callback does")
    })?;
    let path = required(&document, "basePath", "the location of the table")?;
    let name = document.get("tableName").text();
    let mut table = TableRef::named(name.unwrap_or(path)).format(Some(Format::Hudi));
    table.at(path);
    let id = digest(&[path.trim_end_matches('/'), &instant]);
    let mut content = Content::default();
    let mut committed = Committed::named(&instant);
    committed.stats = written(document.get("hoodieWriteStat").list());
    content.report(Report { table, says: Says::Committed(committed), at: None })?;
    Ok(Entry { source: "hudi:commit-callback".to_owned(), id, content })
}

/// A commit, by an Iceberg REST client's metrics report. Scan reports mean nothing here.
///
/// Errors: the field that is missing or wrong.
pub fn iceberg_metrics(bytes: &[u8]) -> Result<Entry, Refusal> {
    let read = Node::read(bytes)?;
    // The catalog's own route has it bare, a wrapper may put it below `report`.
    let document = if read.get("report").is_object() { read.get("report") } else { &read };
    let source = "iceberg:metrics-report".to_owned();
    let name = required(document, "table-name", "the name of the table")?;
    let snapshot = document.get("snapshot-id").id();
    match document.get("report-type").text() {
        Some("commit-report") => {}
        Some("scan-report") => {
            let id = digest(&["scan", name, snapshot.as_deref().unwrap_or_default()]);
            return Ok(Entry { source, id, content: Content::only_skipped(name, "a scan changes nothing") });
        }
        _ => {
            let hint = "send a commit-report or a scan-report";
            return Err(Refusal::new("report-type", "it is missing or not known", hint));
        }
    }
    let Some(snapshot) = snapshot else {
        return Err(Refusal::new("snapshot-id", "it is missing", "send the id of the snapshot that was committed"));
    };
    let mut table = TableRef::named(name).format(Some(Format::Iceberg));
    table.add(CatalogName::new("", &dotted(name)));
    let id = digest(&[name, &snapshot]);
    let mut content = Content::default();
    let mut committed = Committed::named(&snapshot);
    // Version 1 of the format writes 0, which orders nothing.
    committed.ordinal = document.get("sequence-number").int().and_then(|number| number.try_into().ok());
    committed.operation = document.get("operation").text().map(bounded);
    committed.count(document.get("metrics").members().iter().map(|(name, node)| (&**name, node)));
    content.report(Report { table, says: Says::Committed(committed), at: None })?;
    Ok(Entry { source, id, content })
}

/// What Hudi counts for each file that a commit wrote, summed.
fn written(files: &[Node<'_>]) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for name in ["numInserts", "numUpdateWrites", "numDeletes", "totalWriteBytes"] {
        let counted: Vec<i64> = files.iter().filter_map(|file| file.get(name).int()).collect();
        if !counted.is_empty() {
            sums.insert(name.to_owned(), counted.into_iter().fold(0, i64::saturating_add));
        }
    }
    sums
}

fn required<'a>(document: &'a Node<'_>, name: &str, what: &str) -> Result<&'a str, Refusal> {
    match document.get(name).text() {
        Some(text) if text.len() <= 4_096 => Ok(text),
        Some(text) => {
            let problem = format!("it has {} bytes: `{}...`", text.len(), bounded(text));
            Err(Refusal::new(name, problem, "use at most 4096"))
        }
        None => Err(Refusal::new(name, "it is missing or no text", format!("give {what}"))),
    }
}
