//! The caches as the rest of the machine sees them, whatever its size: what the first level has is answered here.

use super::{Hierarchy, Served, Transfer};
use crate::cache::{DIRTY, OWNED, mark};
use crate::levels::Levels;
use crate::port::Port;
use hearth_machine::{CpuSet, Machine};
use std::rc::Rc;

/// All caches of a machine: sets of CPUs are words where they can be.
#[expect(clippy::large_enum_variant, reason = "the usual one is near at hand")]
pub(crate) enum Caches {
    Narrow(Hierarchy<u64>),
    Wide(Box<Hierarchy<CpuSet>>),
}

/// The same of either.
macro_rules! either {
    ($caches:expr, $hierarchy:ident => $what:expr) => {
        match $caches {
            Caches::Narrow($hierarchy) => $what,
            Caches::Wide($hierarchy) => $what,
        }
    };
}

impl Caches {
    pub(crate) fn new(machine: &Machine, levels: &Levels<'_>, ports: Vec<Rc<Port>>) -> Self {
        if machine.cpus() <= u64::BITS as usize {
            Self::Narrow(Hierarchy::new(machine, levels, ports))
        } else {
            Self::Wide(Box::new(Hierarchy::new(machine, levels, ports)))
        }
    }

    /// See [`Hardware::count_no_causes`](crate::Hardware::count_no_causes).
    pub(crate) fn count_no_causes(&mut self) {
        either!(self, hierarchy => hierarchy.count_no_causes());
    }

    /// What the last reference led to that was served [beyond](Served::Beyond) the caches of its CPU.
    pub(crate) fn transfer(&self) -> Transfer {
        either!(self, hierarchy => hierarchy.transfer)
    }

    /// Makes room for lines `0..lines`.
    pub(crate) fn grow(&mut self, lines: usize) {
        either!(self, hierarchy => hierarchy.grow(lines));
    }

    /// The lines for which there is room.
    pub(crate) fn lines(&self) -> usize {
        either!(self, hierarchy => hierarchy.lines)
    }

    /// A load or store.
    #[inline]
    pub(crate) fn data(&mut self, port: &Port, line: u32, write: bool) -> Served {
        let Some(entry) = port.l1d.touch(line) else {
            return either!(self, hierarchy => hierarchy.data(port, line, write));
        };
        if !write {
            return Served::L1;
        }
        let owned = entry.get() & OWNED != 0;
        mark(entry, OWNED | DIRTY);
        if owned { Served::L1 } else { either!(self, hierarchy => hierarchy.store_shared(port, line)) }
    }

    /// An instruction fetch.
    #[inline]
    pub(crate) fn fetch(&mut self, port: &Port, line: u32) -> Served {
        if port.code().touch(line).is_some() {
            return Served::L1;
        }
        either!(self, hierarchy => hierarchy.fetch(port, line))
    }

    /// Takes a line out of all caches; nothing is written back, for the line has been copied.
    pub(crate) fn drop_line(&mut self, line: u32) {
        either!(self, hierarchy => hierarchy.drop_line(line));
    }

    /// Empties the caches of a CPU's domain; modified lines are written back.
    pub(crate) fn flush(&mut self, cpu: usize) {
        either!(self, hierarchy => hierarchy.flush(cpu));
    }
}
