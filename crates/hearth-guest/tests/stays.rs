//! A task that waits is left to the caches where its data is until it has waited for its stay, and no longer.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Shared, assert_untroubled, numbers, records};
use hearth_guest::{Kernel, Output};

const MS: f64 = 1e6;

/// Four tasks that come to the first of eight CPUs, two of which share its last-level cache and two more its
/// node, and then may run anywhere, for 400 ms.
const SCRIPT: &str = "
gathered() {
	section $1
	start --planner none --policy $2
	tasks spin 400 0,0,0,0 all 0
	hearth stop >/dev/null
	await disabled
}
gathered none fair:stay.llc=0ms:stay.node=0ms
gathered cache fair:stay.llc=900ms
gathered node fair:stay.llc=0ms:stay.node=900ms
gathered over fair:stay.llc=40ms
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// For how many CPUs' time the tasks ran.
fn cpus_used(output: &Output, section: &str) -> f64 {
    numbers(&records(output, section, "nice"), "cpu_ns").iter().sum::<f64>() / (400.0 * MS)
}

#[test]
fn without_stays_tasks_take_idle_cpus_at_once() {
    let Some(output) = output() else { return };
    let used = cpus_used(output, "none");
    assert!(used > 3.8, "{used} CPUs");
}

#[test]
fn a_task_waits_for_its_stay_in_the_cache_or_node_where_it_came_from() {
    let Some(output) = output() else { return };
    let (cache, node) = (cpus_used(output, "cache"), cpus_used(output, "node"));
    assert!((1.9..2.1).contains(&cache), "{cache} CPUs of a cache of two");
    assert!(node > 3.8, "{node} CPUs of a node of four");
}

#[test]
fn short_waits_add_up_to_a_stay() {
    let Some(output) = output() else { return };
    let used = cpus_used(output, "over");
    // Two CPUs idle while four tasks have waited for 40 ms each, two at a time, and at most two ticks more.
    assert!(used > 3.5 && used < 3.95, "{used} CPUs");
}

#[test]
fn nothing_was_troubled() {
    let Some(output) = output() else { return };
    assert_untroubled(output);
}
