//! Pages that follow their process in real kernels of two memory nodes.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, number, numbers_in, text};
use std::path::Path;

const FUNCTIONS: &str = include_str!("pages.sh");

const SCRIPT: &str = r#"
ifconfig lo up
hearth start --metrics 127.0.0.1:9669
threads >/tmp/threads
mkdir /sys/fs/cgroup/bound
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
echo 1 >/sys/fs/cgroup/bound/cpuset.mems
remote follow 4 0
remote huge 4 1 huge
remote mbind 4 2 mbind
remote policy 4 3 policy
(
	echo 0 >/sys/fs/cgroup/bound/cgroup.procs
	remote cpuset 4 2
)
await_local follow 100 40
await_local huge 100 10
section follow
last follow
hearth pages $(cat /tmp/follow.pid)
hearth status
section huge
last huge
sleep 3
section stayed
last follow
for name in mbind policy cpuset; do
	section $name
	last $name
	hearth pages $(cat /tmp/$name.pid)
done
section metrics
wget -q -O - http://127.0.0.1:9669/metrics
for name in follow huge mbind policy cpuset; do end $name; done

section shared
remote shared 4 0 shared
for try in $(seq 40); do
	hearth pages $(cat /tmp/shared.pid) --json | grep -q 'frozen_pages": [1-9]' && break
	sleep 1
done
sleep 3
last shared
hearth pages $(cat /tmp/shared.pid) --json
end shared

section exit
remote exit 16 0
await_local exit 1 60
last exit
end exit
for try in $(seq 20); do
	hearth pages --json | grep -q '"processes": 0' && break
	sleep 0.5
done
damon
threads
hearth pages --json
hearth pages $(cat /tmp/exit.pid); echo code=$?
section before-exit
cat /tmp/threads
hearth stop >/dev/null
section stopped
damon

# Between two Hearths the kernel would move pages.
echo 0 >/proc/sys/kernel/numa_balancing
section zero
policy zero "0 B/s"
remote slow 4 0
hearth start --pages /tmp/zero.toml
sleep 5
last slow
hearth stop >/dev/null
damon

section slow
policy slow "1 MB/s"
hearth start --pages /tmp/slow.toml
await_local slow 90 60
cat /tmp/slow
hearth stop >/dev/null
end slow

section no-damon
mount -t tmpfs none /sys/kernel/mm/damon
remote coarse 4 0
hearth doctor | grep 'page migration'
hearth start; echo status=$?
await_local coarse 90 40
last coarse
hearth pages
hearth stop >/dev/null
section alone
hearth pages $(cat /tmp/coarse.pid)
"#;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{FUNCTIONS}{SCRIPT}"), Kernel::Pinned)
}

/// A kernel without sched_ext, and a daemon that is killed.
const PLAIN: &str = r#"
balancing() {
	echo balancing=$(cat /proc/sys/kernel/numa_balancing)
}
section start
hearth start; echo status=$?
hearth start --pages-only --pages none; echo status=$?
hearth start --pages-only; echo status=$?
balancing
section follow
remote follow 4 0
await_local follow 90 40
last follow
hearth status
hearth explain 1; echo explain=$?
section stopped
hearth stop
balancing
damon
end follow

section idle
# It runs on the node of its memory: there is nothing to move.
remote idle 200 4 idle
hearth start --pages-only >/dev/null
sleep 15
ticks() {
	pid=$(cat /run/hearth/lock)
	echo ticks=$(($(cut -d' ' -f14 /proc/$pid/stat) + $(cut -d' ' -f15 /proc/$pid/stat)))
}
ticks
sleep 40
section idle-end
ticks
hearth pages --json
end idle

section killed
remote killed 16 0
await_local killed 1 60
kill -9 $(cat /run/hearth/lock)
balancing
damon
section undone
hearth undo
balancing
damon
section foreign
# Somebody else has set up a monitor: it is left to them.
echo 1 >/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds
hearth start --pages-only
hearth pages
hearth stop >/dev/null
damon
"#;

fn plain() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{FUNCTIONS}{PLAIN}"), Kernel::Plain)
}

/// Node 1 has CPUs only, so that one node has memory.
const ONE_NODE: &str = r#"
section only
hearth start --pages-only; echo status=$?
hearth trial --pages-only -- true; echo status=$?
section trial
hearth trial --pages linux --rounds 1 --json -- true; echo status=$?
section with
hearth start; echo status=$?
hearth status --json
hearth doctor | grep 'page migration'
hearth stop >/dev/null
"#;

/// A number of the JSON in a section.
fn told(output: &Output, section: &str, key: &str) -> u64 {
    let text = text(output, section);
    let value = text.split_once(&format!("\"{key}\": ")).unwrap_or_else(|| panic!("no {key} in {text}")).1;
    value.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Pages of 4 MiB.
const PAGES: u64 = 1024;

#[test]
fn pages_of_another_node_follow_their_process_and_stay() {
    let Some(output) = output() else { return };
    let text = text(output, "follow");
    assert!(number(output, "follow", "local") >= 90, "{text}");
    assert!(text.contains("ran on node 0 100 %"), "{text}");
    assert!(text.contains("Pages follow their processes (page policy linux, sampled by DAMON)"), "{text}");
    let changes = number(output, "follow", "changes");
    assert!((PAGES * 9 / 10..=PAGES).contains(&changes), "{text}");
    assert!(number(output, "stayed", "local") >= 90);
    assert!(number(output, "stayed", "changes") <= PAGES, "moved once each");
}

#[test]
fn huge_pages_move_whole() {
    let Some(output) = output() else { return };
    let text = text(output, "huge");
    assert_eq!((number(output, "huge", "local"), number(output, "huge", "huge")), (100, 4), "{text}");
}

#[test]
fn a_program_that_asked_for_a_place_is_left_alone() {
    let Some(output) = output() else { return };
    for (section, why) in [
        ("mbind", "the program asked for a place (mbind, set_mempolicy)"),
        ("policy", "left alone: a thread asked for a place"),
        ("cpuset", "allows memory on node 1 only (cpuset.mems)"),
    ] {
        let text = text(output, section);
        assert_eq!((number(output, section, "local"), number(output, section, "changes")), (0, 0), "{text}");
        assert!(text.contains(why), "{why} in {text}");
    }
}

#[test]
fn metrics_tell_what_was_moved() {
    let Some(output) = output() else { return };
    let text = text(output, "metrics");
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name} in {text}")).rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("hearth_pages_moved_total") >= 2.0 * 0.9 * PAGES as f64);
    assert_eq!(value("hearth_pages_moved_bytes_total"), 4096.0 * value("hearth_pages_moved_total"));
    assert!(value("hearth_pages_moving_seconds_total") > 0.0);
    assert!(value("hearth_pages_cpu_seconds_total") > value("hearth_pages_moving_seconds_total"));
    assert!(value("hearth_pages_frozen") > 0.0, "what has moved is frozen");
    assert!((0.0..=1.0).contains(&value("hearth_pages_local_ratios")));
    for planner in ["masks,sets,gangs", "pages"] {
        let of = |name: &str| value(&format!("{name}{{planner=\"{planner}\"}}"));
        let plans = |outcome| {
            value(&format!("hearth_planner_plans_total{{planner=\"{planner}\",outcome=\"{outcome}\"}}"))
        };
        assert!(of("hearth_planner_steps_total") >= plans("published") && plans("published") >= 1.0);
        assert_eq!(plans("refused"), 0.0);
        assert!(of("hearth_planner_cpu_seconds_total") > 0.0);
        assert!((0.0..60.0).contains(&of("hearth_planner_age_seconds")));
    }
}

#[test]
fn pages_that_two_nodes_use_at_once_freeze_where_they_are() {
    let Some(output) = output() else { return };
    let text = text(output, "shared");
    assert!(told(output, "shared", "frozen_pages") >= PAGES * 9 / 10, "{text}");
    let changes = number(output, "shared", "changes");
    assert!(changes <= PAGES / 10, "{changes} moves of {PAGES} pages: {text}");
    assert!(text.contains("\"0\": 0.") && text.contains("\"1\": 0."), "it ran on both nodes: {text}");
}

#[test]
fn a_process_that_ends_in_the_middle_of_a_move_leaves_nothing_behind() {
    let Some(output) = output() else { return };
    let text = text(output, "exit");
    let local = number(output, "exit", "local");
    assert!((1..90).contains(&local), "the move was under way: {text}");
    assert!(numbers_in(output, "exit", "targets").iter().all(|targets| *targets == 0), "{text}");
    assert_eq!(number(output, "exit", "threads"), number(output, "before-exit", "threads"));
    assert_eq!((told(output, "exit", "processes"), told(output, "exit", "frozen_pages")), (0, 0), "{text}");
    assert!(!text.contains("\"other\""), "that it has ended is not an error unheard of: {text}");
    assert_eq!(number(output, "exit", "code"), 2);
    assert!(text.contains("there is no process"), "{text}");
    assert_eq!(number(output, "stopped", "kdamonds"), 0);
}

#[test]
fn with_a_quota_of_zero_nothing_moves_and_that_is_said() {
    let Some(output) = output() else { return };
    let text = text(output, "zero");
    assert!(text.contains("the page policy zero moves nothing: its quota is 0"), "{text}");
    assert_eq!((number(output, "zero", "local"), number(output, "zero", "kdamonds")), (0, 0), "{text}");
}

#[test]
fn no_second_has_more_moves_than_the_quota() {
    let Some(output) = output() else { return };
    let moved: Vec<(u64, u64)> =
        numbers_in(output, "slow", "at_ms").into_iter().zip(numbers_in(output, "slow", "changes")).collect();
    assert!(moved.last().unwrap().1 >= PAGES * 9 / 10, "{moved:?}");
    let quota = 1_000_000 / 4096;
    for (index, (from, before)) in moved.iter().enumerate() {
        let within = moved[index..].iter().take_while(|(at, _)| at - from <= 1000);
        let most = within.last().map_or(0, |(_, changes)| changes - before);
        assert!(most <= quota, "{most} pages in the second from {from}: {moved:?}");
    }
}

#[test]
fn a_kernel_without_damon_is_told_and_pages_follow_all_the_same() {
    let Some(output) = output() else { return };
    let text = text(output, "no-damon");
    assert_eq!(number(output, "no-damon", "status"), 0, "{text}");
    assert!(text.contains("warning  page migration"), "{text}");
    assert!(text.contains("sampled by clear_refs") && text.contains("this kernel has no DAMON"), "{text}");
    assert!(number(output, "no-damon", "local") >= 90, "{text}");
}

#[test]
fn without_a_daemon_the_kernels_word_is_shown() {
    let Some(output) = output() else { return };
    let text = text(output, "alone");
    assert!(text.contains("Hearth does not run, so no page follows"), "{text}");
    assert!(text.contains("node 0") && text.contains("may be moved"), "{text}");
}

#[test]
fn without_sched_ext_pages_follow_beside_the_kernels_own_scheduler() {
    let Some(output) = plain() else { return };
    assert_eq!(numbers_in(output, "start", "status"), [4, 2, 0], "{}", text(output, "start"));
    assert_eq!(number(output, "start", "balancing"), 0);
    let followed = text(output, "follow");
    assert!(number(output, "follow", "local") >= 90, "{followed}");
    assert!(followed.contains("the kernel's own scheduler schedules"), "{followed}");
    assert_eq!(number(output, "follow", "explain"), 1);
    assert_eq!((number(output, "stopped", "balancing"), number(output, "stopped", "kdamonds")), (1, 0));
}

#[test]
fn with_nothing_to_move_it_takes_less_than_a_thousandth_of_a_cpu() {
    let Some(output) = plain() else { return };
    let ticks = number(output, "idle-end", "ticks") - number(output, "idle", "ticks");
    println!("{ticks} ticks of 10 ms in 40 s");
    // A CPU of the guest does 125 million instructions a second, less than a twentieth of a real one.
    assert!(ticks <= 80, "{ticks} ticks in 40 s: {}", text(output, "idle-end"));
    assert_eq!(told(output, "idle-end", "sampled"), 0, "{}", text(output, "idle-end"));
    assert!(told(output, "idle-end", "processes") >= 1, "it was looked at: {}", text(output, "idle-end"));
}

#[test]
fn what_a_killed_daemon_left_is_undone_once_and_what_is_others_is_left_alone() {
    let Some(output) = plain() else { return };
    assert_eq!((number(output, "killed", "balancing"), number(output, "killed", "kdamonds")), (0, 4));
    let text_of = text(output, "undone");
    assert!(text_of.contains("NUMA balancing: back to mode 1: undone"), "{text_of}");
    assert!(text_of.contains("DAMON's threads: none again: undone"), "{text_of}");
    assert_eq!((number(output, "undone", "balancing"), number(output, "undone", "kdamonds")), (1, 0));
    let foreign = text(output, "foreign");
    assert!(foreign.contains("somebody else has DAMON") && foreign.contains("clear_refs"), "{foreign}");
    assert_eq!(number(output, "foreign", "kdamonds"), 1);
}

#[test]
fn where_one_node_has_all_memory_there_is_nothing_to_follow() {
    static GUEST: Shared = Shared::new();
    let make =
        |hearth: &Path| Ok(hearth_kernel_tests::guest(Kernel::Pinned, hearth).node_memory_mib(&[1024, 0]));
    let Some(output) = GUEST.output_of(ONE_NODE, make) else { return };
    let only = text(output, "only");
    assert_eq!(numbers_in(output, "only", "status"), [4, 4], "{only}");
    assert!(only.contains("only one memory node has memory"), "{only}");
    let trial = text(output, "trial");
    assert_eq!(number(output, "trial", "status"), 0, "{trial}");
    assert!(trial.contains("note: only one memory node") && trial.contains("\"pages\": null"), "{trial}");
    let with = text(output, "with");
    assert_eq!(number(output, "with", "status"), 0, "{with}");
    assert!(!with.contains("\"pages\":") && with.contains("only one node has memory"), "{with}");
}

#[test]
fn the_guests_shut_down_without_trouble() {
    for output in [output(), plain()].into_iter().flatten() {
        assert_untroubled(output);
    }
}
