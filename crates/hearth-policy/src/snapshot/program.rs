//! Parallel programs that asked to be scheduled as one.

/// A parallel program, and how it asked to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Whose tasks it has.
    pub members: Members,
    /// What it asked for.
    pub asks: Asks,
    /// The most CPUs that it can use at once; as many as there are, if none.
    pub cpus: Option<usize>,
}

/// Whose tasks a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Members {
    /// The threads of a process.
    Process(i32),
    /// The tasks of a control group itself.
    Group(u64),
}

/// How a program asked to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All its tasks at the same time.
    Gang,
    /// CPUs of its own.
    Set,
}
