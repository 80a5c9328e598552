//! The files of one table as a forest: each has at most one parent.

use std::collections::{HashMap, HashSet};

use super::ChainLink;
use crate::iceberg::keys::{MetadataName, name_of};

/// What a file beside the chain is.
pub(super) enum Side {
    /// It may still be on the chain.
    Pending,
    /// It is not on the chain.
    Lost,
}

/// Files by name, those that are there and those that only a log names.
pub(super) struct Graph<'a> {
    there: HashMap<&'a str, &'a ChainLink>,
    parents: HashMap<&'a str, &'a str>,
    children: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(links: &[&'a ChainLink]) -> Self {
        let mut links = links.to_vec();
        links.sort_unstable_by_key(|link| &link.name);
        let there: HashMap<_, _> = links.iter().map(|link| (link.name.as_str(), *link)).collect();
        let mut parents = HashMap::new();
        // What a file says of itself comes before what others say of it.
        for link in &links {
            if let Some(parent) = link.log.last().filter(|parent| **parent != link.name) {
                parents.insert(link.name.as_str(), parent.as_str());
            }
        }
        for pair in links.iter().flat_map(|link| link.log.windows(2)).filter(|pair| pair[0] != pair[1]) {
            parents.entry(pair[1].as_str()).or_insert(pair[0].as_str());
        }
        let mut graph = Self { there, parents, children: HashMap::new() };
        graph.adopt(&links);
        graph.break_circles();
        for (child, parent) in &graph.parents {
            graph.children.entry(parent).or_default().push(child);
        }
        for siblings in graph.children.values_mut() {
            siblings.sort_unstable();
        }
        graph
    }

    pub(super) fn is_there(&self, name: &str) -> bool {
        self.there.contains_key(name)
    }

    /// The chain that ends in a file, oldest first; empty where nothing knows the file.
    pub(super) fn back_from(&self, name: &str) -> Vec<&'a str> {
        let known = self.there.get_key_value(name).map(|(name, _)| *name);
        let Some(tip) = known.or_else(|| self.children.get_key_value(name).map(|(name, _)| *name)) else {
            return Vec::new();
        };
        let mut line = vec![tip];
        line.extend(self.ancestors(tip));
        line.reverse();
        line
    }

    /// The chain from its first known file on, as far as it is decided, through a file that was
    /// accepted before unless another one was built upon in its place.
    pub(super) fn forward(&self, accepted: Option<&str>) -> Vec<&'a str> {
        let through: HashSet<&str> =
            accepted.map(|name| self.back_from(name).into_iter().collect()).unwrap_or_default();
        let Some(mut at) = self.first(&through) else { return Vec::new() };
        let mut line = vec![at];
        while let Some(next) = self.next(at, &through) {
            line.push(next);
            at = next;
        }
        line
    }

    /// What a file beside the chain is: pending if it is, or was made from, one of several that
    /// follow the chain's end, or, unless a catalog has decided, stands beside that end; else lost.
    pub(super) fn side(&self, name: &'a str, line: &[&str], by_catalog: bool) -> Side {
        let Some(tip) = line.last() else { return Side::Lost };
        let follows_tip = std::iter::once(name).chain(self.ancestors(name)).any(|it| self.parents.get(it) == Some(tip));
        let sibling_of_tip = !by_catalog
            && self.parents.contains_key(tip)
            && self.parents.get(name) == self.parents.get(tip)
            && !self.has_children(tip)
            && !self.has_children(name);
        if follows_tip || sibling_of_tip { Side::Pending } else { Side::Lost }
    }

    fn has_children(&self, name: &str) -> bool {
        self.children.get(name).is_some_and(|children| !children.is_empty())
    }

    fn ancestors(&self, name: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::successors(self.parents.get(name).copied(), |at| self.parents.get(at).copied())
    }

    /// The root to start at: that of the accepted file, else that of the file written last.
    fn first(&self, through: &HashSet<&str>) -> Option<&'a str> {
        let newest = || self.there.values().max_by_key(|link| (link.last_updated_ms, &link.name));
        let member = self.there.keys().find(|name| through.contains(*name)).copied();
        let of_gone = || self.children.keys().find(|name| through.contains(*name)).copied();
        let start = member.or_else(of_gone).or_else(|| newest().map(|link| link.name.as_str()))?;
        Some(self.ancestors(start).last().unwrap_or(start))
    }

    fn next(&self, at: &str, through: &HashSet<&str>) -> Option<&'a str> {
        let children = self.children.get(at)?;
        if let [only] = children.as_slice() {
            return Some(only);
        }
        let built_upon: Vec<_> = children.iter().copied().filter(|child| self.has_children(child)).collect();
        match built_upon.as_slice() {
            [winner] => Some(winner),
            _ => children.iter().copied().find(|child| through.contains(child)),
        }
    }

    /// Files whose log does not say what they were made from, because it was cut, edited or never
    /// kept: the Hadoop catalog and `BigQuery` write one file after the other, so the number decides;
    /// elsewhere a file follows another one if its number is higher and it holds its snapshot.
    fn adopt(&mut self, links: &[&'a ChainLink]) {
        let found: Vec<_> =
            links.iter().filter_map(|link| Some((link.name.as_str(), self.unsaid_parent(link, links)?))).collect();
        self.parents.extend(found);
    }

    fn unsaid_parent(&self, link: &ChainLink, links: &[&'a ChainLink]) -> Option<&'a str> {
        let name = name_of(&link.name);
        let number = name.rising()?;
        let said = self.parents.get(link.name.as_str()).copied();
        if said.and_then(|said| name_of(said).rising()).is_some_and(|said| said + 1 == number) {
            return None;
        }
        let newest_said = link.log.iter().filter_map(|entry| name_of(entry).rising()).max();
        let is_alone = matches!(name, MetadataName::Version(_) | MetadataName::Epoch(_));
        let candidates = links.iter().filter(|other| {
            let same_naming = std::mem::discriminant(&name) == std::mem::discriminant(&name_of(&other.name));
            let between =
                name_of(&other.name).rising().is_some_and(|it| it < number && newest_said.is_none_or(|said| it > said));
            let holds = other.head.is_none_or(|head| link.recent.contains(&head));
            let same_parent = said.is_none() || self.parents.get(other.name.as_str()).copied() == said;
            same_naming && between && same_parent && (holds || (is_alone && said.is_none()))
        });
        let mut best: Option<(u64, &'a str)> = None;
        let mut tied = false;
        for (number, name) in candidates.filter_map(|other| Some((name_of(&other.name).rising()?, other.name.as_str())))
        {
            tied = best.is_some_and(|(highest, _)| highest == number)
                || (tied && best.is_some_and(|(highest, _)| highest > number));
            if best.is_none_or(|(highest, _)| number > highest) {
                best = Some((number, name));
            }
        }
        best.filter(|_| !tied).map(|(_, name)| name)
    }

    /// Logs of damaged files may name each other in circles; then nothing is the parent of the file
    /// where the circle closes.
    fn break_circles(&mut self) {
        let mut names: Vec<&str> = self.parents.keys().copied().collect();
        names.sort_unstable();
        let mut sound: HashSet<&str> = HashSet::new();
        for name in names {
            let mut path = HashSet::new();
            let mut at = name;
            while !sound.contains(at) {
                path.insert(at);
                match self.parents.get(at).copied() {
                    Some(parent) if path.contains(parent) => {
                        self.parents.remove(at);
                    }
                    Some(parent) => at = parent,
                    None => break,
                }
            }
            sound.extend(path);
        }
    }
}
