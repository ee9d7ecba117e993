//! Why a host could not move a page.

/// Why a host could not move a page that it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The page, or its program, is no more.
    Gone,
    /// The page is in use in a way that pins it.
    Busy,
    /// The node has no memory left, or none at all.
    NoMemory,
    /// The host may not move it: not ours, or its program asked for a place.
    Permission,
    /// Anything else.
    Other,
}

impl Refusal {
    /// Every reason, in the order of [`Counters::refused`](super::Counters::refused).
    pub const ALL: [Refusal; 5] =
        [Refusal::Gone, Refusal::Busy, Refusal::NoMemory, Refusal::Permission, Refusal::Other];

    /// In a word or two.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Gone => "gone",
            Refusal::Busy => "busy",
            Refusal::NoMemory => "no memory",
            Refusal::Permission => "permission",
            Refusal::Other => "other",
        }
    }
}
