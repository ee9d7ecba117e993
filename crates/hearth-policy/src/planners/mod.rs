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

use crate::isolation::Fit;
use crate::plan::Plan;
use crate::snapshot::Snapshot;
use cache_fair::{Rule, Spread};

/// Makes a part of the plan. Only what it was told decides: no clock, no randomness, no input or output.
pub trait Planner: Send {
    /// Its name, as on the command line.
    fn name(&self) -> &'static str;

    /// Adds to the plan what follows from the snapshot, and from those before it.
    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan);
}

/// A planner of CPUs, as commands know it.
#[derive(Debug)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// Where it plans beside the simulated machine.
    pub on_linux: OnLinux,
    /// How one is made.
    pub make: Make,
}

/// Whether a planner plans for Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLinux {
    /// It does not: the simulated machine alone has what it asks for.
    Never,
    /// If it is named.
    Named,
    /// If none is named.
    ByDefault,
}

/// How a planner is made.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// From nothing.
    Plain(fn() -> Box<dyn Planner>),
    /// A [`CacheFair`], of the machine's bus and this variant of the paper's rule.
    CacheFair(Variant),
}

/// What a cache-fair planner does otherwise than the paper's.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The rule.
    pub rule: Rule,
    /// Whether lines wait for the memory bus.
    pub has_bus: bool,
    /// Whether it acts by weights in place of shares, as on Linux without a scheduler of Hearth's.
    pub by_weights: bool,
}

const PAPER: Variant = Variant { rule: Rule::PAPER, has_bus: true, by_weights: false };

const fn variant(name: &'static str, does: &'static str, variant: Variant) -> Kind {
    Kind { name, does, on_linux: OnLinux::Never, make: Make::CacheFair(variant) }
}

const fn with_rule(rule: Rule) -> Variant {
    Variant { rule, ..PAPER }
}

/// The name of [`CacheFair`].
pub const CACHE_FAIR: &str = "cache-fair";

/// The name of [`Gangs`].
pub const GANGS: &str = "gangs";

/// The name of [`Masks`].
pub const MASKS: &str = "masks";

/// The name of [`Sets`].
pub const SETS: &str = "sets";

/// The name of [`Sets`] beside programs that are told how many CPUs they have.
pub const PROCESS_CONTROL: &str = "control";

/// All planners of CPUs. Those that plan if none is named do so in this order. [`Pages`] is not among them: it follows a
/// page policy.
pub static PLANNERS: [Kind; 11] = [
    Kind {
        name: MASKS,
        does: "parts the machine as its tasks' CPU masks do",
        on_linux: OnLinux::ByDefault,
        make: Make::Plain(|| Box::new(Masks::default())),
    },
    Kind {
        name: SETS,
        does: "gives programs that asked for it CPUs of their own",
        on_linux: OnLinux::ByDefault,
        make: Make::Plain(|| Box::new(Sets::default())),
    },
    Kind {
        name: GANGS,
        does: "runs all threads of a program that asked for it at the same time",
        on_linux: OnLinux::ByDefault,
        make: Make::Plain(|| Box::new(Gangs::default())),
    },
    Kind {
        name: CACHE_FAIR,
        does: "makes up for what neighbours take of a shared cache",
        on_linux: OnLinux::Named,
        make: Make::CacheFair(PAPER),
    },
    variant(
        "cache-fair-watching",
        "the same, but acts on nothing",
        with_rule(Rule { most_lost_permille: 0, ..Rule::PAPER }),
    ),
    variant(
        "cache-fair-robust",
        "by a line that one odd sample does not move",
        with_rule(Rule { fit: Fit::Robust, ..Rule::PAPER }),
    ),
    variant(
        "cache-fair-one-pays",
        "one best-effort task pays for all",
        with_rule(Rule { spread: Spread::One, ..Rule::PAPER }),
    ),
    variant(
        "cache-fair-phases",
        "samples anew with each phase of a task",
        with_rule(Rule { phases: true, ..Rule::PAPER }),
    ),
    variant(
        "cache-fair-no-bus",
        "takes it that no line waits for the memory bus",
        Variant { has_bus: false, ..PAPER },
    ),
    variant(
        "cache-fair-weights",
        "acts by weights in place of shares",
        Variant { by_weights: true, ..PAPER },
    ),
    Kind {
        name: PROCESS_CONTROL,
        does: "sets, and each program is told how many CPUs it has",
        on_linux: OnLinux::Never,
        make: Make::Plain(|| Box::new(Sets::default())),
    },
];

/// The planner of this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    PLANNERS.iter().find(|kind| kind.name == name)
}

/// Those that plan for Linux.
pub fn of_linux() -> impl Iterator<Item = &'static Kind> {
    PLANNERS.iter().filter(|kind| kind.on_linux != OnLinux::Never)
}

/// Those that plan for Linux if none is named.
pub fn by_default() -> impl Iterator<Item = &'static Kind> {
    PLANNERS.iter().filter(|kind| kind.on_linux == OnLinux::ByDefault)
}

/// The planner of this name, if it is made from nothing.
pub fn named(name: &str) -> Option<Box<dyn Planner>> {
    match kind(name)?.make {
        Make::Plain(make) => Some(make()),
        Make::CacheFair(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_that_of_its_planner() {
        for kind in &PLANNERS {
            // Process control is sets, and something of the programs'.
            let own = if kind.name == PROCESS_CONTROL { SETS } else { kind.name };
            let named = named(kind.name).map(|planner| planner.name());
            assert_eq!(named, matches!(kind.make, Make::Plain(_)).then_some(own), "{}", kind.name);
        }
        assert!(named("mask").is_none());
    }

    #[test]
    fn no_two_planners_have_one_name_and_those_by_default_need_nothing() {
        let names: BTreeSet<&str> = PLANNERS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), PLANNERS.len());
        assert!(by_default().all(|kind| matches!(kind.make, Make::Plain(_))));
    }

    #[test]
    fn each_variant_of_the_cache_fair_planner_differs_from_the_paper_s_in_one_thing() {
        let variant = |name: &str| match kind(name).unwrap().make {
            Make::CacheFair(variant) => variant,
            Make::Plain(_) => panic!("{name} is none"),
        };
        let paper = Rule::default();
        assert_eq!(variant(CACHE_FAIR).rule, paper);
        let variants = ["watching", "robust", "one-pays", "phases", "no-bus", "weights"];
        for (at, name) in variants.into_iter().enumerate() {
            let Variant { rule, has_bus, by_weights } = variant(&format!("{CACHE_FAIR}-{name}"));
            let Rule { fit, spread, phases, most_lost_permille, .. } = rule;
            let differences = [
                most_lost_permille != paper.most_lost_permille,
                fit != paper.fit,
                spread != paper.spread,
                phases != paper.phases,
                !has_bus,
                by_weights,
            ];
            assert_eq!(differences, [0, 1, 2, 3, 4, 5].map(|place| place == at), "{name}");
        }
    }
}
