//! A scheduling policy with what works beside it, as it is written and named: `both+dash`, `fair+masks`.

use hearth_machine::Machine;
use hearth_policy::isolation::{Bus, Estimate};
use hearth_policy::pages::PagePolicy;
use hearth_policy::planners::cache_fair::{CacheFair, Rule};
use hearth_policy::planners::{Make, Variant};
use hearth_policy::{Controller, Policy, PolicyError, planners};
use hearth_workloads::cool::Sharing;
use std::collections::BTreeMap;

/// What schedules, what moves pages, and what plans, if anything does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The scheduling policy.
    pub policy: Policy,
    /// When pages move; nothing if they stay where they were touched first.
    pub pages: Option<PagePolicy>,
    /// The planner's name, of [`planners::PLANNERS`]; nothing if tasks are scheduled without a plan.
    pub planner: Option<&'static str>,
}

/// The names in that of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Names<'a> {
    /// The scheduling policy's.
    pub policy: &'a str,
    /// The page policy's.
    pub pages: Option<&'a str>,
    /// The planner's.
    pub planner: Option<&'static str>,
}

impl<'a> From<&'a str> for Names<'a> {
    fn from(name: &'a str) -> Self {
        let planner = name.rsplit_once('+').and_then(|(_, last)| planners::kind(last)).map(|kind| kind.name);
        let rest = planner.map_or(name, |planner| &name[..name.len() - planner.len() - 1]);
        match rest.split_once('+') {
            Some((policy, pages)) => Self { policy, pages: Some(pages), planner },
            None => Self { policy: rest, pages: None, planner },
        }
    }
}

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        Self { policy, pages: None, planner: None }
    }
}

impl Policies {
    /// Loads them by preset or file.
    ///
    /// # Errors
    /// As [`Policy::load`] and [`PagePolicy::load`].
    pub fn load(name: &str) -> Result<Self, PolicyError> {
        let Names { policy, pages, planner } = Names::from(name);
        Ok(Self { policy: Policy::load(policy)?, pages: pages.map(PagePolicy::load).transpose()?, planner })
    }

    /// Who plans for a machine; nothing if nobody does. A cache-fair planner begins with what is known of
    /// groups.
    pub fn controller(&self, machine: &Machine, known: BTreeMap<u64, Estimate>) -> Option<Controller> {
        let planner = self.planner?;
        if let Some((bus, rule)) = self.cache_fair(machine) {
            let planner = CacheFair::new(bus, rule).with_estimates(known);
            return Some(Controller::new(vec![Box::new(planner)]));
        }
        Controller::named(planner)
    }

    /// What a cache-fair planner takes for the machine's bus, and what it does; nothing if the planner is another.
    pub(crate) fn cache_fair(&self, machine: &Machine) -> Option<(Bus, Rule)> {
        let Variant { rule, has_bus, .. } = self.variant()?;
        let bus = Bus::of(machine);
        Some((if has_bus { bus } else { Bus { transfer_cycles: 0.0, ..bus } }, rule))
    }

    fn variant(&self) -> Option<Variant> {
        match planners::kind(self.planner?)?.make {
            Make::CacheFair(variant) => Some(variant),
            Make::Plain(_) => None,
        }
    }

    /// Whether what the planner says of shares acts by weights.
    pub(crate) fn act_by_weights(&self) -> bool {
        self.variant().is_some_and(|variant| variant.by_weights)
    }

    /// What parallel programs ask for under them.
    pub fn sharing(&self) -> Sharing {
        match self.planner {
            Some(planners::GANGS) => Sharing::Gangs,
            Some(planners::SETS) => Sharing::Sets,
            Some(planners::PROCESS_CONTROL) => Sharing::ProcessControl,
            _ => Sharing::OneByOne,
        }
    }

    /// Their names, joined.
    pub fn name(&self) -> String {
        let pages = self.pages.as_ref().map(|pages| pages.name.as_str());
        let names: Vec<&str> =
            [Some(self.policy.name.as_str()), pages, self.planner].into_iter().flatten().collect();
        names.join("+")
    }

    /// Their descriptions, joined.
    pub fn description(&self) -> String {
        let pages = self.pages.as_ref().map(|pages| format!(". Pages: {}", pages.description));
        let planner = self.planner.map(|planner| format!(". Planner: {planner}"));
        let rest = [pages, planner].into_iter().flatten();
        rest.fold(self.policy.description.clone(), |all, one| all + &one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planner(policies: &str) -> Option<&'static str> {
        let machine = Machine::load("t1-dual").unwrap();
        let controller = Policies::load(policies).unwrap().controller(&machine, BTreeMap::new())?;
        controller.names().next()
    }

    #[test]
    fn a_bus_for_which_no_line_waits_is_left_out() {
        let machine = Machine::load("t1-dual").unwrap();
        let of = |name: &str| Policies::load(&format!("fixed+{name}")).unwrap().cache_fair(&machine);
        let (bus, paper) = of(planners::CACHE_FAIR).unwrap();
        let (no_bus, same) = of("cache-fair-no-bus").unwrap();
        assert_eq!((paper, paper), (Rule::default(), same));
        assert!(bus.transfer_cycles > 0.0 && no_bus.transfer_cycles == 0.0);
        assert_eq!(of("masks"), None);
    }

    #[test]
    fn a_name_of_several_parts_comes_back_as_it_was_written() {
        for (name, moves, plans) in [
            ("both", false, false),
            ("both+dash", true, false),
            ("fair+masks", false, true),
            ("both+dash+masks", true, true),
            ("fair+control", false, true),
        ] {
            let policies = Policies::load(name).unwrap();
            assert_eq!(policies.name(), name);
            assert_eq!((policies.pages.is_some(), policies.planner.is_some()), (moves, plans));
            let description = policies.description();
            assert_eq!(
                (description.contains(" Pages: "), description.contains(" Planner: ")),
                (moves, plans)
            );
        }
        assert_eq!(planner("fair+control"), Some("sets"));
        let all = planners::PLANNERS.iter().map(|kind| kind.name);
        assert!(all.into_iter().all(|name| planner(&format!("fair+{name}")).is_some()));
        assert!(Policies::load("both+no-such").is_err() && Policies::load("no-such+dash").is_err());
    }
}
