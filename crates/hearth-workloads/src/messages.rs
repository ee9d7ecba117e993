//! What [`chat`](crate::chat) and [`hack`](crate::hack) have in common: tasks that send each other numbered
//! messages, and work on the data of one group.

use crate::streams::touch;
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use std::cell::RefCell;

/// Bytes of a message.
pub(crate) const MESSAGE_BYTES: u64 = 100;
/// What a task touches of its own stack around a system call.
const CALL_BYTES: u64 = 256;
/// Bit 63 of a fragment's number: it is the same for all programs.
const SHARED: u64 = 1 << 63;

/// A message: who wrote it, and which of his messages it is.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) from: usize,
    pub(crate) number: usize,
}

/// A task's stack: what a call touches, and above it a message.
#[derive(Clone, Copy)]
pub(crate) struct Stack(Address);

impl Stack {
    fn new(memory: &Memory) -> Self {
        Self(memory.segment(CALL_BYTES + MESSAGE_BYTES, Placement::FirstTouch).base)
    }

    pub(crate) fn call(self, cpu: &mut Cpu<'_>) {
        touch(cpu, self.0, CALL_BYTES);
    }

    /// Where the message lies.
    pub(crate) fn message(self) -> Address {
        self.0 + CALL_BYTES
    }
}

/// Adds a task to a program, which declares the data of its group as long as it works.
pub(crate) fn task(
    application: &mut Application,
    name: &str,
    memory: &Memory,
    group: usize,
    work: impl FnOnce(&mut Cpu<'_>, Stack) + 'static,
) {
    let stack = Stack::new(memory);
    application.task(name, move |cpu| {
        cpu.enter(SHARED | (group as u64 + 1));
        work(cpu, stack);
        cpu.leave();
    });
}

/// The messages that came to each member of a group, from each, in the order of who wrote them.
pub(crate) struct Arrivals {
    came: RefCell<Vec<Vec<usize>>>,
}

impl Arrivals {
    pub(crate) fn new(members: usize) -> Self {
        Self { came: RefCell::new(vec![vec![0; members]; members]) }
    }

    pub(crate) fn note(&self, to: usize, message: Message) {
        let came = &mut self.came.borrow_mut()[to][message.from];
        if *came == message.number {
            *came += 1;
        }
    }

    /// Whether as many came to each from each as should, in order. `expected`: to whom, and from whom.
    pub(crate) fn check(&self, group: usize, expected: impl Fn(usize, usize) -> usize) -> Result<(), String> {
        for (to, came) in self.came.borrow().iter().enumerate() {
            for (from, &came) in came.iter().enumerate() {
                let expected = expected(to, from);
                if came != expected {
                    return Err(format!(
                        "group {group}: {came} of {expected} messages came in order from {from} to {to}"
                    ));
                }
            }
        }
        Ok(())
    }
}
