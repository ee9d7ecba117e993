//! From sums to reload transients and the ceiling: pure arithmetic.
//!
//! A part of an interval that executes x instructions has y misses:
//!
//! ```text
//! y = steady x + reload(what happened before) + noise       first parts
//! y = steady x + noise                                      later parts
//! ```
//!
//! `steady`, the rate of misses in the steady state, comes from later parts. `reload` is what first
//! parts have beyond it, less what they have beyond it when nothing else ran before (the switch
//! itself costs misses, and no scheduler saves those). The same with cycles in place of misses gives
//! the time of the transient directly, with whatever else is cold.

use super::layout::{BEYOND_FIRST, Before, Program, Sums};
use serde::Serialize;

/// Half the width of an interval that holds the true value 19 times of 20, in standard errors.
const WIDTH: f64 = 1.96;
/// Parts below which nothing is concluded.
pub const FEW: u64 = 30;

/// A figure and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// From a standard error.
    pub fn new(value: f64, error: f64) -> Self {
        Self { value, low: value - WIDTH * error, high: value + WIDTH * error }
    }

    /// The standard error.
    pub fn error(&self) -> f64 {
        (self.high - self.low) / (2.0 * WIDTH)
    }

    fn variance(&self) -> f64 {
        self.error() * self.error()
    }

    /// The product with an independent estimate.
    pub fn times(&self, other: &Estimate) -> Self {
        let variance = (self.value * other.error()).powi(2) + (other.value * self.error()).powi(2);
        Self::new(self.value * other.value, variance.sqrt())
    }

    /// The product with a constant.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// What is compared with instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Cache misses.
    Misses,
    /// Cycles.
    Cycles,
}

/// Sums of x (instructions) and y.
#[derive(Clone, Copy)]
struct Pairs {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Pairs {
    fn of(sums: &Sums, of: Of) -> Self {
        let (y, xy, yy) = match of {
            Of::Misses => (sums.misses, sums.im, sums.mm),
            Of::Cycles => (sums.cycles, sums.ic, sums.cc),
        };
        Self {
            n: sums.count as f64,
            x: sums.instructions as f64,
            y: y as f64,
            xx: sums.ii as f64,
            xy: xy as f64,
            yy: yy as f64,
        }
    }

    fn mean_x(&self) -> f64 {
        self.x / self.n
    }

    /// The mean of y - rate x, with the error of that mean for a rate that is exact.
    fn excess(&self, rate: f64) -> Estimate {
        let mean = (self.y - rate * self.x) / self.n;
        let squares = self.yy - 2.0 * rate * self.xy + rate * rate * self.xx;
        let variance = (squares / self.n - mean * mean).max(0.0) / (self.n - 1.0);
        Estimate::new(mean, variance.sqrt())
    }

    /// y over x, with an error that does not assume that all parts vary alike.
    fn ratio(&self) -> Estimate {
        let rate = self.y / self.x;
        let squares = (self.yy - 2.0 * rate * self.xy + rate * rate * self.xx).max(0.0);
        Estimate::new(rate, squares.sqrt() / self.x)
    }

    /// Sums of products about the means: xx, xy, yy.
    fn centred(&self) -> [f64; 3] {
        [
            self.xx - self.x * self.x / self.n,
            self.xy - self.x * self.y / self.n,
            self.yy - self.y * self.y / self.n,
        ]
    }
}

/// Where the rate of the steady state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// What intervals do from so many milliseconds on.
    FromMs(f64),
    /// Intervals before which nothing else ran.
    Undisturbed,
}

/// A rate for each instruction in the steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The rate.
    pub rate: Estimate,
    /// Where it comes from.
    pub baseline: Baseline,
}

/// The steady state of a program, if enough of it was seen: from 1 ms into intervals on, or from as
/// late as there are enough later parts.
pub fn steady(program: &Program, of: Of) -> Option<Steady> {
    let from_bin = |bin: usize| {
        let later: Sums = program.later[bin..].iter().sum();
        let enough = later.count >= FEW && later.instructions > 0;
        enough.then(|| Steady {
            rate: Pairs::of(&later, of).ratio(),
            baseline: Baseline::FromMs(Program::later_ns(bin) as f64 / 1e6),
        })
    };
    let undisturbed = || {
        let rate = common_slope(program, of)?;
        Some(Steady { rate, baseline: Baseline::Undisturbed })
    };
    from_bin(BEYOND_FIRST).or_else(undisturbed).or_else(|| (0..BEYOND_FIRST).rev().find_map(from_bin))
}

/// The slope that first parts have in common, whatever happened before them; each kind has its own
/// level. Needs intervals before which nothing else ran.
fn common_slope(program: &Program, of: Of) -> Option<Estimate> {
    if program.first[Before::Same as usize].count < FEW {
        return None;
    }
    let kinds = program.first[Before::Same as usize..].iter().filter(|sums| sums.count > 1);
    let (mut n, mut sum) = (0.0, [0.0; 3]);
    for sums in kinds {
        let pairs = Pairs::of(sums, of);
        n += pairs.n - 1.0;
        sum.iter_mut().zip(pairs.centred()).for_each(|(sum, part)| *sum += part);
    }
    let [xx, xy, yy] = sum;
    if xx <= 0.0 || n < FEW as f64 - 1.0 {
        return None;
    }
    let slope = xy / xx;
    let variance = (yy - slope * xy).max(0.0) / (n - 1.0) / xx;
    Some(Estimate::new(slope, variance.sqrt()))
}

/// What a program reloads.
#[derive(Clone, Debug, PartialEq)]
pub struct Reloads {
    /// For each interval, by what happened before; nothing where too few were counted.
    pub each: [Option<Estimate>; Before::COUNT],
    /// In sum over all intervals with something to save.
    pub total: Estimate,
}

/// Reload of misses or cycles; nothing if no interval of the program was disturbed and counted.
pub fn reloads(program: &Program, of: Of, steady: &Steady) -> Option<Reloads> {
    let rate = steady.rate.value;
    let pairs: Vec<Pairs> = program.first.iter().map(|sums| Pairs::of(sums, of)).collect();
    let enough = |kind: Before| program.first[kind as usize].count >= FEW;
    let same = enough(Before::Same).then(|| pairs[Before::Same as usize]);
    let (level, level_x) = match same {
        Some(same) => (same.excess(rate), same.mean_x()),
        None => (Estimate::new(0.0, 0.0), 0.0),
    };
    let mut each = [None; Before::COUNT];
    let (mut value, mut variance, mut intervals, mut x) = (0.0, 0.0, 0.0, 0.0);
    for kind in Before::DISTURBED.into_iter().filter(|kind| enough(*kind)) {
        let pairs = &pairs[kind as usize];
        let all = program.befores[kind as usize] as f64;
        let excess = pairs.excess(rate);
        let by_rate = (pairs.mean_x() - level_x).powi(2) * steady.rate.variance();
        let error = (excess.variance() + level.variance() + by_rate).sqrt();
        each[kind as usize] = Some(Estimate::new(excess.value - level.value, error));
        value += all * (excess.value - level.value);
        variance += all * all * excess.variance();
        intervals += all;
        x += all * pairs.mean_x();
    }
    if intervals == 0.0 {
        return None;
    }
    variance += intervals * intervals * level.variance();
    variance += (x - intervals * level_x).powi(2) * steady.rate.variance();
    Some(Reloads { each, total: Estimate::new(value, variance.sqrt()) })
}

/// Cycles for each miss: the slope of cycles on misses at equal instructions, over all counted parts.
pub fn miss_cost(parts: &[Sums]) -> Option<Estimate> {
    let mut n = 0.0;
    let [mut ii, mut im, mut ic, mut mm, mut mc, mut cc] = [0.0; 6];
    for part in parts.iter().filter(|part| part.count > 1) {
        let count = part.count as f64;
        let about = |product: u128, a: u64, b: u64| product as f64 - a as f64 * b as f64 / count;
        n += count - 1.0;
        ii += about(part.ii, part.instructions, part.instructions);
        im += about(part.im, part.instructions, part.misses);
        ic += about(part.ic, part.instructions, part.cycles);
        mm += about(part.mm, part.misses, part.misses);
        mc += about(part.mc, part.misses, part.cycles);
        cc += about(part.cc, part.cycles, part.cycles);
    }
    let determinant = ii * mm - im * im;
    if n < 3.0 * FEW as f64 || determinant <= 1e-9 * ii * mm {
        return None;
    }
    let by_miss = (mc * ii - ic * im) / determinant;
    let by_instruction = (ic * mm - mc * im) / determinant;
    let rest = (cc - by_miss * mc - by_instruction * ic).max(0.0) / (n - 2.0);
    let cost = Estimate::new(by_miss, (rest * ii / determinant).sqrt());
    (cost.low > 0.0).then_some(cost)
}

/// All misses of first parts after a disturbance, scaled to all intervals: no reload can be more.
pub fn all_misses_after_disturbance(program: &Program) -> Option<Estimate> {
    let (mut value, mut variance) = (0.0, 0.0);
    let counted = Before::DISTURBED.into_iter().filter(|kind| program.first[*kind as usize].count >= FEW);
    for kind in counted {
        let all = program.befores[kind as usize] as f64;
        let mean = Pairs::of(&program.first[kind as usize], Of::Misses).excess(0.0);
        value += all * mean.value;
        variance += all * all * mean.variance();
    }
    (value > 0.0).then(|| Estimate::new(value, variance.sqrt()))
}
