//! The plan in force, as the one word that the scheduler reads.

use crate::interface::{PUBLISHED_BEFORE, PUBLISHED_PLAN, PUBLISHED_SEQUENCE};
use crate::{PLANS, SHAPES};

/// What is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// How often something was published.
    pub sequence: u64,
    /// Index of the shape in force; 0 is the machine undivided.
    pub shape: usize,
    /// Index of the shape before it; that in force if there was none.
    pub before: usize,
    /// Index of the plan; none if tasks are scheduled without one.
    pub plan: Option<usize>,
}

impl Published {
    /// As the scheduler reads it.
    pub fn word(self) -> u64 {
        let plan = self.plan.map_or(0, |plan| plan as u64 % PLANS as u64 + 1);
        self.sequence << PUBLISHED_SEQUENCE
            | plan << PUBLISHED_PLAN
            | ((self.before % SHAPES) as u64) << PUBLISHED_BEFORE
            | (self.shape % SHAPES) as u64
    }

    /// What a word says.
    pub fn of(word: u64) -> Self {
        let shape = |bits: u32| (word >> bits) as usize % SHAPES;
        let plan = (word >> PUBLISHED_PLAN) as usize & 3;
        Self {
            sequence: word >> PUBLISHED_SEQUENCE,
            shape: shape(0),
            before: shape(PUBLISHED_BEFORE),
            plan: plan.checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_into_it() {
        assert_eq!(Published::of(0), Published::default());
        for shape in 0..SHAPES {
            for (before, plan) in [(0, None), (3, Some(0)), (1, Some(1))] {
                let published = Published { sequence: 70_000, shape, before, plan };
                assert_eq!(Published::of(published.word()), published);
            }
        }
    }
}
