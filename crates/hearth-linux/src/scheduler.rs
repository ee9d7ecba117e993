//! The scheduler in the kernel: loaded, watched, let go.

use crate::decisions::{Decision, Decisions};
use crate::ending::Stall;
use crate::fragments::FragmentsStatus;
use crate::tasks::{self, Task};
use crate::{Error, log, shape, words};
use bpf::HearthSkelBuilder;
use bpf::types::rodata;
use bytemuck::bytes_of;
use hearth_abi::{self as seam, CpuStats, Fragment, MAX_FRAGMENTS};
use hearth_host::{kernel, moves};
use hearth_machine::host::HostTopology;
use hearth_policy::Policy;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

#[allow(warnings, clippy::all)]
pub(crate) mod bpf {
    include!(concat!(env!("OUT_DIR"), "/hearth.skel.rs"));
}

/// How to load the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only tasks of the scheduling class `SCHED_EXT` are Hearth's; else all of the class `SCHED_OTHER`.
    pub partial: bool,
    /// For how long a task may wait before the kernel ends the scheduler; ten seconds if nothing is said.
    pub watchdog: Option<Duration>,
    /// For tests: tasks that wait never run, until the kernel ends the scheduler.
    pub stalls: bool,
}

impl Options {
    fn watchdog_ms(&self) -> u32 {
        self.watchdog.map_or(seam::WATCHDOG_MS, |time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
    }
}

/// Why the kernel let go of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exit {
    /// `enum scx_exit_kind`.
    pub kind: i32,
    /// The kernel's exit code.
    pub code: i64,
    /// The kernel's word for the kind.
    pub reason: String,
    /// The kernel's explanation.
    pub message: String,
    /// The kernel's account of every CPU and task, if there was an error.
    #[serde(skip)]
    pub dump: String,
    /// For how long the task that the kernel names had waited, if the kernel counted a wait that did not happen.
    #[serde(default)]
    pub waited: Option<Duration>,
}

impl Exit {
    /// Whether the kernel expects the scheduler to be loaded again, as after CPU hotplug.
    pub fn wants_restart(&self) -> bool {
        self.code & seam::EXIT_RESTART != 0
    }

    /// Whether it was an error of the scheduler, and not a request.
    pub fn is_error(&self) -> bool {
        self.kind >= 1024
    }
}

/// The scheduler, loaded. Dropping it gives the CPUs back to the kernel's own.
pub struct Scheduler {
    // Dropped first: detaches.
    _link: Link,
    skeleton: bpf::HearthSkel<'static>,
    // Mapped while somebody traces, for it is as large as the rest of the process.
    decisions: Option<Decisions>,
    cpus: Vec<usize>,
    heeds_words: bool,
}

impl Scheduler {
    /// Loads the scheduler with a policy for this host, and waits until the kernel has switched to it.
    pub fn start(policy: &Policy, host: &HostTopology, options: Options) -> Result<Self, Error> {
        kernel::check_sched_ext()?;
        if let Some(name) = kernel::loaded_scheduler() {
            let hint = if name.starts_with("hearth") { ": hearth stop" } else { "" };
            return Err(Error::Busy { name, hint });
        }
        // Under other policies nobody asks.
        let costs = if policy.steady { moves::measure(host).costs } else { host.move_costs() };
        let topology = shape::topology(host, costs)?;
        let refused = |step| move |source| Error::refused(step, source);
        // Lives as long as the process: the skeleton borrows from it.
        let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        log::keep();
        let mut open = HearthSkelBuilder::default().open(object).map_err(refused("open"))?;
        let policy_row = seam::Policy::new(&policy.on(costs), kernel::tick_ns());
        let watchdog_ms = options.watchdog_ms();
        set_constants(&mut open, &policy_row, &topology, watchdog_ms, options.stalls)?;
        set_shape(&mut open, &seam::Shape::undivided(&host.domains()))?;
        // SAFETY: the pointer is to the operations of this very object, which nothing else uses yet.
        let operations = unsafe { &mut *open.struct_ops.hearth_ops };
        operations.timeout_ms = watchdog_ms;
        if options.partial {
            operations.flags |= seam::OPS_SWITCH_PARTIAL;
        }
        for (name, flag) in [
            ("SCX_OPS_ENQ_MIGRATION_DISABLED", seam::OPS_ENQ_MIGRATION_DISABLED),
            ("SCX_OPS_ALLOW_QUEUED_WAKEUP", seam::OPS_ALLOW_QUEUED_WAKEUP),
        ] {
            if kernel::has(name) {
                operations.flags |= flag;
            }
        }
        if !policy.complex {
            // Not called at all, for it would have nothing to do; where tasks declare, another is (words.h).
            operations.stopping = ptr::null_mut();
        }
        let heeds_words = policy.credit.fragment_ns > 0;
        open.progs.hearth_register.set_autoload(heeds_words);
        open.progs.hearth_switched.set_autoload(heeds_words);
        let mut skeleton = open.load().map_err(refused("load"))?;
        if skeleton.maps.bss_data.is_none() {
            return Err(Error::Incomplete { section: "data" });
        }
        let link = skeleton.maps.hearth_ops.attach_struct_ops().map_err(refused("attach"))?;
        let cpus = host.cpus.iter().map(|cpu| cpu.id).collect();
        Ok(Self { _link: link, skeleton, decisions: None, cpus, heeds_words })
    }

    /// The maps of what it remembers of tasks, and of its data.
    pub(crate) fn maps(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.skeleton.maps.task_ctxs.as_fd(), self.skeleton.maps.bss.as_fd())
    }

    /// The programs that know where tasks declare the data that they work on, if the policy heeds that.
    pub(crate) fn words(&self) -> Result<Option<words::Programs>, Error> {
        if !self.heeds_words {
            return Ok(None);
        }
        let own = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|source| Error::refused("words", source.into()))
        };
        let programs = &self.skeleton.progs;
        let (register, switched) = (&programs.hearth_register, &programs.hearth_switched);
        Ok(Some(words::Programs { register: own(register.as_fd())?, switched: own(switched.as_fd())? }))
    }

    fn shared(&self) -> Option<&bpf::types::bss> {
        self.skeleton.maps.bss_data.as_deref()
    }

    /// The statistics of each CPU that was online at the start, with its number.
    pub fn stats(&self) -> Vec<(usize, CpuStats)> {
        let Some(shared) = self.shared() else { return Vec::new() };
        let read = |cpu: usize| {
            let stats = (&raw const shared.stats[cpu]).cast::<CpuStats>();
            // SAFETY: the same struct, as the build has compared; inside the mapping; the kernel writes it
            // meanwhile, so it is read whole and once.
            (cpu, unsafe { ptr::read_volatile(stats) })
        };
        self.cpus.iter().copied().map(read).collect()
    }

    /// Has decisions told from now on: those of a thread or process, or all. One client at a time.
    pub fn trace(&mut self, pid: Option<i32>) -> Result<(), Error> {
        if self.decisions.is_some() {
            return Err(Error::Traced);
        }
        let decisions = Decisions::new(&self.skeleton.maps.decisions);
        let decisions = decisions.map_err(|source| Error::refused("ring buffer", source))?;
        decisions.take();
        self.decisions = Some(decisions);
        self.set_tracing(true, pid.unwrap_or(0));
        Ok(())
    }

    /// Has none told any more; returns the last ones, as [`Self::decisions`] does.
    pub fn untrace(&mut self) -> (Vec<Decision>, u64) {
        self.set_tracing(false, 0);
        let last = self.decisions();
        self.decisions = None;
        last
    }

    fn set_tracing(&mut self, on: bool, pid: i32) {
        let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() else { return };
        // SAFETY: aligned, inside the mapping; the kernel reads them meanwhile, so each is written whole.
        unsafe {
            ptr::write_volatile(&raw mut shared.traced_pid, pid);
            ptr::write_volatile(&raw mut shared.tracing, u32::from(on));
        }
    }

    /// The decisions that were told since the last call, by time, and how many found no room so far.
    pub fn decisions(&self) -> (Vec<Decision>, u64) {
        // SAFETY: as in `stats`.
        let lost =
            self.shared().map_or(0, |shared| unsafe { ptr::read_volatile(&raw const shared.decisions_lost) });
        (self.decisions.as_ref().map(Decisions::take).unwrap_or_default(), lost)
    }

    /// What the scheduler remembers of a thread; `None` if it is gone, or not Hearth's.
    pub fn task(&self, tid: i32) -> Option<Task> {
        tasks::look_up(&self.skeleton.maps.task_ctxs, tid, |place| {
            self.shared().filter(|_| place < MAX_FRAGMENTS).map(|shared| fragment(shared, place))
        })
    }

    /// What tasks declare; `None` if none has since the scheduler was loaded.
    pub fn fragments(&self) -> Option<FragmentsStatus> {
        let shared = self.shared()?;
        // SAFETY: as in `stats`. The table is large: it is not touched before it is used.
        let (are_used, refused) = unsafe {
            (
                ptr::read_volatile((&raw const shared.fragments_are_used).cast::<u8>()) != 0,
                ptr::read_volatile(&raw const shared.fragments_refused),
            )
        };
        let all = (0..MAX_FRAGMENTS).map(|place| fragment(shared, place));
        are_used.then(|| FragmentsStatus::of(all, refused))
    }

    /// Why the kernel let go of the scheduler; `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        let shared = self.shared()?;
        // SAFETY: as in `stats`; the kernel writes this one last.
        let kind = unsafe { ptr::read_volatile(&raw const shared.exited.kind) };
        if kind == 0 {
            return None;
        }
        let message = text(&shared.exited.message);
        Some(Exit {
            kind,
            code: shared.exited.code,
            reason: text(&shared.exited.reason),
            waited: self.waited(&message, shared.exited.at),
            message,
            dump: text(&shared.exit_dump),
        })
    }

    /// For how long the task had waited that the kernel named at a time in jiffies, if that is not what it counted.
    fn waited(&self, message: &str, at: u64) -> Option<Duration> {
        let stall = Stall::parse(message)?;
        let noted = &self.shared()?.false_waits.last;
        let of_task = noted.iter().filter(|noted| noted.pid == stall.pid);
        let came_at = of_task.map(|noted| noted.came_at).max()?;
        let tick = Duration::from_nanos(kernel::tick_ns());
        let ticks = u32::try_from(at.checked_sub(came_at)?).ok()?;
        stall.really_waited(tick.checked_mul(ticks)?, tick)
    }
}

/// The fragment at one of the `MAX_FRAGMENTS` places.
fn fragment(shared: &bpf::types::bss, place: usize) -> Fragment {
    // SAFETY: the same struct, as the build has compared; inside the mapping, for the index is checked; read
    // whole and once, while the kernel writes it.
    unsafe { ptr::read_volatile((&raw const shared.fragments[place]).cast::<Fragment>()) }
}

/// Writes what the scheduler reads as constants, before it is loaded.
fn set_constants(
    open: &mut bpf::OpenHearthSkel<'_>,
    policy: &seam::Policy,
    topology: &seam::Topology,
    watchdog_ms: u32,
    stalls: bool,
) -> Result<(), Error> {
    let constants = open.maps.rodata.initial_value_mut().unwrap_or_default();
    let mut put = |offset: usize, value: &[u8]| {
        let place = constants.get_mut(offset..offset + value.len());
        place.map(|place| place.copy_from_slice(value)).ok_or(Error::Incomplete { section: "read-only data" })
    };
    put(offset_of!(rodata, policy), bytes_of(policy))?;
    put(offset_of!(rodata, topology), bytes_of(topology))?;
    put(offset_of!(rodata, watchdog_ms), &watchdog_ms.to_ne_bytes())?;
    put(offset_of!(rodata, stalls), &[u8::from(stalls)])
}

/// Writes the shape of the machine undivided, before the scheduler is loaded.
fn set_shape(open: &mut bpf::OpenHearthSkel<'_>, shape: &seam::Shape) -> Result<(), Error> {
    let offset = offset_of!(bpf::types::bss, shapes);
    let data = open.maps.bss.initial_value_mut().unwrap_or_default();
    let place = data.get_mut(offset..offset + size_of::<seam::Shape>());
    place.map(|place| place.copy_from_slice(bytes_of(shape))).ok_or(Error::Incomplete { section: "data" })
}

fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_policy_and_the_machine() {
        let mut object = MaybeUninit::uninit();
        let mut open = HearthSkelBuilder::default().open(&mut object).unwrap();
        let policy = seam::Policy::new(&Policy::affinity(3, 2), 4_000_000);
        let topology = seam::Topology::new(4, &[vec![0, 1], vec![2, 3]], |cpu| cpu / 2).unwrap();
        set_constants(&mut open, &policy, &topology, 2_000, true).unwrap();
        let constants = open.maps.rodata_data.as_deref().unwrap();
        assert_eq!(constants.policy.tick_ns, policy.tick_ns);
        assert_eq!(constants.policy.processor_ns, policy.processor_ns);
        assert_eq!(
            (constants.topology.nr_cpus, constants.topology.domain_of[..4].to_vec()),
            (4, vec![0, 0, 1, 1])
        );
        assert_eq!((constants.watchdog_ms, constants.stalls), (2_000, true));
    }
}
