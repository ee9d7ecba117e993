//! What makes a policy sensible. The first thing that does not is returned.

use hearth_machine::located::Fault;
use hearth_machine::units::Nanoseconds;

use crate::Policy;

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

impl Policy {
    /// Checks that the scheduler can follow the policy. [`Policy::parse`] has done so already; a
    /// policy that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first value that is out of bounds or contradicts another, with its TOML key.
    pub fn check(&self) -> Result<(), Fault> {
        within("quantum", self.quantum_ns, 100 * MICROSECOND, 10 * SECOND)?;
        within("decay", self.decay_ns, SECOND / 100, 1000 * SECOND)?;
        within("credit.time", self.credit.time_ns, 0, 100 * SECOND)?;
        within("credit.processor", self.credit.processor_ns, 0, 100 * SECOND)?;
        within("credit.llc", self.credit.llc_ns, 0, 100 * SECOND)?;
        within("credit.node", self.credit.node_ns, 0, 100 * SECOND)?;
        if self.complex && self.credit.time_ns == 0 {
            let what = "`complex` spreads and fades the `time` credit, which is 0";
            return Err(Fault::new("complex", what, "give `credit.time`, or remove `complex`"));
        }
        Ok(())
    }
}

fn within(key: &str, value: u64, least: u64, most: u64) -> Result<(), Fault> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let (value, least, most) = (Nanoseconds(value), Nanoseconds(least), Nanoseconds(most));
    Err(Fault::new(key, format!("{value} is out of bounds"), format!("write a time from {least} to {most}")))
}
