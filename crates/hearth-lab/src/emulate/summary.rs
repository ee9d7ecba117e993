//! The figures that are compared: of one run, or means of several.

use hearth_emulate::Run;
use hearth_emulate::counts::{Causes, Counts, Task};
use hearth_report::bars::CAUSES;
use hearth_report::measure::{self, Measure, Moves, Parts};
use hearth_report::{Figure, format};
use serde::{Serialize, Serializer};

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
pub const CLOCK: usize = 3;

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
