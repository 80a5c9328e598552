//! Reading a Paimon table's snapshots after the known one.
//!
//! Ids are dense and rise by one, and are reused after a rollback, a fast-forward and a drop and
//! create. So a missing id is looked into before anything is concluded, and an id that is known
//! already is compared by its fingerprint. `LATEST` and `EARLIEST` are never read.

mod tags;

use std::collections::BTreeMap;

use futures_util::future::join_all;
use lakebell_domain::state::{AssetState, Evidence, RewriteHold, SchemaDetail, TagEntry};
use lakebell_domain::version::{Ordinal, Position, Version};
use lakebell_formats::paimon::{self, ChangelogProducer, PaimonObjectKind, Schema, Snapshot, Tag};

use super::findings::{Finding, Reading};
use super::table::{Back, Stop, Table, damaged, verified};
use super::{Look, MAX_COMMITS_PER_WRITE};
use crate::ports::storage::{Listing, Object};
use crate::records::Ring;

/// Most snapshot files that one listing looks at.
const MAX_LISTED: usize = 20_000;
/// Most snapshot files that a scan lists: one request. A table with more is probed.
const MAX_SCANNED: usize = 1_000;

/// Reads one table or branch.
pub(super) struct Reader<'a> {
    pub(super) table: Table<'a>,
}

/// A snapshot with the entity tag of its file.
struct Found {
    snapshot: Snapshot,
    etag: String,
}

/// What a missing snapshot means.
enum Missing {
    /// It is newer than everything there is: gone before it was read, or not there yet.
    Nothing,
    /// Everything up to this ordinal (exclusive) expired.
    ExpiredBelow(u64),
    /// A commit is missing below this one, which is there.
    Hole { next: u64 },
    /// The newest there is is older than the known one.
    Rewritten {
        /// The newest snapshot that is left; 0 for none.
        newest: u64,
    },
}

impl Reader<'_> {
    /// What is new, by the state and the ring, looking where the hint says.
    pub(super) async fn read(&self, state: &AssetState, ring: &Ring, look: &Look) -> Result<Reading, Stop> {
        if state.baseline.is_none() {
            return self.first_read().await;
        }
        if let Some(hold) = &state.hold {
            return self.look_at_hold(hold).await;
        }
        let known = state.position().ordinal;
        match look {
            Look::Tag(name) => self.tag(state, name).await,
            Look::At { ordinal, etag } if *ordinal <= known => {
                self.look_back(state, ring, *ordinal, etag.as_deref()).await
            }
            Look::At { ordinal, .. } => self.follow(state, Some(ordinal.0)).await,
            // Files of another format say nothing about this table.
            Look::File { .. } => Ok(Reading::default()),
            Look::Whole => {
                let mut reading = self.whole(state, ring).await?;
                if !reading.sights_rewrite() {
                    match self.scan_tags(state, ring.tags.as_ref(), &mut reading).await {
                        Ok(()) => {}
                        // The commits that were found count all the same.
                        Err(Stop::Trouble(code, detail)) => {
                            reading.findings.push(Finding::new(self.table.trouble(code, detail)));
                        }
                        Err(stop) => return Err(stop),
                    }
                }
                Ok(reading)
            }
        }
    }

    /// The newest commit, and back from it to one that changed data. Where one is missing on that way, the read
    /// ends below it, and what follows the hole is followed as ever: a hole is no expiry.
    async fn first_read(&self) -> Result<Reading, Stop> {
        let ids = self.ids().await?;
        if ids.is_empty() {
            let tags = Some(self.tags_before().await?);
            return Ok(Reading { tags, ..Reading::of(Evidence::FirstRead(Vec::new())) });
        }
        let mut producers = Producers { detail: None, read: Vec::new() };
        let mut commits = Vec::new();
        let mut etags = Vec::new();
        let ids: Vec<u64> = ids.into_iter().rev().take(self.table.back.depth()).collect();
        let (mut above, mut more) = (None, false);
        'back: for ids in ids.chunks(self.table.back.ahead()) {
            let all = join_all(ids.iter().map(|id| self.snapshot(*id))).await;
            for (id, found) in ids.iter().zip(all) {
                let is_below_hole = above.replace(*id).is_some_and(|above| id + 1 < above);
                if is_below_hole && !matches!(self.table.back, Back::To(..)) {
                    commits.clear();
                    etags.clear();
                    more = true;
                }
                let Some(found) = found? else { break 'back };
                let commit = found.snapshot.to_commit(producers.of(self, found.snapshot.schema_id).await?);
                let is_last = self.table.back.ends_at(&commit);
                commits.push(commit);
                etags.push(found.etag);
                if is_last {
                    break 'back;
                }
            }
        }
        commits.reverse();
        etags.reverse();
        // The detail of the newest commit's schema is the one that the next commit needs.
        let mut findings: Vec<Finding> =
            producers.read.into_iter().take(1).map(|detail| Finding::new(Evidence::SchemaRead(detail))).collect();
        findings.push(Finding { evidence: Evidence::FirstRead(commits), etags });
        Ok(Reading { findings, more, verified: true, tags: Some(self.tags_before().await?), ..Reading::default() })
    }

    /// The commits after the known one: up to `last`, or to the newest there is.
    async fn follow(&self, state: &AssetState, last: Option<u64>) -> Result<Reading, Stop> {
        let known = state.position().ordinal.0;
        let mut producers = Producers { detail: state.schema.detail.clone(), read: Vec::new() };
        let mut reading = Reading::default();
        let mut total = state.total_records;
        let mut next = known + 1;
        let mut taken = 0;
        while last.is_none_or(|last| next <= last) {
            if taken == MAX_COMMITS_PER_WRITE {
                reading.more = true;
                break;
            }
            match self.snapshot(next).await {
                Ok(Some(found)) => {
                    if next == known + 1
                        && found.snapshot.link_holds(total) == Some(false)
                        && let Some(hold) = self.compare_known(state).await?
                    {
                        return Ok(Reading::of(Evidence::RewriteSighted(hold)));
                    }
                    let producer = producers.of(self, found.snapshot.schema_id).await?;
                    for detail in producers.read.drain(..) {
                        reading.findings.push(Finding::new(Evidence::SchemaRead(detail)));
                    }
                    let commit = Box::new(found.snapshot.to_commit(producer));
                    total = commit.total_records;
                    reading.findings.push(Finding { evidence: Evidence::Commit(commit), etags: vec![found.etag] });
                    next += 1;
                    taken += 1;
                }
                Ok(None) if last.is_none() && taken > 0 => break,
                Ok(None) if last.is_none() && self.is_still_there(state).await? => break,
                Ok(None) => match self.missing(state, next).await? {
                    Missing::Nothing => break,
                    Missing::ExpiredBelow(earliest) => {
                        let cause = "they expired before they were read";
                        reading.findings.push(self.table.gap(next, earliest - 1, cause));
                        total = None;
                        next = earliest;
                    }
                    Missing::Hole { next: beyond } => {
                        if let Some(hole) = self.table.hole(state, next) {
                            reading.findings.push(Finding::new(Evidence::Hole(hole)));
                            break;
                        }
                        let cause = "they stayed missing although later ones are there";
                        reading.findings.push(self.table.gap(next, beyond - 1, cause));
                        total = None;
                        next = beyond;
                    }
                    Missing::Rewritten { newest } => {
                        let hold = self.rolled_back(state, newest).await;
                        reading.findings.push(Finding::new(Evidence::RewriteSighted(hold)));
                        break;
                    }
                },
                // What was read before the damaged one counts all the same.
                Err(Stop::Trouble(code, detail)) => {
                    reading.findings.push(Finding::new(self.table.trouble(code, detail)));
                    break;
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(reading)
    }

    /// A snapshot that the state is past already: the same one again, or another one in its place.
    async fn look_back(
        &self,
        state: &AssetState,
        ring: &Ring,
        ordinal: Ordinal,
        etag: Option<&str>,
    ) -> Result<Reading, Stop> {
        let Some(entry) = ring.find_unless_same(ordinal, etag) else { return Ok(Reading::default()) };
        match self.snapshot(ordinal.0).await? {
            Some(found) if found.snapshot.fingerprint() == entry.fingerprint => Ok(Reading::default()),
            Some(found) => {
                let evidence = format!(
                    "snapshot {ordinal} is another commit than the one recorded ({})",
                    describe(&found.snapshot)
                );
                let withdrawn = Version {
                    position: Position { epoch: state.epoch, ordinal },
                    fingerprint: entry.fingerprint.clone(),
                    snapshot_id: ordinal.to_string().into(),
                };
                let hold = RewriteHold { withdrawn: Some(withdrawn), ..self.table.sighting(state, evidence) };
                Ok(Reading::of(Evidence::RewriteSighted(hold)))
            }
            None if ordinal == state.position().ordinal => match self.missing(state, ordinal.0).await? {
                Missing::Rewritten { newest } => {
                    Ok(Reading::of(Evidence::RewriteSighted(self.rolled_back(state, newest).await)))
                }
                _ => Ok(Reading::default()),
            },
            None => Ok(Reading::default()),
        }
    }

    /// Everything new, and what was taken on trust, from one listing: its entity tags tell which
    /// known commits are unchanged without reading them. A table with more snapshots than a scan
    /// may list is probed instead.
    async fn whole(&self, state: &AssetState, ring: &Ring) -> Result<Reading, Stop> {
        let listed = self.listed(MAX_SCANNED).await?;
        if listed.len() >= MAX_SCANNED {
            return self.probe(state, ring).await;
        }
        for entry in &ring.versions {
            let is_replaced = listed.get(&entry.ordinal.0).is_some_and(|etag| *etag != entry.etag);
            if is_replaced {
                let reading = self.look_back(state, ring, entry.ordinal, None).await?;
                if !reading.findings.is_empty() {
                    return Ok(reading);
                }
            }
        }
        let known = state.position().ordinal.0;
        let newest = listed.keys().next_back().copied().unwrap_or(0);
        let reading = match newest {
            newest if newest > known => self.follow(state, Some(newest)).await?,
            newest if newest < known => Reading::of(Evidence::RewriteSighted(self.rolled_back(state, newest).await)),
            _ => Reading::default(),
        };
        Ok(verified(state, reading))
    }

    /// Follows by single reads, and compares the newest known commit and the oldest one from
    /// which the fast path went on unseen.
    async fn probe(&self, state: &AssetState, ring: &Ring) -> Result<Reading, Stop> {
        let known = state.position().ordinal;
        let found = self.snapshot(known.0).await?;
        let is_same =
            |table: &Version| found.as_ref().is_some_and(|found| found.snapshot.fingerprint() == table.fingerprint);
        let is_there = state.table.as_ref().is_some_and(is_same);
        let again = (!is_there).then_some(known);
        for ordinal in [again, ring.unverified].into_iter().flatten() {
            let reading = self.look_back(state, ring, ordinal, None).await?;
            if !reading.findings.is_empty() {
                return Ok(reading);
            }
        }
        // The known one has just been read: that the next one is missing says all there is to say.
        if is_there && self.snapshot(known.0 + 1).await?.is_none() {
            return Ok(verified(state, Reading::default()));
        }
        Ok(verified(state, self.follow(state, None).await?))
    }

    /// Whether storage still contradicts what it contradicted when the hold was set.
    async fn look_at_hold(&self, hold: &RewriteHold) -> Result<Reading, Stop> {
        let is_back = match &hold.withdrawn {
            Some(withdrawn) => {
                let found = self.snapshot(withdrawn.position.ordinal.0).await?;
                found.is_some_and(|found| found.snapshot.fingerprint() == withdrawn.fingerprint)
            }
            None => false,
        };
        Ok(self.table.hold_again(hold, !is_back))
    }

    /// The version that a tag names now.
    async fn tag(&self, state: &AssetState, name: &str) -> Result<Reading, Stop> {
        let key = paimon::tag_key(self.table.branch, name);
        let Some(object) = self.object(&key).await? else {
            return Ok(Reading::of(Evidence::TagDeleted(name.to_owned())));
        };
        let tag = Tag::parse(&object.bytes).map_err(|error| damaged(&key, &error))?;
        let entry = TagEntry {
            position: Position { epoch: state.epoch, ordinal: Ordinal(tag.snapshot.id) },
            fingerprint: tag.snapshot.fingerprint(),
            snapshot_id: tag.snapshot.id.to_string(),
            schema_id: tag.snapshot.schema_id,
            kind: Some(lakebell_domain::commit::CommitKind(tag.snapshot.commit_kind.clone())),
        };
        Ok(Reading::of(Evidence::TagCreated(name.to_owned(), entry)))
    }

    /// The hold that is due if the known newest commit is not the one in storage.
    async fn compare_known(&self, state: &AssetState) -> Result<Option<RewriteHold>, Stop> {
        let Some(table) = &state.table else { return Ok(None) };
        let found = self.snapshot(table.position.ordinal.0).await?;
        let other = found.filter(|found| found.snapshot.fingerprint() != table.fingerprint);
        Ok(other.map(|found| {
            let evidence = format!(
                "snapshot {} is another commit than the one recorded ({})",
                table.snapshot_id,
                describe(&found.snapshot)
            );
            self.table.sighting(state, evidence)
        }))
    }

    /// The newest snapshot is older than the recorded one. Which one it is says how much was
    /// withdrawn; where it cannot be read, the rest stands all the same.
    async fn rolled_back(&self, state: &AssetState, newest: u64) -> RewriteHold {
        let known = state.position().ordinal.0;
        let evidence = match newest {
            0 => "the table has no snapshots any more".to_owned(),
            newest => format!("the newest snapshot is {newest}, and {known} was recorded"),
        };
        let found = if newest == 0 { None } else { self.snapshot(newest).await.unwrap_or(None) };
        let storage_newest = found.map(|found| (Ordinal(newest), found.snapshot.fingerprint()));
        RewriteHold { storage_newest, ..self.table.sighting(state, evidence) }
    }

    async fn is_still_there(&self, state: &AssetState) -> Result<bool, Stop> {
        match &state.table {
            Some(table) => Ok(self.snapshot(table.position.ordinal.0).await?.is_some()),
            None => Ok(self.ids().await?.is_empty()),
        }
    }

    /// What it means that snapshot `next` is not there. A commit counts as expired only when
    /// everything below the gap is gone as well, the known one too.
    async fn missing(&self, state: &AssetState, next: u64) -> Result<Missing, Stop> {
        let known = state.position().ordinal.0;
        let ids = self.ids().await?;
        let beyond = ids.iter().copied().find(|id| *id > next);
        Ok(match (ids.first(), beyond) {
            (None, _) if known > 0 => Missing::Rewritten { newest: 0 },
            (None, _) => Missing::Nothing,
            (Some(first), Some(_)) if *first > next => Missing::ExpiredBelow(*first),
            (Some(_), Some(beyond)) => Missing::Hole { next: beyond },
            (Some(_), None) => {
                let newest = ids.last().copied().unwrap_or(0);
                if newest < known { Missing::Rewritten { newest } } else { Missing::Nothing }
            }
        })
    }

    /// The ids of all snapshots, rising.
    async fn ids(&self) -> Result<Vec<u64>, Stop> {
        Ok(self.listed(MAX_LISTED).await?.into_keys().collect())
    }

    /// The entity tags of at most `limit` snapshots, by id.
    async fn listed(&self, limit: usize) -> Result<BTreeMap<u64, String>, Stop> {
        let prefix = paimon::snapshot_prefix(self.table.branch);
        let listed = self.table.list(Listing::below(&prefix, limit)).await?;
        let id = |key: &str| match paimon::classify(key)?.kind {
            PaimonObjectKind::Snapshot(id) => Some(id),
            _ => None,
        };
        Ok(listed.into_iter().filter_map(|row| Some((id(&row.key)?, row.etag))).collect())
    }

    async fn snapshot(&self, id: u64) -> Result<Option<Found>, Stop> {
        let key = paimon::snapshot_key(self.table.branch, id);
        let Some(object) = self.object(&key).await? else { return Ok(None) };
        let snapshot = Snapshot::parse_named(&object.bytes, id).map_err(|error| damaged(&key, &error))?;
        Ok(Some(Found { snapshot, etag: object.etag }))
    }

    async fn object(&self, relative: &str) -> Result<Option<Object>, Stop> {
        self.table.object(relative, paimon::MAX_FILE_BYTES).await
    }

    /// The schema's changelog producer. A schema file that is gone, refused or damaged leaves the
    /// decision to the commit kind.
    async fn schema(&self, id: i64) -> Result<SchemaDetail, Stop> {
        let unread = SchemaDetail { schema_id: id, text: None };
        let Ok(number) = u64::try_from(id) else { return Ok(unread) };
        let object = match self.object(&paimon::schema_key(self.table.branch, number)).await {
            Ok(Some(object)) => object,
            Ok(None) | Err(Stop::Trouble(..)) => return Ok(unread),
            Err(stop) => return Err(stop),
        };
        let producer = Schema::parse_named(&object.bytes, number).ok().and_then(|schema| schema.changelog_producer);
        Ok(SchemaDetail { schema_id: id, text: producer.map(|producer| producer_name(producer).to_owned()) })
    }
}

/// The changelog producers of the schemas that were met, each read once.
struct Producers {
    detail: Option<SchemaDetail>,
    read: Vec<SchemaDetail>,
}

impl Producers {
    async fn of(&mut self, reader: &Reader<'_>, schema_id: Option<i64>) -> Result<Option<ChangelogProducer>, Stop> {
        let Some(id) = schema_id else { return Ok(None) };
        let detail = match &self.detail {
            Some(detail) if detail.schema_id == id => detail.clone(),
            _ => {
                let detail = reader.schema(id).await?;
                self.read.push(detail.clone());
                self.detail = Some(detail.clone());
                detail
            }
        };
        Ok(detail.text.as_deref().and_then(ChangelogProducer::from_option))
    }
}

const fn producer_name(producer: ChangelogProducer) -> &'static str {
    match producer {
        ChangelogProducer::None => "none",
        ChangelogProducer::Input => "input",
        ChangelogProducer::Lookup => "lookup",
        ChangelogProducer::FullCompaction => "full-compaction",
    }
}

fn describe(snapshot: &Snapshot) -> String {
    format!(
        "{} of schema {}",
        snapshot.commit_kind,
        snapshot.schema_id.map_or_else(|| "unknown".to_owned(), |id| id.to_string())
    )
}
