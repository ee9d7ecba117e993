//! The time that CPUs take, in regions and outside of them, and the guest's clock that follows it.
//!
//! In a region the [`Model`] says what a CPU's instructions took. Outside of regions nothing is measured, and each takes
//! [`OUTSIDE_PS`]: a fast machine would spend the host's time on loops in which a kernel that starts waits for the clock.

use crate::arguments::Refusal;
use crate::clock::{Clock, Next};
use crate::model::Model;
use crate::time::Time;
use qemu_plugin_sys::{
    qemu_plugin_scoreboard_new, qemu_plugin_u64, qemu_plugin_u64_get, qemu_plugin_u64_set,
};
use std::ffi::c_uint;

/// What an instruction takes outside of regions.
const OUTSIDE_PS: u64 = 8_000;

/// Simulated time.
pub(crate) struct Timing {
    time: Time,
    clock: Clock,
    cycle_ps: u64,
    quantum_cycles: u64,
    /// By CPU: instructions outside of regions since its time was last looked at.
    instructions: qemu_plugin_u64,
    cpus: usize,
}

impl Timing {
    /// Before the guest starts.
    pub(crate) fn new(
        cpus: usize,
        cycle_ps: u64,
        quantum_cycles: u64,
        begin_ns: u64,
    ) -> Result<Self, Refusal> {
        let time = Time::new(begin_ns)?;
        // SAFETY: QEMU makes room for a word for each CPU.
        let score = unsafe { qemu_plugin_scoreboard_new(size_of::<u64>()) };
        Ok(Self {
            time,
            clock: Clock::new(cpus, quantum_cycles * OUTSIDE_PS),
            cycle_ps,
            quantum_cycles,
            instructions: qemu_plugin_u64 { score, offset: 0 },
            cpus,
        })
    }

    /// QEMU is about to start a CPU. With the first one the guest's clock is taken over.
    pub(crate) fn add_cpu(&mut self, cpu: usize, own_ticks: fn() -> i64) -> Result<(), Refusal> {
        if cpu == 0 {
            self.time.begin(own_ticks)?;
        }
        self.time.add_cpu(cpu);
        Ok(())
    }

    /// Where QEMU is to add up instructions outside of regions, and how many a CPU may execute before it is
    /// [looked at](Self::look_outside).
    pub(crate) fn outside(&self) -> (qemu_plugin_u64, u64) {
        (self.instructions, self.clock.interval_ps() / OUTSIDE_PS)
    }

    fn executed_outside_ps(&self, cpu: usize) -> u64 {
        // SAFETY: there is a word for each CPU.
        unsafe { qemu_plugin_u64_get(self.instructions, cpu as c_uint) * OUTSIDE_PS }
    }

    /// A time that is past on all CPUs. Only outside of regions.
    pub(crate) fn latest_ns(&mut self) -> u64 {
        let now_ns = Time::now_ns();
        let local_ps =
            (0..self.cpus).map(|cpu| self.clock.local_ps(cpu, self.executed_outside_ps(cpu), now_ns));
        local_ps.max().map_or(now_ns, |ps| ps.div_ceil(1000))
    }

    fn restart(&mut self, cpu: usize, executed_ps: u64) {
        self.clock.restart(cpu, executed_ps);
        // SAFETY: there is a word for each CPU.
        unsafe { qemu_plugin_u64_set(self.instructions, cpu as c_uint, 0) };
    }

    /// A region begins, of which `model` says what was executed.
    pub(crate) fn begin(&mut self, model: &mut Model) {
        Time::resume_all();
        self.clock.set_quantum(self.quantum_cycles * self.cycle_ps);
        for cpu in 0..self.cpus {
            self.restart(cpu, self.executed_outside_ps(cpu));
            model.set_begun(cpu, self.clock.begun_ps(cpu));
            model.set_due(cpu, self.clock.interval_ps());
        }
    }

    /// The region of `model` has ended.
    pub(crate) fn end(&mut self, model: &Model) {
        Time::resume_all();
        self.clock.set_quantum(self.quantum_cycles * OUTSIDE_PS);
        (0..self.cpus).for_each(|cpu| self.restart(cpu, model.executed_ps(cpu)));
    }

    /// A CPU has executed for a while outside of regions.
    pub(crate) fn look_outside(&mut self, cpu: usize) {
        let executed_ps = self.executed_outside_ps(cpu);
        // Whoever waits for another in a loop may wait too long here, where nothing is measured.
        if self.look(cpu, executed_ps).is_some() {
            self.time.leave(cpu);
        }
        self.restart(cpu, executed_ps);
    }

    /// A CPU has executed for a while in a region.
    pub(crate) fn look_inside(&mut self, cpu: usize, model: &mut Model) {
        let executed_ps = model.executed_ps(cpu);
        if let Some(ns) = self.look(cpu, executed_ps) {
            self.time.stop(cpu, ns);
        }
        model.set_begun(cpu, self.clock.begun_ps(cpu));
        model.set_due(cpu, executed_ps + self.clock.interval_ps());
    }

    /// Moves the guest's clock if it is time. Where that has to be before the CPU goes on, if it is ahead.
    fn look(&mut self, cpu: usize, executed_ps: u64) -> Option<u64> {
        let Self { time, clock, .. } = self;
        let Next { guest_ns, until_ns } =
            clock.look(cpu, executed_ps, Time::now_ns(), |other| time.is_idle(other));
        if let Some(ns) = guest_ns {
            time.set(cpu, ns);
        }
        until_ns
    }

    /// The time of the CPU that this thread runs, in nanoseconds.
    pub(crate) fn own_ns(&mut self, model: Option<&mut Model>) -> u64 {
        let Some(cpu) = self.time.current_cpu() else { return Time::now_ns() };
        let now_ns = Time::now_ns();
        let own_ps = match model {
            Some(model) => {
                let own_ps = self.clock.local_ps(cpu, model.executed_ps(cpu), now_ns);
                model.set_begun(cpu, self.clock.begun_ps(cpu));
                own_ps
            }
            None => self.clock.local_ps(cpu, self.executed_outside_ps(cpu), now_ns),
        };
        own_ps / 1000
    }
}
