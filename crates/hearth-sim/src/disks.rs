//! The disks, and who can start a request.

use hearth_machine::{CpuSet, Machine};

/// Requests queue for the disk that is free first.
pub(crate) struct Disks {
    request_ps: u64,
    ps_per_byte: u64,
    free_ps: Vec<u64>,
    /// The CPU that is told when a request is done.
    pub(crate) cpu: usize,
    /// CPUs that can start a request, as bits.
    pub(crate) starters: CpuSet,
}

impl Disks {
    /// The machine's disks, all free.
    pub(crate) fn new(machine: &Machine) -> Self {
        let kernel = &machine.kernel;
        let near = |cpu: &usize| kernel.io_node.is_none_or(|node| machine.node_of(*cpu) == node);
        Self {
            request_ps: kernel.io_request_ns * 1000,
            ps_per_byte: 1_000_000_000_000 / kernel.io_bytes_per_s.max(1),
            free_ps: vec![0; kernel.io_parallel.max(1)],
            cpu: kernel.io_interrupt_cpu,
            starters: (0..machine.cpus()).filter(near).collect(),
        }
    }

    /// Whether a CPU can start a request.
    pub(crate) fn can_start(&self, cpu: usize) -> bool {
        self.starters.has(cpu)
    }

    /// When a request is done that comes now.
    pub(crate) fn serve(&mut self, now_ps: u64, bytes: u64) -> u64 {
        let service_ps = self.request_ps + bytes * self.ps_per_byte;
        let first = (0..self.free_ps.len()).min_by_key(|&disk| self.free_ps[disk]).unwrap_or_default();
        let done_ps = self.free_ps[first].max(now_ps) + service_ps;
        self.free_ps[first] = done_ps;
        done_ps
    }
}
