//! What a planner is told of memory: which pages are used, and from where.

use crate::pages::Refusal;
use std::collections::BTreeMap;

/// The memory of processes, and what of it was used since the snapshot before. Empty where nobody looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The nodes that have memory, by number, ascending.
    pub nodes: Vec<usize>,
    /// The size of a base page.
    pub page_bytes: u64,
    /// Processes, by id. What is not here has ended.
    pub processes: BTreeMap<i32, Process>,
    /// What came of moves that earlier plans asked for. Each is told once.
    pub moves: Vec<Moved>,
}

/// A process and its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// When it began, by any clock of the host: a process of the same id that began at another time is another.
    pub began: u64,
    /// Where its tasks ran: of their CPU time the part of each node, in thousandths.
    pub ran_permille: Vec<(usize, u32)>,
    /// Whether somebody looks at what it uses.
    pub is_watched: bool,
    /// Pages that it has used, each once.
    pub pages: Vec<Page>,
}

/// A page that was used: a base page, or a huge page that moves whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its first address.
    pub address: u64,
    /// Its node.
    pub home: usize,
    /// How often it was used, by estimate.
    pub accesses: u32,
    /// It is as large as two to this power of base pages.
    pub order: u8,
}

/// What came of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The page's process.
    pub process: i32,
    /// The page's first address.
    pub address: u64,
    /// When.
    pub at_ns: u64,
    /// The node where it is now, or why it stayed.
    pub end: Result<usize, Refusal>,
}
