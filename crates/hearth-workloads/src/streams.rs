//! Streams of messages between tasks of one machine: TCP over the loopback, and pipes.
//!
//! What the kernel does for a message is a system call, a stretch of kernel text, cycles, and references to what
//! it keeps for the two ends and for the message. Whoever reads an empty stream or writes to a full one blocks.
//! The kernel's references count as the program's, but not among its own.

use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Cpu, TaskId};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The kernel touches a structure line by line.
const LINE_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;

/// A kind of stream: what the kernel does for a message.
pub(crate) struct Kind {
    /// Kernel text and cycles to send, and to receive.
    pub(crate) send: (u64, u64),
    pub(crate) receive: (u64, u64),
    /// Bytes of each end's structure that sending and receiving touch.
    pub(crate) end_bytes: u64,
    /// Bytes of the buffer that is allocated for each message; 0 if all share one page.
    pub(crate) buffer_bytes: u64,
    /// Messages that a stream holds, and to how many it empties before those that wait to write are woken.
    pub(crate) capacity: usize,
    pub(crate) writable: usize,
}

/// A kind of stream on a machine. Clones are the same.
#[derive(Clone)]
pub(crate) struct Transport {
    kind: &'static Kind,
    send: Code,
    receive: Code,
    pool: Rc<RefCell<Pool>>,
    memory: Memory,
}

/// Free buffers: as in a slab allocator, each CPU first takes what it gave back last.
#[derive(Default)]
struct Pool {
    of_cpu: BTreeMap<usize, Vec<Address>>,
}

impl Pool {
    fn take(&mut self, cpu: usize) -> Option<Address> {
        let own = self.of_cpu.get_mut(&cpu).and_then(Vec::pop);
        own.or_else(|| self.of_cpu.values_mut().find_map(Vec::pop))
    }

    fn give(&mut self, cpu: usize, buffer: Address) {
        self.of_cpu.entry(cpu).or_default().push(buffer);
    }
}

/// One direction between two ends. Clones name the same stream.
pub(crate) struct Stream<T> {
    transport: Transport,
    /// The sender's and the receiver's structure.
    ends: [Address; 2],
    page: Address,
    state: Rc<RefCell<State<T>>>,
}

impl<T> Clone for Stream<T> {
    fn clone(&self) -> Self {
        let Self { transport, ends, page, state } = self;
        Self { transport: transport.clone(), ends: *ends, page: *page, state: Rc::clone(state) }
    }
}

struct State<T> {
    /// Where each message lies, and what it says.
    messages: VecDeque<(Address, T)>,
    sent: u64,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
}

impl Transport {
    pub(crate) fn new(memory: &Memory, kind: &'static Kind) -> Self {
        let (send, receive) = (memory.code(kind.send.0), memory.code(kind.receive.0));
        Self { kind, send, receive, pool: Rc::default(), memory: memory.clone() }
    }

    /// What the kernel keeps for an end.
    pub(crate) fn end(&self) -> Address {
        self.memory.segment(self.kind.end_bytes, Placement::FirstTouch).base
    }

    /// A stream from one end to another.
    pub(crate) fn stream<T>(&self, from: Address, to: Address) -> Stream<T> {
        let page_bytes = if self.kind.buffer_bytes == 0 { PAGE_BYTES } else { 0 };
        let page = self.memory.segment(page_bytes.max(1), Placement::FirstTouch).base;
        let state =
            State { messages: VecDeque::new(), sent: 0, readers: VecDeque::new(), writers: VecDeque::new() };
        Stream { transport: self.clone(), ends: [from, to], page, state: Rc::new(RefCell::new(state)) }
    }

    fn buffer(&self, cpu: &Cpu<'_>) -> Address {
        let free = self.pool.borrow_mut().take(cpu.number());
        free.unwrap_or_else(|| self.memory.segment(self.kind.buffer_bytes, Placement::FirstTouch).base)
    }
}

impl<T> Stream<T> {
    /// Sends a message of `bytes` at `from`; blocks while the stream is full.
    pub(crate) fn send(&self, cpu: &mut Cpu<'_>, from: Address, bytes: u64, message: T) {
        cpu.in_kernel(|cpu| self.put(cpu, from, bytes, message));
    }

    /// Receives a message of `bytes` to `to`; blocks while there is none.
    pub(crate) fn receive(&self, cpu: &mut Cpu<'_>, to: Address, bytes: u64) -> T {
        cpu.in_kernel(|cpu| self.take(cpu, to, bytes))
    }

    fn put(&self, cpu: &mut Cpu<'_>, from: Address, bytes: u64, message: T) {
        let Transport { kind, send, .. } = self.transport;
        cpu.system_call();
        cpu.fetch(send);
        cpu.compute(kind.send.1);
        let full = |state: &State<T>| state.messages.len() >= kind.capacity;
        self.wait_while(cpu, full, |state| &mut state.writers);
        let at = match kind.buffer_bytes {
            0 => self.page + self.state.borrow().sent * bytes % (PAGE_BYTES - bytes),
            _ => self.transport.buffer(cpu),
        };
        let mut state = self.state.borrow_mut();
        state.sent += 1;
        state.messages.push_back((at, message));
        let reader = state.readers.pop_front();
        drop(state);
        cpu.read_span(from, bytes);
        cpu.write_span(at, bytes);
        self.touch_ends(cpu);
        touch(cpu, at + bytes, kind.buffer_bytes.saturating_sub(bytes));
        if let Some(reader) = reader {
            cpu.wake_and_sleep(reader);
        }
    }

    fn take(&self, cpu: &mut Cpu<'_>, to: Address, bytes: u64) -> T {
        let Transport { kind, receive, .. } = self.transport;
        cpu.system_call();
        cpu.fetch(receive);
        cpu.compute(kind.receive.1);
        let (at, message) = loop {
            self.wait_while(cpu, |state| state.messages.is_empty(), |state| &mut state.readers);
            if let Some(first) = self.state.borrow_mut().messages.pop_front() {
                break first;
            }
        };
        let writers = self.writers_to_wake();
        cpu.read_span(at, bytes);
        cpu.write_span(to, bytes);
        touch(cpu, self.ends[1], kind.end_bytes);
        if kind.buffer_bytes > 0 {
            touch(cpu, at + bytes, kind.buffer_bytes.saturating_sub(bytes));
            self.transport.pool.borrow_mut().give(cpu.number(), at);
        }
        writers.into_iter().for_each(|writer| cpu.wake_and_sleep(writer));
        message
    }

    /// All that wait to write, once there is room enough.
    fn writers_to_wake(&self) -> VecDeque<TaskId> {
        let mut state = self.state.borrow_mut();
        match state.messages.len() <= self.transport.kind.writable {
            true => std::mem::take(&mut state.writers),
            false => VecDeque::new(),
        }
    }

    /// Blocks while the stream is so, in one of its queues. What follows happens in its true order of time.
    fn wait_while(
        &self,
        cpu: &mut Cpu<'_>,
        is_so: impl Fn(&State<T>) -> bool,
        queue: impl Fn(&mut State<T>) -> &mut VecDeque<TaskId>,
    ) {
        cpu.synchronize();
        while is_so(&self.state.borrow()) {
            queue(&mut self.state.borrow_mut()).push_back(cpu.task());
            cpu.block();
            cpu.synchronize();
        }
    }

    /// Over the loopback the sender does the receiving end's part, too.
    fn touch_ends(&self, cpu: &mut Cpu<'_>) {
        self.ends.iter().for_each(|&end| touch(cpu, end, self.transport.kind.end_bytes));
    }
}

/// A store to each line of a range.
pub(crate) fn touch(cpu: &mut Cpu<'_>, base: Address, bytes: u64) {
    (base..base + bytes).step_by(LINE_BYTES as usize).for_each(|address| cpu.write(address));
}
