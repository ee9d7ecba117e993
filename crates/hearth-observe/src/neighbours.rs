//! Who slows whom: what runs beside what, counted for a while under whichever scheduler there is; or for as
//! long as somebody follows.
//! `bpf/observe/neighbours.bpf.c` tells stretches of each CPU's time; [`blame`] makes slowings of them.

pub mod follow;

use super::cost;
use super::counters::{Counters, Kind, SAMPLE_NS};
use super::error::ObserveError;
use super::layout::{KERNEL, UNWATCHED, Words};
use super::neighbours_skeleton::{NeighboursSkel, NeighboursSkelBuilder, OpenNeighboursSkel};
use super::session::{Name, call_by_paths, check_privilege, cpus_of, give, list_tasks, names, sample};
use super::visit::visit;
use hearth_machine::host;
use hearth_policy::isolation::blame::{OTHERS, Victim, blame};
use hearth_policy::isolation::side_by_side::{Sample, Stretch, Who, samples};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBufferBuilder};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `neighbours.h`: in the place of a program, who observes.
const OBSERVER: Who = u32::MAX - 4;

/// Programs that are told apart.
const SLOTS: u32 = 1024;
/// The kernel's side of the road: a tenth of a second of 512 CPUs that switch a thousand times a second each.
const RING_BYTES: u32 = 4 << 20;
/// How often it is emptied.
const FETCH: Duration = Duration::from_millis(50);
/// Stretches that are kept, and become samples: some 200 MB, and a minute of 64 CPUs without switches.
const MOST_STRETCHES: usize = 1_000_000;
/// Bytes of a stretch.
const STRETCH_BYTES: usize = 64;

/// What to count.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Control groups (version 2) in place of programs.
    pub by_cgroup: bool,
    /// How long.
    pub duration: Duration,
    /// Share of each CPU's time, in percent, that reading counters may take.
    pub counters_percent: f64,
    /// For tests: what the kernel counts by itself stands for what a CPU would.
    pub software: bool,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// For how long.
    pub elapsed: Duration,
    /// CPUs that were online.
    pub cpus: usize,
    /// Cache domains that they are in.
    pub domains: usize,
    /// Stretches that were counted.
    pub stretches: usize,
    /// Stretches for which there was no room.
    pub lost: u64,
    /// Programs, or control groups: by their paths, or the last part of those of groups that have gone.
    pub names: BTreeMap<Who, String>,
    /// Each program with what its neighbours do to it.
    pub victims: Vec<Victim>,
    /// How long the BPF programs ran, and how often; nothing if the kernel did not say.
    pub run_time: Option<(u64, u64)>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// Counts until the time is up, or `stop` is set.
///
/// # Errors
/// [`ObserveError`] says what is missing and what to do; [`ObserveError::NoCounters`] where the CPU or its
/// hypervisor has no counters.
pub fn neighbours(options: &Options, stop: &AtomicBool) -> Result<Neighbours, ObserveError> {
    let mut room = MaybeUninit::uninit();
    let session = Session::load(&mut room, options)?;
    let domains = session.domains.clone();
    let (mut found, stretches) = session.run(options, stop)?;
    found.domains = domains.len();
    let all: Vec<Sample> = domains.iter().flat_map(|cpus| samples(&stretches, cpus)).collect();
    found.stretches = stretches.len();
    found.victims = blame(&all);
    Ok(found)
}

fn bpf(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::from_bpf(&error)
}

fn configure(open: &mut OpenNeighboursSkel<'_>, options: &Options) -> Result<(), ObserveError> {
    open.progs.on_attach.set_autoload(options.by_cgroup);
    open.maps.stretches.set_max_entries(RING_BYTES).map_err(bpf)?;
    let Some(constants) = open.maps.rodata_data.as_deref_mut() else {
        return Err(ObserveError::Refused { reason: "its constants cannot be set".to_owned() });
    };
    constants.nr_slots = SLOTS;
    constants.observer = std::process::id();
    constants.each_cgroup = options.by_cgroup;
    constants.has_counters = true;
    constants.budget_ppm = (options.counters_percent.clamp(0.0, 100.0) * 1e4) as u32;
    constants.sample_ns = SAMPLE_NS;
    Ok(())
}

/// Programs that are loaded, with the counters that they will read.
struct Session<'a> {
    skeleton: NeighboursSkel<'a>,
    cpus: Vec<usize>,
    /// The CPUs of each cache domain.
    domains: Vec<Vec<usize>>,
    counters: Counters,
}

impl<'a> Session<'a> {
    fn load(room: &'a mut MaybeUninit<OpenObject>, options: &Options) -> Result<Self, ObserveError> {
        check_privilege()?;
        let topology = host::read(Path::new("/"))?;
        let cpus = cpus_of(&topology);
        let domains = topology.domains();
        let kind = if options.software { Kind::Software } else { Kind::Hardware };
        let counters = Counters::open(&cpus, kind);
        if let Some((_, reason)) = counters.missing.first() {
            let missing = counters.missing.iter().map(|(name, _)| *name).collect();
            return Err(ObserveError::NoCounters { missing, reason: reason.clone() });
        }
        let mut open = NeighboursSkelBuilder::default().open(room).map_err(bpf)?;
        configure(&mut open, options)?;
        let skeleton = open.load().map_err(bpf)?;
        let maps = &skeleton.maps;
        give(&maps.cycles, &counters.cycles)?;
        give(&maps.instructions, &counters.instructions)?;
        give(&maps.misses, &counters.misses)?;
        Ok(Self { skeleton, cpus, domains, counters })
    }

    fn run(self, options: &Options, stop: &AtomicBool) -> Result<(Neighbours, Vec<Stretch>), ObserveError> {
        let timing = cost::time_programs();
        let told = RefCell::new(Told::default());
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.skeleton.maps.stretches, |bytes| told.borrow_mut().add(bytes)).map_err(bpf)?;
        let ring = ring.build().map_err(bpf)?;
        let links = self.attach(options)?;
        visit(&self.cpus);
        let begin = Instant::now();
        let mut interrupted = false;
        while begin.elapsed() < options.duration && !interrupted {
            std::thread::sleep(FETCH.min(options.duration.saturating_sub(begin.elapsed())));
            ring.consume().map_err(bpf)?;
            interrupted = stop.load(Ordering::Relaxed);
        }
        visit(&self.cpus);
        let elapsed = begin.elapsed();
        let run_time = timing.as_ref().and_then(|_| self.run_time().ok());
        drop(links);
        ring.consume().map_err(bpf)?;
        drop(ring);
        let Told { stretches, left_out } = told.into_inner();
        let mut programs = names(&self.skeleton.maps.slots, SLOTS)?;
        if options.by_cgroup {
            call_by_paths(&mut programs);
        }
        let found = Neighbours {
            elapsed,
            cpus: self.cpus.len(),
            lost: left_out + self.lost()?,
            names: texts(&programs),
            run_time,
            interrupted,
            ..Neighbours::default()
        };
        Ok((found, stretches))
    }

    /// Forks first and those that are there next, so that none is missed; switches and samples last.
    fn attach(&self, options: &Options) -> Result<Vec<Link>, ObserveError> {
        let programs = &self.skeleton.progs;
        let mut links = vec![
            programs.on_fork.attach().map_err(bpf)?,
            programs.on_exec.attach().map_err(bpf)?,
            programs.each_there.attach().map_err(bpf)?,
        ];
        list_tasks(&links[2])?;
        if options.by_cgroup {
            links.push(programs.on_attach.attach().map_err(bpf)?);
        }
        links.push(programs.on_switch.attach().map_err(bpf)?);
        links.extend(sample(&programs.on_sample, &self.cpus)?);
        Ok(links)
    }

    fn run_time(&self) -> Result<(u64, u64), ObserveError> {
        let programs = &self.skeleton.progs;
        let all = [&programs.on_switch, &programs.on_sample, &programs.on_fork, &programs.on_exec];
        cost::run_time(all.map(AsFd::as_fd))
    }

    /// Stretches that found no room on the kernel's side.
    fn lost(&self) -> Result<u64, ObserveError> {
        let first = 0u32.to_ne_bytes();
        let lost = self.skeleton.maps.lost.lookup_percpu(&first, MapFlags::ANY).map_err(bpf)?;
        Ok(lost.into_iter().flatten().map(|bytes| Words(&bytes).next()).sum())
    }
}

/// What programs are called, and those that are not: the kernel, and who observes.
fn texts(programs: &BTreeMap<Who, Name>) -> BTreeMap<Who, String> {
    let fixed =
        [(KERNEL, "(kernel)"), (UNWATCHED, "(outside)"), (OBSERVER, "(hearth)"), (OTHERS, "(others)")];
    let programs = programs.iter().map(|(who, name)| (*who, name.text.clone()));
    programs.chain(fixed.map(|(who, text)| (who, text.to_owned()))).collect()
}

/// Stretches as they come.
#[derive(Default)]
struct Told {
    stretches: Vec<Stretch>,
    left_out: u64,
}

impl Told {
    fn add(&mut self, bytes: &[u8]) -> i32 {
        match read(bytes) {
            Some(stretch) if self.stretches.len() < MOST_STRETCHES => self.stretches.push(stretch),
            _ => self.left_out += 1,
        }
        0
    }
}

/// `struct neighbours_stretch`; nothing if it has another size.
fn read(bytes: &[u8]) -> Option<Stretch> {
    let words = &mut Words(bytes.get(..STRETCH_BYTES).filter(|_| bytes.len() == STRETCH_BYTES)?);
    Some(Stretch {
        cpu: usize::try_from(words.next()).ok()?,
        who: Who::try_from(words.next()).ok()?,
        tid: i32::try_from(words.next()).ok()?,
        start_ns: words.next(),
        ns: words.next(),
        cycles: words.next(),
        instructions: words.next(),
        misses: words.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::isolation::side_by_side::IDLE;

    #[test]
    fn a_stretch_is_read_and_one_of_another_size_is_not() {
        let words: Vec<u8> = (1..=8u64).flat_map(u64::to_ne_bytes).collect();
        let wanted =
            Stretch { cpu: 1, who: 2, tid: 3, start_ns: 4, ns: 5, cycles: 6, instructions: 7, misses: 8 };
        assert_eq!(read(&words), Some(wanted));
        assert_eq!(read(&words[1..]), None);
        assert_eq!(read(&[words, vec![0]].concat()), None);
        let idle: Vec<u8> =
            [0, u64::from(u32::MAX), 0, 0, 9, 0, 0, 0].into_iter().flat_map(u64::to_ne_bytes).collect();
        assert_eq!(read(&idle).unwrap().who, IDLE);
    }
}
