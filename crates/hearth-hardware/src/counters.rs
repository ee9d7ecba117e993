//! What a CPU's memory system counted.

use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ops::{AddAssign, Sub};

/// Why a reference had to go to memory: what became of the line since this cache last had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was never here.
    FirstTouch,
    /// The same task replaced it.
    Self_,
    /// Another task (or the kernel on its behalf) replaced it.
    Other,
    /// Another CPU wrote it, or its page has moved.
    Coherence,
    /// The task has just moved to this CPU from another, and the line was not here, or was replaced by
    /// another task.
    Move,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Event counts of one CPU (or a difference of two readings).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            /// References that went to memory, by [`Cause`], in its order.
            pub causes: [u64; 5],
        }

        /// The same counts while they are being counted.
        #[derive(Default)]
        pub(crate) struct Counting {
            $(pub(crate) $name: Cell<u64>,)*
            pub(crate) causes: [Cell<u64>; 5],
        }

        impl Counting {
            pub(crate) fn read(&self) -> Counters {
                Counters { $($name: self.$name.get(),)* causes: self.causes.each_ref().map(Cell::get) }
            }
        }

        impl Sub for Counters {
            type Output = Counters;
            fn sub(self, earlier: Counters) -> Counters {
                let mut causes = self.causes;
                causes.iter_mut().zip(earlier.causes).for_each(|(a, b)| *a -= b);
                Counters { $($name: self.$name - earlier.$name,)* causes }
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Counters) {
                $(self.$name += other.$name;)*
                self.causes.iter_mut().zip(other.causes).for_each(|(a, b)| *a += b);
            }
        }
    };
}

counters! {
    /// Instructions other than loads and stores; each takes a cycle.
    computed,
    /// Loads.
    reads,
    /// Stores.
    writes,
    /// Instruction lines fetched (a loop's repeated fetches of the same lines are folded into one).
    fetches,
    /// Loads and stores that missed the first-level data cache.
    l1d_misses,
    /// Fetches that missed the first-level instruction cache.
    l1i_misses,
    /// Misses of the first level that a private second level served.
    l2_hits,
    /// Misses that the last-level cache served.
    llc_hits,
    /// Misses of the second level, fetches among them, by a program's own code; not where it stands for what the
    /// kernel does for it.
    own_l2_misses,
    /// References served by memory of the CPU's own node.
    memory_local,
    /// References served by memory of another node.
    memory_remote,
    /// References served by another CPU's cache, which had the line modified.
    cache_to_cache,
    /// Of these, by a cache of another node.
    cache_to_cache_remote,
    /// Of those that left the CPU's caches: instruction fetches.
    instruction_misses,
    /// Stores to a line that other caches held, which had to be told.
    upgrades,
    /// Lines that this CPU lost because another CPU wrote them.
    invalidations,
    /// Modified lines written back to memory.
    write_backs,
    /// TLB refills.
    tlb_misses,
    /// Pages of programs touched for the first time.
    page_faults,
    /// Pages that this CPU moved to another node.
    page_moves,
    /// Of the misses, those of copying pages.
    copy_misses,
    /// Of these, those that another node served.
    copy_remote_misses,
    /// Picoseconds spent in the kernel.
    system_ps,
    /// Picoseconds beyond a first-level hit that references took.
    stall_ps,
    /// Of these, picoseconds of waiting for a busy bus or memory.
    queue_ps,
}

impl Counters {
    /// Instructions: loads, stores and others.
    pub fn instructions(&self) -> u64 {
        self.computed + self.reads + self.writes
    }

    /// Lines that went over the memory bus.
    pub fn transfers(&self) -> u64 {
        self.misses() + self.write_backs
    }

    /// References that left the CPU's caches: what a monitor on the bus sees.
    pub fn misses(&self) -> u64 {
        self.memory_local + self.memory_remote + self.cache_to_cache
    }

    /// Of the [`misses`](Self::misses), those that another node served.
    pub fn remote_misses(&self) -> u64 {
        self.memory_remote + self.cache_to_cache_remote
    }

    /// The [`misses`](Self::misses) but those of copying pages.
    pub fn own_misses(&self) -> u64 {
        self.misses() - self.copy_misses
    }

    /// Of these, those that another node served.
    pub fn own_remote_misses(&self) -> u64 {
        self.remote_misses() - self.copy_remote_misses
    }
}

/// Adds to a count.
#[inline(always)]
pub(crate) fn add(count: &Cell<u64>, more: u64) {
    count.set(count.get() + more);
}
