//! Clients of a socket, whoever they are: none can make another wait, or the daemon.
//!
//! Nothing here waits. A client has a time for its request as a whole and one to read its answer, a request a
//! size, and a user so many clients at once: the oldest makes way for one that comes. In one turn so few are let
//! in that each is heard before it has to make way.

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, ErrorKind, Read, Write};
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For the whole request. What has come by then is the request.
    pub(crate) request: Duration,
    /// For reading the answer.
    pub(crate) answer: Duration,
    /// Clients of one user at a time; of all users together [`USERS`] times as many.
    pub(crate) each_user: usize,
}

const USERS: usize = 8;

/// Who comes, by what the socket tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: u32,
    pub(crate) process: i32,
    /// How long a request may be, in bytes; a longer one is taken as far as it goes.
    pub(crate) request_bytes: usize,
}

struct Visitor<S> {
    stream: S,
    caller: Caller,
    until: Instant,
    request: Vec<u8>,
    /// What is left of the answer, once there is one.
    answer: Option<Vec<u8>>,
}

impl<S: Read + Write> Visitor<S> {
    /// Reads what is there; true once the request is whole, or nothing more will come.
    fn hear(&mut self, is_whole: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        let mut part = [0; 4096];
        loop {
            let room = self.caller.request_bytes.saturating_sub(self.request.len()).min(part.len());
            if room == 0 || is_whole(&self.request) {
                return Ok(true);
            }
            match self.stream.read(&mut part[..room]) {
                Ok(0) => return Ok(true),
                Ok(count) => self.request.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes what goes; true while something is left.
    fn tell(&mut self) -> io::Result<bool> {
        let Some(answer) = &mut self.answer else { return Ok(true) };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return Ok(false),
                Ok(count) => drop(answer.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// A socket that clients come to.
pub(crate) trait Listener: AsFd {
    type Stream: Read + Write + AsFd;

    /// Neither it nor its clients are to block from now on.
    fn unblock(&self) -> io::Result<()>;

    /// A client that has come; an error if none has.
    fn admit(&self) -> io::Result<Self::Stream>;
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn unblock(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn admit(&self) -> io::Result<UnixStream> {
        let client = self.accept()?.0;
        client.set_nonblocking(true).map(|()| client)
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn unblock(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }

    fn admit(&self) -> io::Result<TcpStream> {
        let client = self.accept()?.0;
        client.set_nonblocking(true).map(|()| client)
    }
}

/// Who a process of this machine is; nothing if it is gone.
pub(crate) fn local(client: &UnixStream, request_bytes: impl Fn(u32) -> usize) -> Option<Caller> {
    let known = socket_peercred(client).ok()?;
    let user = known.uid.as_raw();
    Some(Caller { user, process: known.pid.as_raw_nonzero().get(), request_bytes: request_bytes(user) })
}

/// A socket, and the clients that are there.
pub(crate) struct Door<L: Listener> {
    pub(crate) listener: L,
    limits: Limits,
    /// The oldest first.
    visitors: Vec<Visitor<L::Stream>>,
}

impl<L: Listener> Door<L> {
    pub(crate) fn new(listener: L, limits: Limits) -> io::Result<Self> {
        listener.unblock()?;
        Ok(Self { listener, limits, visitors: Vec::new() })
    }

    /// Lets in who has come, half as many as a user may have at most: so each is heard once at least.
    pub(crate) fn open(&mut self, caller: impl Fn(&L::Stream) -> Option<Caller>) {
        for _ in 0..self.limits.each_user / 2 {
            let Ok(client) = self.listener.admit() else { return };
            if let Some(caller) = caller(&client) {
                self.seat(client, caller);
            }
        }
    }

    fn seat(&mut self, stream: L::Stream, caller: Caller) {
        let of_user = |visitor: &Visitor<L::Stream>| visitor.caller.user == caller.user;
        if self.visitors.iter().filter(|visitor| of_user(visitor)).count() >= self.limits.each_user {
            let oldest = self.visitors.iter().position(of_user);
            oldest.map(|index| self.visitors.remove(index));
        } else if self.visitors.len() >= USERS * self.limits.each_user {
            self.visitors.remove(0);
        }
        let until = Instant::now() + self.limits.request;
        self.visitors.push(Visitor { stream, caller, until, request: Vec::new(), answer: None });
    }

    /// Hears and answers who is there, and lets go who is done, or too slow.
    pub(crate) fn turn(
        &mut self,
        is_whole: impl Fn(&[u8]) -> bool,
        mut answer: impl FnMut(Caller, &[u8]) -> Vec<u8>,
    ) {
        let limits = self.limits;
        self.visitors.retain_mut(|visitor| {
            if visitor.answer.is_none() {
                // One that goes away is its own loss, here and below.
                let Ok(is_heard) = visitor.hear(&is_whole) else { return false };
                if is_heard || Instant::now() >= visitor.until {
                    visitor.answer = Some(answer(visitor.caller, &visitor.request));
                    visitor.until = Instant::now() + limits.answer;
                }
            }
            let is_late = visitor.answer.is_some() && Instant::now() >= visitor.until;
            visitor.tell().unwrap_or(false) && !is_late
        });
    }

    /// What to wait for.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        let visitors = self.visitors.iter().map(|visitor| {
            let what = if visitor.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
            PollFd::new(&visitor.stream, what)
        });
        iter::once(PollFd::new(&self.listener, PollFlags::IN)).chain(visitors)
    }

    /// How long until somebody's time is over.
    pub(crate) fn left(&self) -> Option<Duration> {
        let until = self.visitors.iter().map(|visitor| visitor.until).min()?;
        Some(until.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits =
        Limits { request: Duration::from_millis(20), answer: Duration::from_millis(20), each_user: 4 };

    /// What a client does.
    #[derive(Clone, Copy, Debug)]
    enum Client {
        /// Asks as it should.
        Asks,
        Silent,
        /// A byte each turn, and never a whole line.
        Slow,
        /// More than a request can have, at once.
        Endless,
        /// Half of a line, and goes away.
        Gone,
        /// Asks and reads no answer.
        Deaf,
    }

    fn client() -> impl Strategy<Value = Client> {
        prop::sample::select(vec![
            Client::Asks,
            Client::Silent,
            Client::Slow,
            Client::Endless,
            Client::Gone,
            Client::Deaf,
        ])
    }

    fn is_whole(request: &[u8]) -> bool {
        request.contains(&b'\n')
    }

    /// Longer than a socket takes at once.
    fn answer(request: &[u8]) -> Vec<u8> {
        if request == b"large\n" { vec![b'x'; 4 << 20] } else { request.to_vec() }
    }

    /// A door in a folder that is gone with the test.
    fn door(limits: Limits) -> (Door<UnixListener>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        (Door::new(listener, limits).unwrap(), folder)
    }

    fn come(door: &mut Door<UnixListener>, folder: &tempfile::TempDir, user: u32) -> UnixStream {
        let its = UnixStream::connect(folder.path().join("socket")).unwrap();
        its.set_nonblocking(true).unwrap();
        door.open(|client| Some(Caller { user, ..local(client, |_| 256)? }));
        its
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// No turn waits, whoever asks as it should is answered in the next turn, there are never more than the
        /// limits allow, and in the end all have been let go.
        #[test]
        fn nobody_makes_another_wait(clients in prop::collection::vec((client(), 0..20u32), 1..60)) {
            let (mut door, folder) = door(LIMITS);
            let mut there = Vec::new();
            let mut longest = Duration::ZERO;
            let mut turn = |door: &mut Door<UnixListener>| {
                let begin = Instant::now();
                door.turn(is_whole, |_, request| answer(request));
                longest = longest.max(begin.elapsed());
            };
            for (what, user) in clients {
                let mut its = come(&mut door, &folder, user);
                match what {
                    Client::Asks => its.write_all(b"status\n").unwrap(),
                    Client::Endless => its.write_all(&[b'a'; 4096]).unwrap(),
                    Client::Deaf => its.write_all(b"large\n").unwrap(),
                    Client::Gone => {
                        its.write_all(b"sta").unwrap();
                        drop(its);
                        turn(&mut door);
                        continue;
                    }
                    Client::Silent | Client::Slow => {}
                }
                // The others fail once they were let go.
                there.iter_mut().for_each(|(what, its): &mut (Client, UnixStream)| {
                    if matches!(what, Client::Slow) {
                        let _ = its.write(b"s");
                    }
                });
                turn(&mut door);
                let of_user = door.visitors.iter().filter(|visitor| visitor.caller.user == user).count();
                prop_assert!(of_user <= LIMITS.each_user && door.visitors.len() <= USERS * LIMITS.each_user);
                if matches!(what, Client::Asks) {
                    let mut said = [0; 64];
                    let count = its.read(&mut said).unwrap();
                    prop_assert_eq!(&said[..count], b"status\n");
                }
                there.push((what, its));
            }
            let begin = Instant::now();
            while !door.visitors.is_empty() && begin.elapsed() < Duration::from_secs(10) {
                turn(&mut door);
            }
            prop_assert!(door.visitors.is_empty());
            prop_assert!(longest < Duration::from_secs(2), "a turn took {longest:?}: it waited");
        }
    }

    #[test]
    fn what_came_in_time_is_the_request_and_no_more_than_may_be() {
        let (mut door, folder) = door(LIMITS);
        let (mut half, mut long) = (come(&mut door, &folder, 1), come(&mut door, &folder, 1));
        half.write_all(b"half").unwrap();
        long.write_all(&[b'a'; 1000]).unwrap();
        let mut heard = Vec::new();
        let begin = Instant::now();
        while heard.len() < 2 && begin.elapsed() < Duration::from_secs(10) {
            door.turn(is_whole, |_, request| {
                heard.push(request.to_vec());
                Vec::new()
            });
        }
        assert_eq!(heard, [vec![b'a'; 256], b"half".to_vec()]);
    }

    #[test]
    fn a_large_answer_comes_whole() {
        let (mut door, folder) = door(Limits { answer: Duration::from_secs(60), ..LIMITS });
        let mut its = come(&mut door, &folder, 1);
        its.write_all(b"large\n").unwrap();
        let mut said = Vec::new();
        while !door.visitors.is_empty() || said.is_empty() {
            door.turn(is_whole, |_, request| answer(request));
            let mut part = [0; 65536];
            while let Ok(count @ 1..) = its.read(&mut part) {
                said.extend_from_slice(&part[..count]);
            }
        }
        assert_eq!(said, vec![b'x'; 4 << 20]);
    }
}
