//! Which levels of cache a machine has, and which shapes cannot be simulated.

use hearth_machine::{Cache, Holds, Machine};
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

/// A split private first level, perhaps a private second one, and a last one.
pub(crate) struct Levels<'a> {
    pub(crate) l1i: &'a Cache,
    pub(crate) l1d: &'a Cache,
    pub(crate) l2: Option<&'a Cache>,
    pub(crate) llc: &'a Cache,
}

fn first_level(machine: &Machine, kind: Holds) -> Option<&Cache> {
    machine.caches.iter().find(|cache| cache.holds == kind || cache.holds == Holds::Both)
}

impl<'a> Levels<'a> {
    /// The levels of a machine, if they are of that shape.
    pub(crate) fn of(machine: &'a Machine) -> Result<Self, Unsupported> {
        let unsupported = |reason: &str| Unsupported::new(machine, reason);
        let l1i =
            first_level(machine, Holds::Instructions).ok_or_else(|| unsupported("no instruction cache"))?;
        let l1d = first_level(machine, Holds::Data).ok_or_else(|| unsupported("no data cache"))?;
        if l1i.holds == Holds::Both || l1d.holds == Holds::Both {
            return Err(unsupported("the first level must be split into an instruction and a data cache"));
        }
        let outer: Vec<_> =
            machine.caches.iter().filter(|cache| cache.name != l1i.name && cache.name != l1d.name).collect();
        let (l2, llc) = match outer[..] {
            [llc] => (None, llc),
            [l2, llc] => (Some(l2), llc),
            _ => return Err(unsupported("two or three levels of cache can be simulated")),
        };
        if outer.iter().any(|cache| cache.holds == Holds::Instructions) {
            return Err(unsupported("a second level for instructions only cannot be simulated"));
        }
        if l1i.shared_by != 1 || l1d.shared_by != 1 || l2.is_some_and(|l2| l2.shared_by != 1) {
            return Err(unsupported("only the last level may be shared by CPUs"));
        }
        Ok(Self { l1i, l1d, l2, llc })
    }
}
