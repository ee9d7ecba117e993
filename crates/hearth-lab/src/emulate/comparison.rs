//! The runs of one command under several schedulers, side by side.

use super::pairs::{self, PairsOf};
use hearth_emulate::Run;
use hearth_emulate::counts::{Causes, Counts, Task};
use hearth_report::bars::CAUSES;
use hearth_report::measure::{self, Measure, Moves, Parts};
use hearth_report::{Figure, format};
use serde::{Serialize, Serializer};
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

/// The figures that are compared, as [`MEASURES`] says: of all tasks but the idle ones. Parts are in the order of
/// [`PARTS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub cpu_ms: Figure,
    pub kernel_percent: Figure,
    pub busiest_ms: Figure,
    pub guest_ms: Figure,
    pub instructions: Figure,
    pub first_level_misses: Figure,
    pub served: [Figure; 6],
    pub misses: Figure,
    pub causes: [Figure; 5],
    pub moves: Moves,
}

/// Of [`MEASURES`], what is compared pair by pair.
pub const PAIRED: [&str; 3] = ["guest_ms", "cpu_ms", "misses"];

/// The place of the guest's clock among [`MEASURES`].
const CLOCK: usize = 3;

type Of = Measure<Summary>;

const MOVES: [Of; 4] = measure::of_moves();

/// What a summary has.
pub const MEASURES: [Measure<Summary>; 11] = [
    Of::of_unit(
        "cpu_ms",
        "CPU time",
        "ms",
        "of all tasks but the idle ones: a cycle of the machine for each instruction, what each reference takes \
         beyond a first-level hit, and 40 cycles for a `PAUSE`, by which programs wait in loops",
        |is| is.cpu_ms,
    )
    .with_change(),
    Measure {
        show: format::tenths,
        ..Of::of_unit(
            "kernel_percent",
            "kernel",
            "%",
            "what part of it was in the kernel: system calls, page faults, interrupts, scheduling",
            |is| is.kernel_percent,
        )
    },
    Of::of_unit(
        "busiest_ms",
        "busiest CPU",
        "ms",
        "the CPU time of the CPU that had most: on the machine the command takes no less",
        |is| is.busiest_ms,
    ),
    Of::of_unit(
        "guest_ms",
        "guest's clock",
        "ms",
        "how far the guest's own clock moved; with `--timed` that is the machine's time, called *elapsed*, and the \
         first column",
        |is| is.guest_ms,
    ),
    Measure {
        show: format::millions,
        ..Of::of_unit("instructions", "instructions", "M", "of programs and the kernel", |is| is.instructions)
    },
    Measure {
        show: format::millions,
        ..Of::of_unit(
            "first_level_misses",
            "first level misses",
            "M",
            "references that the first level did not have, fetches among them; in parts, by who `served` them",
            |is| is.first_level_misses,
        )
    },
    Measure {
        show: format::millions,
        ..Of::of_unit(
            "misses",
            "misses",
            "M",
            "references that no cache of the CPU had; in parts, by their [`causes`](measures.md#causes-of-misses). \
             JSON has single ones",
            |is| is.misses,
        )
    }
    .with_change(),
    MOVES[0],
    MOVES[1],
    MOVES[2],
    MOVES[3],
];

/// Of [`MEASURES`] those that are sums.
pub const PARTS: [Parts<Summary>; 2] = [
    Parts {
        key: "served",
        of: "first_level_misses",
        title: "Misses of the first level by who served them, M",
        names: &SERVED,
        figures: |is| &is.served,
    },
    Parts {
        key: "causes",
        of: "misses",
        title: "Misses of all the CPUs' caches by cause, M",
        names: &CAUSES,
        figures: |is| &is.causes,
    },
];

impl AsRef<Moves> for Summary {
    fn as_ref(&self) -> &Moves {
        &self.moves
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        measure::serialize(&MEASURES, &PARTS, self, serializer)
    }
}

/// Who served a reference that the first level did not have.
pub const SERVED: [&str; 6] = [
    "second level",
    "last level",
    "cache, same node",
    "cache, other node",
    "memory, same node",
    "memory, other node",
];

/// The CPU time of a task, in ms.
pub fn cpu_ms(task: &Task, cycle_ps: u64) -> f64 {
    ms(task.total().time_ps(cycle_ps))
}

/// What part of it was in the kernel.
pub fn kernel_percent(task: &Task, cycle_ps: u64) -> f64 {
    match task.total().time_ps(cycle_ps) {
        0 => 0.0,
        all => task.kernel.time_ps(cycle_ps) as f64 / all as f64 * 100.0,
    }
}

fn ms(ps: u64) -> f64 {
    ps as f64 / 1e9
}

/// Whether a task is the one that runs where there is none.
pub fn is_idle(task: &Task) -> bool {
    task.pid == 0
}

fn served(counts: &Counts) -> [u64; 6] {
    let Counts { l2_hits, llc_hits, cache_local, cache_remote, memory_local, memory_remote, .. } = *counts;
    [l2_hits, llc_hits, cache_local, cache_remote, memory_local, memory_remote]
}

fn causes(causes: &Causes) -> [u64; 5] {
    [causes.first_touch, causes.own, causes.other, causes.coherence, causes.moved]
}

impl Summary {
    /// Of one run, or means of several.
    pub fn of(runs: &[Run]) -> Self {
        let totals: Vec<(u64, Task)> = runs
            .iter()
            .map(|run| (run.cycle_ps, Task::sum(run.region.tasks.iter().filter(|task| !is_idle(task)))))
            .collect();
        let of_total = |measure: &dyn Fn(u64, &Task) -> f64| {
            Figure::of(totals.iter().map(|(cycle_ps, total)| measure(*cycle_ps, total)))
        };
        let count = |measure: &dyn Fn(&Counts) -> u64| of_total(&|_, total| measure(&total.total()) as f64);
        Self {
            cpu_ms: of_total(&|cycle_ps, total| cpu_ms(total, cycle_ps)),
            kernel_percent: of_total(&|cycle_ps, total| kernel_percent(total, cycle_ps)),
            busiest_ms: Figure::of(runs.iter().map(busiest_ms)),
            guest_ms: Figure::of(runs.iter().map(|run| run.region.guest_ns as f64 / 1e6)),
            instructions: count(&|counts| counts.instructions),
            first_level_misses: count(&|counts| counts.l1d_misses + counts.l1i_misses),
            served: std::array::from_fn(|place| count(&|counts| served(counts)[place])),
            misses: count(&Counts::llc_misses),
            causes: std::array::from_fn(|cause| count(&|counts| causes(&counts.causes)[cause])),
            moves: Moves {
                switches: of_total(&|_, total| total.switches as f64),
                cpu: of_total(&|_, total| total.cpu_moves as f64),
                domain: of_total(&|_, total| total.domain_moves as f64),
                node: of_total(&|_, total| total.node_moves as f64),
            },
        }
    }
}

fn busiest_ms(run: &Run) -> f64 {
    run.region.cpus.iter().map(|cpu| ms(cpu.time_ps(run.cycle_ps))).fold(0.0, f64::max)
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
        let is_shown = move |of: &Of| PAIRED.contains(&of.key) && (is_timed || of.key != MEASURES[CLOCK].key);
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
    use hearth_emulate::counts::Region;

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
