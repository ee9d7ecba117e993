//! The references of a program that is given by its curve.

use super::curve::Curve;
use super::stack::Stack;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Bytes of a line, whatever the machine has: curves are for 64-byte blocks.
pub(crate) const LINE_BYTES: u64 = 64;

/// Lines of a run, 1 KB: programs go through the same structures again in the same order, so lines that lie
/// beside each other are used after each other. An assumption, and not one that curves depend on: a run's lines
/// all have the stack depth of the last of them.
const RUN_LINES: u64 = 16;
const RUN_KIB: f64 = (RUN_LINES * LINE_BYTES) as f64 / 1024.0;

/// The stack is no deeper than this; what misses a cache of this size takes the line that was not used for longest.
/// Larger caches than this would not miss at all. Deeper stacks would have the program fault on pages for as long
/// as it runs, where the real ones have set up their data long before.
const LAST_KIB: u32 = 4 << 10;

/// Stores among references: 10 % of the instructions of the SPEC integer programs of 2000, beside 26 % of loads.
/// Recalled: Hennessy and Patterson, 4th edition, figure B.27.
const STORE_SHARE: f64 = 10.0 / 36.0;

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Byte within the footprint.
    pub(crate) offset: u64,
    pub(crate) is_store: bool,
}

/// Draws stack depths from a curve, a run at a time, and takes what lies there.
pub(crate) struct Walk {
    curve: Curve,
    stack: Stack,
    random: Pcg32,
    next: u64,
    /// Lines of the run that are to come.
    left: u64,
}

impl Walk {
    /// A walk through a footprint that was last gone through in order.
    pub(crate) fn new(curve: Curve, seed: u64) -> Self {
        let runs = (f64::from(curve.footprint_kib().min(LAST_KIB)) / RUN_KIB) as usize;
        let stack = Stack::new(runs);
        Self { curve, stack, random: Pcg32::seed_from_u64(seed), next: 0, left: 0 }
    }

    /// Bytes of the footprint.
    pub(crate) fn footprint_bytes(&self) -> u64 {
        self.stack.len() as u64 * RUN_LINES * LINE_BYTES
    }

    /// The next reference that misses a cache of [`FIRST_KIB`](super::curve::FIRST_KIB).
    pub(crate) fn step(&mut self) -> Reference {
        if self.left == 0 {
            self.begin_run();
        }
        let offset = self.next;
        self.next += LINE_BYTES;
        self.left -= 1;
        Reference { offset, is_store: self.draw() < STORE_SHARE }
    }

    fn begin_run(&mut self) {
        let drawn = self.draw();
        let depth = (self.curve.depth_kib(drawn) / RUN_KIB) as usize;
        let run = self.stack.touch(depth.min(self.stack.len() - 1));
        self.next = u64::from(run) * RUN_LINES * LINE_BYTES;
        self.left = RUN_LINES;
    }

    /// A number from 0 up to 1.
    fn draw(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::PROGRAMS;
    use super::super::programs::{GZIP, TWOLF};
    use super::*;
    use std::collections::VecDeque;

    fn references(curve: Curve, seed: u64, count: usize) -> Vec<Reference> {
        let mut walk = Walk::new(curve, seed);
        (0..count).map(|_| walk.step()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_references_and_another_seed_others() {
        let [first, again, other] = [7, 7, 8].map(|seed| references(TWOLF.curve(), seed, 10_000));
        assert_eq!(first, again);
        assert_ne!(first, other);
    }

    #[test]
    fn more_than_a_quarter_are_stores() {
        let references = references(TWOLF.curve(), 1, 100_000);
        let stores = references.iter().filter(|reference| reference.is_store).count();
        assert!((0.27..0.29).contains(&(stores as f64 / 100_000.0)), "{stores}");
    }

    #[test]
    fn references_stay_within_the_footprint() {
        for program in PROGRAMS {
            let bytes = Walk::new(program.curve(), 1).footprint_bytes();
            let references = references(program.curve(), 1, 200_000);
            assert!(bytes <= u64::from(LAST_KIB) << 10);
            assert!(references.iter().all(|reference| reference.offset < bytes), "{program:?}");
        }
    }

    /// Misses of a list in order of recency, which is what a curve is about.
    #[test]
    fn a_fully_associative_cache_misses_as_the_curve_says() {
        let (curve, kib) = (GZIP.curve(), 32);
        let lines = kib * 1024 / LINE_BYTES as usize;
        let mut cache: VecDeque<u64> = VecDeque::new();
        let mut misses = 0;
        let references = references(curve.clone(), 3, 100_000);
        for Reference { offset, .. } in &references {
            match cache.iter().position(|line| line == offset) {
                Some(at) => _ = cache.remove(at),
                None => misses += 1,
            }
            cache.push_front(*offset);
            cache.truncate(lines);
        }
        let measured = f64::from(misses) / references.len() as f64;
        let given = curve.misses(kib as f64) / curve.misses(8.0);
        assert!((measured / given - 1.0).abs() < 0.03, "{measured} {given}");
    }
}
