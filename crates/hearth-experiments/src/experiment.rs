//! An experiment: a paper's workloads and policies, and the claims that they check, as TOML.

mod measure;

pub use measure::{EndName, Measure, SwitchName};

use crate::data;
use crate::isolation::{self, Group};
use crate::parallel::Setting;
use crate::policies::Policies;
use crate::table::Table;
use crate::variant::{self, Variant};
use hearth_machine::MAX_CPUS;
use hearth_machine::located::{self, Fault, LocatedError, UnreadableError};
pub(crate) use measure::AFFINITY;
use measure::Named;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A paper's worth of runs and claims, read from `experiments/*.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name on the command line: `T`.
    pub id: String,
    /// One line.
    pub title: String,
    /// Where it comes from.
    pub paper: String,
    /// The machine, by name.
    pub machine: String,
    /// The policy that others are compared with.
    pub baseline: String,
    /// The program whose pages are followed over time in the report.
    pub followed: Option<String>,
    /// Task-parallel programs that are run by themselves, in each of the settings.
    #[serde(default)]
    pub programs: Vec<String>,
    /// How they are run.
    #[serde(rename = "setting", default)]
    pub settings: Vec<Setting>,
    /// Programs whose isolation from others is measured.
    #[serde(rename = "group", default)]
    pub groups: Vec<Group>,
    /// The paper's tables, to be printed beside ours.
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    /// Other answers to what the paper leaves open.
    #[serde(rename = "variant", default)]
    pub variants: Vec<Variant>,
    /// What is claimed.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// Whether a claim describes the programs or is a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Describes the programs: they were calibrated to meet it.
    Input,
    /// Comes out of the mechanism.
    Outcome,
}

impl Kind {
    /// As printed.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Input => "input",
            Kind::Outcome => "outcome",
        }
    }
}

/// One claim; it holds if each of its rows does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// For example `T6`.
    pub id: String,
    /// Input or outcome.
    pub kind: Kind,
    /// In a sentence.
    pub text: String,
    /// Its figures.
    pub rows: Vec<Row>,
    /// Settings, policies or orders of tasks by those that lack what the claim is about: with these in their
    /// places it must not hold.
    #[serde(default)]
    pub mutant: BTreeMap<String, String>,
    /// Of a set of rows, how many must hold; of rows in no set, each.
    #[serde(default)]
    pub at_least: BTreeMap<String, usize>,
}

/// One figure: what is measured, the paper's value, and the band in which ours must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What is measured.
    pub measure: Measure,
    /// The paper's figure, if it gives one.
    pub paper: Option<f64>,
    /// Least value that holds.
    pub low: Option<f64>,
    /// Greatest value that holds.
    pub high: Option<f64>,
    /// The set of rows to which it belongs, of which [`Claim::at_least`] so many must hold.
    pub set: Option<String>,
}

/// Why an experiment cannot be read.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The text is wrong; says where, and how to mend it.
    #[error(transparent)]
    Text(#[from] LocatedError),
    /// No preset has this name, and no file can be read there.
    #[error(transparent)]
    Unreadable(#[from] UnreadableError),
}

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../experiments/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] =
    &[preset!("T"), preset!("N"), preset!("M"), preset!("G"), preset!("D"), preset!("F")];

impl Experiment {
    /// The experiments that come with Hearth: name and text.
    pub fn presets() -> &'static [(&'static str, &'static str)] {
        PRESETS
    }

    /// Reads an experiment; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a value of the wrong type.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ExperimentError> {
        let experiment: Self = located::read(text, origin)?;
        experiment.check().map_err(|fault| fault.locate(text, origin))?;
        Ok(experiment)
    }

    /// The setting of a name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// The group of a name.
    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// Settings can be run, and those that claims name are there.
    fn check(&self) -> Result<(), Fault> {
        variant::check_all(&self.variants, &self.baseline)?;
        for (at, setting) in self.settings.iter().enumerate() {
            if setting.invocation().is_none() {
                let what = format!("{} processes cannot run on CPUs {:?}", setting.processes, setting.cpus);
                let mend = format!("name a process or more, and CPUs below {MAX_CPUS}, such as \"0-7\"");
                return Err(Fault::new(format!("setting[{at}]"), what, mend));
            }
        }
        let names: Vec<&str> = self.settings.iter().map(|setting| setting.name.as_str()).collect();
        for (at, group) in self.groups.iter().enumerate() {
            let wrong = |error: isolation::ScheduleError| {
                Fault::new(format!("group[{at}]"), error.to_string(), "mend `fast` or `slow`")
            };
            group.check().map_err(wrong)?;
        }
        for (at, claim) in self.claims.iter().enumerate() {
            if let Some(wrong) = &claim.first_unknown(Named::Setting, &names) {
                let what = format!("no setting is called {wrong:?}");
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &names)));
            }
            if let Some(wrong) = claim
                .rows
                .iter()
                .filter_map(|row| row.measure.group())
                .find(|name| self.group(name).is_none())
            {
                let what = format!("no group is called {wrong:?}");
                let names: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &names)));
            }
            if let Some(wrong) = &claim.first_unknown(Named::Estimator, &isolation::ESTIMATORS) {
                let what = format!("no estimator is called {wrong:?}");
                let mend = located::one_of(wrong, &isolation::ESTIMATORS);
                return Err(Fault::new(format!("claim[{at}]"), what, mend));
            }
            if let Some(wrong) = &claim.first_unknown(Named::Order, &data::ORDERS) {
                let what = format!("no order of tasks is called {wrong:?}");
                return Err(Fault::new(format!("claim[{at}]"), what, located::one_of(wrong, &data::ORDERS)));
            }
            claim
                .check_sets()
                .map_err(|(what, mend)| Fault::new(format!("claim[{at}].at_least"), what, mend))?;
            for (from, to) in &claim.mutant {
                claim
                    .check_mutant(from, to, &names)
                    .map_err(|(what, mend)| Fault::new(format!("claim[{at}].mutant"), what, mend))?;
            }
        }
        Ok(())
    }

    /// This experiment with the mutant of each claim in the claim's place, and without the claims that have
    /// none: no claim of it may hold.
    pub fn mutated(&self) -> Self {
        let mut mutated = self.clone();
        mutated.claims.retain(|claim| !claim.mutant.is_empty());
        for claim in &mut mutated.claims {
            for (_, name) in claim.rows.iter_mut().flat_map(|row| row.measure.names_mut()) {
                if let Some(other) = claim.mutant.get(name) {
                    name.clone_from(other);
                }
            }
        }
        mutated
    }

    /// A preset by name, or a file.
    ///
    /// # Errors
    /// [`ExperimentError`].
    pub fn load(name: &str) -> Result<Self, ExperimentError> {
        if let Some((id, text)) = PRESETS.iter().find(|(id, _)| id.eq_ignore_ascii_case(name)) {
            return Self::parse(text, &format!("experiments/{id}.toml"));
        }
        Self::parse(&located::read_file(name, "experiment", PRESETS)?, name)
    }
}

impl Claim {
    fn names(&self, kind: Named) -> impl Iterator<Item = String> {
        self.rows.iter().flat_map(move |row| row.measure.names(kind))
    }

    /// The first name of a kind that is not among those that there are.
    fn first_unknown(&self, kind: Named, known: &[&str]) -> Option<String> {
        self.names(kind).find(|name| !known.contains(&name.as_str()))
    }

    /// Each set of rows has a number of those that must hold, which is not above that of its rows; if not, what
    /// is wrong and how to mend it.
    fn check_sets(&self) -> Result<(), (String, String)> {
        let rows_of = |set: &str| self.rows.iter().filter(|row| row.set.as_deref() == Some(set)).count();
        let without =
            self.rows.iter().filter_map(|row| row.set.as_ref()).find(|set| !self.at_least.contains_key(*set));
        if let Some(set) = without {
            return Err((
                format!("how many rows of the set {set:?} must hold?"),
                format!("add `{set} = 5` to it"),
            ));
        }
        let wrong = self.at_least.iter().find(|&(set, &least)| least == 0 || least > rows_of(set));
        wrong.map_or(Ok(()), |(set, least)| {
            let what = format!("{least} of the {} rows of the set {set:?} cannot be asked for", rows_of(set));
            Err((what, "ask for one or more, and for no more than there are".to_owned()))
        })
    }

    /// A mutant puts something that exists in the place of something that the claim names; if not, what is
    /// wrong and how to mend it.
    fn check_mutant(&self, from: &str, to: &str, settings: &[&str]) -> Result<(), (String, String)> {
        let is_named = |kind| self.names(kind).any(|name| name == from);
        let machines: Vec<&str> = hearth_machine::presets().iter().map(|(name, _)| *name).collect();
        if is_named(Named::Policy) {
            let is_there = to == AFFINITY || Policies::load(to).is_ok();
            let wrong =
                || (format!("no policy is called {to:?}"), "name one of `hearth list policies`".into());
            return if is_there { Ok(()) } else { Err(wrong()) };
        }
        let pages: Vec<&str> = hearth_policy::pages::page_presets().iter().map(|(name, _)| *name).collect();
        let (kind, names) = if is_named(Named::Pages) {
            ("page policy", &pages[..])
        } else if is_named(Named::Order) {
            ("order of tasks", &data::ORDERS[..])
        } else if is_named(Named::Machine) {
            ("machine", &machines[..])
        } else if is_named(Named::Estimator) {
            ("estimator", &isolation::ESTIMATORS[..])
        } else {
            ("setting", settings)
        };
        match [from, to].into_iter().find(|name| !names.contains(name)) {
            Some(wrong) => Err((format!("no {kind} is called {wrong:?}"), located::one_of(wrong, names))),
            None => Ok(()),
        }
    }
}
