//! Who slows whom, of samples of programs beside others.
//!
//! A program's cycles for each instruction grow with the misses of those beside it: they take its lines, and its
//! own misses wait for theirs on the bus. As [the line](super) of its misses is, this is taken as straight, with
//! a slope for each neighbour:
//!
//! ```text
//! cycles / instructions = c0 + k1 x1 + k2 x2 + ...     x: the neighbour's misses for each cycle of ours
//! slowed by i           = ki xi / c0                   over all samples, in parts of the time beside none that misses
//! ```
//!
//! Slopes are those of least squares, samples weighted by their cycles. Errors are those of a jackknife that leaves out
//! a tenth of the time at once: programs have phases, so samples that follow each other are alike, and the
//! usual formula would believe each of them.
//!
//! What it refuses to express: neighbours that always run together, which it can only blame together; what a
//! program does to itself with threads on other CPUs it counts as a neighbour's deed; and who slows by other means
//! than misses.

use super::side_by_side::{Sample, Who};
use std::collections::BTreeMap;

/// Neighbours of a program that are told apart at most: those with most misses. The others are blamed together.
pub const MOST_NEIGHBOURS: usize = 6;

/// All neighbours that are not told apart.
pub const OTHERS: Who = u32::MAX - 1;

/// Samples below which nothing is said of a program.
pub const LEAST_SAMPLES: usize = 50;

/// Parts of the time, each left out once to see how much depends on it.
const BLOCKS: usize = 10;

/// A variable of which less than this part is its own is told by the others.
const LEAST_OWN: f64 = 1e-6;

/// How much something slows a program, in percent of its time beside neighbours that never miss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slowing {
    /// Below 0 if it was faster beside them.
    pub percent: f64,
    /// Its standard error, in points.
    pub error: f64,
}

impl Slowing {
    /// Whether it is there beyond doubt: more than twice its error.
    pub fn is_sure(self) -> bool {
        self.percent > 2.0 * self.error
    }
}

/// What is known of a program among others.
#[derive(Clone, Debug, PartialEq)]
pub struct Victim {
    /// The program.
    pub who: Who,
    /// Samples of it.
    pub samples: usize,
    /// Its cycles in all of them.
    pub cycles: f64,
    /// Instructions for each cycle.
    pub ipc: f64,
    /// Misses for each 1000 instructions.
    pub misses_per_ki: f64,
    /// What all neighbours do to it together; nothing if that cannot be told.
    pub by_all: Option<Slowing>,
    /// What each does, the one with most misses first; nothing of those that cannot be told from others, or
    /// always miss alike.
    pub by: Vec<(Who, Option<Slowing>)>,
}

/// Who slows whom, those with most cycles first.
pub fn blame(samples: &[Sample]) -> Vec<Victim> {
    let mut by_program: BTreeMap<Who, Vec<&Sample>> = BTreeMap::new();
    samples.iter().for_each(|sample| by_program.entry(sample.who).or_default().push(sample));
    by_program.values_mut().for_each(|own| own.sort_by_key(|sample| sample.start_ns));
    let mut victims: Vec<Victim> = by_program.into_iter().map(|(who, own)| victim(who, &own)).collect();
    victims.sort_by(|one, other| other.cycles.total_cmp(&one.cycles));
    victims
}

fn victim(who: Who, samples: &[&Sample]) -> Victim {
    let sum = |count: fn(&Sample) -> f64| samples.iter().map(|sample| count(sample)).sum::<f64>();
    let (cycles, instructions) = (sum(|sample| sample.cycles), sum(|sample| sample.instructions));
    let neighbours = neighbours(samples);
    let (by_all, by) = match samples.len() >= LEAST_SAMPLES {
        true => slowings(samples, &neighbours),
        false => (None, vec![None; neighbours.len()]),
    };
    Victim {
        who,
        samples: samples.len(),
        cycles,
        ipc: instructions / cycles,
        misses_per_ki: 1000.0 * sum(|sample| sample.misses) / instructions,
        by_all,
        by: neighbours.into_iter().zip(by).collect(),
    }
}

/// Who missed beside a program: those with most misses, and [`OTHERS`] if there are more.
fn neighbours(samples: &[&Sample]) -> Vec<Who> {
    let mut misses: BTreeMap<Who, f64> = BTreeMap::new();
    for (who, count) in samples.iter().flat_map(|sample| &sample.beside) {
        *misses.entry(*who).or_default() += count;
    }
    let mut all: Vec<(Who, f64)> = misses.into_iter().filter(|(_, misses)| *misses > 0.0).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    let rest = all.len() > MOST_NEIGHBOURS;
    let named = all.into_iter().take(MOST_NEIGHBOURS).map(|(who, _)| who);
    named.chain(rest.then_some(OTHERS)).collect()
}

/// What all do together, and each, by samples in the order of time.
fn slowings(samples: &[&Sample], neighbours: &[Who]) -> (Option<Slowing>, Vec<Option<Slowing>>) {
    let mut blocks = vec![Moments::new(neighbours.len()); BLOCKS];
    for (place, sample) in samples.iter().enumerate() {
        blocks[place * BLOCKS / samples.len()].add(sample, neighbours);
    }
    let without = |left_out: Option<usize>| {
        let mut all = Moments::new(neighbours.len());
        let kept = blocks.iter().enumerate().filter(|(block, _)| Some(*block) != left_out);
        kept.for_each(|(_, block)| all.join(block));
        all.shares()
    };
    let whole = without(None);
    let parts: Vec<Shares> = (0..BLOCKS).map(|block| without(Some(block))).collect();
    let slowing = |of: &dyn Fn(&Shares) -> Option<f64>| {
        let percent = of(&whole)?;
        let others: Vec<f64> = parts.iter().map(of).collect::<Option<_>>()?;
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let squares: f64 = others.iter().map(|other| (other - mean).powi(2)).sum();
        let scale = (others.len() - 1) as f64 / others.len() as f64;
        let error = (scale * squares).sqrt();
        (percent.is_finite() && error.is_finite()).then_some(Slowing { percent, error })
    };
    let each = (0..neighbours.len()).map(|place| slowing(&|shares| shares.0[place])).collect();
    (slowing(&|shares| shares.all()), each)
}

/// By neighbour: how much it slows, in percent; nothing where it cannot be told.
struct Shares(Vec<Option<f64>>);

impl Shares {
    /// What cannot be told of one is in what is told of another that is like it.
    fn all(&self) -> Option<f64> {
        let mut told = self.0.iter().flatten().peekable();
        told.peek()?;
        Some(told.sum())
    }
}

/// Weighted sums of samples: of cycles for each instruction, and of the misses of each neighbour for each cycle.
#[derive(Clone)]
struct Moments {
    weight: f64,
    /// Sums of the variables, the one that is explained last.
    sums: Vec<f64>,
    /// Sums of their products.
    products: Vec<Vec<f64>>,
}

impl Moments {
    fn new(neighbours: usize) -> Self {
        let size = neighbours + 1;
        Self { weight: 0.0, sums: vec![0.0; size], products: vec![vec![0.0; size]; size] }
    }

    fn add(&mut self, sample: &Sample, neighbours: &[Who]) {
        let mut variables = vec![0.0; neighbours.len() + 1];
        for (who, misses) in &sample.beside {
            // Who is not named is among the others, who are last.
            let place = neighbours.iter().position(|neighbour| neighbour == who);
            let place = place.or_else(|| neighbours.iter().position(|neighbour| *neighbour == OTHERS));
            if let Some(place) = place {
                variables[place] += misses / sample.cycles;
            }
        }
        variables[neighbours.len()] = sample.cycles / sample.instructions;
        self.weight += sample.cycles;
        for (row, one) in variables.iter().enumerate() {
            self.sums[row] += sample.cycles * one;
            for (column, other) in variables.iter().enumerate() {
                self.products[row][column] += sample.cycles * one * other;
            }
        }
    }

    fn join(&mut self, other: &Self) {
        self.weight += other.weight;
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        let products = self.products.iter_mut().flatten().zip(other.products.iter().flatten());
        products.for_each(|(product, other)| *product += other);
    }

    /// What each neighbour's misses add to the cycles for each instruction, in percent of those without any.
    fn shares(&self) -> Shares {
        let last = self.sums.len() - 1;
        let mean: Vec<f64> = self.sums.iter().map(|sum| sum / self.weight).collect();
        let covariance =
            |row: usize, column: usize| self.products[row][column] / self.weight - mean[row] * mean[column];
        let own: Vec<usize> = independent(last, &covariance);
        let slopes = solve(&own, last, &covariance);
        let added: Vec<(usize, f64)> = own.iter().copied().zip(slopes).collect();
        let base = mean[last] - added.iter().map(|(place, slope)| slope * mean[*place]).sum::<f64>();
        let mut shares = vec![None; last];
        for (place, slope) in added {
            shares[place] = (base > 0.0).then(|| 100.0 * slope * mean[place] / base);
        }
        Shares(shares)
    }
}

/// The variables that are not told by those before them.
fn independent(count: usize, covariance: &impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for place in 0..count {
        let spread = covariance(place, place);
        let told: f64 = solve(&kept, place, covariance)
            .iter()
            .zip(&kept)
            .map(|(slope, &other)| slope * covariance(other, place))
            .sum();
        if spread > 0.0 && spread - told > LEAST_OWN * spread {
            kept.push(place);
        }
    }
    kept
}

/// The slopes of least squares of variables that explain another, by Cholesky's factors.
fn solve(of: &[usize], explained: usize, covariance: &impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let size = of.len();
    let mut factor = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
            let rest = covariance(of[row], of[column]) - known;
            factor[row][column] =
                if row == column { rest.max(0.0).sqrt() } else { rest / factor[column][column] };
        }
    }
    let mut slopes = vec![0.0; size];
    for row in 0..size {
        let known: f64 = (0..row).map(|k| factor[row][k] * slopes[k]).sum();
        slopes[row] = (covariance(of[row], explained) - known) / factor[row][row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| factor[k][row] * slopes[k]).sum();
        slopes[row] = (slopes[row] - known) / factor[row][row];
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    /// Samples of program 0: `c0` cycles for each instruction, and by neighbour what a miss of it in each cycle adds.
    fn samples(count: usize, c0: f64, neighbours: &[(Who, f64)], noise: f64) -> Vec<Sample> {
        let mut random = Pcg32::seed_from_u64(7);
        let mut part = || f64::from(random.next_u32()) / f64::from(u32::MAX);
        let sample = |_| {
            let rates: Vec<(Who, f64, f64)> =
                neighbours.iter().map(|&(who, slope)| (who, slope, 0.02 * part())).collect();
            let slow: f64 = rates.iter().map(|(_, slope, rate)| slope * rate).sum();
            let cycles = 1e6 * (1.0 + part());
            let each = (c0 + slow) * (1.0 + noise * (part() - 0.5));
            let beside = rates.iter().map(|(who, _, rate)| (*who, rate * cycles)).collect();
            Sample {
                who: 0,
                start_ns: 0,
                cycles,
                instructions: cycles / each,
                misses: 100.0,
                beside,
                ..Sample::default()
            }
        };
        (0..count).map(sample).collect()
    }

    fn of(victims: &[Victim], who: Who) -> &Victim {
        victims.iter().find(|victim| victim.who == who).unwrap()
    }

    #[test]
    fn each_neighbour_is_blamed_for_what_it_does() {
        let victims = blame(&samples(2000, 2.0, &[(1, 40.0), (2, 0.0), (3, 10.0)], 0.1));
        let victim = of(&victims, 0);
        let by: BTreeMap<Who, Slowing> = victim.by.iter().map(|(who, by)| (*who, by.unwrap())).collect();
        // 40 cycles x 0.01 misses in the middle, of 2.
        for (who, wanted) in [(1, 20.0), (2, 0.0), (3, 5.0)] {
            assert!((by[&who].percent - wanted).abs() < 3.0 * by[&who].error.max(0.2), "{who}: {by:?}");
            assert!(by[&who].error < 1.0, "{by:?}");
        }
        assert!(by[&1].is_sure() && by[&3].is_sure() && !by[&2].is_sure());
        assert!((victim.by_all.unwrap().percent - 25.0).abs() < 2.0, "{victim:?}");
    }

    #[test]
    fn two_that_always_miss_alike_are_blamed_together() {
        let mut all = samples(500, 2.0, &[(1, 40.0)], 0.1);
        for sample in &mut all {
            let (_, misses) = sample.beside[0];
            sample.beside.push((2, misses / 2.0));
        }
        let victims = blame(&all);
        let victim = of(&victims, 0);
        assert!(victim.by[0].1.is_some() && victim.by[1] == (2, None), "{victim:?}");
        assert!((victim.by_all.unwrap().percent - 20.0).abs() < 2.0);
    }

    #[test]
    fn nothing_is_said_of_few_samples_or_of_neighbours_that_never_change() {
        assert_eq!(of(&blame(&samples(LEAST_SAMPLES - 1, 2.0, &[(1, 40.0)], 0.1)), 0).by_all, None);
        let mut all = samples(200, 2.0, &[], 0.1);
        all.iter_mut().for_each(|sample| sample.beside = vec![(1, 0.01 * sample.cycles)]);
        assert_eq!(of(&blame(&all), 0).by, [(1, None)]);
        all.iter_mut().for_each(|sample| sample.beside.clear());
        assert_eq!(of(&blame(&all), 0).by, []);
    }

    #[test]
    fn those_with_few_misses_are_blamed_together() {
        let neighbours: Vec<(Who, f64)> = (1..=8).map(|who| (who, 40.0)).collect();
        let mut all = samples(4000, 2.0, &neighbours, 0.1);
        for (place, sample) in all.iter_mut().enumerate() {
            sample.who = (place % 2) as Who * 100;
        }
        let victims = blame(&all);
        assert_eq!((victims.len(), victims[0].by.len()), (2, MOST_NEIGHBOURS + 1));
        assert_eq!(victims[0].by[MOST_NEIGHBOURS].0, OTHERS);
        assert!((victims[0].by_all.unwrap().percent - 160.0).abs() < 8.0, "{:?}", victims[0]);
    }

    /// Errors of independent samples come out as large as the formula has them, and as the truth is far.
    #[test]
    fn one_neighbour_is_the_line_of_a_statistics_library() {
        let all = samples(1000, 3.0, &[(1, 50.0)], 0.2);
        let equal: Vec<Sample> = all
            .iter()
            .map(|sample| {
                let scale = 1e6 / sample.cycles;
                let beside = sample.beside.iter().map(|(who, misses)| (*who, misses * scale)).collect();
                Sample { cycles: 1e6, instructions: sample.instructions * scale, beside, ..sample.clone() }
            })
            .collect();
        let x: Vec<f64> = equal.iter().map(|sample| sample.beside[0].1 / sample.cycles).collect();
        let y: Vec<f64> = equal.iter().map(|sample| sample.cycles / sample.instructions).collect();
        let (slope, intercept): (f64, f64) = linreg::linear_regression(&x, &y).unwrap();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let found = of(&blame(&equal), 0).by[0].1.unwrap();
        assert!((found.percent - 100.0 * slope * mean / intercept).abs() < 1e-6, "{found:?}");
    }

    proptest! {
        #[test]
        fn whatever_is_counted_nothing_panics_and_what_is_told_is_finite(
            counts in proptest::collection::vec((1u64..1 << 40, 1u64..1 << 40, 0u64..1 << 40, 0u32..9), 0..120),
        ) {
            let sample = |(place, (cycles, instructions, misses, other)): (usize, &(u64, u64, u64, u32))| Sample {
                who: (place % 2) as Who,
                start_ns: place as u64,
                cycles: *cycles as f64,
                instructions: *instructions as f64,
                misses: *misses as f64,
                beside: vec![(*other, *misses as f64)],
                ..Sample::default()
            };
            let all: Vec<Sample> = counts.iter().enumerate().map(sample).collect();
            let victims = blame(&all);
            let each = |victim: &Victim| victim.by.iter().filter_map(|by| by.1).chain(victim.by_all).collect::<Vec<_>>();
            for slowing in victims.iter().flat_map(each) {
                prop_assert!(slowing.percent.is_finite() && slowing.error.is_finite());
            }
        }
    }
}
