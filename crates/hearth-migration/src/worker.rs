//! The thread that follows processes with their pages, in rounds.

use super::followed::Followed;
use super::mover::{Limits, Mover};
use super::nodes::Nodes;
use super::planning::Planning;
use super::report::{PagesStatus, ProcessPages, Tally};
use super::running::Processes;
use super::sampler::{self, Backend, Lost, Sampler};
use super::units::PAGE_BYTES;
use super::{MigrationError, Options};
use hearth_host::clock::thread_cpu_time;
use hearth_host::journal::Journal;
use hearth_host::planner::Account;
use hearth_host::{Error, cgroup};
use hearth_policy::Controller;
use hearth_policy::pages::{MAX_NODES, PlannerError, Refusal};
use hearth_policy::snapshot::Moved;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two rounds, if the planner asks for no longer one; and the longest.
const ROUND: Duration = Duration::from_secs(1);
const ROUND_LAST: Duration = Duration::from_secs(30);
const ROUND_LAST_BUSY: Duration = Duration::from_secs(4);
/// Looks at memory of processes that are not sampled may take this part of all time, so much at once.
const LOOK_PART: f64 = 0.004;
const LOOK_BURST: f64 = 0.2;
/// A round takes at most this part of the time until the next: with nothing to sample, and with.
const PART_IDLE: u32 = 250;
const PART_BUSY: u32 = 10;
/// How often in a round it is looked where a process that is sampled runs.
const NOTES: u32 = 4;
/// Time in the kernel that moves may take in any second.
const TIME_QUOTA: Duration = Duration::from_millis(100);
/// Below all but idle programs.
const NICE: i32 = 19;

/// What is told to others.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) status: PagesStatus,
    /// The local share when something was known of any process.
    pub(super) last_local_share: Option<f64>,
    /// When the planner last planned.
    pub(super) planned: Option<Instant>,
    pub(super) processes: HashMap<i32, ProcessPages>,
}

/// The thread. Dropping this ends it.
#[derive(Debug)]
pub struct Follower {
    book: Arc<Mutex<Book>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins to follow, by the plans of this controller. What is changed on the host goes to the journal.
    ///
    /// # Errors
    /// What this machine cannot do, or what the system refuses.
    pub fn start(
        options: Options,
        controller: Controller,
        journal: Arc<Mutex<Journal>>,
    ) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut worker = Worker::new(options, controller, journal, Arc::clone(&stop))?;
        worker.take_notes();
        // This thread is not the one whose time is told.
        let status = PagesStatus { cpu_s: 0.0, ..worker.status() };
        let book = Book { status, last_local_share: None, planned: None, processes: HashMap::new() };
        let book = Arc::new(Mutex::new(book));
        let told = Arc::clone(&book);
        let run = move || {
            // Where this is refused, the thread has the priority of the daemon.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
            worker.run(&told);
        };
        let thread = thread::Builder::new().name("hearth-pages".into()).stack_size(256 << 10).spawn(run);
        Ok(Self { book, stop, thread: Some(thread.map_err(Error::file("/proc/self/task"))?) })
    }

    /// What it does, in all.
    pub fn status(&self) -> PagesStatus {
        let book = lock(&self.book);
        let age_s = book.planned.map(|planned| planned.elapsed().as_secs_f64());
        PagesStatus { planner: Account { age_s, ..book.status.planner.clone() }, ..book.status.clone() }
    }

    /// Ends it. What it did, in all; the local share is that of the last processes that were there.
    pub fn finish(mut self) -> PagesStatus {
        self.end();
        let book = lock(&self.book);
        PagesStatus { local_share: book.last_local_share, ..book.status.clone() }
    }

    /// What it knows of a process.
    pub fn process(&self, pid: i32) -> Option<ProcessPages> {
        lock(&self.book).processes.get(&pid).cloned()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Worker {
    pub(super) options: Options,
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
    begin: Instant,
    pub(super) nodes: Nodes,
    processes: Processes,
    pub(super) followed: HashMap<i32, Followed>,
    pub(super) sampler: Option<Box<dyn Sampler>>,
    /// Backends that were lost, and why.
    pub(super) lost: Vec<(Backend, String)>,
    /// What is to be known of the backend, the policy and the nodes.
    pub(super) notes: Vec<String>,
    pub(super) planning: Planning,
    /// Seconds of CPU time that looks may take now, and since when; what they took in this round.
    look_credit: f64,
    look_since: Instant,
    looked: Duration,
    pub(super) mover: Mover,
    pub(super) tally: Tally,
}

impl Worker {
    fn new(
        options: Options,
        controller: Controller,
        journal: Arc<Mutex<Journal>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let nodes = Nodes::read(Path::new("/"))?;
        let count = nodes.with_memory().len();
        if count > MAX_NODES {
            return Err(MigrationError::from(PlannerError::Nodes(count)).into());
        }
        let own = std::process::id() as i32;
        let processes = if options.of_children { Processes::of_family(own) } else { Processes::default() };
        // The first plan, of nothing, says whether samples are wanted at all.
        let mut planning = Planning::new(controller);
        planning.step(0, nodes.numbers(), PAGE_BYTES, BTreeMap::new());
        let sampler = planning.asks().then(|| sampler::best(&journal, &[])).flatten();
        Ok(Self {
            mover: Mover::new(Limits { time: TIME_QUOTA, bytes: planning.plan.bytes_per_second }),
            options,
            journal,
            stop,
            begin: Instant::now(),
            nodes,
            processes,
            followed: HashMap::new(),
            sampler,
            lost: Vec::new(),
            notes: Vec::new(),
            planning,
            look_credit: LOOK_BURST,
            look_since: Instant::now(),
            looked: Duration::ZERO,
            tally: Tally::default(),
        })
    }

    fn run(&mut self, book: &Mutex<Book>) {
        // The first look at all processes has no other to be compared with, and costs the most.
        self.round();
        self.pause(ROUND, false);
        while !self.is_over() {
            let cpu = thread_cpu_time();
            self.round();
            let cost = thread_cpu_time().saturating_sub(cpu + std::mem::take(&mut self.looked));
            self.move_pages();
            self.publish(book);
            let is_busy = !self.mover.is_idle() || self.followed.values().any(|one| one.sampled.is_some());
            let (part, last) = if is_busy { (PART_BUSY, ROUND_LAST_BUSY) } else { (PART_IDLE, ROUND_LAST) };
            let asked = self.planning.plan.look_after_ns.map_or(ROUND, Duration::from_nanos);
            self.pause((cost * part).min(last).max(asked), is_busy);
        }
        let sampled: Vec<i32> = self.followed.keys().copied().collect();
        sampled.into_iter().for_each(|pid| self.release(pid));
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn pause(&mut self, pause: Duration, is_busy: bool) {
        let parts = if is_busy { NOTES } else { 1 };
        for part in 1..=parts {
            let until = Instant::now() + pause / parts;
            while !self.is_over() && Instant::now() < until {
                thread::park_timeout(until.saturating_duration_since(Instant::now()));
            }
            if part < parts && !self.is_over() {
                let sampled = self.followed.iter().filter(|(_, one)| one.sampled.is_some());
                sampled.for_each(|(pid, _)| self.processes.note(*pid, &self.nodes));
            }
        }
    }

    fn round(&mut self) {
        if self.nodes.are_stale(Path::new("/")) {
            self.read_nodes();
        }
        let now = Instant::now();
        let members: Option<HashSet<i32>> =
            self.options.only.as_deref().map(|folder| cgroup::threads(folder).into_iter().collect());
        let own = std::process::id() as i32;
        let may = |pid: i32| pid != own && members.as_ref().is_none_or(|members| members.contains(&pid));
        let ran = self.processes.look(&self.nodes, may);
        let is_gone =
            |(pid, one): (&i32, &Followed)| (!self.processes.is_there(*pid, one.start)).then_some(*pid);
        let gone: Vec<i32> = self.followed.iter().filter_map(is_gone).collect();
        gone.into_iter().for_each(|pid| self.forget(pid));
        self.followed.values_mut().for_each(|one| one.ran.clear());
        for ran in ran {
            let one = self.followed.entry(ran.pid).or_insert_with(|| Followed::new(&ran, now));
            one.note(&ran, now);
        }
        self.look();
        if self.planning.asks() {
            self.choose();
        }
        self.plan();
    }

    /// Nodes came or went. All that is known of processes begins anew.
    fn read_nodes(&mut self) {
        let Ok(nodes) = Nodes::read(Path::new("/")) else { return };
        let all: Vec<i32> = self.followed.keys().copied().collect();
        all.into_iter().for_each(|pid| self.forget(pid));
        self.nodes = nodes;
        self.take_notes();
    }

    fn look(&mut self) {
        let since_start = self.begin.elapsed();
        let earned = LOOK_PART * self.look_since.elapsed().as_secs_f64();
        self.look_credit = (self.look_credit + earned).min(LOOK_BURST);
        self.look_since = Instant::now();
        let mut gone = Vec::new();
        // What did not run did not come nearer to its memory.
        for (pid, one) in self.followed.iter_mut().filter(|(_, one)| !one.ran.is_empty()) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let is_sampled = one.sampled.is_some();
            if !is_sampled && self.look_credit <= 0.0 {
                continue;
            }
            let cpu = thread_cpu_time();
            if one.look(Instant::now(), since_start).is_err() {
                gone.push(*pid);
            }
            if !is_sampled {
                let took = thread_cpu_time().saturating_sub(cpu);
                self.looked += took;
                self.look_credit -= took.as_secs_f64();
            }
        }
        gone.into_iter().for_each(|pid| self.forget(pid));
    }

    /// Samples those who have most elsewhere, as many as the sampler can.
    fn choose(&mut self) {
        let Some(most) = self.sampler.as_ref().map(|sampler| sampler.most()) else { return };
        let now = Instant::now();
        let over: Vec<i32> = self
            .followed
            .iter()
            .filter(|(_, one)| one.sampled.is_some() && !one.wants_samples(now))
            .map(|(pid, _)| *pid)
            .collect();
        over.into_iter().for_each(|pid| self.release(pid));
        let elsewhere = |one: &Followed| one.areas.iter().map(|(start, end)| end - start).sum::<u64>();
        let mut wanted: Vec<(bool, u64, i32)> = self
            .followed
            .iter()
            .filter(|(_, one)| one.wants_samples(now))
            .map(|(pid, one)| (one.sampled.is_none(), u64::MAX - elsewhere(one), *pid))
            .collect();
        wanted.sort_unstable();
        for (_, _, pid) in wanted.into_iter().take(most) {
            self.watch(pid);
        }
    }

    fn watch(&mut self, pid: i32) {
        let (Some(sampler), Some(one)) = (&mut self.sampler, self.followed.get_mut(&pid)) else { return };
        if !one.wants_more() {
            return;
        }
        match sampler.watch(pid, &one.areas) {
            Ok(()) => {
                one.sampled = Some((one.areas.clone(), Instant::now()));
                one.report.sampled = true;
                one.changed = true;
            }
            Err(lost) => self.lose(pid, lost),
        }
    }

    fn release(&mut self, pid: i32) {
        if let Some(one) = self.followed.get_mut(&pid)
            && one.sampled.take().is_some()
        {
            one.report.sampled = false;
            one.changed = true;
            if let Some(sampler) = &mut self.sampler {
                sampler.release(pid);
            }
        }
    }

    /// A process has ended, or its samples do not come any more.
    pub(super) fn lose(&mut self, pid: i32, lost: Lost) {
        let Lost::Backend(why) = lost else { return self.forget(pid) };
        let all: Vec<i32> = self.followed.keys().copied().collect();
        all.into_iter().for_each(|pid| self.release(pid));
        if let Some(sampler) = &self.sampler {
            self.lost.push((sampler.backend(), why));
        }
        let but: Vec<Backend> = self.lost.iter().map(|(backend, _)| *backend).collect();
        self.sampler = sampler::best(&self.journal, &but);
        self.take_notes();
    }

    pub(super) fn forget(&mut self, pid: i32) {
        self.release(pid);
        self.followed.remove(&pid);
        let at_ns = self.now_ns();
        for task in self.mover.forget(pid) {
            let (address, end) = (task.unit.address, Err(Refusal::Gone));
            self.planning.ended(Moved { process: pid, address, at_ns, end });
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}
