//! Reads a thread once for several replays of it.
//!
//! The chunks between the replay that is furthest behind and the one that is furthest ahead are kept, decoded:
//!
//! ```text
//! chunk      0 1 2 3 4 5 6 7 8 ...
//! kept             [       )        from the one furthest behind to the front
//! replays          ^   ^   ^
//! ```
//!
//! At most [`MOST_KEPT`] are kept of all threads together. Where that is not enough, a replay that is ahead reads on
//! for itself, from a copy of the reader at the front, until the others have caught up.
//!
//! A helper decodes the next chunk while the last one is replayed.

use crate::error::TraceError;
use crate::executions::Executions;
use crate::reader::{ThreadReader, Trace};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The most chunks that are kept, of all threads together: 128 to 160 MiB.
const MOST_KEPT: usize = 128;
/// Memory of so many chunks waits to be used again.
const MOST_SPARE: usize = 4;

/// A trace whose threads are read once each, by any number of replays on this thread of the host.
pub struct SharedTrace {
    trace: Trace,
    common: Rc<Common>,
}

/// What the threads of a trace have in common.
struct Common {
    most_kept: usize,
    /// Chunks that are kept or being decoded.
    kept: Cell<usize>,
    /// Memory to decode into.
    spare: RefCell<Vec<Executions>>,
    helper: Helper,
}

impl SharedTrace {
    /// Nothing is read yet.
    pub fn new(trace: &Trace) -> Self {
        Self::keeping(trace, MOST_KEPT)
    }

    fn keeping(trace: &Trace, most_kept: usize) -> Self {
        let common =
            Common { most_kept, kept: Cell::new(0), spare: RefCell::default(), helper: Helper::new() };
        SharedTrace { trace: trace.clone(), common: Rc::new(common) }
    }

    /// A thread, for replays that all begin before the first of them reads.
    ///
    /// # Errors
    /// As for [`Trace::thread`].
    pub fn thread(&self, thread: u32) -> Result<SharedThread, TraceError> {
        let window = Window {
            trace: self.trace.clone(),
            thread,
            front: Front::Here(Box::new(self.trace.thread(thread)?)),
            first: 0,
            chunks: VecDeque::new(),
            wanted: Vec::new(),
            common: Rc::clone(&self.common),
        };
        Ok(SharedThread { window: Rc::new(RefCell::new(window)) })
    }
}

/// A thread of a [`SharedTrace`].
pub struct SharedThread {
    window: Rc<RefCell<Window>>,
}

impl SharedThread {
    /// A reader at the thread's beginning.
    pub fn reader(&self) -> SharedReader {
        let mut window = self.window.borrow_mut();
        window.wanted.push(Some(0));
        SharedReader { window: Rc::clone(&self.window), number: window.wanted.len() - 1, next: 0, own: None }
    }
}

/// One replay's place in a [`SharedThread`].
pub struct SharedReader {
    window: Rc<RefCell<Window>>,
    /// Which of the replays it is.
    number: usize,
    /// The chunk that it reads next, counted within the thread.
    next: u64,
    own: Option<Own>,
}

/// What a replay has for itself while the others are too far behind.
struct Own {
    reader: ThreadReader,
    chunk: Rc<Executions>,
}

impl SharedReader {
    /// The next chunk; `None` at the end. Whoever drops the last one first has its memory used again.
    ///
    /// # Errors
    /// As for [`ThreadReader::next_chunk`].
    pub fn next_executions(&mut self) -> Result<Option<Rc<Executions>>, TraceError> {
        let mut window = self.window.borrow_mut();
        let chunk = match window.chunk(self.number, self.next)? {
            Got::Chunk(chunk) => {
                self.own = None;
                Some(chunk)
            }
            Got::End => None,
            Got::TooFarAhead => {
                let own = match &mut self.own {
                    Some(own) => own,
                    own => own.insert(Own { reader: window.branch(self.next)?, chunk: Rc::default() }),
                };
                own.next()?
            }
        };
        self.next += u64::from(chunk.is_some());
        Ok(chunk)
    }
}

impl Own {
    fn next(&mut self) -> Result<Option<Rc<Executions>>, TraceError> {
        if Rc::get_mut(&mut self.chunk).is_none() {
            self.chunk = Rc::default();
        }
        let Some(chunk) = Rc::get_mut(&mut self.chunk) else { return Ok(None) };
        Ok(self.reader.next_executions(chunk)?.map(|_| Rc::clone(&self.chunk)))
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        let mut window = self.window.borrow_mut();
        window.wanted[self.number] = None;
        window.drop_passed();
    }
}

/// The chunks of a thread that some replay needs yet and another has had.
struct Window {
    trace: Trace,
    thread: u32,
    front: Front,
    /// Number of the first chunk kept.
    first: u64,
    chunks: VecDeque<Rc<Executions>>,
    /// By replay: the chunk that it reads next.
    wanted: Vec<Option<u64>>,
    common: Rc<Common>,
}

/// The reader of the chunk behind those kept.
enum Front {
    Here(Box<ThreadReader>),
    /// The helper has it.
    Away(Receiver<Done>),
    Ended,
    /// It met with an error.
    Lost,
}

/// What a window has for a replay.
enum Got {
    Chunk(Rc<Executions>),
    End,
    TooFarAhead,
}

impl Window {
    fn chunk(&mut self, replay: usize, number: u64) -> Result<Got, TraceError> {
        self.wanted[replay] = Some(number);
        self.drop_passed();
        let end = self.first + self.chunks.len() as u64;
        if number == end && !self.advance()? {
            return Ok(if matches!(self.front, Front::Ended) { Got::End } else { Got::TooFarAhead });
        }
        let place = number.checked_sub(self.first).map(|place| place as usize);
        let chunk = place.and_then(|place| self.chunks.get(place)).map(Rc::clone);
        Ok(chunk.map_or(Got::TooFarAhead, Got::Chunk))
    }

    /// Keeps one chunk more, and has the next one decoded meanwhile. False if there is none, or no room.
    fn advance(&mut self) -> Result<bool, TraceError> {
        if matches!(self.front, Front::Here(_)) && !self.order() {
            return Ok(false);
        }
        let (front, chunk) = match std::mem::replace(&mut self.front, Front::Lost) {
            Front::Away(done) => match done.recv() {
                Ok(Done { reader, chunk }) => (Front::Here(reader), chunk),
                Err(_) => return Ok(false),
            },
            ended => {
                self.front = ended;
                return Ok(false);
            }
        };
        let kept = &self.common.kept;
        match chunk {
            Ok(Some(chunk)) => self.chunks.push_back(Rc::new(chunk)),
            Ok(None) => {
                kept.set(kept.get() - 1);
                self.front = Front::Ended;
                return Ok(false);
            }
            Err(error) => {
                kept.set(kept.get() - 1);
                return Err(error);
            }
        }
        self.front = front;
        self.order();
        Ok(true)
    }

    /// Has the next chunk decoded, if there is room for it.
    fn order(&mut self) -> bool {
        let Common { most_kept, kept, spare, helper } = &*self.common;
        if kept.get() >= *most_kept {
            return false;
        }
        let reader = match std::mem::replace(&mut self.front, Front::Lost) {
            Front::Here(reader) => reader,
            other => {
                self.front = other;
                return false;
            }
        };
        kept.set(kept.get() + 1);
        let (reply, done) = channel();
        let order = Order { reader, out: spare.borrow_mut().pop().unwrap_or_default(), reply };
        if let Err(order) = helper.give(order) {
            order.carry_out();
        }
        self.front = Front::Away(done);
        true
    }

    /// A reader of its own for a replay at a chunk that the window has no room for.
    fn branch(&self, number: u64) -> Result<ThreadReader, TraceError> {
        let end = self.first + self.chunks.len() as u64;
        match &self.front {
            Front::Here(reader) if number == end => reader.branch(),
            _ => {
                let mut reader = self.trace.thread(self.thread)?;
                let mut chunk = Executions::default();
                for _ in 0..number {
                    reader.next_executions(&mut chunk)?;
                }
                Ok(reader)
            }
        }
    }

    /// Drops the chunks that all replays have had.
    fn drop_passed(&mut self) {
        let needed = self.wanted.iter().flatten().min().copied().unwrap_or(u64::MAX);
        while self.first < needed
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.first += 1;
            self.common.kept.set(self.common.kept.get() - 1);
            let mut spare = self.common.spare.borrow_mut();
            spare.extend(Rc::into_inner(chunk));
            spare.truncate(MOST_SPARE);
        }
    }
}

/// Decodes beside whoever replays, one chunk after the other.
struct Helper(Option<Sender<Order>>);

/// A chunk to be decoded.
struct Order {
    reader: Box<ThreadReader>,
    out: Executions,
    reply: Sender<Done>,
}

struct Done {
    reader: Box<ThreadReader>,
    chunk: Result<Option<Executions>, TraceError>,
}

impl Helper {
    /// None where there is one CPU, or no more threads are to be had.
    fn new() -> Self {
        if std::thread::available_parallelism().map_or(1, usize::from) == 1 {
            return Helper(None);
        }
        let (sender, orders) = channel::<Order>();
        let decode = move || orders.into_iter().for_each(Order::carry_out);
        let spawned = std::thread::Builder::new().name("decoder".into()).spawn(decode);
        Helper(spawned.ok().map(|_| sender))
    }

    /// Gives the order back if there is no helper.
    fn give(&self, order: Order) -> Result<(), Order> {
        match &self.0 {
            Some(sender) => sender.send(order).map_err(|error| error.0),
            None => Err(order),
        }
    }
}

impl Order {
    fn carry_out(self) {
        let Order { mut reader, mut out, reply } = self;
        let chunk = reader.next_executions(&mut out).map(|read| read.map(|_| out));
        // Nobody waits for it if all replays have ended.
        let _ = reply.send(Done { reader, chunk });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::writer::{Access, TraceWriter};
    use proptest::prelude::*;

    const CHUNKS: u64 = 7;

    /// A trace of two threads, of which the first has seven chunks.
    fn trace(folder: &tempfile::TempDir) -> Trace {
        let path = folder.path().join("t.trace");
        let mut writer = TraceWriter::create(&path, 1).unwrap();
        let block = writer.define_block(0x40_0000, 40, 100);
        let accesses: Vec<Access> = (0..63)
            .map(|i| Access {
                instruction: i,
                write: i % 3 == 0,
                address: 0x80_0000 + 8 * u64::from(i),
                log2_bytes: 3,
            })
            .collect();
        for round in 0..CHUNKS * (1 << 11) {
            let moved = accesses
                .iter()
                .map(|access| Access { address: access.address + round * 8 % 5000, ..*access });
            writer.execute(0, block, &moved.collect::<Vec<_>>()).unwrap();
            writer.execute(1, block, &accesses[..1]).unwrap();
        }
        writer.finish(&["test".into()], "tests", &[]).unwrap();
        Trace::open(&path).unwrap()
    }

    fn expected(trace: &Trace, thread: u32) -> Vec<Vec<u64>> {
        let mut reader = trace.thread(thread).unwrap();
        let (mut all, mut chunk) = (Vec::new(), Executions::default());
        while reader.next_executions(&mut chunk).unwrap().is_some() {
            all.push(chunk.addresses.clone());
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_replay_reads_every_chunk_and_no_more_are_kept_than_allowed(
            most_kept in 0..6usize,
            helps: bool,
            turns in prop::collection::vec((0..4usize, 0..2usize), 0..80),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let trace = trace(&folder);
            let expected = [expected(&trace, 0), expected(&trace, 1)];
            prop_assert_eq!(expected[0].len() as u64, CHUNKS);
            let helper = if helps { Helper::new() } else { Helper(None) };
            let common = Common { most_kept, kept: Cell::new(0), spare: RefCell::default(), helper };
            let shared = SharedTrace { trace, common: Rc::new(common) };
            let threads = [0, 1].map(|thread| shared.thread(thread).unwrap());
            let mut readers: Vec<_> = (0..8).map(|i| (threads[i % 2].reader(), expected[i % 2].iter())).collect();
            let rest = (0..4).flat_map(|replay| [(replay, 0), (replay, 1)].into_iter().cycle().take(20));
            for (replay, thread) in turns.into_iter().chain(rest) {
                let (reader, expected) = &mut readers[replay * 2 + thread];
                let chunk = reader.next_executions().unwrap();
                prop_assert_eq!(chunk.as_ref().map(|chunk| &chunk.addresses), expected.next());
                prop_assert!(shared.common.kept.get() <= most_kept);
            }
            drop(readers);
            let kept = |thread: &SharedThread| thread.window.borrow().chunks.len();
            prop_assert_eq!(threads.iter().map(kept).sum::<usize>(), 0);
        }
    }

    #[test]
    fn every_replay_meets_with_the_damage_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let whole = trace(&folder);
        let mut bytes = std::fs::read(whole.path()).unwrap();
        let chunk = bytes.windows(4).enumerate().filter(|(_, four)| four == b"HCHK").nth(3).unwrap().0;
        bytes[chunk + 40] ^= 1;
        std::fs::write(whole.path(), bytes).unwrap();
        let shared = SharedTrace::keeping(&Trace::open(whole.path()).unwrap(), 2);
        let thread = shared.thread(0).unwrap();
        let mut readers = [thread.reader(), thread.reader()];
        for reader in &mut readers {
            let error = loop {
                match reader.next_executions() {
                    Ok(chunk) => assert!(chunk.is_some()),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains("(chunk 3): corrupt: its checksum"), "{error}");
        }
    }
}
