//! Which levels of cache a machine has, and which shapes cannot be simulated.

use hearth_machine::{Cache, Holds, MAX_LEVELS, Machine};
use thiserror::Error;

/// A machine that can be described but not simulated.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("machine {machine}: {reason}")]
pub struct Unsupported {
    machine: String,
    reason: String,
}

impl Unsupported {
    pub(crate) fn new(machine: &Machine, reason: impl Into<String>) -> Self {
        Self { machine: machine.name.clone(), reason: reason.into() }
    }
}

/// The levels of a machine by what the simulator makes of them.
pub(crate) struct Levels<'a> {
    pub(crate) l1d: &'a Cache,
    /// `None` where the first level is one cache for both.
    pub(crate) l1i: Option<&'a Cache>,
    /// The second level, where it is private and not the last.
    pub(crate) l2: Option<&'a Cache>,
    /// Those between these and the last, from the CPU outwards: shared by some, or private third levels.
    pub(crate) inner: Vec<&'a Cache>,
    /// `None` where there is the first level only.
    pub(crate) llc: Option<&'a Cache>,
}

impl<'a> Levels<'a> {
    /// The levels of a machine.
    ///
    /// # Errors
    /// Levels that [`Machine::check`] refuses.
    pub(crate) fn of(machine: &'a Machine) -> Result<Self, Unsupported> {
        let (l1i, l1d, outer) = match &machine.caches[..] {
            [both, outer @ ..] if both.holds == Holds::Both => (None, both, outer),
            [one, two, outer @ ..] if one.holds == Holds::Data => (Some(two), one, outer),
            [one, two, outer @ ..] => (Some(one), two, outer),
            _ => return Err(Unsupported::new(machine, "the first level is missing, or a half of it")),
        };
        if l1d.shared_by != 1 || outer.len() >= MAX_LEVELS || outer.iter().any(|level| level.shared_by == 0) {
            return Err(Unsupported::new(machine, "these levels of cache cannot be simulated"));
        }
        let (l2, outer) = match outer {
            [l2, outer @ ..] if l2.shared_by == 1 && !outer.is_empty() => (Some(l2), outer),
            _ => (None, outer),
        };
        let (llc, inner) = match outer.split_last() {
            Some((llc, inner)) => (Some(llc), inner),
            None => (None, outer),
        };
        Ok(Self { l1d, l1i, l2, inner: inner.iter().collect(), llc })
    }

    /// How many CPUs share a last level.
    pub(crate) fn domain_cpus(&self) -> usize {
        self.llc.map_or(1, |llc| llc.shared_by)
    }
}
