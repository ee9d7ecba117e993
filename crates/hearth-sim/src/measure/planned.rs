//! What a planner did in a run.

use hearth_abi::native::Outcome;
use hearth_policy::{Plan, WrongPlan};
use serde::{Deserialize, Serialize};

/// What a planner did in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Planned {
    /// Its name.
    pub planner: String,
    /// Steps that led to a plan.
    pub steps: u64,
    /// Plans that were taken up: that were published, and others than the one in force before.
    pub taken_up: u64,
    /// Steps after which the plan before went on, because tasks still waited as the one before that had it.
    pub postponed: u64,
    /// The parts of the plan that was taken up last; none if the machine is undivided.
    pub parts: Vec<Vec<usize>>,
    /// Tasks and groups of which that plan says something.
    pub targets: usize,
    /// Steps that led to no plan.
    pub failures: u64,
    /// Why the first of these did not.
    pub failure: Option<String>,
    /// Where the plans put parallel programs, from the first one that did on.
    pub places: Vec<Places>,
}

/// Where parallel programs are from some time on, until the next one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Places {
    /// When.
    pub at_ns: u64,
    /// Rows of time that take turns; none if nobody is in a gang.
    pub rows: usize,
    /// Who is where, by application.
    pub places: Vec<Place>,
}

/// CPUs that a parallel program has, always or in a row of time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Place {
    /// The application.
    pub application: usize,
    /// The row; nothing if it has them always.
    pub row: Option<usize>,
    /// Ascending.
    pub cpus: Vec<usize>,
}

impl Planned {
    pub(crate) fn count(&mut self, plan: &Plan, outcome: Outcome) {
        self.steps += 1;
        match outcome {
            Outcome::Published => {
                self.taken_up += 1;
                self.parts.clone_from(&plan.parts);
                self.targets = plan.tasks.len() + plan.groups.len();
            }
            Outcome::Postponed => self.postponed += 1,
            Outcome::Renewed => {}
        }
    }

    /// Keeps the places of a plan that was taken up, if they differ from those before.
    pub(crate) fn follow(&mut self, now: Places) {
        let differs = match self.places.last() {
            Some(last) => (last.rows, &last.places) != (now.rows, &now.places),
            None => !now.places.is_empty(),
        };
        if differs {
            self.places.push(now);
        }
    }

    pub(crate) fn fail(&mut self, error: &WrongPlan) {
        self.failures += 1;
        self.failure.get_or_insert_with(|| error.to_string());
    }
}
