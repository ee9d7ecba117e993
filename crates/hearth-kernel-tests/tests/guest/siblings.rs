//! A machine whose cores have hardware threads, where the kernel's search finds idle CPUs, whole cores first.

use hearth_guest::{Kernel, Output, Shape};
use hearth_kernel_tests::{Shared, assert_untroubled, first, guest, line};

/// Two caches of two cores of two threads.
const SHAPE: Shape = Shape { nodes: 1, caches_per_node: 2, cores_per_cache: 2, threads_per_core: 2 };

const SCRIPT: &str = "
section threads
cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list
section start
start
section tasks
tasks spin 500 0,0,0,0,0,0,0,0,0,0,0,0
tasks sleepers 4 500 2 2000
tasks pingpong 500
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output_of(SCRIPT, |hearth| Ok(guest(Kernel::Pinned, hearth).shape(SHAPE)))
}

#[test]
fn its_cores_have_threads_and_the_scheduler_is_kept() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "threads"), "0-1", "the guest's CPUs 0 and 1 are threads of one core");
    assert_eq!(first(output, "start", "start").text("ops_name"), Some("hearth"));
    assert!(first(output, "tasks", "sleepers").get::<u64>("fewest_wakes").unwrap() > 100);
    assert_eq!(first(output, "tasks", "pingpong").text("pingpong"), Some("500"));
    assert_untroubled(output);
}
