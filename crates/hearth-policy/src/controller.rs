//! The loop's slow half: from what tasks did to what the scheduler should do.

use crate::plan::{Plan, PlanError};
use crate::planners::{self, Planner};
use crate::snapshot::Snapshot;
use std::time::Duration;

/// Makes plans of snapshots. It has no input or output, clock, threads or randomness of its own: the same
/// snapshots give the same plans in every host.
pub struct Controller {
    planners: Vec<Box<dyn Planner>>,
}

/// A planner made a plan that no machine could follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("planner {planner}: {error}")]
pub struct WrongPlan {
    /// Which.
    pub planner: &'static str,
    /// What is wrong.
    pub error: PlanError,
}

impl Controller {
    /// From one step to the next; longer in a host where a step takes a notable part of a CPU.
    pub const STEP: Duration = Duration::from_millis(100);

    /// A plan is published to hold for so many steps: who does not renew it is gone.
    pub const STEPS_TO_HOLD: u32 = 5;

    /// One of these planners. Later ones see, and may change, what earlier ones have planned.
    pub fn new(planners: Vec<Box<dyn Planner>>) -> Self {
        Self { planners }
    }

    /// One of the planner of this name, of [`planners::PLANNERS`]; nothing if there is none that is made
    /// from nothing.
    pub fn named(name: &str) -> Option<Self> {
        planners::named(name).map(|planner| Self::new(vec![planner]))
    }

    /// The planners' names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.planners.iter().map(|planner| planner.name())
    }

    /// The plan from this snapshot on. It has passed [`Plan::check`].
    ///
    /// # Errors
    /// A planner is wrong; what there was before is to hold no longer.
    pub fn step(&mut self, snapshot: &Snapshot) -> Result<Plan, WrongPlan> {
        let mut plan = Plan::default();
        for planner in &mut self.planners {
            planner.plan(snapshot, &mut plan);
            plan.check(snapshot).map_err(|error| WrongPlan { planner: planner.name(), error })?;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Target;

    struct Homes(usize);

    impl Planner for Homes {
        fn name(&self) -> &'static str {
            "homes"
        }

        fn plan(&mut self, _: &Snapshot, plan: &mut Plan) {
            plan.tasks.insert(self.0 as i32, Target::at_home(self.0));
        }
    }

    #[test]
    fn a_later_planner_adds_to_what_an_earlier_one_has_planned() {
        let snapshot = Snapshot::new(0, [(1, 0, 0), (2, 0, 0)]);
        let mut both = Controller::new(vec![Box::new(Homes(1)), Box::new(Homes(2))]);
        assert_eq!(both.step(&snapshot).unwrap().tasks.len(), 2);
    }

    #[test]
    fn a_wrong_plan_is_an_error_that_names_the_planner() {
        let mut wrong = Controller::new(vec![Box::new(Homes(3))]);
        let error = wrong.step(&Snapshot::new(0, [(0, 0, 0)])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "planner homes: the plan gives task 3 the home CPU 3, which does not exist"
        );
    }
}
