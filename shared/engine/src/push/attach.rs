//! What a writer attaches to a version that storage bears out is kept with the event of its commit.

use lakebell_domain::event::Event;
use lakebell_domain::version::Position;

use super::{MAX_EXTRA, Push, version};
use crate::EngineError;
use crate::layout;
use crate::ports::items::{Draft, Write, Written};
use crate::records::AssetHead;
use crate::store::{self, MAX_LOST_RACES};

/// Keeps it, where the event attaches something and the commit's event is still there. Several writers may tell
/// of one commit: what is there already stays, and what would be too much together is left out.
pub(super) async fn keep(push: &Push<'_>, head: &AssetHead) -> Result<(), EngineError> {
    let told = &push.pushed.facts.extra;
    let Some(id) = push.pushed.facts.snapshot_id.as_ref().filter(|_| !told.is_empty()) else { return Ok(()) };
    let Some(mark) = version::of_snapshot(push, head, id).await? else { return Ok(()) };
    let at: Position = mark.version.position;
    for _ in 0..MAX_LOST_RACES {
        let page = push.ports.items.query(&layout::commits_at(push.asset, at), Some(8), None).await?;
        let mut of_commit = None;
        for item in page.found {
            let event = store::decode::<Event>(&item)?.value;
            if event.mark().is_some_and(|known| known.version == mark.version) {
                of_commit = Some((item, event));
            }
        }
        let Some((item, mut event)) = of_commit else { return Ok(()) };
        let mut is_new = false;
        for (name, value) in told {
            if !event.extra.contains_key(name) {
                event.extra.insert(name.clone(), value.clone());
                is_new = true;
            }
        }
        let bytes = store::encode(&event.extra)?.len();
        if !is_new || bytes > MAX_EXTRA {
            return Ok(());
        }
        let doc = store::encode(&event)?;
        let draft = Draft { key: item.key, doc, sweep: None, history: item.history, expires_at: item.expires_at };
        let action = [Write::Replace(draft, item.rev)];
        if store::write(&*push.ports.items, &*push.ports.random, &action).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("attach to a commit").with("asset", push.asset))
}
