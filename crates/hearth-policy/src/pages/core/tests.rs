//! What becomes of misses and samples, and of what the host answers.

use super::*;

const SECOND: u64 = 1_000_000_000;
const PAGE: u64 = 4096;

fn preset(name: &str) -> PagePolicy {
    PagePolicy::load(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Four nodes, one page on node 0.
fn core(policy: &PagePolicy) -> Core {
    let mut core = Core::new(policy, 4, PAGE).expect("nodes");
    core.set_home(0, 0).expect("node 0");
    core
}

/// Moves as the host would that does so at once.
fn miss(core: &mut Core, now_ns: u64, node: u8, kind: Misses) -> Option<Move> {
    let found = core.miss(now_ns, 0, node, kind)?;
    core.moved(now_ns, found.page, found.to).expect("a node");
    Some(found)
}

fn step(core: &mut Core, now_ns: u64, samples: &[(u32, u8, u32)]) -> Vec<u32> {
    let samples: Vec<Sample> =
        samples.iter().map(|&(page, node, accesses)| Sample { page, node, accesses }).collect();
    let mut moves = Vec::new();
    core.step(now_ns, &samples, &mut moves);
    for found in &moves {
        core.moved(now_ns, found.page, found.to).expect("a node");
    }
    moves.into_iter().map(|found| found.page).collect()
}

#[test]
fn the_fourth_miss_in_succession_from_elsewhere_moves_a_page_and_freezes_it_for_a_second() {
    let mut core = core(&preset("freeze"));
    for now_ns in 0..3 {
        assert_eq!(miss(&mut core, now_ns, 2, Misses::Tlb), None);
    }
    assert_eq!(miss(&mut core, 3, 1, Misses::Tlb), Some(Move { page: 0, from: 0, to: 1 }));
    assert!(core.is_frozen(SECOND + 2, 0) && !core.is_frozen(SECOND + 3, 0));
    for now_ns in [4, 5, 6, 7, SECOND + 2] {
        assert_eq!(miss(&mut core, now_ns, 2, Misses::Tlb), None);
    }
    assert_eq!(core.counters().refused_frozen, 5);
    let moved = (0..4).filter_map(|later| miss(&mut core, SECOND + 3 + later, 2, Misses::Tlb));
    assert_eq!(moved.count(), 1, "misses of the frozen time do not count");
    let counters = core.counters();
    assert_eq!((counters.asked, counters.moves, counters.freezes, counters.defrosts), (2, 2, 2, 1));
}

#[test]
fn a_local_miss_begins_the_count_anew_and_freezes_the_page() {
    let mut freeze = core(&preset("freeze"));
    let lenient =
        PagePolicy { freeze: Freeze { on_local: false, ..preset("freeze").freeze }, ..preset("freeze") };
    let mut lenient = core(&lenient);
    for core in [&mut freeze, &mut lenient] {
        for (now_ns, node) in [(0, 1), (1, 1), (2, 1), (3, 0), (4, 1), (5, 1), (6, 1)] {
            assert_eq!(miss(core, now_ns, node, Misses::Tlb), None);
        }
    }
    assert!(freeze.is_frozen(3 + SECOND - 1, 0));
    assert_eq!(miss(&mut freeze, 7, 1, Misses::Tlb), None);
    assert!(miss(&mut lenient, 7, 1, Misses::Tlb).is_some());
}

#[test]
fn a_single_move_is_the_only_one() {
    for (name, kind, other) in
        [("single-cache", Misses::Cache, Misses::Tlb), ("single-tlb", Misses::Tlb, Misses::Cache)]
    {
        let mut core = core(&preset(name));
        assert_eq!(miss(&mut core, 0, 1, other), None, "{name}");
        assert_eq!(miss(&mut core, 1, 3, kind), Some(Move { page: 0, from: 0, to: 3 }), "{name}");
        assert_eq!(miss(&mut core, 1000 * SECOND, 1, kind), None, "{name}");
    }
}

#[test]
fn a_competitor_needs_a_thousand_misses_more_than_the_home() {
    let mut core = core(&preset("competitive"));
    for now_ns in 0..300 {
        assert_eq!(miss(&mut core, now_ns, 0, Misses::Cache), None);
        assert_eq!(miss(&mut core, now_ns, 3, Misses::Cache), None);
    }
    let after = (1..).find(|_| miss(&mut core, 400, 1, Misses::Cache).is_some());
    assert_eq!(after, Some(1300));
    let after = (1..).find(|_| miss(&mut core, 500, 3, Misses::Cache).is_some());
    assert_eq!(after, Some(1000), "the count begins anew at each home");
}

#[test]
fn the_hybrid_asks_for_five_hundred_cache_misses_before_a_tlb_miss_moves_a_page() {
    let mut core = core(&preset("hybrid"));
    assert_eq!(miss(&mut core, 0, 1, Misses::Tlb), None);
    for now_ns in 0..500 {
        assert_eq!(miss(&mut core, now_ns, (now_ns % 4) as u8, Misses::Cache), None);
    }
    assert_eq!(miss(&mut core, 600, 2, Misses::Tlb), Some(Move { page: 0, from: 0, to: 2 }));
    assert_eq!(miss(&mut core, 2 * SECOND, 1, Misses::Tlb), None, "500 more");
}

#[test]
fn on_dash_all_pages_are_defrosted_at_once_each_second() {
    let mut core = core(&preset("dash"));
    let late = SECOND - 1;
    assert!(miss(&mut core, late, 1, Misses::Tlb).is_some());
    assert_eq!(miss(&mut core, late, 2, Misses::Tlb), None);
    assert!(miss(&mut core, SECOND, 2, Misses::Tlb).is_some());
    assert_eq!(miss(&mut core, 2 * SECOND - 1, 1, Misses::Tlb), None);
}

#[test]
fn a_move_must_be_worth_its_cost() {
    let cost = Cost { move_ns: 1000, saving_ns: 100, horizon_ns: SECOND };
    let policy = PagePolicy { cost: Some(cost), ..preset("dash") };
    let mut busy = core(&policy);
    let moved = (1..).find(|&nth| miss(&mut busy, nth, 1, Misses::Tlb).is_some());
    assert_eq!(moved, Some(11), "ten save as much as the move costs");
    assert_eq!(busy.counters().refused_cost, 10);
    let mut idle = core(&policy);
    let moved = (1..1000).find(|&nth| miss(&mut idle, nth * SECOND, 1, Misses::Tlb).is_some());
    assert_eq!(moved, None, "one access in each horizon never pays");
    let mut huge = core(&policy);
    huge.set_order(0, 9);
    let moved = (1..).find(|&nth| miss(&mut huge, nth, 1, Misses::Tlb).is_some());
    assert_eq!(moved, Some(5121));
}

#[test]
fn the_hottest_pages_move_first_and_the_rest_when_the_quota_allows() {
    let policy = PagePolicy { quota: Some(Quota::Bytes(2 * PAGE)), ..preset("freeze") };
    let mut core = core(&policy);
    let samples = [(0, 1, 10), (1, 1, 30), (2, 1, 20), (3, 0, 90), (4, 1, 3)];
    for page in 0..5 {
        core.set_home(page, 0).expect("node 0");
    }
    assert_eq!(step(&mut core, 0, &samples), [1, 2]);
    assert_eq!(core.counters().refused_quota, 1);
    assert_eq!(step(&mut core, SECOND, &samples), [] as [u32; 0]);
    assert_eq!(step(&mut core, 2 * SECOND, &samples), [0, 4]);
}

#[test]
fn a_huge_page_waits_for_room_and_small_ones_wait_behind_it() {
    let policy = PagePolicy { quota: Some(Quota::Pages(600)), ..preset("freeze") };
    let mut core = core(&policy);
    for page in 0..400 {
        core.set_home(page, 0).expect("node 0");
    }
    core.set_order(399, 9);
    let small: Vec<(u32, u8, u32)> = (0..200).map(|page| (page, 1, 10)).collect();
    assert_eq!(step(&mut core, 0, &small).len(), 200);
    let with_huge: Vec<(u32, u8, u32)> = (200..400).map(|page| (page, 1, page)).collect();
    assert_eq!(step(&mut core, 1, &with_huge), [] as [u32; 0]);
    assert_eq!(step(&mut core, 2 * SECOND, &with_huge).len(), 1 + 600 - 512);
    let mut never =
        Core::new(&PagePolicy { quota: Some(Quota::Pages(100)), ..policy }, 2, PAGE).expect("nodes");
    for page in 0..3 {
        never.set_home(page, 0).expect("node 0");
    }
    never.set_order(0, 9);
    assert_eq!(step(&mut never, 0, &[(0, 1, 90), (1, 1, 10), (2, 1, 20)]), [2, 1]);
}

#[test]
fn a_page_that_both_sides_use_in_one_step_stays_whatever_the_order() {
    for samples in [[(0, 0, 5), (0, 1, 500)], [(0, 1, 500), (0, 0, 5)]] {
        let mut core = core(&preset("linux"));
        assert_eq!(step(&mut core, 0, &samples), [] as [u32; 0]);
        assert!(core.is_frozen(SECOND, 0));
    }
}

#[test]
fn what_the_host_could_not_move_is_left_alone_and_counted() {
    for (index, why) in Refusal::ALL.into_iter().enumerate() {
        let mut core = core(&preset("single-tlb"));
        assert!(core.miss(5, 0, 1, Misses::Tlb).is_some());
        assert_eq!(core.miss(6, 0, 2, Misses::Tlb), None, "it is under way");
        core.refused(7, 0, why);
        assert_eq!(core.home(0), Some(0));
        assert_eq!(core.miss(SECOND, 0, 1, Misses::Tlb), None);
        assert!(core.miss(SECOND + 7, 0, 1, Misses::Tlb).is_some(), "{}", why.text());
        assert_eq!(core.counters().refused[index], 1);
        assert_eq!(core.counters().moves, 0);
    }
}

#[test]
fn a_page_that_is_gone_is_forgotten_with_its_freeze() {
    let mut core = core(&preset("freeze"));
    miss(&mut core, 0, 0, Misses::Tlb);
    assert!(core.is_frozen(1, 0));
    core.forget(0);
    assert_eq!((core.home(0), core.resident()), (None, [0, 0, 0, 0].as_slice()));
    core.refused(1, 0, Refusal::Gone);
    core.moved(1, 0, 1).expect("nothing happens");
    assert_eq!(miss(&mut core, 1, 1, Misses::Tlb), None);
    assert_eq!(core.counters().unknown, 2);
    core.set_home(0, 3).expect("node 3");
    assert!(!core.is_frozen(1, 0));
}

#[test]
fn what_is_not_there_is_refused_or_counted() {
    let policy = preset("freeze");
    assert_eq!(Core::new(&policy, 0, PAGE).err(), Some(PlannerError::Nodes(0)));
    assert_eq!(Core::new(&policy, 65, PAGE).err(), Some(PlannerError::Nodes(65)));
    let mut core = core(&policy);
    let error = core.set_home(7, 4).expect_err("no node 4");
    assert_eq!(error.to_string(), "page 7 cannot be on node 4; nodes are numbered from 0 to below 4");
    assert!(core.moved(0, 0, 9).is_err());
    assert_eq!(core.home(0), Some(0));
    assert_eq!(core.miss(0, 99, 1, Misses::Tlb), None);
    assert_eq!(core.miss(0, 0, 200, Misses::Tlb), None);
    assert_eq!(core.counters().unknown, 2);
}

#[test]
fn a_competition_freezes_too_if_it_is_told_to() {
    let rule = Rule::Competitive { misses: Misses::Tlb, threshold: 2 };
    let mut core = core(&PagePolicy { rule, ..preset("freeze") });
    assert_eq!(miss(&mut core, 0, 1, Misses::Tlb), None);
    assert!(miss(&mut core, 0, 1, Misses::Tlb).is_some());
    assert_eq!(miss(&mut core, 1, 0, Misses::Tlb), None);
    assert_eq!(miss(&mut core, 1, 0, Misses::Tlb), None);
    assert_eq!(miss(&mut core, SECOND, 0, Misses::Tlb), None);
    assert!(miss(&mut core, SECOND, 0, Misses::Tlb).is_some());
}
