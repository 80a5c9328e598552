//! What a scan finds out about tags: those whose notification was lost, and those that are gone, of
//! which nobody is notified.

use std::collections::BTreeSet;

use lakebell_domain::state::{AssetState, Evidence, MAX_TAGS};
use lakebell_formats::paimon::{self, PaimonObjectKind};
use sha2::{Digest, Sha256};

use super::super::findings::{Finding, Reading};
use super::super::table::Stop;
use super::Reader;
use crate::ports::storage::{Listed, Listing};
use crate::records::TagsSeen;

/// Most tags that a scan lists: one request.
const MAX_LISTED_TAGS: usize = 1_000;

impl Reader<'_> {
    /// Adds what happened to tags since the last scan. An unchanged table costs one listing and no
    /// read, however many tags it has.
    pub(super) async fn scan_tags(
        &self,
        state: &AssetState,
        seen: Option<&TagsSeen>,
        reading: &mut Reading,
    ) -> Result<(), Stop> {
        let rows = self.list_tags().await?;
        let now_seen = seen_in(&rows);
        if seen == Some(&now_seen) {
            return Ok(());
        }
        // A time is to the second, so one that is as old as the newest known may be new.
        let newest = seen.and_then(|seen| seen.newest);
        let mut fresh: Vec<&(String, Listed)> =
            rows.iter().filter(|(_, row)| row.modified.is_none() || row.modified >= newest).collect();
        fresh.sort_by_key(|(_, row)| std::cmp::Reverse(row.modified));
        for (name, _) in fresh.into_iter().take(MAX_TAGS) {
            match self.tag(state, name).await {
                Ok(found) => reading.findings.extend(found.findings.into_iter().filter(|it| is_news(state, it))),
                // One damaged tag hides neither commits nor the other tags.
                Err(Stop::Trouble(_, detail)) => tracing::warn!(tag = name, reason = detail, "a tag is passed over"),
                Err(stop) => return Err(stop),
            }
        }
        let there: BTreeSet<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        let last = there.last().copied().filter(|_| rows.len() >= MAX_LISTED_TAGS);
        let is_gone = |name: &&String| !there.contains(name.as_str()) && last.is_none_or(|last| name.as_str() <= last);
        let gone = state.tags.keys().filter(is_gone);
        reading.findings.extend(gone.map(|name| Finding::new(Evidence::TagDeleted(name.clone()))));
        reading.tags = Some(now_seen);
        Ok(())
    }

    /// The tags that are there before anybody asked: they are told of no more.
    pub(super) async fn tags_before(&self) -> Result<TagsSeen, Stop> {
        Ok(seen_in(&self.list_tags().await?))
    }

    async fn list_tags(&self) -> Result<Vec<(String, Listed)>, Stop> {
        let prefix = paimon::tag_key(self.table.branch, "");
        let rows = self.table.list(Listing::below(&prefix, MAX_LISTED_TAGS)).await?;
        let named = |row: Listed| match paimon::classify(&row.key)?.kind {
            PaimonObjectKind::Tag(name) => Some((name, row)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(named).collect())
    }
}

fn is_news(state: &AssetState, finding: &Finding) -> bool {
    match &finding.evidence {
        Evidence::TagCreated(name, entry) => state.tags.get(name) != Some(entry),
        Evidence::TagDeleted(name) => state.tags.contains_key(name),
        _ => true,
    }
}

fn seen_in(rows: &[(String, Listed)]) -> TagsSeen {
    let mut digest = Sha256::new();
    for (name, row) in rows {
        digest.update([name.as_bytes(), b"\0", row.etag.as_bytes(), b"\0"].concat());
    }
    let digest = digest.finalize().iter().take(16).fold(0_u128, |digest, byte| (digest << 8) | u128::from(*byte));
    TagsSeen { digest: format!("{digest:032x}"), newest: rows.iter().filter_map(|(_, row)| row.modified).max() }
}
