//! What the BPF side counts: `bpf/observe/observe.h`, read as words of 64 bits, in the same order.

/// Limits and sizes of `observe.h`.
pub const MAX_CPUS: usize = 512;
const LENGTHS: usize = 100;
/// Where later parts begin: from 2^16 ns up, a bin for each doubling.
pub const LATER: usize = 8;
/// The bins from here on are beyond all first parts.
pub const BEYOND_FIRST: usize = 4;
const CURVE: usize = 12;

/// What happened before an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// The task's first interval, or the first of a new program.
    Start,
    /// The task ran here last, and nothing else but the kernel since.
    Same,
    /// It ran here last, and others since.
    Others,
    /// It ran last on another CPU of this cache domain.
    MovedDomain,
    /// It ran last in another cache domain of this node.
    MovedNode,
    /// It ran last on another node.
    MovedRemote,
}

impl Before {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// In the order of their numbers.
    pub const ALL: [Before; Self::COUNT] = [
        Before::Start,
        Before::Same,
        Before::Others,
        Before::MovedDomain,
        Before::MovedNode,
        Before::MovedRemote,
    ];
    /// Those after which a task's data may be cold, and need not have been.
    pub const DISTURBED: [Before; 4] =
        [Before::Others, Before::MovedDomain, Before::MovedNode, Before::MovedRemote];
}

/// Why intervals ended, by number.
pub const ENDS: [&str; 5] = ["quantum", "preempted", "yield", "block", "exit"];

/// Sums over counted parts of intervals, and sums of products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Parts.
    pub count: u64,
    /// Nanoseconds.
    pub ns: u64,
    /// Instructions.
    pub instructions: u64,
    /// Misses.
    pub misses: u64,
    /// Cycles.
    pub cycles: u64,
    /// Products: i for instructions, m for misses, c for cycles.
    pub ii: u128,
    #[allow(missing_docs)]
    pub im: u128,
    #[allow(missing_docs)]
    pub ic: u128,
    #[allow(missing_docs)]
    pub mm: u128,
    #[allow(missing_docs)]
    pub mc: u128,
    #[allow(missing_docs)]
    pub cc: u128,
}

impl Sums {
    /// Adds one part: nanoseconds, instructions, misses, cycles.
    pub fn record(&mut self, [ns, instructions, misses, cycles]: [u64; 4]) {
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        *self += Sums {
            count: 1,
            ns,
            instructions,
            misses,
            cycles,
            ii: wide(instructions, instructions),
            im: wide(instructions, misses),
            ic: wide(instructions, cycles),
            mm: wide(misses, misses),
            mc: wide(misses, cycles),
            cc: wide(cycles, cycles),
        };
    }

    fn read(words: &mut Words<'_>) -> Self {
        Self {
            count: words.next(),
            ns: words.next(),
            instructions: words.next(),
            misses: words.next(),
            cycles: words.next(),
            ii: words.wide(),
            im: words.wide(),
            ic: words.wide(),
            mm: words.wide(),
            mc: words.wide(),
            cc: words.wide(),
        }
    }
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.ns += other.ns;
        self.instructions += other.instructions;
        self.misses += other.misses;
        self.cycles += other.cycles;
        self.ii += other.ii;
        self.im += other.im;
        self.ic += other.ic;
        self.mm += other.mm;
        self.mc += other.mc;
        self.cc += other.cc;
    }
}

impl<'a> std::iter::Sum<&'a Sums> for Sums {
    fn sum<I: Iterator<Item = &'a Sums>>(all: I) -> Self {
        all.fold(Sums::default(), |mut sum, one| {
            sum += *one;
            sum
        })
    }
}

/// What first parts had more than the later part that followed would have had, at equal instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Intervals.
    pub count: u64,
    /// Misses, in sum.
    pub misses: i64,
    /// Cycles, in sum.
    pub cycles: i64,
    /// Their squares.
    pub misses_squared: u128,
    #[allow(missing_docs)]
    pub cycles_squared: u128,
}

impl Pairs {
    /// Adds one interval.
    pub fn record(&mut self, misses: i64, cycles: i64) {
        let square = |value: i64| u128::from(value.unsigned_abs()).pow(2);
        self.count += 1;
        self.misses += misses;
        self.cycles += cycles;
        self.misses_squared += square(misses);
        self.cycles_squared += square(cycles);
    }

    fn add(&mut self, words: &mut Words<'_>) {
        self.count += words.next();
        self.misses += words.next() as i64;
        self.cycles += words.next() as i64;
        self.misses_squared += words.wide();
        self.cycles_squared += words.wide();
    }
}

/// Samples at some place of intervals: sums of what had been counted since the interval began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Samples.
    pub count: u64,
    /// Nanoseconds since the interval began.
    pub ns: u64,
    /// Instructions.
    pub instructions: u64,
    /// Misses.
    pub misses: u64,
    /// Cycles.
    pub cycles: u64,
}

impl Point {
    fn add(&mut self, words: &mut Words<'_>) {
        self.count += words.next();
        self.ns += words.next();
        self.instructions += words.next();
        self.misses += words.next();
        self.cycles += words.next();
    }
}

/// Lengths, 4 bins for each doubling from 1024 ns up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths(pub [u64; LENGTHS]);

impl Default for Lengths {
    fn default() -> Self {
        Self([0; LENGTHS])
    }
}

impl Lengths {
    /// Where a bin begins, in nanoseconds.
    pub fn bin_start(bin: usize) -> f64 {
        if bin == 0 {
            return 0.0;
        }
        let (octave, quarter) = ((bin - 1) / 4, (bin - 1) % 4);
        1024.0 * 2f64.powi(octave as i32) * (1.0 + quarter as f64 / 4.0)
    }

    /// The median in nanoseconds, to a quarter of a doubling; nothing if there are none.
    pub fn median_ns(&self) -> Option<f64> {
        self.quantile_ns(0.5)
    }

    /// That so large a part is below of, as exactly.
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let total: u64 = self.0.iter().sum();
        let wanted = total as f64 * part;
        let mut below = 0.0;
        for (bin, &count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = count as f64;
            if below + count >= wanted {
                let (start, end) = (Self::bin_start(bin), Self::bin_start(bin + 1));
                return Some(start + (end - start) * (wanted - below) / count);
            }
            below += count;
        }
        None
    }
}

/// For how long tasks waited for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// How often after a wake-up.
    pub woken: u64,
    /// For how long then, in sum.
    pub woken_ns: u64,
    /// How often after they had been taken off a CPU though they could have gone on.
    pub taken_off: u64,
    /// For how long then, in sum.
    pub taken_off_ns: u64,
    /// How long those after wake-ups were.
    pub woken_lengths: Lengths,
}

impl Waits {
    fn add(&mut self, words: &mut Words<'_>) {
        self.woken += words.next();
        self.woken_ns += words.next();
        self.taken_off += words.next();
        self.taken_off_ns += words.next();
        words.add_to(&mut self.woken_lengths.0);
    }

    /// All of them, in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.woken_ns + self.taken_off_ns
    }
}

/// What tasks of one program had to do with those of another, or of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Waits that ended when the other left the CPU.
    pub waits: u64,
    /// For how much of all waits it had it.
    pub waited_ns: u64,
    /// How often the other took the CPU from them.
    pub preempted: u64,
}

impl Behind {
    /// Adds what one CPU counted.
    pub fn add_cpu(&mut self, bytes: &[u8]) {
        let words = &mut Words(bytes);
        self.waits += words.next();
        self.waited_ns += words.next();
        self.preempted += words.next();
    }
}

/// In the place of a program's slot: tasks of the kernel (`tasks.h`).
pub const KERNEL: u32 = u32::MAX - 2;
/// Tasks that were not watched.
pub const UNWATCHED: u32 = u32::MAX - 3;

/// A program, summed over CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Intervals by why they ended, as in [`ENDS`].
    pub ends: [u64; ENDS.len()],
    /// Intervals by what happened before.
    pub befores: [u64; Before::COUNT],
    /// Their length in sum.
    pub interval_ns: u64,
    /// Effective time slices.
    pub slices: u64,
    /// Their length in sum.
    pub slice_ns: u64,
    /// How long intervals were.
    pub interval_lengths: Lengths,
    /// How long effective slices were.
    pub slice_lengths: Lengths,
    /// Counted intervals that ended within their first part, by what happened before.
    pub whole: [Sums; Before::COUNT],
    /// First parts of the other counted intervals.
    pub first: [Sums; Before::COUNT],
    /// Later parts, by where they began. Those of the lower bins lie within first parts.
    pub later: [Sums; LATER],
    /// First parts compared with what followed, by what happened before.
    pub pairs: [Pairs; Before::COUNT],
    /// Samples by what happened before, and by where: below 16 µs, then a bin for each doubling.
    pub curve: [[Point; CURVE]; Before::COUNT],
    /// For how long its tasks waited for a CPU.
    pub waits: Waits,
}

impl Program {
    /// Adds what one CPU counted.
    pub fn add_cpu(&mut self, bytes: &[u8]) {
        let words = &mut Words(bytes);
        words.add_to(&mut self.ends);
        words.add_to(&mut self.befores);
        self.interval_ns += words.next();
        self.slices += words.next();
        self.slice_ns += words.next();
        words.add_to(&mut self.interval_lengths.0);
        words.add_to(&mut self.slice_lengths.0);
        self.whole
            .iter_mut()
            .chain(&mut self.first)
            .chain(&mut self.later)
            .for_each(|sums| *sums += Sums::read(words));
        self.pairs.iter_mut().for_each(|pairs| pairs.add(words));
        self.curve.iter_mut().flatten().for_each(|point| point.add(words));
        self.waits.add(words);
    }

    /// Intervals that ended.
    pub fn intervals(&self) -> u64 {
        self.ends.iter().sum()
    }

    /// One part of each counted interval: the first, or the whole.
    pub fn beginnings(&self) -> impl Iterator<Item = &Sums> {
        self.whole.iter().chain(&self.first)
    }

    /// Parts that together are all counted intervals, without overlap.
    pub fn parts(&self) -> impl Iterator<Item = &Sums> {
        self.beginnings().chain(&self.later[BEYOND_FIRST..])
    }

    /// Where a bin of later parts begins, in nanoseconds.
    pub fn later_ns(bin: usize) -> u64 {
        1 << (16 + bin)
    }
}

/// What the CPUs did, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time of watched tasks.
    pub watched_ns: u64,
    /// Time of other tasks.
    pub other_ns: u64,
    /// Time of kernel threads.
    pub kernel_ns: u64,
    /// Time without anything to run.
    pub idle_ns: u64,
    /// Switches, of all tasks.
    pub switches: u64,
    /// Readings of all counters.
    pub reads: u64,
    /// What the last readings cost, one for each CPU that read.
    pub read_ns: u64,
    /// CPUs that read.
    pub reading_cpus: u64,
}

impl CpuTime {
    /// Adds what one CPU did.
    pub fn add_cpu(&mut self, bytes: &[u8]) {
        let words = &mut Words(bytes);
        self.watched_ns += words.next();
        self.other_ns += words.next();
        self.kernel_ns += words.next();
        self.idle_ns += words.next();
        self.switches += words.next();
        self.reads += words.next();
        let read_ns = words.next();
        self.read_ns += read_ns;
        self.reading_cpus += u64::from(read_ns > 0);
    }
}

/// Words of a value; past its end there are zeros.
pub(super) struct Words<'a>(pub(super) &'a [u8]);

impl Words<'_> {
    pub(super) fn next(&mut self) -> u64 {
        let Some((word, rest)) = self.0.split_first_chunk::<8>() else { return 0 };
        self.0 = rest;
        u64::from_ne_bytes(*word)
    }

    fn wide(&mut self) -> u128 {
        let (low, high) = (self.next(), self.next());
        u128::from(high) << 64 | u128::from(low)
    }

    fn add_to(&mut self, sums: &mut [u64]) {
        sums.iter_mut().for_each(|sum| *sum += self.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_the_size_of_its_words() {
        let words = ENDS.len() + Before::COUNT + 3 + 2 * LENGTHS;
        let words = words + 17 * (2 * Before::COUNT + LATER) + 7 * Before::COUNT + 5 * Before::COUNT * CURVE;
        let words = words + 4 + LENGTHS;
        let bytes: Vec<u8> = (1..=words as u64).flat_map(u64::to_ne_bytes).collect();
        let mut program = Program::default();
        program.add_cpu(&bytes);
        program.add_cpu(&bytes);
        assert_eq!(program.ends[0], 2);
        assert_eq!(program.waits.woken_lengths.0[LENGTHS - 1], 2 * words as u64);
    }

    #[test]
    fn the_median_is_where_half_are_below() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.median_ns(), None);
        lengths.0[1] = 10;
        lengths.0[5] = 10;
        assert_eq!(lengths.median_ns(), Some(1280.0));
        assert_eq!(lengths.quantile_ns(0.99).map(f64::round), Some(2550.0));
        assert_eq!(Lengths::bin_start(5), 2048.0);
    }
}
