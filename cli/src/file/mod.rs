//! `lakebell.yaml`: what a deployment should hold.

mod position;
#[cfg(test)]
mod schema;
mod target;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;

use lakebell_domain::Invalid;
use lakebell_domain::asset::{FormatChoice, Location, WrittenKey};
use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::{DependencyRecord, TargetSpec, gather};
use lakebell_engine::assets::AssetSpec;
use lakebell_engine::ports::scheduler::ConnectionSpec;
use lakebell_engine::records::Warehouse;
use serde::Deserialize;
use serde_saphyr::Spanned;

use self::position::Node;
use self::target::TargetEntry;
use crate::error::{CliError, Place};
use crate::settings;

/// What a file declares, checked as far as that is possible without the deployment.
#[derive(Debug)]
pub(crate) struct Declarations {
    /// The project of everything that names no other.
    pub(crate) project: ProjectCode,
    pub(crate) connections: Vec<ConnectionSpec>,
    pub(crate) warehouses: Vec<Warehouse>,
    pub(crate) assets: Vec<AssetSpec<WrittenKey>>,
    pub(crate) targets: Vec<(TargetId, TargetSpec)>,
    /// What a person should know of a target before it is declared.
    pub(crate) notes: Vec<(TargetId, String)>,
    /// It is a list of dependency records, which says nothing about what is not in it.
    pub(crate) is_records: bool,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    /// DolphinScheduler's code of the project that everything below belongs to.
    project: ProjectCode,
    /// The `DolphinScheduler`s to start workflows on.
    #[serde(default)]
    connections: Option<Vec<ConnectionSpec>>,
    /// Prefixes whose tables are found and registered by themselves.
    #[serde(default)]
    warehouses: Option<Vec<WarehouseEntry>>,
    /// Tables that work can depend on.
    #[serde(default)]
    assets: Option<Vec<AssetSpec<WrittenKey>>>,
    /// What is started, and when.
    #[serde(default)]
    targets: Option<Vec<TargetEntry>>,
    /// The same in the RFC's form: one record for each asset that a workflow or a task waits for.
    #[serde(default)]
    dependencies: Option<Vec<DependencyRecord>>,
}

/// A warehouse, whose project is the file's unless it says otherwise.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WarehouseEntry {
    location: Location,
    format: FormatChoice,
    catalog: Option<String>,
    project: Option<ProjectCode>,
}

/// Reads a file: declarations, or dependency records in the RFC's form, which belong to the project
/// that the command line names.
pub(crate) fn read(path: &Path, project: Option<ProjectCode>) -> Result<Declarations, CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        CliError::failed(
            format!("{} cannot be read: {error}", path.display()),
            "give the file with -f FILE; docs/lakebell-yaml.md says what goes into it",
        )
    })?;
    parse(path, &text, project)
}

fn parse(path: &Path, text: &str, project: Option<ProjectCode>) -> Result<Declarations, CliError> {
    let shape: Spanned<Node> = parse_as(path, text)?;
    let checked = match &shape.value {
        Node::List(_) => records(&parse_as::<Vec<_>>(path, text)?, settings::project(project)?),
        Node::Map(entries) if entries.iter().any(|(key, _)| key.value == "assetKey") => {
            records(&[parse_as(path, text)?], settings::project(project)?).map_err(of_only_one)
        }
        _ => check(parse_as(path, text)?),
    };
    checked.map_err(|invalid| {
        let (line, column) = position::find(&shape, &invalid.field);
        CliError::InFile {
            place: Place { path: path.to_owned(), line, column },
            field: invalid.field,
            problem: invalid.problem,
            hint: invalid.hint,
        }
    })
}

/// Reads the text as a type; a refusal has the path of the field beside its place.
fn parse_as<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, CliError> {
    let field = RefCell::new(String::new());
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            *field.borrow_mut() = error.path().to_string();
            error.into_inner()
        })
    });
    parsed.map_err(|error| in_file(path, &field.borrow(), &error))
}

fn in_file(path: &Path, field: &str, error: &serde_saphyr::Error) -> CliError {
    let (line, column) = error.location().map_or((1, 1), |location| (location.line(), location.column()));
    let said = error.to_string();
    let problem = said.strip_suffix(&format!(" at line {line}, column {column}")).unwrap_or(&said);
    // The advice after the comma is for programmers.
    let problem = problem.strip_suffix(", set DuplicateKeyPolicy in Options if acceptable").unwrap_or(problem);
    let place = Place { path: path.to_owned(), line, column };
    let field = if field == "." { String::new() } else { field.to_owned() };
    // A refused text is told with its reason, as `field: problem; hint`.
    let (problem, hint) = match problem.rsplit_once("; ") {
        Some((problem, hint)) => (problem, hint),
        None => (problem, "docs/lakebell-yaml.md says what goes where"),
    };
    CliError::InFile { place, field, problem: problem.to_owned(), hint: hint.to_owned() }
}

fn check(document: Document) -> Result<Declarations, Invalid> {
    positive(document.project, "project")?;
    let connections = document.connections.unwrap_or_default();
    unique("connections", "name", connections.iter().map(|connection| &connection.name))?;
    let warehouses = warehouses(document.warehouses.unwrap_or_default(), document.project)?;
    unique("warehouses", "location", warehouses.iter().map(|warehouse| &warehouse.location))?;
    let assets = document.assets.unwrap_or_default();
    for (at, asset) in assets.iter().enumerate() {
        asset.check_written().map_err(|invalid| invalid.within(&format!("assets[{at}]")))?;
    }
    unique("assets", "key", assets.iter().map(|asset| &asset.key))?;
    unique("assets", "location", assets.iter().map(|asset| Spot(&asset.location, asset.key.branch())))?;
    let mut targets = targets(document.targets.unwrap_or_default(), document.project)?;
    targets.extend(gathered(&document.dependencies.unwrap_or_default(), document.project, "dependencies")?);
    let declared = Declarations { project: document.project, connections, warehouses, assets, ..Declarations::empty() };
    with_targets(declared, targets)
}

/// A file that is a list of dependency records.
fn records(list: &[DependencyRecord], project: ProjectCode) -> Result<Declarations, Invalid> {
    if list.is_empty() {
        return Err(Invalid::new("", "it has no records", "give at least one, or a file with `project` and `targets`"));
    }
    let targets = gathered(list, project, "")?;
    with_targets(Declarations { project, is_records: true, ..Declarations::empty() }, targets)
}

/// A refusal of the only record of a file, whose place in a list means nothing.
fn of_only_one(mut invalid: Invalid) -> Invalid {
    invalid.field = invalid.field.trim_start_matches("[0]").trim_start_matches('.').to_owned();
    invalid
}

impl Declarations {
    const fn empty() -> Self {
        Self {
            project: ProjectCode(0),
            connections: Vec::new(),
            warehouses: Vec::new(),
            assets: Vec::new(),
            targets: Vec::new(),
            notes: Vec::new(),
            is_records: false,
        }
    }
}

/// A target with its place in the file.
struct Placed {
    id: TargetId,
    spec: TargetSpec,
    notes: Vec<String>,
    place: String,
    /// The field that is refused where another target has the same name.
    name: String,
}

fn with_targets(mut declared: Declarations, targets: Vec<Placed>) -> Result<Declarations, Invalid> {
    let mut seen: BTreeMap<TargetId, String> = BTreeMap::new();
    for target in targets {
        if let Some(first) = seen.get(&target.id) {
            let problem = format!("{} is declared by {first} too", target.id);
            return Err(Invalid::new(target.name, problem, "declare it once"));
        }
        seen.insert(target.id.clone(), target.place);
        declared.notes.extend(target.notes.into_iter().map(|note| (target.id.clone(), note)));
        declared.targets.push((target.id, target.spec));
    }
    Ok(declared)
}

/// The targets of dependency records that stand in a list of the file, or are the file.
fn gathered(records: &[DependencyRecord], project: ProjectCode, list: &str) -> Result<Vec<Placed>, Invalid> {
    let place = |field: &str| format!("{list}{field}");
    let gathered = gather(records).map_err(|mut invalid| {
        invalid.field = place(&invalid.field);
        invalid
    })?;
    let mut targets = Vec::with_capacity(gathered.len());
    for target in gathered {
        let name = target.spec.target_name()?;
        targets.push(Placed {
            id: TargetId { project, name },
            place: place(&target.field("")),
            name: place(&target.field("workflowDefinitionCode")),
            notes: target.notes,
            spec: target.spec,
        });
    }
    Ok(targets)
}

fn positive(project: ProjectCode, field: &str) -> Result<(), Invalid> {
    if project.0 > 0 {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("{project} is no project code"),
        "use the positive number that DolphinScheduler shows",
    ))
}

fn warehouses(entries: Vec<WarehouseEntry>, default: ProjectCode) -> Result<Vec<Warehouse>, Invalid> {
    let mut warehouses = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        let project = entry.project.unwrap_or(default);
        positive(project, &format!("warehouses[{at}].project"))?;
        warehouses.push(Warehouse { location: entry.location, format: entry.format, catalog: entry.catalog, project });
    }
    Ok(warehouses)
}

fn targets(entries: Vec<TargetEntry>, default: ProjectCode) -> Result<Vec<Placed>, Invalid> {
    let mut targets = Vec::with_capacity(entries.len());
    for (at, entry) in entries.into_iter().enumerate() {
        let place = format!("targets[{at}]");
        let project = entry.project.unwrap_or(default);
        positive(project, &format!("{place}.project"))?;
        let spec = entry.spec;
        spec.check().map_err(|invalid| invalid.within(&place))?;
        let name = spec.target_name().map_err(|invalid| invalid.within(&place))?;
        let id = TargetId { project, name };
        targets.push(Placed { id, spec, notes: Vec::new(), name: format!("{place}.name"), place });
    }
    Ok(targets)
}

/// Refuses a list in which two entries share what must be an entry's own.
fn unique<T: Ord + Display>(list: &str, field: &str, values: impl Iterator<Item = T>) -> Result<(), Invalid> {
    let mut seen: BTreeMap<T, usize> = BTreeMap::new();
    for (at, value) in values.enumerate() {
        if let Some(first) = seen.get(&value) {
            return Err(Invalid::new(
                format!("{list}[{at}].{field}"),
                format!("{value} is declared by {list}[{first}] too"),
                "declare it once",
            ));
        }
        seen.insert(value, at);
    }
    Ok(())
}

/// A location, and a branch of the table there: what only one asset can have.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Spot<'a>(&'a Location, Option<&'a str>);

impl Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(branch) => write!(f, "{} (branch {branch})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
