//! Planners, a file each. docs/write-a-planner.md adds one.

mod activity;
pub mod cache_fair;
mod gangs;
mod layout;
mod masks;
mod matrix;
mod pages;
mod programs;
mod sets;

pub use cache_fair::CacheFair;
pub use gangs::{Gangs, ROW_NS};
pub use masks::Masks;
pub use pages::Pages;
pub use sets::Sets;

use crate::plan::Plan;
use crate::snapshot::Snapshot;

/// Makes a part of the plan. Only what it was told decides: no clock, no randomness, no input or output.
pub trait Planner: Send {
    /// Its name, as on the command line.
    fn name(&self) -> &'static str;

    /// Adds to the plan what follows from the snapshot, and from those before it.
    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan);
}

/// The names of the planners of CPUs. [`Pages`] is not among them: it follows a page policy. Nor is
/// [`CacheFair`]: it needs to know the machine's bus.
pub const NAMES: [&str; 3] = [GANGS, MASKS, SETS];

/// The name of [`CacheFair`].
pub const CACHE_FAIR: &str = "cache-fair";

/// The name of [`Gangs`].
pub const GANGS: &str = "gangs";

/// The name of [`Masks`].
pub const MASKS: &str = "masks";

/// The name of [`Sets`].
pub const SETS: &str = "sets";

/// The planner of this name.
pub fn named(name: &str) -> Option<Box<dyn Planner>> {
    match name {
        GANGS => Some(Box::new(Gangs::default())),
        MASKS => Some(Box::new(Masks::default())),
        SETS => Some(Box::new(Sets::default())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_its_planner() {
        for name in NAMES {
            assert_eq!(named(name).unwrap().name(), name);
        }
        assert!(named("mask").is_none());
    }
}
