//! The chat of the Linux Benchmark Suite: rooms of users who send each other messages through a server, over TCP
//! on the loopback.
//!
//! Each user has a connection, and for it a sender and a receiver in the client and in the server. A message
//! goes from the client's sender to the server's receiver, which puts it into the queues of all other users of
//! the room and wakes the server's senders; these write it to the clients' receivers. Nobody waits for answers,
//! so what the server has not sent yet piles up in its queues. All four threads of a user work on the data of
//! one room, which is the fragment that they declare, by a number that client and server share.

use crate::messages::{Arrivals, MESSAGE_BYTES, Message, Stack, task};
use crate::streams::{Kind as StreamKind, Stream, Transport, touch};
use crate::{Built, Description, Kind, Numbers, Parameter, scaled};
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::{Application, Cpu, TaskId};
use hearth_sim::two_phase::BlockingLock;
use std::cell::RefCell;
use std::collections::VecDeque;
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

/// A user's queue in the server: lock, head, tail and condition.
const QUEUE_BYTES: u64 = 128;
/// From the heap: a message with its count of readers, and a place in a queue.
const NOTE_BYTES: u64 = MESSAGE_BYTES + 12;
const PLACE_BYTES: u64 = 24;
/// Cycles to put a message into a queue, and to take it out.
const QUEUE_CYCLES: u64 = 100;

/// TCP over the loopback in Linux 2.6: half of a `tcp_sock`; an `sk_buff` and its data of 512 bytes; as many of
/// these as the default receive buffer of 87,380 bytes admits.
static TCP: StreamKind = StreamKind {
    send: (8 << 10, 5_000),
    receive: (4 << 10, 2_500),
    end_bytes: 512,
    buffer_bytes: 768,
    capacity: 113,
};

/// A message in the server's heap, and how many have still to send it.
struct Note {
    message: Message,
    at: Address,
    left: RefCell<usize>,
}

/// A user's queue in the server.
struct Queue {
    lock: BlockingLock,
    at: Address,
    waiting: RefCell<VecDeque<(Address, Rc<Note>)>>,
    /// The user's sender, if it waits for the queue.
    sleeper: RefCell<Option<TaskId>>,
}

/// The server's heap: free pieces of the two sizes, the last freed first.
struct Heap {
    memory: Memory,
    notes: RefCell<Vec<Address>>,
    places: RefCell<Vec<Address>>,
}

/// A room, as its threads share it.
struct Room {
    users: usize,
    messages: usize,
    to_server: Vec<Stream<Message>>,
    to_client: Vec<Stream<Message>>,
    queues: Vec<Queue>,
    heap: Rc<Heap>,
    arrivals: Arrivals,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of messages.
pub(crate) fn build(memory: &Memory, scale: f64, _seed: u64, numbers: &Numbers) -> Built {
    let (rooms, users) = (numbers.of("rooms"), numbers.of("users"));
    let messages = scaled(numbers.of("messages"), scale);
    let tcp = Transport::new(memory, &TCP);
    let heap =
        Rc::new(Heap { memory: memory.clone(), notes: RefCell::default(), places: RefCell::default() });
    let rooms: Vec<Rc<Room>> =
        (0..rooms).map(|_| Rc::new(Room::new(memory, &tcp, &heap, users, messages))).collect();
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
            thread(&mut client, "client-receiver", Room::receive_at_client);
            thread(&mut client, "client-sender", Room::send_from_client);
        }
    }
    let check = move || rooms.iter().enumerate().try_for_each(|(number, room)| room.check(number));
    Built { applications: vec![client, server], check: Box::new(check) }
}

impl Heap {
    /// A piece of memory, and one to give back to. Each costs a store to the piece.
    fn take(&self, cpu: &mut Cpu<'_>, free: &RefCell<Vec<Address>>, bytes: u64) -> Address {
        let freed = free.borrow_mut().pop();
        let at = freed.unwrap_or_else(|| self.memory.segment(bytes, Placement::FirstTouch).base);
        touch(cpu, at, bytes);
        at
    }
}

impl Queue {
    fn new(memory: &Memory) -> Self {
        let words: Array<u64> = memory.array(QUEUE_BYTES as usize / size_of::<u64>(), Placement::FirstTouch);
        Self {
            lock: BlockingLock::new(&words, 0),
            at: words.address(0),
            waiting: RefCell::default(),
            sleeper: RefCell::default(),
        }
    }

    fn put(&self, cpu: &mut Cpu<'_>, place: Address, note: Rc<Note>) {
        self.lock.acquire(cpu);
        touch(cpu, self.at, QUEUE_BYTES);
        cpu.compute(QUEUE_CYCLES);
        self.waiting.borrow_mut().push_back((place, note));
        let sleeper = self.sleeper.take();
        self.lock.release(cpu);
        if let Some(sleeper) = sleeper {
            cpu.wake(sleeper);
        }
    }

    /// Takes the first out; blocks while there is none.
    fn take(&self, cpu: &mut Cpu<'_>) -> (Address, Rc<Note>) {
        loop {
            self.lock.acquire(cpu);
            touch(cpu, self.at, QUEUE_BYTES);
            cpu.compute(QUEUE_CYCLES);
            let first = self.waiting.borrow_mut().pop_front();
            if first.is_none() {
                self.sleeper.replace(Some(cpu.task()));
            }
            self.lock.release(cpu);
            match first {
                Some((place, note)) => {
                    touch(cpu, place, PLACE_BYTES);
                    return (place, note);
                }
                None => cpu.block(),
            }
        }
    }
}

impl Room {
    fn new(memory: &Memory, tcp: &Transport, heap: &Rc<Heap>, users: usize, messages: usize) -> Self {
        let ends: Vec<(Address, Address)> = (0..users).map(|_| (tcp.end(), tcp.end())).collect();
        Self {
            users,
            messages,
            to_server: ends.iter().map(|&(client, server)| tcp.stream(client, server)).collect(),
            to_client: ends.iter().map(|&(client, server)| tcp.stream(server, client)).collect(),
            queues: (0..users).map(|_| Queue::new(memory)).collect(),
            heap: Rc::clone(heap),
            arrivals: Arrivals::new(users),
        }
    }

    /// Messages that come to a user.
    fn expected(&self) -> usize {
        (self.users - 1) * self.messages
    }

    fn send_from_client(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for number in 0..self.messages {
            stack.call(cpu);
            cpu.write_span(stack.message(), MESSAGE_BYTES);
            let message = Message { from: user, number };
            self.to_server[user].send(cpu, stack.message(), MESSAGE_BYTES, message);
        }
    }

    fn receive_at_server(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for _ in 0..self.messages {
            stack.call(cpu);
            let at = self.heap.take(cpu, &self.heap.notes, NOTE_BYTES);
            let message = self.to_server[user].receive(cpu, at, MESSAGE_BYTES);
            let note = Rc::new(Note { message, at, left: RefCell::new(self.users - 1) });
            for other in (0..self.users).filter(|&other| other != user) {
                let place = self.heap.take(cpu, &self.heap.places, PLACE_BYTES);
                self.queues[other].put(cpu, place, Rc::clone(&note));
            }
        }
    }

    fn send_from_server(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for _ in 0..self.expected() {
            stack.call(cpu);
            let (place, note) = self.queues[user].take(cpu);
            self.heap.places.borrow_mut().push(place);
            self.to_client[user].send(cpu, note.at, MESSAGE_BYTES, note.message);
            cpu.write(note.at + MESSAGE_BYTES);
            let left = note.left.replace_with(|left| *left - 1) - 1;
            if left == 0 {
                self.heap.notes.borrow_mut().push(note.at);
            }
        }
    }

    fn receive_at_client(&self, cpu: &mut Cpu<'_>, user: usize, stack: Stack) {
        for _ in 0..self.expected() {
            stack.call(cpu);
            let message = self.to_client[user].receive(cpu, stack.message(), MESSAGE_BYTES);
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
