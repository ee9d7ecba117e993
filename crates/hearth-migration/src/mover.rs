//! Moves pages: `move_pages` in batches, within a quota of time and bytes in any second.

use super::NodeId;
use super::units::{PAGE_BYTES, Unit};
use hearth_policy::pages::Refusal;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Pages of one call: each call has the kernel drain what its CPUs hold back, which is dear.
const BATCH_PAGES: u64 = 512;
/// Only pages that nobody else has mapped.
const MOVE: libc::c_int = 1 << 1;
/// No node and no error: the kernel has not said what became of a page.
const UNTOLD: i32 = i32::MIN;

/// Why a page was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// ESRCH, or EINVAL of the whole call: the process has ended, or is about to and has no memory any more.
    ProcessGone,
    /// ENOENT, EFAULT: the page is no longer in memory, or is the page of zeroes.
    PageGone,
    /// EPERM: Hearth may not touch the process.
    NotPermitted,
    /// EACCES: other processes have mapped it, or the node is not allowed to its process.
    NotAllowed,
    /// EBUSY, or no word of the kernel: in use by a device, or just now by the kernel.
    Busy,
    /// ENOMEM: the node has no memory left.
    NoMemory,
    /// ENODEV: the node is offline or has no memory.
    NoNode,
    /// Anything else.
    Other,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::ProcessGone,
        Self::PageGone,
        Self::NotPermitted,
        Self::NotAllowed,
        Self::Busy,
        Self::NoMemory,
        Self::NoNode,
        Self::Other,
    ];

    /// Of an error number.
    pub fn of(error: Errno) -> Self {
        match error {
            Errno::SRCH => Self::ProcessGone,
            Errno::NOENT | Errno::FAULT => Self::PageGone,
            Errno::PERM => Self::NotPermitted,
            Errno::ACCESS => Self::NotAllowed,
            Errno::BUSY | Errno::AGAIN => Self::Busy,
            Errno::NOMEM => Self::NoMemory,
            Errno::NODEV => Self::NoNode,
            _ => Self::Other,
        }
    }

    /// Of the error number that a whole call ended with. What Hearth asks is valid, so EINVAL says that
    /// the process has no memory.
    pub fn of_call(error: Errno) -> Self {
        if error == Errno::INVAL { Self::ProcessGone } else { Self::of(error) }
    }

    /// As labels of metrics have it.
    pub fn label(self) -> &'static str {
        match self {
            Self::ProcessGone => "process_gone",
            Self::PageGone => "page_gone",
            Self::NotPermitted => "not_permitted",
            Self::NotAllowed => "not_allowed",
            Self::Busy => "busy",
            Self::NoMemory => "no_memory",
            Self::NoNode => "no_node",
            Self::Other => "other",
        }
    }

    /// In words, with the error that the kernel gives.
    pub fn text(self) -> &'static str {
        match self {
            Self::ProcessGone => "the process has ended (ESRCH, EINVAL)",
            Self::PageGone => "no longer in memory (ENOENT)",
            Self::NotPermitted => "Hearth may not (EPERM)",
            Self::NotAllowed => "shared, or not allowed there (EACCES)",
            Self::Busy => "in use by the kernel (EBUSY)",
            Self::NoMemory => "no memory left there (ENOMEM)",
            Self::NoNode => "the node is gone (ENODEV)",
            Self::Other => "other errors",
        }
    }

    /// As the planner understands it.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::ProcessGone | Self::PageGone => Refusal::Gone,
            Self::NotPermitted | Self::NotAllowed => Refusal::Permission,
            Self::Busy => Refusal::Busy,
            Self::NoMemory | Self::NoNode => Refusal::NoMemory,
            Self::Other => Refusal::Other,
        }
    }
}

/// Where each address of a process is.
pub fn query(pid: i32, addresses: &[u64]) -> Result<Vec<Result<NodeId, Reason>>, Errno> {
    let mut status = vec![UNTOLD; addresses.len()];
    call(pid, addresses, None, &mut status)?;
    Ok(status.into_iter().map(told).collect())
}

fn told(status: i32) -> Result<NodeId, Reason> {
    match u32::try_from(status) {
        Ok(node) => Ok(NodeId(node)),
        Err(_) if status == UNTOLD => Err(Reason::Busy),
        Err(_) => Err(Reason::of(Errno::from_raw_os_error(status.wrapping_neg().clamp(1, 4095)))),
    }
}

/// Moves pages to a node. Each ends on a node, which may be another, or has a reason.
fn shift(pid: i32, addresses: &[u64], node: NodeId) -> Vec<Result<NodeId, Reason>> {
    let nodes = vec![node.0 as libc::c_int; addresses.len()];
    let mut status = vec![UNTOLD; addresses.len()];
    let result = call(pid, addresses, Some(&nodes), &mut status);
    let whole = result.err().map(Reason::of_call);
    // After a failure in the middle the kernel says nothing of the rest, nor of those that stayed.
    let untold: Vec<usize> = (0..status.len()).filter(|&index| status[index] == UNTOLD).collect();
    let asked: Vec<u64> = untold.iter().map(|&index| addresses[index]).collect();
    let found = if untold.is_empty() { Ok(Vec::new()) } else { query(pid, &asked) };
    let mut all: Vec<_> = status.into_iter().map(told).collect();
    match found {
        Ok(found) => {
            for (index, found) in untold.into_iter().zip(found) {
                all[index] = match found {
                    Ok(at) if at != node => Err(whole.unwrap_or(Reason::Busy)),
                    other => other,
                };
            }
        }
        Err(error) => untold.into_iter().for_each(|index| all[index] = Err(Reason::of_call(error))),
    }
    all
}

fn call(
    pid: i32,
    addresses: &[u64],
    nodes: Option<&[libc::c_int]>,
    status: &mut [i32],
) -> Result<u64, Errno> {
    let nodes = nodes.map_or(std::ptr::null(), <[libc::c_int]>::as_ptr);
    // SAFETY: the kernel reads as many addresses and nodes, and writes as many numbers, as it is told;
    // the addresses are another process's and are not followed here.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            addresses.len() as libc::c_ulong,
            addresses.as_ptr(),
            nodes,
            status.as_mut_ptr(),
            MOVE,
        )
    };
    let last_error = || Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL);
    u64::try_from(result).map_err(|_| last_error())
}

/// What may be spent in any second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time within the kernel.
    pub time: Duration,
    /// Bytes; nothing if there is no limit.
    pub bytes: Option<u64>,
}

/// What was spent in the last second.
#[derive(Debug)]
pub struct Window {
    limits: Limits,
    /// When each batch ended, how long it took, and its bytes.
    spent: VecDeque<(Instant, Duration, u64)>,
    /// The longest that a page took of late.
    per_page: Duration,
}

const SECOND: Duration = Duration::from_secs(1);

impl Window {
    /// Nothing is spent yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, spent: VecDeque::new(), per_page: Duration::from_micros(20) }
    }

    /// How many base pages may move now.
    pub fn room(&mut self, now: Instant) -> u64 {
        // A batch counts from its end to a second later, so its beginning is one longer ago.
        while self.spent.front().is_some_and(|(at, took, _)| now.duration_since(*at) > SECOND + *took) {
            self.spent.pop_front();
        }
        let time: Duration = self.spent.iter().map(|(_, took, _)| *took).sum();
        let bytes: u64 = self.spent.iter().map(|(_, _, bytes)| bytes).sum();
        let by_time = self.limits.time.saturating_sub(time).as_nanos() / self.per_page.as_nanos().max(1);
        let by_bytes = self.limits.bytes.map_or(u64::MAX, |limit| limit.saturating_sub(bytes) / PAGE_BYTES);
        u64::try_from(by_time).unwrap_or(u64::MAX).min(by_bytes)
    }

    fn spend(&mut self, now: Instant, took: Duration, pages: u64) {
        self.spent.push_back((now, took, pages * PAGE_BYTES));
        let per_page = took / u32::try_from(pages.max(1)).unwrap_or(u32::MAX);
        self.per_page = per_page.max(self.per_page * 7 / 8);
    }

    /// Pages that could move if nothing were spent.
    fn most(&self) -> u64 {
        let by_time = self.limits.time.as_nanos() / self.per_page.as_nanos().max(1);
        let by_bytes = self.limits.bytes.map_or(u64::MAX, |limit| limit / PAGE_BYTES);
        u64::try_from(by_time).unwrap_or(u64::MAX).min(by_bytes)
    }
}

/// A page that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Of which process.
    pub pid: i32,
    /// Which.
    pub unit: Unit,
    /// Where to.
    pub to: NodeId,
}

/// What became of it.
pub type Done = (Task, Result<NodeId, Reason>);

/// Pages that are to move, and what was spent on it.
#[derive(Debug)]
pub struct Mover {
    queue: VecDeque<Task>,
    window: Window,
    /// Time within the kernel since the start.
    pub took: Duration,
}

impl Mover {
    /// Nothing is to move yet.
    pub fn new(limits: Limits) -> Self {
        Self { queue: VecDeque::new(), window: Window::new(limits), took: Duration::ZERO }
    }

    /// More to move.
    pub fn add(&mut self, task: Task) {
        self.queue.push_back(task);
    }

    /// Whether all was done.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Forgets what was to move of a process, and gives it back.
    pub fn forget(&mut self, pid: i32) -> Vec<Task> {
        let (forgotten, kept): (Vec<Task>, _) = self.queue.drain(..).partition(|task| task.pid == pid);
        self.queue = kept.into();
        forgotten
    }

    /// What may be moved in any second from now on; nothing if there is no limit.
    pub fn limit(&mut self, bytes: Option<u64>) {
        self.window.limits.bytes = bytes;
    }

    /// Moves the next batch, as far as the quota has room for now; nothing if it has none.
    pub fn step(&mut self) -> Vec<Done> {
        let batch = self.next_batch();
        let Some(Task { pid, to, .. }) = batch.first().copied() else { return Vec::new() };
        let addresses: Vec<u64> = batch.iter().map(|task| task.unit.address).collect();
        let begin = Instant::now();
        let ends = shift(pid, &addresses, to);
        let now = Instant::now();
        let pages = batch.iter().map(|task| task.unit.bytes / PAGE_BYTES).sum();
        self.window.spend(now, now - begin, pages);
        self.took += now - begin;
        batch.into_iter().zip(ends).collect()
    }

    /// Pages of one process that go to one node.
    fn next_batch(&mut self) -> Vec<Task> {
        let room = self.window.room(Instant::now());
        let mut batch: Vec<Task> = Vec::new();
        let mut pages = 0;
        while let Some(next) = self.queue.front() {
            let size = next.unit.bytes / PAGE_BYTES;
            let fits = pages + size <= room.min(BATCH_PAGES.max(size));
            // A huge page may need all that there ever is.
            let alone = batch.is_empty() && room > 0 && room >= self.window.most();
            let alike = batch.first().is_none_or(|first| (first.pid, first.to) == (next.pid, next.to));
            if !(fits || alone) || !alike {
                break;
            }
            pages += size;
            batch.extend(self.queue.pop_front());
        }
        batch
    }
}

#[cfg(test)]
mod tests;
