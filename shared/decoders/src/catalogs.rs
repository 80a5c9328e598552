//! Events of catalogs: Lakekeeper, Polaris, Nessie. They are sent to brokers by their catalogs; whoever
//! relays one pushes it as it is, bare or as the data of a `CloudEvent`.

use lakebell_domain::asset::Format;

use crate::node::Node;
use crate::report::{Committed, Content, Entry, Lifecycle, Refusal, Report, Says, bounded, digest, moment};
use crate::table::{CatalogName, TableRef};

/// The types of Lakekeeper's events about tables.
const LAKEKEEPER: [&str; 6] =
    ["createTable", "registerTable", "updateTable", "dropTable", "renameTable", "undropTabulars"];

/// Which catalog an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Catalog {
    /// Lakekeeper.
    Lakekeeper,
    /// Polaris.
    Polaris,
    /// Nessie.
    Nessie,
}

/// Whose event a document is, by its structure; `None` for anything else.
pub fn whose(document: &Node<'_>) -> Option<Catalog> {
    let kind = document.get("type").text().unwrap_or_default();
    if document.get("event_type").text().is_some() && document.get("realm_id").is_there()
        || document.get("notification-type").text().is_some()
    {
        return Some(Catalog::Polaris);
    }
    if document.get("repositoryId").is_there() && document.get("specversion") == &Node::Null {
        return Some(Catalog::Nessie);
    }
    let is_its_own = LAKEKEEPER.contains(&kind) || (document.get("tabular-id").is_there() && !kind.contains('.'));
    (document.get("specversion").is_there() && is_its_own).then_some(Catalog::Lakekeeper)
}

/// Decodes an event of a catalog.
///
/// Errors: the field that is missing or wrong.
pub fn decode(catalog: Catalog, document: &Node<'_>) -> Result<Entry, Refusal> {
    match catalog {
        Catalog::Lakekeeper => lakekeeper(document),
        Catalog::Polaris => polaris(document),
        Catalog::Nessie => nessie(document),
    }
}

/// Decodes the bytes of an event of whichever catalog.
///
/// Errors: what is no event of a catalog.
pub fn decode_bytes(bytes: &[u8]) -> Result<Entry, Refusal> {
    let document = Node::read(bytes)?;
    match whose(&document) {
        Some(catalog) => decode(catalog, &document),
        None => Err(Refusal::new("", "it is no event of Lakekeeper, Polaris or Nessie", "send the event as it is")),
    }
}

fn missing(field: &str) -> Refusal {
    Refusal::new(field, "it is missing or no text", "send the event as the catalog writes it")
}

fn iceberg(name: &str) -> TableRef {
    TableRef::named(name).format(Some(Format::Iceberg))
}

/// Namespaces are joined by dots in some types and by the unit separator in others.
fn namespaces(text: &str) -> Vec<&str> {
    text.split(['.', '\u{1f}']).filter(|part| !part.is_empty()).collect()
}

fn lakekeeper(event: &Node<'_>) -> Result<Entry, Refusal> {
    let id = event.get("id").id().ok_or_else(|| missing("id"))?;
    let kind = event.get("type").text().ok_or_else(|| missing("type"))?;
    let source = bounded(event.get("source").text().unwrap_or("lakekeeper"));
    let data = event.get("data");
    let skipped = |why: &str| Content::only_skipped(kind, why);
    let is_table = event.get("tabular-type").text().is_none_or(|word| word == "table");
    if !is_table || !LAKEKEEPER.contains(&kind) {
        return Ok(Entry { source, id, content: skipped("it is about no table, or of a type that changes none") });
    }
    let warehouse = event.get("warehouse-id").text().unwrap_or_default();
    let (Some(namespace), Some(name)) = (event.get("namespace").text(), event.get("name").text()) else {
        return Err(missing("namespace"));
    };
    let mut path = namespaces(namespace);
    path.push(name);
    let mut table = iceberg(&path.join(".")).uuid(event.get("tabular-id").text());
    table.add(CatalogName::new(warehouse, &path));
    // The catalog is not part of the name that people give the table.
    table.add(CatalogName::new("", &path));
    table.at(data.get("location").text().unwrap_or_default());
    let mut content = Content::default();
    let at = moment(event.get("time"));
    let lifecycle = |lifecycle: Lifecycle| Report { table: table.clone(), says: Says::Lifecycle(lifecycle), at };
    match kind {
        "createTable" if data.get("stage-create").bool() == Some(true) => {
            content.skip(kind, "a staged table is not there yet");
        }
        "createTable" | "registerTable" | "undropTabulars" => content.report(lifecycle(Lifecycle::Created))?,
        "dropTable" => content.report(lifecycle(Lifecycle::Dropped))?,
        "renameTable" => {
            let from = data.get("source");
            let before: Vec<&str> = from.get("namespace").list().iter().filter_map(Node::text).collect();
            let before = [before, from.get("name").text().into_iter().collect()].concat().join(".");
            let to = data.get("destination");
            let mut path: Vec<&str> = to.get("namespace").list().iter().filter_map(Node::text).collect();
            path.extend(to.get("name").text());
            let mut renamed = table.clone();
            renamed.add(CatalogName::new(warehouse, &path));
            let says = Says::Lifecycle(Lifecycle::Renamed { previous: bounded(&before) });
            content.report(Report { table: renamed, says, at })?;
        }
        _ => updates(&mut content, &table, data, at)?,
    }
    Ok(Entry { source, id, content })
}

fn updates(
    content: &mut Content,
    table: &TableRef,
    data: &Node<'_>,
    at: Option<jiff::Timestamp>,
) -> Result<(), Refusal> {
    let mut says = Vec::new();
    let mut newest = None;
    for update in data.get("updates").list() {
        match update.get("action").text().unwrap_or_default() {
            "add-snapshot" => newest = update.at(&["snapshot", "snapshot-id"]).id(),
            "set-snapshot-ref" => match (update.get("type").text(), update.get("ref-name").text()) {
                (Some("tag"), Some(tag)) => says.push(Says::Tagged { tag: bounded(tag) }),
                // Another branch is another asset's history.
                (Some("branch"), Some("main")) => newest = update.get("snapshot-id").id().or(newest),
                _ => newest = None,
            },
            "add-schema" => says.push(Says::SchemaChanged { schema: update.at(&["schema", "schema-id"]).int() }),
            _ => {}
        }
    }
    says.extend(newest.map(|snapshot| Says::Committed(Committed::named(&snapshot))));
    if says.is_empty() {
        says.push(Says::Touched);
    }
    for says in says {
        content.report(Report { table: table.clone(), says, at })?;
    }
    Ok(())
}

fn polaris(event: &Node<'_>) -> Result<Entry, Refusal> {
    if let Some(kind) = event.get("notification-type").text() {
        return notification(event, kind);
    }
    let kind = event.get("event_type").text().ok_or_else(|| missing("event_type"))?;
    let catalog = event.get("catalog_name").text().unwrap_or_default();
    let source = bounded(&format!("polaris:{}", event.get("realm_id").text().unwrap_or_default()));
    let at = moment(event.get("timestamp"));
    let listed = |name: &str| event.get(name).list().iter().filter_map(Node::text).collect::<Vec<_>>();
    let mut path = listed("table_identifier");
    if path.is_empty() {
        // The CloudWatch listener writes it with dots.
        path = event.get("table_identifier").text().map(|text| text.split('.').collect()).unwrap_or_default();
    }
    if path.is_empty() {
        path = listed("namespace");
        path.extend(event.get("table_name").text());
    }
    let id = event.get("event_id").id().unwrap_or_else(|| {
        let request = event.get("request_id").text().unwrap_or_default();
        digest(&[kind, catalog, &path.join("."), request])
    });
    let mut content = Content::default();
    let says = match kind {
        "AFTER_CREATE_TABLE" | "AFTER_REGISTER_TABLE" => Says::Lifecycle(Lifecycle::Created),
        "AFTER_UPDATE_TABLE" | "AFTER_COMMIT_TABLE" | "AFTER_COMMIT_TRANSACTION" => Says::Touched,
        "AFTER_DROP_TABLE" => Says::Lifecycle(Lifecycle::Dropped),
        "AFTER_RENAME_TABLE" => {
            path = listed("destination");
            Says::Lifecycle(Lifecycle::Renamed { previous: bounded(&listed("source").join(".")) })
        }
        _ => return Ok(Entry { source, id, content: Content::only_skipped(kind, "it changes no table") }),
    };
    if path.len() < 2 {
        return Err(missing("table_identifier"));
    }
    let mut table = iceberg(&path.join("."));
    table.add(CatalogName::new(catalog, &path));
    content.report(Report { table, says, at })?;
    Ok(Entry { source, id, content })
}

/// A notification from catalog to catalog.
fn notification(event: &Node<'_>, kind: &str) -> Result<Entry, Refusal> {
    let payload = event.get("payload");
    let name = payload.get("table-name").text().unwrap_or("unnamed");
    let says = match kind {
        "CREATE" => Says::Lifecycle(Lifecycle::Created),
        "UPDATE" => Says::Touched,
        "DROP" => Says::Lifecycle(Lifecycle::Dropped),
        _ => {
            let id = digest(&["polaris", kind, name]);
            let content = Content::only_skipped(kind, "it changes no table");
            return Ok(Entry { source: "polaris:notification".to_owned(), id, content });
        }
    };
    let uuid = payload.get("table-uuid").text();
    let file = payload.get("metadata-location").text().unwrap_or_default();
    let mut table = iceberg(name).uuid(uuid);
    table.at(file);
    if !table.is_findable() {
        return Err(missing("payload.metadata-location"));
    }
    let time = payload.get("timestamp");
    let stamp = time.int().map(|millis| millis.to_string()).unwrap_or_default();
    let id = digest(&["polaris", kind, uuid.unwrap_or_default(), file, &stamp]);
    let mut content = Content::default();
    content.report(Report { table, says, at: moment(time) })?;
    Ok(Entry { source: "polaris:notification".to_owned(), id, content })
}

fn nessie(event: &Node<'_>) -> Result<Entry, Refusal> {
    let id = event.get("id").id().ok_or_else(|| missing("id"))?;
    let kind = event.get("type").text().ok_or_else(|| missing("type"))?;
    let source = bounded(&format!("nessie:{}", event.get("repositoryId").text().unwrap_or_default()));
    let at = moment(event.get("eventCreationTimestamp"));
    let reference = event.get("reference");
    let skipped =
        |why: &str| Ok(Entry { source: source.clone(), id: id.clone(), content: Content::only_skipped(kind, why) });
    if !matches!(kind, "CONTENT_STORED" | "CONTENT_REMOVED") {
        return skipped("the events of the contents that it changed follow, or it is about no table");
    }
    // The state of a table is that of its main line; a tag of the catalog is none of a table.
    if reference.get("type").text() != Some("BRANCH") || reference.get("name").text() != Some("main") {
        return skipped("it is on another branch than main");
    }
    let elements: Vec<&str> = event.at(&["contentKey", "elements"]).list().iter().filter_map(Node::text).collect();
    if elements.is_empty() {
        return Err(missing("contentKey.elements"));
    }
    let content_of = event.get("content");
    if kind == "CONTENT_STORED" && content_of.get("type").text() != Some("ICEBERG_TABLE") {
        return skipped("its content is no Iceberg table");
    }
    let mut table = iceberg(&elements.join("."));
    table.add(CatalogName::new("", &elements));
    table.at(content_of.get("metadataLocation").text().unwrap_or_default());
    let says = match (kind, content_of.get("snapshotId").id()) {
        ("CONTENT_REMOVED", _) => Says::Lifecycle(Lifecycle::Dropped),
        (_, Some(snapshot)) => Says::Committed(Committed::named(&snapshot)),
        (_, None) => Says::Touched,
    };
    let mut content = Content::default();
    content.report(Report { table, says, at })?;
    Ok(Entry { source: source.clone(), id, content })
}
