//! What the cache-fair paper measures (Fedorova, Seltzer and Smith, PACT 2007, section 5): how fast a program, the
//! *principal*, gets on beside others that share its CPU and its cache.

mod estimates;
mod figures;
mod schedule;
mod value;

pub use estimates::SampledIn;
pub(crate) use estimates::{estimate_of, once, sampled};
pub(crate) use figures::figures;
pub use figures::{Figures, MissRates, Principal};
pub use schedule::{Beside, ScheduleError};
pub(crate) use value::{ESTIMATORS, value};

use hearth_machine::units::Nanoseconds;
use serde::{Deserialize, Serialize};

/// Programs whose isolation is measured on one machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The machine.
    pub machine: String,
    /// The same machine with the cache parted equally, where fair miss rates are measured.
    pub parted: String,
    /// The programs that are run together, joined by `+`, to estimate what each would do with a fair part of
    /// the cache: the paper's separate experiment (section 5.1).
    pub sampled: String,
    /// The policy under which they are.
    pub sampled_under: String,
    /// Whether the planner knows nothing from there, and samples principals as they run.
    #[serde(default)]
    pub samples_itself: bool,
    /// Principals start so much later than the others, which have set their data up by then.
    pub principals_after: Option<Nanoseconds>,
    /// The schedules of each principal.
    #[serde(rename = "schedule")]
    pub schedules: Vec<Schedules>,
}

/// What a principal runs beside: [`Beside`] has the syntax.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedules {
    /// The program.
    pub principal: String,
    /// Programs that miss seldom.
    pub fast: String,
    /// Programs that miss often.
    pub slow: String,
}

/// Which of a principal's schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speed {
    /// Beside programs that miss seldom.
    Fast,
    /// Beside programs that miss often.
    Slow,
}

impl Speed {
    /// As printed.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Speed::Fast => "fast",
            Speed::Slow => "slow",
        }
    }
}

impl Group {
    /// The programs that are sampled.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
        self.sampled.split('+').map(str::trim)
    }

    /// Where they are.
    pub(crate) fn sampled_in(&self) -> SampledIn {
        SampledIn { programs: self.sampled.clone(), policy: self.sampled_under.clone() }
    }

    /// A schedule as a workload: who runs beside whom.
    pub(crate) fn workload(&self, schedules: &Schedules, speed: Speed) -> String {
        let others = match speed {
            Speed::Fast => &schedules.fast,
            Speed::Slow => &schedules.slow,
        };
        let after = self.principals_after.map_or_else(String::new, |after| format!(" after {after}"));
        format!("{} beside {others}{after}", schedules.principal)
    }

    /// What of it is no schedule.
    pub(crate) fn check(&self) -> Result<(), ScheduleError> {
        let workloads = |one| [Speed::Fast, Speed::Slow].map(|speed| self.workload(one, speed));
        let mut all = self.schedules.iter().flat_map(workloads);
        all.try_for_each(|workload| workload.parse::<Beside>().map(|_| ()))
    }

    /// The schedules of a principal.
    pub(crate) fn of(&self, principal: &str) -> Option<&Schedules> {
        self.schedules.iter().find(|schedules| schedules.principal == principal)
    }
}
