//! Dependencies in the form of the RFC (apache/dolphinscheduler#18627): one record for each asset
//! that a workflow or a task waits for.
//!
//! The records of one workflow and task are one target; `dependencyGroup` names the group. Refusals
//! name the record by its place in the list, as in `[1].conditionJson.watermark`.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::WorkflowRef;
use super::selector::AssetSelector;
use super::spec::{DependencySpec, GroupSpec, TargetSpec, default_group};
use crate::Invalid;
use crate::ids::{GroupName, TaskCode, WorkflowCode};

/// One dependency as the RFC writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DependencyRecord {
    /// The workflow to start.
    pub workflow_definition_code: WorkflowCode,
    /// The task that waits in a running workflow; absent or null, the whole workflow is started.
    pub task_definition_code: Option<TaskCode>,
    /// The asset: a key of two or three segments, or a prefix.
    pub asset_key: AssetSelector,
    /// The records of one group must all hold; groups are alternatives.
    #[serde(default = "default_group")]
    pub dependency_group: GroupName,
    /// The conditions, as an object or as the text of one; absent, any new commit that changes data.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("type" = ["object", "string", "null"])))]
    pub condition_json: Value,
    /// 1 or absent: on. 0: the record is left out.
    #[serde(default = "on")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub enabled_flag: u8,
    /// How long a sensor waits, in minutes; a setting of the target.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout_minutes: Option<u32>,
    /// How often a sensor asks, in seconds; a setting of the target.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub check_interval_seconds: Option<u32>,
}

const fn on() -> u8 {
    1
}

/// The target that the records of one workflow and task are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The target.
    pub spec: TargetSpec,
    /// What a person should know: records that are left out.
    pub notes: Vec<String>,
    /// Where the target begins in the list.
    first: usize,
    /// For each group, the record of each dependency.
    records: Vec<Vec<usize>>,
    /// The records that gave `timeoutMinutes` and `checkIntervalSeconds`.
    settings: [Option<usize>; 2],
}

const SETTINGS: [&str; 2] = ["timeoutMinutes", "checkIntervalSeconds"];

/// Makes targets of records, each checked, in the order in which they begin.
///
/// Errors: what a record has wrong, what two records of a target contradict each other in, and what
/// [`TargetSpec::check`] refuses, all at the record.
pub fn gather(records: &[DependencyRecord]) -> Result<Vec<Gathered>, Invalid> {
    let mut of_targets: Vec<Vec<usize>> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let is_same = |other: &&mut Vec<usize>| {
            let first = &records[other[0]];
            first.workflow_definition_code == record.workflow_definition_code
                && first.task_definition_code == record.task_definition_code
        };
        match of_targets.iter_mut().find(is_same) {
            Some(target) => target.push(at),
            None => of_targets.push(vec![at]),
        }
    }
    of_targets.into_iter().map(|of_target| target(records, &of_target)).collect()
}

fn target(records: &[DependencyRecord], of_target: &[usize]) -> Result<Gathered, Invalid> {
    if let Some(at) = of_target.iter().find(|at| records[**at].enabled_flag > 1) {
        let problem = format!("{} is no flag", records[*at].enabled_flag);
        return Err(Invalid::new(format!("[{at}].enabledFlag"), problem, "use 0 or 1"));
    }
    let is_on = |at: &&usize| records[**at].enabled_flag == 1;
    let is_off = !of_target.iter().any(|at| is_on(&at));
    let first = of_target[0];
    let workflow = WorkflowRef::Code(records[first].workflow_definition_code);
    let mut gathered = Gathered {
        spec: TargetSpec {
            task_definition_code: records[first].task_definition_code,
            enabled_flag: u8::from(!is_off),
            ..TargetSpec::starting(workflow, Vec::new())
        },
        notes: Vec::new(),
        first,
        records: Vec::new(),
        settings: [None; 2],
    };
    for at in of_target {
        // Where all are off the target is kept as a whole, with its cursors, and switched off.
        if is_off || is_on(&at) {
            gathered.add(*at, &records[*at])?;
        } else {
            gathered.notes.push(format!(
                "record [{at}] is off (enabledFlag 0): group `{}` does not wait for {}",
                records[*at].dependency_group, records[*at].asset_key
            ));
        }
    }
    match gathered.spec.check() {
        Ok(()) => Ok(gathered),
        Err(invalid) => Err(gathered.in_records(invalid)),
    }
}

impl Gathered {
    fn add(&mut self, at: usize, record: &DependencyRecord) -> Result<(), Invalid> {
        let condition = Condition::read(record).map_err(|mut invalid| {
            invalid.field = format!("[{at}].{}", invalid.field);
            invalid
        })?;
        let of_record = [record.timeout_minutes, record.check_interval_seconds];
        for (setting, both) in of_record.into_iter().zip(condition.settings).enumerate() {
            for given in [both.0, both.1].into_iter().flatten() {
                self.set(at, setting, given)?;
            }
        }
        let group = self.spec.groups.iter().position(|group| group.name == record.dependency_group);
        let group = group.unwrap_or_else(|| {
            self.spec.groups.push(GroupSpec {
                name: record.dependency_group.clone(),
                advance: None,
                independent: false,
                dependencies: Vec::new(),
            });
            self.records.push(Vec::new());
            self.spec.groups.len() - 1
        });
        let dependencies = &mut self.spec.groups[group].dependencies;
        if let Some(same) = dependencies.iter().position(|other| other.asset == record.asset_key) {
            return Err(Invalid::new(
                format!("[{at}].assetKey"),
                format!(
                    "record [{}] has {} in group `{}` already",
                    self.records[group][same], record.asset_key, record.dependency_group
                ),
                "name each asset once in a group",
            ));
        }
        dependencies.push(condition.dependency);
        self.records[group].push(at);
        Ok(())
    }

    /// Takes a setting of the target, which no other record may have otherwise.
    fn set(&mut self, at: usize, setting: usize, given: u32) -> Result<(), Invalid> {
        let known = match setting {
            0 => &mut self.spec.timeout_minutes,
            _ => &mut self.spec.check_interval_seconds,
        };
        match (*known, self.settings[setting]) {
            (Some(other), Some(before)) if other != given => {
                let owner = if before == at { "the record".to_owned() } else { format!("record [{before}]") };
                Err(Invalid::new(
                    format!("[{at}].{}", SETTINGS[setting]),
                    format!("it is {given} here, and {owner} says {other} for the same target"),
                    "give the same in all records of a workflow and task, or give it once",
                ))
            }
            _ => {
                *known = Some(given);
                self.settings[setting].get_or_insert(at);
                Ok(())
            }
        }
    }

    /// A refusal of the target in the words of its records.
    #[must_use]
    pub fn in_records(&self, mut invalid: Invalid) -> Invalid {
        invalid.field = self.field(&invalid.field);
        invalid
    }

    /// A field of the target as one of a record: `groups[0].dependencies[1].tag` is
    /// `[1].conditionJson.tag` where that dependency is the second record.
    pub fn field(&self, field: &str) -> String {
        if let Some(setting) = SETTINGS.iter().position(|name| *name == field) {
            return format!("[{}].{field}", self.settings[setting].unwrap_or(self.first));
        }
        let Some((group, rest)) = indexed(field, "groups") else {
            return match field {
                "" => format!("[{}]", self.first),
                "groups" => format!("[{}].dependencyGroup", self.first),
                other => format!("[{}].{other}", self.first),
            };
        };
        let of_group = self.records.get(group).map_or(&[][..], Vec::as_slice);
        let first = of_group.first().copied().unwrap_or(self.first);
        match indexed(rest, "dependencies") {
            Some((dependency, rest)) => {
                let at = of_group.get(dependency).copied().unwrap_or(first);
                match rest {
                    "asset" => format!("[{at}].assetKey"),
                    "" => format!("[{at}]"),
                    condition => format!("[{at}].conditionJson.{condition}"),
                }
            }
            None if rest == "dependencies" => format!("[{first}].conditionJson"),
            None => format!("[{first}].dependencyGroup"),
        }
    }
}

/// The index and the rest of `<name>[<index>].<rest>`.
fn indexed<'a>(field: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let (index, rest) = field.strip_prefix(name)?.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest.trim_start_matches('.')))
}

/// What a record's `conditionJson` says.
struct Condition {
    dependency: DependencySpec,
    /// `timeoutMinutes` and `checkIntervalSeconds`, which the RFC's sensor has beside its conditions.
    settings: [Option<u32>; 2],
}

impl Condition {
    fn read(record: &DependencyRecord) -> Result<Self, Invalid> {
        let mut keys = object(&record.condition_json)?;
        if let Some(named) = keys.remove("assetKey") {
            let same = named.as_str().map(str::parse::<AssetSelector>);
            if !matches!(&same, Some(Ok(key)) if *key == record.asset_key) {
                return Err(Invalid::new(
                    "conditionJson.assetKey",
                    format!("it is {named}, and the record's own is {}", record.asset_key),
                    "give the same in both places, or leave this one out",
                ));
            }
        }
        let mut settings = [None; 2];
        for (setting, name) in settings.iter_mut().zip(SETTINGS) {
            *setting = keys.remove(name).map(|value| whole_number(name, &value)).transpose()?;
        }
        if let Some(watermark) = keys.get_mut("watermark") {
            from_millis(watermark)?;
        }
        // Key by key, so that a refusal can say which one it is about.
        for (name, value) in &keys {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            spec_of(record, alone).map_err(|error| refused(name, &error.to_string()))?;
        }
        let dependency =
            spec_of(record, keys).map_err(|error| Invalid::new("conditionJson", error.to_string(), HINT))?;
        Ok(Self { dependency, settings })
    }
}

const HINT: &str = "use the keys of a dependency, as docs/lakebell-yaml.md has them";

fn spec_of(record: &DependencyRecord, mut object: Map<String, Value>) -> serde_json::Result<DependencySpec> {
    if object.contains_key("asset") {
        return Err(serde::de::Error::custom("the RFC's name for it is `assetKey`; give the record's `assetKey`"));
    }
    object.insert("asset".to_owned(), json!(record.asset_key));
    DependencySpec::deserialize(Value::Object(object))
}

fn object(condition: &Value) -> Result<Map<String, Value>, Invalid> {
    let wrong = |problem: String| {
        let hint = r#"give an object or the text of one, as in {"snapshotRequired": true}"#;
        Invalid::new("conditionJson", problem, hint)
    };
    match condition {
        Value::Null => Ok(Map::new()),
        Value::Object(keys) => Ok(keys.clone()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(keys)) => Ok(keys),
            Ok(_) => Err(wrong("its text is no JSON object".to_owned())),
            Err(error) => Err(wrong(format!("its text is no JSON: {error}"))),
        },
        _ => Err(wrong("it is no object".to_owned())),
    }
}

fn whole_number(name: &str, value: &Value) -> Result<u32, Invalid> {
    value.as_u64().and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
        Invalid::new(format!("conditionJson.{name}"), format!("{value} is no whole number"), "use 1 or more")
    })
}

/// The RFC keeps watermarks in milliseconds since 1970.
fn from_millis(watermark: &mut Value) -> Result<(), Invalid> {
    let Value::Number(number) = &watermark else { return Ok(()) };
    let moment = number.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok()).ok_or_else(|| {
        Invalid::new(
            "conditionJson.watermark",
            format!("{number} is no time"),
            "give milliseconds since 1970, or a time as in 2024-09-10T23:59:59Z",
        )
    })?;
    *watermark = json!(moment);
    Ok(())
}

/// serde's sentence about one key, as field, problem and hint.
fn refused(name: &str, message: &str) -> Invalid {
    let field = format!("conditionJson.{name}");
    if message.starts_with("unknown field") {
        return Invalid::new(field, format!("`{name}` is not known"), HINT);
    }
    let (problem, hint) = message.rsplit_once("; ").or_else(|| message.split_once(", ")).unwrap_or((message, HINT));
    Invalid::new(field, problem, hint)
}

#[cfg(test)]
mod tests;
