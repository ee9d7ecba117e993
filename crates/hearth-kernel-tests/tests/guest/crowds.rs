//! CPUs with many tasks beside CPUs with few: where masks keep tasks from spreading, and where they do not.

use hearth_guest::{Kernel, Output, Shape};
use hearth_kernel_tests::{Shared, assert_untroubled, first, guest, line, numbers, records};

const MS: f64 = 1e6;
/// Ten rounds of four others that run for 8 ms each.
const LONGEST_WAIT_NS: f64 = 10.0 * 4.0 * 8.0 * MS;

/// Credits that are left out would be what moves cost, as the guest measures it, which varies with what else the host does.
const SCRIPT: &str = "
section start
start --policy fair:credit.time=1ms:credit.processor=1ms:credit.llc=1ms:credit.node=1ms; settle
section alone
tasks spin 1500 0 1
section even
tasks spin 1000 0,0,0,0,0,0,0,0,0,0,0,0 all 1
section newcomers
tasks newcomers 2000 4
section state
state
hearth stop
section again
start
section affinity
tasks affinity 24 2000
section state-again
state
";

/// Neither CPU ever idles, from before the scheduler begins: one has two tasks of unequal weight, the other, whose clock
/// is soon far ahead of theirs, one.
const BUSY: &str = "
section busy
spin() {
	taskset $1 sh -c 'while :; do :; done' &
}
spin 1; heavy=$!
spin 1; light=$!
spin 2; alone=$!
renice -n 1 $light
start; settle
for turn in 1 2; do
	for task in $heavy $light; do
		read ns rest </proc/$task/schedstat
		echo task=$task ran_ns=$ns
	done
	[ $turn = 2 ] || sleep 6
done
kill $heavy $light $alone
";
const PAIR: Shape = Shape { nodes: 1, caches_per_node: 1, cores_per_cache: 2, threads_per_core: 1 };

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn check_wait(key: &str) {
    let Some(output) = output() else { return };
    let wait: f64 = first(output, "newcomers", "newcomers").get(key).unwrap();
    assert!(wait < LONGEST_WAIT_NS, "it waited {} ms beside 4 spinners", wait / MS);
}

#[test]
fn a_new_task_of_a_crowded_cpu_does_not_pay_for_what_others_had_elsewhere() {
    check_wait("new_wait_ns");
}

#[test]
fn a_task_that_had_a_cpu_alone_soon_runs_on_a_crowded_one() {
    check_wait("busy_wait_ns");
}

#[test]
fn equal_tasks_share_alike_though_one_cpu_was_busy_for_long_before() {
    let Some(output) = output() else { return };
    assert_eq!(records(output, "alone", "nice").len(), 1);
    let used = numbers(&records(output, "even", "nice"), "cpu_ns");
    let (least, most) =
        used.iter().fold((f64::MAX, 0.0f64), |(least, most), &ns| (least.min(ns), most.max(ns)));
    assert_eq!(used.len(), 12);
    // Behind a clock by the credits, 4 ms and that of fragments, a quantum of 3 and a tick of 4; ahead by the credits, a
    // quantum and two ticks; and a slice under way on either side.
    assert!(most - least < 40.0 * MS, "{used:?}");
}

#[test]
fn weights_hold_where_cpus_were_busy_when_the_scheduler_began() {
    static GUEST: Shared = Shared::new();
    let guest = GUEST.output_of(BUSY, |hearth| Ok(guest(Kernel::Pinned, hearth).shape(PAIR)));
    let Some(output) = guest else { return };
    let ran = numbers(&records(output, "busy", "ran_ns"), "ran_ns");
    let [heavy_before, light_before, heavy, light] = ran[..] else { panic!("{ran:?}") };
    let ratio = (heavy - heavy_before) / (light - light_before);
    // Of nice 0 and 1: 1024 to 820 in the kernel, 100 to 80 for the scheduler.
    assert!((1.2..1.3).contains(&ratio), "one ran {ratio} times as long as the other: {ran:?}");
    assert_untroubled(output);
}

#[test]
fn masks_that_change_under_heavy_load_starve_no_task() {
    let Some(output) = output() else { return };
    let affinity = first(output, "affinity", "affinity");
    assert_eq!(affinity.text("outside"), Some("0"), "tasks ran outside their mask");
    assert_eq!(affinity.text("stuck"), Some("0"), "tasks did not run for a second");
}

#[test]
fn the_kernel_does_not_end_the_scheduler() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "state"), "enabled");
    assert_eq!(line(output, "state-again"), "enabled");
    assert_untroubled(output);
}
