//! Chance, by seed and step.

use crate::SeededRandom;

/// The dice of one step. Every step has its own sequence, so that leaving one step out does not
/// change what the others roll: without this a failing run could not be made smaller.
#[derive(Debug)]
pub(super) struct Dice(SeededRandom);

impl Dice {
    pub(super) fn at(seed: u64, step: u64) -> Self {
        let mix = SeededRandom::new(seed);
        Self(SeededRandom::new(mix.next() ^ step.wrapping_mul(0xd134_2543_de82_ef95)))
    }

    /// A number below `bound`.
    pub(super) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound.max(1) as u64)).unwrap_or(0)
    }

    /// Whether something with a chance of `thousandth` in a thousand happens.
    pub(super) fn chance(&self, thousandth: usize) -> bool {
        self.below(1000) < thousandth
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).copied()
    }
}
