//! Reload transients that are known must come out of the sums.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use hearth_observe::estimate::{self, Baseline, Estimate, Of};
use hearth_observe::layout::{Before, Program};
use hearth_observe::{Each, Observed, Options, Present, Report, Target};
use proptest::prelude::*;
use std::time::Duration;

/// Numbers between 0 and 1, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around `mean`, by up to as much.
    fn around(&mut self, mean: f64) -> f64 {
        2.0 * mean * self.next()
    }
}

/// A program whose behaviour is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Misses for an instruction in the steady state.
    steady: f64,
    /// Misses that each interval has at its start, whatever happened before.
    switch: f64,
    /// Misses that are loaded again after others ran, and twice as many after a move.
    reload: f64,
    cycles_per_instruction: f64,
    cycles_per_miss: f64,
    /// Intervals of each kind.
    count: u64,
    /// Whether intervals are long enough to show their steady state.
    long: bool,
    /// Whether first parts are compared with later ones of the same interval.
    paired: bool,
}

const KNOWN: Known = Known {
    steady: 0.002,
    switch: 50.0,
    reload: 3000.0,
    cycles_per_instruction: 0.5,
    cycles_per_miss: 40.0,
    count: 500,
    long: true,
    paired: true,
};

impl Known {
    fn part(&self, numbers: &mut Numbers, extra: f64) -> [u64; 4] {
        let instructions = 1e5 + numbers.around(1e6);
        let misses = numbers.around(self.steady * instructions) + extra;
        let cycles = self.cycles_per_instruction * instructions * (0.9 + 0.2 * numbers.next());
        let cycles = cycles + self.cycles_per_miss * misses;
        [cycles / 4.0, instructions, misses, cycles].map(|value| value.round() as u64)
    }

    fn program(&self, seed: u64) -> Program {
        let mut numbers = Numbers(seed | 1);
        let mut program = Program::default();
        for (before, reload) in
            [(Before::Same, 0.0), (Before::Others, self.reload), (Before::MovedDomain, 2.0 * self.reload)]
        {
            for _ in 0..self.count {
                let extra = numbers.around(self.switch) + numbers.around(reload);
                let first = self.part(&mut numbers, extra);
                let beginnings = if self.long { &mut program.first } else { &mut program.whole };
                beginnings[before as usize].record(first);
                program.befores[before as usize] += 1;
                program.interval_ns += first[0];
                if self.long {
                    let later = self.part(&mut numbers, 0.0);
                    program.later[5].record(later);
                    let work = first[1] as f64 / later[1] as f64;
                    let beyond = |of: usize| (first[of] as f64 - work * later[of] as f64).round() as i64;
                    if self.paired && later[1] * 4 >= first[1] {
                        program.pairs[before as usize].record(beyond(2), beyond(3));
                    }
                    program.interval_ns += later[0];
                }
                program.ends[0] += 1;
            }
        }
        program
    }
}

fn reloads(program: &Program) -> [Option<Estimate>; Before::COUNT] {
    let steady = estimate::steady(program, Of::Misses).unwrap();
    estimate::reloads(program, Of::Misses, Some(&steady)).unwrap().each
}

/// Within three times its 95 % interval, which chance hardly ever leaves.
fn near(estimate: &Estimate, truth: f64) -> bool {
    (estimate.value - truth).abs() <= 3.0 * (estimate.high - estimate.value)
}

fn report(program: Program) -> Report {
    let observed = Observed {
        elapsed: Duration::from_secs(1),
        cpus: 1,
        present: Present { cycles: true, instructions: true, misses: true },
        programs: [("known".to_owned(), program)].into(),
        ..Observed::default()
    };
    let options =
        Options { target: Target::Host, duration: None, each: Each::Program, counters_percent: 0.25 };
    Report::new(&options, &observed)
}

proptest! {
    #[test]
    fn a_known_reload_is_recovered(
        reload in 500.0..20_000.0f64,
        steady in 0.0005..0.01f64,
        switch in 0.0..500.0f64,
        long: bool,
        paired: bool,
        seed: u64,
    ) {
        let program = Known { reload, steady, switch, long, paired, ..KNOWN }.program(seed);
        let each = reloads(&program);
        prop_assert!(near(&each[Before::Others as usize].unwrap(), reload), "{each:?}");
        prop_assert!(near(&each[Before::MovedDomain as usize].unwrap(), 2.0 * reload), "{each:?}");
    }

    #[test]
    fn the_cost_of_a_miss_is_recovered(cycles_per_miss in 10.0..400.0f64, seed: u64) {
        let program = Known { cycles_per_miss, ..KNOWN }.program(seed);
        let parts: Vec<_> = program.parts().copied().collect();
        let cost = estimate::miss_cost(&parts).unwrap();
        prop_assert!(near(&cost, cycles_per_miss), "{cost:?}");
    }

    #[test]
    fn whatever_was_counted_is_reported_in_finite_numbers(
        parts in prop::collection::vec((0usize..6, 0usize..9, 0u64..1 << 32, 0u64..1 << 32, 0u64..1 << 32), 0..200),
    ) {
        let mut program = Program::default();
        for (before, later, instructions, misses, cycles) in parts {
            program.first[before].record([cycles, instructions, misses, cycles]);
            program.pairs[before].record(misses as i64 - instructions as i64, cycles as i64);
            program.befores[before] += 1;
            program.ends[before % 5] += 1;
            program.interval_ns += cycles;
            if let Some(sums) = program.later.get_mut(later) {
                sums.record([cycles, instructions, misses, cycles]);
            }
        }
        let json = serde_json::to_string(&report(program)).unwrap();
        // What is not a number becomes null, where a number is meant.
        prop_assert!(!json.contains("\"value\":null") && !json.contains("NaN"), "{json}");
    }
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    let held = (1..=400)
        .filter(|seed| {
            let each = reloads(&KNOWN.program(seed * 7_919));
            let others = each[Before::Others as usize].unwrap();
            others.low <= KNOWN.reload && KNOWN.reload <= others.high
        })
        .count();
    assert!((360..=396).contains(&held), "{held} of 400");
}

#[test]
fn programs_that_differ_in_themselves_are_told_by_pairs() {
    // Half of the tasks miss ten times as often in their steady state, and are disturbed more often.
    let calm = Known { count: 200, steady: 0.001, ..KNOWN }.program(3);
    let mut mixed = Known { count: 200, steady: 0.01, ..KNOWN }.program(5);
    for (mixed, calm) in mixed.pairs.iter_mut().zip(&calm.pairs) {
        mixed.count += calm.count;
        mixed.misses += calm.misses;
        mixed.misses_squared += calm.misses_squared;
    }
    let others = reloads(&mixed)[Before::Others as usize].unwrap();
    assert!(near(&others, KNOWN.reload), "{others:?}");
}

#[test]
fn short_intervals_are_not_charged_what_long_ones_reload() {
    let mut mixed = KNOWN.program(7);
    let short = Known { count: 5000, reload: 0.0, long: false, ..KNOWN }.program(11);
    mixed.whole = short.whole;
    for (all, more) in mixed.befores.iter_mut().zip(&short.befores) {
        *all += more;
    }
    let others = reloads(&mixed)[Before::Others as usize].unwrap();
    assert!(near(&others, KNOWN.reload / 11.0), "{others:?}");
}

#[test]
fn without_reload_the_ceiling_may_be_nothing() {
    let held = (1..=100)
        .filter(|seed| {
            let report = report(Known { reload: 0.0, ..KNOWN }.program(seed * 104_729));
            let ceiling = report.programs[0].counted.as_ref().unwrap().ceiling.unwrap();
            ceiling.low <= 0.0 && ceiling.high >= 0.0
        })
        .count();
    assert!(held >= 88, "{held} of 100");
}

#[test]
fn the_ceiling_is_the_time_of_reloads_over_all_time() {
    let program = KNOWN.program(1);
    let total: u64 = program.parts().map(|part| part.cycles).sum();
    let reloaded = KNOWN.count as f64 * 3.0 * KNOWN.reload * KNOWN.cycles_per_miss;
    let truth = 100.0 * reloaded / total as f64;
    let report = report(program);
    let counted = report.programs[0].counted.as_ref().unwrap();
    let ceiling = counted.ceiling.unwrap();
    let percent = ceiling.percent.unwrap();
    assert!((percent - truth).abs() <= 2.0 * (ceiling.high - percent), "{percent} for {truth}");
    assert!(near(&counted.ceiling_by_cycles_percent.unwrap(), truth));
    assert!(report.summary.contains("known took 100 % of the observed CPU time"));
}

#[test]
fn the_steady_state_is_taken_from_where_it_was_seen() {
    let baseline = |program: &Program| estimate::steady(program, Of::Misses).map(|steady| steady.baseline);
    let long = KNOWN.program(1);
    assert_eq!(baseline(&long), Some(Baseline::FromMs(1.048_576)));
    let short = Known { long: false, ..KNOWN }.program(1);
    assert_eq!(baseline(&short), Some(Baseline::Undisturbed));
    let mut disturbed = short.clone();
    disturbed.whole[Before::Same as usize] = Default::default();
    assert_eq!(baseline(&disturbed), None);
    disturbed.later[1] = long.later[5];
    assert_eq!(baseline(&disturbed), Some(Baseline::FromMs(0.131_072)));
}

#[test]
fn without_a_steady_state_only_the_upper_end_is_told() {
    let mut program = Known { long: false, ..KNOWN }.program(1);
    program.whole[Before::Same as usize] = Default::default();
    let report = report(program);
    let ceiling = report.programs[0].counted.as_ref().unwrap().ceiling.unwrap();
    assert_eq!((ceiling.percent, ceiling.low), (None, 0.0));
    assert!(ceiling.high > 10.0);
    assert!(report.summary.contains("no more than"), "{}", report.summary);
}

#[test]
fn nothing_observed_is_said() {
    assert_eq!(report(Program::default()).summary, "Nothing of what was to be observed ran.");
}
