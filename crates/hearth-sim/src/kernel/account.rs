//! Keeping account: dispatch intervals, effective time slices, moves and idle time.

use crate::measure::{ApplicationResult, PagesAt, Parallel, RunResult, Sample, Stretch, Tally, TaskInfo};
use crate::program::{End, TaskId};
use hearth_abi::native::CpuStats;
use hearth_hardware::{Counters, MissLog, Port};
use hearth_machine::Machine;

/// A CPU's clock and counts when an interval begins.
#[derive(Clone, Copy)]
pub(crate) struct Begin {
    ps: u64,
    counters: Counters,
}

impl Begin {
    pub(crate) fn at(port: &Port) -> Self {
        Self { ps: port.now_ps(), counters: port.counters() }
    }

    /// The time and counts since an earlier one on the same CPU.
    pub(crate) fn since(self, earlier: Self) -> (u64, Counters) {
        (self.ps.saturating_sub(earlier.ps), self.counters - earlier.counters)
    }
}

/// The interval that runs on a CPU, and the effective slice that it belongs to.
#[derive(Clone, Copy, Default)]
struct Running {
    task: Option<TaskId>,
    moved: bool,
    interval_start_ps: u64,
    interval_counters: Counters,
    slice_ps: u64,
    slice_misses: u64,
    /// Where the time without a pause began, and which entry of the timeline it has once an interval
    /// of it has ended.
    stretch_start_ps: u64,
    stretch: Option<usize>,
    idle_ps: u64,
}

/// Everything counted in a run.
pub(crate) struct Account {
    running: Vec<Running>,
    tallies: Vec<Tally>,
    names: Vec<String>,
    started_ps: Vec<u64>,
    ended_ps: Vec<u64>,
    /// By application: the node where it last ran, and when it went to another one.
    places: Vec<(Option<usize>, Vec<u64>)>,
    /// By application: its parallel sections so far, and the begin of the one under way.
    parallel: Vec<(Option<Parallel>, Option<Begin>)>,
    /// By application: whether it runs until all others have ended.
    is_background: Vec<bool>,
    tasks: Vec<TaskInfo>,
    /// CPU time by task.
    cpu_ns: Vec<u64>,
    samples: Vec<Sample>,
    timeline: Option<Vec<Stretch>>,
    domain_of: Vec<usize>,
    node_of: Vec<usize>,
}

impl Account {
    pub(crate) fn new(machine: &Machine) -> Self {
        let cpus = machine.cpus();
        Self {
            running: vec![Running::default(); cpus],
            tallies: Vec::new(),
            names: Vec::new(),
            started_ps: Vec::new(),
            places: Vec::new(),
            ended_ps: Vec::new(),
            parallel: Vec::new(),
            is_background: Vec::new(),
            tasks: Vec::new(),
            cpu_ns: Vec::new(),
            samples: Vec::new(),
            timeline: None,
            domain_of: (0..cpus).map(|cpu| cpu / machine.domain_cpus()).collect(),
            node_of: (0..cpus).map(|cpu| machine.node_of(cpu)).collect(),
        }
    }

    pub(crate) fn keep_timeline(&mut self) {
        self.timeline = Some(Vec::new());
    }

    pub(crate) fn application(&mut self, name: &str, start_ps: u64, is_background: bool) -> usize {
        self.tallies.push(Tally::default());
        self.names.push(name.into());
        self.started_ps.push(start_ps);
        self.ended_ps.push(start_ps);
        self.places.push((None, Vec::new()));
        self.parallel.push((None, None));
        self.is_background.push(is_background);
        self.names.len() - 1
    }

    /// An application begins or ends a parallel section. `counters`: those of all CPUs.
    pub(crate) fn mark(&mut self, application: usize, ps: u64, counters: Counters, begins: bool) {
        let (sum, under_way) = &mut self.parallel[application];
        if begins {
            *under_way = Some(Begin { ps, counters });
        } else if let Some(begin) = under_way.take() {
            let sum = sum.get_or_insert_default();
            sum.ns += ps.saturating_sub(begin.ps) / 1000;
            sum.counters += counters - begin.counters;
        }
    }

    /// Whether an application only runs beside others.
    pub(crate) fn is_background(&self, application: usize) -> bool {
        self.is_background[application]
    }

    pub(crate) fn task(&mut self, name: &str, application: usize) {
        self.tasks.push(TaskInfo { name: name.into(), application });
        self.cpu_ns.push(0);
    }

    fn tally(&mut self, task: TaskId) -> &mut Tally {
        &mut self.tallies[self.tasks[task].application]
    }

    /// Whether this task on this CPU would begin an effective time slice.
    pub(crate) fn begins_slice(&self, cpu: usize, task: TaskId) -> bool {
        self.running[cpu].task != Some(task)
    }

    /// A task begins an interval; says whether the effective slice that it belongs to began with a move.
    pub(crate) fn interval_begins(
        &mut self,
        cpu: usize,
        task: TaskId,
        from: Option<usize>,
        waited_ps: Option<u64>,
        begin: Begin,
    ) -> bool {
        let moved_from = from.filter(|&from| from != cpu);
        if self.begins_slice(cpu, task) {
            self.close_slice(cpu);
            let running = &mut self.running[cpu];
            running.task = Some(task);
            running.moved = moved_from.is_some();
            running.stretch_start_ps = begin.ps;
            running.stretch = None;
            self.tally(task).switches += 1;
        } else if moved_from.is_some() {
            self.running[cpu].moved = true;
        }
        let running = &mut self.running[cpu];
        running.interval_start_ps = begin.ps;
        running.interval_counters = begin.counters;
        let moved = running.moved;
        let (domain, node) = (self.domain_of[cpu], self.node_of[cpu]);
        let leaves_domain = moved_from.is_some_and(|from| self.domain_of[from] != domain);
        let leaves_node = moved_from.is_some_and(|from| self.node_of[from] != node);
        let (place, switches) = &mut self.places[self.tasks[task].application];
        if place.replace(node).is_some_and(|before| before != node) {
            switches.push(begin.ps / 1000);
        }
        let tally = self.tally(task);
        tally.cpu_moves += u64::from(moved_from.is_some());
        tally.domain_moves += u64::from(leaves_domain);
        tally.node_moves += u64::from(leaves_node);
        if let Some(waited_ps) = waited_ps {
            tally.wakeups += 1;
            tally.wake_wait_ns += waited_ps / 1000;
        }
        moved
    }

    /// A task has come from another CPU and takes this one from a task that would have gone on.
    pub(crate) fn displaces(&mut self, task: TaskId, previous: TaskId) {
        let lack_ns = self.cpu_ns[previous].saturating_sub(self.cpu_ns[task]);
        self.tally(task).displacements.add(lack_ns);
    }

    pub(crate) fn interval_ends(&mut self, cpu: usize, port: &Port, why: End) {
        let running = &mut self.running[cpu];
        let Some(task) = running.task else { return };
        let ps = port.now_ps().saturating_sub(running.interval_start_ps);
        let counters = port.counters() - running.interval_counters;
        running.slice_ps += ps;
        running.slice_misses += counters.misses();
        self.cpu_ns[task] += ps / 1000;
        self.tally(task).interval(ps / 1000, counters, why);
        let Some(timeline) = &mut self.timeline else { return };
        let running = &mut self.running[cpu];
        let (start_ns, end_ns) = (running.stretch_start_ps / 1000, port.now_ps() / 1000);
        match running.stretch {
            Some(stretch) => timeline[stretch].end_ns = end_ns,
            None => {
                running.stretch = Some(timeline.len());
                timeline.push(Stretch { cpu, task, start_ns, end_ns });
            }
        }
    }

    fn close_slice(&mut self, cpu: usize) {
        let running = &mut self.running[cpu];
        let (ns, misses) = (running.slice_ps / 1000, running.slice_misses);
        running.slice_ps = 0;
        running.slice_misses = 0;
        if let Some(task) = running.task {
            self.tally(task).slice(ns, misses);
        }
    }

    /// A task that comes back after idle time goes on with its slice, but not with its stretch.
    pub(crate) fn idle_begins(&mut self, cpu: usize) {
        self.running[cpu].stretch = None;
    }

    pub(crate) fn idle_until(&mut self, cpu: usize, from_ps: u64, until_ps: u64) {
        self.running[cpu].idle_ps += until_ps - from_ps;
        self.running[cpu].stretch_start_ps = until_ps;
    }

    pub(crate) fn task_ended(&mut self, task: TaskId, now_ps: u64) {
        let application = self.tasks[task].application;
        self.ended_ps[application] = self.ended_ps[application].max(now_ps);
    }

    /// Notes each application's CPU time so far (an interval under way counts when it ends), and how many
    /// of its pages are where it runs. `resident`: pages of a task on each node.
    pub(crate) fn sample<'a>(&mut self, now_ps: u64, resident: impl Fn(TaskId) -> &'a [u32]) {
        let cpu_ns = self.tallies.iter().map(|tally| tally.cpu_ns).collect();
        let mut pages = vec![PagesAt::default(); self.names.len()];
        for (task, info) in self.tasks.iter().enumerate() {
            let resident = resident(task);
            let pages = &mut pages[info.application];
            pages.all += resident.iter().sum::<u32>();
            let local = self.places[info.application].0.and_then(|node| resident.get(node));
            pages.local += local.copied().unwrap_or_default();
        }
        self.samples.push(Sample { at_ns: now_ps / 1000, cpu_ns, pages });
    }

    pub(crate) fn finish(
        mut self,
        ports: &[std::rc::Rc<Port>],
        dispatches: Vec<CpuStats>,
        misses: Option<MissLog>,
    ) -> RunResult {
        (0..self.running.len()).for_each(|cpu| self.close_slice(cpu));
        let end_ps = self.ended_ps.iter().copied().max().unwrap_or_default();
        for (ended_ps, _) in
            self.ended_ps.iter_mut().zip(&self.is_background).filter(|(_, is_background)| **is_background)
        {
            *ended_ps = end_ps;
        }
        let idle_ps: u64 = self
            .running
            .iter()
            .zip(ports)
            .map(|(running, port)| running.idle_ps + end_ps.saturating_sub(port.now_ps()))
            .sum();
        let parts = self.tallies.into_iter().zip(self.names).zip(self.places.into_iter().zip(self.parallel));
        let applications: Vec<ApplicationResult> = parts
            .enumerate()
            .map(|(at, ((tally, name), (place, parallel)))| ApplicationResult {
                name,
                start_ns: self.started_ps[at] / 1000,
                execution_ns: (self.ended_ps[at] - self.started_ps[at]) / 1000,
                node_switches_ns: place.1,
                tally,
                parallel: parallel.0,
                is_background: self.is_background[at],
            })
            .collect();
        let awaited = applications.iter().filter(|application| !application.is_background);
        let mean_execution_ns = awaited.clone().map(|application| application.execution_ns).sum::<u64>()
            / awaited.count().max(1) as u64;
        let total = RunResult::sum(&applications);
        let counters = ports.iter().map(|port| port.counters());
        RunResult {
            elapsed_ns: end_ps / 1000,
            cpus: ports.len(),
            idle_share: idle_ps as f64 / (end_ps.max(1) as f64 * ports.len() as f64),
            mean_execution_ns,
            total,
            applications,
            dispatches,
            samples: self.samples,
            tasks: self.tasks,
            timeline: self.timeline.unwrap_or_default(),
            misses,
            runs: Vec::new(),
            planned: None,
            references: counters.map(|counters| counters.reads + counters.writes + counters.fetches).sum(),
        }
    }
}
