//! The scheduler in the kernel: loaded, watched, let go.

use crate::decisions::{Decision, Decisions};
use crate::tasks::{self, Task};
use crate::{Error, kernel, log, shape};
use bpf::HearthSkelBuilder;
use hearth_machine::host::HostTopology;
use hearth_policy::Policy;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};
use std::mem::MaybeUninit;
use std::ptr;

#[allow(warnings, clippy::all)]
pub(crate) mod bpf {
    include!(concat!(env!("OUT_DIR"), "/hearth.skel.rs"));
}

/// `SCX_OPS_SWITCH_PARTIAL`: only tasks that ask for sched_ext are scheduled by it.
const SWITCH_PARTIAL: u64 = 1 << 3;

/// `SCX_ECODE_ACT_RESTART`: the kernel asks to be given the scheduler again.
const RESTART: i64 = 1 << 48;

/// How to load the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only tasks of the scheduling class `SCHED_EXT` are Hearth's; else all of the class `SCHED_OTHER`.
    pub partial: bool,
    /// For tests: tasks that wait never run, until the kernel ends the scheduler.
    pub stalls: bool,
}

/// What the dispatches of one CPU led to (`struct hearth_stats`). Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CpuStats {
    /// The task that was running went on.
    pub kept: u64,
    /// From this CPU's queue.
    pub own: u64,
    /// From another queue of the cache domain.
    pub domain: u64,
    /// From a queue of another domain.
    pub foreign: u64,
    /// Placed on this CPU, idle, at wake-up.
    pub direct: u64,
    /// Wake-ups that preempted a task here.
    pub preempted: u64,
    /// Nothing was runnable.
    pub idle: u64,
    /// A task that had waited for too long, whatever its rank.
    #[serde(default)]
    pub late: u64,
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
}

impl Exit {
    /// Whether the kernel expects the scheduler to be loaded again, as after CPU hotplug.
    pub fn wants_restart(&self) -> bool {
        self.code & RESTART != 0
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
}

impl Scheduler {
    /// Loads the scheduler with a policy for this host, and waits until the kernel has switched to it.
    pub fn start(policy: &Policy, host: &HostTopology, options: Options) -> Result<Self, Error> {
        kernel::check_sched_ext()?;
        if let Some(name) = kernel::loaded_scheduler() {
            let hint = if name.starts_with("hearth") { ": hearth stop" } else { "" };
            return Err(Error::Busy { name, hint });
        }
        let topology = shape::topology(host)?;
        let refused = |step| move |source| Error::refused(step, source);
        // Lives as long as the process: the skeleton borrows from it.
        let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        log::keep();
        let mut open = HearthSkelBuilder::default().open(object).map_err(refused("open"))?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.policy = shape::policy(policy, kernel::tick_ns());
            rodata.topology = topology;
            rodata.stalls = options.stalls;
        }
        // SAFETY: the pointer is to the operations of this very object, which nothing else uses yet.
        let operations = unsafe { &mut *open.struct_ops.hearth_ops };
        if options.partial {
            operations.flags |= SWITCH_PARTIAL;
        }
        if !policy.complex {
            // Not called at all, for it would have nothing to do.
            operations.stopping = ptr::null_mut();
        }
        let mut skeleton = open.load().map_err(refused("load"))?;
        let link = skeleton.maps.hearth_ops.attach_struct_ops().map_err(refused("attach"))?;
        let cpus = host.cpus.iter().map(|cpu| cpu.id).collect();
        Ok(Self { _link: link, skeleton, decisions: None, cpus })
    }

    fn shared(&self) -> Option<&bpf::types::bss> {
        self.skeleton.maps.bss_data.as_deref()
    }

    /// The statistics of each CPU that was online at the start, with its number.
    pub fn stats(&self) -> Vec<(usize, CpuStats)> {
        let Some(shared) = self.shared() else { return Vec::new() };
        let read = |cpu: usize| {
            // SAFETY: aligned, inside the mapping; the kernel writes it meanwhile, so it is read whole and once.
            let raw = unsafe { ptr::read_volatile(&raw const shared.stats[cpu]) };
            let bpf::types::hearth_stats { kept, own, domain, foreign, direct, preempted, idle, late } = raw;
            (cpu, CpuStats { kept, own, domain, foreign, direct, preempted, idle, late })
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
        tasks::look_up(&self.skeleton.maps.task_ctxs, tid)
    }

    /// Why the kernel let go of the scheduler; `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        let shared = self.shared()?;
        // SAFETY: as in `stats`; the kernel writes this one last.
        let kind = unsafe { ptr::read_volatile(&raw const shared.exited.kind) };
        (kind != 0).then(|| Exit {
            kind,
            code: shared.exited.code,
            reason: text(&shared.exited.reason),
            message: text(&shared.exited.message),
            dump: text(&shared.exit_dump),
        })
    }
}

fn text(bytes: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
