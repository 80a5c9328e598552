//! Where each item is kept. One table; see ARCHITECTURE.md for why the sort keys stand in this order.
//!
//! The sort key of an asset's head is below those of its pointers: a query is no snapshot, and
//! pointers that were read before the head could be stale under a fresh revision.

use jiff::Timestamp;
use lakebell_decoders::CatalogName;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::{AssetId, AuditId, ConnectionName, ProjectCode, TargetId, TriggerKey};
use lakebell_domain::target::WorkflowRef;
use lakebell_domain::version::{Epoch, Position};
use sha2::{Digest, Sha256};

use crate::inbox::waiting::Handle;
use crate::ports::items::{IndexEntry, Key, Range};

/// Shards of the registries and of the sweep index: no key that all writers share.
pub const SHARDS: u8 = 16;

fn shard_of(text: &str) -> u8 {
    Sha256::digest(text.as_bytes()).first().copied().unwrap_or(0) % SHARDS
}

/// The asset that lives at a location, or at a branch of it.
pub fn location(location: &Location, branch: Option<&str>) -> Key {
    let branch = branch.map(|name| format!("@{name}")).unwrap_or_default();
    Key::new(format!("L#{location}{branch}"), "-")
}

/// The asset that has a name.
pub fn name(key: &AssetKey) -> Key {
    Key::new(format!("N#{key}"), "-")
}

/// The partition of an asset.
pub fn asset(id: AssetId) -> String {
    format!("A#{id}")
}

/// An asset's state.
pub fn head(id: AssetId) -> Key {
    Key::new(asset(id), "0")
}

/// The newest versions of an asset, by which duplicates and rewrites are told.
pub fn ring(id: AssetId) -> Key {
    Key::new(asset(id), "1")
}

/// Head, ring and pointers of an asset, in this order.
pub fn head_ring_pointers(id: AssetId) -> Range {
    Range { pk: asset(id), from: "0".to_owned(), to: "2#\u{10ffff}".to_owned() }
}

/// The mark that a target depends on an asset.
pub fn pointer(id: AssetId, target: &TargetId) -> Key {
    Key::new(asset(id), format!("2#{target}"))
}

/// What an asset is made from, and what is made from it.
pub fn lineage(id: AssetId) -> Key {
    Key::new(asset(id), "3")
}

/// The names of an asset beside its key.
pub fn aliases(id: AssetId) -> Key {
    Key::new(asset(id), "4")
}

/// The asset that has a confirmed name in a catalog.
pub fn alias(name: &CatalogName) -> Key {
    Key::new(format!("M#{}", lakebell_decoders::digest(&[&name.catalog, &name.path.join("\u{1f}")])), "-")
}

/// The asset whose metadata has a uuid.
pub fn uuid(uuid: &str) -> Key {
    Key::new(format!("U#{uuid}"), "-")
}

/// An event as it was taken.
pub fn letter(receipt: &str) -> Key {
    Key::new(format!("I#{receipt}"), "-")
}

/// What is known of a run of a job whose events came with a project's token, or the deployment's.
pub fn run(project: Option<ProjectCode>, run: &str) -> Key {
    let project = project.map(|project| project.to_string()).unwrap_or_default();
    Key::new(format!("OR#{}", lakebell_decoders::digest(&[&project, run])), "-")
}

/// A letter's timer.
pub fn letter_timer(receipt: &str, due_at: Timestamp) -> IndexEntry {
    IndexEntry { pk: sweep_partition(shard_of(receipt)), sk: format!("{}#I#{receipt}", moment(due_at)) }
}

/// A letter that waits for a table to be registered, under what the table is called. The newest stands first.
pub(crate) fn waiting(handle: &Handle, received_at: Timestamp, receipt: &str) -> Key {
    let age = i64::MAX - received_at.as_microsecond();
    Key::new(waiting_letters(handle).pk, format!("{age:020}#{receipt}"))
}

/// The letters that wait under a name.
pub(crate) fn waiting_letters(handle: &Handle) -> Range {
    Range::prefix(format!("UL#{}", lakebell_decoders::digest(&[handle.as_str()])), "")
}

/// A letter's place among those of a project that nothing follows from.
pub fn quarantine(project: Option<ProjectCode>, at: Timestamp, receipt: &str) -> IndexEntry {
    IndexEntry { pk: quarantine_partition(project), sk: format!("{}#{receipt}", moment(at)) }
}

/// The partition of those letters.
pub fn quarantine_partition(project: Option<ProjectCode>) -> String {
    project.map_or_else(|| "Q#".to_owned(), |project| format!("Q#{project}"))
}

/// The targets that depend on an asset.
pub fn pointers(id: AssetId) -> Range {
    Range::prefix(asset(id), "2#")
}

/// What a workflow is known to write.
pub fn writes(project: ProjectCode, workflow: &WorkflowRef) -> Key {
    Key::new(of_workflow(project, workflow), "-")
}

/// What else a workflow is called: its name beside its code, its code beside its name.
pub fn other_name(project: ProjectCode, workflow: &WorkflowRef) -> Key {
    Key::new(of_workflow(project, workflow), "NAME")
}

fn of_workflow(project: ProjectCode, workflow: &WorkflowRef) -> String {
    match workflow {
        WorkflowRef::Code(code) => format!("F#{project}/{code}"),
        // A name may be any text, and digits too.
        WorkflowRef::Name(name) => format!("F#{project}/name={name}"),
    }
}

/// An event of an asset.
pub fn event(id: AssetId, kind: EventKind, epoch: Epoch, token: &str) -> Key {
    Key::new(asset(id), format!("E#{kind}#{:010}#{token}", epoch.0))
}

/// An event's place in the history of its asset.
pub fn event_history(id: AssetId, at: Timestamp, token: &str) -> IndexEntry {
    IndexEntry { pk: asset(id), sk: format!("{}#{token}", moment(at)) }
}

/// A target's definition.
pub fn definition(target: &TargetId) -> Key {
    Key::new(format!("T#{target}"), "DEF")
}

/// A target's cursors.
pub fn cursor(target: &TargetId) -> Key {
    Key::new(format!("T#{target}"), "CUR")
}

/// What the scheduler said about a target's workflow.
pub fn advice(target: &TargetId) -> Key {
    Key::new(format!("T#{target}"), "ADVICE")
}

/// A trigger.
pub fn trigger(key: &TriggerKey) -> Key {
    Key::new(format!("K#{key}"), "-")
}

/// The recorded answer to a run of a waiting task.
pub fn sensor_answer(digest: &str) -> Key {
    Key::new(format!("SA#{digest}"), "-")
}

/// One of the places for polls that wait.
pub fn sensor_place(number: u8) -> Key {
    Key::new(format!("SP#{number:02}"), "-")
}

/// A trigger's place in the history of its target's project.
pub fn trigger_history(project: ProjectCode, at: Timestamp, key: &TriggerKey) -> IndexEntry {
    IndexEntry { pk: trigger_history_partition(project), sk: format!("{}#{key}", moment(at)) }
}

/// The partition of a project's trigger history.
pub fn trigger_history_partition(project: ProjectCode) -> String {
    format!("H#{project}")
}

/// A trigger's timer.
pub fn trigger_timer(key: &TriggerKey, due_at: Timestamp) -> IndexEntry {
    IndexEntry { pk: sweep_partition(shard_of(key.as_str())), sk: format!("{}#K#{key}", moment(due_at)) }
}

/// A target's timer.
pub fn target_timer(target: &TargetId, due_at: Timestamp) -> IndexEntry {
    let id = target.to_string();
    IndexEntry { pk: sweep_partition(shard_of(&id)), sk: format!("{}#T#{id}", moment(due_at)) }
}

/// The switch of a project; without one, of all of them.
pub fn switch(project: Option<ProjectCode>) -> Key {
    Key::new(project.map_or_else(|| "W#global".to_owned(), |project| format!("W#{project}")), "-")
}

/// The subscriptions to assets of one database by prefix.
pub fn subscriptions(database: &str) -> Range {
    Range::prefix(format!("X#{database}"), "")
}

/// One subscription: the database, `<format>://[<catalog>/]<database>`, the prefix and the target.
pub fn subscription(database: &str, prefix: &str, target: &TargetId) -> Key {
    Key::new(format!("X#{database}"), format!("{prefix}#{target}"))
}

/// The commits of an asset beyond a position, in order.
pub fn commits_beyond(id: AssetId, beyond: Position) -> Range {
    let kind = EventKind::SnapshotCommitted;
    let from = format!("E#{kind}#{:010}#{:020}", beyond.epoch.0, beyond.ordinal.0.saturating_add(1));
    Range { pk: asset(id), from, to: format!("E#{kind}#\u{10ffff}") }
}

/// The events of one kind about versions of one epoch: beyond a position, up to another.
pub fn events_within(id: AssetId, kind: EventKind, beyond: Position, to: Position) -> Range {
    let from = format!("E#{kind}#{:010}#{:020}", to.epoch.0, beyond.ordinal.0.saturating_add(1));
    let to = format!("E#{kind}#{:010}#{:020}\u{10ffff}", to.epoch.0, to.ordinal.0);
    Range { pk: asset(id), from, to }
}

/// The commits of an asset with an ordinal.
pub fn commits_at(id: AssetId, at: Position) -> Range {
    let prefix = format!("E#{}#{:010}#{:020}", EventKind::SnapshotCommitted, at.epoch.0, at.ordinal.0);
    Range::prefix(asset(id), &prefix)
}

/// A shard of the sweep index.
pub fn sweep_partition(shard: u8) -> String {
    format!("S#{shard:02}")
}

/// An asset's place in the registry.
pub fn registered_asset(id: AssetId) -> Key {
    let id = id.to_string();
    Key::new(format!("RA#{:02}", shard_of(&id)), id)
}

/// A target's place in the registry.
pub fn registered_target(target: &TargetId) -> Key {
    let id = target.to_string();
    Key::new(format!("RT#{:02}", shard_of(&id)), id)
}

/// A shard of a registry.
pub fn registry_shard(registry: &str, shard: u8) -> Range {
    Range::prefix(format!("{registry}#{shard:02}"), "")
}

/// A connection.
pub fn connection(name: &ConnectionName) -> Key {
    Key::new(format!("C#{name}"), "-")
}

/// The list of tokens among the settings.
pub const TOKENS: &str = "TOKEN";

/// What was seen of a connection.
pub fn connection_look(name: &ConnectionName) -> Key {
    Key::new(format!("C#{name}"), "LOOK")
}

/// An audit of a project.
pub fn audit(project: ProjectCode, id: &AuditId) -> Key {
    Key::new(format!("AU#{project}"), id.as_str())
}

/// The list of connections, and of warehouses: few and rarely written.
pub fn settings(kind: &str) -> Range {
    Range::prefix(format!("SET#{kind}"), "")
}

/// One entry of such a list.
pub fn setting(kind: &str, name: &str) -> Key {
    Key::new(format!("SET#{kind}"), name)
}

/// A table that was seen and is not registered; the project whose writer named it, where one did.
pub fn unregistered(location: &str, project: Option<ProjectCode>) -> Key {
    let of = project.map(|project| format!("\u{1f}{project}")).unwrap_or_default();
    Key::new(format!("RU#{:02}", shard_of(location)), format!("{location}{of}"))
}

/// A project's request for a grant, with the owner of the asset.
pub fn grant_request(owner: ProjectCode, asset: AssetId, project: ProjectCode) -> Key {
    Key::new(format!("GR#{owner}"), format!("{asset}#{project}"))
}

/// The requests for grants with an owner.
pub fn grant_requests(owner: ProjectCode) -> Range {
    Range::prefix(format!("GR#{owner}"), "")
}

/// A call under a key of its caller, by the digest of both.
pub fn idempotency(digest: &str) -> Key {
    Key::new(format!("I#{digest}"), "-")
}

/// A moment as text that sorts as time does: 20 digits of microseconds since 1970.
pub fn moment(at: Timestamp) -> String {
    format!("{:020}", at.as_microsecond().max(0))
}
