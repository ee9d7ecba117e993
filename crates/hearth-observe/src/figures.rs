//! Works out the report from what was counted.

use super::counters::Present;
use super::estimate::{self, Estimate, Of, Reloads};
use super::layout::{self, Before, ENDS, Lengths, Point, Program, Sums};
use super::report::{
    Behind, Ceiling, Counted, CpuShares, MissCost, Moves, Overhead, ProgramReport, Reload, Report,
    SMALL_SHARE, Stretches, Transient, Waits, words,
};
use super::session::{Observed, Options};
use std::collections::BTreeMap;

/// A point of the transient's curve is the mean of so many samples or more.
const ENOUGH_SAMPLES: u64 = 10;
/// The curve ends here: what goes on for longer is no reload.
const CURVE_NS: u64 = 8_000_000;

impl Report {
    /// Makes the report of an observation.
    pub fn new(options: &Options, observed: &Observed) -> Self {
        let watched_ns: u64 = observed.programs.values().map(|program| program.interval_ns).sum();
        let pooled = pooled_cost(observed, watched_ns);
        let mut programs: Vec<ProgramReport> = observed
            .programs
            .iter()
            .filter(|(_, program)| program.intervals() > 0)
            .map(|(name, program)| {
                let waits = Waits::new(name, program, &observed.behind);
                ProgramReport::new(name, program, watched_ns, observed.present, pooled, waits)
            })
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
            stolen_percent: observed.stolen.map(|part| 100.0 * part),
            pressure_percent: observed.pressure.map(|part| 100.0 * part),
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
        waits: Waits,
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
            waits,
            counted: present.all().then(|| Counted::new(program, pooled)).flatten(),
        }
    }
}

impl Waits {
    fn new(name: &str, program: &Program, all: &BTreeMap<(String, String), layout::Behind>) -> Self {
        let waits = &program.waits;
        let us = |part: f64| waits.woken_lengths.quantile_ns(part).unwrap_or_default() / 1e3;
        let could_run_ns = program.interval_ns + waits.ns();
        let of_this = all.iter().filter(|((waiting, _), _)| waiting == name);
        let mut behind: Vec<Behind> = of_this
            .map(|((_, by), behind)| Behind {
                program: by.clone(),
                percent: 100.0 * behind.waited_ns as f64 / waits.ns().max(1) as f64,
                preempted: behind.preempted,
            })
            .collect();
        behind.sort_by(|a, b| b.percent.total_cmp(&a.percent).then_with(|| a.program.cmp(&b.program)));
        Self {
            percent: 100.0 * waits.ns() as f64 / could_run_ns.max(1) as f64,
            wakeups: waits.woken,
            wakeup_median_us: us(0.5),
            wakeup_p99_us: us(0.99),
            wakeup_lengths: bins(&waits.woken_lengths, 1e3),
            taken_off: waits.taken_off,
            behind,
        }
    }
}

/// Where each bin that has any begins, in a unit of so many nanoseconds, and how many it has.
fn bins(lengths: &Lengths, unit_ns: f64) -> Vec<(f64, u64)> {
    let filled = lengths.0.iter().enumerate().filter(|(_, count)| **count > 0);
    filled.map(|(bin, count)| (Lengths::bin_start(bin) / unit_ns, *count)).collect()
}

impl Stretches {
    fn new(count: u64, ns: u64, lengths: &Lengths) -> Self {
        Self {
            count,
            mean_ms: ns as f64 / count.max(1) as f64 / 1e6,
            median_ms: lengths.median_ns().unwrap_or_default() / 1e6,
            lengths: bins(lengths, 1e6),
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
