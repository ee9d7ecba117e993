//! Queues, idle CPUs and errors, as a scheduler sees them.

use hearth_abi::native::{DSQ_BUILTIN, DSQ_LOCAL, Kernel as _, WAKE_SYNC};
use hearth_machine::CpuSet;
use hearth_scx::{Host, Scx, Shape};

/// Four CPUs that look alike, and no time.
struct Four;

impl Host for Four {
    fn now_ps(&self, _cpu: usize) -> u64 {
        0
    }

    fn choose(&self, cpus: CpuSet) -> usize {
        cpus.lowest().unwrap_or_default()
    }
}

fn scx() -> Scx<Four> {
    let near = vec![[CpuSet::first(2), CpuSet::first(4)]; 4];
    Scx::new(Four, Shape { near, tick_ps: 1, is_immediate: false })
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
    let picked: Vec<i32> = (0..5).map(|_| scx.pick_idle(CpuSet::of_word(0b1111))).collect();
    assert_eq!(picked[..4], [0, 1, 2, 3]);
    assert!(picked[4] < 0);
    assert!(!scx.test_and_clear_idle(2));
}

#[test]
fn the_nearest_idle_cpu_is_the_own_then_one_of_its_domain_then_any() {
    let scx = scx();
    let nearest = || scx.nearest_idle(CpuSet::of_word(0b1011), 1, 0);
    assert_eq!([nearest(), nearest(), nearest(), nearest()], [Some(1), Some(0), Some(3), None]);
}

#[test]
fn who_is_woken_by_one_about_to_sleep_stays_near_or_takes_its_cpu() {
    // The caller is CPU 0, in one domain with CPU 1.
    let scx = Scx::new(Four, Shape { near: two_domains(), tick_ps: 1, is_immediate: false });
    assert!(scx.test_and_clear_idle(0), "the waker's is not idle");
    assert_eq!(
        scx.nearest_idle(CpuSet::of_word(0b1111), 1, WAKE_SYNC),
        Some(1),
        "the last one, which is idle and near"
    );
    assert_eq!(scx.nearest_idle(CpuSet::of_word(0b1111), 2, WAKE_SYNC), Some(0), "the last one is far");
    assert_eq!(
        scx.nearest_idle(CpuSet::of_word(0b1110), 2, WAKE_SYNC),
        Some(2),
        "the waker's is not allowed"
    );
    assert_eq!(scx.nearest_idle(CpuSet::of_word(0b1111), 3, 0), Some(3), "not about to sleep");
    assert_eq!(scx.nearest_idle(CpuSet::of_word(0b1111), 3, WAKE_SYNC), None, "nobody is idle");
}

fn two_domains() -> Vec<[CpuSet; 2]> {
    [[0, 1], [0, 1], [2, 3], [2, 3]].map(|domain| [domain.into(), CpuSet::first(4)]).into()
}

#[test]
fn a_cpu_that_does_not_exist_is_not_idle_and_not_kicked() {
    let scx = scx();
    assert!(!scx.test_and_clear_idle(-1) && !scx.test_and_clear_idle(4));
    assert_eq!(scx.nearest_idle(CpuSet::of_word(0b1111), 4, 0), None);
    scx.kick(4, 0);
    assert_eq!(scx.failure().as_deref(), Some("invalid CPU 4 from ops.kick_cpu"));
}
