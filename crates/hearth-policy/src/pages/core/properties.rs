//! What holds whatever happens, in whatever order.

use super::*;
use crate::pages::fullest_second;
use proptest::prelude::*;

const NODES: u8 = 4;
const PAGES: u32 = 6;
const SECOND: u64 = 1_000_000_000;

/// What may happen.
#[derive(Clone, Debug)]
enum Event {
    Miss { page: u32, node: u8, cache: bool },
    Step(Vec<(u32, u8, u32)>),
    SetHome { page: u32, node: u8 },
    Forget(u32),
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    // One page and node more than there are.
    let (page, node) = (0..=PAGES, 0..=NODES);
    let event = prop_oneof![
        40 => (page.clone(), node.clone(), any::<bool>())
            .prop_map(|(page, node, cache)| Event::Miss { page, node, cache }),
        10 => prop::collection::vec((page.clone(), node.clone(), 0_u32..9), 0..9).prop_map(Event::Step),
        1 => (0..PAGES, 0..NODES).prop_map(|(page, node)| Event::SetHome { page, node }),
        1 => (0..PAGES).prop_map(Event::Forget),
    ];
    prop::collection::vec((prop_oneof![0_u64..10, 0..SECOND / 4], event), 1..400)
}

fn policies() -> impl Strategy<Value = PagePolicy> {
    const NAMES: &[&str] = &[
        "none",
        "post-facto",
        "competitive",
        "single-cache",
        "single-tlb",
        "freeze",
        "hybrid",
        "dash",
        "linux",
    ];
    let quota = prop::option::of(0_u64..5);
    (prop::sample::select(NAMES), quota, 1_u32..4).prop_map(|(name, quota, threshold)| {
        let policy = PagePolicy::load(name).unwrap_or_else(|error| panic!("{error}"));
        // Thresholds that a few hundred events reach.
        let rule = match policy.rule {
            Rule::Consecutive { misses, select, .. } => {
                Rule::Consecutive { misses, threshold, select: select.min(2) }
            }
            Rule::Competitive { misses, .. } => Rule::Competitive { misses, threshold },
            idle => idle,
        };
        PagePolicy { rule, quota: quota.map(Quota::Pages).or(policy.quota), cost: None, ..policy }
    })
}

/// Asks as a host would and notes what it asked for.
struct Host {
    core: Core,
    now_ns: u64,
    asked: Vec<(u64, Move)>,
    /// Each move that was done, with its time.
    done: Vec<(u64, Move)>,
    /// Every third move fails, and every other is answered only when the next thing has happened.
    requests: usize,
    pending: Vec<Move>,
}

impl Host {
    fn new(policy: &PagePolicy) -> Self {
        let mut core = Core::new(policy, NODES.into(), 4096).expect("nodes");
        for page in 0..PAGES {
            core.set_home(page, (page % u32::from(NODES)) as u8).expect("a node");
        }
        Self { core, now_ns: 0, asked: Vec::new(), done: Vec::new(), requests: 0, pending: Vec::new() }
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let frozen: Vec<bool> = (0..PAGES).map(|page| self.core.is_frozen(self.now_ns, page)).collect();
        let mut moves = Vec::new();
        match event {
            &Event::Miss { page, node, cache } => {
                let kind = if cache { Misses::Cache } else { Misses::Tlb };
                moves.extend(self.core.miss(self.now_ns, page, node, kind));
            }
            Event::Step(samples) => {
                let samples: Vec<Sample> =
                    samples.iter().map(|&(page, node, accesses)| Sample { page, node, accesses }).collect();
                self.core.step(self.now_ns, &samples, &mut moves);
            }
            &Event::SetHome { page, node } => {
                self.pending.retain(|found| found.page != page);
                self.core.set_home(page, node).expect("a node");
            }
            &Event::Forget(page) => {
                self.pending.retain(|found| found.page != page);
                self.core.forget(page);
            }
        }
        let mut new = Vec::new();
        for found in moves {
            prop_assert!(!frozen[found.page as usize], "{found:?} is frozen");
            prop_assert_eq!(self.core.home(found.page), Some(found.from));
            prop_assert!(found.from != found.to && found.to < NODES);
            prop_assert!(self.pending.iter().all(|other| other.page != found.page), "asked for twice");
            new.push(found);
        }
        std::mem::take(&mut self.pending).into_iter().for_each(|found| self.answer(found));
        for found in new {
            self.asked.push((self.now_ns, found));
            self.requests += 1;
            if self.requests.is_multiple_of(2) { self.pending.push(found) } else { self.answer(found) }
        }
        Ok(())
    }

    fn answer(&mut self, found: Move) {
        if self.requests.is_multiple_of(3) {
            self.core.refused(self.now_ns, found.page, Refusal::Busy);
        } else {
            self.core.moved(self.now_ns, found.page, found.to).expect("a node");
            self.done.push((self.now_ns, found));
        }
    }
}

fn run(policy: &PagePolicy, events: &[(u64, Event)]) -> Result<Host, TestCaseError> {
    let mut host = Host::new(policy);
    for (later_ns, event) in events {
        host.now_ns += later_ns;
        host.happen(event)?;
        let homes = (0..=PAGES).filter_map(|page| host.core.home(page));
        let mut counted = vec![0; NODES.into()];
        homes.for_each(|home| counted[usize::from(home)] += 1);
        prop_assert_eq!(host.core.resident(), counted.as_slice(), "pages are conserved");
    }
    Ok(host)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// `Host::happen` and `run` check each event: no frozen page moves, and each page has one home.
    #[test]
    fn no_frozen_page_moves_and_no_page_is_lost(policy in policies(), events in events()) {
        run(&policy, &events)?;
    }

    #[test]
    fn no_second_has_more_moves_than_the_quota(policy in policies(), events in events()) {
        let host = run(&policy, &events)?;
        if let Some(Quota::Pages(most)) = policy.quota {
            let asked: Vec<_> = host.asked.iter().map(|(at_ns, _)| (*at_ns, 1)).collect();
            let (count, start_ns) = fullest_second(&asked);
            prop_assert!(count <= most, "{count} of {most} from {start_ns}");
        }
    }

    #[test]
    fn a_page_returns_to_a_node_at_most_once_in_a_defrost_period(policy in policies(), events in events()) {
        // A page that someone else moves, or whose number is used again, is another page.
        let events: Vec<_> = events
            .into_iter()
            .filter(|(_, event)| !matches!(event, Event::SetHome { .. } | Event::Forget(_)))
            .collect();
        let host = run(&policy, &events)?;
        for (index, (at_ns, arrival)) in host.done.iter().enumerate() {
            let earlier = host.done[..index].iter().rev();
            let mut same = earlier.filter(|(_, other)| other.page == arrival.page && other.to == arrival.to);
            let Some((before_ns, _)) = same.next() else { continue };
            match policy.freeze.defrost {
                Defrost::Each(period_ns) => prop_assert!(at_ns - before_ns >= period_ns),
                Defrost::Together(period_ns) => prop_assert!(at_ns / period_ns > before_ns / period_ns),
                Defrost::Never => prop_assert!(!policy.freeze.on_move, "moved twice"),
            }
        }
    }

    #[test]
    fn a_policy_that_moves_no_pages_moves_none(policy in policies(), events in events(), idle in any::<bool>()) {
        let policy = match idle {
            true => PagePolicy::load("none").expect("preset"),
            false => PagePolicy { quota: Some(Quota::Pages(0)), ..policy },
        };
        prop_assert!(!policy.moves_pages());
        prop_assert_eq!(run(&policy, &events)?.asked, []);
    }

    #[test]
    fn the_same_events_give_the_same_moves(policy in policies(), events in events()) {
        let (one, other) = (run(&policy, &events)?, run(&policy, &events)?);
        prop_assert_eq!(one.asked, other.asked);
        prop_assert_eq!(one.core.counters(), other.core.counters());
    }
}

#[test]
fn the_events_of_these_properties_do_move_pages() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut moved = 0;
    for _ in 0..50 {
        let (policy, events) = (policies(), events()).new_tree(&mut runner).expect("a case").current();
        moved += run(&policy, &events).expect("holds").done.len();
    }
    assert!(moved > 100, "{moved}");
}
