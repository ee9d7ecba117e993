//! Counters as they were recorded, in the place of a CPU's: what acts on them can be tried anywhere.

use super::Counter;
use hearth_policy::Snapshot;
use hearth_policy::isolation::Counting;
use hearth_policy::snapshot::{Class, Run, Task};
use std::collections::BTreeMap;
use std::path::Path;

/// Cycles in a nanosecond of CPU time.
const CYCLES_PER_NS: u64 = 3;

/// The longest run, in CPU time.
const RUN_NS: u64 = 20_000_000;

/// Runs in a file: a line for each, with instructions, own misses, and misses of one co-runner for each thousand
/// cycles. Cache-fair tasks do what it says, one line after the other and again from the first, as long as
/// they run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    lines: Vec<[f64; 3]>,
}

impl Recorded {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(at, line): (usize, &str)| {
            let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
            let numbers = numbers.ok().and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
            let numbers = numbers.filter(|all| all.iter().all(|one| (0.0..=4000.0).contains(one)));
            numbers.ok_or_else(|| format!("line {}: three numbers from 0 to 4000 are wanted", at + 1))
        };
        let lines: Vec<[f64; 3]> = lines.map(read).collect::<Result<_, _>>()?;
        if lines.is_empty() { Err("it has no line".into()) } else { Ok(Self { lines }) }
    }
}

impl Counter for Recorded {
    fn begin(&self) -> Result<Box<dyn Counting>, String> {
        Ok(Box::new(Replay { lines: self.lines.clone(), next: 0, ran_ns: BTreeMap::new() }))
    }
}

struct Replay {
    lines: Vec<[f64; 3]>,
    next: usize,
    /// CPU time of each task when it was last looked at.
    ran_ns: BTreeMap<i32, u64>,
}

impl Counting for Replay {
    fn runs(&mut self, snapshot: &Snapshot) -> Result<Vec<Run>, String> {
        let before = std::mem::take(&mut self.ran_ns);
        let mut runs = Vec::new();
        for task in &snapshot.tasks {
            if snapshot.classes.get(&task.group) != Some(&Class::CacheFair) {
                continue;
            }
            self.ran_ns.insert(task.tid, task.ran_ns);
            let mut left_ns = task.ran_ns.saturating_sub(*before.get(&task.tid).unwrap_or(&task.ran_ns));
            while left_ns > 0 {
                let ns = left_ns.min(RUN_NS);
                left_ns -= ns;
                runs.push(self.run(task, ns * CYCLES_PER_NS));
            }
        }
        Ok(runs)
    }
}

impl Replay {
    fn run(&mut self, task: &Task, cycles: u64) -> Run {
        let [instructions, misses, others_misses] = self.lines[self.next % self.lines.len()];
        self.next += 1;
        let part = |per_thousand: f64| (per_thousand * cycles as f64 / 1e3) as u64;
        Run {
            tid: task.tid,
            group: task.group,
            cpu: task.cpu,
            cycles,
            instructions: part(instructions),
            misses: part(misses),
            transfers: part(misses),
            others_misses: part(others_misses),
            others_transfers: part(others_misses),
            others: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_does_what_was_recorded_for_as_long_as_it_runs() {
        let recorded = Recorded::parse("500 10 20\n\n400 12 40\n").unwrap();
        let mut counting = recorded.begin().unwrap();
        let mut of = |ran_ns| {
            let mut snapshot = Snapshot::default();
            snapshot.classes.insert(1, Class::CacheFair);
            snapshot.add(Task { tid: 7, group: 1, ran_ns, ..Task::default() });
            snapshot.add(Task { tid: 8, group: 2, ran_ns, ..Task::default() });
            counting.runs(&snapshot).unwrap()
        };
        assert_eq!(of(1000), []);
        let first = of(2000)[0];
        assert_eq!((first.tid, first.cycles, first.instructions), (7, 3000, 1500));
        assert_eq!((first.misses, first.others_misses), (30, 60));
        assert_eq!(of(2000), []);
        assert_eq!(of(3000)[0].instructions, 1200);
        assert_eq!(of(4000)[0].instructions, 1500);
    }

    #[test]
    fn what_is_no_recording_is_told() {
        for (text, wanted) in
            [("", "no line"), ("1 2", "line 1"), ("1 2 3\n1 2 -3", "line 2"), ("a b c", "line 1")]
        {
            assert!(Recorded::parse(text).unwrap_err().contains(wanted), "{text}");
        }
    }
}
