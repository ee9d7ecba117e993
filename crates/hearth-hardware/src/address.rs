//! Addresses, and what a reference asks of the memory system.

/// A byte in the one virtual address space of a machine.
pub type Address = u64;

/// What a reference does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Fetch,
}

/// How a reference is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Through the TLB.
    User,
    /// By the kernel, whose memory is mapped without the TLB.
    Kernel,
}

/// Where the pages of a segment get their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the node of the CPU that touches a page first.
    FirstTouch,
    /// Dealt over the nodes, page by page.
    RoundRobin,
    /// On one node.
    Node(usize),
}

/// A range of addresses that was handed out by [`Hardware::segment`](crate::Hardware::segment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte; starts a page.
    pub base: Address,
    /// Length in bytes, as asked for.
    pub bytes: u64,
}
