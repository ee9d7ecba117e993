//! What makes a page policy sensible. The first thing that does not is returned.

use hearth_machine::located::{Fault, name, within};
use hearth_machine::units::Nanoseconds;

use super::{Cost, Defrost, Freeze, PagePolicy, Rule};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// More consecutive misses than a page has in a long run.
const MAX_THRESHOLD: u32 = 1_000_000;
/// Half of what the planner's counts for a page and node can hold.
const MAX_EXCESS: u32 = 1 << 15;

impl PagePolicy {
    /// Checks that the planner can follow the policy. [`PagePolicy::parse`] has done so already; a
    /// policy that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first value that is out of bounds or contradicts another, with its TOML key.
    pub fn check(&self) -> Result<(), Fault> {
        name("name", &self.name)?;
        match self.rule {
            Rule::Never | Rule::PostFacto => return self.check_idle(),
            Rule::Consecutive { threshold, select, .. } => {
                within("threshold", threshold, 1, MAX_THRESHOLD, |misses| misses)?;
                within("select", select, 0, MAX_THRESHOLD, |misses| misses)?;
            }
            Rule::Competitive { threshold, .. } => {
                within("threshold", threshold, 1, MAX_EXCESS, |misses| misses)?;
            }
        }
        check_freeze(&self.freeze)?;
        self.cost.as_ref().map_or(Ok(()), check_cost)
    }

    /// A policy that moves nothing has nothing to freeze and to limit.
    fn check_idle(&self) -> Result<(), Fault> {
        let tables = [
            ("freeze", self.freeze != Freeze::NONE),
            ("quota", self.quota.is_some()),
            ("cost", self.cost.is_some()),
        ];
        match tables.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((key, _)) => {
                let what = "under this rule no page moves, so this table has no effect";
                Err(Fault::new(key, what, "remove it, or write another `rule`"))
            }
        }
    }
}

fn check_freeze(freeze: &Freeze) -> Result<(), Fault> {
    let (Defrost::Each(period_ns) | Defrost::Together(period_ns)) = freeze.defrost else { return Ok(()) };
    if !freeze.on_move && !freeze.on_local {
        let what = "nothing freezes a page, so there is nothing to defrost";
        return Err(Fault::new("freeze.defrost", what, "add `on_move = true`, or remove it"));
    }
    within("freeze.defrost", period_ns, MILLISECOND, 1000 * SECOND, Nanoseconds)
}

fn check_cost(cost: &Cost) -> Result<(), Fault> {
    within("cost.move", cost.move_ns, 1, SECOND, Nanoseconds)?;
    within("cost.saving", cost.saving_ns, 1, MILLISECOND, Nanoseconds)?;
    within("cost.horizon", cost.horizon_ns, MILLISECOND, 1000 * SECOND, Nanoseconds)
}
