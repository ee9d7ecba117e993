//! The simulated machine as `hearth-scx` sees it: each CPU has its own clock, and none is overtaken.

use hearth_hardware::Port;
use hearth_scx::Host;
use std::cell::Cell;
use std::rc::Rc;

/// The CPUs.
pub(crate) struct Ports {
    ports: Vec<Rc<Port>>,
    /// Where the next search for a CPU begins.
    turn: Cell<u32>,
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
    fn choose(&self, cpus: u64) -> usize {
        let turn = self.turn.get();
        let cpu = (cpus.rotate_right(turn).trailing_zeros() + turn) % u64::BITS;
        self.turn.set((cpu + 1) % u64::BITS);
        cpu as usize
    }
}
