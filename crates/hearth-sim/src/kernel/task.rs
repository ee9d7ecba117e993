//! A task: its program, stopped between two calls, and what the kernel knows of it.

use crate::memory::Memory;
use crate::program::{Body, Class, Cpu, Request, Resume, TaskId};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use hearth_hardware::{Address, Port};
use hearth_machine::CpuSet;
use std::rc::Rc;

/// Bytes of stack that a program has.
const STACK_BYTES: usize = 256 << 10;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Blocked,
    /// Runnable, but not running.
    Waiting,
    Running,
    Dead,
}

/// A task's number in the kernel, where 0 is nobody's.
pub(crate) fn pid_of(task: TaskId) -> hearth_scx::Pid {
    task as hearth_scx::Pid + 1
}

/// The task of a number that [`pid_of`] gave.
pub(crate) fn task_of(pid: hearth_scx::Pid) -> TaskId {
    pid as TaskId - 1
}

/// A task of the simulated kernel.
pub(crate) struct Task {
    pub(crate) application: usize,
    /// The CPUs that it was given, as bits.
    pub(crate) mask: CpuSet,
    /// What sched_ext knows of it.
    pub(crate) scx: Rc<hearth_scx::Task>,
    pub(crate) is_dead: bool,
    pub(crate) class: Class,
    /// CPU time in a higher class, of which sched_ext has not been told, and since when it runs there.
    pub(crate) higher_ps: u64,
    pub(crate) higher_since_ps: u64,
    /// The kernel's own data about it, in simulated memory.
    pub(crate) kernel_data: Address,
    /// A wake-up came while it was not blocked.
    pub(crate) wake_pending: bool,
    /// When it was woken, until it runs.
    pub(crate) woken_ps: Option<u64>,
    /// The CPU where it last ran.
    pub(crate) last_cpu: Option<usize>,
    /// The answer to its last request.
    pub(crate) answer: usize,
    /// Bytes of a request to the disk that it will start on a CPU that can.
    pub(crate) pending_io: Option<u64>,
    /// What it has still to compute before it goes on.
    pub(crate) rest_ps: u64,
    program: Option<Coroutine<Resume, Request, ()>>,
}

impl Task {
    pub(crate) fn new(
        id: TaskId,
        application: usize,
        mask: CpuSet,
        scx: Rc<hearth_scx::Task>,
        kernel_data: Address,
        memory: &Memory,
        body: Body,
    ) -> Self {
        let memory = memory.clone();
        // Only the host running out of address space can make this fail.
        #[expect(clippy::expect_used)]
        let stack = DefaultStack::new(STACK_BYTES).expect("no memory for a task's stack");
        let program = Coroutine::with_stack(stack, move |yielder, resume| {
            body(&mut Cpu::new(resume, memory, yielder, id));
        });
        Self {
            application,
            mask,
            scx,
            is_dead: false,
            class: Class::Normal,
            higher_ps: 0,
            higher_since_ps: 0,
            kernel_data,
            wake_pending: false,
            woken_ps: None,
            last_cpu: None,
            answer: 0,
            pending_io: None,
            rest_ps: 0,
            program: Some(program),
        }
    }

    /// Whether it is in a class above sched_ext's.
    pub(crate) fn is_higher(&self) -> bool {
        self.class == Class::RealTime
    }

    /// Computes for what is left of that, up to the port's limit; whether that was not all.
    pub(crate) fn computes_on(&mut self, port: &Port) -> bool {
        let room_ps = port.limit_ps().saturating_sub(port.now_ps());
        let ps = self.rest_ps.min(room_ps);
        port.advance_ps(ps);
        let is_due = self.rest_ps > 0 && self.rest_ps >= room_ps;
        self.rest_ps -= ps;
        is_due
    }

    /// Lets the program go on; returns what it asks for, or nothing if it has ended.
    pub(crate) fn resume(&mut self, resume: Resume) -> Option<Request> {
        let result = self.program.as_mut()?.resume(resume);
        match result {
            CoroutineResult::Yield(request) => Some(request),
            CoroutineResult::Return(()) => {
                self.program = None;
                None
            }
        }
    }
}
