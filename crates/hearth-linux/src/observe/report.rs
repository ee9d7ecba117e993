//! What an observation means: figures by program, and their ceilings.

use super::counters::Present;
use super::estimate::{self, Baseline, Estimate, Of, Reloads};
use super::layout::{Before, ENDS, Lengths, Point, Program, Sums};
use super::session::{Observed, Options};
use serde::{Serialize, Serializer};

/// Programs with less of the watched CPU time are left out of what is pooled and first shown.
pub const SMALL_SHARE: f64 = 0.005;

/// A point of the transient's curve is the mean of so many samples or more.
const ENOUGH_SAMPLES: u64 = 10;
/// The curve ends here: what goes on for longer is no reload.
const CURVE_NS: u64 = 8_000_000;

/// Everything that an observation tells.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was observed.
    pub target: String,
    /// The result in a sentence.
    pub summary: String,
    /// Whether it was stopped before its end.
    pub partial: bool,
    /// How long, in seconds.
    pub elapsed_s: f64,
    /// CPUs of the host.
    pub cpus: usize,
    /// Switches a second, of all tasks on all CPUs.
    pub switches_per_s: f64,
    /// Which counters there were.
    pub counters: Present,
    /// Share of intervals whose counters were read, in percent.
    pub counted_percent: f64,
    /// Where CPU time went.
    pub cpu_time: CpuShares,
    /// What observing cost.
    pub overhead: Overhead,
    /// What is missing or limits the figures, for people.
    pub notes: Vec<String>,
    /// By CPU time, most first.
    pub programs: Vec<ProgramReport>,
}

/// Where the CPUs' time went, in percent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuShares {
    /// What was observed.
    pub watched: f64,
    /// Other processes.
    pub others: f64,
    /// Kernel threads.
    pub kernel: f64,
    /// Nothing.
    pub idle: f64,
}

/// What observing cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Overhead {
    /// CPU time of the BPF programs, in percent of the time that CPUs were busy; nothing if the
    /// kernel did not say.
    pub percent: Option<f64>,
    /// Nanoseconds for each switch, on average.
    pub ns_per_switch: Option<f64>,
    /// Nanoseconds to read all counters once; nothing if none were read.
    pub read_ns: Option<f64>,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// Its name; with a number it is a task.
    pub name: String,
    /// CPU time in seconds.
    pub cpu_s: f64,
    /// In percent of the watched CPU time.
    pub share_percent: f64,
    /// Dispatch intervals.
    pub intervals: Stretches,
    /// Why they ended, in percent.
    #[serde(serialize_with = "as_map")]
    pub ends_percent: Vec<(&'static str, f64)>,
    /// Effective time slices.
    pub slices: Stretches,
    /// Where it ran, seen from where it ran before.
    pub moves: Moves,
    /// From the counters, if they were read often enough.
    pub counted: Option<Counted>,
}

fn as_map<S: Serializer>(pairs: &[(&'static str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

/// Intervals or slices.
#[derive(Clone, Debug, Serialize)]
pub struct Stretches {
    /// How many.
    pub count: u64,
    /// Mean length in milliseconds.
    pub mean_ms: f64,
    /// Median length in milliseconds.
    pub median_ms: f64,
    /// How many of each length: where the bin begins in milliseconds, and the count.
    pub lengths: Vec<(f64, u64)>,
}

/// Intervals by what happened before.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moves {
    /// The task's first, or the first of a new program.
    pub starts: u64,
    /// Nothing else ran on the same CPU.
    pub same: u64,
    /// Others ran on the same CPU.
    pub others: u64,
    /// From another CPU of the cache domain.
    pub cpu: u64,
    /// From another cache domain of the node.
    pub domain: u64,
    /// From another node.
    pub node: u64,
}

/// What counters tell of a program.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// Intervals that were counted.
    pub intervals: u64,
    /// Instructions, in millions; scaled up from the counted intervals.
    pub instructions_millions: f64,
    /// Misses, in millions; scaled up from the counted intervals.
    pub misses_millions: f64,
    /// Misses for each thousand instructions.
    pub misses_per_ki: f64,
    /// The same in the steady state.
    pub steady_misses_per_ki: Option<Estimate>,
    /// Where the steady state was seen.
    pub baseline: Option<Baseline>,
    /// Cycles for each instruction.
    pub cycles_per_instruction: f64,
    /// Nanoseconds for each miss, with where the figure comes from.
    pub miss_ns: Option<MissCost>,
    /// What is loaded again, by what happened before.
    pub reloads: Vec<Reload>,
    /// Misses beyond the steady state, by time into the interval.
    pub transient: Vec<Transient>,
    /// The share of the program's CPU time that affinity could win at most.
    pub ceiling: Option<Ceiling>,
    /// The same from cycles beyond the steady state, whatever they were lost to.
    pub ceiling_by_cycles_percent: Option<Estimate>,
}

/// What a miss costs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MissCost {
    /// Nanoseconds.
    pub ns: Estimate,
    /// Whether it is this program's own figure, or that of all programs.
    pub own: bool,
}

/// Reload after one kind of disturbance.
#[derive(Clone, Debug, Serialize)]
pub struct Reload {
    /// What happened before.
    pub after: &'static str,
    /// Intervals.
    pub intervals: u64,
    /// Misses for each.
    pub misses: Estimate,
    /// Microseconds for each.
    pub us: Option<Estimate>,
}

/// A curve of misses beyond the steady state.
#[derive(Clone, Debug, Serialize)]
pub struct Transient {
    /// What happened before.
    pub after: &'static str,
    /// Milliseconds into the interval, misses beyond the steady state up to there, samples.
    pub points: Vec<(f64, f64, u64)>,
}

/// The most that affinity could win.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ceiling {
    /// In percent of CPU time. Without a steady state there is no figure, only the upper end.
    pub percent: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What happened before, as it is printed.
pub fn words(before: Before) -> &'static str {
    match before {
        Before::Start => "start",
        Before::Same => "nothing else ran",
        Before::Others => "others ran",
        Before::MovedDomain => "moved within the cache domain",
        Before::MovedNode => "moved to another cache domain",
        Before::MovedRemote => "moved to another node",
    }
}

impl Report {
    /// Makes the report of an observation.
    pub fn new(options: &Options, observed: &Observed) -> Self {
        let watched_ns: u64 = observed.programs.values().map(|program| program.interval_ns).sum();
        let pooled = pooled_cost(observed, watched_ns);
        let mut programs: Vec<ProgramReport> = observed
            .programs
            .iter()
            .filter(|(_, program)| program.intervals() > 0)
            .map(|(name, program)| ProgramReport::new(name, program, watched_ns, observed.present, pooled))
            .collect();
        programs.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s).then_with(|| a.name.cmp(&b.name)));
        let counted: u64 =
            programs.iter().flat_map(|program| &program.counted).map(|counted| counted.intervals).sum();
        let intervals: u64 = programs.iter().map(|program| program.intervals.count).sum();
        let time = &observed.time;
        let all_ns = (time.watched_ns + time.other_ns + time.kernel_ns + time.idle_ns).max(1) as f64;
        let share = |ns: u64| 100.0 * ns as f64 / all_ns;
        let elapsed_s = observed.elapsed.as_secs_f64();
        let mut report = Self {
            target: options.target.describe(),
            summary: String::new(),
            partial: observed.interrupted,
            elapsed_s,
            cpus: observed.cpus,
            switches_per_s: time.switches as f64 / elapsed_s.max(1e-9),
            counters: observed.present,
            counted_percent: 100.0 * counted as f64 / intervals.max(1) as f64,
            cpu_time: CpuShares {
                watched: share(time.watched_ns),
                others: share(time.other_ns),
                kernel: share(time.kernel_ns),
                idle: share(time.idle_ns),
            },
            overhead: Overhead::new(observed, all_ns),
            notes: observed.notes.clone(),
            programs,
        };
        report.summary = report.sentence();
        report
    }

    fn sentence(&self) -> String {
        let Some(first) = self.programs.first() else {
            return "Nothing of what was to be observed ran.".to_owned();
        };
        let ceiling = first.counted.as_ref().and_then(|counted| counted.ceiling);
        let by_cycles = first.counted.as_ref().and_then(|counted| counted.ceiling_by_cycles_percent);
        let by_cycles = by_cycles.map_or(String::new(), |share| {
            format!(" by its cache misses, {:.1} % by all cycles that it loses", share.value.max(0.0))
        });
        let most = match ceiling {
            Some(Ceiling { percent: Some(percent), low, high }) => format!(
                "affinity could win at most {:.1} % of its CPU time ({:.1} to {:.1} %){by_cycles}",
                percent.max(0.0),
                low.max(0.0),
                high.max(0.0)
            ),
            Some(Ceiling { high, .. }) => format!(
                "affinity could win no more than {high:.1} % of its CPU time; how much less cannot be told, as its steady state was not seen"
            ),
            None if self.counters.all() => {
                "too few of its intervals were counted to say what affinity could win".to_owned()
            }
            None => "without hardware counters what affinity could win cannot be told".to_owned(),
        };
        format!("{} took {:.0} % of the observed CPU time: {most}.", first.name, first.share_percent)
    }
}

impl Overhead {
    fn new(observed: &Observed, all_ns: f64) -> Self {
        let time = &observed.time;
        let busy_ns = all_ns - time.idle_ns as f64;
        let per = |whole: f64| observed.run_time.map(|(ns, _)| ns as f64 / whole.max(1.0));
        let read_ns = time.read_ns as f64 / time.reading_cpus as f64;
        Self {
            percent: per(busy_ns).map(|share| 100.0 * share),
            ns_per_switch: per(time.switches as f64),
            read_ns: (time.reading_cpus > 0).then_some(read_ns),
        }
    }
}

/// The cost of a miss over all programs, for those that are too small for their own.
fn pooled_cost(observed: &Observed, watched_ns: u64) -> Option<Estimate> {
    let large = observed
        .programs
        .values()
        .filter(|program| program.interval_ns as f64 >= SMALL_SHARE * watched_ns as f64);
    let parts: Vec<Sums> = large.flat_map(Program::parts).copied().collect();
    estimate::miss_cost(&parts)
}

impl ProgramReport {
    fn new(
        name: &str,
        program: &Program,
        watched_ns: u64,
        present: Present,
        pooled: Option<Estimate>,
    ) -> Self {
        let intervals = program.intervals();
        let ends = program.ends.iter().map(|count| 100.0 * *count as f64 / intervals.max(1) as f64);
        Self {
            name: name.to_owned(),
            cpu_s: program.interval_ns as f64 / 1e9,
            share_percent: 100.0 * program.interval_ns as f64 / watched_ns.max(1) as f64,
            intervals: Stretches::new(intervals, program.interval_ns, &program.interval_lengths),
            ends_percent: ENDS.into_iter().zip(ends).collect(),
            slices: Stretches::new(program.slices, program.slice_ns, &program.slice_lengths),
            moves: Moves::new(&program.befores),
            counted: present.all().then(|| Counted::new(program, pooled)).flatten(),
        }
    }
}

impl Stretches {
    fn new(count: u64, ns: u64, lengths: &Lengths) -> Self {
        let bins = lengths.0.iter().enumerate().filter(|(_, count)| **count > 0);
        Self {
            count,
            mean_ms: ns as f64 / count.max(1) as f64 / 1e6,
            median_ms: lengths.median_ns().unwrap_or_default() / 1e6,
            lengths: bins.map(|(bin, count)| (Lengths::bin_start(bin) / 1e6, *count)).collect(),
        }
    }
}

impl Moves {
    fn new(befores: &[u64; Before::COUNT]) -> Self {
        let [starts, same, others, cpu, domain, node] = *befores;
        Self { starts, same, others, cpu, domain, node }
    }
}

impl Counted {
    fn new(program: &Program, pooled: Option<Estimate>) -> Option<Self> {
        let counted = program.parts().sum::<Sums>();
        let intervals: u64 = program.beginnings().map(|sums| sums.count).sum();
        if intervals == 0 || counted.instructions == 0 || counted.ns == 0 {
            return None;
        }
        let scale = program.interval_ns as f64 / counted.ns as f64;
        let ns_per_cycle = counted.ns as f64 / counted.cycles.max(1) as f64;
        let own = estimate::miss_cost(&program.parts().copied().collect::<Vec<_>>());
        let cost = own.or(pooled);
        let steady = estimate::steady(program, Of::Misses);
        let reloads = estimate::reloads(program, Of::Misses, steady.as_ref());
        let all_cycles = counted.cycles as f64 * scale;
        Some(Self {
            intervals,
            instructions_millions: counted.instructions as f64 * scale / 1e6,
            misses_millions: counted.misses as f64 * scale / 1e6,
            misses_per_ki: 1e3 * counted.misses as f64 / counted.instructions as f64,
            steady_misses_per_ki: steady.map(|steady| steady.rate.scaled(1e3)),
            baseline: steady.map(|steady| steady.baseline),
            cycles_per_instruction: counted.cycles as f64 / counted.instructions as f64,
            miss_ns: cost.map(|cost| MissCost { ns: cost.scaled(ns_per_cycle), own: own.is_some() }),
            transient: steady.map(|steady| transient(program, steady.rate.value)).unwrap_or_default(),
            ceiling: cost.and_then(|cost| ceiling(program, reloads.as_ref(), &cost, all_cycles)),
            ceiling_by_cycles_percent: by_cycles(program, all_cycles),
            reloads: reloads.map(|reloads| each(program, &reloads, cost, ns_per_cycle)).unwrap_or_default(),
        })
    }
}

fn each(program: &Program, reloads: &Reloads, cost: Option<Estimate>, ns_per_cycle: f64) -> Vec<Reload> {
    let reload = |before: Before| {
        let misses = reloads.each[before as usize]?;
        Some(Reload {
            after: words(before),
            intervals: program.befores[before as usize],
            misses,
            us: cost.map(|cost| misses.times(&cost).scaled(ns_per_cycle / 1e3)),
        })
    };
    Before::DISTURBED.into_iter().filter_map(reload).collect()
}

fn ceiling(
    program: &Program,
    reloads: Option<&Reloads>,
    cost: &Estimate,
    all_cycles: f64,
) -> Option<Ceiling> {
    let percent = 100.0 / all_cycles;
    if let Some(reloads) = reloads {
        let share = reloads.total.times(cost).scaled(percent);
        return Some(Ceiling { percent: Some(share.value), low: share.low, high: share.high });
    }
    let most = estimate::all_misses_after_disturbance(program)?;
    Some(Ceiling { percent: None, low: 0.0, high: most.times(cost).scaled(percent).high.min(100.0) })
}

fn by_cycles(program: &Program, all_cycles: f64) -> Option<Estimate> {
    let steady = estimate::steady(program, Of::Cycles);
    let reloads = estimate::reloads(program, Of::Cycles, steady.as_ref())?;
    Some(reloads.total.scaled(100.0 / all_cycles))
}

fn transient(program: &Program, rate: f64) -> Vec<Transient> {
    let curve = |before: Before| {
        let point = |point: &Point| {
            let count = point.count as f64;
            let beyond = (point.misses as f64 - rate * point.instructions as f64) / count;
            (point.ns as f64 / count / 1e6, beyond, point.count)
        };
        let enough = |point: &&Point| point.count >= ENOUGH_SAMPLES && point.ns <= CURVE_NS * point.count;
        let points = program.curve[before as usize].iter().filter(enough).map(point);
        Transient { after: words(before), points: points.collect() }
    };
    let kinds = [Before::Same].into_iter().chain(Before::DISTURBED);
    kinds.map(curve).filter(|curve| !curve.points.is_empty()).collect()
}
