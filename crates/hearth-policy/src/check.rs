//! What makes a policy sensible. The first thing that does not is returned.

use hearth_machine::located::{Fault, name, within};
use hearth_machine::units::Nanoseconds;

use crate::{ClassNames, Credit, Discipline, Policy};

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;

// The kernel ends a scheduler that lets a task wait for 10 s. The scheduler keeps every wait below
// half of that, whatever a policy says; a policy that stays below these bounds gets what it says.
const LONGEST_QUANTUM: u64 = SECOND;
const LARGEST_CREDIT: u64 = 2 * SECOND;
const LARGEST_SUM: u64 = 4 * SECOND;

impl Policy {
    /// Checks that the scheduler can follow the policy. [`Policy::parse`] has done so already; a
    /// policy that was put together in code has not been checked.
    ///
    /// # Errors
    /// The first value that is out of bounds or contradicts another, with its TOML key.
    pub fn check(&self) -> Result<(), Fault> {
        name("name", &self.name)?;
        waits("quantum", self.quantum_ns, 100 * MICROSECOND, LONGEST_QUANTUM)?;
        within("decay", self.decay_ns, SECOND / 100, 1000 * SECOND, Nanoseconds)?;
        let saturation_ns = self.saturation_ns.unwrap_or(SECOND);
        within("saturation", saturation_ns, SECOND / 100, 1000 * SECOND, Nanoseconds)?;
        self.check_credit()?;
        self.check_searched()?;
        self.check_steady()?;
        self.check_kernel()?;
        self.check_complex()?;
        self.check_attached()?;
        self.isolation.check()
    }

    fn check_credit(&self) -> Result<(), Fault> {
        let Credit { time_ns, processor_ns, llc_ns, node_ns, fragment_ns } = self.credit;
        let near = [("time", time_ns), ("processor", processor_ns), ("llc", llc_ns), ("node", node_ns)];
        let credits = near.into_iter().chain([("fragment", fragment_ns)]);
        for (key, credit_ns) in credits {
            waits(format!("credit.{key}"), credit_ns, 0, LARGEST_CREDIT)?;
        }
        let sum_ns = self.credit.sum_ns();
        if sum_ns > LARGEST_SUM {
            let what = format!("the credits are {} in all; {WHY}", Nanoseconds(sum_ns));
            return Err(Fault::new(
                "credit",
                what,
                format!("make them {} at most", Nanoseconds(LARGEST_SUM)),
            ));
        }
        Ok(())
    }

    /// What is looked at task by task, where there is one queue to search.
    fn check_searched(&self) -> Result<(), Fault> {
        let searched = [("complex", self.complex), ("attached", self.attached)];
        match searched.into_iter().find(|(_, is_set)| *is_set && !self.discipline.has_run_queue()) {
            None => Ok(()),
            Some((key, _)) => {
                let what =
                    format!("`{key}` belongs to the UNIX disciplines, not to {}", self.discipline.name());
                Err(Fault::new(key, what, "remove it, or write `discipline = \"system-v\"`"))
            }
        }
    }

    fn check_steady(&self) -> Result<(), Fault> {
        if !self.steady || self.discipline == Discipline::Fair {
            return Ok(());
        }
        let what = format!("`steady` belongs to the discipline \"fair\", not to {}", self.discipline.name());
        Err(Fault::new("steady", what, "remove it, or write `discipline = \"fair\"`"))
    }

    /// The kernel's own scheduler knows no credits.
    fn check_kernel(&self) -> Result<(), Fault> {
        if self.discipline != Discipline::Kernel || self.credit == Credit::default() {
            return Ok(());
        }
        let what = "the discipline \"kernel\" is a model of Linux's own scheduler, which has no credits";
        Err(Fault::new("credit", what, "remove them, or write `discipline = \"fair\"`"))
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
        let Credit { processor_ns, llc_ns, node_ns, fragment_ns, .. } = self.credit;
        let near = [("processor", processor_ns), ("llc", llc_ns), ("node", node_ns)];
        let moves = near.into_iter().chain([("fragment", fragment_ns)]);
        match { moves }.find(|(_, credit)| self.attached && *credit > 0) {
            None => Ok(()),
            Some((key, _)) => {
                let what = "an attached task never moves, so this credit has no effect";
                Err(Fault::new(format!("credit.{key}"), what, "remove it, or remove `attached`"))
            }
        }
    }
}

impl ClassNames {
    fn check(&self) -> Result<(), Fault> {
        for (key, names) in [("cache-fair", &self.cache_fair), ("best-effort", &self.best_effort)] {
            for (place, name) in names.iter().enumerate() {
                let wrong = |what, mend| Err(Fault::new(format!("isolation.{key}[{place}]"), what, mend));
                if matches!(name.as_str(), "" | "/" | "user:") {
                    let mend = "write a path below `/`, a unit's name, or `user:NAME`";
                    return wrong(format!("{name:?} names no control group"), mend);
                }
                if key == "best-effort" && self.cache_fair.contains(name) {
                    return wrong(format!("{name} is cache-fair already"), "leave it in one of the two");
                }
            }
        }
        Ok(())
    }
}

/// Why what makes tasks wait is bounded.
const WHY: &str = "tasks would wait until the kernel's watchdog ends the scheduler";

/// Checks a number that makes tasks wait.
fn waits(key: impl Into<String>, value_ns: u64, least_ns: u64, most_ns: u64) -> Result<(), Fault> {
    within(key, value_ns, least_ns, most_ns, Nanoseconds).map_err(|fault| {
        let what = if value_ns > most_ns { format!("{}; {WHY}", fault.what) } else { fault.what };
        Fault { what, ..fault }
    })
}
