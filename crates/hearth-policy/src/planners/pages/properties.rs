//! What holds whatever is told of memory, and however late a host answers.

use super::*;
use crate::Controller;
use crate::pages::{Defrost, Refusal, fullest_second};
use crate::snapshot::Page;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
const NODES: [usize; 3] = [0, 2, 5];
const PAGES: u64 = 8;

/// What happens until a step: the time that passes, where the two processes ran, which of their pages were
/// used how often, and what becomes of the moves under way.
type Round = (u64, [usize; 2], Vec<(i32, u64, u32)>, Fate);

#[derive(Clone, Copy, Debug)]
enum Fate {
    Done,
    Refused,
    Late,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let later = prop_oneof![0..SECOND / 8, 0..3 * SECOND];
    let ran = prop::array::uniform2(prop::sample::select(NODES.to_vec()));
    let used = prop::collection::vec((1..=2, 0..PAGES, 0_u32..40), 0..12);
    let fate = prop::sample::select(vec![Fate::Done, Fate::Refused, Fate::Late]);
    prop::collection::vec((later, ran, used, fate), 1..60)
}

fn policies() -> impl Strategy<Value = PagePolicy> {
    let names = prop::sample::select(vec!["competitive", "single-tlb", "freeze", "hybrid", "dash", "linux"]);
    (names, prop::option::of(0_u64..6)).prop_map(|(name, pages)| {
        let policy = PagePolicy::load(name).unwrap_or_else(|error| panic!("{error}"));
        PagePolicy { quota: pages.map(Quota::Pages).or(policy.quota), cost: None, ..policy }
    })
}

/// A host that carries out plans: where each page is, which are under way, and what was done when.
struct Host {
    controller: Controller,
    at_ns: u64,
    homes: BTreeMap<(i32, u64), usize>,
    under_way: Vec<(i32, u64, usize)>,
    asked: Vec<(u64, (i32, u64))>,
    moved: Vec<(u64, (i32, u64))>,
    plans: Vec<PagePlan>,
}

impl Host {
    fn run(policy: &PagePolicy, rounds: &[Round]) -> Result<Self, TestCaseError> {
        let mut host = Self {
            controller: Controller::new(vec![Box::new(Pages::new(policy))]),
            at_ns: 0,
            homes: (1..=2).flat_map(|id| (0..PAGES).map(move |page| ((id, page << 12), 0))).collect(),
            under_way: Vec::new(),
            asked: Vec::new(),
            moved: Vec::new(),
            plans: Vec::new(),
        };
        for round in rounds {
            host.round(policy, round)?;
        }
        Ok(host)
    }

    fn round(
        &mut self,
        policy: &PagePolicy,
        (later_ns, ran, used, fate): &Round,
    ) -> Result<(), TestCaseError> {
        let moves = self.end(*fate);
        self.at_ns += later_ns;
        let snapshot = self.snapshot(*ran, used, moves);
        let plan = self.controller.step(&snapshot).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for found in &plan.pages.moves {
            let page = snapshot.memory.processes[&found.process].pages[found.page];
            let key = (found.process, page.address);
            prop_assert!(page.home != found.to, "{found:?} is there already");
            prop_assert!(!self.under_way.iter().any(|one| (one.0, one.1) == key), "asked for twice");
            let last = self.moved.iter().rev().find(|(_, other)| *other == key);
            if let (Some((moved_ns, _)), true) = (last, policy.freeze.on_move) {
                let thawed = match policy.freeze.defrost {
                    Defrost::Never => false,
                    Defrost::Each(period_ns) => self.at_ns >= moved_ns + period_ns,
                    Defrost::Together(period_ns) => self.at_ns / period_ns > moved_ns / period_ns,
                };
                prop_assert!(thawed, "{found:?} is frozen");
            }
            self.under_way.push((found.process, page.address, found.to));
            self.asked.push((self.at_ns, key));
        }
        self.plans.push(plan.pages);
        Ok(())
    }

    /// Ends the moves under way.
    fn end(&mut self, fate: Fate) -> Vec<Moved> {
        if matches!(fate, Fate::Late) {
            return Vec::new();
        }
        let mut ended = Vec::new();
        for (process, address, to) in std::mem::take(&mut self.under_way) {
            let end = if matches!(fate, Fate::Done) { Ok(to) } else { Err(Refusal::Busy) };
            if end.is_ok() {
                self.homes.insert((process, address), to);
                self.moved.push((self.at_ns, (process, address)));
            }
            ended.push(Moved { process, address, at_ns: self.at_ns, end });
        }
        ended
    }

    fn snapshot(&self, ran: [usize; 2], used: &[(i32, u64, u32)], moves: Vec<Moved>) -> Snapshot {
        let used: BTreeMap<(i32, u64), u32> =
            used.iter().map(|&(id, page, accesses)| ((id, page << 12), accesses)).collect();
        let pages = |process: i32| {
            let of = used.iter().filter(|((id, _), _)| *id == process);
            of.map(|(key, &accesses)| Page { address: key.1, home: self.homes[key], accesses, order: 0 })
                .collect()
        };
        let process = |(id, ran)| {
            let is_watched = used.keys().any(|(other, _)| *other == id);
            (id, Process { began: 1, ran_permille: vec![(ran, 1000)], is_watched, pages: pages(id) })
        };
        let processes = (1..).zip(ran).map(process).collect();
        let memory = Memory { nodes: NODES.to_vec(), page_bytes: 4096, processes, moves };
        Snapshot::of_memory(self.at_ns, memory)
    }
}

proptest! {
    /// `Host::round` looks at each move.
    #[test]
    fn no_frozen_page_moves_and_none_is_asked_for_twice(policy in policies(), rounds in rounds()) {
        Host::run(&policy, &rounds)?;
    }

    #[test]
    fn no_second_has_more_moves_than_the_quota(policy in policies(), rounds in rounds()) {
        let host = Host::run(&policy, &rounds)?;
        if let Some(Quota::Pages(most)) = policy.quota {
            let asked: Vec<_> = host.asked.iter().map(|(at_ns, _)| (*at_ns, 1)).collect();
            let (count, start_ns) = fullest_second(&asked);
            prop_assert!(count <= most, "{count} of {most} from {start_ns}");
        }
    }

    #[test]
    fn the_same_snapshots_give_the_same_plans(policy in policies(), rounds in rounds()) {
        prop_assert_eq!(Host::run(&policy, &rounds)?.plans, Host::run(&policy, &rounds)?.plans);
    }
}

#[test]
fn the_rounds_of_these_properties_do_move_pages() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut moved = 0;
    for _ in 0..50 {
        let (policy, rounds) = (policies(), rounds()).new_tree(&mut runner).expect("a case").current();
        moved += Host::run(&policy, &rounds).expect("holds").moved.len();
    }
    assert!(moved > 100, "{moved}");
}
