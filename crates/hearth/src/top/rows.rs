//! Two looks at the machine, and what happened in between.

use hearth_host::threads::{Sample, ThreadState};
pub use hearth_host::ticks::Busy;
use hearth_host::ticks::Ticks;
use hearth_linux::daemon::Status;
use hearth_linux::{CpuStats, Task};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// What one thread did in between.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Its number.
    pub tid: i32,
    /// Its program's name.
    pub name: String,
    /// Where it runs, or ran last.
    pub cpu: usize,
    /// Where it was seen before it came there.
    pub from: Option<usize>,
    /// How often it moved.
    pub moves: Moves,
    /// How often it went on by its credit, since the task began.
    pub by_credit: Option<u64>,
    /// Times a second that it was given a CPU.
    pub switches: f64,
    /// Mean time that it kept a CPU.
    pub slice_ms: Option<f64>,
    /// Share of a CPU that it had.
    pub share: f64,
    /// Share of the time for which it waited for a CPU.
    pub waiting: f64,
}

/// How often a task moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// How often it was seen on another CPU than at the look before, since `top` began.
    Seen(u64),
    /// What the scheduler counted since the task began: inside a cache domain, inside a node, between
    /// nodes.
    Counted([u64; 3]),
}

impl Moves {
    /// In all.
    pub fn sum(&self) -> u64 {
        match self {
            Moves::Seen(count) => *count,
            Moves::Counted(counts) => counts.iter().sum(),
        }
    }
}

impl fmt::Display for Moves {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moves::Seen(count) => write!(out, "{count}"),
            Moves::Counted([domain, node, far]) => write!(out, "{domain}/{node}/{far}"),
        }
    }
}

/// What a CPU, or all of a cache or a node, did in between.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceRow {
    /// Which it is.
    pub name: String,
    /// Its CPUs.
    pub cpus: Vec<usize>,
    /// The part of the time for which they were in use, and for which a hypervisor had taken them, if that is known.
    pub busy: Option<Busy>,
    /// The thread that had most of it, and where that came from.
    pub runs: Option<TaskRow>,
    /// What its looks for a next task led to in a second, if Hearth runs.
    pub rates: Option<[f64; 8]>,
}

/// Where threads were seen, over all looks.
#[derive(Debug, Default)]
pub struct History(HashMap<i32, Seen>);

#[derive(Debug)]
struct Seen {
    cpu: usize,
    from: Option<usize>,
    moves: u64,
}

impl History {
    /// Takes note of where threads are.
    pub fn note(&mut self, sample: &Sample) {
        self.0.retain(|tid, _| sample.threads.contains_key(tid));
        for (&tid, thread) in &sample.threads {
            let seen = self.0.entry(tid).or_insert(Seen { cpu: thread.cpu, from: None, moves: 0 });
            if seen.cpu != thread.cpu {
                *seen = Seen { cpu: thread.cpu, from: Some(seen.cpu), moves: seen.moves + 1 };
            }
        }
    }
}

/// The threads that ran in between, the busiest first.
pub fn tasks(before: &Sample, after: &Sample, history: &History) -> Vec<TaskRow> {
    let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
    let mut rows: Vec<TaskRow> = after
        .threads
        .iter()
        .filter_map(|(&tid, now)| {
            let ran = |then: &ThreadState| now.ran_ns.saturating_sub(then.ran_ns);
            let then = before.threads.get(&tid);
            let ran_ns = then.map_or(now.ran_ns, ran);
            let slices = now.slices.saturating_sub(then.map_or(0, |then| then.slices));
            let waited_ns = now.waited_ns.saturating_sub(then.map_or(0, |then| then.waited_ns));
            let seen = history.0.get(&tid);
            (ran_ns > 0).then(|| TaskRow {
                tid,
                name: now.name.clone(),
                cpu: now.cpu,
                from: seen.and_then(|seen| seen.from),
                moves: Moves::Seen(seen.map_or(0, |seen| seen.moves)),
                by_credit: None,
                switches: slices as f64 / seconds,
                slice_ms: (slices > 0).then(|| ran_ns as f64 / 1e6 / slices as f64),
                share: ran_ns as f64 / 1e9 / seconds,
                waiting: waited_ns as f64 / 1e9 / seconds,
            })
        })
        .collect();
    rows.sort_by(|one, other| other.share.total_cmp(&one.share).then(one.tid.cmp(&other.tid)));
    rows
}

/// Puts in what the scheduler remembers of tasks, which knows each move.
pub fn refine(rows: &mut [TaskRow], known: &[Task]) {
    let known: HashMap<i32, &Task> = known.iter().map(|task| (task.tid, task)).collect();
    for row in rows {
        let Some(task) = known.get(&row.tid) else { continue };
        row.moves = Moves::Counted(task.moves);
        row.by_credit = Some(task.by_credit);
        row.from = task.previous_cpu.and_then(|cpu| usize::try_from(cpu).ok());
    }
}

/// Each CPU: what ran there most, and how often it found its next task where.
pub fn cpus(
    tasks: &[TaskRow],
    ticks: [&Ticks; 2],
    before: Option<&Status>,
    after: Option<&Status>,
) -> Vec<PlaceRow> {
    let mut rows: BTreeMap<usize, PlaceRow> = BTreeMap::new();
    let row = |cpu: usize| PlaceRow { name: cpu.to_string(), cpus: vec![cpu], ..PlaceRow::default() };
    for (cpu, busy) in ticks[1].since(ticks[0]) {
        rows.entry(cpu).or_insert_with(|| row(cpu)).busy = Some(busy);
    }
    for task in tasks {
        // The busiest comes first.
        rows.entry(task.cpu).or_insert_with(|| row(task.cpu)).runs.get_or_insert_with(|| task.clone());
    }
    let Some(after) = after else { return rows.into_values().collect() };
    // Another daemon, or the scheduler loaded again: counts began anew.
    let before = before.filter(|before| before.pid == after.pid && before.up_s < after.up_s);
    let seconds = after.up_s - before.map_or(0.0, |before| before.up_s);
    for cpu in &after.cpus {
        let earlier = before.and_then(|before| before.cpus.iter().find(|other| other.cpu == cpu.cpu));
        let earlier = earlier.map_or_else(CpuStats::default, |earlier| earlier.stats);
        let pairs = fields(&cpu.stats).into_iter().zip(fields(&earlier));
        let mut rates = [0.0; 8];
        for (rate, (now, then)) in rates.iter_mut().zip(pairs) {
            *rate = now.saturating_sub(then) as f64 / seconds.max(1e-9);
        }
        rows.entry(cpu.cpu).or_insert_with(|| row(cpu.cpu)).rates = Some(rates);
    }
    rows.into_values().collect()
}

/// CPUs put together: of each place its name and its CPUs. A place without a row is left out.
pub fn together(cpus: &[PlaceRow], places: &[(String, Vec<usize>)]) -> Vec<PlaceRow> {
    let place = |(name, of): &(String, Vec<usize>)| {
        let rows: Vec<&PlaceRow> =
            cpus.iter().filter(|row| row.cpus.iter().any(|cpu| of.contains(cpu))).collect();
        let known: Vec<Busy> = rows.iter().filter_map(|row| row.busy).collect();
        let mean = |part: fn(&Busy) -> f64| known.iter().map(part).sum::<f64>() / known.len() as f64;
        let rates: Vec<[f64; 8]> = rows.iter().filter_map(|row| row.rates).collect();
        let sum = |index: usize| rates.iter().map(|rates| rates[index]).sum();
        let busiest =
            rows.iter().filter_map(|row| row.runs.as_ref()).max_by(|a, b| a.share.total_cmp(&b.share));
        (!rows.is_empty()).then(|| PlaceRow {
            name: name.clone(),
            cpus: of.clone(),
            busy: (!known.is_empty())
                .then(|| Busy { busy: mean(|is| is.busy), stolen: mean(|is| is.stolen) }),
            runs: busiest.cloned(),
            rates: (!rates.is_empty()).then(|| std::array::from_fn(sum)),
        })
    };
    places.iter().filter_map(place).collect()
}

/// The names of the rates, in their order.
pub const RATES: [&str; 8] = ["kept", "own", "domain", "foreign", "idle", "direct", "preempt", "late"];

fn fields(stats: &CpuStats) -> [u64; 8] {
    let CpuStats { kept, own, domain, foreign, direct, preempted, idle, late, .. } = *stats;
    [kept, own, domain, foreign, idle, direct, preempted, late]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn thread(name: &str, cpu: usize, ran_ms: u64, slices: u64) -> ThreadState {
        ThreadState {
            name: name.into(),
            pid: 1,
            cpu,
            runnable: true,
            fair: true,
            ran_ns: ran_ms * 1_000_000,
            waited_ns: 0,
            slices,
        }
    }

    fn samples() -> (Sample, Sample) {
        let at = Instant::now();
        let before = HashMap::from([(1, thread("a", 0, 100, 1)), (2, thread("b", 1, 100, 1))]);
        let after = HashMap::from([
            (1, thread("a", 3, 600, 6)),
            (2, thread("b", 1, 100, 1)),
            (3, thread("new", 3, 10, 1)),
        ]);
        (Sample { at, threads: before }, Sample { at: at + Duration::from_secs(2), threads: after })
    }

    #[test]
    fn a_task_s_row_tells_its_share_its_slices_and_where_it_came_from() {
        let (before, after) = samples();
        let mut history = History::default();
        history.note(&before);
        history.note(&after);
        let rows = tasks(&before, &after, &history);
        assert_eq!(rows.iter().map(|row| row.tid).collect::<Vec<_>>(), [1, 3], "the idle one is left out");
        let busy = &rows[0];
        assert_eq!((busy.cpu, busy.from, busy.moves), (3, Some(0), Moves::Seen(1)));
        assert_eq!((busy.share, busy.switches, busy.slice_ms), (0.25, 2.5, Some(100.0)));
    }

    #[test]
    fn what_the_scheduler_counted_takes_the_place_of_what_was_seen() {
        let (before, after) = samples();
        let mut rows = tasks(&before, &after, &History::default());
        let known = serde_json::json!({
            "tid": 1, "usage_ns": 5, "runs": 9, "moves": [4, 2, 1], "by_credit": 6, "last_cpu": 3, "previous_cpu": 2, "queue": null,
            "plan": {"sequence": 0, "home": null, "part": null, "slice_permille": 1000},
        });
        refine(&mut rows, &[serde_json::from_value(known).unwrap()]);
        assert_eq!((rows[0].from, rows[0].moves.to_string()), (Some(2), "4/2/1".into()));
        assert_eq!(rows[0].by_credit, Some(6));
        assert_eq!(rows[1].moves, Moves::Seen(0), "not Hearth's");
    }

    #[test]
    fn a_cpu_s_row_names_the_busiest_and_counts_begin_anew_with_another_daemon() {
        let (before, after) = samples();
        let mut history = History::default();
        history.note(&after);
        let tasks = tasks(&before, &after, &history);
        let status = |pid: u32, up_s: f64, kept: u64| -> Status {
            let text = serde_json::json!({
                "schema": 1, "version": "1", "pid": pid, "policy": "fair", "only": null, "up_s": up_s,
                "cpus": [{"cpu": 3, "kept": kept, "own": 0, "domain": 0, "foreign": 0, "direct": 0,
                          "preempted": 0, "idle": 0}],
            });
            serde_json::from_value(text).unwrap()
        };
        let never = Ticks::default();
        let none = [&never; 2];
        let rows = cpus(&tasks, none, Some(&status(5, 1.0, 10)), Some(&status(5, 3.0, 30)));
        assert_eq!(rows[0].runs.as_ref().map(|task| task.name.as_str()), Some("a"));
        assert_eq!(rows[0].rates.unwrap()[0], 10.0);
        let rows = cpus(&tasks, none, Some(&status(4, 1.0, 10)), Some(&status(5, 3.0, 30)));
        assert_eq!(rows[0].rates.unwrap()[0], 10.0, "30 in 3 s");
        assert_eq!(cpus(&tasks, none, None, None)[0].rates, None);
    }

    #[test]
    fn a_cache_is_as_busy_as_its_cpus_in_the_mean_and_looks_as_often_as_all_of_them() {
        let cpu = |cpu: usize, busy: f64, rate: f64| PlaceRow {
            name: cpu.to_string(),
            cpus: vec![cpu],
            busy: Some(Busy { busy, stolen: busy / 2.0 }),
            runs: None,
            rates: Some([rate; 8]),
        };
        let cpus = [cpu(0, 0.5, 3.0), cpu(1, 1.0, 4.0), cpu(2, 0.0, 5.0)];
        let rows = together(&cpus, &[("0-1".into(), vec![0, 1]), ("3".into(), vec![3])]);
        assert_eq!(rows.len(), 1, "nothing is known of CPU 3");
        assert_eq!(rows[0].busy, Some(Busy { busy: 0.75, stolen: 0.375 }));
        assert_eq!(rows[0].rates, Some([7.0; 8]));
    }
}
