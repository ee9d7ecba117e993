//! What makes a policy sensible. The first thing that does not is returned.

use hearth_machine::located::{Fault, name, within};
use hearth_machine::units::Nanoseconds;

use crate::{Credit, Policy};

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

impl Policy {
    /// Checks that the scheduler can follow the policy. [`Policy::parse`] has done so already; a
    /// policy that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first value that is out of bounds or contradicts another, with its TOML key.
    pub fn check(&self) -> Result<(), Fault> {
        name("name", &self.name)?;
        within("quantum", self.quantum_ns, 100 * MICROSECOND, 10 * SECOND, Nanoseconds)?;
        within("decay", self.decay_ns, SECOND / 100, 1000 * SECOND, Nanoseconds)?;
        within("credit.time", self.credit.time_ns, 0, 100 * SECOND, Nanoseconds)?;
        within("credit.processor", self.credit.processor_ns, 0, 100 * SECOND, Nanoseconds)?;
        within("credit.llc", self.credit.llc_ns, 0, 100 * SECOND, Nanoseconds)?;
        within("credit.node", self.credit.node_ns, 0, 100 * SECOND, Nanoseconds)?;
        self.check_complex()?;
        self.check_attached()
    }

    fn check_complex(&self) -> Result<(), Fault> {
        if self.complex != (self.fade_permille > 0) {
            let what = "`complex` and `fade` go together: one is given without the other";
            return Err(Fault::new("fade", what, "give both, or none"));
        }
        if self.complex && self.credit.time_ns == 0 {
            let what = "`complex` spreads and fades the `time` credit, which is 0";
            return Err(Fault::new("complex", what, "give `credit.time`, or remove `complex`"));
        }
        Ok(())
    }

    /// Credits that weigh one CPU against another say nothing of a task that has only one.
    fn check_attached(&self) -> Result<(), Fault> {
        let Credit { processor_ns, llc_ns, node_ns, .. } = self.credit;
        let moves = [("processor", processor_ns), ("llc", llc_ns), ("node", node_ns)];
        match moves.into_iter().find(|(_, credit)| self.attached && *credit > 0) {
            None => Ok(()),
            Some((key, _)) => {
                let what = "an attached task never moves, so this credit has no effect";
                Err(Fault::new(format!("credit.{key}"), what, "remove it, or remove `attached`"))
            }
        }
    }
}
