//! What the scheduler decided, one record each time that a task begins to run or a CPU goes idle,
//! while somebody traces (`bpf/decisions.h`).

use hearth_abi as seam;
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;

/// Why a task runs where it does (`enum hearth_source`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// No task: the CPU goes idle.
    Idle,
    /// It was running here, and goes on.
    Kept,
    /// From this CPU's queue.
    Own,
    /// From another queue of the cache domain.
    Domain,
    /// From a queue of another domain.
    Foreign,
    /// It woke up, and this CPU was idle.
    Direct,
    /// The kernel's doing: it goes on after a task of a higher class.
    Kernel,
    /// It had waited for too long.
    Late,
    /// From the pinned queue of a CPU where more wait.
    Stray,
    /// Of a gang, whose row it is.
    Member,
    /// One of a fragment whose others run at its home.
    Fragment,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The kernel's monotonic clock.
    pub at_ns: u64,
    /// The CPU that decided.
    pub cpu: i32,
    /// The task; 0 if the CPU goes idle.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// Why it.
    pub source: Source,
    /// Whose queue it waited in.
    pub from: Option<i32>,
    /// The CPU where it ran last.
    pub last_cpu: Option<i32>,
    /// CPU time that it has had, weighted, in nanoseconds.
    pub usage_ns: u64,
    /// Rank of the task that was running, if it could go on.
    pub kept_rank_ns: Option<i64>,
    /// Rank of the head of this CPU's queue.
    pub own_rank_ns: Option<i64>,
    /// Rank of the first of all other queues, and whose queue that is.
    pub elsewhere_rank_ns: Option<i64>,
    /// See `elsewhere_rank_ns`.
    pub elsewhere: Option<i32>,
}

impl Decision {
    fn read(bytes: &[u8]) -> Option<Self> {
        let raw: seam::Decision = bytemuck::try_pod_read_unaligned(bytes).ok()?;
        let source = match raw.source {
            seam::SOURCE_IDLE => Source::Idle,
            seam::SOURCE_KEPT => Source::Kept,
            seam::SOURCE_OWN => Source::Own,
            seam::SOURCE_DOMAIN => Source::Domain,
            seam::SOURCE_FOREIGN => Source::Foreign,
            seam::SOURCE_DIRECT => Source::Direct,
            seam::SOURCE_LATE => Source::Late,
            seam::SOURCE_STRAY => Source::Stray,
            seam::SOURCE_MEMBER => Source::Member,
            seam::SOURCE_FRAGMENT => Source::Fragment,
            _ => Source::Kernel,
        };
        let cpu = |cpu: i32| (cpu >= 0).then_some(cpu);
        let rank = |rank: i64| (rank != seam::NO_RANK).then_some(rank);
        let name: Vec<u8> = raw.comm.into_iter().take_while(|&byte| byte != 0).collect();
        Some(Self {
            at_ns: raw.at_ns,
            cpu: raw.cpu,
            pid: raw.pid,
            comm: String::from_utf8_lossy(&name).into_owned(),
            source,
            from: cpu(raw.from),
            last_cpu: cpu(raw.last_cpu),
            usage_ns: raw.usage,
            kept_rank_ns: rank(raw.kept_rank),
            own_rank_ns: rank(raw.own_rank),
            elsewhere_rank_ns: rank(raw.elsewhere_rank),
            elsewhere: cpu(raw.elsewhere),
        })
    }
}

/// The reading end.
pub(crate) struct Decisions {
    ring: RingBuffer<'static>,
    read: Rc<RefCell<Vec<Decision>>>,
}

impl Decisions {
    pub(crate) fn new(map: &dyn MapCore) -> Result<Self, libbpf_rs::Error> {
        let read = Rc::new(RefCell::new(Vec::new()));
        let mut builder = RingBufferBuilder::new();
        let into = Rc::clone(&read);
        builder.add(map, move |bytes| {
            into.borrow_mut().extend(Decision::read(bytes));
            0
        })?;
        Ok(Self { ring: builder.build()?, read })
    }

    /// The decisions since the last call, by time.
    pub(crate) fn take(&self) -> Vec<Decision> {
        // What cannot be read now is read at the next call.
        let _ = self.ring.consume();
        let mut decisions = std::mem::take(&mut *self.read.borrow_mut());
        decisions.sort_by_key(|decision| decision.at_ns);
        decisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_and_one_of_another_size_is_not() {
        let raw = seam::Decision {
            at_ns: 7,
            kept_rank: -3,
            own_rank: seam::NO_RANK,
            elsewhere_rank: 5,
            usage: 9,
            pid: 42,
            cpu: 1,
            from: 2,
            last_cpu: -1,
            elsewhere: 2,
            source: seam::SOURCE_FOREIGN,
            comm: *b"cc1\0rest of it..",
        };
        let bytes = bytemuck::bytes_of(&raw);
        let decision = Decision::read(bytes).unwrap();
        assert_eq!((decision.pid, decision.cpu, decision.comm.as_str()), (42, 1, "cc1"));
        assert_eq!((decision.source, decision.from, decision.last_cpu), (Source::Foreign, Some(2), None));
        assert_eq!((decision.kept_rank_ns, decision.own_rank_ns), (Some(-3), None));
        assert_eq!(Decision::read(&bytes[1..]), None);
    }
}
