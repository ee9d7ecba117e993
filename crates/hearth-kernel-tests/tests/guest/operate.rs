//! An administrator's commands in a real kernel: what they change, what they take back, what they say.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, first, numbers_in, records, text};

const SCRIPT: &str = r#"
policies() {
	for task in $(cat /tmp/tasks); do
		[ -e /proc/$task/stat ] && echo "task=$task policy=$(cut -d' ' -f41 /proc/$task/stat)"
	done
}
sleeper() {
	sh -c "echo $1 >/sys/fs/cgroup/$2/cgroup.procs; exec sleep 10000" &
	echo $! >>/tmp/tasks
}
ifconfig lo up
mkdir /sys/fs/cgroup/a /sys/fs/cgroup/a/b
sleeper 0 a
sleeper 0 a/b
sleep 10000 &
echo $! >>/tmp/tasks
sleep 0.2

section doctor
echo knobs=$(ls -d /sys/kernel/debug/sched/llc_balancing 2>/dev/null | wc -l)
hearth doctor; echo status=$?
hearth doctor --json >/tmp/doctor; grep verdict /tmp/doctor

section only
hearth start --only a --metrics 127.0.0.1:9669; echo status=$?
sleeper 0 a
sleep 1.5
policies
hearth undo; echo undo=$?

section metrics
wget -q -O - http://127.0.0.1:9669/metrics

section memory
resident() {
	sed -n "s/$1:[^0-9]*\([0-9]*\).*/\1/p" /proc/$(cat /run/hearth/lock)/status
}
echo own_kb=$(resident RssAnon) resident_kb=$(resident VmRSS)

section unprivileged
mkdir -p /etc
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd
echo 'joe:x:1000:1000::/:/bin/sh' >>/etc/passwd
for command in doctor stop undo 'trial -- true' 'start --foreground'; do
	su joe -c "hearth $command" >/tmp/said 2>&1
	echo "code=$?"
	tail -n 1 /tmp/said | grep -c 'run as root'
done
state

section killed
kill -9 $(cat /run/hearth/lock)
await disabled
kill $(sed -n 2p /tmp/tasks)
sleep 0.1
hearth undo; echo status=$?
policies
section undo-again
hearth undo; echo status=$?

section restart-undoes
hearth start --only a
kill -9 $(cat /run/hearth/lock)
await disabled
hearth start; echo status=$?
cat /run/hearth/log
policies

section explain-again
for watch in 1 2 3 4 5 6; do
	hearth explain 1 --for 100ms >/dev/null; echo status=$?
done
state

section stop
hearth stop; echo status=$?
await disabled
hearth stop; echo status=$?
[ -e /var/lib/hearth/journal ] || echo journal=gone

section stop-undoes
hearth start --only a/b
hearth start --only a
hearth stop; echo status=$?
policies
cat /run/hearth/log

section trial
hearth trial --rounds 6 -- sleep 0.05 2>/dev/null; echo status=$?
state

section trial-fails
hearth trial -- false; echo status=$?
state

section trial-keeps
better='[ $(cat /sys/kernel/sched_ext/state) = enabled ] && echo 2 || echo 1'
hearth trial --keep --rounds 6 --metric "$better" --higher-is-better --window 20ms --settle 0s; echo status=$?
state

section top
hearth top --once --interval 300ms; echo status=$?
hearth stop >/dev/null

section sysrq
bench start /tmp/log hearth start --foreground
echo S >/proc/sysrq-trigger
await disabled
sleep 0.5
hearth status
cat /tmp/log

section hostile
hearth start >/dev/null
su joe -c "tasks callers /run/hearth/socket 300 6000" >/tmp/callers &
sleep 0.5
for try in 1 2 3; do
	before=$(hundredths); hearth status >/tmp/said; echo said=$? took=$(($(hundredths) - before))
done
echo 0 >/sys/devices/system/cpu/cpu5/online
await enabled
echo 1 >/sys/devices/system/cpu/cpu5/online
await enabled
before=$(hundredths); hearth stop >/dev/null; echo stopped=$? took=$(($(hundredths) - before))
wait $!
cat /tmp/callers
await disabled

section stall
hearth start --watchdog 2s
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
for cpu in 0 1 2 3 4 5 6 7; do
	for server in ext fair; do echo 0 >/sys/kernel/debug/sched/${server}_server/cpu$cpu/runtime; done
done
taskset 8 sh -c 'while :; do :; done' &
spinner=$!
sleep 0.2
tasks hog 3 5000 >/dev/null &
# The kernel looks each second for tasks that have waited for two.
sleep 4
kill -9 $! $spinner
hearth status
cat /run/hearth/log
for dump in /var/lib/hearth/dumps/*; do echo dump=$(grep -c 'CPU states' $dump); done
"#;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn status(output: &Output, section: &str) -> String {
    first(output, section, "status").text("status").unwrap().to_owned()
}

/// The scheduling classes of the tasks that are there, in the order in which they were started.
fn policies(output: &Output, section: &str) -> Vec<u64> {
    numbers_in(output, section, "policy")
}

const OTHER: u64 = 0;
const EXT: u64 = 7;

#[test]
fn doctor_finds_a_kernel_that_is_ready_and_what_goes_off() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "doctor"), "0");
    let text = text(output, "doctor");
    for part in ["8 CPUs, 4 cache domains, 2 memory nodes", "NUMA balancing", "\"ready\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // As newer kernels have it.
    let is_cache_aware = numbers_in(output, "doctor", "knobs") == [1];
    assert_eq!(text.contains("cache-aware"), is_cache_aware, "{text}");
}

#[test]
fn only_the_tasks_of_the_cgroup_and_those_that_join_it_are_moved() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "only"), "0");
    assert_eq!(policies(output, "only"), [EXT, EXT, OTHER, EXT]);
    assert_eq!(first(output, "only", "undo").text("undo"), Some("6"), "its daemon runs");
}

#[test]
fn metrics_are_served() {
    let Some(output) = output() else { return };
    let text = text(output, "metrics");
    assert!(text.contains("hearth_cpus 8") && text.trim_end().ends_with("# EOF"), "{text}");
}

#[test]
fn the_daemon_is_small() {
    let Some(output) = output() else { return };
    let own: u64 = first(output, "memory", "own_kb").get("own_kb").unwrap();
    assert!(own < 2 * 1024, "{own} kB");
}

/// Of the program that `make static` builds: the tests' own is larger.
#[test]
fn the_shipped_daemon_is_small_with_its_file() {
    let Some(output) = output() else { return };
    let resident: u64 = first(output, "memory", "own_kb").get("resident_kb").unwrap();
    // The rest is the program's file, which the kernel maps around what is used and takes back if it must.
    assert!(resident < 6 * 1024, "{resident} kB");
}

#[test]
fn without_privilege_each_command_says_so_and_changes_nothing() {
    let Some(output) = output() else { return };
    let lines = &output.section("unprivileged").unwrap().lines;
    let refused = ["code=5", "1"].repeat(5);
    assert_eq!(*lines, [refused, vec!["enabled"]].concat());
}

#[test]
fn undo_takes_back_what_a_killed_daemon_left_once() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "killed"), "0");
    assert_eq!(policies(output, "killed"), [OTHER, OTHER, OTHER]);
    let text = text(output, "killed");
    assert!(text.contains("2 undone, 1 gone"), "{text}");
    assert!(text.contains("(sleep): back to SCHED_OTHER: undone"), "{text}");
    assert_eq!(output.section("undo-again").unwrap().lines, ["There is nothing to undo", "status=0"]);
}

#[test]
fn the_next_start_undoes_what_a_killed_daemon_left() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "restart-undoes"), "0");
    assert!(policies(output, "restart-undoes").iter().all(|&policy| policy == OTHER));
    assert!(text(output, "restart-undoes").contains("An earlier Hearth left changes behind"));
}

/// What the daemon gives back of its memory comes back.
#[test]
fn one_watch_after_another_is_answered_by_the_same_daemon() {
    let Some(output) = output() else { return };
    let lines = &output.section("explain-again").unwrap().lines;
    assert_eq!(*lines, [vec!["status=0"; 6], vec!["enabled"]].concat());
}

#[test]
fn stop_ends_it_undoes_and_may_be_said_twice() {
    let Some(output) = output() else { return };
    let codes: Vec<_> = records(output, "stop", "status");
    assert!(codes.iter().all(|code| code.text("status") == Some("0")));
    assert_eq!(first(output, "stop", "journal").text("journal"), Some("gone"));
    assert!(policies(output, "stop-undoes").iter().all(|&policy| policy == OTHER));
    assert!(text(output, "stop-undoes").contains("Changes of tasks:"), "{}", text(output, "stop-undoes"));
}

#[test]
fn a_trial_gives_the_machine_back_unless_it_is_to_keep_what_is_better() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "trial"), "0");
    let shown = text(output, "trial");
    assert!(shown.contains("6 rounds") && shown.contains("p = ") && shown.ends_with("disabled"), "{shown}");
    assert_eq!(status(output, "trial-fails"), "1");
    assert!(text(output, "trial-fails").ends_with("disabled"));
    assert_eq!(status(output, "trial-keeps"), "0");
    let kept = text(output, "trial-keeps");
    assert!(kept.contains("Hearth is better") && kept.ends_with("enabled"), "{kept}");
}

#[test]
fn top_shows_every_cpu() {
    let Some(output) = output() else { return };
    assert_eq!(status(output, "top"), "0");
    let lines = &output.section("top").unwrap().lines;
    assert!(lines[0].starts_with("Hearth: policy fair"), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.trim_end().ends_with("/s")).count(), 8, "{lines:#?}");
    let tasks = lines.iter().skip_while(|line| !line.trim_start().starts_with("task name"));
    assert!(tasks.filter(|line| line.matches('/').count() == 3).count() > 0, "counted moves: {lines:#?}");
}

#[test]
fn an_end_from_the_console_is_told_and_remembered() {
    let Some(output) = output() else { return };
    let text = text(output, "sysrq");
    assert_eq!(text.matches("sysrq-S").count(), 2, "{text}");
}

/// Three hundred that say nothing, come again when they are let go, and one that says a byte now and then.
#[test]
fn clients_without_privilege_make_nobody_wait() {
    let Some(output) = output() else { return };
    assert_eq!(numbers_in(output, "hostile", "said"), [0, 0, 0], "{}", text(output, "hostile"));
    assert_eq!(numbers_in(output, "hostile", "stopped"), [0]);
    // Hundredths of a second, of a guest that is as fast as one CPU of 125 MHz and busy.
    let took = numbers_in(output, "hostile", "took");
    assert!(took.iter().all(|took| *took < 200), "{took:?}");
    assert!(numbers_in(output, "hostile", "came").iter().all(|came| *came > 100));
}

#[test]
fn a_stall_names_the_task_the_cpu_and_the_real_time_hog() {
    let Some(output) = output() else { return };
    let text = text(output, "stall");
    assert!(text.contains("waited at CPU 3 for 2"), "{text}");
    assert!(text.contains("SCHED_FIFO priority 10) on CPU 3, 100 % of the time"), "{text}");
    assert!(records(output, "stall", "dump").iter().any(|dump| dump.text("dump") == Some("1")), "{text}");
}

#[test]
fn the_guest_shuts_down() {
    let Some(output) = output() else { return };
    assert!(output.powered_off);
}
