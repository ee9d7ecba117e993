//! Hackbench: groups of processes, in each of which every sender writes messages to every receiver, over pipes.
//!
//! Each receiver has a pipe, which all senders of its group write to. What a group's processes share is the
//! kernel's: pipes and their pages. It is the fragment that they declare, by name, as processes must.

use crate::messages::{Arrivals, MESSAGE_BYTES, Message, Stack, task};
use crate::streams::{Kind as StreamKind, Stream, Transport};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
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

/// Messages that fit into a page.
const CAPACITY: usize = 4096 / MESSAGE_BYTES as usize;

/// A pipe of Linux 2.6: one page, and the part of its inode that says who waits. Each read wakes the writers.
static PIPE: StreamKind = StreamKind {
    send: (2 << 10, 1_500),
    receive: (2 << 10, 1_500),
    end_bytes: 128,
    buffer_bytes: 0,
    capacity: CAPACITY,
    writable: CAPACITY - 1,
};

/// A group, as its processes share it.
struct Group {
    pairs: usize,
    messages: usize,
    /// To each receiver.
    pipes: Vec<Stream<Message>>,
    arrivals: Arrivals,
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
            let mut process = |name: &str, work: fn(&Group, &mut Cpu<'_>, usize, Stack)| {
                let group = Rc::clone(group);
                let name = format!("{name}-{number}-{pair}");
                task(&mut application, &name, memory, number, move |cpu, stack| {
                    work(&group, cpu, pair, stack);
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
        Self { pairs, messages, pipes: (0..pairs).map(stream).collect(), arrivals: Arrivals::new(pairs) }
    }

    fn send(&self, cpu: &mut Cpu<'_>, sender: usize, stack: Stack) {
        for number in 0..self.messages {
            for pipe in &self.pipes {
                stack.call(cpu);
                pipe.send(cpu, stack.message(), MESSAGE_BYTES, Message { from: sender, number });
            }
        }
    }

    fn receive(&self, cpu: &mut Cpu<'_>, receiver: usize, stack: Stack) {
        for _ in 0..self.pairs * self.messages {
            stack.call(cpu);
            let message = self.pipes[receiver].receive(cpu, stack.message(), MESSAGE_BYTES);
            self.arrivals.note(receiver, message);
        }
    }

    /// Every message has come to its receiver, in the order of its sender.
    fn check(&self, number: usize) -> Result<(), String> {
        self.arrivals.check(number, |_, _| self.messages)
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
