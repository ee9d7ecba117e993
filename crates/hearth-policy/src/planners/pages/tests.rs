//! What the planner makes of memory, from snapshot to snapshot.

use super::*;
use crate::Controller;
use crate::pages::Refusal;
use crate::snapshot::Page;

const SECOND: u64 = 1_000_000_000;
const PAGE: u64 = 4096;
const NODES: [usize; 3] = [0, 2, 5];

fn policy(text: &str) -> PagePolicy {
    let text = format!("name = \"test\"\ndescription = \"a test\"\n{text}");
    PagePolicy::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"))
}

/// Ten uses from elsewhere move a page, which then is frozen for ten seconds.
fn ten_uses() -> PagePolicy {
    policy(
        "rule = \"consecutive\"\nmisses = \"tlb\"\nthreshold = 10\n\
         [freeze]\non_move = true\non_local = true\ndefrost = \"10 s\"\n\
         [quota]\npages = 600",
    )
}

fn controller(policy: &PagePolicy) -> Controller {
    Controller::new(vec![Box::new(Pages::new(policy))])
}

fn page(address: u64, home: usize, accesses: u32) -> Page {
    Page { address, home, accesses, order: 0 }
}

/// One process, 7, that ran on a node.
fn snapshot(at_s: u64, ran_on: usize, pages: &[Page]) -> Snapshot {
    let process =
        Process { began: 1, ran_permille: vec![(ran_on, 1000)], is_watched: true, pages: pages.to_vec() };
    let memory = Memory {
        nodes: NODES.to_vec(),
        page_bytes: PAGE,
        processes: [(7, process)].into(),
        moves: Vec::new(),
    };
    Snapshot::of_memory(at_s * SECOND, memory)
}

fn with_end(mut snapshot: Snapshot, address: u64, end: Result<usize, Refusal>) -> Snapshot {
    let moved = Moved { process: 7, address, at_ns: snapshot.at_ns, end };
    snapshot.memory.moves.push(moved);
    snapshot
}

fn step(controller: &mut Controller, snapshot: &Snapshot) -> PagePlan {
    controller.step(snapshot).unwrap_or_else(|error| panic!("{error}")).pages
}

const fn to(page: usize, to: usize) -> PageMove {
    PageMove { process: 7, page, to }
}

#[test]
fn pages_follow_their_process_the_most_used_first_and_are_frozen_there() {
    let mut controller = controller(&ten_uses());
    let used = [page(0, 0, 20), page(PAGE, 5, 99), page(2 * PAGE, 0, 30), page(3 * PAGE, 0, 9)];
    let plan = step(&mut controller, &snapshot(0, 5, &used));
    assert_eq!(plan.moves, [to(2, 5), to(0, 5)]);
    assert_eq!((plan.bytes_per_second, plan.look_after_ns), (Some(600 * PAGE), Some(SECOND)));
    assert_eq!(plan.frozen, [(7, 1)].into(), "the page that was used from its own node");
    let next = with_end(snapshot(1, 0, &[page(0, 5, 90)]), 0, Ok(5));
    let plan = step(&mut controller, &next);
    assert_eq!((plan.moves.as_slice(), plan.frozen), ([].as_slice(), [(7, 2)].into()));
    assert_eq!(plan.stayed, Stayed { freezes: 1, frozen: 1, ..Stayed::default() });
    assert_eq!(step(&mut controller, &snapshot(11, 0, &[page(0, 5, 90)])).moves, [to(0, 0)]);
}

#[test]
fn a_process_that_ran_on_both_nodes_keeps_its_pages_where_they_are() {
    let mut controller = controller(&ten_uses());
    let mut both = snapshot(0, 0, &[page(0, 0, 100), page(PAGE, 2, 100)]);
    both.memory.processes.get_mut(&7).expect("there").ran_permille = vec![(0, 500), (2, 500)];
    let plan = step(&mut controller, &both);
    assert_eq!((plan.moves.len(), plan.frozen), (0, [(7, 2)].into()));
}

#[test]
fn a_page_on_its_way_is_not_asked_for_again_until_it_is_told_what_came_of_it() {
    let mut controller = controller(&ten_uses());
    let used = [page(0, 0, 20)];
    assert_eq!(step(&mut controller, &snapshot(0, 5, &used)).moves, [to(0, 5)]);
    assert_eq!(step(&mut controller, &snapshot(1, 5, &used)).moves, []);
    let refused = with_end(snapshot(2, 5, &used), 0, Err(Refusal::Busy));
    assert_eq!(step(&mut controller, &refused).moves, []);
    assert_eq!(step(&mut controller, &snapshot(11, 5, &used)).moves, []);
    assert_eq!(step(&mut controller, &snapshot(12, 5, &used)).moves, [to(0, 5)]);
}

#[test]
fn another_process_of_the_same_id_has_nothing_frozen() {
    let mut controller = controller(&ten_uses());
    let used = [page(0, 0, 20)];
    step(&mut controller, &snapshot(0, 0, &used));
    let mut other = snapshot(1, 5, &used);
    assert_eq!(step(&mut controller, &other).moves, []);
    other.memory.processes.get_mut(&7).expect("there").began = 2;
    assert_eq!(step(&mut controller, &other).moves, [to(0, 5)]);
}

#[test]
fn what_is_counted_of_a_process_is_kept_while_it_is_watched() {
    for is_watched in [true, false] {
        let mut controller = controller(&ten_uses());
        step(&mut controller, &snapshot(0, 5, &[page(0, 0, 6)]));
        let mut pause = snapshot(1, 5, &[]);
        pause.memory.processes.get_mut(&7).expect("there").is_watched = is_watched;
        step(&mut controller, &pause);
        let moves = step(&mut controller, &snapshot(2, 5, &[page(0, 0, 6)])).moves;
        assert_eq!(moves.len(), usize::from(is_watched));
    }
}

#[test]
fn a_huge_page_counts_as_the_pages_that_it_stands_for() {
    let mut controller = controller(&ten_uses());
    let huge = Page { order: 9, ..page(0, 0, 50) };
    let small: Vec<Page> = (1000..1200).map(|number| page(number * PAGE, 0, 20)).collect();
    let used: Vec<Page> = [huge].into_iter().chain(small).collect();
    let plan = step(&mut controller, &snapshot(0, 2, &used));
    assert_eq!((plan.moves.len(), plan.moves[0]), (1 + 600 - 512, to(0, 2)));
    assert_eq!(plan.stayed.quota, 200 - 88);
    let moved = step(&mut controller, &with_end(snapshot(1, 2, &[]), 0, Ok(2)));
    assert_eq!(moved.frozen, [(7, 512)].into());
    // The kernel has split it: its first part is another page.
    let split = step(&mut controller, &snapshot(2, 2, &[page(0, 2, 1)]));
    assert_eq!(split.frozen, [(7, 1)].into());
}

#[test]
fn all_begins_anew_when_nodes_come_or_go() {
    let mut controller = controller(&ten_uses());
    let used = [page(0, 0, 20)];
    step(&mut controller, &snapshot(0, 0, &used));
    let mut fewer = snapshot(1, 5, &used);
    fewer.memory.nodes = vec![0, 5];
    assert_eq!(step(&mut controller, &fewer).moves, [to(0, 5)]);
    fewer.memory.nodes = vec![0];
    assert_eq!(step(&mut controller, &fewer), PagePlan::default(), "there is nowhere to go");
}

#[test]
fn a_policy_that_moves_nothing_asks_for_no_look_at_memory() {
    for name in ["none", "post-facto"] {
        let policy = PagePolicy::load(name).unwrap_or_else(|error| panic!("{error}"));
        let plan = step(&mut controller(&policy), &snapshot(0, 5, &[page(0, 0, 1000)]));
        assert_eq!(plan, PagePlan::default());
    }
}

#[test]
fn what_makes_no_sense_moves_nothing() {
    let mut controller = controller(&ten_uses());
    let lost = with_end(snapshot(0, 9, &[page(0, 0, 20), page(PAGE, 4, 20)]), 0, Ok(9));
    let plan = step(&mut controller, &lost);
    assert_eq!((plan.moves.len(), plan.frozen.len()), (0, 0));
    assert_eq!(step(&mut controller, &Snapshot::default()), PagePlan::default());
}
