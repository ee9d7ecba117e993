//! From sums to reload transients and the ceiling: pure arithmetic.
//!
//! A part of an interval that executes x instructions has y misses:
//!
//! ```text
//! y = steady x + reload(what happened before) + noise       first parts
//! y = steady x + noise                                      later parts
//! ```
//!
//! `reload` is what first parts have beyond the steady state, less what they have beyond it when
//! nothing else ran before (the switch itself costs misses, and no scheduler saves those). Where
//! intervals are long enough, each first part is compared with the later part of the same interval.
//! Else all are compared with one steady rate, that of later parts or of undisturbed intervals. The same with cycles in place of misses gives
//! the time of the transient directly, with whatever else is cold.

use super::layout::{BEYOND_FIRST, Before, Pairs as BothParts, Program, Sums};
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

    /// The sum with an independent estimate.
    pub fn plus(&self, other: &Estimate) -> Self {
        Self::new(self.value + other.value, (self.variance() + other.variance()).sqrt())
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

/// The slope that whole intervals have in common, whatever happened before them; each kind has its own
/// level. Needs intervals before which nothing else ran.
fn common_slope(program: &Program, of: Of) -> Option<Estimate> {
    if program.whole[Before::Same as usize].count < FEW {
        return None;
    }
    let kinds = program.whole[Before::Same as usize..].iter().filter(|sums| sums.count > 1);
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

/// What beginnings of one kind have beyond the steady state.
#[derive(Clone, Copy)]
struct Beyond {
    mean: Estimate,
    /// Instructions on average; what an error of the common steady rate is multiplied with.
    instructions: f64,
}

const NOTHING: Beyond = Beyond { mean: Estimate { value: 0.0, low: 0.0, high: 0.0 }, instructions: 0.0 };

/// Each first part against the later part of its own interval: whatever else differs between
/// intervals falls out.
fn by_pairs(pairs: &BothParts, of: Of) -> Option<Beyond> {
    if pairs.count < FEW {
        return None;
    }
    let (sum, squares) = match of {
        Of::Misses => (pairs.misses, pairs.misses_squared),
        Of::Cycles => (pairs.cycles, pairs.cycles_squared),
    };
    let n = pairs.count as f64;
    let mean = sum as f64 / n;
    let variance = (squares as f64 / n - mean * mean).max(0.0) / (n - 1.0);
    Some(Beyond { mean: Estimate::new(mean, variance.sqrt()), instructions: 0.0 })
}

/// Against one steady rate.
fn by_rate(sums: &Sums, of: Of, rate: f64) -> Option<Beyond> {
    let pairs = Pairs::of(sums, of);
    let enough = sums.count >= FEW;
    enough.then(|| Beyond { mean: pairs.excess(rate), instructions: pairs.mean_x() })
}

/// Beginnings that are measured in the same way, by what happened before.
struct Group {
    sums: [Sums; Before::COUNT],
    beyond: [Option<Beyond>; Before::COUNT],
}

impl Group {
    /// Intervals that are long enough to be compared with themselves, and the others.
    fn all(program: &Program, of: Of, steady: Option<&Steady>) -> [Self; 3] {
        let rate = steady.map(|steady| steady.rate.value);
        let at_rate = |sums: &Sums| by_rate(sums, of, rate?);
        let paired = program.pairs.map(|pairs| by_pairs(&pairs, of));
        let unpaired =
            |kind: usize| if paired[kind].is_some() { Sums::default() } else { program.first[kind] };
        let unpaired: [Sums; Before::COUNT] = std::array::from_fn(unpaired);
        [
            Self { sums: program.first, beyond: paired },
            Self { sums: unpaired, beyond: unpaired.each_ref().map(at_rate) },
            Self { sums: program.whole, beyond: program.whole.each_ref().map(at_rate) },
        ]
    }

    /// What undisturbed intervals have beyond the steady state, too.
    fn level(&self) -> Beyond {
        self.beyond[Before::Same as usize].unwrap_or(NOTHING)
    }

    /// How many were counted, if they were enough.
    fn counted(&self, kind: Before) -> f64 {
        self.beyond[kind as usize].map_or(0.0, |_| self.sums[kind as usize].count as f64)
    }
}

/// Reload of misses or cycles; nothing if no interval of the program was disturbed and counted.
pub fn reloads(program: &Program, of: Of, steady: Option<&Steady>) -> Option<Reloads> {
    let rate_variance = steady.map_or(0.0, |steady| steady.rate.variance());
    let groups = Group::all(program, of, steady);
    let mut reloads = Reloads { each: [None; Before::COUNT], total: Estimate::new(0.0, 0.0) };
    for group in &groups {
        // All intervals of a kind share out among the groups as the counted ones do.
        let weight = |kind: Before| {
            let counted: f64 = groups.iter().map(|group| group.counted(kind)).sum();
            group.counted(kind) / counted.max(1.0)
        };
        reloads.add(program, of, group, &weight, rate_variance);
    }
    reloads.each.iter().any(Option::is_some).then_some(reloads)
}

impl Reloads {
    fn add(
        &mut self,
        program: &Program,
        of: Of,
        group: &Group,
        weight: &dyn Fn(Before) -> f64,
        rate_variance: f64,
    ) {
        let level = group.level();
        let (mut value, mut variance, mut intervals, mut instructions) = (0.0, 0.0, 0.0, 0.0);
        for kind in Before::DISTURBED {
            let Some(beyond) = group.beyond[kind as usize] else { continue };
            let weight = weight(kind);
            let all = weight * program.befores[kind as usize] as f64;
            let more = beyond.instructions - level.instructions;
            let error = (beyond.mean.variance() + level.mean.variance() + more * more * rate_variance).sqrt();
            // An interval cannot load more again than it loads.
            let most = Pairs::of(&group.sums[kind as usize], of).excess(0.0).value;
            let reload = (beyond.mean.value - level.mean.value).min(most);
            let share = Estimate::new(weight * reload, weight * error);
            let each = &mut self.each[kind as usize];
            *each = Some(each.map_or(share, |each| each.plus(&share)));
            value += all * reload;
            variance += all * all * beyond.mean.variance();
            instructions += all * more;
            intervals += all;
        }
        variance += intervals * intervals * level.mean.variance() + instructions.powi(2) * rate_variance;
        self.total = self.total.plus(&Estimate::new(value, variance.sqrt()));
    }
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

/// All misses of beginnings after a disturbance, scaled to all intervals: no reload can be more.
pub fn all_misses_after_disturbance(program: &Program) -> Option<Estimate> {
    let mut total = Estimate::new(0.0, 0.0);
    for kind in Before::DISTURBED {
        let mut sums = program.whole[kind as usize];
        sums += program.first[kind as usize];
        if sums.count >= FEW {
            let mean = Pairs::of(&sums, Of::Misses).excess(0.0);
            total = total.plus(&mean.scaled(program.befores[kind as usize] as f64));
        }
    }
    (total.value > 0.0).then_some(total)
}
