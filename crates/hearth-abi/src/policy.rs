//! A policy in the form that the scheduler reads.

use crate::{ATTACHED, BSD, COMPLEX, FAIR, FIXED, KERNEL, Policy, SYSTEM_V};
use hearth_policy::Discipline;

impl Policy {
    /// A policy on a host with this tick.
    pub fn new(policy: &hearth_policy::Policy, tick_ns: u64) -> Self {
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        Self {
            quantum_ns: policy.quantum_ns,
            tick_ns,
            decay_ns: policy.decay_ns,
            saturation_ns: policy.saturation_ns.unwrap_or(u64::MAX),
            time_ns: policy.credit.time_ns,
            processor_ns: policy.credit.processor_ns,
            llc_ns: policy.credit.llc_ns,
            node_ns: policy.credit.node_ns,
            fragment_ns: policy.credit.fragment_ns,
            fade_milli: policy.fade_permille,
            discipline: match policy.discipline {
                Discipline::Fixed => FIXED,
                Discipline::Fair => FAIR,
                Discipline::SystemV => SYSTEM_V,
                Discipline::Bsd => BSD,
                Discipline::Kernel => KERNEL,
            },
            flags: flag(policy.complex, COMPLEX) | flag(policy.attached, ATTACHED),
            pad: 0,
        }
    }
}
