//! Snapshots of the real kernel: what all tasks do, in one pass (`bpf/snapshot.bpf.c`).

use crate::{Error, log, shape};
use bpf::SnapshotSkelBuilder;
use bytemuck::{Zeroable, bytes_of_mut};
use hearth_abi::{self as seam, Sample};
use hearth_host::clock;
use hearth_machine::CpuSet;
use hearth_machine::host::HostTopology;
use hearth_policy::Snapshot;
use hearth_policy::snapshot::{State, Task};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Iter, Link, OpenObject};
use std::collections::HashMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

#[allow(warnings, clippy::all)]
mod bpf {
    include!(concat!(env!("OUT_DIR"), "/snapshot.skel.rs"));
}

/// What the kernel writes at a time, at most.
const CHUNK_BYTES: usize = 64 << 10;

/// Takes snapshots. Dropping it unloads what the kernel has of it.
pub struct Snapshots {
    link: Link,
    cpus: Vec<(usize, usize, usize)>,
    online: CpuSet,
    buffer: Vec<u8>,
}

impl Snapshots {
    /// Loads what walks the tasks. `task_ctxs` is the scheduler's map of what it remembers of them; without,
    /// nothing is known of their usage. `is_partial`: the scheduler has the tasks of its own class only.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn load(
        host: &HostTopology,
        task_ctxs: Option<BorrowedFd<'_>>,
        is_partial: bool,
    ) -> Result<Self, Error> {
        let refused = |step| move |source| Error::refused(step, source);
        log::keep();
        let mut object = MaybeUninit::<OpenObject>::uninit();
        let mut open =
            SnapshotSkelBuilder::default().open(&mut object).map_err(refused("open the snapshot"))?;
        if let Some(map) = task_ctxs {
            open.maps.task_ctxs.reuse_fd(map).map_err(refused("share tasks"))?;
        }
        let constants = open.maps.rodata_data.as_deref_mut();
        constants.ok_or(Error::Incomplete { section: "read-only data" })?.is_partial = is_partial;
        let skeleton = open.load().map_err(refused("load the snapshot"))?;
        // The link holds the program, and the program its maps.
        let link = skeleton.progs.snapshot.attach_iter_with_opts(libbpf_rs::IterOpts::None);
        let link = link.map_err(refused("attach the snapshot"))?;
        let cpus = shape::places(host);
        Ok(Self { link, online: online(&cpus), cpus, buffer: Vec::new() })
    }

    /// What all tasks do.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn take(&mut self) -> Result<Snapshot, Error> {
        let refused = |source| Error::refused("snapshot", source);
        let mut walk = Iter::new(&self.link).map_err(refused)?;
        let mut snapshot = Snapshot::new(clock::now_ns(), self.cpus.iter().copied());
        let mut masks = Masks::default();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        self.buffer.resize(CHUNK_BYTES, 0);
        let mut kept = 0;
        loop {
            let read = walk.read(&mut self.buffer[kept..]).map_err(|error| refused(error.into()))?;
            if read == 0 {
                return Ok(snapshot);
            }
            kept += read;
            let samples = self.buffer[..kept].chunks_exact(size_of::<Sample>());
            let rest = samples.remainder().len();
            samples.for_each(|bytes| add(&mut snapshot, &mut masks, self.online, own, bytes));
            self.buffer.copy_within(kept - rest..kept, 0);
            kept = rest;
        }
    }
}

/// The masks that were met, with their indices in the snapshot: most tasks share a few.
type Masks = HashMap<CpuSet, usize>;

fn online(cpus: &[(usize, usize, usize)]) -> CpuSet {
    cpus.iter().map(|&(cpu, ..)| cpu).collect()
}

/// `own`: the thread that looks. It runs whenever it does, so that says nothing of the machine.
fn add(snapshot: &mut Snapshot, masks: &mut Masks, online: CpuSet, own: i32, bytes: &[u8]) {
    let mut sample = Sample::zeroed();
    bytes_of_mut(&mut sample).copy_from_slice(bytes);
    // A task that may run anywhere has a bit for each CPU that the kernel has room for.
    let cpus = sample.cpus() & online;
    let mask = *masks.entry(cpus).or_insert_with(|| snapshot.mask(cpus));
    snapshot.add(Task {
        tid: sample.tid,
        process: sample.process,
        parent: sample.parent,
        group: sample.group,
        weight: sample.weight,
        cpu: usize::try_from(sample.cpu).unwrap_or(0),
        mask,
        state: match sample.state {
            _ if sample.tid == own => State::Asleep,
            seam::RUNNING => State::Running,
            seam::WAITING => State::Waiting,
            _ => State::Asleep,
        },
        usage_ns: sample.usage,
        ran_ns: sample.ran_ns,
        waited_ns: sample.waited_ns,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_the_same_mask_share_it_and_it_has_only_cpus_that_are_there() {
        let cpus = [(0, 0, 0), (1, 0, 0)];
        let mut snapshot = Snapshot::new(0, cpus);
        let mut masks = Masks::default();
        let mut sample = Sample { tid: 7, state: seam::RUNNING, cpu: 1, ..Sample::default() };
        for mask in [0b11, !0] {
            sample.mask[0] = mask;
            add(&mut snapshot, &mut masks, online(&cpus), 8, bytemuck::bytes_of(&sample));
        }
        add(&mut snapshot, &mut masks, online(&cpus), 7, bytemuck::bytes_of(&sample));
        assert_eq!(snapshot.tasks.pop().unwrap().state, State::Asleep, "who looks would see itself run");
        assert_eq!((snapshot.masks.len(), snapshot.tasks.len()), (1, 2));
        assert_eq!(snapshot.masks[0], [0, 1].into());
        assert_eq!((snapshot.tasks[0].tid, snapshot.tasks[0].state), (7, State::Running));
        assert!(snapshot.cpus[1].is_busy);
    }
}
