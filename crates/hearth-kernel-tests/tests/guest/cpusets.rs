//! Processor sets under the kernel's own scheduler: cgroups with cpusets, and what is left of them.

use hearth_guest::{Kernel, Output, Record};
use hearth_kernel_tests::{Shared, assert_untroubled, first, has_line, records, text};
use hearth_machine::list::parse_list;
use std::collections::BTreeSet;

const FUNCTIONS: &str = r#"
cd /sys/fs/cgroup
allowed() {
	sed -n 's/^Cpus_allowed_list:\t//p' /proc/$1/status
}
# Until a command prints so, at most 30 s.
prints() {
	wanted=$1
	shift
	for try in $(seq 300); do
		[ "$("$@" 2>/dev/null)" = "$wanted" ] && break
		usleep 100000
	done
	echo "prints=$("$@")"
}
# How many sets are partitions.
own() {
	cat hearth-set-*/cpuset.cpus.partition | grep -c '^root$'
}
hearths() {
	ls -d hearth-set-* 2>/dev/null | wc -l
}
sets() {
	for set in hearth-set-*; do
		echo "set=$set cpus=$(cat $set/cpuset.cpus.effective) partition=$(cat $set/cpuset.cpus.partition | tr ' ' _)"
	done
}
where() {
	echo "who=$1 cgroup=$(cut -d: -f3 /proc/$2/cgroup) cpus=$(allowed $2)"
}
sleeper() {
	sh -c "echo 0 >$1/cgroup.procs; exec sleep 10000" &
}
"#;

const SCRIPT: &str = r#"
echo +cpu >cgroup.subtree_control
mkdir home quota
echo '50000 100000' >quota/cpu.max
sleeper quota
limited=$!

section start
hearth start; echo start=$?
hearth set list; echo list=$?
hearth start --no-scheduler --only home; echo only=$?
hearth start --no-scheduler; echo start=$?
cat cgroup.subtree_control

section wrong
hearth exec --gang -- echo it runs; echo gang=$?
id=$(hearth set create); echo id=$id
# The first set has the daemon load what looks at tasks.
for try in $(seq 100); do hearth status | grep -q 'snapshot of [1-9]' && break; usleep 100000; done
hearth set bind 9 1; echo absent=$?
hearth set bind $id 2; echo kernel=$?
hearth set bind $id $limited; echo limited=$?
mkdir -p /etc
echo 'root:x:0:0::/:/bin/sh' >/etc/passwd
echo 'joe:x:1000:1000::/:/bin/sh' >>/etc/passwd
su joe -c 'hearth set exec -- echo it runs'; echo joe=$?
su joe -c 'hearth set list'; echo joe_lists=$?
hearth set destroy $id; echo destroy=$?
hearths

section two
# Another manager has a service of its own on CPUs 6 and 7.
mkdir theirs
echo +cpuset >cgroup.subtree_control
echo 6-7 >theirs/cpuset.cpus
sleeper theirs
service=$!
(echo 0 >home/cgroup.procs; exec hearth set exec --cpus 2 -- tasks spin 60000 0,0,0,0 >/tmp/two) &
two=$!
hearth exec --set -- tasks spin 60000 0,0,0,0 >/tmp/rest &
rest=$!
prints 2 own
sets
where two $two
where service $service
where shell $$
hearth set list
hearth cpus $two
hearth status
cat theirs/cpuset.cpus
sleep 3
killall -TERM tasks
wait $two $rest
prints 0 hearths
section two-ran
cat /tmp/two
section rest-ran
cat /tmp/rest
section ended
hearth set list
where service $service

section offline
hearth set exec --cpus 2 -- sleep 10000 &
sleeper=$!
hearth set exec --cpus 2 -- sh -c 'sleep 10000 & sleep 10000' &
family=$!
prints 2 own
sets
off=$(allowed $sleeper | tr ',-' '\n\n' | tail -n 1)
echo 0 >/sys/devices/system/cpu/cpu$off/online
moved() {
	now=$(allowed $sleeper)
	[ "$(own)" = 2 ] && echo "$now" | grep -q '[,-]' && ! echo "$now" | tr ',-' '\n\n' | grep -q "^$off$" && echo yes
}
prints yes moved
section went-offline
echo off=$off
sets
echo 1 >/sys/devices/system/cpu/cpu$off/online

section bind
sleeper home
bound=$!
id=$(hearth set create --cpus 1)
hearth set bind $id $bound; echo bind=$?
prints 3 own
where bound $bound
hearth set destroy $id; echo destroy=$?
where bound $bound
set=$(cut -d: -f3 /proc/$sleeper/cgroup | cut -d/ -f2)
hearth set bind ${set##*-} $bound; echo bind=$?
where bound $bound
# What another manager takes out of a set stays out.
taken=$(cut -d' ' -f1 /proc/$family/task/$family/children)
where taken $taken
echo $taken >home/cgroup.procs
sleep 3
where taken $taken

section contested
# Another manager names all CPUs, which this kernel takes for a claim to them.
echo 0-7 >theirs/cpuset.cpus
hearth set exec --cpus 1 -- sleep 10000 &
contested=$!
refused() {
	cat hearth-set-*/cpuset.cpus.partition | grep -c invalid
}
for try in $(seq 100); do [ "$(refused)" -gt 0 ] && break; usleep 100000; done
sleep 2
hearth set list
cat theirs/cpuset.cpus
kill $contested $service
for try in $(seq 100); do rmdir theirs 2>/dev/null && break; usleep 100000; done
prints 2 own

section switched-off
# Another manager switches cpusets off, and they come back.
echo -cpuset >cgroup.subtree_control
[ -e hearth-set-1/cpuset.cpus ] || echo off=1
prints 2 own

section killed
kill -9 $(cat /run/hearth/lock)
hearths
hearth doctor | grep journal
hearth undo; echo undo=$?
hearths
cat cgroup.subtree_control
where sleeper $sleeper
where bound $bound
where family $family
hearth undo

section stopped
hearth start --no-scheduler >/dev/null
hearth set exec -- sleep 10000 &
prints 1 own
mkdir later
echo 3 >later/cpuset.cpus
hearth stop; echo stop=$?
hearths
where last $!
# Another manager uses cpusets now.
cat cgroup.subtree_control
cat /run/hearth/log
"#;

/// A kernel that could have a scheduler of Hearth's, and the same sets without one.
const CHOSEN: &str = r#"
section before
where shell $$
section sets
hearth start --no-scheduler; echo start=$?
hearth exec --set -- sleep 10000 &
hearth set exec --cpus 1 -- sleep 10000 &
one=$!
prints 2 own
sets
where one $one
where shell $$
section crowded
for set in 3 4 5 6 7 8; do hearth set exec -- sleep 10000 & done
prints 7 own
for try in $(seq 50); do hearth set list | grep -q 'left for it alone' && break; usleep 100000; done
hearth set list
where shell $$
section restarted
kill -9 $(cat /run/hearth/lock)
hearth start --no-scheduler
hearths
cat /run/hearth/log
where one $one
where shell $$
section scheduler
hearth stop >/dev/null
hearth start --pages none; echo start=$?
hearth set exec --cpus 1 -- sleep 10000 &
hearths
hearth stop >/dev/null
"#;

/// No control groups of version 2.
const NONE: &str = r#"
cd /
umount /sys/fs/cgroup
hearth start --no-scheduler >/dev/null
section none
hearth set create; echo none=$?
mount -t tmpfs none /sys/fs/cgroup
mkdir /sys/fs/cgroup/cpuset
mount -t cgroup -o none,name=old none /sys/fs/cgroup/cpuset; echo mounted=$?
section old
hearth set create; echo old=$?
hearth set exec -- echo it runs; echo exec=$?
hearth stop
"#;

fn plain() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{FUNCTIONS}{SCRIPT}"), Kernel::Plain)
}

fn words(output: &Output, section: &str, key: &str) -> Vec<String> {
    records(output, section, key).iter().map(|record| record.text(key).unwrap().to_owned()).collect()
}

fn cpus(record: &Record) -> BTreeSet<usize> {
    parse_list(record.text("cpus").unwrap()).unwrap().into_iter().collect()
}

/// The CPUs of those sets that are partitions.
fn partitions(output: &Output, section: &str) -> Vec<BTreeSet<usize>> {
    let sets = records(output, section, "set").into_iter();
    sets.filter(|set| set.text("partition") == Some("root")).map(|set| cpus(&set)).collect()
}

/// What is said of a process, the last time.
fn process(output: &Output, section: &str, name: &str) -> Record {
    let of = |record: &Record| record.text("who") == Some(name);
    records(output, section, "who").into_iter().rfind(of).unwrap_or_else(|| panic!("no {name} in {section}"))
}

fn cgroup(output: &Output, section: &str, name: &str) -> String {
    process(output, section, name).text("cgroup").unwrap().to_owned()
}

/// The CPUs on which tasks ran in the last 3 s: their sets had been listed by then.
fn ran_on(output: &Output, section: &str) -> BTreeSet<usize> {
    let number = |record: &Record, key| record.get::<u64>(key).unwrap();
    let stretches = records(output, section, "stretch");
    let until = stretches.iter().map(|one| number(one, "end_ns")).max().unwrap();
    stretches
        .iter()
        .filter(|one| number(one, "end_ns") > until - 3_000_000_000)
        .map(|one| one.get("cpu").unwrap())
        .collect()
}

#[test]
fn what_there_is_without_a_scheduler_is_said() {
    let Some(output) = plain() else { return };
    let start = text(output, "start");
    assert_eq!(words(output, "start", "start"), ["4", "0"], "{start}");
    assert_eq!(
        (words(output, "start", "list"), words(output, "start", "only")),
        (vec!["8".into()], vec!["2".into()])
    );
    assert_eq!(start.matches("hearth start --no-scheduler").count(), 2, "{start}");
    assert!(
        start.contains("Hearth runs beside the kernel's own scheduler") && start.ends_with("\ncpu"),
        "{start}"
    );
}

#[test]
fn wrong_input_is_refused_and_nothing_is_left_of_it() {
    let Some(output) = plain() else { return };
    let wrong = text(output, "wrong");
    assert!(wrong.contains("gangs are rows of time of Hearth's own scheduler"), "{wrong}");
    for (key, code) in
        [("gang", "0"), ("absent", "1"), ("kernel", "2"), ("limited", "2"), ("joe", "0"), ("joe_lists", "5")]
    {
        assert_eq!(words(output, "wrong", key), [code], "{key}: {wrong}");
    }
    assert!(wrong.contains("process 2: the kernel keeps it in its cgroup: Invalid argument"), "{wrong}");
    assert!(wrong.contains("/quota/cpu.max limits it, and would no longer"), "{wrong}");
    assert!(wrong.contains("only root may ask for that"), "{wrong}");
    assert!(wrong.ends_with("destroy=0\n0"), "{wrong}");
}

#[test]
fn sets_have_cpus_of_their_own_and_what_others_have_stays_theirs() {
    let Some(output) = plain() else { return };
    let shown = text(output, "two");
    let sets = partitions(output, "two");
    assert_eq!(sets.iter().map(BTreeSet::len).sum::<usize>(), 5, "{shown}");
    let [two, service, shell] = ["two", "service", "shell"].map(|name| cpus(&process(output, "two", name)));
    assert!(two.len() == 2 && sets.contains(&two) && service == [6, 7].into(), "{shown}");
    assert!(sets.iter().all(|set| set.is_disjoint(&service) && set.is_disjoint(&shell)), "{shown}");
    assert!(sets[0].is_disjoint(&sets[1]), "{shown}");
    assert!(has_line(output, "two", "6-7"), "the other manager's file: {shown}");
    assert!(shown.contains("it may run on 2 CPUs"), "hearth cpus: {shown}");
    assert!(
        shown.contains("Planner sets: ") && shown.contains("the kernel's own scheduler schedules"),
        "{shown}"
    );
    let (two_ran, rest_ran) = (ran_on(output, "two-ran"), ran_on(output, "rest-ran"));
    assert_eq!(two_ran, two);
    assert!(
        rest_ran.len() == 3 && rest_ran.is_disjoint(&two) && rest_ran.is_disjoint(&service),
        "{rest_ran:?}"
    );
}

#[test]
fn sets_end_with_their_programs() {
    let Some(output) = plain() else { return };
    assert_eq!(words(output, "two", "prints"), ["2", "0"]);
    assert!(has_line(output, "ended", "No set and no gang"));
    assert_eq!(cpus(&process(output, "ended", "service")), [6, 7].into());
}

#[test]
fn a_cpu_that_goes_offline_is_no_sets_any_more() {
    let Some(output) = plain() else { return };
    assert_eq!(words(output, "offline", "prints"), ["2", "yes"]);
    let off: usize = first(output, "went-offline", "off").get("off").unwrap();
    let (before, after) = (partitions(output, "offline"), partitions(output, "went-offline"));
    assert!(before.iter().any(|set| set.contains(&off)), "{before:?} without {off}");
    assert!(after.len() == 2 && after.iter().all(|set| set.len() == 2 && !set.contains(&off)), "{after:?}");
    assert!(after[0].is_disjoint(&after[1]), "{after:?}");
}

#[test]
fn a_process_that_was_bound_goes_back_to_its_cgroup() {
    let Some(output) = plain() else { return };
    let shown = text(output, "bind");
    let bound: Vec<_> =
        records(output, "bind", "who").into_iter().filter(|who| who.text("who") == Some("bound")).collect();
    let cgroups: Vec<_> = bound.iter().map(|who| who.text("cgroup").unwrap()).collect();
    assert!(cgroups[0].starts_with("/hearth-set-") && cgroups[0].ends_with("/from-0"), "{shown}");
    assert_eq!((cpus(&bound[0]).len(), cgroups[1]), (1, "/home"), "{shown}");
    assert_eq!(cgroup(output, "bind", "taken"), "/home", "{shown}");
    assert!(cgroup(output, "bind", "bound").starts_with("/hearth-set-"), "{shown}");
}

#[test]
fn where_the_kernel_makes_no_partition_it_is_said_and_tried_again() {
    let Some(output) = plain() else { return };
    let shown = text(output, "contested");
    assert!(
        shown.contains("Others may run on the CPUs of set") && shown.contains("not exclusive"),
        "{shown}"
    );
    assert!(has_line(output, "contested", "0-7"), "the other manager's file: {shown}");
    assert_eq!(words(output, "contested", "prints"), ["2"], "{shown}");
    let shown = text(output, "switched-off");
    assert!(shown.contains("off=1") && words(output, "switched-off", "prints") == ["2"], "{shown}");
}

#[test]
fn what_a_killed_daemon_left_is_undone_once() {
    let Some(output) = plain() else { return };
    let shown = text(output, "killed");
    assert!(shown.starts_with("2\n") && shown.contains("ended badly has left changes"), "{shown}");
    assert!(shown.contains("undo=0\n0\ncpu\n") && shown.ends_with("There is nothing to undo"), "{shown}");
    for (name, home) in [("sleeper", "/"), ("bound", "/home"), ("family", "/")] {
        assert_eq!(cgroup(output, "killed", name), home, "{shown}");
        assert_eq!(cpus(&process(output, "killed", name)), (0..8).collect(), "{shown}");
    }
}

#[test]
fn a_stop_undoes_all_but_what_another_manager_has_come_to_use() {
    let Some(output) = plain() else { return };
    let shown = text(output, "stopped");
    assert!(shown.contains("prints=1\n") && shown.contains("stop=0\n0\n"), "{shown}");
    assert_eq!(cgroup(output, "stopped", "last"), "/", "{shown}");
    assert!(has_line(output, "stopped", "cpuset cpu"), "{shown}");
    assert_untroubled(output);
}

#[test]
fn a_kernel_with_sched_ext_may_have_sets_without_a_scheduler() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(&format!("{FUNCTIONS}{CHOSEN}"), Kernel::Pinned) else { return };
    let shown = text(output, "sets");
    let sets = partitions(output, "sets");
    let [one, shell] = ["one", "shell"].map(|name| cpus(&process(output, "sets", name)));
    assert!(sets.len() == 2 && one.len() == 1 && sets.contains(&one), "{shown}");
    assert_eq!(sets.iter().map(BTreeSet::len).sum::<usize>() + shell.len(), 8, "{shown}");
    let shown = text(output, "crowded");
    assert!(
        words(output, "crowded", "prints") == ["7"] && shown.contains("no CPU is left for it alone"),
        "{shown}"
    );
    assert_eq!(cpus(&process(output, "crowded", "shell")).len(), 1, "{shown}");
    let shown = text(output, "restarted");
    assert!(
        shown.contains("An earlier Hearth left changes behind") && has_line(output, "restarted", "0"),
        "{shown}"
    );
    for name in ["one", "shell"] {
        let process = process(output, "restarted", name);
        assert_eq!((process.text("cgroup"), cpus(&process)), (Some("/"), (0..8).collect()), "{shown}");
    }
    assert!(text(output, "scheduler").ends_with("start=0\n0"), "{}", text(output, "scheduler"));
    assert_untroubled(output);
}

#[test]
fn without_cpusets_of_version_2_a_set_is_refused() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(NONE, Kernel::Plain) else { return };
    let said = |section: &str, key: &str, why: &str| {
        let shown = text(output, section);
        assert!(shown.contains(why) && words(output, section, key) == ["4"], "{section}: {shown}");
    };
    said("none", "none", "none are mounted");
    said("old", "old", "version 1 only");
    let shown = text(output, "old");
    assert!(shown.contains("the program runs without a set\nit runs\nexec=0"), "{shown}");
}
