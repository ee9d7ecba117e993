//! What was found, as it is printed.

use hearth_command::output;
use hearth_observe::neighbours::Neighbours;
use hearth_policy::isolation::blame::{Slowing, Victim};
use hearth_report::format::significant;
use serde::Serialize;
use std::fmt;

/// With less of all cycles, in percent, a program is left out unless all are wanted.
pub(super) const SMALL_PERCENT: f64 = 0.5;

/// What is printed.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub elapsed_s: f64,
    pub cpus: usize,
    pub cache_domains: usize,
    /// Stretches of CPUs' time that were counted, and such as found no room.
    pub stretches: usize,
    pub lost: u64,
    /// What counting took of all CPUs' time, in percent.
    pub cost_percent: Option<f64>,
    /// Whether it was stopped before its end.
    pub partial: bool,
    /// Programs, or control groups; those with most cycles first.
    pub programs: Vec<Program>,
}

#[derive(Debug, Serialize)]
pub(super) struct Program {
    pub name: String,
    /// Of all cycles that were counted.
    pub cycles_percent: f64,
    pub samples: usize,
    pub instructions_per_cycle: f64,
    pub misses_per_1000_instructions: f64,
    /// By all neighbours together; nothing if it cannot be told.
    pub slowed: Option<By>,
    /// By each, the one that misses most first.
    pub by: Vec<Neighbour>,
}

#[derive(Debug, Serialize)]
pub(super) struct Neighbour {
    pub name: String,
    /// Nothing if it always misses as another does, or always the same.
    #[serde(flatten)]
    pub slowed: Option<By>,
}

/// A [`Slowing`], as printed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct By {
    pub percent: f64,
    /// The standard error, in points.
    pub error: f64,
    pub sure: bool,
}

impl From<Slowing> for By {
    fn from(slowing: Slowing) -> Self {
        Self { percent: slowing.percent, error: slowing.error, sure: slowing.is_sure() }
    }
}

impl Report {
    pub fn new(found: &Neighbours) -> Self {
        let cycles: f64 = found.victims.iter().map(|victim| victim.cycles).sum();
        let name =
            |who| found.names.get(&who).map_or_else(|| "(unknown)".to_owned(), |name| output::shown(name));
        let program = |victim: &Victim| Program {
            name: name(victim.who),
            cycles_percent: 100.0 * victim.cycles / cycles,
            samples: victim.samples,
            instructions_per_cycle: victim.ipc,
            misses_per_1000_instructions: victim.misses_per_ki,
            slowed: victim.by_all.map(By::from),
            by: victim
                .by
                .iter()
                .map(|(who, by)| Neighbour { name: name(*who), slowed: by.map(By::from) })
                .collect(),
        };
        let all_ns = found.elapsed.as_nanos() as f64 * found.cpus as f64;
        Self {
            elapsed_s: found.elapsed.as_secs_f64(),
            cpus: found.cpus,
            cache_domains: found.domains,
            stretches: found.stretches,
            lost: found.lost,
            cost_percent: found.run_time.map(|(ns, _)| 100.0 * ns as f64 / all_ns),
            partial: found.interrupted,
            programs: found.victims.iter().map(program).collect(),
        }
    }

    /// Those with enough cycles to be shown.
    pub fn shown(&self, all: bool) -> Vec<&Program> {
        self.programs.iter().filter(|program| all || program.cycles_percent >= SMALL_PERCENT).collect()
    }

    /// What a reader is to take away.
    pub fn summary(&self) -> String {
        let pairs =
            self.programs.iter().flat_map(|victim| victim.sure().map(move |(by, how)| (victim, by, how)));
        match pairs.max_by(|one, other| one.2.percent.total_cmp(&other.2.percent)) {
            Some((victim, by, how)) => format!("{} slows {} most: by {how}.", by.name, victim.name),
            None => "Nobody slows anybody for sure; longer (--for 1m) tells more.".to_owned(),
        }
    }

    /// What was counted, in a line.
    pub fn about(&self) -> String {
        format!(
            "{:.1} s, {} CPUs, cache domains: {}, {} stretches of CPUs' time",
            self.elapsed_s, self.cpus, self.cache_domains, self.stretches
        )
    }

    /// What limits the figures, and what they cost.
    pub fn notes(&self) -> Vec<String> {
        let lost = (self.lost > 0).then(|| format!("{} stretches came too fast and are missing.", self.lost));
        let cost = self.cost_percent;
        let cost = cost.map(|percent| format!("Counting took {} % of the CPUs' time.", significant(percent)));
        let nothing = "Nothing was changed.".to_owned();
        lost.into_iter().chain(cost).chain([nothing]).collect()
    }
}

impl Program {
    /// Who slows it beyond doubt, and how much.
    pub fn sure(&self) -> impl Iterator<Item = (&Neighbour, By)> {
        self.by.iter().filter_map(|by| Some((by, by.slowed.filter(|slowed| slowed.sure)?)))
    }

    /// The same in words.
    pub fn by_whom(&self) -> String {
        let sure: Vec<String> = self.sure().map(|(by, how)| format!("{} {how}", by.name)).collect();
        match (sure.is_empty(), self.slowed, self.by.is_empty()) {
            (false, ..) => sure.join(", "),
            (true, _, true) => "no neighbour missed".to_owned(),
            (true, None, _) => "too few samples, or neighbours that never change".to_owned(),
            (true, Some(_), _) => "nobody for sure".to_owned(),
        }
    }
}

impl By {
    /// The percent as text; never "-0.0".
    pub fn rounded(self) -> String {
        let percent = if self.percent.abs() < 0.05 { 0.0 } else { self.percent };
        format!("{percent:.1}")
    }
}

impl fmt::Display for By {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} % ±{:.1}", self.rounded(), self.error)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn slowing(percent: f64, error: f64) -> Option<Slowing> {
        Some(Slowing { percent, error })
    }

    pub fn program(by: &[(&str, Option<Slowing>)]) -> Program {
        Program {
            name: "nginx".into(),
            cycles_percent: 40.0,
            samples: 900,
            instructions_per_cycle: 1.5,
            misses_per_1000_instructions: 2.0,
            slowed: by.iter().find_map(|(_, by)| by.map(By::from)),
            by: by
                .iter()
                .map(|(name, by)| Neighbour { name: (*name).to_owned(), slowed: by.map(By::from) })
                .collect(),
        }
    }

    pub fn report(programs: Vec<Program>) -> Report {
        Report {
            elapsed_s: 10.0,
            cpus: 8,
            cache_domains: 1,
            stretches: 1000,
            lost: 0,
            cost_percent: Some(0.02),
            partial: false,
            programs,
        }
    }

    #[test]
    fn what_cannot_be_told_is_null_in_json() {
        let json = serde_json::to_value(report(vec![program(&[("make", None)])])).unwrap();
        assert_eq!(json["programs"][0]["slowed"], serde_json::Value::Null);
        assert_eq!(json["programs"][0]["by"][0], serde_json::json!({ "name": "make" }));
    }

    #[test]
    fn nothing_below_nothing_is_printed() {
        assert_eq!(By::from(Slowing { percent: -0.01, error: 0.2 }).to_string(), "0.0 % ±0.2");
        assert_eq!(By::from(Slowing { percent: -1.26, error: 0.2 }).to_string(), "-1.3 % ±0.2");
    }
}
