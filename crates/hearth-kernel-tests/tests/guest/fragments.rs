//! Data affinity in a real kernel: tasks declare what they work on, in words of their own memory.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, numbers_in, records, text};
use std::collections::{BTreeMap, BTreeSet};

const SCRIPT: &str = "
section absent
tasks declare 100 1,1
section start
hearth start --pages none --policy plain:credit.fragment=4ms; echo start=$?
settle
section together
tasks declare 2000 1,1,1,2,2,2,3,3,3,4,4,4,5,5,5,6,6,6,7,7,7,8,8,8
section library
tasks declare 2000 1,1,1,2,2,2,3,3,3,4,4,4,5,5,5,6,6,6,7,7,7,8,8,8 library
section change
tasks declare 1500 1,1,1,3,3,3,5,5,5,7,7,7,9,9,9,11,11,11,13,13,13,15,15,15 change
section alone
tasks declare 1500 1,1,1
section null
tasks declare 500 1,2,3,4 null
section wild
tasks declare 500 1,2,3,4 wild
section late
tasks declare 100 1,1,2 late
section many
tasks fragments 1000 10 >/tmp/many &
until [ -s /tmp/many ]; do usleep 100000; done
cat /tmp/many
hearth status
hearth explain $(pidof tasks) --for 20ms
killall tasks
wait
section many-after
until_status_says 'Fragments: 0,'
hearth status
section order
mount -t tracefs tracefs /sys/kernel/tracing
echo 1 >/sys/kernel/tracing/events/sched/sched_switch/enable
taskset 2 tasks declare 800 1,2,3,4,1,2,3,4,1,2,3,4
echo 0 >/sys/kernel/tracing/events/sched/sched_switch/enable
section switches
grep 'prev_state=R .*next_comm=tasks' /sys/kernel/tracing/trace
section near
hearth stop
hearth start --pages none; echo start=$?
settle
tasks declare 2000 1,1,1,2,2,2,3,3,3,4,4,4,5,5,5,6,6,6,7,7,7,8,8,8
section killed
tasks declare 60000 1,1,1,2,2,2 >/dev/null &
usleep 300000
kill -9 $(hearth status --json | sed -n 's/^    \"pid\": \\([0-9]*\\),/\\1/p')
await disabled
killall -9 tasks
hearth start --pages none; echo start=$?
tasks declare 300 1,1
state
hearth stop; echo stop=$?
";

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// The CPUs on which tasks of each fragment were.
fn cpus_by_fragment(output: &Output, section: &str, key: &str) -> BTreeMap<u64, BTreeSet<i64>> {
    let mut cpus: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for record in records(output, section, "fragment") {
        cpus.entry(record.get("fragment").unwrap()).or_default().insert(record.get(key).unwrap());
    }
    cpus
}

#[test]
fn tasks_that_declare_one_fragment_run_on_one_cpu() {
    let Some(output) = output() else { return };
    assert_eq!(numbers_in(output, "together", "registered"), [0; 24]);
    for section in ["together", "library"] {
        // In the middle: at the end CPUs idle, and take what waits.
        let cpus = cpus_by_fragment(output, section, "first");
        // Some may be on their way to another CPU, for the sake of balance.
        let apart = cpus.values().filter(|cpus| cpus.len() > 1).count();
        assert!(apart <= 2, "{}", text(output, section));
        let used: BTreeSet<i64> = cpus.into_values().flatten().collect();
        assert!(used.len() >= 6, "on {used:?}: {}", text(output, section));
    }
}

#[test]
fn a_change_of_fragment_moves_the_task_before_it_goes_on() {
    let Some(output) = output() else { return };
    let cpus = cpus_by_fragment(output, "change", "at_once");
    let apart = cpus.values().filter(|cpus| cpus.len() > 1).count();
    assert!(apart <= 3, "of 8: {}", text(output, "change"));
}

/// Under a steady policy any CPU of the home's cache is as good.
#[test]
fn by_default_tasks_of_one_fragment_run_within_one_cache() {
    const CPUS_OF_A_CACHE: i64 = 2;
    let Some(output) = output() else { return };
    let cpus = cpus_by_fragment(output, "near", "first");
    let caches = cpus.values().map(|cpus| cpus.iter().map(|cpu| cpu / CPUS_OF_A_CACHE).collect());
    let apart = caches.filter(|caches: &BTreeSet<i64>| caches.len() > 1).count();
    assert!(cpus.len() == 8 && apart <= 2, "{apart} apart: {}", text(output, "near"));
    let used: BTreeSet<i64> = cpus.into_values().flatten().collect();
    assert!(used.len() >= 6, "on {used:?}: {}", text(output, "near"));
}

#[test]
fn a_fragment_beside_idle_cpus_is_split() {
    let Some(output) = output() else { return };
    let ran_ns: u64 = numbers_in(output, "alone", "cpu_ns").iter().sum();
    // Of 1.5 s on one CPU.
    assert!(ran_ns > 2_500_000_000, "{}", text(output, "alone"));
}

#[test]
fn a_word_that_is_nowhere_is_no_fragment() {
    let Some(output) = output() else { return };
    for section in ["null", "wild"] {
        let ran_ns = numbers_in(output, section, "cpu_ns");
        assert!(ran_ns.iter().all(|&ran_ns| ran_ns > 450_000_000), "{}", text(output, section));
    }
}

/// Who connects may wait for a CPU before it can say what it wants.
#[test]
fn a_client_may_take_its_time() {
    let Some(output) = output() else { return };
    assert_eq!(numbers_in(output, "late", "registered"), [0; 3]);
}

/// What `hearth status` says of fragments: how many there are.
fn fragments(output: &Output, section: &str) -> u64 {
    let text = text(output, section);
    let line = text.lines().find_map(|line| line.strip_prefix("Fragments: "));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn ten_thousand_fragments_of_a_thousand_threads_come_and_leave_nothing() {
    let Some(output) = output() else { return };
    assert!(text(output, "many").contains("threads=1000 fragments=10000"));
    // Of threads that declare what is new in the same moment one does, and the other when it next runs.
    assert!((900..=1000).contains(&fragments(output, "many")), "{}", text(output, "many"));
    assert!(text(output, "many").contains("which lives on CPU"), "{}", text(output, "many"));
    // The kernel tells of a thread's end a moment after its process has been waited for.
    assert_eq!(fragments(output, "many-after"), 0);
}

/// The kernel's own account of who came after whom on a CPU where tasks of four fragments take turns.
#[test]
fn tasks_of_one_fragment_run_in_succession() {
    let Some(output) = output() else { return };
    let by_pid: BTreeMap<i64, u64> = records(output, "order", "fragment")
        .iter()
        .map(|record| (record.get("pid").unwrap(), record.get("fragment").unwrap()))
        .collect();
    let pid = |line: &str, key: &str| -> Option<i64> {
        line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok())
    };
    let switches = text(output, "switches");
    let all: Vec<(u64, u64)> = switches
        .lines()
        .filter_map(|line| {
            let of = |key| pid(line, key).and_then(|pid| by_pid.get(&pid).copied());
            Some((of("prev_pid=")?, of("next_pid=")?))
        })
        .collect();
    // When all are under way, and have settled. Of three turns in succession two follow the same fragment;
    // chance would give 2 of 11.
    let later = &all[all.len() / 2..];
    let same = later.iter().filter(|(before, after)| before == after).count();
    assert!(later.len() > 50 && 2 * same > later.len(), "{same} of {}:\n{switches}", later.len());
}

#[test]
fn a_daemon_that_ends_leaves_nothing_of_it() {
    let Some(output) = output() else { return };
    assert!(text(output, "killed").contains("start=0") && text(output, "killed").contains("\nenabled"));
    assert_eq!(numbers_in(output, "killed", "registered"), [0; 2]);
    assert_untroubled(output);
}

#[test]
fn without_a_daemon_nothing_is_registered_and_tasks_run() {
    let Some(output) = output() else { return };
    assert_eq!(records(output, "absent", "fragment").len(), 2);
    assert!(text(output, "absent").contains("registered=-1"), "{}", text(output, "absent"));
}
