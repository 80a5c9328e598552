//! Which asset a writer means, and the names that writers claim for it.
//!
//! A table is found by its key, by its uuid where a look at the table has shown that, by its location and
//! format, and last by a name. A name that a writer claims is kept as an alias and finds nothing until the
//! table, its catalog or somebody who may register it has confirmed it: a mistaken writer must not make one
//! table of two.

use jiff::Timestamp;
use lakebell_decoders::{CatalogName, TableRef};
use lakebell_domain::asset::{AssetKey, Format};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::lineage::FRESH;
use serde::{Deserialize, Serialize};

use super::{waiting, witness};
use crate::ports::Ports;
use crate::ports::items::{Key, Write, Written};
use crate::records::{AssetHead, Resolved};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind, layout, observe};

/// Who claims the name that an asset's own settings give it.
const BY_SETTINGS: &str = "the asset's settings";
/// Most aliases of one asset that are kept.
pub const MAX_ALIASES: usize = 32;

/// A name that a writer has for an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alias {
    /// The name.
    #[serde(flatten)]
    pub name: CatalogName,
    /// Whether it is confirmed: until then it finds nothing.
    pub is_verified: bool,
    /// What confirmed it: the table's location, the asset's catalog, or a token; absent where that was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
    /// Who claimed it first.
    pub by: String,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last; exact to some hours.
    pub last_seen: Timestamp,
}

/// The names of an asset beside its key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Aliases {
    /// At most [`MAX_ALIASES`].
    pub aliases: Vec<Alias>,
}

/// Why no asset was found.
pub(crate) fn why_unknown(table: &TableRef) -> &'static str {
    if table.is_findable() {
        "no asset is registered under this key, uuid, location or name; a name that was only claimed has to be confirmed"
    } else {
        "the writer names nothing by which a table can be found"
    }
}

/// The asset that a writer means.
pub(crate) async fn find(ports: &Ports, table: &TableRef) -> Result<Option<AssetId>, EngineError> {
    let is_of_format = |format: Format| table.format.is_none_or(|told| told == format);
    let is_fine = |head: &AssetHead| is_of_format(head.key.format());
    // Another table may have the name by now. At one location it is the next table there, which a look shows.
    let is_same = |head: &AssetHead| {
        let shown = observe::uuid_of(&head.state);
        let is_other = |shown: String| table.uuid.as_ref().is_some_and(|told| !told.eq_ignore_ascii_case(&shown));
        is_fine(head) && !shown.is_some_and(is_other)
    };
    let mut keys: Vec<Key> = table.key.iter().map(layout::name).collect();
    keys.extend(table.uuid.as_deref().map(layout::uuid));
    keys.extend(table.location.as_ref().map(|location| layout::location(location, None)));
    if let Some(found) = first(ports, &keys, is_fine).await? {
        return Ok(Some(found));
    }
    let aliases: Vec<Key> = table.names.iter().map(layout::alias).collect();
    if let Some(found) = first(ports, &aliases, is_same).await? {
        return Ok(Some(found));
    }
    // A name is taken for a key where it is one: of one format, as far as that is told.
    for name in &table.names {
        let formats = Format::ALL.into_iter().filter(|format| is_of_format(*format));
        let keys: Vec<Key> = formats.flat_map(|format| name.keys(format)).map(|key| layout::name(&key)).collect();
        let found = all(ports, &keys, is_same).await?;
        // The first reading of a name counts where the format is told, else it has to be the only one.
        match (found.as_slice(), table.format) {
            ([only], _) => return Ok(Some(*only)),
            ([first, ..], Some(_)) => return Ok(Some(*first)),
            _ => {}
        }
    }
    Ok(None)
}

async fn first(
    ports: &Ports,
    keys: &[Key],
    is_fine: impl Fn(&AssetHead) -> bool,
) -> Result<Option<AssetId>, EngineError> {
    Ok(all(ports, keys, is_fine).await?.first().copied())
}

/// The assets that keys lead to, in their order, that are registered and of a fitting format.
async fn all(ports: &Ports, keys: &[Key], is_fine: impl Fn(&AssetHead) -> bool) -> Result<Vec<AssetId>, EngineError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let items = ports.items.get(keys).await?;
    let mut ids: Vec<AssetId> = Vec::new();
    for key in keys {
        if let Some(item) = store::pick(&items, key) {
            let id = store::decode::<Resolved>(item)?.value.id;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    if ids.is_empty() {
        return Ok(ids);
    }
    let heads: Vec<Key> = ids.iter().copied().map(layout::head).collect();
    let items = ports.items.get(&heads).await?;
    let mut found = Vec::new();
    for (id, key) in ids.into_iter().zip(&heads) {
        if let Some(item) = store::pick(&items, key) {
            let head = store::decode::<AssetHead>(item)?.value;
            if head.deregistered_at.is_none() && is_fine(&head) {
                found.push(id);
            }
        }
    }
    Ok(found)
}

/// Keeps the names that a writer claims for an asset that was found, and its uuid where the table itself
/// has shown it. What was seen a short while ago is not written again. Returns the names that the table or
/// its catalog has just confirmed.
pub(super) async fn claim(
    ports: &Ports,
    asset: AssetId,
    table: &TableRef,
    by: &str,
) -> Result<Vec<CatalogName>, EngineError> {
    if table.names.is_empty() && table.uuid.is_none() {
        return Ok(Vec::new());
    }
    let key = layout::aliases(asset);
    for _ in 0..MAX_LOST_RACES {
        let items = ports.items.get(&[layout::head(asset), key.clone()]).await?;
        let Some(head) = store::pick(&items, &layout::head(asset)) else { return Ok(Vec::new()) };
        let head: AssetHead = store::decode(head)?.value;
        let known = store::pick(&items, &key).map(store::decode::<Aliases>).transpose()?;
        let rev = known.as_ref().map(|known| known.rev);
        let mut aliases = known.map(|known| known.value).unwrap_or_default();
        let now = ports.clock.now();
        let foreign = table.names.iter().filter(|name| !is_own(&head.key, name));
        let seen: Vec<CatalogName> = foreign.filter(|name| note(&mut aliases, name, by, now)).cloned().collect();
        let (confirmed, mut actions) = bear_out(ports, asset, &head, &mut aliases, &seen).await?;
        if !seen.is_empty() {
            actions.push(Write::put(store::draft(key.clone(), &aliases)?, rev));
        }
        if actions.is_empty() || store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            keep_uuid(ports, asset, &head, table.uuid.as_deref()).await?;
            return Ok(confirmed);
        }
    }
    Err(store::lost_too_often("keep aliases").with("asset", asset))
}

/// Confirms those of some claimed names that the table or its catalog bears out; with the writes by which
/// they find the asset.
async fn bear_out(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    aliases: &mut Aliases,
    names: &[CatalogName],
) -> Result<(Vec<CatalogName>, Vec<Write>), EngineError> {
    let (mut confirmed, mut actions) = (Vec::new(), Vec::new());
    for name in names {
        let claimed = aliases.aliases.iter_mut().find(|alias| alias.name == *name && !alias.is_verified);
        let Some(alias) = claimed else { continue };
        let Some(witness) = witness::of_table(ports, head, name).await else { continue };
        match store::get::<Resolved>(&*ports.items, layout::alias(name)).await? {
            None => {
                let resolved = Resolved { id: asset, project: None };
                actions.push(Write::Create(store::draft(layout::alias(name), &resolved)?));
            }
            Some(there) if there.value.id == asset => {}
            // Somebody has confirmed it for another asset; a person has to settle that.
            Some(_) => continue,
        }
        alias.is_verified = true;
        alias.confirmed_by = Some(witness.to_owned());
        confirmed.push(name.clone());
    }
    Ok((confirmed, actions))
}

/// Has the table and its catalog asked about every name that is only claimed so far, and about what the asset
/// is called there by its own settings, after they may have changed. Returns the names that are confirmed now.
pub(crate) async fn confirm_claimed(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
) -> Result<Vec<CatalogName>, EngineError> {
    let key = layout::aliases(asset);
    for _ in 0..MAX_LOST_RACES {
        let known = store::get::<Aliases>(&*ports.items, key.clone()).await?;
        let rev = known.as_ref().map(|known| known.rev);
        let mut aliases = known.map(|known| known.value).unwrap_or_default();
        if let Some(own) = witness::own_name(head).filter(|own| !is_own(&head.key, own)) {
            note(&mut aliases, &own, BY_SETTINGS, ports.clock.now());
        }
        let claimed = aliases.aliases.iter().filter(|alias| !alias.is_verified).map(|alias| alias.name.clone());
        let claimed: Vec<CatalogName> = claimed.collect();
        let (confirmed, mut actions) = bear_out(ports, asset, head, &mut aliases, &claimed).await?;
        if confirmed.is_empty() {
            return Ok(confirmed);
        }
        actions.push(Write::put(store::draft(key.clone(), &aliases)?, rev));
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(confirmed);
        }
    }
    Err(store::lost_too_often("confirm names").with("asset", asset))
}

/// A uuid finds the asset once the table's own metadata has it.
async fn keep_uuid(ports: &Ports, asset: AssetId, head: &AssetHead, uuid: Option<&str>) -> Result<(), EngineError> {
    let shown = observe::uuid_of(&head.state).filter(|shown| uuid.is_some_and(|told| told.eq_ignore_ascii_case(shown)));
    if let Some(uuid) = shown {
        let create = Write::Create(store::draft(
            layout::uuid(&uuid.to_lowercase()),
            &Resolved { id: asset, project: Some(head.project) },
        )?);
        // Known already, which is as good.
        store::write(&*ports.items, &*ports.random, &[create]).await?;
    }
    Ok(())
}

/// Whether a name says no more than the key does.
fn is_own(key: &AssetKey, name: &CatalogName) -> bool {
    name.keys(key.format()).contains(key)
}

fn note(aliases: &mut Aliases, name: &CatalogName, by: &str, now: Timestamp) -> bool {
    if let Some(known) = aliases.aliases.iter_mut().find(|alias| alias.name == *name) {
        let is_fresh = now.duration_since(known.last_seen) < FRESH;
        if !is_fresh {
            known.last_seen = now;
        }
        return !is_fresh;
    }
    if aliases.aliases.len() >= MAX_ALIASES {
        // Claims make room, what was confirmed does not.
        let claims = aliases.aliases.iter().enumerate().filter(|(_, alias)| !alias.is_verified);
        let Some((oldest, _)) = claims.min_by_key(|(_, alias)| alias.last_seen) else { return false };
        aliases.aliases.remove(oldest);
    }
    let alias = Alias {
        name: name.clone(),
        is_verified: false,
        confirmed_by: None,
        by: by.to_owned(),
        first_seen: now,
        last_seen: now,
    };
    aliases.aliases.push(alias);
    true
}

/// The names of an asset beside its key.
pub async fn aliases(ports: &Ports, asset: AssetId) -> Result<Aliases, EngineError> {
    let known = store::get::<Aliases>(&*ports.items, layout::aliases(asset)).await?;
    Ok(known.map(|known| known.value).unwrap_or_default())
}

/// Confirms a name of an asset, whether or not a writer has claimed it: from now on it finds the asset, and
/// what was sent under it so far is worked on again.
///
/// Errors: `Conflict` where it is another asset's.
pub async fn confirm(
    ports: &Ports,
    asset: AssetId,
    name: &CatalogName,
    by: &str,
    trace: &TraceId,
) -> Result<Aliases, EngineError> {
    let aliases = keep_confirmed(ports, asset, name, by).await?;
    waiting::reopen(ports, &waiting::of_name(name), trace).await?;
    Ok(aliases)
}

async fn keep_confirmed(ports: &Ports, asset: AssetId, name: &CatalogName, by: &str) -> Result<Aliases, EngineError> {
    let key = layout::aliases(asset);
    for _ in 0..MAX_LOST_RACES {
        let known: Option<Stored<Aliases>> = store::get(&*ports.items, key.clone()).await?;
        let rev = known.as_ref().map(|known| known.rev);
        let mut aliases = known.map(|known| known.value).unwrap_or_default();
        note(&mut aliases, name, by, ports.clock.now());
        let Some(alias) = aliases.aliases.iter_mut().find(|alias| alias.name == *name) else {
            let message = format!("the asset has {MAX_ALIASES} confirmed names; no more are kept");
            return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "path"));
        };
        alias.is_verified = true;
        alias.confirmed_by = Some(by.to_owned());
        let draft = store::draft(key.clone(), &aliases)?;
        let mut actions =
            vec![rev.map_or_else(|| Write::Create(draft.clone()), |rev| Write::Replace(draft.clone(), rev))];
        match store::get::<Resolved>(&*ports.items, layout::alias(name)).await? {
            None => {
                let resolved = Resolved { id: asset, project: None };
                actions.push(Write::Create(store::draft(layout::alias(name), &resolved)?));
            }
            Some(there) if there.value.id == asset => {}
            Some(_) => {
                // Which asset it is is not said: it may belong to another project.
                let message = format!("`{name}` is the name of another asset");
                return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "path"));
            }
        }
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(aliases);
        }
    }
    Err(store::lost_too_often("confirm a name").with("asset", asset))
}
