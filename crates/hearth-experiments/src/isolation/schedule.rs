//! Programs beside each other, as text: `art beside mcf`, `jbb beside twolf and tpcc:warehouses=5`, `art beside
//! gzip with vpr and crafty and mcf`.

use hearth_machine::CpuSet;
use hearth_machine::units::Nanoseconds;
use hearth_policy::snapshot::Class;
use hearth_sim::memory::Memory;
use hearth_workloads::{Built, WorkloadError, build, check_end, endless, seed_of_place};
use std::str::FromStr;
use thiserror::Error;

/// A principal on CPU 0 with best-effort programs, and programs on CPU 1 that nobody slows down or speeds up.
/// Programs are bound, so that the principal's co-runners are always the same (sections 5.1 and 5.2).
///
/// `P beside X` has one X as best-effort program and two on CPU 1; `P beside X and Y` has one X and one Y; `P beside
/// W with X and Y and Z` has the best-effort programs W and X, and on CPU 1 Y and Z. `after 2 s`, at the end, has the
/// principal start so much later than the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Beside {
    principal: String,
    best_effort: Vec<String>,
    others: Vec<String>,
    after: Nanoseconds,
}

/// The text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no schedule; write \"art beside mcf\", or \"jbb beside twolf and tpcc\"")]
pub struct ScheduleError(String);

const BESIDE: &str = " beside ";
const WITH: &str = " with ";
const AND: &str = " and ";
const AFTER: &str = " after ";
/// CPUs, as bits.
const PRINCIPALS_CPU: usize = 0;
const OTHER_CPU: usize = 1;

impl FromStr for Beside {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let wrong = || ScheduleError(text.to_owned());
        let (text_of_programs, after) = match text.split_once(AFTER) {
            Some((programs, after)) => (programs, after.trim().parse().map_err(|_| wrong())?),
            None => (text, Nanoseconds(0)),
        };
        let (principal, others) = text_of_programs.split_once(BESIDE).ok_or_else(wrong)?;
        let name = |name: &str| name.trim().to_owned();
        let mut parts = others.split(AND);
        let best_effort: Vec<String> = parts.next().unwrap_or_default().split(WITH).map(name).collect();
        let mut others: Vec<String> = parts.map(name).collect();
        if others.is_empty() {
            let [alike] = &best_effort[..] else { return Err(wrong()) };
            others = vec![alike.clone(); 2];
        }
        let beside = Self { principal: name(principal), best_effort, others, after };
        let is_no_name = |name: &str| name.is_empty() || name.contains(char::is_whitespace);
        let is_empty = beside.all().any(|name| is_no_name(name));
        if is_empty { Err(wrong()) } else { Ok(beside) }
    }
}

impl std::fmt::Display for Beside {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{BESIDE}{}", self.principal, self.best_effort.join(WITH))?;
        let is_of_a_kind = match (&self.best_effort[..], &self.others[..]) {
            ([one], [other, another]) => one == other && one == another,
            _ => false,
        };
        if !is_of_a_kind {
            write!(out, "{AND}{}", self.others.join(AND))?;
        }
        if self.after.0 > 0 { write!(out, "{AFTER}{}", self.after) } else { Ok(()) }
    }
}

impl Beside {
    /// Whether a text is meant as one.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.contains(BESIDE)
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        [&self.principal].into_iter().chain(&self.best_effort).chain(&self.others)
    }

    /// The principal's group, as planners know it; of its program's name.
    pub(crate) fn principal(&self) -> (u64, &str) {
        (1, &self.principal)
    }

    /// Sets all of them up: the principal first, then the best-effort programs, which like the others run on
    /// until the principal has ended.
    ///
    /// # Errors
    /// [`WorkloadError`]
    pub(crate) fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Result<Vec<Built>, WorkloadError> {
        let best_effort = 1..=self.best_effort.len();
        let place = |(index, name): (usize, &String)| {
            let program = if index == 0 { name.clone() } else { endless(name)? };
            let mut built = build(&program, memory, scale, seed_of_place(seed, index))?;
            for application in &mut built.applications {
                application.name = if index == 0 { name.clone() } else { format!("{name}#{index}") };
                application.cpus =
                    CpuSet::one(if index <= *best_effort.end() { PRINCIPALS_CPU } else { OTHER_CPU });
                application.start_ns = if index == 0 { self.after.0 } else { 0 };
                application.class = match index {
                    0 => Some(Class::CacheFair),
                    _ if best_effort.contains(&index) => Some(Class::BestEffort),
                    _ => None,
                };
            }
            Ok(built)
        };
        let built: Vec<Built> = self.all().enumerate().map(place).collect::<Result<_, WorkloadError>>()?;
        check_end(&built, &self.to_string())?;
        Ok(built)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::Machine;
    use hearth_policy::Policy;
    use hearth_sim::{Options, Simulation};

    #[test]
    fn a_principal_without_an_end_is_refused() {
        let (machine, policy) = (Machine::load("t1-dual").unwrap(), Policy::load("fixed").unwrap());
        let memory = Simulation::new(&machine, &policy, &Options::default()).unwrap().memory();
        let build =
            |text: &str| text.parse::<Beside>().unwrap().build(&memory, 0.01, 1).map(|built| built.len());
        assert_eq!(build("art beside mcf").unwrap(), 4);
        assert!(matches!(build("art:millions=0 beside mcf"), Err(WorkloadError::NoEnd { .. })));
        assert!(matches!(build("art beside matrix"), Err(WorkloadError::Ends { .. })));
    }

    #[test]
    fn a_schedule_is_read_and_what_is_none_is_refused() {
        let three: Beside = "art beside mcf".parse().unwrap();
        assert_eq!((three.best_effort.as_slice(), three.others.len()), (&["mcf".to_owned()][..], 2));
        assert_eq!(three.to_string(), "art beside mcf");
        let two: Beside = "jbb beside twolf and tpcc:warehouses=5".parse().unwrap();
        assert_eq!((two.best_effort.len(), two.others), (1, vec!["tpcc:warehouses=5".to_owned()]));
        let payers: Beside = "art beside gzip with vpr and crafty and mcf".parse().unwrap();
        assert_eq!((payers.best_effort.len(), payers.others.len()), (2, 2));
        assert_eq!(payers.to_string().parse(), Ok(payers));
        let late: Beside = "jbb beside twolf and tpcc after 2 s".parse().unwrap();
        assert_eq!(late.after, Nanoseconds(2_000_000_000));
        assert_eq!(late.to_string().parse(), Ok(late));
        for wrong in [
            "art beside mcf after",
            "art beside mcf after lunch",
            "art",
            "art beside ",
            "art beside mcf and ",
            "art beside gzip with mcf",
            "art beside gzip with and mcf",
            " beside mcf",
            "art beside mcf beside mcf",
        ] {
            assert_eq!(wrong.parse::<Beside>(), Err(ScheduleError(wrong.to_owned())));
        }
    }
}
