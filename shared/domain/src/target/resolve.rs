//! From a declaration to a target, once its assets are known.

use std::collections::BTreeMap;

use super::check::alias_of;
use super::conditions::{Conditions, Minimum, QualityCondition};
use super::selector::{AssetPrefix, AssetSelector};
use super::spec::{DependencySpec, GroupSpec, SnapshotIdText, TargetSpec};
use super::{Group, MAX_GROUP_MEMBERS, Member, Target};
use crate::Invalid;
use crate::asset::{AssetKey, Format};
use crate::ids::{AssetId, ProjectCode, TargetId};
use crate::version::{Epoch, Ordinal, Position};

/// What resolving a declaration needs to know of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAsset {
    /// Its id.
    pub id: AssetId,
    /// Its epoch now.
    pub epoch: Epoch,
    /// Where snapshots stand that the declaration names, where they had to be looked up.
    pub snapshots: BTreeMap<String, Position>,
}

/// The assets that a declaration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownAssets {
    /// Those named by their key.
    pub by_key: BTreeMap<AssetKey, KnownAsset>,
    /// Those that each prefix takes in.
    pub by_prefix: BTreeMap<AssetPrefix, Vec<(AssetKey, KnownAsset)>>,
}

impl TargetSpec {
    /// The target that this declares, once every asset is known.
    pub fn resolve(&self, project: ProjectCode, generation: u32, known: &KnownAssets) -> Result<Target, Invalid> {
        self.check()?;
        let mut groups = Vec::with_capacity(self.groups.len());
        for (at, spec) in self.groups.iter().enumerate() {
            let place = format!("groups[{at}]");
            groups.push(spec.resolve(known).map_err(|invalid| invalid.within(&place))?);
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
            invalid: None,
            policies: self.policies(),
            allows_self_loop: self.allow_self_loop,
        })
    }
}

impl GroupSpec {
    fn resolve(&self, known: &KnownAssets) -> Result<Group, Invalid> {
        let mut members: Vec<Member> = Vec::with_capacity(self.dependencies.len());
        let mut prefixes = Vec::new();
        for (at, dependency) in self.dependencies.iter().enumerate() {
            let place = format!("dependencies[{at}]");
            match &dependency.asset {
                AssetSelector::Key(key) => {
                    let known = known.by_key.get(key).ok_or_else(|| not_registered(key).within(&place))?;
                    let member = dependency.member(key, known).map_err(|invalid| invalid.within(&place))?;
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
                AssetSelector::Prefix(prefix) => {
                    prefixes.push(prefix.clone());
                    for (key, asset) in known.by_prefix.get(prefix).into_iter().flatten() {
                        // A table that is named by itself keeps its own conditions.
                        if members.iter().any(|other| other.asset == asset.id) || self.names(key) {
                            continue;
                        }
                        members.push(dependency.member(key, asset).map_err(|invalid| invalid.within(&place))?);
                    }
                }
            }
        }
        if members.len() > MAX_GROUP_MEMBERS {
            return Err(Invalid::new(
                "dependencies",
                format!("its prefixes take in {} tables", members.len()),
                format!("use longer prefixes: a group has at most {MAX_GROUP_MEMBERS} members"),
            ));
        }
        Ok(Group { name: self.name.clone(), advance: self.advance(), independent: self.independent, members, prefixes })
    }

    fn names(&self, key: &AssetKey) -> bool {
        self.dependencies.iter().any(|dependency| dependency.asset.key() == Some(key))
    }
}

fn not_registered(key: &AssetKey) -> Invalid {
    Invalid::new("asset", format!("`{key}` is not registered"), "register the asset first")
}

impl DependencySpec {
    fn member(&self, key: &AssetKey, known: &KnownAsset) -> Result<Member, Invalid> {
        let alias = match &self.alias {
            Some(alias) => alias.clone(),
            None => alias_of(key.table())?,
        };
        Ok(Member { asset: known.id, key: key.clone(), alias, conditions: self.conditions(key.format(), known)? })
    }

    fn conditions(&self, format: Format, known: &KnownAsset) -> Result<Conditions, Invalid> {
        let quality = self.quality_status.map(|_| QualityCondition {
            checks: self.checks.iter().flatten().cloned().collect(),
            on_failed: self.on_failed_version.unwrap_or_default(),
        });
        Ok(Conditions {
            snapshot_required: self.snapshot_required,
            commit_kinds: self.commit_kinds.clone(),
            minimum: self.min_snapshot_id.as_ref().map(|id| minimum(format, id, known)).transpose()?,
            ignore_empty: self.ignore_empty,
            operations: self.operations.clone(),
            min_new_snapshots: self.min_new_snapshots.unwrap_or(1),
            min_delta_records: self.min_delta_records,
            watermark: self.watermark,
            max_lag: self.max_lag,
            every: self.every.clone(),
            quality,
            schema_compatible: self.schema_status.is_some(),
            tag: self.tag.clone(),
            backfill_completed: self.backfill.is_some(),
            cdc_lag_recovered: self.cdc_lag_recovered,
            partition: self.partition(),
            optional: self.optional,
        })
    }
}

/// Where the format orders snapshots by their own ids, the look-up is the id itself.
fn minimum(format: Format, id: &SnapshotIdText, known: &KnownAsset) -> Result<Minimum, Invalid> {
    let by_itself = || ordinal_of(format, &id.0).map(|ordinal| Position { epoch: known.epoch, ordinal });
    match known.snapshots.get(&id.0).copied().or_else(by_itself) {
        Some(Position { epoch, ordinal }) => Ok(Minimum { snapshot_id: id.0.clone(), epoch, ordinal }),
        None if format == Format::Paimon => Err(Invalid::new(
            "minSnapshotId",
            format!("`{}` is no Paimon snapshot id", id.0),
            "use a positive whole number",
        )),
        None => Err(Invalid::new(
            "minSnapshotId",
            format!("no commit of this table's history is recorded as `{}`", id.0),
            "name a snapshot that `lakebell events` lists, or leave it out",
        )),
    }
}

/// The ordinal of a snapshot, where the format orders snapshots by their own ids.
pub fn ordinal_of(format: Format, snapshot_id: &str) -> Option<Ordinal> {
    match (format, snapshot_id.parse::<u64>()) {
        (Format::Paimon, Ok(id)) if id > 0 => Some(Ordinal(id)),
        // Version 0 holds data, while ordinal 0 is before the first commit.
        (Format::Delta, Ok(version)) => version.checked_add(1).map(Ordinal),
        _ => None,
    }
}

/// The name of the snapshot with an ordinal, where the format orders snapshots by their own ids.
pub fn snapshot_at(format: Format, ordinal: Ordinal) -> Option<String> {
    match format {
        Format::Paimon if ordinal.0 > 0 => Some(ordinal.0.to_string()),
        Format::Delta => ordinal.0.checked_sub(1).map(|version| version.to_string()),
        _ => None,
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
