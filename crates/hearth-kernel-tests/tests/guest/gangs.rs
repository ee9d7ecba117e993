//! Gangs and processor sets in a real kernel.

use hearth_guest::{Kernel, Output, Record};
use hearth_kernel_tests::{Shared, has_line, records, text};

const SCRIPT: &str = "
# Until so many such lines are listed, at most 20 s.
lists() {
	for try in $(seq 200); do
		[ \"$(hearth set list | grep -c -E \"$2\")\" = \"$1\" ] && break
		usleep 100000
	done
	hearth set list
}
# What the kernel's threads that are bound to a CPU have run and waited, by number, in ns, and how often.
kernel_waits() {
	for process in /proc/[0-9]*; do
		read name <$process/comm
		case $name in kworker/[0-9]*|ksoftirqd/*)
			read ran waited times < $process/schedstat
			echo $1=${process#/proc/} waited_ns=$waited times=$times;;
		esac
	done
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

for row in 9ms 11s soon; do hearth start --gang-row $row 2>&1; echo row=$?; done

section gangs
hearth exec --gang -- tasks gaps 60000 8 >/tmp/a &
hearth exec --gang -- tasks gaps 60000 8 >/tmp/b &
lists 2 'gang, row [01] +0-7'
hearth status
kernel_waits from
sleep 5
kernel_waits until
hearth set list | grep -c 'gang, row [01]'
killall -TERM tasks
wait
section a
cat /tmp/a
section b
cat /tmp/b
section after
lists 1 'No set and no gang'
state

section sets
hearth set exec --cpus 2 -- tasks spin 60000 0,0,0,0 >/tmp/two &
hearth exec --set -- tasks spin 60000 0,0,0,0,0,0,0,0 >/tmp/rest &
lists 2 'set +[0-9]'
hearth set list --json
sleep 3
killall -TERM tasks
wait
section two
cat /tmp/two
section rest
cat /tmp/rest

section wide
hearth stop >/dev/null
hearth start --pages none --gang-row 50ms
hearth exec --gang -- tasks spin 60000 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 >/dev/null &
lists 1 'gang, row 0-2'
hearth status
section killed
killall -9 tasks
lists 1 'No set and no gang'
state
hearth stop
";

/// For as long, before they ended, the gangs had been listed as such: whole rounds of three rows.
const GANGS_NS: u64 = 16 * 3 * 100_000_000;
const SETS_NS: u64 = 3_000_000_000;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

/// From when to when tasks ran, by the records with this key.
fn times(output: &Output, section: &str, key: &str) -> Vec<(u64, u64, Record)> {
    let number = |record: &Record, key| record.get::<u64>(key).unwrap();
    let all = records(output, section, key).into_iter();
    all.map(|record| (number(&record, "start_ns"), number(&record, "end_ns"), record)).collect()
}

/// For how long exactly so many tasks of a section ran at once in the gangs' time, by how many.
fn at_once_ns(output: &Output, section: &str) -> Vec<u64> {
    let ran = times(output, section, "ran");
    let until = ran.iter().map(|&(_, end, _)| end).max().unwrap();
    let from = until.checked_sub(GANGS_NS).expect("they ran for longer");
    let mut changes: Vec<(u64, i32)> = ran
        .iter()
        .map(|&(start, end, _)| (start.max(from), end))
        .filter(|(start, end)| start < end)
        .flat_map(|(start, end)| [(start, 1), (end, -1)])
        .collect();
    changes.sort_unstable();
    let mut ns = vec![0; 64];
    let mut running = 0;
    for pair in changes.windows(2) {
        running += pair[0].1;
        ns[running as usize] += pair[1].0 - pair[0].0;
    }
    ns
}

#[test]
fn the_kernels_threads_for_a_cpu_wait_for_no_row() {
    let Some(output) = output() else { return };
    let waits = |key| {
        let all = records(output, "gangs", key);
        let number = |record: &Record, key: &str| record.get::<u64>(key).unwrap();
        all.into_iter()
            .map(|record| (number(&record, key), (number(&record, "waited_ns"), number(&record, "times"))))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let (from, until) = (waits("from"), waits("until"));
    let (mut waited_ns, mut times) = (0, 0);
    for (pid, (waited, ran)) in until {
        let before = from.get(&pid).copied().unwrap_or_default();
        waited_ns += waited - before.0;
        times += ran - before.1;
    }
    assert!(times >= 16, "they ran {times} times");
    // Two rows of 100 ms are the gangs', and there is no other.
    assert!(waited_ns / times < 5_000_000, "they waited for {} us", waited_ns / times / 1000);
    assert!(text(output, "gangs").trim_end().ends_with("\n2"), "both gangs were there");
}

#[test]
fn members_of_a_gang_run_at_the_same_time() {
    let Some(output) = output() else { return };
    assert!(text(output, "gangs").contains("gang, row 0") && text(output, "gangs").contains("gang, row 1"));
    for gang in ["a", "b"] {
        assert_eq!(records(output, gang, "nr_ran").len(), 8);
        let ns = at_once_ns(output, gang);
        // A row each, and one of others, which both fill. Of 100 ms, some go by before the emulator, which
        // does one CPU after the other, has come round to all.
        let together = 3.0 * ns[8] as f64 / GANGS_NS as f64;
        assert!(together > 0.9, "gang {gang} is together for {together:.3} of its row: {:?}", &ns[..9]);
    }
}

#[test]
fn sets_have_cpus_of_their_own() {
    let Some(output) = output() else { return };
    assert_eq!((records(output, "two", "nice").len(), records(output, "rest", "nice").len()), (4, 8));
    let cpus = |section| {
        let all = times(output, section, "stretch");
        let until = all.iter().map(|&(_, end, _)| end).max().unwrap();
        let settled = all.into_iter().filter(|(_, end, _)| *end > until - SETS_NS);
        let mut cpus: Vec<usize> = settled.map(|(.., record)| record.get("cpu").unwrap()).collect();
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
    let wide = text(output, "wide");
    assert!(wide.contains("gang, row 0-2") && wide.contains(" in row 0-2, 21 tasks"), "{wide}");
}

#[test]
fn rows_are_told_with_their_length_which_can_be_chosen() {
    let Some(output) = output() else { return };
    let (usual, chosen) = (text(output, "gangs"), text(output, "wide"));
    assert!(
        usual.contains(" rows of 100ms; ") && usual.contains("(tasks): CPUs 0-7 in row 1, 9 tasks"),
        "{usual}"
    );
    assert!(chosen.contains(" rows of 50ms; "), "{chosen}");
    assert_eq!(text(output, "wrong").matches("row=2").count(), 3);
}

#[test]
fn they_end_with_their_programs_and_hearth_goes_on() {
    let Some(output) = output() else { return };
    for section in ["after", "killed"] {
        assert!(has_line(output, section, "No set and no gang"), "{}", text(output, section));
        assert!(has_line(output, section, "enabled"));
    }
    hearth_kernel_tests::assert_untroubled(output);
}

#[test]
fn programs_run_where_there_is_no_hearth() {
    let Some(output) = output() else { return };
    let absent = text(output, "absent");
    assert!(absent.contains("list=8") && absent.contains("exec=0") && absent.contains("gang=0"), "{absent}");
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
