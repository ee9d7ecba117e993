//! The chat of the Linux Benchmark Suite (Hartner, IBM, 2000): rooms of users who send each other messages through
//! a server, over TCP on the loopback.
//!
//! Each user has a connection, and for it a sender and a receiver in the client and in the server. A message goes
//! from the client's sender to the server's receiver, which counts it in the user's semaphore; the user's sender
//! in the server waits for that and writes a message to the connection of each other user of the room, where the
//! client's receiver reads it. Nobody waits for answers. All four threads of a user work on the data of one room,
//! which is the fragment that they declare, by a number that client and server share.

use crate::messages::{Arrivals, MESSAGE_BYTES, Message, Stack, task};
use crate::streams::{Kind as StreamKind, Stream, Transport, touch};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled};
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Semaphore;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "chat",
    description: "chat rooms: users who broadcast messages through a server, four threads each",
    kind: Kind::Real,
    source: "\"Thread Scheduling Based on Data Affinity\", section 5.1; the Linux Benchmark Suite's chat",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "rooms", description: "rooms", default: 10, range: 1..=100 },
    Parameter { name: "users", description: "users of a room", default: 20, range: 2..=100 },
    Parameter {
        name: "messages",
        description: "messages of each user at scale 1",
        default: 500,
        range: 1..=100_000,
    },
];

/// A thread's entry in its program's table: room, semaphores, sockets, counts, a buffer.
const ENTRY_BYTES: u64 = 124;
/// In the kernel: a set of semaphores, and each of it.
const SET_BYTES: u64 = 64;
const SEMAPHORE_BYTES: u64 = 8;
/// Kernel text and cycles of an operation on a semaphore, beside the system call.
const SEMAPHORE_CODE: u64 = 1 << 10;
const SEMAPHORE_CYCLES: u64 = 500;

/// TCP over the loopback in Linux 2.6: half of a `tcp_sock`; an `sk_buff` and its data of 512 bytes; as many of
/// these as the default receive buffer of 87,380 bytes admits. Writers wake when a third is free.
static TCP: StreamKind = StreamKind {
    send: (8 << 10, 5_000),
    receive: (4 << 10, 2_500),
    end_bytes: 512,
    buffer_bytes: 768,
    capacity: 113,
    writable: 75,
};

/// A program's table of its threads: one entry for both of a connection.
#[derive(Clone, Copy)]
struct Table(Address);

/// A room's semaphores, one for each user: messages that have come from him.
struct Semaphores {
    of_user: Vec<Semaphore>,
    set: Address,
    code: Code,
}

/// A room, as its threads share it.
struct Room {
    users: usize,
    messages: usize,
    /// By user.
    to_server: Vec<Stream<Message>>,
    to_client: Vec<Stream<Message>>,
    client: Table,
    server: Table,
    came: Semaphores,
    arrivals: Arrivals,
}

/// What there is once.
struct Shared<'a> {
    memory: &'a Memory,
    tcp: Transport,
    semaphore_code: Code,
    client: Table,
    server: Table,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of messages.
pub(crate) fn build(memory: &Memory, scale: f64, _seed: u64, numbers: &Numbers) -> Built {
    let (rooms, users) = (numbers.of("rooms"), numbers.of("users"));
    let messages = scaled(numbers.of("messages"), scale);
    let shared = Shared {
        memory,
        tcp: Transport::new(memory, &TCP),
        semaphore_code: memory.code(SEMAPHORE_CODE),
        client: Table::new(memory, rooms * users),
        server: Table::new(memory, rooms * users),
    };
    let rooms: Vec<Rc<Room>> =
        (0..rooms).map(|number| Rc::new(Room::new(&shared, number, users, messages))).collect();
    let (mut client, mut server) = (Application::new("client"), Application::new("server"));
    for (number, room) in rooms.iter().enumerate() {
        for user in 0..users {
            let thread = |side: &mut Application, name: &str, work: fn(&Room, &mut Cpu<'_>, usize, Stack)| {
                let room = Rc::clone(room);
                let name = format!("{name}-{number}-{user}");
                task(side, &name, memory, number, move |cpu, stack| work(&room, cpu, user, stack));
            };
            thread(&mut server, "server-receiver", Room::receive_at_server);
            thread(&mut server, "server-sender", Room::send_from_server);
            thread(&mut client, "client-sender", Room::send_from_client);
            thread(&mut client, "client-receiver", Room::receive_at_client);
        }
    }
    let check = move || rooms.iter().enumerate().try_for_each(|(number, room)| room.check(number));
    Built { applications: vec![client, server], check: Box::new(check) }
}

impl Table {
    fn new(memory: &Memory, entries: usize) -> Self {
        Self(memory.segment(entries as u64 * ENTRY_BYTES, Placement::FirstTouch).base)
    }

    /// From some entry on.
    fn from(self, entry: usize) -> Self {
        Self(self.entry(entry))
    }

    fn entry(self, entry: usize) -> Address {
        self.0 + entry as u64 * ENTRY_BYTES
    }

    /// A look at a connection's socket.
    fn socket(self, cpu: &mut Cpu<'_>, user: usize) {
        cpu.read(self.entry(user));
    }

    /// A message more.
    fn count(self, cpu: &mut Cpu<'_>, user: usize) {
        cpu.write(self.entry(user));
    }
}

impl Semaphores {
    fn new(memory: &Memory, code: Code, users: usize) -> Self {
        let bytes = SET_BYTES + users as u64 * SEMAPHORE_BYTES;
        let set = memory.segment(bytes, Placement::FirstTouch).base;
        Self { of_user: (0..users).map(|_| Semaphore::new(0)).collect(), set, code }
    }

    fn post(&self, cpu: &mut Cpu<'_>, user: usize) {
        cpu.in_kernel(|cpu| self.operate(cpu, user).post(cpu));
    }

    fn wait(&self, cpu: &mut Cpu<'_>, user: usize) {
        cpu.in_kernel(|cpu| self.operate(cpu, user).wait(cpu));
    }

    /// What the kernel does for either.
    fn operate(&self, cpu: &mut Cpu<'_>, user: usize) -> &Semaphore {
        cpu.fetch(self.code);
        cpu.compute(SEMAPHORE_CYCLES);
        touch(cpu, self.set, SET_BYTES);
        cpu.write(self.set + SET_BYTES + user as u64 * SEMAPHORE_BYTES);
        &self.of_user[user]
    }
}

impl Room {
    fn new(shared: &Shared<'_>, number: usize, users: usize, messages: usize) -> Self {
        let tcp = &shared.tcp;
        let ends: Vec<(Address, Address)> = (0..users).map(|_| (tcp.end(), tcp.end())).collect();
        Self {
            users,
            messages,
            to_server: ends.iter().map(|&(client, server)| tcp.stream(client, server)).collect(),
            to_client: ends.iter().map(|&(client, server)| tcp.stream(server, client)).collect(),
            client: shared.client.from(number * users),
            server: shared.server.from(number * users),
            came: Semaphores::new(shared.memory, shared.semaphore_code, users),
            arrivals: Arrivals::new(users),
        }
    }

    fn send_from_client(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        cpu.write_span(stack.message(), MESSAGE_BYTES);
        for number in 0..self.messages {
            stack.call(cpu);
            self.to_server[user].send(cpu, stack.message(), MESSAGE_BYTES, Message { from: user, number });
            self.client.count(cpu, user);
        }
    }

    fn receive_at_server(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for _ in 0..self.messages {
            stack.call(cpu);
            self.server.socket(cpu, user);
            self.to_server[user].receive(cpu, stack.message(), MESSAGE_BYTES);
            self.came.post(cpu, user);
            self.server.count(cpu, user);
        }
    }

    /// Messages go on without what they say: the sender has a buffer of its own.
    fn send_from_server(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for number in 0..self.messages {
            self.came.wait(cpu, user);
            for other in (0..self.users).filter(|&other| other != user) {
                stack.call(cpu);
                self.server.socket(cpu, other);
                let message = Message { from: user, number };
                self.to_client[other].send(cpu, stack.message(), MESSAGE_BYTES, message);
                self.server.count(cpu, user);
            }
        }
    }

    fn receive_at_client(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for _ in 0..(self.users - 1) * self.messages {
            stack.call(cpu);
            let message = self.to_client[user].receive(cpu, stack.message(), MESSAGE_BYTES);
            self.client.count(cpu, user);
            self.arrivals.note(user, message);
        }
    }

    /// Every message has come to every other user of the room, in the order of its sender.
    fn check(&self, number: usize) -> Result<(), String> {
        self.arrivals.check(number, |to, from| if to == from { 0 } else { self.messages })
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
        fn every_message_comes_to_every_other_user_in_order(
            rooms in 1..4usize, users in 2..6usize, messages in 1..150usize
        ) {
            let given = format!("rooms={rooms},users={users},messages={messages}");
            let numbers = Numbers::read("chat", PARAMETERS, &given).unwrap();
            trial::run_by_data(|memory| build(memory, 1.0, 1, &numbers));
        }
    }
}
