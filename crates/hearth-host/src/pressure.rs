//! Pressure stall information: for how long tasks of the host have lacked something.

use procfs::{CpuPressure, Current};
use std::time::Duration;

/// For how long some task, or several, has waited for a CPU since the machine began; nothing where the kernel does not
/// say.
pub fn waited() -> Option<Duration> {
    CpuPressure::current().ok().map(|pressure| Duration::from_micros(pressure.some.total))
}
