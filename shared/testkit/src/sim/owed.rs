//! Every write that can make a target ready is followed by an evaluation: what one run passes over the next look makes
//! good, so that at rest it hardly shows. Here each run is held to its own.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::ids::TargetId;
use lakebell_domain::version::Version;
use lakebell_engine::ports::items::{Item, Key};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::records::AssetHead;

/// The targets that runs have to evaluate before they end, because they depend on a table that a run advanced.
#[derive(Debug, Default)]
pub(super) struct Owed {
    by: BTreeMap<u64, BTreeSet<TargetId>>,
    /// Where each table was at the last write of its state, by its key in the store.
    at: BTreeMap<String, Option<Version>>,
}

impl Owed {
    /// A run wrote a table's state while these targets depended on it.
    pub(super) fn owes(&mut self, worker: u64, head: &Item, depend: impl Iterator<Item = TargetId>) {
        let Ok(known) = serde_json::from_str::<AssetHead>(&head.doc) else { return };
        let table = known.state.table;
        let before = self.at.insert(head.key.pk.clone(), table.clone());
        if table.is_some() && before.is_none_or(|before| before != table) {
            self.by.entry(worker).or_default().extend(depend);
        }
    }

    /// A run reads items: the cursors of a target are read to evaluate it.
    pub(super) fn read(&mut self, worker: u64, keys: &[Key]) {
        let Some(owed) = self.by.get_mut(&worker) else { return };
        for key in keys.iter().filter(|key| key.sk == "CUR") {
            owed.retain(|target| key.pk.strip_prefix("T#") != Some(target.to_string().as_str()));
        }
    }

    /// A run sends a message: targets may be evaluated by whoever gets it.
    pub(super) fn sent(&mut self, worker: u64, message: &Message) {
        if let (Some(owed), Message::Evaluate { targets, .. }) = (self.by.get_mut(&worker), message) {
            owed.retain(|target| !targets.contains(target));
        }
    }

    /// A run ends; what it still owes.
    pub(super) fn ended(&mut self, worker: u64) -> BTreeSet<TargetId> {
        self.by.remove(&worker).unwrap_or_default()
    }
}
