use super::*;
use crate::units::HUGE_BYTES;
use proptest::prelude::*;

fn page() -> Box<[u8; 8192]> {
    Box::new([1; 8192])
}

fn address(page: &[u8; 8192]) -> u64 {
    page.as_ptr() as u64 & !(PAGE_BYTES - 1)
}

#[test]
fn a_page_of_this_process_is_on_a_node_and_may_go_there() {
    let pid = std::process::id() as i32;
    let page = page();
    let Ok(found) = query(pid, &[address(&page) + PAGE_BYTES, 4096]) else {
        eprintln!("skipped: this kernel has no move_pages");
        return;
    };
    let node = found[0].unwrap();
    assert_eq!(found[1], Err(Reason::PageGone));
    assert_eq!(shift(pid, &[address(&page) + PAGE_BYTES], node), [Ok(node)]);
    let nowhere = shift(pid, &[address(&page) + PAGE_BYTES], NodeId(900));
    assert!(nowhere[0].is_err(), "{nowhere:?}");
}

#[test]
fn a_process_that_is_gone_is_told_for_each_page() {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    if query(std::process::id() as i32, &[4096]).is_err() {
        eprintln!("skipped: this kernel has no move_pages");
        return;
    }
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    let gone = vec![Err(Reason::ProcessGone); 2];
    // It has ended, and its parent has not asked for its status.
    waitid(WaitId::Pid(Pid::from_raw(pid).unwrap()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    assert_eq!(shift(pid, &[4096, 8192], NodeId(0)), gone);
    child.wait().unwrap();
    assert_eq!(shift(pid, &[4096, 8192], NodeId(0)), gone);
}

#[test]
fn what_the_kernel_says_of_a_page_is_understood() {
    assert_eq!(told(3), Ok(NodeId(3)));
    assert_eq!(told(-16), Err(Reason::Busy));
    assert_eq!(told(-12), Err(Reason::NoMemory));
    assert_eq!(told(-13), Err(Reason::NotAllowed));
    assert_eq!(told(-1), Err(Reason::NotPermitted));
    assert_eq!(told(-19), Err(Reason::NoNode));
    assert_eq!(told(-2), Err(Reason::PageGone));
    assert_eq!(told(UNTOLD), Err(Reason::Busy));
    assert_eq!(told(UNTOLD + 1), Err(Reason::Other));
}

#[test]
fn a_quota_of_zero_moves_nothing() {
    for limits in [Limits { time: Duration::ZERO, bytes: None }, Limits { time: SECOND, bytes: Some(0) }] {
        let mut mover = Mover::new(limits);
        let unit = Unit { address: 4096, bytes: PAGE_BYTES };
        mover.add(Task { pid: std::process::id() as i32, unit, to: NodeId(0) });
        assert_eq!(mover.step(), []);
        assert!(!mover.is_idle());
        assert_eq!(mover.forget(0), []);
        assert_eq!(mover.forget(std::process::id() as i32).len(), 1);
        assert!(mover.is_idle());
    }
}

#[test]
fn a_huge_page_moves_alone() {
    let mut mover = Mover::new(Limits { time: SECOND, bytes: Some(64 << 20) });
    let task = |address, bytes, to| Task { pid: 1, unit: Unit { address, bytes }, to: NodeId(to) };
    mover.add(task(HUGE_BYTES, HUGE_BYTES, 0));
    mover.add(task(0, PAGE_BYTES, 0));
    mover.add(task(PAGE_BYTES, PAGE_BYTES, 0));
    mover.add(task(2 * PAGE_BYTES, PAGE_BYTES, 1));
    assert_eq!(mover.next_batch().len(), 1);
    assert_eq!(mover.next_batch().len(), 2);
    assert_eq!(mover.next_batch().len(), 1);
}

proptest! {
    #[test]
    fn no_second_has_more_than_the_quota(
        limit_pages in 0_u64..200,
        batches in prop::collection::vec((0_u64..300, 1_u64..2000), 1..60),
    ) {
        let limits = Limits { time: Duration::from_millis(50), bytes: Some(limit_pages * PAGE_BYTES) };
        let mut window = Window::new(limits);
        let mut now = Instant::now();
        let mut spent: Vec<(Instant, Duration, u64)> = Vec::new();
        for (pause_ms, took_us) in batches {
            now += Duration::from_millis(pause_ms);
            let pages = window.room(now).min(BATCH_PAGES);
            if pages == 0 {
                continue;
            }
            let took = Duration::from_micros(took_us);
            now += took;
            window.spend(now, took, pages);
            spent.push((now, took, pages));
        }
        for &(begin, ..) in &spent {
            let within = |(at, ..): &&(Instant, Duration, u64)| (begin..=begin + SECOND).contains(at);
            prop_assert!(spent.iter().filter(within).map(|(_, _, pages)| pages).sum::<u64>() <= limit_pages);
            let time: Duration = spent.iter().filter(within).map(|(_, took, _)| *took).sum();
            // What one batch takes is known only when it is done.
            prop_assert!(time <= limits.time + Duration::from_millis(2));
        }
    }
}
