//! Simulated time, as arithmetic: each CPU has its own, and the guest's clock is that of the CPU that is furthest
//! behind.
//!
//! A busy CPU's time passes by what it executes: a cycle for each instruction, and the stalls. CPUs take turns, so one
//! runs ahead of the others until it is a *quantum* ahead of the guest's clock, and then waits for that.
//! A smaller quantum lets CPUs meet in shared lines more as real ones do, and takes longer.

/// What is to be done after a CPU's time was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// What the guest's clock is to be set to.
    pub(crate) guest_ns: Option<u64>,
    /// The CPU is ahead: it is the others' turn until the guest's clock has come to here.
    pub(crate) until_ns: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Local {
    /// Time that passed before what [`Clock::look`] is told of was executed.
    base_ps: u64,
    /// When it was last looked at.
    seen_ps: u64,
    has_run: bool,
}

/// The CPUs' times.
pub(crate) struct Clock {
    cpus: Vec<Local>,
    quantum_ps: u64,
    /// What the guest's clock was last set to, or is about to be.
    asked_ns: u64,
}

impl Clock {
    pub(crate) fn new(cpus: usize, quantum_ps: u64) -> Self {
        Self { cpus: vec![Local::default(); cpus], quantum_ps, asked_ns: 0 }
    }

    /// By how much CPUs may be apart from now on.
    pub(crate) fn set_quantum(&mut self, ps: u64) {
        self.quantum_ps = ps;
    }

    /// How long a CPU may run before its time is looked at.
    pub(crate) fn interval_ps(&self) -> u64 {
        self.quantum_ps / 4
    }

    /// When a CPU began to execute what it has executed.
    #[inline(always)]
    pub(crate) fn begun_ps(&self, cpu: usize) -> u64 {
        self.cpus[cpu].base_ps
    }

    /// The time of a CPU that has executed for `executed_ps`, when the guest's clock is at `now_ns`. One that has
    /// slept wakes at the guest's time.
    pub(crate) fn local_ps(&mut self, cpu: usize, executed_ps: u64, now_ns: u64) -> u64 {
        let local = &mut self.cpus[cpu];
        local.base_ps = local.base_ps.max((now_ns * 1000).saturating_sub(executed_ps));
        local.base_ps + executed_ps
    }

    /// From now on a CPU's execution is counted from 0 again.
    pub(crate) fn restart(&mut self, cpu: usize, executed_ps: u64) {
        self.cpus[cpu].base_ps += executed_ps;
    }

    /// Looks at the time of a CPU that runs. `is_idle` says which others wait for something.
    pub(crate) fn look(
        &mut self,
        cpu: usize,
        executed_ps: u64,
        now_ns: u64,
        is_idle: impl Fn(usize) -> bool,
    ) -> Next {
        let local_ps = self.local_ps(cpu, executed_ps, now_ns);
        self.cpus[cpu].seen_ps = local_ps;
        self.cpus[cpu].has_run = true;
        let busy = (0..self.cpus.len()).filter(|&other| self.cpus[other].has_run && !is_idle(other));
        let times = busy.map(|other| self.cpus[other].seen_ps.max(now_ns * 1000));
        let behind_ps = times.min().unwrap_or(local_ps).min(local_ps);
        let is_due = behind_ps >= self.asked_ns.max(now_ns) * 1000 + self.quantum_ps;
        if is_due {
            self.asked_ns = behind_ps / 1000;
        }
        let is_ahead = local_ps > behind_ps + self.quantum_ps;
        let until_ns = is_ahead.then(|| (local_ps - self.quantum_ps).div_ceil(1000));
        Next { guest_ns: is_due.then_some(self.asked_ns), until_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: fn(usize) -> bool = |_| false;

    #[test]
    fn the_guests_clock_is_that_of_the_cpu_that_is_furthest_behind() {
        let mut clock = Clock::new(2, 10_000);
        assert_eq!(clock.look(1, 1, 0, NOBODY), Next::default());
        let ahead = clock.look(0, 50_000, 0, NOBODY);
        assert_eq!(ahead, Next { guest_ns: None, until_ns: Some(40) });
        let behind = clock.look(1, 30_000, 0, NOBODY);
        assert_eq!(behind, Next { guest_ns: Some(30), until_ns: None });
    }

    #[test]
    fn a_cpu_that_idles_holds_nobody_up() {
        let mut clock = Clock::new(2, 10_000);
        clock.look(1, 1, 0, NOBODY);
        assert_eq!(clock.look(0, 50_000, 0, |cpu| cpu == 1).guest_ns, Some(50));
    }

    #[test]
    fn a_cpu_that_slept_wakes_at_the_guests_time() {
        let mut clock = Clock::new(2, 10_000);
        assert_eq!(clock.local_ps(0, 5_000, 0), 5_000);
        assert_eq!(clock.local_ps(0, 5_000, 100), 100_000);
        assert_eq!(clock.local_ps(0, 9_000, 100), 104_000);
        clock.restart(0, 9_000);
        assert_eq!(clock.local_ps(0, 0, 100), 104_000);
    }
}
