//! The scheduler in the kernel: loaded, watched, let go.

use crate::decisions::{Decision, Decisions};
use crate::ending::Stall;
use crate::fragments::FragmentsStatus;
use crate::object::{self, Layout, Object, Setup};
use crate::tasks::{self, Task};
use crate::{Error, log, shape, words};
use hearth_abi::{self as seam, CpuStats, DUMP_BYTES, Fragment, MAX_FRAGMENTS};
use hearth_host::{kernel, moves};
use hearth_machine::host::HostTopology;
use hearth_policy::Policy;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use std::{ptr, slice};

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
    object: Box<dyn Object>,
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
        log::keep();
        let setup = Setup {
            policy: seam::Policy::new(&policy.on(costs), kernel::tick_ns()),
            topology: shape::topology(host, costs)?,
            shape: seam::Shape::undivided(&host.domains()),
            watchdog_ms: options.watchdog_ms(),
            stalls: options.stalls,
            flags: flags(&options),
            // It would have nothing to do; where tasks declare, another is told (words.h).
            is_told_of_stops: policy.complex,
            heeds_words: policy.credit.fragment_ns > 0,
        };
        let object = object::load(policy, &setup)?;
        let cpus = host.cpus.iter().map(|cpu| cpu.id).collect();
        Ok(Self { object, decisions: None, cpus, heeds_words: setup.heeds_words })
    }

    /// The map of what it remembers of tasks; its memory, and what lies where in that.
    pub(crate) fn maps(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>, Layout) {
        let (data, layout) = self.object.data();
        (self.object.tasks().as_fd(), data, layout)
    }

    /// The programs that know where tasks declare the data that they work on, if the policy heeds that.
    pub(crate) fn words(&self) -> Result<Option<words::Programs>, Error> {
        if !self.heeds_words {
            return Ok(None);
        }
        let own = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|source| Error::refused("words", source.into()))
        };
        let [register, switched] = self.object.words();
        Ok(Some(words::Programs { register: own(register)?, switched: own(switched)? }))
    }

    /// The statistics of each CPU that was online at the start, with its number.
    pub fn stats(&self) -> Vec<(usize, CpuStats)> {
        // SAFETY: one of MAX_CPUS, for a host of more is refused; the kernel writes it meanwhile, so it is read whole
        // and once.
        let read = |cpu: usize| (cpu, unsafe { ptr::read_volatile(self.object.globals().stats.add(cpu)) });
        self.cpus.iter().copied().map(read).collect()
    }

    /// Has decisions told from now on: those of a thread or process, or all. One client at a time.
    pub fn trace(&mut self, pid: Option<i32>) -> Result<(), Error> {
        if self.decisions.is_some() {
            return Err(Error::Traced);
        }
        let decisions = Decisions::new(self.object.decisions());
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
        let globals = self.object.globals();
        // SAFETY: the kernel reads them meanwhile, so each is written whole.
        unsafe {
            ptr::write_volatile(globals.traced_pid, pid);
            ptr::write_volatile(globals.tracing, u32::from(on));
        }
    }

    /// The decisions that were told since the last call, by time, and how many found no room so far.
    pub fn decisions(&self) -> (Vec<Decision>, u64) {
        // SAFETY: as in `stats`.
        let lost = unsafe { ptr::read_volatile(self.object.globals().decisions_lost) };
        (self.decisions.as_ref().map(Decisions::take).unwrap_or_default(), lost)
    }

    /// What the scheduler remembers of a thread; `None` if it is gone, or not Hearth's.
    pub fn task(&self, tid: i32) -> Option<Task> {
        tasks::look_up(self.object.tasks(), tid, |place| {
            (place < MAX_FRAGMENTS).then(|| self.fragment(place))
        })
    }

    /// What tasks declare; `None` if none has since the scheduler was loaded.
    pub fn fragments(&self) -> Option<FragmentsStatus> {
        let globals = self.object.globals();
        // SAFETY: as in `stats`. The table is large: it is not touched before it is used.
        let (are_used, refused) = unsafe {
            (
                ptr::read_volatile(globals.fragments_are_used) != 0,
                ptr::read_volatile(globals.fragments_refused),
            )
        };
        let all = (0..MAX_FRAGMENTS).map(|place| self.fragment(place));
        are_used.then(|| FragmentsStatus::of(all, refused))
    }

    /// The fragment at one of the `MAX_FRAGMENTS` places.
    fn fragment(&self, place: usize) -> Fragment {
        // SAFETY: as in `stats`; the index is below `MAX_FRAGMENTS`.
        unsafe { ptr::read_volatile(self.object.globals().fragments.add(place)) }
    }

    /// Why the kernel let go of the scheduler; `None` while it runs.
    pub fn exit(&self) -> Option<Exit> {
        let globals = self.object.globals();
        // SAFETY: as in `stats`; the kernel writes this one last.
        let kind = unsafe { ptr::read_volatile(&raw const (*globals.ended).kind) };
        if kind == 0 {
            return None;
        }
        // SAFETY: as in `stats`; nothing writes them any more.
        let (ended, dump) = unsafe { (*globals.ended, slice::from_raw_parts(globals.dump, DUMP_BYTES)) };
        let message = text(&ended.message);
        Some(Exit {
            kind,
            code: ended.code,
            reason: text(&ended.reason),
            waited: self.waited(&message, ended.at),
            message,
            dump: text(dump),
        })
    }

    /// For how long the task had waited that the kernel named at a time in jiffies, if that is not what it counted.
    fn waited(&self, message: &str, at: u64) -> Option<Duration> {
        let stall = Stall::parse(message)?;
        // SAFETY: as in `exit`.
        let noted = unsafe { *self.object.globals().false_waits };
        let of_task = noted.iter().filter(|noted| noted.pid == stall.pid);
        let came_at = of_task.map(|noted| noted.came_at).max()?;
        let tick = Duration::from_nanos(kernel::tick_ns());
        let ticks = u32::try_from(at.checked_sub(came_at)?).ok()?;
        stall.really_waited(tick.checked_mul(ticks)?, tick)
    }
}

/// Flags of sched_ext's, beside those that are always set, as far as this kernel has them.
fn flags(options: &Options) -> u64 {
    let partial = if options.partial { seam::OPS_SWITCH_PARTIAL } else { 0 };
    let known = [
        ("SCX_OPS_ENQ_MIGRATION_DISABLED", seam::OPS_ENQ_MIGRATION_DISABLED),
        ("SCX_OPS_ALLOW_QUEUED_WAKEUP", seam::OPS_ALLOW_QUEUED_WAKEUP),
    ];
    known.into_iter().filter(|(name, _)| kernel::has(name)).fold(partial, |flags, (_, flag)| flags | flag)
}

fn text(bytes: &[u8]) -> String {
    let until = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..until]).into_owned()
}
