//! What ran beside what: stretches of each CPU's time, laid side by side.
//!
//! ```text
//! CPU 0   |     a     |  a  |    b    |      each stretch of a program is a sample: its cycles, and
//! CPU 1   | c |    d      |   idle    |      the misses of c, d and others for as long as they overlap
//! ```
//!
//! A CPU whose time is not told was not counted then; a sample of whose neighbours too little is told is none.

/// Whom a stretch was of: a number for each program.
pub type Who = u32;

/// The CPU was idle.
pub const IDLE: Who = u32::MAX;

/// Time of a CPU in which one program ran, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The CPU.
    pub cpu: usize,
    /// The program, or [`IDLE`].
    pub who: Who,
    /// The thread.
    pub tid: i32,
    /// By one clock for all CPUs.
    pub start_ns: u64,
    /// How long.
    pub ns: u64,
    /// Cycles of the CPU.
    pub cycles: u64,
    /// Instructions completed.
    pub instructions: u64,
    /// Misses of the last-level cache.
    pub misses: u64,
}

/// A stretch of a program with what its neighbours did meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The program.
    pub who: Who,
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: usize,
    /// When it began.
    pub start_ns: u64,
    /// Cycles of its CPU.
    pub cycles: f64,
    /// Instructions that it completed.
    pub instructions: f64,
    /// Its misses.
    pub misses: f64,
    /// Misses of other CPUs of the cache domain meanwhile, by program, each once.
    pub beside: Vec<(Who, f64)>,
    /// Other CPUs of the domain that were not idle meanwhile, in the mean.
    pub busy_beside: f64,
}

/// The part of a sample's time, on all other CPUs of its domain together, of which must be known who ran.
const LEAST_KNOWN: f64 = 0.9;

/// Time and cycles that no stretch takes: a quarter of an hour, and most of a day's.
const MOST_NS: u64 = 1 << 40;
const MOST_CYCLES: u64 = 1 << 48;

/// Instructions that no CPU completes in a cycle.
const MOST_PER_CYCLE: u64 = 16;

impl Stretch {
    pub(super) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.ns)
    }

    /// Whether counters can have said so. They may have gone backwards, or be of another task.
    pub fn is_possible(&self) -> bool {
        let counts = || {
            (1..MOST_CYCLES).contains(&self.cycles)
                && (1..=self.cycles * MOST_PER_CYCLE).contains(&self.instructions)
                && self.misses <= self.cycles
        };
        (1..MOST_NS).contains(&self.ns) && (self.who == IDLE || counts())
    }
}

/// The samples of a cache domain's CPUs, by CPU and time. Stretches of other CPUs are left out, and such as no
/// counters can have said.
pub fn samples(stretches: &[Stretch], domain: &[usize]) -> Vec<Sample> {
    let mut by_cpu: Vec<Vec<&Stretch>> = vec![Vec::new(); domain.len()];
    for stretch in stretches.iter().filter(|stretch| stretch.is_possible()) {
        if let Some(place) = domain.iter().position(|cpu| *cpu == stretch.cpu) {
            by_cpu[place].push(stretch);
        }
    }
    by_cpu.iter_mut().for_each(|own| own.sort_by_key(|stretch| stretch.start_ns));
    let mut samples = Vec::new();
    for (place, own) in by_cpu.iter().enumerate() {
        // By neighbour: its first stretch that has not ended before the one that is looked at.
        let mut firsts = vec![0; by_cpu.len()];
        for stretch in own.iter().filter(|stretch| stretch.who != IDLE) {
            let mut company = Company::default();
            for (other, first) in firsts.iter_mut().enumerate().filter(|(other, _)| *other != place) {
                let theirs = &by_cpu[other];
                while theirs.get(*first).is_some_and(|other| other.end_ns() <= stretch.start_ns) {
                    *first += 1;
                }
                let overlapping = theirs[*first..].iter();
                overlapping
                    .take_while(|other| other.start_ns < stretch.end_ns())
                    .for_each(|other| company.add(stretch, other));
            }
            samples.extend(company.sample(stretch, by_cpu.len() - 1));
        }
    }
    samples
}

/// What is known of a stretch's neighbours.
#[derive(Default)]
struct Company {
    known_ns: u64,
    busy_ns: u64,
    misses: Vec<(Who, f64)>,
}

impl Company {
    fn add(&mut self, stretch: &Stretch, other: &Stretch) {
        let from_ns = stretch.start_ns.max(other.start_ns);
        let overlap_ns = stretch.end_ns().min(other.end_ns()).saturating_sub(from_ns);
        self.known_ns += overlap_ns;
        if other.who != IDLE && overlap_ns > 0 {
            self.busy_ns += overlap_ns;
            let misses = overlap_ns as f64 / other.ns as f64 * other.misses as f64;
            // Few programs: a map would take more time, and most of the memory.
            match self.misses.iter_mut().find(|(who, _)| *who == other.who) {
                Some((_, sum)) => *sum += misses,
                None => self.misses.push((other.who, misses)),
            }
        }
    }

    /// What is not known was as what is.
    fn sample(mut self, stretch: &Stretch, others: usize) -> Option<Sample> {
        let known = self.known_ns as f64 / (stretch.ns as f64 * others as f64);
        if known < LEAST_KNOWN {
            return None;
        }
        if others > 0 {
            self.misses.iter_mut().for_each(|(_, misses)| *misses /= known.min(1.0));
        }
        Some(Sample {
            who: stretch.who,
            tid: stretch.tid,
            cpu: stretch.cpu,
            start_ns: stretch.start_ns,
            cycles: stretch.cycles as f64,
            instructions: stretch.instructions as f64,
            misses: stretch.misses as f64,
            beside: self.misses,
            busy_beside: self.busy_ns as f64 / self.known_ns.max(1) as f64 * others as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(cpu: usize, who: Who, start_ns: u64, ns: u64, misses: u64) -> Stretch {
        Stretch { cpu, who, start_ns, ns, cycles: 1000 * ns, instructions: 500 * ns, misses, tid: 1 }
    }

    #[test]
    fn neighbours_count_for_as_long_as_they_overlap() {
        let all = [
            stretch(0, 1, 0, 100, 7),
            stretch(1, 2, 0, 50, 100),
            stretch(1, 3, 50, 100, 40),
            stretch(7, 4, 0, 100, 1000),
        ];
        let samples = samples(&all, &[0, 1]);
        let of_one = samples.iter().find(|sample| sample.who == 1).unwrap();
        assert_eq!(of_one.beside, [(2, 100.0), (3, 20.0)]);
        assert_eq!((of_one.cycles, of_one.instructions, of_one.misses), (100_000.0, 50_000.0, 7.0));
        assert_eq!((of_one.tid, of_one.cpu, of_one.busy_beside), (1, 0, 1.0));
        // Of the last one's time half is known.
        assert!(samples.iter().all(|sample| sample.who != 3));
    }

    #[test]
    fn beside_an_idle_cpu_nobody_misses_and_beside_an_unknown_one_nothing_is_told() {
        let idle = stretch(1, IDLE, 0, 100, 0);
        assert_eq!(samples(&[stretch(0, 1, 0, 100, 7), idle], &[0, 1])[0].beside, []);
        assert_eq!(samples(&[stretch(0, 1, 0, 100, 7)], &[0, 1]), []);
        assert_eq!(samples(&[stretch(0, 1, 0, 100, 7)], &[0]).len(), 1);
    }

    #[test]
    fn what_no_counters_can_say_is_left_out() {
        let good = stretch(0, 1, 0, 100, 7);
        let beside = stretch(1, 2, 0, 100, 7);
        assert_eq!(samples(&[good, beside], &[0, 1]).len(), 2);
        for wrong in [
            Stretch { ns: 0, ..good },
            Stretch { ns: u64::MAX, ..good },
            Stretch { cycles: 0, ..good },
            Stretch { cycles: u64::MAX, ..good },
            Stretch { instructions: u64::MAX, ..good },
            Stretch { misses: 100_001, ..good },
        ] {
            assert_eq!(samples(&[wrong, beside], &[0, 1]), []);
        }
    }

    proptest! {
        /// Whole misses of neighbours that are cut anywhere, and none twice.
        #[test]
        fn no_miss_is_lost_or_told_twice(
            cuts in proptest::collection::btree_set(1u64..999, 0..6),
            own_cut in 1u64..999,
            seed in 0u64..9,
        ) {
            let bounds: Vec<u64> = std::iter::once(0).chain(cuts).chain([1000]).collect();
            let mut all = vec![stretch(0, 1, 0, own_cut, 0), stretch(0, 1, own_cut, 1000 - own_cut, 0)];
            let misses = |start: u64| start % 7 * 11 + seed;
            all.extend(bounds.windows(2).map(|bound| {
                let [start, end] = [bound[0], bound[1]];
                stretch(1, 2 + (start % 3) as Who, start, end - start, misses(start))
            }));
            prop_assert!(all.iter().all(Stretch::is_possible));
            let samples = samples(&all, &[0, 1]);
            let of_first = samples.iter().filter(|sample| sample.who == 1);
            let told: f64 = of_first.flat_map(|sample| &sample.beside).map(|(_, misses)| misses).sum();
            let wanted: u64 = bounds[..bounds.len() - 1].iter().map(|start| misses(*start)).sum();
            prop_assert!((told - wanted as f64).abs() < 1e-6, "{told} {wanted}");
        }
    }
}
