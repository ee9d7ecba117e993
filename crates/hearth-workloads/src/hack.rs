//! Hackbench: groups of processes, in each of which every sender writes messages to every receiver, over pipes.
//!
//! Each receiver has a pipe, which all senders of its group write to. What a group's processes share is the
//! kernel's: pipes and their pages. It is the fragment that they declare, by name, as processes must.

use crate::streams::{Kind as StreamKind, Stream, Transport, touch};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled};
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use std::cell::RefCell;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "hack",
    description: "groups of processes that write messages to each other over pipes",
    kind: Kind::Real,
    source: "\"Thread Scheduling Based on Data Affinity\", section 5; hackbench",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "groups", description: "groups", default: 10, range: 1..=100 },
    Parameter { name: "pairs", description: "senders of a group, and receivers", default: 20, range: 1..=50 },
    Parameter {
        name: "messages",
        description: "messages of each sender to each receiver at scale 1",
        default: 100,
        range: 1..=100_000,
    },
];

const MESSAGE_BYTES: u64 = 100;
/// Bit 63 of a fragment's number: it is the same for all processes.
const SHARED: u64 = 1 << 63;
/// What a process touches of its own stack around a system call.
const STACK_BYTES: u64 = 256;

/// A pipe of Linux 2.6: one page, and the part of its inode that says who waits.
static PIPE: StreamKind = StreamKind {
    send: (2 << 10, 1_500),
    receive: (2 << 10, 1_500),
    end_bytes: 128,
    buffer_bytes: 0,
    capacity: 4096 / MESSAGE_BYTES as usize,
};

/// A group, as its processes share it.
struct Group {
    pairs: usize,
    messages: usize,
    /// To each receiver.
    pipes: Vec<Stream<(usize, usize)>>,
    /// By receiver and sender: the messages that came, in order.
    came: RefCell<Vec<Vec<usize>>>,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of messages.
pub(crate) fn build(memory: &Memory, scale: f64, _seed: u64, numbers: &Numbers) -> Built {
    let pairs = numbers.of("pairs");
    let messages = scaled(numbers.of("messages"), scale);
    let pipe = Transport::new(memory, &PIPE);
    let groups: Vec<Rc<Group>> =
        (0..numbers.of("groups")).map(|_| Rc::new(Group::new(&pipe, pairs, messages))).collect();
    let mut application = Application::new(DESCRIPTION.name);
    for (number, group) in groups.iter().enumerate() {
        for pair in 0..pairs {
            let mut process = |name: &str, work: fn(&Group, &mut Cpu<'_>, usize, Address)| {
                let group = Rc::clone(group);
                let stack = memory.segment(STACK_BYTES + MESSAGE_BYTES, Placement::FirstTouch).base;
                application.task(&format!("{name}-{number}-{pair}"), move |cpu| {
                    cpu.enter(SHARED | (number as u64 + 1));
                    work(&group, cpu, pair, stack);
                    cpu.leave();
                });
            };
            process("receiver", Group::receive);
            process("sender", Group::send);
        }
    }
    Built::new(application, move || {
        groups.iter().enumerate().try_for_each(|(number, group)| group.check(number))
    })
}

impl Group {
    fn new(pipe: &Transport, pairs: usize, messages: usize) -> Self {
        let stream = |_| {
            let end = pipe.end();
            pipe.stream(end, end)
        };
        let came = RefCell::new(vec![vec![0; pairs]; pairs]);
        Self { pairs, messages, pipes: (0..pairs).map(stream).collect(), came }
    }

    fn send(&self, cpu: &mut Cpu<'_>, sender: usize, stack: Address) {
        for number in 0..self.messages {
            for pipe in &self.pipes {
                touch(cpu, stack, STACK_BYTES);
                pipe.send(cpu, stack + STACK_BYTES, MESSAGE_BYTES, (sender, number));
            }
        }
    }

    fn receive(&self, cpu: &mut Cpu<'_>, receiver: usize, stack: Address) {
        for _ in 0..self.pairs * self.messages {
            touch(cpu, stack, STACK_BYTES);
            let (sender, number) = self.pipes[receiver].receive(cpu, stack + STACK_BYTES, MESSAGE_BYTES);
            let came = &mut self.came.borrow_mut()[receiver][sender];
            if *came == number {
                *came += 1;
            }
        }
    }

    /// Every message has come to its receiver, in the order of its sender.
    fn check(&self, number: usize) -> Result<(), String> {
        for (receiver, came) in self.came.borrow().iter().enumerate() {
            if let Some(sender) = came.iter().position(|&came| came != self.messages) {
                let (came, all) = (came[sender], self.messages);
                return Err(format!(
                    "group {number}: {came} of {all} messages came from {sender} to {receiver}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn every_message_comes_to_its_receiver_in_order(
            groups in 1..4usize, pairs in 1..5usize, messages in 1..60usize
        ) {
            let given = format!("groups={groups},pairs={pairs},messages={messages}");
            let numbers = Numbers::read("hack", PARAMETERS, &given).unwrap();
            trial::run_by_data(|memory| build(memory, 1.0, 1, &numbers));
        }
    }
}
