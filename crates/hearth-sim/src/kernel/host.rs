//! The simulated machine as `hearth-scx` sees it: each CPU has its own clock, and none is overtaken.

use hearth_hardware::Port;
use hearth_machine::CpuSet;
use hearth_scx::Host;
use std::cell::Cell;
use std::rc::Rc;

/// The CPUs.
pub(crate) struct Ports {
    ports: Vec<Rc<Port>>,
    /// Where the next search for a CPU begins.
    turn: Cell<usize>,
}

impl Ports {
    pub(crate) fn new(ports: &[Rc<Port>]) -> Self {
        Self { ports: ports.to_vec(), turn: Cell::new(0) }
    }
}

impl Host for Ports {
    fn now_ps(&self, cpu: usize) -> u64 {
        self.ports[cpu].now_ps()
    }

    /// In turn.
    fn choose(&self, cpus: CpuSet) -> usize {
        let cpu = cpus.next(self.turn.get()).unwrap_or_default();
        self.turn.set(cpu + 1);
        cpu
    }
}
