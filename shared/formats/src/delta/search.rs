//! Finding the newest version of a log without listing it from its start.

use super::keys::commit_key;

/// Looks for the newest version in a few steps, however long the log is.
///
/// Each step asks the store for the first numbered object after a key ([`NewestSearch::start_after`],
/// one listing of one key below [`NUMBERED_PREFIX`](super::NUMBERED_PREFIX)) and tells the search the
/// version in its name ([`NewestSearch::answer`]). The steps double the distance until nothing
/// follows and then halve it, so a log of a million commits takes about 40 listings from version 0
/// and 4 from the version of a fresh checkpoint. A log has no gaps above its oldest commit, which
/// is what makes this right; cleaned logs are fine, because the first answer jumps over what is gone.
///
/// ```
/// use lakebell_formats::delta::NewestSearch;
///
/// let log = 40..=1_000_u64; // versions 0 to 39 were cleaned up
/// let mut search = NewestSearch::new(None);
/// while search.start_after().is_some() {
///     let after = search.probed().map_or(0, |version| version + 1);
///     search.answer(log.clone().find(|version| *version >= after));
/// }
/// assert_eq!(search.newest(), Some(1_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestSearch {
    /// The newest version that is there.
    there: Option<u64>,
    /// A version that is known not to be there.
    not_there: Option<u64>,
    /// How far the next step goes.
    stride: u64,
}

impl NewestSearch {
    /// A search that starts at a version that is there (or was: a hint that is too high makes it
    /// find nothing, and then it has to be started again without).
    pub const fn new(known: Option<u64>) -> Self {
        Self { there: known, not_there: None, stride: 1 }
    }

    /// The key to list after, relative to the table's root; `None` when the search is over.
    ///
    /// Where nothing is known yet it sorts before every numbered object.
    pub fn start_after(&self) -> Option<String> {
        if self.is_over() {
            return None;
        }
        Some(self.probed().map_or_else(|| super::NUMBERED_PREFIX.to_owned(), commit_key))
    }

    /// The version after which the current step looks; `None` for the whole log.
    pub fn probed(&self) -> Option<u64> {
        let there = self.there?;
        let farthest = there.saturating_add(self.stride - 1);
        let middle = self.not_there.map_or(farthest, |not_there| there + (not_there - there - 1) / 2);
        Some(if self.not_there.is_some() { middle } else { farthest })
    }

    /// Takes the answer to the current step: the version of the first object after the key, `None`
    /// where there is none.
    pub fn answer(&mut self, first_after: Option<u64>) {
        let probed = self.probed();
        match (first_after, probed) {
            (Some(version), _) if probed.is_none_or(|probed| version > probed) => {
                self.there = Some(version);
                self.stride = self.stride.saturating_mul(2);
                // Written while the search was on.
                self.not_there = self.not_there.filter(|not_there| *not_there > version);
            }
            (_, Some(probed)) => self.not_there = Some(probed.saturating_add(1)),
            (_, None) => self.not_there = Some(0),
        }
    }

    /// The newest version found so far; the newest of all when the search is over.
    pub const fn newest(&self) -> Option<u64> {
        self.there
    }

    /// Whether there is nothing left to ask.
    fn is_over(&self) -> bool {
        match (self.there, self.not_there) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(there), Some(not_there)) => not_there <= there.saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests;
