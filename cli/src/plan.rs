//! What would make a deployment what a file says: pure, from the file and what is there.

use std::collections::BTreeSet;

use lakebell_domain::asset::{AssetKey, Location, WrittenKey};
use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::{AssetPrefix, AssetSelector, TargetSpec};
use lakebell_engine::assets::AssetSpec;
use lakebell_engine::ports::scheduler::ConnectionSpec;
use lakebell_engine::records::Warehouse;
use lakebell_engine::settings::spec_of;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::file::Declarations;
use crate::text::at;

/// What is there, as the API lists it.
#[derive(Debug, Default)]
pub(crate) struct Current {
    pub(crate) connections: Vec<Value>,
    pub(crate) warehouses: Vec<Value>,
    /// Assets of the file's project.
    pub(crate) assets: Vec<Value>,
    /// Targets of every project that the file names.
    pub(crate) targets: Vec<Value>,
}

/// What happens to one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    Create,
    Change,
    Same,
    Delete,
    /// It is not in the file, and stays.
    Keep,
    /// It cannot be done; nothing is.
    Conflict,
}

impl Action {
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Change => "~",
            Self::Same => "=",
            Self::Delete => "-",
            Self::Keep => ".",
            Self::Conflict => "!",
        }
    }
}

/// What to send for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    Nothing,
    PutConnection(ConnectionSpec),
    PutWarehouse(Warehouse),
    Register(ProjectCode, AssetSpec<WrittenKey>),
    Declare(ProjectCode, Box<TargetSpec>),
    Deregister(ProjectCode, AssetKey),
    Undeclare(TargetId),
}

/// One line of the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// What differs, or why.
    pub(crate) notes: Vec<String>,
    pub(crate) operation: Operation,
}

/// The steps in the order in which they must happen: what others need first, removals last.
pub(crate) fn plan(declared: &Declarations, current: &Current, prune: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = declared.connections.iter().map(|spec| connection(spec, current)).collect();
    steps.extend(declared.warehouses.iter().map(|warehouse| self::warehouse(warehouse, current)));
    steps.extend(declared.assets.iter().map(|spec| asset(declared.project, spec, current)));
    steps.extend(declared.targets.iter().map(|(id, spec)| target(id, spec, declared, current)));
    if !declared.is_records {
        steps.extend(targets_gone(declared, current, prune));
        steps.extend(assets_gone(declared, current, prune));
    }
    steps
}

fn connection(spec: &ConnectionSpec, current: &Current) -> Step {
    let before = current.connections.iter().find(|known| at(known, "/name") == spec.name.as_str());
    let (action, notes) = compare(before, spec);
    let operation = if action == Action::Same { Operation::Nothing } else { Operation::PutConnection(spec.clone()) };
    Step { action, kind: "connection", name: spec.name.to_string(), notes, operation }
}

/// One that is the same is declared again all the same: that registers tables which came since.
fn warehouse(warehouse: &Warehouse, current: &Current) -> Step {
    let name = warehouse.location.to_string();
    let before = current.warehouses.iter().find(|known| at(known, "/location") == name);
    let (action, notes) = compare(before, warehouse);
    Step { action, kind: "warehouse", name, notes, operation: Operation::PutWarehouse(warehouse.clone()) }
}

fn asset(project: ProjectCode, spec: &AssetSpec<WrittenKey>, current: &Current) -> Step {
    let step = |action, notes, operation| Step { action, kind: "asset", name: spec.key.to_string(), notes, operation };
    let location = spec.location.to_string();
    let key_of = |known: &Value| at(known, "/key").parse::<AssetKey>().ok();
    // Of several formats under one name the one that lives there, if any does.
    let is_of_name = |known: &&Value| key_of(known).is_some_and(|key| spec.key.may_be(&key));
    let mut of_name: Vec<&Value> = current.assets.iter().filter(is_of_name).collect();
    of_name.sort_by_key(|known| at(known, "/location") != location);
    let is_told = spec.key.told().is_some();
    if let Some(known) = of_name.into_iter().find(|known| is_told || at(known, "/location") == location) {
        let (key, there) = (at(known, "/key"), at(known, "/location"));
        if there == location {
            let (action, notes) = compare(Some(&registered(known)), &spec.clone().with_key(key));
            let is_same = action == Action::Same;
            let operation = if is_same { Operation::Nothing } else { Operation::Register(project, spec.clone()) };
            return step(action, notes, operation);
        }
        let note =
            format!("it is registered at {there}, not {location}; `lakebell delete asset {key}` first to move it");
        return step(Action::Conflict, vec![note], Operation::Nothing);
    }
    let is_taken = |known: &&Value| {
        let branch = key_of(known).and_then(|key| key.branch().map(str::to_owned));
        at(known, "/location") == location && branch.as_deref() == spec.key.branch()
    };
    if let Some(known) = current.assets.iter().find(is_taken) {
        let other = at(known, "/key");
        let note = format!("{location} is registered as {other}; `lakebell delete asset {other}` first to rename it");
        return step(Action::Conflict, vec![note], Operation::Nothing);
    }
    step(Action::Create, vec![location], Operation::Register(project, spec.clone()))
}

/// An asset of the list as it would be registered: its settings stand beside its key.
fn registered(known: &Value) -> Value {
    let mut spec = known.get("settings").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["key", "location"] {
        spec.insert(name.to_owned(), known.get(name).cloned().unwrap_or_default());
    }
    Value::Object(spec)
}

fn target(id: &TargetId, spec: &TargetSpec, declared: &Declarations, current: &Current) -> Step {
    let before = current.targets.iter().find(|known| target_id(known).as_ref() == Some(id)).map(definition);
    let (action, mut notes) = compare(before, spec);
    notes.extend(declared.notes.iter().filter(|(of, _)| of == id).map(|(_, note)| note.clone()));
    let operation = if action == Action::Same {
        Operation::Nothing
    } else {
        Operation::Declare(id.project, Box::new(spec.clone()))
    };
    Step { action, kind: "target", name: id.to_string(), notes, operation }
}

/// The declaration in an item of the list of targets.
fn definition(item: &Value) -> &Value {
    let definition = item.get("definition").unwrap_or(&Value::Null);
    definition.get("spec").unwrap_or(definition)
}

fn target_id(item: &Value) -> Option<TargetId> {
    at(item, "/evaluation/target").parse().or_else(|_| at(item, "/target").parse()).ok()
}

fn targets_gone(declared: &Declarations, current: &Current, prune: bool) -> Vec<Step> {
    let wanted: BTreeSet<&TargetId> = declared.targets.iter().map(|(id, _)| id).collect();
    let known = current.targets.iter().filter_map(target_id);
    let gone = known.filter(|id| id.project == declared.project && !wanted.contains(id));
    gone.map(|id| target_gone(id, prune)).collect()
}

/// The API takes a number for a workflow's code and would remove all targets of that workflow.
fn target_gone(id: TargetId, prune: bool) -> Step {
    let name = id.to_string();
    if id.name.as_str().bytes().all(|byte| byte.is_ascii_digit()) {
        let notes = vec!["it is not in the file; its name is a number, so it is removed by hand only".to_owned()];
        return Step { action: Action::Keep, kind: "target", name, notes, operation: Operation::Nothing };
    }
    removal("target", name, prune, Operation::Undeclare(id))
}

/// Assets of the project that the file neither names nor covers by a warehouse. One that a target
/// of the file depends on stays too.
fn assets_gone(declared: &Declarations, current: &Current, prune: bool) -> Vec<Step> {
    let groups = || declared.targets.iter().flat_map(|(_, spec)| &spec.groups);
    let selectors = || groups().flat_map(|group| &group.dependencies).map(|dependency| &dependency.asset);
    let wanted: BTreeSet<&AssetKey> = selectors().filter_map(AssetSelector::key).collect();
    let prefixes: Vec<&AssetPrefix> = selectors().filter_map(AssetSelector::prefix).collect();
    let is_declared = |key: &AssetKey| declared.assets.iter().any(|spec| spec.key.may_be(key));
    let is_selected = |key: &AssetKey| wanted.contains(key) || prefixes.iter().any(|prefix| prefix.takes_in(key));
    let is_wanted = |key: &AssetKey| is_declared(key) || is_selected(key);
    let known_warehouses = current.warehouses.iter().filter_map(|known| serde_json::from_value(known.clone()).ok());
    let warehouses: Vec<Warehouse> = declared.warehouses.iter().cloned().chain(known_warehouses).collect();
    // The list also has assets that no project owns.
    let is_own = |known: &&Value| at(known, "/project") == declared.project.to_string();
    let is_found_by_itself = |key: &AssetKey, location: &Location| {
        warehouses.iter().any(|from| spec_of(from, key.format(), location).is_some())
    };
    current
        .assets
        .iter()
        .filter(is_own)
        .filter_map(|known| Some((at(known, "/key").parse().ok()?, at(known, "/location").parse().ok()?)))
        .filter(|(key, location): &(AssetKey, Location)| !is_wanted(key) && !is_found_by_itself(key, location))
        .map(|(key, _)| removal("asset", key.to_string(), prune, Operation::Deregister(declared.project, key)))
        .collect()
}

fn removal(kind: &'static str, name: String, prune: bool, operation: Operation) -> Step {
    if prune {
        Step { action: Action::Delete, kind, name, notes: Vec::new(), operation }
    } else {
        let notes = vec!["it is not in the file; --prune removes it".to_owned()];
        Step { action: Action::Keep, kind, name, notes, operation: Operation::Nothing }
    }
}

/// What it takes to get from what is there to a declaration.
fn compare<T: Serialize + DeserializeOwned>(before: Option<&Value>, declared: &T) -> (Action, Vec<String>) {
    let Some(before) = before else { return (Action::Create, Vec::new()) };
    // Through the type, so that defaults left out and defaults written are the same.
    let before =
        T::deserialize(before).ok().and_then(|known| serde_json::to_value(known).ok()).unwrap_or(before.clone());
    let after = serde_json::to_value(declared).unwrap_or_default();
    let mut notes = Vec::new();
    differences("", &before, &after, &mut notes);
    (if notes.is_empty() { Action::Same } else { Action::Change }, notes)
}

/// Each field that differs, as `groups[0].advance: "all" -> "any"`.
fn differences(path: &str, before: &Value, after: &Value, notes: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let side = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or_default();
                differences(&path, &side(old), &side(new), notes);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for at in 0..old.len().max(new.len()) {
                let side = |of: &Vec<Value>| of.get(at).cloned().unwrap_or_default();
                differences(&format!("{path}[{at}]"), &side(old), &side(new), notes);
            }
        }
        (old, new) if old == new => {}
        (old, new) => notes.push(format!("{path}: {} -> {}", shown(old), shown(new))),
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { value.to_string() }
}
