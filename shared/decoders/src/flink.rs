//! Events of Flink's catalog listener (FLIP-294), in the small JSON form that a listener sends as a
//! `CloudEvent`. Status and lineage of jobs (FLIP-314) come through OpenLineage.

use lakebell_domain::asset::Format;

use crate::node::Node;
use crate::report::{Content, Lifecycle, Refusal, Report, Says, moment};
use crate::table::{CatalogName, TableRef, format};

/// What a type begins with.
pub const PREFIX: &str = "io.lakebell.flink.";

/// Whether a type of a `CloudEvent` is one of these.
pub fn is_type(kind: &str) -> bool {
    kind.starts_with(PREFIX)
}

/// Decodes an event: its type, its time and its data.
///
/// Errors: the type or the field that is wrong.
pub fn decode(kind: &str, event: &Node<'_>) -> Result<Content, Refusal> {
    let data = event.get("data");
    let lifecycle = match kind.strip_prefix(PREFIX).unwrap_or_default() {
        "catalog.create-table.v1" => Lifecycle::Created,
        "catalog.alter-table.v1" => Lifecycle::Altered,
        "catalog.drop-table.v1" => Lifecycle::Dropped,
        "job.created.v1" | "job.status.v1" => {
            let problem = "status and lineage of jobs are not taken in this form";
            return Err(Refusal::new("type", problem, "send them with the OpenLineage integration of Flink"));
        }
        _ => {
            let hint = "use io.lakebell.flink.catalog.create-table.v1, alter-table or drop-table";
            return Err(Refusal::new("type", "it is no type of a catalog event", hint));
        }
    };
    if data.get("temporary").bool() == Some(true) {
        return Ok(Content::only_skipped("a temporary table", "it is temporary"));
    }
    let identifier = data.get("identifier");
    let (Some(database), Some(name)) = (identifier.get("database").text(), identifier.get("object").text()) else {
        let hint = "give {\"catalog\", \"database\", \"object\"}";
        return Err(Refusal::new("data.identifier", "it names no table", hint));
    };
    let catalog = identifier.get("catalog").text().unwrap_or_default();
    let told = format(data.at(&["context", "factory"]).text()).or_else(|| {
        let connector = ["table", "new_table"].map(|table| data.at(&[table, "options", "connector"]).text());
        format(connector.into_iter().flatten().next())
    });
    let mut table = TableRef::named(&format!("{catalog}.{database}.{name}")).format(told);
    table.add(CatalogName::new(catalog, &[database, name]));
    for of_table in ["table", "new_table"] {
        let options = data.at(&[of_table, "options"]);
        let path = options.get("path").text().or_else(|| options.get("location").text());
        let below = options.get("warehouse").text().filter(|_| told == Some(Format::Paimon));
        let below = below.map(|warehouse| format!("{}/{database}.db/{name}", warehouse.trim_end_matches('/')));
        if let Some(path) = path.or(below.as_deref()) {
            table.at(path);
        }
    }
    let at = moment(event.get("time"));
    let mut content = Content::default();
    if lifecycle == Lifecycle::Altered {
        content.report(Report { table: table.clone(), says: Says::SchemaChanged { schema: None }, at })?;
    }
    content.report(Report { table, says: Says::Lifecycle(lifecycle), at })?;
    Ok(content)
}
