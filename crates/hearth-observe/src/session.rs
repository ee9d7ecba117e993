//! One observation, from loading the programs to reading what they counted.

use super::cost;
use super::counters::{Counters, Everywhere, Kind, Present, SAMPLE_NS, sampler};
use super::error::ObserveError;
use super::layout::{Behind, CpuTime, KERNEL, MAX_CPUS, Program, UNWATCHED};
use super::skeleton::{ObserveSkel, ObserveSkelBuilder, OpenObserveSkel};
use super::target::{Found, Target, open_process, start};
use super::visit::visit;
use hearth_host::pressure;
use hearth_host::ticks::Ticks;
use hearth_machine::host::{self, HostTopology};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, MapCore, MapFlags, ProgramMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Memory for what is counted of programs.
const PROGRAMS_BYTES: usize = 256 << 20;
/// What one program takes on one CPU.
const PROGRAM_BYTES: usize = 9 << 10;
/// Memory for who waits behind whom.
const BEHIND_BYTES: usize = 64 << 20;
/// What one pair takes on one CPU, with what the kernel needs for it.
const PAIR_BYTES: usize = 128;
/// The name of all programs that found no slot.
const OTHERS: &str = "(other programs)";
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// How long a command that was interrupted may take to end.
const GRACE: Duration = Duration::from_secs(3);

/// What to observe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose tasks.
    pub target: Target,
    /// How long; until the target ends or the caller stops it if left out.
    pub duration: Option<Duration>,
    /// What is told apart.
    pub each: Each,
    /// Share of each CPU's time, in percent, that reading counters may take.
    pub counters_percent: f64,
}

/// What is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Each {
    /// Programs, by the file that their processes last executed.
    #[default]
    Program,
    /// Each task by itself.
    Task,
    /// Control groups (version 2).
    Cgroup,
}

/// What reading counters may take if nothing else is wanted: so that the whole stays below 1 % at
/// 10,000 switches a second.
pub const COUNTERS_PERCENT: f64 = 0.25;

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// How long.
    pub elapsed: Duration,
    /// CPUs that were online.
    pub cpus: usize,
    /// Which counters there were.
    pub present: Present,
    /// Programs by name.
    pub programs: BTreeMap<String, Program>,
    /// Who waited behind whom, by name.
    pub behind: BTreeMap<(String, String), Behind>,
    /// The part of the CPUs' time that a hypervisor took, 0 to 1; nothing if the kernel does not say.
    pub stolen: Option<f64>,
    /// The part of the time in which some task of the host waited for a CPU, 0 to 1; nothing if the kernel does not
    /// say: its pressure stall information.
    pub pressure: Option<f64>,
    /// What the CPUs did.
    pub time: CpuTime,
    /// How long the BPF programs ran, and how often; nothing if the kernel did not say.
    pub run_time: Option<(u64, u64)>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// How the command ended.
    pub exit: Option<std::process::ExitStatus>,
    /// What is missing, for people.
    pub notes: Vec<String>,
}

/// Observes until the target ends, the time is up, or `stop` is set.
///
/// # Errors
/// [`ObserveError`] says what is missing and what to do.
pub fn observe(options: &Options, stop: &AtomicBool) -> Result<Observed, ObserveError> {
    let found = options.target.find()?;
    check_privilege()?;
    let topology = host::read(Path::new("/"))?;
    let cpus = cpus_of(&topology);
    let counters = Counters::open(&cpus, Kind::Hardware);
    let mut room = MaybeUninit::uninit();
    let mut open =
        ObserveSkelBuilder::default().open(&mut room).map_err(|error| ObserveError::from_bpf(&error))?;
    let slots = (PROGRAMS_BYTES / PROGRAM_BYTES / cpus.len().max(1)).clamp(64, 1024) as u32;
    configure(&mut open, options, &found, &topology, counters.present(), slots)?;
    let skeleton = open.load().map_err(|error| ObserveError::from_bpf(&error))?;
    let session = Session { skeleton, cpus, counters, slots };
    session.run(options, found, stop)
}

/// Refuses where programs cannot be loaded, before it is tried.
pub(super) fn check_privilege() -> Result<(), ObserveError> {
    libbpf_rs::set_print(None);
    if !may_load() {
        return Err(ObserveError::NoPrivilege);
    }
    match Path::new(BTF).exists() {
        true => Ok(()),
        false => Err(ObserveError::NoBtf { path: BTF }),
    }
}

/// The CPUs that can be observed.
pub(super) fn cpus_of(topology: &HostTopology) -> Vec<usize> {
    topology.cpus.iter().map(|cpu| cpu.id).filter(|cpu| *cpu < MAX_CPUS).collect()
}

/// Whether this process has the capabilities to load programs and to open counters of all processes.
fn may_load() -> bool {
    let Ok(sets) = rustix::thread::capabilities(None) else { return false };
    let has = |one| sets.effective.contains(one);
    use rustix::thread::CapabilitySet as Set;
    has(Set::SYS_ADMIN) || has(Set::BPF) && has(Set::PERFMON)
}

/// Whether it matters that a task changes its control group.
fn follows_cgroups(options: &Options) -> bool {
    options.each == Each::Cgroup || matches!(options.target, Target::Cgroup(_))
}

fn configure(
    open: &mut OpenObserveSkel<'_>,
    options: &Options,
    found: &Found,
    topology: &HostTopology,
    present: Present,
    slots: u32,
) -> Result<(), ObserveError> {
    open.progs.on_attach.set_autoload(follows_cgroups(options));
    open.progs.on_sample.set_autoload(present.all());
    let pairs = (BEHIND_BYTES / PAIR_BYTES / topology.cpus.len().max(1)).clamp(256, 8192) as u32;
    open.maps.programs.set_max_entries(slots).map_err(|error| ObserveError::from_bpf(&error))?;
    open.maps.behind.set_max_entries(pairs).map_err(|error| ObserveError::from_bpf(&error))?;
    let Some(constants) = open.maps.rodata_data.as_deref_mut() else {
        return Err(ObserveError::Refused { reason: "its constants cannot be set".to_owned() });
    };
    constants.nr_slots = slots;
    constants.scope = found.scope.kind;
    constants.target = found.scope.target;
    constants.observer = std::process::id();
    constants.each_task = options.each == Each::Task;
    constants.each_cgroup = options.each == Each::Cgroup;
    constants.has_counters = present.all();
    constants.budget_ppm = (options.counters_percent.clamp(0.0, 100.0) * 1e4) as u32;
    constants.sample_ns = SAMPLE_NS;
    constants.yield_call = if cfg!(target_arch = "x86_64") { 24 } else { 124 };
    places(topology, &mut constants.domain_of, &mut constants.node_of);
    Ok(())
}

/// Which cache domain and which node each CPU belongs to.
fn places(topology: &HostTopology, domain_of: &mut [u32], node_of: &mut [u32]) {
    for (number, domain) in topology.domains().iter().enumerate() {
        domain.iter().filter(|cpu| **cpu < MAX_CPUS).for_each(|&cpu| domain_of[cpu] = number as u32);
    }
    for (number, node) in topology.nodes.iter().enumerate() {
        node.cpus.iter().filter(|cpu| **cpu < MAX_CPUS).for_each(|&cpu| node_of[cpu] = number as u32);
    }
}

struct Session<'a> {
    skeleton: ObserveSkel<'a>,
    cpus: Vec<usize>,
    counters: Counters,
    slots: u32,
}

impl Session<'_> {
    fn run(self, options: &Options, found: Found, stop: &AtomicBool) -> Result<Observed, ObserveError> {
        let timing = cost::time_programs();
        self.give_counters()?;
        let links = self.attach(options)?;
        visit(&self.cpus);
        let (begin, ticks, waited) = (Instant::now(), Ticks::now(), pressure::waited());
        let mut command = match &options.target {
            Target::Command(words) => Some(start(words)?),
            _ => None,
        };
        let process = match &command {
            Some(child) => Some(open_process(child.id())?),
            None => found.process,
        };
        let until = options.duration.map(|duration| begin + duration);
        let interrupted = wait(process.as_ref(), until, stop);
        let exit = command.as_mut().and_then(|child| finish(child, interrupted));
        visit(&self.cpus);
        let elapsed = begin.elapsed();
        let stolen = Ticks::now().stolen_since(&ticks);
        let pressure = pressure::waited().zip(waited).map(|(now, then)| now.saturating_sub(then));
        let run_time = timing.as_ref().and_then(|_| self.run_time().ok());
        drop(links);
        let mut observed = self.read(options.each)?;
        observed.elapsed = elapsed;
        observed.stolen = stolen;
        observed.pressure = pressure.map(|waited| waited.as_secs_f64() / elapsed.as_secs_f64().max(1e-9));
        observed.run_time = run_time;
        observed.interrupted = interrupted;
        observed.exit = exit;
        Ok(observed)
    }

    fn give_counters(&self) -> Result<(), ObserveError> {
        let maps = &self.skeleton.maps;
        let counters = &self.counters;
        give(&maps.cycles, &counters.cycles)?;
        give(&maps.instructions, &counters.instructions)?;
        give(&maps.misses, &counters.misses)
    }

    /// Forks first and those that are there next, so that none is missed; switches last.
    fn attach(&self, options: &Options) -> Result<Vec<Link>, ObserveError> {
        let programs = &self.skeleton.progs;
        let mut links = Vec::new();
        let mut add = |link: libbpf_rs::Result<Link>| {
            links.push(link.map_err(|error| ObserveError::from_bpf(&error))?);
            Ok::<(), ObserveError>(())
        };
        add(programs.on_fork.attach())?;
        add(programs.on_exec.attach())?;
        if follows_cgroups(options) {
            add(programs.on_attach.attach())?;
        }
        if !matches!(options.target, Target::Command(_)) {
            let link = programs.each_there.attach().map_err(|error| ObserveError::from_bpf(&error))?;
            list_tasks(&link)?;
        }
        add(programs.on_wakeup.attach())?;
        add(programs.on_wakeup_new.attach())?;
        add(programs.on_switch.attach())?;
        if self.counters.present().all() {
            links.extend(sample(&programs.on_sample, &self.cpus)?);
        }
        Ok(links)
    }

    fn run_time(&self) -> Result<(u64, u64), ObserveError> {
        let programs = &self.skeleton.progs;
        let all = [&programs.on_switch, &programs.on_wakeup, &programs.on_wakeup_new, &programs.on_fork];
        let sampling = self.counters.present().all().then_some(&programs.on_sample);
        cost::run_time(all.into_iter().chain([&programs.on_exec]).chain(sampling).map(AsFd::as_fd))
    }

    fn read(self, each: Each) -> Result<Observed, ObserveError> {
        let maps = &self.skeleton.maps;
        let bpf = |error: libbpf_rs::Error| ObserveError::from_bpf(&error);
        let mut observed = Observed {
            cpus: self.cpus.len(),
            present: self.counters.present(),
            notes: self.counters.notes(),
            ..Observed::default()
        };
        for bytes in
            maps.cpus.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf)?.into_iter().flatten()
        {
            observed.time.add_cpu(&bytes);
        }
        let mut names = names(&maps.slots, self.slots)?;
        if each == Each::Cgroup {
            call_by_paths(&mut names);
        }
        for key in maps.behind.keys() {
            let Some(cpus) = maps.behind.lookup_percpu(&key, MapFlags::ANY).map_err(bpf)? else { continue };
            let Some(pair) = pair(&key, &names) else { continue };
            let behind = observed.behind.entry(pair).or_default();
            cpus.iter().for_each(|bytes| behind.add_cpu(bytes));
        }
        for (slot, name) in names {
            let Some(cpus) = maps.programs.lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY).map_err(bpf)?
            else {
                continue;
            };
            let program = observed.programs.entry(name.to_string()).or_default();
            cpus.iter().for_each(|bytes| program.add_cpu(bytes));
        }
        Ok(observed)
    }
}

/// Who waited, and who had the CPU: `struct who` in waits.h.
fn pair(key: &[u8], names: &BTreeMap<u32, Name>) -> Option<(String, String)> {
    let slot = |at: usize| Some(u32::from_ne_bytes(key.get(at..at + 4)?.try_into().ok()?));
    let name = |slot: u32| match slot {
        KERNEL => Some("(kernel)".to_owned()),
        UNWATCHED => Some("(others)".to_owned()),
        slot => names.get(&slot).map(Name::to_string),
    };
    Some((name(slot(0)?)?, name(slot(4)?)?))
}

/// The programs' names by slot; the last of so many slots is for those that found none.
pub(super) fn names(map: &impl MapCore, slots: u32) -> Result<BTreeMap<u32, Name>, ObserveError> {
    let mut names: BTreeMap<u32, Name> = BTreeMap::new();
    for key in map.keys() {
        let slot = map.lookup(&key, MapFlags::ANY).map_err(|error| ObserveError::from_bpf(&error))?;
        if let Some(slot) = slot.and_then(|slot| <[u8; 4]>::try_from(slot).ok()) {
            names.insert(u32::from_ne_bytes(slot), Name::read(&key));
        }
    }
    names.insert(slots - 1, Name { text: OTHERS.to_owned(), number: None });
    Ok(names)
}

/// Control groups that are still there are called by their paths, the others by the last part of those.
pub(super) fn call_by_paths(names: &mut BTreeMap<u32, Name>) {
    let paths = hearth_host::cgroup::numbered();
    let path = |number: u32| paths.iter().find(|(whole, _)| **whole as u32 == number).map(|(_, path)| path);
    for name in names.values_mut() {
        if let Some(path) = name.number.and_then(path) {
            *name = Name { text: path.display().to_string(), number: None };
        }
    }
}

/// Whom a slot is for: `struct name` in tasks.h.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub text: String,
    /// The task's, or the control group's, where those are wanted.
    pub number: Option<u32>,
}

impl Name {
    fn read(key: &[u8]) -> Self {
        let text = key.get(..16).unwrap_or(key);
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let number = key.get(16..20).and_then(|number| <[u8; 4]>::try_from(number).ok());
        Self {
            text: String::from_utf8_lossy(text).into_owned(),
            number: number.map(u32::from_ne_bytes).filter(|number| *number > 0),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(out, "{}/{number}", self.text),
            None => out.write_str(&self.text),
        }
    }
}

/// Has a program run at the ticks of a clock on each CPU.
pub(super) fn sample(program: &ProgramMut<'_>, cpus: &[usize]) -> Result<Vec<Link>, ObserveError> {
    let on_cpu = |&cpu: &usize| {
        let clock =
            sampler(cpu).map_err(|reason| ObserveError::System { what: "a sampling clock", reason })?;
        // The link closes the clock.
        program.attach_perf_event(clock.into_raw_fd()).map_err(|error| ObserveError::from_bpf(&error))
    };
    cpus.iter().map(on_cpu).collect()
}

/// Has a program of `iter/task` see all tasks.
pub(super) fn list_tasks(link: &Link) -> Result<(), ObserveError> {
    let mut tasks = Iter::new(link).map_err(|error| ObserveError::from_bpf(&error))?;
    let read = tasks.read_to_end(&mut Vec::new());
    read.map(|_| ()).map_err(|reason| ObserveError::System { what: "listing the tasks", reason })
}

pub(super) fn give(map: &impl MapCore, counters: &Everywhere) -> Result<(), ObserveError> {
    for (cpu, counter) in counters {
        let (key, fd) = ((*cpu as u32).to_ne_bytes(), counter.as_raw_fd().to_ne_bytes());
        map.update(&key, &fd, MapFlags::ANY).map_err(|error| ObserveError::from_bpf(&error))?;
    }
    Ok(())
}

/// Waits for the end of a process or of the time; true if `stop` came first.
fn wait(process: Option<&OwnedFd>, until: Option<Instant>, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()).min(LOOK));
        if left.is_zero() {
            return false;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut waited: Vec<PollFd<'_>> =
            process.iter().map(|process| PollFd::new(*process, PollFlags::IN)).collect();
        if matches!(poll(&mut waited, Some(&timeout)), Ok(ready) if ready > 0) {
            return false;
        }
    }
}

/// How a command ended. One that was interrupted has got the same Ctrl-C; one that goes on is ended.
fn finish(child: &mut Child, interrupted: bool) -> Option<std::process::ExitStatus> {
    if interrupted {
        let process = open_process(child.id()).ok();
        let never = AtomicBool::new(false);
        wait(process.as_ref(), Some(Instant::now() + GRACE), &never);
        if let (Ok(None), Some(process)) = (child.try_wait(), process) {
            let _ = rustix::process::pidfd_send_signal(process, rustix::process::Signal::TERM);
        }
    }
    child.try_wait().ok().flatten()
}
