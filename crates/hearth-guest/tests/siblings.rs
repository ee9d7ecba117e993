//! A machine whose cores have hardware threads: a task that wakes up finds a whole core before a thread whose
//! sibling is busy.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Shared, assert_untroubled, first, guest, line, records};
use hearth_guest::{Kernel, Output, Shape};
use std::collections::BTreeSet;

/// Two caches of two cores of two threads.
const SHAPE: Shape = Shape { nodes: 1, caches_per_node: 2, cores_per_cache: 2, threads_per_core: 2 };

const SCRIPT: &str = "
section threads
cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
section start
start
section few
tasks spin 1000 0,0,0
section many
tasks spin 1000 0,0,0,0,0,0,0,0,0,0,0,0
tasks pingpong 500 1
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output_of(SCRIPT, |hearth| Ok(guest(Kernel::Pinned, hearth).shape(SHAPE)))
}

#[test]
fn its_cores_have_threads_and_the_scheduler_stays() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "threads"), "0-1", "the guest's CPUs 0 and 1 are threads of one core");
    assert_eq!(first(output, "start", "start").text("ops_name"), Some("hearth"));
    assert_eq!(first(output, "many", "pingpong").text("pingpong"), Some("500"));
    assert_untroubled(output);
}

#[test]
fn tasks_that_wake_up_have_whole_cores() {
    let Some(output) = output() else { return };
    let stretches = records(output, "few", "stretch");
    let last_core = |task: usize| {
        let of_task = stretches.iter().rfind(|record| record.get::<usize>("task").unwrap() == task);
        of_task.unwrap().get::<usize>("cpu").unwrap() / SHAPE.threads_per_core
    };
    // Who lets them begin has the fourth.
    let cores: BTreeSet<_> = (0..3).map(last_core).collect();
    assert_eq!(cores.len(), 3, "{cores:?}");
}
