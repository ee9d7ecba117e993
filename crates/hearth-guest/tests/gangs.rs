//! Gangs and processor sets in a real kernel.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Shared, has_line, records};
use hearth_guest::{Kernel, Output, Record};

const SCRIPT: &str = "
# Until so many are listed, with CPUs, at most 10 s.
lists() {
	for try in $(seq 100); do
		[ \"$(hearth set list | grep -c -E '^ *(set|gang).* [0-9]+-[0-9]+ ')\" = \"$1\" ] && break
		usleep 100000
	done
	hearth set list
}
alone() {
	for try in $(seq 100); do
		hearth set list | grep -q 'No set and no gang' && break
		usleep 100000
	done
	hearth set list
}
section absent
hearth set list; echo list=$?
hearth set exec -- echo it runs; echo exec=$?
hearth exec --gang -- echo it runs; echo gang=$?

section wrong
hearth start --pages none; echo start=$?
settle
hearth set destroy 7; echo destroy=$?
hearth set bind 1 999999; echo bind=$?
hearth set exec -- /bin/absent; echo exec=$?

section gangs
hearth exec --gang -- tasks spin 6000 0,0,0,0,0,0,0,0 >/tmp/a &
hearth exec --gang -- tasks spin 6000 0,0,0,0,0,0,0,0 >/tmp/b &
lists 2
wait
section a
cat /tmp/a
section b
cat /tmp/b
section after
alone
state

section sets
hearth set exec --cpus 2 -- tasks spin 4000 0,0,0,0 >/tmp/two &
hearth exec --set -- tasks spin 4000 0,0,0,0,0,0,0,0 >/tmp/rest &
lists 2
hearth set list --json
wait
section two
cat /tmp/two
section rest
cat /tmp/rest

section wide
hearth exec --gang -- tasks spin 60000 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 >/dev/null &
lists 1
section killed
killall -9 tasks
alone
state
hearth stop
";

/// Of tasks that spin for six seconds: by then plans have settled, and all still run.
const FROM_NS: u64 = 1_500_000_000;
const UNTIL_NS: u64 = 5_500_000_000;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

fn text(output: &Output, section: &str) -> String {
    output.section(section).unwrap().lines.join("\n")
}

/// Stretches in which a task ran without a pause, and where.
fn stretches(output: &Output, section: &str) -> Vec<(u64, u64, usize)> {
    let number = |record: &Record, key| record.get::<u64>(key).unwrap();
    let all = records(output, section, "stretch");
    all.iter()
        .map(|record| (number(record, "start_ns"), number(record, "end_ns"), number(record, "cpu") as usize))
        .collect()
}

/// For how long exactly so many tasks of a section ran at once, by how many.
fn at_once_ns(output: &Output, section: &str) -> Vec<u64> {
    let mut changes: Vec<(u64, i32)> = stretches(output, section)
        .iter()
        .map(|&(start, end, _)| (start.clamp(FROM_NS, UNTIL_NS), end.clamp(FROM_NS, UNTIL_NS)))
        .flat_map(|(start, end)| [(start, 1), (end, -1)])
        .collect();
    changes.sort_by_key(|(at, change)| (*at, -change));
    let mut ns = vec![0; 64];
    let mut running = 0;
    for pair in changes.windows(2) {
        running += pair[0].1;
        ns[running as usize] += pair[1].0 - pair[0].0;
    }
    ns
}

#[test]
fn members_of_a_gang_run_at_the_same_time() {
    let Some(output) = output() else { return };
    assert!(text(output, "gangs").contains("gang, row 0") && text(output, "gangs").contains("gang, row 1"));
    for gang in ["a", "b"] {
        assert_eq!(records(output, gang, "nice").len(), 8);
        let ns = at_once_ns(output, gang);
        // Two gangs take turns; the rest of the row is what a change of rows takes, and who else runs.
        let together = ns[8] as f64 / ((UNTIL_NS - FROM_NS) as f64 / 2.0);
        let of_its_time = ns[8] as f64 / ns[1..].iter().sum::<u64>() as f64;
        eprintln!("{gang}: {together:.3} of its rows, {of_its_time:.3} of its time: {:?}", &ns[..9]);
        assert!(together > 0.95 && of_its_time > 0.95);
    }
}

#[test]
fn sets_have_cpus_of_their_own() {
    let Some(output) = output() else { return };
    assert_eq!((records(output, "two", "nice").len(), records(output, "rest", "nice").len()), (4, 8));
    let cpus = |section| {
        let late = stretches(output, section).into_iter().filter(|(start, ..)| *start > FROM_NS);
        let mut cpus: Vec<usize> =
            late.filter(|(_, end, _)| *end < 3_900_000_000).map(|(.., cpu)| cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    let (two, rest) = (cpus("two"), cpus("rest"));
    assert_eq!(two.len(), 2, "{two:?} {rest:?}");
    assert!(rest.len() >= 4 && rest.iter().all(|cpu| !two.contains(cpu)), "{two:?} {rest:?}");
    assert!(text(output, "sets").contains("\"most_cpus\": 2"));
}

#[test]
fn a_gang_wider_than_the_machine_has_as_few_rows_as_it_takes() {
    let Some(output) = output() else { return };
    assert!(text(output, "wide").contains("gang, row 0-2"), "{}", text(output, "wide"));
}

#[test]
fn they_end_with_their_programs_and_hearth_goes_on() {
    let Some(output) = output() else { return };
    for section in ["after", "killed"] {
        assert!(has_line(output, section, "No set and no gang"), "{}", text(output, section));
        assert!(has_line(output, section, "enabled"));
    }
    common::assert_untroubled(output);
}

#[test]
fn programs_run_where_there_is_no_hearth() {
    let Some(output) = output() else { return };
    let absent = text(output, "absent");
    assert!(absent.contains("list=4") && absent.contains("exec=0") && absent.contains("gang=0"), "{absent}");
    assert_eq!(absent.matches("it runs").count(), 2 + absent.matches("it runs as it is").count(), "{absent}");
}

#[test]
fn wrong_input_is_refused() {
    let Some(output) = output() else { return };
    let wrong = text(output, "wrong");
    assert!(wrong.contains("there is no set or gang 7") && wrong.contains("destroy=1"), "{wrong}");
    assert!(wrong.contains("there is no process 999999") && wrong.contains("bind=2"), "{wrong}");
    assert!(wrong.contains("cannot run /bin/absent") && wrong.contains("exec=127"), "{wrong}");
}
