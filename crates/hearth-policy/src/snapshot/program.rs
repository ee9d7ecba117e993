//! Parallel programs that asked to be scheduled as one.

use std::collections::BTreeSet;

/// A parallel program, and how it asked to be scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its number among all that ever asked.
    pub id: u32,
    /// Its processes. None is of two programs.
    pub processes: BTreeSet<i32>,
    /// What it asked for.
    pub asks: Asks,
    /// The most CPUs that it can use at once; as many as there are, if none.
    pub cpus: Option<usize>,
}

/// How a program asked to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All its tasks at the same time.
    Gang,
    /// CPUs of its own.
    Set,
}
