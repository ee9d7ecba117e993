//! Misses of programs' loads and stores, page by page: what decides where a page should be.

/// What missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissKind {
    /// The TLB.
    Tlb,
    /// All caches of the CPU: memory or another CPU's cache had to serve.
    Cache,
}

/// Kinds of misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Of the TLB.
    pub tlb: bool,
    /// Of the caches.
    pub cache: bool,
}

impl Kinds {
    /// None of them.
    pub const NONE: Kinds = Kinds { tlb: false, cache: false };
}

/// One miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Miss {
    /// When, since the machine started.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: usize,
    /// To which page: address over page size.
    pub page: u32,
    /// Of what.
    pub kind: MissKind,
}

/// Misses in order of time, eight bytes each:
///
/// ```text
/// time / 64 ns: 34 bits | page: 20 bits | CPU: 9 bits | kind: 1 bit
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissLog {
    packed: Vec<u64>,
}

const TIME_SHIFT: u32 = 30;
const PAGE_SHIFT: u32 = 10;
const CPU_SHIFT: u32 = 1;
const PAGES: u32 = 1 << (TIME_SHIFT - PAGE_SHIFT);
const CPUS: usize = 1 << (PAGE_SHIFT - CPU_SHIFT);
const _: () = assert!(CPUS == hearth_machine::MAX_CPUS);
/// Resolution of the times, as a power of two of nanoseconds.
const NS_SHIFT: u32 = 6;
const _: () = assert!(TIME_SHIFT + 34 == u64::BITS);

impl MissLog {
    /// Notes a miss.
    ///
    /// # Panics
    /// If the page's number is 2^20 or more, or the time is beyond 1,099 s: what is simulated miss by miss is not
    /// larger than its log.
    pub(crate) fn push(&mut self, miss: Miss) {
        let time = miss.at_ns >> NS_SHIFT;
        let fits = miss.page < PAGES && miss.cpu < CPUS && time >> (u64::BITS - TIME_SHIFT) == 0;
        assert!(fits, "a log has room for {PAGES} pages, {CPUS} CPUs and 1,099 s: {miss:?}");
        let kind = u64::from(miss.kind == MissKind::Cache);
        let place = u64::from(miss.page) << PAGE_SHIFT | (miss.cpu as u64) << CPU_SHIFT;
        self.packed.push(time << TIME_SHIFT | place | kind);
    }

    /// CPUs note their misses a little ahead of each other.
    pub(crate) fn sorted(mut self) -> Self {
        self.packed.sort_unstable();
        self
    }

    /// Number of misses.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether nothing missed.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The misses, in order of time (in steps of 64 ns; within a step by page and CPU).
    pub fn iter(&self) -> impl Iterator<Item = Miss> + '_ {
        self.packed.iter().map(|&packed| Miss {
            at_ns: packed >> TIME_SHIFT << NS_SHIFT,
            cpu: (packed >> CPU_SHIFT) as usize % CPUS,
            page: (packed >> PAGE_SHIFT) as u32 % PAGES,
            kind: if packed & 1 == 1 { MissKind::Cache } else { MissKind::Tlb },
        })
    }
}

/// A log of these misses in the order given; panics as the machine's own does.
impl FromIterator<Miss> for MissLog {
    fn from_iter<I: IntoIterator<Item = Miss>>(misses: I) -> Self {
        let mut log = MissLog::default();
        misses.into_iter().for_each(|miss| log.push(miss));
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_come_back_in_order_of_time() {
        let late = Miss { at_ns: 6400, cpu: CPUS - 1, page: PAGES - 1, kind: MissKind::Cache };
        let early = Miss { at_ns: 64, cpu: 0, page: 3, kind: MissKind::Tlb };
        let mut log = MissLog::default();
        log.push(late);
        log.push(early);
        assert!(log.sorted().iter().eq([early, late]));
    }
}
