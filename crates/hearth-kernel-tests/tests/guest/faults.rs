//! What goes wrong around Hearth: the system goes on, and Hearth says what happened.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, first, has_line, line, records};

const SCRIPT: &str = "
pid_of_hearth() {
	sed -n 's/start=\\([0-9]*\\).*/\\1/p' /tmp/started
}
start >/tmp/started
section second-start
hearth start; echo status=$?

section memory-pressure
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo 32M >/sys/fs/cgroup/small/memory.max
sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec tasks memory 128 4'
echo status=$?
tasks spin 200 0,0,0,0
state

section cgroup-removed
mkdir /sys/fs/cgroup/gone
sh -c 'echo $$ >/sys/fs/cgroup/gone/cgroup.procs; exec tasks spin 20000 0,0,0,0,0,0,0,0,0,0,0,0' &
sleep 1
echo 1 >/sys/fs/cgroup/gone/cgroup.kill
for try in $(seq 500); do rmdir /sys/fs/cgroup/gone 2>/dev/null && break; usleep 10000; done
[ -e /sys/fs/cgroup/gone ] || echo removed=1
tasks spin 200 0,0,0,0
state

section hog
tasks hog 2 3000 &
sleep 0.1
tasks spin 2000 0,0,0,0,0,0,0,0
wait
state

section hotplug
tasks spin 3000 0,0,0,0,0,0,0,0,0,0,0,0 >/tmp/spinners &
sleep 0.5
echo 0 >/sys/devices/system/cpu/cpu3/online
sleep 1
echo 1 >/sys/devices/system/cpu/cpu3/online
wait %%
grep ^task /tmp/spinners
await enabled
hearth status
cat /tmp/log

section killed
kill -9 $(cat /run/hearth/lock 2>/dev/null || pid_of_hearth)
await disabled
tasks spin 200 0,0,0,0

section again
start
state
hearth stop
await disabled
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// Spinners of a section that had CPU time.
fn spinners(output: &Output, section: &str) -> usize {
    let tasks = records(output, section, "nice");
    tasks.iter().filter(|task| task.get::<u64>("cpu_ns").unwrap() > 0).count()
}

#[test]
fn a_second_start_is_refused_and_names_the_first() {
    let Some(output) = output() else { return };
    assert_eq!(first(output, "second-start", "status").text("status"), Some("6"));
    assert!(line(output, "second-start").contains("runs already"), "{}", line(output, "second-start"));
}

#[test]
fn it_goes_on_beside_a_task_that_is_killed_for_memory() {
    let Some(output) = output() else { return };
    let killed_by_the_kernel = "137";
    assert_eq!(first(output, "memory-pressure", "status").text("status"), Some(killed_by_the_kernel));
    assert_eq!(spinners(output, "memory-pressure"), 4);
    assert!(has_line(output, "memory-pressure", "enabled"));
}

#[test]
fn a_cgroup_may_go_while_its_tasks_run() {
    let Some(output) = output() else { return };
    assert!(has_line(output, "cgroup-removed", "removed=1"));
    assert_eq!(spinners(output, "cgroup-removed"), 4);
    assert!(has_line(output, "cgroup-removed", "enabled"));
}

#[test]
fn a_real_time_hog_takes_one_cpu_and_no_more() {
    let Some(output) = output() else { return };
    let tasks = records(output, "hog", "nice");
    let used: f64 = hearth_kernel_tests::numbers(&tasks, "cpu_ns").iter().sum();
    assert!(used > 0.95 * 7.0 * 2000.0 * 1e6, "8 tasks used {} ms of 7 CPUs' 2000 ms", used / 1e6);
    assert!(has_line(output, "hog", "enabled"));
}

#[test]
fn it_is_there_again_after_a_cpu_went_and_came() {
    let Some(output) = output() else { return };
    assert_eq!(spinners(output, "hotplug"), 12);
    assert_eq!(first(output, "hotplug", "await").text("state"), Some("enabled"));
}

#[test]
fn the_kernel_takes_over_within_a_second_when_it_is_killed() {
    let Some(output) = output() else { return };
    let end = first(output, "killed", "await");
    assert_eq!(end.text("state"), Some("disabled"));
    assert!(end.get::<u32>("ms").unwrap() < 1000);
    assert_eq!(spinners(output, "killed"), 4);
}

#[test]
fn it_starts_again_after_it_was_killed() {
    let Some(output) = output() else { return };
    assert!(has_line(output, "again", "enabled"), "{:#?}", output.section("again"));
    assert_eq!(first(output, "again", "await").text("state"), Some("disabled"));
}

#[test]
fn the_guest_shuts_down() {
    let Some(output) = output() else { return };
    assert!(output.powered_off);
}
