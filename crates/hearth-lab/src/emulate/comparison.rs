//! The runs of one command under several schedulers, side by side.

use super::pairs::{self, PairsOf};
use super::summary::{CLOCK, MEASURES, PAIRED, PARTS, Summary};
use hearth_emulate::Run;
use hearth_report::measure::{self, Measure};
use hearth_report::{Figure, format};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One command on one machine under several schedulers. The first is what the others are compared with.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The machine's name.
    pub machine: String,
    /// The machine in a sentence.
    pub machine_description: String,
    /// The command.
    pub command: String,
    /// How many of it ran at once.
    pub copies: usize,
    /// Whether the caches were as an earlier run had left them.
    pub is_warm: bool,
    /// Whether the guest's clock moved by what its CPUs did.
    pub is_timed: bool,
    /// The seeds that were asked for.
    pub seeds: Vec<u64>,
    /// How many rounds each guest had, one for each seed; nothing if each run had a guest of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Whether runs are missing because of an interruption or a failure.
    pub partial: bool,
    /// The schedulers, as given; only those with a finished run.
    pub schedulers: Vec<SchedulerRuns>,
    /// Runs whose scheduler did not start, or was ended by the kernel: they have no figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<Ending>,
    /// With rounds: what pairs of the same round say of each scheduler but the first, and of the first once more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairsOf>,
}

/// How a scheduler ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// Its name.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
    /// The round of that guest.
    pub round: u32,
    /// What happened, and what it and the kernel said of it.
    pub what: String,
}

/// What was run under one scheduler.
#[derive(Debug, Serialize)]
pub struct SchedulerRuns {
    /// Its name.
    pub name: String,
    /// It in a sentence.
    pub description: String,
    /// Means over the seeds.
    pub summary: Summary,
    /// What the command measured itself, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, Figure>,
    /// The finished runs by seed; at least one.
    pub runs: Vec<Run>,
}

impl SchedulerRuns {
    /// The finished runs under a scheduler, by seed; `None` if there are none.
    pub fn new(name: &str, description: &str, runs: Vec<Run>) -> Option<Self> {
        let (summary, measures) = (Summary::of(&runs), own_measures(&runs));
        let (name, description) = (name.to_owned(), description.to_owned());
        (!runs.is_empty()).then_some(Self { name, description, summary, measures, runs })
    }
}

/// What the command measured itself, of the runs in which it did.
fn own_measures(runs: &[Run]) -> BTreeMap<String, Figure> {
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.measures.keys()).collect();
    let figure = |name: &str| Figure::of(runs.iter().filter_map(|run| run.measures.get(name).copied()));
    names.into_iter().map(|name| (name.clone(), figure(name))).collect()
}

/// Whether more is better of what a command measured itself: of rates.
pub fn is_rate(measure: &str) -> bool {
    measure.ends_with("_per_s")
}

impl Comparison {
    /// [`MEASURES`] as they are shown: the time first, where the guest's clock tells it.
    pub fn measures(&self) -> [Measure<Summary>; MEASURES.len()] {
        let mut measures = MEASURES;
        if self.is_timed {
            measures[..=CLOCK].rotate_right(1);
            measures[0] = Measure { name: "elapsed", ..measures[0] }.with_change();
        }
        measures
    }

    /// What is compared pair by pair: the guest's clock where it tells time, CPU time, misses.
    pub fn paired(&self) -> impl Iterator<Item = Measure<Summary>> {
        let is_timed = self.is_timed;
        let is_shown = move |of: &Measure<Summary>| {
            PAIRED.contains(&of.key) && (is_timed || of.key != MEASURES[CLOCK].key)
        };
        self.measures().into_iter().filter(is_shown)
    }

    /// Where a scheduler ended, in words.
    pub fn turn_of(&self, ending: &Ending) -> String {
        let round = self.rounds.map_or_else(String::new, |_| format!(", round {}", ending.round));
        format!("Seed {}{round}", ending.seed)
    }

    /// Names of what the command measured itself, under any scheduler.
    pub fn own_measures(&self) -> BTreeSet<&str> {
        self.schedulers.iter().flat_map(|runs| runs.measures.keys()).map(String::as_str).collect()
    }

    /// The columns of [`rows`](Self::rows).
    pub fn header(&self) -> Vec<String> {
        let of_run = ["machine", "command", "copies", "scheduler", "seed", "round"].map(str::to_owned);
        let own = self.own_measures().into_iter().map(str::to_owned);
        of_run.into_iter().chain(measure::header(&MEASURES, &PARTS)).chain(own).collect()
    }

    /// A row for each run: what it was, what a summary has, and what the command measured itself, if it did.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let names = self.own_measures();
        let of_run = |name: &str, run: &Run| -> Vec<String> {
            let about = [&self.machine, &self.command, &self.copies.to_string(), name, &run.seed.to_string()];
            let about = about.map(str::to_owned).into_iter().chain([run.round.to_string()]);
            let summary = Summary::of(std::slice::from_ref(run));
            let own = |name: &&str| run.measures.get(*name).map_or_else(String::new, f64::to_string);
            about.chain(measure::row(&MEASURES, &PARTS, &summary)).chain(names.iter().map(own)).collect()
        };
        let of_all = |of: &SchedulerRuns| of.runs.iter().map(|run| of_run(&of.name, run)).collect::<Vec<_>>();
        self.schedulers.iter().flat_map(of_all).collect()
    }

    /// The scheduler that the others are compared with.
    pub fn base(&self) -> Option<&SchedulerRuns> {
        self.schedulers.first()
    }

    /// The command with the machine.
    pub fn title(&self) -> String {
        let copies = if self.copies > 1 { format!("{} copies of ", self.copies) } else { String::new() };
        let caches = if self.is_warm { ", caches warm" } else { "" };
        format!("{copies}{} on {}{caches}", self.command, self.machine)
    }

    /// What counts most: how long it all takes where the guest's clock can tell, or else CPU time; in ms.
    pub fn headline(&self) -> fn(&Summary) -> Figure {
        if self.is_timed { |is| is.guest_ms } else { |is| is.cpu_ms }
    }

    /// What came out, in a sentence.
    pub fn sentence(&self) -> String {
        let Some(base) = self.base() else { return format!("No run of {} was finished.", self.title()) };
        if let Some(said) = pairs::sentence(&base.name, &self.pairs, self.is_timed) {
            return said;
        }
        let (headline, what) = (self.headline(), if self.is_timed { "ms" } else { "ms of CPU time" });
        let mean_ms = |runs: &SchedulerRuns| headline(&runs.summary).mean;
        let said = |runs: &SchedulerRuns| format!("{} {what}", format::significant(mean_ms(runs)));
        let best = self.schedulers.iter().skip(1).min_by(|a, b| mean_ms(a).total_cmp(&mean_ms(b)));
        let Some(best) = best else { return format!("{} takes {}.", base.name, said(base)) };
        let change = format::change(headline(&best.summary).change_percent(&headline(&base.summary)));
        let misses = format::change(best.summary.misses.change_percent(&base.summary.misses));
        if mean_ms(best) < mean_ms(base) {
            return format!(
                "{} takes {} against {} under {} ({change}; misses {misses}).",
                best.name,
                said(best),
                format::significant(mean_ms(base)),
                base.name
            );
        }
        format!(
            "No other scheduler takes less than {}, {}: {} comes nearest with {} ({change}; misses {misses}).",
            base.name,
            said(base),
            best.name,
            format::significant(mean_ms(best))
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use hearth_emulate::counts::{Causes, Counts, Region, Task};

    /// A run of 1 GHz with a program, a thread of the kernel and the idle task.
    pub fn run(scheduler: &str, seed: u64, million_instructions: u64, million_misses: u64) -> Run {
        let causes = Causes { first_touch: 1_000_000 * million_misses, ..Causes::default() };
        let counts = Counts {
            instructions: 1_000_000 * million_instructions,
            memory_remote: 1_000_000 * million_misses,
            causes,
            ..Counts::default()
        };
        let kernel = Counts { instructions: 1_000_000, ..Counts::default() };
        let task = |pid: u32, comm: &str| Task { pid, comm: comm.into(), kernel, ..Task::default() };
        let sort = Task { user: counts, switches: 3, cpu_moves: 2, ..task(7, "sort") };
        let region = Region {
            name: "command".into(),
            guest_ns: 5_000_000,
            is_ended: true,
            cpus: vec![counts, kernel],
            tasks: vec![task(0, "idle"), sort, task(9, "kworker/0:1")],
        };
        Run {
            scheduler: scheduler.into(),
            seed,
            round: 1,
            cycle_ps: 1000,
            frames: seed.to_string(),
            scheduler_said: Vec::new(),
            measures: [("requests_per_s".to_owned(), million_instructions as f64)].into(),
            region,
        }
    }

    pub fn comparison(schedulers: &[(&str, &[(u64, u64)])]) -> Comparison {
        let runs = |(name, runs): &(&str, &[(u64, u64)])| {
            let runs = runs
                .iter()
                .zip(1..)
                .map(|(&(instructions, misses), seed)| run(name, seed, instructions, misses));
            SchedulerRuns::new(name, "a scheduler", runs.collect()).unwrap()
        };
        Comparison {
            machine: "m".into(),
            machine_description: "A machine".into(),
            command: "sort f".into(),
            copies: 1,
            is_warm: false,
            is_timed: false,
            seeds: (1..=schedulers[0].1.len() as u64).collect(),
            partial: false,
            endings: Vec::new(),
            rounds: None,
            pairs: Vec::new(),
            schedulers: schedulers.iter().map(runs).collect(),
        }
    }

    #[test]
    fn the_idle_task_costs_nothing_and_the_kernels_threads_do() {
        let comparison = comparison(&[("kernel", &[(8, 1), (18, 3)])]);
        let summary = &comparison.base().unwrap().summary;
        assert_eq!(summary.cpu_ms, Figure { mean: 15.0, low: 10.0, high: 20.0 });
        assert_eq!(summary.kernel_percent.low, 10.0);
        assert_eq!(summary.busiest_ms.high, 18.0);
        assert_eq!((summary.misses.mean, summary.causes[0].mean), (2e6, 2e6));
        assert_eq!((summary.served[5].mean, summary.moves.switches.mean), (2e6, 3.0));
    }

    #[test]
    fn where_the_guests_clock_tells_time_that_counts_most() {
        let mut timed = comparison(&[("kernel", &[(98, 2)]), ("a", &[(108, 2)])]);
        timed.is_timed = true;
        timed.schedulers[1].summary.guest_ms = Figure { mean: 4.0, low: 4.0, high: 4.0 };
        assert_eq!(timed.sentence(), "a takes 4.00 ms against 5.00 under kernel (-20.0 %; misses 0.0 %).");
    }

    #[test]
    fn the_sentence_names_the_best_and_what_it_is_compared_with() {
        let better = comparison(&[("kernel", &[(98, 2)]), ("a", &[(78, 1)]), ("b", &[(88, 1)])]);
        assert_eq!(
            better.sentence(),
            "a takes 80.0 ms of CPU time against 100 under kernel (-20.0 %; misses -50.0 %)."
        );
        let worse = comparison(&[("kernel", &[(98, 2)]), ("a", &[(108, 2)])]);
        assert_eq!(
            worse.sentence(),
            "No other scheduler takes less than kernel, 100 ms of CPU time: a comes nearest with 110 \
             (+10.0 %; misses 0.0 %)."
        );
        assert_eq!(comparison(&[("kernel", &[(98, 2)])]).sentence(), "kernel takes 100 ms of CPU time.");
    }

    #[test]
    fn csv_has_a_row_for_each_run_and_what_a_command_measured_itself() {
        let mut comparison = comparison(&[("kernel", &[(98, 2), (99, 2)]), ("a", &[(78, 1)])]);
        comparison.schedulers[1].runs[0].measures.clear();
        let (header, rows) = (comparison.header(), comparison.rows());
        assert!(rows.iter().all(|row| row.len() == header.len()));
        let column = |name: &str| -> Vec<&str> {
            let at = header.iter().position(|column| column == name).unwrap();
            rows.iter().map(|row| row[at].as_str()).collect()
        };
        assert_eq!(column("scheduler"), ["kernel", "kernel", "a"]);
        assert_eq!(column("seed"), ["1", "2", "1"]);
        assert_eq!(column("cpu_ms"), ["100", "101", "80"]);
        assert_eq!(column("requests_per_s"), ["98", "99", ""]);
    }
}
