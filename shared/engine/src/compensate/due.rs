//! Assets with a scan interval of their own, handed out when their time has come.
//!
//! When each was looked at last is written nowhere: the moments of an interval follow from the
//! asset's id, and what is remembered is one moment, up to which everything was handed out. So a
//! lost tick is made good by the next one, and a scan costs no write for each asset.

use jiff::Timestamp;
use lakebell_domain::ids::TraceId;
use serde::{Deserialize, Serialize};

use super::{readable, remember, send_all};
use crate::EngineError;
use crate::layout::{self, SHARDS};
use crate::ports::Ports;
use crate::ports::items::Key;
use crate::ports::queue::Message;
use crate::records::RegisteredAsset;
use crate::store::{self, Stored};

/// Up to when everything was handed out, and what is under way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Progress {
    /// Absent before the first tick: then every asset's time has come.
    up_to: Option<Timestamp>,
    /// A stretch of time that ran out of time itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    under_way: Option<UnderWay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnderWay {
    /// The end of the stretch; it begins at [`Progress::up_to`].
    to: Timestamp,
    shard: u8,
    after: Option<String>,
}

/// Hands out every asset with a scan interval of its own whose time has come since the last call,
/// until `deadline`. Says how many there were.
///
/// Errors: those of the store and the queue; the next call does the same again.
pub async fn scan_due(ports: &Ports, trace: &TraceId, deadline: Timestamp) -> Result<usize, EngineError> {
    let key = Key::new("SCAN", "DUE");
    let kept: Option<Stored<Progress>> = store::get(&*ports.items, key.clone()).await?;
    let (mut progress, rev) = kept.map_or_else(|| (Progress::default(), None), |kept| (kept.value, Some(kept.rev)));
    let now = ports.clock.now();
    let mut stretch = progress.under_way.take().unwrap_or(UnderWay { to: now, shard: 0, after: None });
    let mut handed_out = 0;
    loop {
        let range = layout::registry_shard("RA", stretch.shard);
        // A whole page of the store: most entries have no interval of their own.
        let page = ports.items.query(&range, None, stretch.after.as_deref()).await?;
        let assets: Vec<RegisteredAsset> = readable(&page.found, &mut 0);
        let is_due = |asset: &RegisteredAsset| {
            asset.settings.scan_interval.is_some_and(|interval| {
                progress.up_to.is_none_or(|from| interval.falls_between(from, stretch.to, offset(asset)))
            })
        };
        let due = assets.iter().filter(|asset| is_due(asset));
        let messages: Vec<Message> =
            due.map(|asset| Message::Observe { asset: asset.id, is_again: false, trace: trace.clone() }).collect();
        handed_out += messages.len();
        send_all(ports, messages).await?;
        match page.next {
            Some(after) => stretch.after = Some(after),
            None if stretch.shard + 1 < SHARDS => {
                stretch = UnderWay { shard: stretch.shard + 1, after: None, ..stretch };
            }
            None => {
                progress.up_to = Some(stretch.to);
                break;
            }
        }
        if ports.clock.now() >= deadline {
            progress.under_way = Some(stretch);
            break;
        }
    }
    // Two ticks at once hand work out twice, which changes nothing; the later one's progress stays.
    remember(ports, key, &progress, rev).await?;
    Ok(handed_out)
}

/// Where the moments of an asset's interval lie; ids are random.
fn offset(asset: &RegisteredAsset) -> u64 {
    let id = asset.id.to_string();
    id.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
