//! What is started, and the groups of dependencies that start it.

mod rule;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Invalid;
use crate::asset::{AssetKey, Format};
use crate::commit::CommitKind;
use crate::ids::{Alias, AssetId, ConnectionName, GroupName, TargetId, TargetName, TaskCode, WorkflowCode};
use crate::start_params;
use crate::version::{Epoch, Ordinal};

/// Most members of one group: a claim reads and names each of them.
pub const MAX_GROUP_MEMBERS: usize = 99;
/// Most groups of one target.
pub const MAX_GROUPS: usize = 20;
/// Most members of a target over all its groups, so that its cursors fit one item.
pub const MAX_TARGET_MEMBERS: usize = 1_000;
/// Most commit kinds that one dependency may name.
pub const MAX_COMMIT_KINDS: usize = 16;

/// A workflow as a target names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WorkflowRef {
    /// By its code, which never changes.
    Code(WorkflowCode),
    /// By its name within the project; looked up before each start, with a bounded cache.
    Name(String),
}

impl std::fmt::Display for WorkflowRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// How many members of a group must have advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Advance {
    /// Every one.
    #[default]
    All,
    /// One.
    Any,
    /// This many.
    AtLeast(usize),
}

/// A target as a person declares it, by asset keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetSpec {
    /// Its name within the project; absent, `workflow-<code or name>[-task-<code>]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<TargetName>,
    /// The DolphinScheduler to start it on.
    #[serde(default = "default_connection")]
    pub connection: ConnectionName,
    /// The workflow, by code. Either this or the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_definition_code: Option<WorkflowCode>,
    /// The workflow, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_definition_name: Option<String>,
    /// Start at this task and go on from there; absent, the whole workflow starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_definition_code: Option<TaskCode>,
    /// Alternatives: any group that is ready starts the target.
    pub groups: Vec<GroupSpec>,
    /// 1 or absent: on. 0: switched off, cursors kept.
    #[serde(default = "on", skip_serializing_if = "is_on")]
    pub enabled_flag: u8,
}

fn default_connection() -> ConnectionName {
    // A literal that satisfies the type's own rules.
    ConnectionName::new("default").unwrap_or_else(|_| unreachable!("`default` is a valid name"))
}

const fn on() -> u8 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_on(flag: &u8) -> bool {
    *flag == 1
}

/// A group as a person declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name within the target.
    #[serde(default = "default_group")]
    pub name: GroupName,
    /// How many members must have advanced.
    #[serde(default)]
    pub advance: Advance,
    /// What must hold, all of it.
    pub dependencies: Vec<DependencySpec>,
}

fn default_group() -> GroupName {
    GroupName::new("default").unwrap_or_else(|_| unreachable!("`default` is a valid name"))
}

/// A dependency as a person declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DependencySpec {
    /// The asset's key or one of its aliases.
    pub asset: AssetKey,
    /// What the started workflow calls it; absent, derived from the table's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<Alias>,
    /// A new commit is needed. Only `true` is available in this version.
    #[serde(default = "yes")]
    pub snapshot_required: bool,
    /// That snapshot or a later one of the same history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_snapshot_id: Option<SnapshotIdText>,
    /// Only commits of these kinds count; absent, those that change data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_kinds: Option<BTreeSet<CommitKind>>,
}

const fn yes() -> bool {
    true
}

/// A snapshot id, which JSON and YAML may give as a number or as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SnapshotIdText(pub String);

impl<'de> Deserialize<'de> for SnapshotIdText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Number(u64),
            Text(String),
        }
        Ok(Self(match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => number.to_string(),
            NumberOrText::Text(text) => text,
        }))
    }
}

/// A declared target, its assets resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its identity.
    pub id: TargetId,
    /// Grows when the target is undeclared and declared again, and when its cursor is reset.
    pub generation: u32,
    /// The DolphinScheduler to start it on.
    pub connection: ConnectionName,
    /// The workflow.
    pub workflow: WorkflowRef,
    /// Start at this task and go on from there.
    pub start_at: Option<TaskCode>,
    /// Alternatives.
    pub groups: Vec<Group>,
    /// Whether it is switched on.
    pub enabled: bool,
}

/// Dependencies that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name within the target.
    pub name: GroupName,
    /// How many members must have advanced.
    pub advance: Advance,
    /// Its members.
    pub members: Vec<Member>,
}

/// One asset and the conditions on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The asset.
    pub asset: AssetId,
    /// Its key, for people.
    pub key: AssetKey,
    /// What the started workflow calls it.
    pub alias: Alias,
    /// Which commits count; `None` for those that change data.
    pub commit_kinds: Option<BTreeSet<CommitKind>>,
    /// The lowest version that counts.
    pub minimum: Option<Minimum>,
}

/// A `minSnapshotId` after it has been looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Minimum {
    /// As it was declared.
    pub snapshot_id: String,
    /// The history that it belonged to when it was declared.
    pub epoch: Epoch,
    /// Its ordinal there.
    pub ordinal: Ordinal,
}

/// What resolving a declaration needs to know of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAsset {
    /// Its id.
    pub id: AssetId,
    /// Its epoch now.
    pub epoch: Epoch,
}

impl Target {
    /// Every asset of every group, once.
    pub fn assets(&self) -> BTreeMap<AssetId, &AssetKey> {
        self.groups.iter().flat_map(|group| &group.members).map(|member| (member.asset, &member.key)).collect()
    }
}

impl TargetSpec {
    /// The name that the target gets.
    pub fn target_name(&self) -> Result<TargetName, Invalid> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let workflow = match self.workflow()? {
            WorkflowRef::Code(code) => code.to_string(),
            WorkflowRef::Name(name) => name,
        };
        let task = self.task_definition_code.map(|code| format!("-task-{code}")).unwrap_or_default();
        TargetName::new(format!("workflow-{workflow}{task}")).map_err(|_| {
            Invalid::new("name", "no name can be derived from the workflow's name", "give the target a `name`")
        })
    }

    /// The workflow that it starts.
    pub fn workflow(&self) -> Result<WorkflowRef, Invalid> {
        match (self.workflow_definition_code, self.workflow_definition_name.as_deref()) {
            (Some(code), None) if code.0 > 0 => Ok(WorkflowRef::Code(code)),
            (None, Some(name)) if !name.is_empty() && name.len() <= 255 => Ok(WorkflowRef::Name(name.to_owned())),
            (Some(_), Some(_)) => Err(Invalid::new(
                "workflowDefinitionName",
                "both a code and a name are given",
                "give either `workflowDefinitionCode` or `workflowDefinitionName`",
            )),
            (None, Some(name)) => Err(Invalid::new(
                "workflowDefinitionName",
                format!("it has {} bytes", name.len()),
                "use the workflow's name of 1 to 255 bytes",
            )),
            (code, None) => Err(Invalid::new(
                "workflowDefinitionCode",
                code.map_or_else(
                    || "no workflow is named".to_owned(),
                    |code| format!("{code} is no workflow definition code"),
                ),
                "give its positive code as `workflowDefinitionCode`, or its name as `workflowDefinitionName`",
            )),
        }
    }

    /// Checks everything that needs no look-up.
    pub fn check(&self) -> Result<(), Invalid> {
        self.workflow()?;
        if let Some(code) = self.task_definition_code.filter(|code| code.0 <= 0) {
            return Err(Invalid::new(
                "taskDefinitionCode",
                format!("{code} is no task definition code"),
                "use the positive number that DolphinScheduler shows, or leave it out",
            ));
        }
        self.target_name()?;
        if self.enabled_flag > 1 {
            return Err(Invalid::new("enabledFlag", format!("{} is no flag", self.enabled_flag), "use 0 or 1"));
        }
        if self.groups.is_empty() || self.groups.len() > MAX_GROUPS {
            return Err(Invalid::new(
                "groups",
                format!("there are {}", self.groups.len()),
                format!("declare 1 to {MAX_GROUPS} groups"),
            ));
        }
        let mut names = BTreeSet::new();
        let mut members = 0;
        for (at, group) in self.groups.iter().enumerate() {
            let place = format!("groups[{at}]");
            if !names.insert(&group.name) {
                return Err(Invalid::new(
                    "name",
                    format!("two groups are named `{}`", group.name),
                    "give each its own name",
                )
                .within(&place));
            }
            group.check().map_err(|invalid| invalid.within(&place))?;
            members += group.dependencies.len();
        }
        if members > MAX_TARGET_MEMBERS {
            return Err(Invalid::new(
                "groups",
                format!("they have {members} dependencies together"),
                format!("use at most {MAX_TARGET_MEMBERS}"),
            ));
        }
        start_params::check_size(self)
    }

    /// The target that this declares, once every asset is known.
    pub fn resolve(
        &self,
        project: crate::ids::ProjectCode,
        generation: u32,
        mut find: impl FnMut(&AssetKey) -> Option<KnownAsset>,
    ) -> Result<Target, Invalid> {
        self.check()?;
        let mut groups = Vec::with_capacity(self.groups.len());
        for (at, spec) in self.groups.iter().enumerate() {
            let place = format!("groups[{at}]");
            groups.push(spec.resolve(&mut find).map_err(|invalid| invalid.within(&place))?);
        }
        check_aliases(&groups)?;
        Ok(Target {
            id: TargetId { project, name: self.target_name()? },
            generation,
            connection: self.connection.clone(),
            workflow: self.workflow()?,
            start_at: self.task_definition_code,
            groups,
            enabled: self.enabled_flag == 1,
        })
    }
}

impl GroupSpec {
    fn check(&self) -> Result<(), Invalid> {
        let count = self.dependencies.len();
        if count == 0 || count > MAX_GROUP_MEMBERS {
            return Err(Invalid::new(
                "dependencies",
                if count == 0 {
                    "the group has no members".to_owned()
                } else {
                    format!("the group has {count} members")
                },
                format!("declare 1 to {MAX_GROUP_MEMBERS} dependencies"),
            ));
        }
        if let Advance::AtLeast(k) = self.advance
            && (k == 0 || k > count)
        {
            return Err(Invalid::new(
                "advance.atLeast",
                format!("{k} of {count} members can never advance"),
                format!("use a number from 1 to {count}"),
            ));
        }
        for (at, dependency) in self.dependencies.iter().enumerate() {
            dependency.check().map_err(|invalid| invalid.within(&format!("dependencies[{at}]")))?;
        }
        Ok(())
    }

    fn resolve(&self, find: &mut impl FnMut(&AssetKey) -> Option<KnownAsset>) -> Result<Group, Invalid> {
        let mut members: Vec<Member> = Vec::with_capacity(self.dependencies.len());
        for (at, dependency) in self.dependencies.iter().enumerate() {
            let place = format!("dependencies[{at}]");
            let known = find(&dependency.asset).ok_or_else(|| {
                Invalid::new("asset", format!("`{}` is not registered", dependency.asset), "register the asset first")
                    .within(&place)
            })?;
            let member = dependency.resolve(&known).map_err(|invalid| invalid.within(&place))?;
            if members.iter().any(|other| other.asset == member.asset) {
                return Err(Invalid::new(
                    "asset",
                    format!("`{}` is in the group twice", member.key),
                    "name each asset once in a group",
                )
                .within(&place));
            }
            members.push(member);
        }
        Ok(Group { name: self.name.clone(), advance: self.advance, members })
    }
}

impl DependencySpec {
    /// The alias that the started workflow sees.
    pub fn alias(&self) -> Result<Alias, Invalid> {
        if let Some(alias) = &self.alias {
            return Ok(alias.clone());
        }
        Alias::new(self.asset.table()).map_err(|_| {
            Invalid::new(
                "alias",
                format!("`{}` is no parameter name", self.asset.table()),
                "give the dependency an `alias` of letters, digits and `_`",
            )
        })
    }

    fn check(&self) -> Result<(), Invalid> {
        if !self.snapshot_required {
            return Err(Invalid::new(
                "snapshotRequired",
                "`false` needs a condition on another register, and those are not available in this version",
                "leave it out or use `true`",
            ));
        }
        if self.commit_kinds.as_ref().is_some_and(|kinds| kinds.is_empty() || kinds.len() > MAX_COMMIT_KINDS) {
            return Err(Invalid::new(
                "commitKinds",
                "it must name between 1 and 16 kinds",
                "name the kinds that count, as in [\"APPEND\"], or leave it out for those that change data",
            ));
        }
        self.alias().map(|_| ())
    }

    fn resolve(&self, known: &KnownAsset) -> Result<Member, Invalid> {
        let minimum =
            self.min_snapshot_id.as_ref().map(|id| minimum(self.asset.format(), id, known.epoch)).transpose()?;
        Ok(Member {
            asset: known.id,
            key: self.asset.clone(),
            alias: self.alias()?,
            commit_kinds: self.commit_kinds.clone(),
            minimum,
        })
    }
}

/// Where the format orders snapshots by their own ids, the look-up is the id itself.
fn minimum(format: Format, id: &SnapshotIdText, epoch: Epoch) -> Result<Minimum, Invalid> {
    match (format, id.0.parse::<u64>()) {
        (Format::Paimon, Ok(ordinal)) if ordinal > 0 => {
            Ok(Minimum { snapshot_id: id.0.clone(), epoch, ordinal: Ordinal(ordinal) })
        }
        (Format::Paimon, _) => Err(Invalid::new(
            "minSnapshotId",
            format!("`{}` is no Paimon snapshot id", id.0),
            "use a positive whole number",
        )),
        (other, _) => Err(Invalid::new(
            "minSnapshotId",
            format!("{other} snapshot ids cannot be looked up in this version"),
            "leave it out",
        )),
    }
}

/// An alias names one asset over all groups, so that a parameter is never ambiguous.
fn check_aliases(groups: &[Group]) -> Result<(), Invalid> {
    let mut owners: BTreeMap<&str, &Member> = BTreeMap::new();
    for (group_at, group) in groups.iter().enumerate() {
        for (at, member) in group.members.iter().enumerate() {
            let owner = owners.entry(member.alias.as_str()).or_insert(member);
            if owner.asset != member.asset {
                return Err(Invalid::new(
                    "alias",
                    format!("`{}` would name both {} and {}", member.alias, owner.key, member.key),
                    "give one of them an `alias` of its own",
                )
                .within(&format!("groups[{group_at}].dependencies[{at}]")));
            }
        }
    }
    Ok(())
}
