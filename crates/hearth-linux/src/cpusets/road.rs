//! The road between tasks and cgroups: snapshots as under the scheduler, plans written as CPUs and weights.

use crate::isolation::Weighing;
use crate::planning::Road;
use crate::programs::Programs;
use crate::{Error, Snapshots, memory};
use hearth_abi::Outcome;
use hearth_machine::host;
use hearth_policy::{Plan, Snapshot};
use std::fs;
use std::path::Path;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// See the module.
pub(crate) struct CpusetRoad {
    programs: Programs,
    weighing: Option<Weighing>,
    /// From the first set or class on: with the CPUs that were online when this was loaded.
    snapshots: Option<(String, Snapshots)>,
    sequence: u64,
    last: Plan,
}

impl CpusetRoad {
    pub(crate) fn new(programs: Programs, weighing: Option<Weighing>) -> Self {
        Self { programs, weighing, snapshots: None, sequence: 0, last: Plan::default() }
    }

    fn snapshots(&mut self) -> Result<&mut Snapshots, Error> {
        let online = fs::read_to_string(ONLINE).map_err(Error::file(ONLINE))?;
        let snapshots = match self.snapshots.take().filter(|(before, _)| *before == online) {
            Some((_, snapshots)) => snapshots,
            None => {
                let snapshots = Snapshots::load(&host::read(Path::new("/"))?, None, false)?;
                memory::give_back();
                snapshots
            }
        };
        Ok(&mut self.snapshots.insert((online, snapshots)).1)
    }
}

impl Road for CpusetRoad {
    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let cpus = self.programs.shared_cpus();
        if cpus.is_none() && self.weighing.is_none() {
            return Ok(Snapshot::default());
        }
        let mut snapshot = self.snapshots()?.take()?;
        if let Some(cpus) = cpus {
            snapshot.cpus.retain(|cpu| cpus.contains(&cpu.number));
            self.programs.follow(&mut snapshot);
        }
        self.weighing.iter_mut().for_each(|weighing| weighing.follow(&mut snapshot));
        Ok(snapshot)
    }

    fn publish(&mut self, snapshot: &Snapshot, plan: &Plan, _: u64) -> (Outcome, u64) {
        self.programs.place(snapshot, plan);
        self.weighing.iter_mut().for_each(|weighing| weighing.weigh(snapshot, plan));
        if self.last == *plan {
            return (Outcome::Renewed, self.sequence);
        }
        self.last = plan.clone();
        self.sequence += 1;
        (Outcome::Published, self.sequence)
    }
}
