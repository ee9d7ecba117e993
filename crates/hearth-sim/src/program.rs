//! What a program may do on the simulated machine.
//!
//! A program is ordinary code: a closure that is given a [`Cpu`] and makes its references through it
//! as it computes. It runs on a stack of its own and may lose its CPU at any call, to find itself on
//! another one later.

pub use crate::application::{Application, Asked};
use crate::memory::{Code, Memory};
use corosensei::Yielder;
use hearth_hardware::{Access, Address, Missed, Mode, Port};
pub use hearth_hardware::{Piece, Span, Work};
use hearth_machine::CpuSet;
pub use hearth_policy::snapshot::Asks;
use serde::Serialize;
use std::rc::Rc;

/// The number of a task, from 0 in order of creation.
pub type TaskId = usize;

/// The code of a task.
pub type Body = Box<dyn FnOnce(&mut Cpu<'_>)>;

/// Why a dispatch interval ended (paper of Torrellas, Tucker and Gupta, table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The time slice was used up.
    Quantum,
    /// The task blocked: I/O, a semaphore, sleep.
    Block,
    /// A lock or barrier was not to be had, and the task gave up its CPU.
    Synchronization,
    /// A system call of the task's own led to a look at the run queue.
    SystemCall,
    /// An interrupt led to a look at the run queue.
    Interrupt,
    /// The task ended.
    Exit,
}

impl End {
    /// All of them, in order.
    pub const ALL: [End; 6] =
        [End::Quantum, End::Block, End::Synchronization, End::SystemCall, End::Interrupt, End::Exit];
}

/// A scheduling class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// sched_ext: the scheduler's own tasks.
    #[default]
    Normal,
    /// Above it: such a task keeps its CPU until it blocks, yields or leaves the class.
    RealTime,
}

/// What a program asks of the kernel when it stops running.
pub(crate) enum Request {
    /// The engine's time limit was reached.
    Due,
    /// The engine's time limit was reached, and so long is still to be computed.
    Compute {
        rest_ps: u64,
    },
    /// Go on only when no other CPU is behind this one.
    Synchronize,
    /// Give up the CPU, staying runnable.
    Yield(End),
    /// Block until woken.
    Block,
    Wake {
        task: TaskId,
        is_sync: bool,
    },
    SystemCall,
    Sleep {
        ns: u64,
    },
    Io {
        bytes: u64,
    },
    Fork {
        name: String,
        body: Body,
    },
    SetWeight {
        task: TaskId,
        weight: u32,
    },
    SetMask {
        task: TaskId,
        cpus: CpuSet,
    },
    SetClass {
        task: TaskId,
        class: Class,
    },
    SetOnline {
        cpu: usize,
        is_online: bool,
    },
    /// The parallel section begins or ends.
    Parallel {
        begins: bool,
    },
    /// The data that the task is about to work on; 0 for none.
    Declare {
        fragment: u64,
    },
    /// The task is where it was moved for what it declared.
    Found,
    PageFault(Address),
    /// A miss that the kernel wants to know of.
    Missed(Missed),
}

/// What the kernel tells a program when it runs again.
pub(crate) struct Resume {
    pub(crate) port: Rc<Port>,
    /// The answer to the request, if it has one.
    pub(crate) value: usize,
}

/// A reference of a span is to this much.
const WORD_BYTES: u64 = 8;
/// What writing a word and comparing another takes.
const DECLARING_CYCLES: u64 = 10;

/// The CPU that a program runs on, whichever that is just now.
pub struct Cpu<'a> {
    port: Rc<Port>,
    memory: Memory,
    yielder: &'a Yielder<Resume, Request>,
    task: TaskId,
    /// The program stands for the kernel just now.
    in_kernel: bool,
}

impl<'a> Cpu<'a> {
    pub(crate) fn new(
        resume: Resume,
        memory: Memory,
        yielder: &'a Yielder<Resume, Request>,
        task: TaskId,
    ) -> Self {
        Self { port: resume.port, memory, yielder, task, in_kernel: false }
    }

    fn request(&mut self, request: Request) -> usize {
        let resume = self.yielder.suspend(request);
        self.port = resume.port;
        resume.value
    }

    #[inline(always)]
    fn after_reference(&mut self) {
        if self.port.is_due() {
            self.request(Request::Due);
        }
    }

    /// Loads from an address.
    #[inline(always)]
    pub fn read(&mut self, address: Address) {
        if !self.port.read(address) {
            self.reference(address, Access::Read);
        }
        self.after_reference();
    }

    /// Stores to an address.
    #[inline(always)]
    pub fn write(&mut self, address: Address) {
        if !self.port.write(address) {
            self.reference(address, Access::Write);
        }
        self.after_reference();
    }

    /// Loads a range, eight bytes a reference.
    pub fn read_span(&mut self, address: Address, bytes: u64) {
        self.span(address, bytes, Self::read, Port::read_again);
    }

    /// Stores a range, eight bytes a reference.
    pub fn write_span(&mut self, address: Address, bytes: u64) {
        self.span(address, bytes, Self::write, Port::write_again);
    }

    /// References to the words of a range. Those to a line that follow its first are made `again`, all at once,
    /// where nothing comes between them.
    #[inline(always)]
    fn span(
        &mut self,
        address: Address,
        bytes: u64,
        once: impl Fn(&mut Self, Address),
        again: impl Fn(&Port, Address, u64) -> bool,
    ) {
        let line_bytes = self.port.line_bytes();
        let (mut word, mut left) = (address, bytes.div_ceil(WORD_BYTES));
        while left > 0 {
            once(self, word);
            word += WORD_BYTES;
            left -= 1;
            let of_line = left.min((word.next_multiple_of(line_bytes) - word).div_ceil(WORD_BYTES));
            if of_line > 0 && again(&self.port, word, of_line) {
                self.after_reference();
                word += of_line * WORD_BYTES;
                left -= of_line;
            }
        }
    }

    /// Fetches the instructions of a piece of code once. Takes time only where they are not in the
    /// cache; what they do is charged by the other calls. A loop is fetched once: its later rounds
    /// find its lines where they are.
    pub fn fetch(&mut self, code: Code) {
        let line = self.port.line_bytes();
        let mut address = code.base & !(line - 1);
        while address < code.base + code.bytes {
            if !self.port.fetch(address) {
                self.reference(address, Access::Fetch);
            }
            self.after_reference();
            address += line;
        }
    }

    /// Executes pieces of a program for as long as nothing can come between. Returns the first that is to be executed
    /// step by step; `None`: all are done.
    #[inline(always)]
    pub fn run<P: Piece>(&mut self, pieces: &mut impl Iterator<Item = P>) -> Option<P> {
        self.port.run(pieces)
    }

    /// Executes a piece of code from end to end: fetches it, one cycle an instruction of four bytes.
    pub fn execute(&mut self, code: Code) {
        self.fetch(code);
        self.compute(code.bytes / 4);
    }

    /// Computes for a number of cycles without a reference.
    #[inline(always)]
    pub fn compute(&mut self, cycles: u64) {
        self.port.compute(cycles);
        if self.port.is_due() {
            self.compute_past_limit();
        }
    }

    /// Time went past the limit: lets the engine in at the limit, which then spends the rest.
    #[cold]
    fn compute_past_limit(&mut self) {
        let rest_ps = self.port.now_ps() - self.port.limit_ps();
        self.port.set_now_ps(self.port.limit_ps());
        self.request(Request::Compute { rest_ps });
    }

    /// What the kernel does for this task and the program has to say: its misses are none of the program's own
    /// ([`own_l2_misses`](hearth_hardware::Counters::own_l2_misses)).
    pub fn in_kernel<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.in_kernel, true);
        let result = work(self);
        self.in_kernel = before;
        result
    }

    #[inline(never)]
    fn reference(&mut self, address: Address, access: Access) {
        let cpu = self.port.index();
        let touched = self.memory.hardware().borrow_mut().reference(cpu, address, access, Mode::User);
        if touched.beyond_l2 && !self.in_kernel {
            self.port.own_l2_miss();
        }
        if touched.page_fault {
            self.request(Request::PageFault(address));
        }
        if let Some(missed) = touched.missed {
            self.request(Request::Missed(missed));
        }
    }

    /// Goes on only when no other CPU is behind this one in time: what follows, up to the next
    /// reference that takes time, happens in its true order among all CPUs. Locks use it.
    pub fn synchronize(&mut self) {
        if !self.port.is_first() {
            self.request(Request::Synchronize);
        }
    }

    /// Marks where the program's parallel section begins and ends, for measures. Takes no time. A program may
    /// have several; they add up.
    pub fn mark_parallel(&mut self, begins: bool) {
        self.synchronize();
        self.request(Request::Parallel { begins });
    }

    /// Has pages that begin in a range of addresses, and that nobody has touched, get memory of the node of
    /// CPU `near`, wherever they are touched first: a system call.
    pub fn place(&mut self, address: Address, bytes: u64, near: usize) {
        self.memory.hardware().borrow_mut().place(address, bytes, near);
        self.system_call();
    }

    /// The clock, in nanoseconds since the machine started.
    pub fn now_ns(&self) -> u64 {
        self.port.now_ps() / 1000
    }

    /// Picoseconds of one cycle.
    pub fn cycle_ps(&self) -> u64 {
        self.port.cycle_ps()
    }

    /// The number of this CPU, until the next call that may lose it.
    pub fn number(&self) -> usize {
        self.port.index()
    }

    /// This task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Hands out more memory.
    pub fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// A system call that only takes time.
    pub fn system_call(&mut self) {
        self.request(Request::SystemCall);
    }

    /// Gives up the CPU (the system call `sched_yield`): someone else runs, if there is anyone.
    pub fn yield_now(&mut self) {
        self.request(Request::Yield(End::SystemCall));
    }

    /// Declares the data fragment that this task is about to work on, a number of its application, or of all
    /// with the top bit set; not 0. Where the policy has the credit `fragment`, the task is at the fragment's
    /// home when this returns. There already, it costs a few instructions, else a system call.
    pub fn enter(&mut self, fragment: u64) {
        self.compute(DECLARING_CYCLES);
        if self.request(Request::Declare { fragment }) != 0 {
            self.yield_now();
            self.request(Request::Found);
        }
    }

    /// Declares that this task works on no fragment any more.
    pub fn leave(&mut self) {
        self.compute(DECLARING_CYCLES);
        self.request(Request::Declare { fragment: 0 });
    }

    /// Gives up the CPU because a lock is held or a barrier is not full.
    pub fn yield_for_synchronization(&mut self) {
        self.request(Request::Yield(End::Synchronization));
    }

    /// Blocks for a time.
    pub fn sleep_ns(&mut self, ns: u64) {
        self.request(Request::Sleep { ns });
    }

    /// Reads or writes `bytes` of a file: blocks until the disk has served it.
    pub fn io(&mut self, bytes: u64) {
        self.request(Request::Io { bytes });
    }

    /// Starts a task of the same application; returns its number.
    pub fn fork(&mut self, name: &str, body: impl FnOnce(&mut Cpu<'_>) + 'static) -> TaskId {
        self.request(Request::Fork { name: name.into(), body: Box::new(body) })
    }

    /// Blocks until [`wake`](Self::wake) is called for this task. A wake that came first is not lost.
    pub fn block(&mut self) {
        self.request(Request::Block);
    }

    /// Wakes a task that called [`block`](Self::block), or is about to.
    pub fn wake(&mut self, task: TaskId) {
        self.request(Request::Wake { task, is_sync: false });
    }

    /// As [`wake`](Self::wake), and tells the scheduler that this task will probably sleep soon: as kernels wake
    /// who waits for a pipe or a socket (`wake_up_interruptible_sync_poll`).
    pub fn wake_and_sleep(&mut self, task: TaskId) {
        self.request(Request::Wake { task, is_sync: true });
    }

    /// Changes the weight of a task: 100 at nice 0, from 1 to 10,000.
    pub fn set_weight(&mut self, task: TaskId, weight: u32) {
        self.request(Request::SetWeight { task, weight });
    }

    /// Changes the CPUs that a task may run on. False if none of them is there: nothing changes.
    pub fn set_mask(&mut self, task: TaskId, cpus: CpuSet) -> bool {
        self.request(Request::SetMask { task, cpus }) != 0
    }

    /// Takes a task to another class, as `sched_setscheduler` and inherited priorities do.
    pub fn set_class(&mut self, task: TaskId, class: Class) {
        self.request(Request::SetClass { task, class });
    }

    /// Takes a CPU away, or brings it back. The kernel ends the scheduler for it, and it is loaded anew; so
    /// what its dispatches led to is counted from there. Nothing happens to the last CPU.
    pub fn set_online(&mut self, cpu: usize, is_online: bool) {
        self.request(Request::SetOnline { cpu, is_online });
    }
}
