//! What a started workflow receives: a flat object of strings, the only form that every
//! DolphinScheduler keeps.
//!
//! Every parameter is always there, empty where it has nothing to say: DolphinScheduler leaves
//! the placeholder of an absent one standing in the task's text.

use std::collections::{BTreeMap, BTreeSet};

use crate::Invalid;
use crate::ids::{Alias, GroupName, TriggerKey};
use crate::policy::Window;
use crate::target::TargetSpec;
use crate::trigger::{Range, StartReason};

/// Most bytes that the parameters of one start may take as JSON. DolphinScheduler keeps them in a
/// text column of 65,535 bytes, next to other things and with quotes escaped.
pub const MAX_BYTES: usize = 48 * 1024;

/// What each dependency adds, and the longest value that it can have.
const PER_ALIAS: [(&str, usize); 6] =
    [("from", 24), ("to", 24), ("ordinal", 20), ("watermark", 20), ("tag", 128), ("partition", 256)];

/// The parameters of one start.
pub fn start_parameters(
    key: &TriggerKey,
    reason: StartReason,
    groups: &BTreeSet<GroupName>,
    ranges: &[Range],
    window: Option<&Window>,
) -> BTreeMap<String, String> {
    let groups: Vec<&str> = groups.iter().map(GroupName::as_str).collect();
    let has_backfill = ranges.iter().any(|range| range.has_backfill);
    let of_window = |text: fn(&Window) -> String| window.map(text).unwrap_or_default();
    let mut parameters = BTreeMap::from([
        ("lakebell_trigger_key".to_owned(), key.to_string()),
        ("lakebell_trigger_source".to_owned(), "ASSET_EVENT".to_owned()),
        ("lakebell_groups".to_owned(), groups.join(",")),
        ("lakebell_reason".to_owned(), reason.as_str().to_owned()),
        ("lakebell_backfill".to_owned(), has_backfill.to_string()),
        ("lakebell_window_start".to_owned(), of_window(|window| window.start.to_string())),
        ("lakebell_window_end".to_owned(), of_window(|window| window.end.to_string())),
        ("lakebell_biz_date".to_owned(), of_window(|window| window.business_date.to_string())),
    ]);
    for range in ranges {
        for alias in &range.aliases {
            parameters.extend(of_range(alias, range));
        }
    }
    parameters
}

fn of_range(alias: &Alias, range: &Range) -> [(String, String); 6] {
    let snapshot = |version: &Option<crate::version::Version>| {
        version.as_ref().map(|version| version.snapshot_id.to_string()).unwrap_or_default()
    };
    let name = |suffix: &str| format!("lakebell_{alias}_{suffix}");
    [
        (name("from"), snapshot(&range.bounds.from)),
        (name("to"), snapshot(&range.bounds.to)),
        (name("ordinal"), range.bounds.to.as_ref().map(|to| to.position.ordinal.to_string()).unwrap_or_default()),
        (name("watermark"), range.watermark.map(|at| at.to_string()).unwrap_or_default()),
        (name("tag"), range.tag.clone().unwrap_or_default()),
        (name("partition"), range.partition.as_ref().map(ToString::to_string).unwrap_or_default()),
    ]
}

/// Refuses a declaration whose parameters could outgrow the limit.
pub(crate) fn check_size(spec: &TargetSpec) -> Result<(), Invalid> {
    let mut aliases = BTreeMap::new();
    let mut group_names = 0;
    for group in &spec.groups {
        group_names += group.name.as_str().len() + 1;
        // Without a partition there is none to name.
        let has_partitions = group.dependencies.iter().any(|dependency| dependency.partition.is_some());
        for dependency in &group.dependencies {
            if let Some(alias) = dependency.alias()? {
                *aliases.entry(alias).or_insert(false) |= has_partitions;
            }
        }
    }
    // `"lakebell_` + alias + `_` + suffix + `":"` + value + `",`
    let of_alias = |(alias, has_partitions): (&Alias, &bool)| {
        let longest = |(suffix, longest)| if suffix == "partition" && !has_partitions { 0 } else { longest };
        let bytes = PER_ALIAS.map(|(suffix, most)| 17 + alias.as_str().len() + suffix.len() + longest((suffix, most)));
        bytes.into_iter().sum::<usize>()
    };
    let of_aliases: usize = aliases.iter().map(of_alias).sum();
    let bytes = 450 + group_names + of_aliases;
    if bytes > MAX_BYTES {
        return Err(Invalid::new(
            "groups",
            format!("the start parameters could take {bytes} bytes"),
            format!("use fewer or shorter aliases: at most {MAX_BYTES} bytes fit"),
        ));
    }
    Ok(())
}
