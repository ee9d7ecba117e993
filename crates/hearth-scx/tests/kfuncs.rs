//! Queues, idle CPUs and errors, as a scheduler sees them.

use hearth_abi::native::{DSQ_BUILTIN, DSQ_LOCAL, Kernel as _};
use hearth_scx::{Host, Scx, Shape};

/// Four CPUs that look alike, and no time.
struct Four;

impl Host for Four {
    fn now_ps(&self, _cpu: usize) -> u64 {
        0
    }

    fn choose(&self, cpus: u64) -> usize {
        cpus.trailing_zeros() as usize
    }
}

fn scx() -> Scx<Four> {
    Scx::new(Four, Shape { near: vec![[0b0011, 0b1111]; 4], tick_ps: 1, is_immediate: false })
}

#[test]
fn a_queue_is_made_once_and_not_among_the_kernels_own() {
    let scx = scx();
    assert_eq!(scx.create_dsq(7), 0);
    assert!(scx.create_dsq(7) < 0);
    assert!(scx.create_dsq(DSQ_LOCAL) < 0 && scx.create_dsq(DSQ_BUILTIN | 7) < 0);
    assert_eq!((scx.queued(7), scx.queued(8) < 0), (0, true));
}

#[test]
fn taking_from_a_queue_that_does_not_exist_ends_the_run() {
    let scx = scx();
    assert!(!scx.move_first_to_local(9));
    assert_eq!(scx.failure().as_deref(), Some("invalid DSQ ID 0x0000000000000009"));
}

#[test]
fn an_idle_cpu_is_found_only_once() {
    let scx = scx();
    let picked: Vec<i32> = (0..5).map(|_| scx.pick_idle(0b1111)).collect();
    assert_eq!(picked[..4], [0, 1, 2, 3]);
    assert!(picked[4] < 0);
    assert!(!scx.test_and_clear_idle(2));
}

#[test]
fn the_nearest_idle_cpu_is_the_own_then_one_of_its_domain_then_any() {
    let scx = scx();
    let nearest = || scx.nearest_idle(0b1011, 1);
    assert_eq!([nearest(), nearest(), nearest(), nearest()], [Some(1), Some(0), Some(3), None]);
}

#[test]
fn a_cpu_that_does_not_exist_is_not_idle_and_not_kicked() {
    let scx = scx();
    assert!(!scx.test_and_clear_idle(-1) && !scx.test_and_clear_idle(4));
    assert_eq!(scx.nearest_idle(0b1111, 4), None);
    scx.kick(4, 0);
    assert_eq!(scx.failure().as_deref(), Some("invalid CPU 4 from ops.kick_cpu"));
}
