//! Targets in the RFC's form: a list of dependency records, or one record.

use std::collections::BTreeSet;

use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::{AssetSelector, DependencyRecord, Gathered, TargetSpec, gather};
use lakebell_engine::targets;
use serde::Serialize;
use serde_json::Value;

use super::dependencies::{Declared, check_connection, put};
use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::problem::ApiError;

/// Most records of one request.
const MAX_RECORDS: usize = 1_000;
/// Most targets of one request: each is a transaction of its own, and all must fit its time.
const MAX_TARGETS: usize = 20;

#[derive(Serialize)]
struct AllDeclared {
    items: Vec<Declared>,
}

/// The records of a body, in whose words its refusals are.
#[derive(Debug)]
pub(super) struct Records {
    list: Vec<DependencyRecord>,
    /// Whether the body is one record rather than a list.
    is_one: bool,
}

impl Records {
    /// A place in the list as one in the body.
    fn place(&self, field: &str) -> String {
        if self.is_one {
            return field.trim_start_matches("[0]").trim_start_matches('.').to_owned();
        }
        field.to_owned()
    }

    fn gather(&self) -> Result<Vec<Gathered>, ApiError> {
        gather(&self.list).map_err(|mut invalid| {
            invalid.field = self.place(&invalid.field);
            invalid.into()
        })
    }
}

/// Reads the records of a body; `None` where it is something else.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Records>, ApiError> {
    match body::read_any::<Value>(bytes)? {
        Value::Array(list) if list.is_empty() => {
            Err(ApiError::invalid("body", "it has no records", "send at least one"))
        }
        Value::Array(list) if list.len() > MAX_RECORDS => {
            let detail = format!("it has {} records, and {MAX_RECORDS} are allowed", list.len());
            Err(ApiError::too_large(detail, MAX_RECORDS))
        }
        // Read from the text again, so that its refusals are in the words of all bodies.
        Value::Array(_) => Ok(Some(Records { list: body::read_any(bytes)?, is_one: false })),
        Value::Object(keys) if keys.contains_key("assetKey") => {
            Ok(Some(Records { list: vec![body::read(bytes)?], is_one: true }))
        }
        _ => Ok(None),
    }
}

/// Declares the targets of records, once all of them are checked. One after the other: where one
/// fails, those before it are declared, and the same request may be sent again.
pub(super) async fn declare(call: &Call<'_>, project: ProjectCode, records: &Records) -> Result<Answer, ApiError> {
    let gathered = records.gather()?;
    if gathered.len() > MAX_TARGETS {
        let detail = format!("its records are {} targets, and {MAX_TARGETS} are allowed", gathered.len());
        return Err(ApiError::too_large(detail, MAX_TARGETS));
    }
    // All go to the same connection: records do not name one.
    if let Some(first) = gathered.first() {
        check_connection(call, &first.spec).await?;
    }
    let dropped = dropped(call, project, &gathered).await?;
    let mut items = Vec::with_capacity(gathered.len());
    for (target, dropped) in gathered.into_iter().zip(dropped) {
        let mut declared = put(call, project, &target.spec).await.map_err(|error| {
            let field = error.field().map(|field| records.place(&target.field(field)));
            error.at(field.unwrap_or_default())
        })?;
        declared.warnings.extend(target.notes);
        declared.warnings.extend(dropped);
        items.push(declared);
    }
    let is_changed = items.iter().any(|declared| declared.changed);
    Answer::with(if is_changed { 201 } else { 200 }, &AllDeclared { items })
}

/// For each target a warning where it depended on more before: somebody who sends one record after
/// the other would not expect the second to replace the first.
async fn dropped(
    call: &Call<'_>,
    project: ProjectCode,
    gathered: &[Gathered],
) -> Result<Vec<Option<String>>, ApiError> {
    let mut ids = Vec::with_capacity(gathered.len());
    for target in gathered {
        ids.push(TargetId { project, name: target.spec.target_name()? });
    }
    let known = targets::explain(&call.context.ports, &ids).await?;
    let warning = |(id, target): (&TargetId, &Gathered)| {
        let before = &known.iter().find(|known| known.definition.target.id == *id)?.definition;
        let kept: BTreeSet<&AssetSelector> = assets(&target.spec).collect();
        let gone: BTreeSet<String> =
            assets(&before.spec).filter(|asset| !kept.contains(asset)).map(ToString::to_string).collect();
        let names = gone.into_iter().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "it no longer depends on {names}: the records of one request are all of a workflow's or task's; send \
                 them together to keep it"
            )
        })
    };
    Ok(ids.iter().zip(gathered).map(warning).collect())
}

fn assets(spec: &TargetSpec) -> impl Iterator<Item = &AssetSelector> {
    spec.groups.iter().flat_map(|group| &group.dependencies).map(|dependency| &dependency.asset)
}
