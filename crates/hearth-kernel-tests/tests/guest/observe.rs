//! `hearth observe` in kernels with sched_ext and without, on CPUs that have no counters.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled};

const SCRIPT: &str = r#"
section text
hearth observe -- sh -c 'for turn in 1 2 3 4 5; do usleep 10000; done; exit 3'; echo status=$?
section host
hearth observe --for 200ms --tasks --verbose; echo status=$?
section gone
hearth observe --pid 99999; echo status=$?
section no-neighbours
hearth neighbours --for 100ms --metrics /tmp/metrics 2>&1; echo status=$?
hearth neighbours 99999 2>&1; echo status=$?
section waits
taskset 4 sh -c 'while :; do :; done' &
turns=$!
taskset 4 awk 'BEGIN { while (1) turn++ }' &
hearth neighbours --for 1s; echo status=$?
kill $turns $!
wait
section neighbours
tasks spin 60000 0,1,2,3,4,5,6,7 >/dev/null &
spins=$!
sh -c 'while :; do cat /proc/self/maps >/dev/null; done' &
faults=$!
hearth neighbours --software-counters --counters-percent 10 --for 2s --verbose; echo status=$?
kill $faults $spins
wait
section cgroups
mkdir -p /sys/fs/cgroup/slice/a /sys/fs/cgroup/slice/b
for group in a b; do
	sh -c "echo 0 >/sys/fs/cgroup/slice/$group/cgroup.procs; exec tasks spin 60000 0,1,2" >/dev/null &
	eval $group=$!
done
hearth neighbours --software-counters --counters-percent 10 --for 1s slice; echo status=$?
hearth neighbours --software-counters --counters-percent 10 --for 1s --by cgroup $b | grep -c /slice/
hearth neighbours nowhere.slice 2>&1; echo status=$?
hearth neighbours --by program slice 2>&1; echo status=$?
kill $a $b
wait
"#;

fn shows_what_needs_no_counters(output: &Output) {
    let lines = |section: &str| &output.section(section).unwrap().lines;
    let text = lines("text");
    let row = text.iter().find(|line| line.starts_with(" sh ")).unwrap_or_else(|| panic!("{text:#?}"));
    assert!(row.split_whitespace().nth(3).unwrap().parse::<u64>().unwrap() >= 1, "{row}");
    for words in
        ["the counter cycles is not there", "without hardware counters", "Observing took", "status=3"]
    {
        assert!(text.iter().any(|line| line.contains(words)), "{words} is missing: {text:#?}");
    }
    assert!(lines("host").iter().any(|line| line == "status=0"), "{:#?}", lines("host"));
    let refused = lines("no-neighbours");
    assert!(
        refused[0].contains("not measurable here") && refused[0].contains("instructions"),
        "{refused:#?}"
    );
    assert_eq!((refused[1].as_str(), refused[3].as_str()), ("status=4", "status=2"), "{refused:#?}");
    shows_who_waits_behind_whom(lines("waits"));
    shows_who_runs_beside_whom(lines("neighbours"));
    let groups = lines("cgroups");
    for group in [" /slice/a ", " /slice/b "] {
        assert!(groups.iter().any(|line| line.starts_with(group)), "{groups:#?}");
    }
    assert!(groups.iter().all(|line| !line.starts_with(" / ")), "{groups:#?}");
    let statuses: Vec<&String> = groups.iter().filter(|line| line.starts_with("status=")).collect();
    assert_eq!(statuses, ["status=0", "status=2", "status=2"], "{groups:#?}");
    assert!(groups.iter().any(|line| line == "1"), "of one process's group: {groups:#?}");
    assert!(lines("gone").iter().any(|line| line == "status=2"), "{:#?}", lines("gone"));
    assert_untroubled(output);
}

/// Two that take turns on a CPU wait for half of the time, behind each other.
fn shows_who_waits_behind_whom(lines: &[String]) {
    assert!(lines.iter().any(|line| line.contains("is not measurable here")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("waited for a CPU in")), "no pressure: {lines:#?}");
    for (name, other) in [("awk", "sh"), ("sh", "awk")] {
        let row = lines.iter().find(|line| line.starts_with(&format!(" {name} "))).unwrap();
        let (_, behind) = row.split_once(&format!(" {other} ")).unwrap_or_else(|| panic!("{lines:#?}"));
        let words: Vec<&str> = behind.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "%").unwrap();
        let part: f64 = words[at - 1].parse().unwrap();
        assert!(part > 90.0, "{lines:#?}");
        let waited = words.iter().rev().nth(4).unwrap().parse::<f64>().unwrap();
        assert!((45.0..55.0).contains(&waited), "{lines:#?}");
    }
    assert!(lines.iter().any(|line| line == "status=0"), "{lines:#?}");
}

/// What the kernel counts stands for what no CPU here does: time for cycles and instructions, page faults for
/// misses.
fn shows_who_runs_beside_whom(lines: &[String]) {
    let row = |name: &str| {
        let row = lines.iter().find(|line| line.starts_with(&format!(" {name} ")));
        row.unwrap_or_else(|| panic!("{name} is missing: {lines:#?}"))
    };
    let counts = |row: &str| row.split_whitespace().rev().map(str::to_owned).collect::<Vec<String>>();
    let (spins, faults) = (counts(row("tasks")), counts(row("sh")));
    // From the right: misses, instructions each cycle, samples.
    assert_eq!((spins[1].as_str(), faults[1].as_str()), ("1.00", "1.00"), "{lines:#?}");
    assert!(spins[2].parse::<u32>().unwrap() > 100, "{spins:?}");
    assert!(lines.iter().all(|line| !line.contains("are missing")), "{lines:#?}");
    assert!(lines.iter().any(|line| line == "status=0"), "{lines:#?}");
}

#[test]
fn a_kernel_with_sched_ext_is_observed() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(SCRIPT, Kernel::Pinned) else { return };
    shows_what_needs_no_counters(output);
}

#[test]
fn a_kernel_without_sched_ext_is_observed() {
    static GUEST: Shared = Shared::new();
    let Some(output) = GUEST.output(SCRIPT, Kernel::Plain) else { return };
    shows_what_needs_no_counters(output);
}
