//! The words of a B-tree in simulated memory.

use super::btree::Words;
use hearth_sim::memory::Array;
use hearth_sim::program::Cpu;

/// The tree's words as a program reads and writes them.
pub(crate) struct Charged<'a, 'b> {
    pub(crate) words: &'a Array<u64>,
    pub(crate) cpu: &'a mut Cpu<'b>,
}

impl Words for Charged<'_, '_> {
    fn read(&mut self, at: usize) -> u64 {
        self.words.get(self.cpu, at)
    }

    fn write(&mut self, at: usize, value: u64) {
        self.words.set(self.cpu, at, value);
    }
}

/// The tree's words for setting up and checking, without references.
pub(crate) struct Peeked<'a>(pub(crate) &'a Array<u64>);

impl Words for Peeked<'_> {
    fn read(&mut self, at: usize) -> u64 {
        self.0.peek(at)
    }

    fn write(&mut self, at: usize, value: u64) {
        self.0.poke(at, value);
    }
}
