//! Which pages to move to which memory node, and when.
//!
//! A page is cheap to use from its home node and dear from any other; moving it costs time once.
//! A [`PagePolicy`] is a small table of numbers, read from TOML (`policies/pages/*.toml`) or one of
//! the presets. It is followed in one of two variants, which share what decides:
//!
//! - [`planners::Pages`](crate::planners::Pages) plans, behind the [`Controller`](crate::Controller): of
//!   samples of what was used it says, at each step, which pages to move. So do kernels of today.
//! - [`InMiss`] decides in the miss itself, as the kernels of the papers do: its host asks at each miss of a
//!   TLB or cache, and the CPU that missed moves the page at once.
//!
//! ```text
//!  remote misses in succession       frozen after a move, or once used locally
//!  ----------> threshold? ---------> frozen? -----> worth it? -----> quota left? -----> move
//! ```
//!
//! The policies are those of Chandra, Devine, Verghese, Gupta and Rosenblum, "Scheduling and Page
//! Migration for Multiprocessor Compute Servers" (ASPLOS 1994), sections 4.1 and 5.4, and one for
//! a server of today.

mod candidate;
mod check;
mod core;
mod in_miss;
mod presets;
mod quota;
mod refusal;
mod table;
mod text;

use crate::PolicyError;
use hearth_machine::located::LocatedError;

pub(crate) use core::{Core, Sample};
pub use core::{Counters, MAX_NODES, Move, NodeId, PlannerError};
pub use in_miss::InMiss;
pub use presets::page_presets;
#[cfg(test)]
pub(crate) use quota::fullest_second;
pub use refusal::Refusal;

/// When pages move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePolicy {
    /// Name as given on the command line, for example `freeze`.
    pub name: String,
    /// One sentence for `hearth list`.
    pub description: String,
    /// What makes a page move.
    pub rule: Rule,
    /// When a page may not move.
    pub freeze: Freeze,
    /// How much may move in any second; nothing if there is no limit.
    pub quota: Option<Quota>,
    /// When a move is worth its cost; nothing if it is not asked.
    pub cost: Option<Cost>,
}

/// What makes a page move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing does.
    Never,
    /// Each page is where most of its cache misses will be. It needs a recorded run, whose pages are
    /// placed before it is replayed; the planner moves nothing.
    PostFacto,
    /// A number of remote misses with no local one between them: the page goes where the last of
    /// them was.
    Consecutive {
        /// Which misses count.
        misses: Misses,
        /// How many it takes.
        threshold: u32,
        /// Cache misses, from any node, that a page must have had since it came to its node before
        /// it may move. 0 asks for none.
        select: u32,
    },
    /// A node that has had so many more misses to the page than its home, since it came there, gets
    /// it.
    Competitive {
        /// Which misses count.
        misses: Misses,
        /// How many more.
        threshold: u32,
    },
}

/// A kind of miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misses {
    /// The translation of an address was not in the CPU's TLB. The kernel can see these.
    Tlb,
    /// The data was not in the CPU's caches. On most machines the kernel cannot see these.
    Cache,
}

/// When a page may not move. Both `false` and [`Defrost::Never`] if pages are never frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// A page that has moved is frozen.
    pub on_move: bool,
    /// A page that is missed from its own node is frozen.
    pub on_local: bool,
    /// When frozen pages may move again.
    pub defrost: Defrost,
}

/// When frozen pages may move again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defrost {
    /// Not at all: a page moves once.
    Never,
    /// Each page so many nanoseconds after it was last frozen.
    Each(u64),
    /// All pages at once, each time that so many nanoseconds have passed.
    Together(u64),
}

/// How much may move in any second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// Pages; a huge page counts as the small ones that it stands for.
    Pages(u64),
    /// Bytes.
    Bytes(u64),
}

/// A page moves only if it is expected to save more than its move costs. The planner expects as
/// many remote accesses in the time to come as it has counted since the last local one, but no
/// more than the horizon's part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// What moving one page costs; a huge page costs as much as the small ones it stands for.
    pub move_ns: u64,
    /// How much sooner a local access is done than a remote one.
    pub saving_ns: u64,
    /// For how long a page is expected to go on being used as it was.
    pub horizon_ns: u64,
}

impl Freeze {
    /// Pages are never frozen.
    pub const NONE: Freeze = Freeze { on_move: false, on_local: false, defrost: Defrost::Never };
}

impl PagePolicy {
    /// Reads a policy from TOML; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a wrong unit, or a contradiction.
    pub fn parse(text: &str, origin: &str) -> Result<PagePolicy, LocatedError> {
        text::parse(text, origin)
    }

    /// Writes the policy as TOML that [`PagePolicy::parse`] reads back as the same policy.
    pub fn to_toml(&self) -> String {
        text::to_toml(self)
    }

    /// Loads a preset by its name, or else the TOML file at that path.
    ///
    /// # Errors
    /// Neither a preset nor a readable file, or a file that [`PagePolicy::parse`] refuses.
    pub fn load(path_or_preset: &str) -> Result<PagePolicy, PolicyError> {
        presets::load(path_or_preset)
    }

    /// Why this policy cannot be followed while programs run, if it cannot.
    pub fn not_live(&self) -> Option<&'static str> {
        (self.rule == Rule::PostFacto).then_some("it needs a recorded run, which `hearth lab M` replays")
    }

    /// Whether a planner that follows this policy may ever move a page.
    pub fn moves_pages(&self) -> bool {
        let acts = !matches!(self.rule, Rule::Never | Rule::PostFacto);
        acts && !matches!(self.quota, Some(Quota::Pages(0) | Quota::Bytes(0)))
    }
}
