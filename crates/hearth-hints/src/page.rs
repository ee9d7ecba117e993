//! The page of a process, as `src/page.h` has it, for those who read and write it as a file.

use std::mem::offset_of;

/// The first word of a page: "HRTH".
pub const MAGIC: u32 = 0x4854_5248;
/// The second.
pub const VERSION: u32 = 1;
/// A leader's word is good for so long; it repeats it each second.
pub const TOLD_NS: u64 = 2_000_000_000;

/// What bounds the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Why {
    /// The machine has no more.
    Machine = 0,
    /// The CPUs that it may run on.
    Mask = 1,
    /// Its cgroup's quota, or an ancestor's.
    Quota = 2,
    /// Others want CPUs too.
    Share = 3,
    /// It wants no more.
    Want = 4,
}

/// What follows the number in a process: bits of [`Page::runtime`], and their names.
pub const RUNTIMES: [(u32, &str); 5] = [(1, "hints"), (2, "gnu"), (4, "llvm"), (8, "tbb"), (16, "blas")];

/// A page, in the machine's byte order. The leader writes [`Page::SAID`] and [`Page::MILLI`], the
/// process all else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "as in page.h")]
pub struct Page {
    pub magic: u32,
    pub version: u32,
    pub pid: u32,
    pub want: u32,
    pub start_time: u64,
    pub cpus: u32,
    pub why: u32,
    pub told_ns: u64,
    pub runtime: u32,
    pub state: u32,
    pub milli: u32,
    pub image: u32,
    pub rest: [u32; 2],
}

const _: () = assert!(size_of::<Page>() == Page::SIZE);
const _: () = assert!(offset_of!(Page, want) == 12 && offset_of!(Page, start_time) == 16);
const _: () = assert!(offset_of!(Page, cpus) == Page::SAID as usize && offset_of!(Page, told_ns) == 32);
const _: () = assert!(offset_of!(Page, runtime) == 40 && offset_of!(Page, milli) == Page::MILLI as usize);

impl Page {
    /// Bytes of a page.
    pub const SIZE: usize = 64;
    /// Where the leader's word is: `cpus`, `why`, `told_ns`.
    pub const SAID: u64 = 24;
    /// Where `milli` is.
    pub const MILLI: u64 = 48;

    /// The bytes of a page of which nothing is known but whose it is: the process of this number that began
    /// then, in ticks since the machine did.
    pub fn begun(pid: u32, start_time: u64) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        for (at, word) in [MAGIC, VERSION, pid].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[16..24].copy_from_slice(&start_time.to_ne_bytes());
        bytes
    }

    /// The same of one that says already what another was told.
    pub fn begun_as_told(pid: u32, start_time: u64, told: &Self) -> [u8; Self::SIZE] {
        let mut bytes = Self::begun(pid, start_time);
        let [said, milli] = [Self::SAID, Self::MILLI].map(|at| at as usize);
        for (at, word) in [(said, told.cpus), (said + 4, told.why), (milli, told.milli)] {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[said + 8..said + 16].copy_from_slice(&told.told_ns.to_ne_bytes());
        bytes
    }

    /// The page in these bytes, if it is one.
    pub fn read(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| {
            let halves = [word(at), word(at + 4)].map(u64::from);
            if cfg!(target_endian = "little") {
                halves[1] << 32 | halves[0]
            } else {
                halves[0] << 32 | halves[1]
            }
        };
        let page = Self {
            magic: word(0),
            version: word(4),
            pid: word(8),
            want: word(12),
            start_time: long(16),
            cpus: word(24),
            why: word(28),
            told_ns: long(32),
            runtime: word(40),
            state: word(44),
            milli: word(48),
            image: word(52),
            rest: [word(56), word(60)],
        };
        (page.magic == MAGIC && page.version == VERSION).then_some(page)
    }

    /// Whether a leader has said a number, and lately: `now_ns` is `CLOCK_MONOTONIC`.
    pub fn is_told(&self, now_ns: u64) -> bool {
        self.cpus > 0 && now_ns.saturating_sub(self.told_ns) < TOLD_NS
    }

    /// The leader's word, to be written at [`Self::SAID`].
    pub fn said(cpus: u32, why: Why, told_ns: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&cpus.to_ne_bytes());
        bytes[4..8].copy_from_slice(&(why as u32).to_ne_bytes());
        bytes[8..].copy_from_slice(&told_ns.to_ne_bytes());
        bytes
    }

    /// The names of what follows the number in this process.
    pub fn runtimes(&self) -> impl Iterator<Item = &'static str> {
        let bits = self.runtime;
        RUNTIMES.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| *name)
    }
}

impl Why {
    /// The reason of this number, as a page has it.
    pub fn of(number: u32) -> Option<Self> {
        [Self::Machine, Self::Mask, Self::Quota, Self::Share, Self::Want]
            .into_iter()
            .find(|why| *why as u32 == number)
    }
}
