//! Where threads are taken, seen from outside: each test runs a C program of its own under the
//! sanitizers, for what is believed of homes is the process's.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Run, build, build_interleaved};
use proptest::prelude::*;
use std::fs;
use std::process::Command;

const LIMIT: u64 = 16384;
const DEPTH: usize = 16;

#[test]
fn a_thread_comes_to_the_fragments_home_before_enter_returns() {
    let Some(mut run) = Run::that_can_move() else { return };
    let (home, other) = run.home_and_other();
    // The kernel may move the thread at any time, so one success tells.
    run.until("it never came to its home", |run| {
        run.order(&format!("goto {other}"));
        run.order("enter 1");
        let came = run.ask("cpu") == home;
        run.order("leave");
        came
    });
    assert!(run.count("moved") >= 1);
    run.end();
}

#[test]
fn a_mask_is_what_it_was_within_a_fragment_and_after() {
    let Some(mut run) = Run::that_can_move() else { return };
    let mask = run.ask("mask");
    for fragment in 1..20 {
        run.order(&format!("goto {}", run_other(fragment)));
        run.order(&format!("enter {fragment}"));
        assert_eq!(run.ask("mask"), mask, "a thread that begins here inherits no other");
        run.order("leave");
        assert_eq!(run.ask("mask"), mask);
    }
    run.end();
}

/// One of the process's first two CPUs, in turns.
fn run_other(turn: u64) -> String {
    format!("{}", -1 - i64::try_from(turn % 2).unwrap())
}

#[test]
fn a_thread_that_the_program_has_bound_stays_where_it_is() {
    let Some(mut run) = Run::that_can_move() else { return };
    let (home, other) = run.home_and_other();
    run.order(&format!("bind {other}"));
    let mask = run.ask("mask");
    run.order("enter 1");
    assert_eq!((run.ask("cpu"), run.ask("mask")), (other, mask));
    run.order("leave");
    assert_eq!((run.count("refused"), run.count("moved"), run.ask("home 1")), (1, 0, home));
    run.end();
}

#[test]
fn what_is_too_deep_or_no_fragment_is_counted_and_left_like_others() {
    let mut run = Run::on("0-3");
    for fragment in 1..=20 {
        run.order(&format!("enter {fragment}"));
    }
    assert_eq!(run.ask("fragment"), 16);
    (0..5).for_each(|_| run.order("leave"));
    assert_eq!(run.ask("fragment"), 15);
    run.order("enter 0");
    assert_eq!(run.ask("fragment"), 15);
    (0..16).for_each(|_| run.order("leave"));
    assert_eq!(run.ask("fragment"), 0);
    assert_eq!((run.count("refused"), run.count("unmatched")), (5, 0));
    (0..3).for_each(|_| run.order("leave"));
    assert_eq!((run.count("unmatched"), run.count("enters")), (3, 21));
    run.end();
}

#[test]
fn what_is_here_is_what_has_its_home_here_or_none() {
    let mut run = Run::on("0-3");
    run.order("many 1 2");
    assert_ne!(run.ask("home 1"), run.ask("home 2"));
    run.order("enter 1");
    assert_eq!([1, 2, 3, 0].map(|fragment| run.ask(&format!("here {fragment}"))), [1, 0, 1, 1]);
    run.end();
}

#[test]
fn a_child_of_fork_is_in_no_fragment_unless_the_program_says_so() {
    let mut run = Run::on("0-3");
    run.order("enter 7");
    let home = run.ask("home 7");
    let found = run.in_child(|run| (run.ask("fragment"), run.ask("home 7"), run.count("enters")));
    assert_eq!(found, (0, home, 0));
    run.order("inherit 1");
    assert_eq!(run.in_child(|run| run.ask("fragment")), 7);
    run.order("inherit 0");
    assert_eq!(run.in_child(|run| run.ask("fragment")), 0);
    assert_eq!(run.ask("fragment"), 7, "it is the parent's still");
    run.end();
}

#[test]
fn a_name_has_one_home_for_a_process_and_its_children_and_a_number_has_not() {
    let mut run = Run::on("0-15");
    let name = 1 << 63 | 7_u64;
    let homes = run.in_child(|run| {
        run.order("many 1 5");
        run.order(&format!("many {name} 5"));
        (run.ask(&format!("home {}", name + 4)), run.ask("home 5"))
    });
    assert!(homes.0 >= 0 && homes.1 >= 0);
    assert_eq!((run.ask(&format!("home {}", name + 4)), run.ask("home 5")), (homes.0, -1));
    let other = run.in_child(|run| run.ask(&format!("home {}", name + 4)));
    assert_eq!(other, homes.0);
    run.end();
}

#[test]
fn too_many_fragments_are_refused_until_others_were_not_entered_for_a_while() {
    let mut run = Run::on("0-3");
    run.order(&format!("many 1 {}", LIMIT + 100));
    assert_eq!(run.count("refused"), 100);
    run.until("no room was made", |run| {
        let refused = run.count("refused");
        run.order("many 100000 200");
        run.count("refused") == refused
    });
    assert!(run.ask("home 100001") >= 0);
    run.end();
}

#[test]
fn threads_that_end_leave_their_counts_and_nothing_else() {
    let mut run = Run::on("0-3");
    assert_eq!(run.ask("threads 8 1000"), 0);
    assert_eq!((run.count("enters"), run.count("unmatched")), (8000, 0));
    run.end();
}

fn two_loaded_fragments_come_apart(run: &mut Run) {
    run.order("many 1 8");
    let first = run.ask("home 1");
    let twin = (2..=8).find(|fragment| run.ask(&format!("home {fragment}")) == first).unwrap();
    run.until("two loaded fragments stay on one CPU", |run| {
        run.order("work 1 2000");
        run.order(&format!("work {twin} 2000"));
        run.ask("home 1") != run.ask(&format!("home {twin}"))
    });
    assert!(run.count("rehomed") >= 1);
}

#[test]
fn a_fragment_moves_when_one_cpu_has_all_the_load() {
    let mut run = Run::on("0-3");
    two_loaded_fragments_come_apart(&mut run);
    assert_eq!(run.in_child(|run| run.count("rehomed")), 0, "those were the parent's");
    run.end();
}

#[test]
fn a_child_of_fork_moves_fragments_too_even_if_its_parent_was_being_measured() {
    let mut run = Run::on("0-3");
    run.order("enter 1");
    run.in_child(two_loaded_fragments_come_apart);
    run.end();
}

#[test]
fn a_lone_loaded_fragment_stays() {
    let mut run = Run::on("0-3");
    run.order("many 1 4");
    let home = run.ask("home 1");
    (0..200).for_each(|_| run.order("work 1 3000"));
    assert_eq!((run.ask("home 1"), run.count("rehomed")), (home, 0));
    run.end();
}

#[test]
fn many_threads_at_once_find_homes_within_the_machine() {
    let topology = tempfile::NamedTempFile::new().unwrap();
    fs::write(topology.path(), "0-15,32-47").unwrap();
    let done =
        Command::new(build("stress", "thread")).env("HEARTH_TOPOLOGY", topology.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    // The sanitizer needs addresses where some kernels put other things.
    if said.contains("FATAL: ThreadSanitizer: unexpected memory mapping") {
        eprintln!("skipped: this kernel leaves the thread sanitizer no room");
        return;
    }
    assert!(done.status.success(), "{said}");
}

/// How many runs of threads that stop at any access to memory.
const RUNS: &str = "600";

#[test]
fn tables_are_right_wherever_threads_stop() {
    let program = build_interleaved("interleave", &["homes", "numbers"]);
    let done = Command::new(program).arg(RUNS).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_process_keeps_to_the_better_of_moves_and_none() {
    let done = Command::new(build("trial", "address,undefined")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u64),
    Leave,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0_u64..12).prop_map(Step::Enter),
        1 => any::<u64>().prop_map(Step::Enter),
        3 => Just(Step::Leave),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Fragments are a stack, whatever is entered and left; and homes are CPUs of the machine.
    #[test]
    fn a_thread_is_in_what_it_entered_last_and_has_not_left(
        cpus in prop::collection::btree_set(0_usize..1024, 1..20),
        steps in steps(),
    ) {
        let list = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut run = Run::on(&list);
        let (mut stack, mut entered, mut unmatched) = (vec![0], 0, 0);
        for step in &steps {
            match step {
                Step::Enter(fragment) => {
                    run.order(&format!("enter {fragment}"));
                    entered += 1;
                    let within = *stack.last().unwrap();
                    stack.push(if stack.len() <= DEPTH && *fragment != 0 { *fragment } else { within });
                }
                Step::Leave if stack.len() > 1 => {
                    run.order("leave");
                    stack.pop();
                }
                Step::Leave => {
                    run.order("leave");
                    unmatched += 1;
                }
            }
            let within = *stack.last().unwrap();
            prop_assert_eq!(run.ask("fragment") as u64, within);
            if within != 0 {
                let home = usize::try_from(run.ask(&format!("home {within}"))).unwrap();
                prop_assert!(cpus.contains(&home), "CPU {} is none of {}", home, list);
            }
        }
        prop_assert_eq!((run.count("enters"), run.count("unmatched")), (entered, unmatched));
        let sorts = ["at_home", "moved", "stayed", "refused"].map(|name| run.count(name));
        prop_assert_eq!(sorts.iter().sum::<i64>(), entered);
        run.end();
    }

    /// New fragments go where least is: no CPU has two more than another.
    #[test]
    fn new_fragments_are_spread_over_all_cpus(cpus in 1_usize..64, fragments in 1_u64..200) {
        let mut run = Run::on(&format!("0-{}", cpus - 1));
        run.order(&format!("many 1 {fragments}"));
        let mut on = vec![0; cpus];
        for fragment in 1..=fragments {
            on[usize::try_from(run.ask(&format!("home {fragment}"))).unwrap()] += 1;
        }
        prop_assert!(on.iter().max().unwrap() - on.iter().min().unwrap() <= 1, "{:?}", on);
        run.end();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// What a child writes into the memory that it shares can misplace its parent's threads, no more.
    #[test]
    fn a_hostile_child_harms_nobody(seeds in prop::collection::vec(any::<u32>(), 1..4)) {
        let mut run = Run::on("2-5");
        let name = 1 << 63 | 7_u64;
        for seed in seeds {
            run.order(&format!("many {name} 100"));
            run.in_child(|run| run.order(&format!("vandalize {seed}")));
            run.order(&format!("many {name} 3000"));
            for at in 0..100 {
                run.order(&format!("work {} {}", name + at, at * 40));
                let home = run.ask(&format!("home {}", name + at));
                prop_assert!((-1..6).contains(&home), "CPU {}", home);
            }
        }
        run.order("enter 7");
        prop_assert_eq!(run.ask("fragment"), 7);
        prop_assert!((2..6).contains(&run.ask("home 7")));
        run.until("names were of no use any more", |run| {
            run.order(&format!("enter {name}"));
            let found = run.ask("fragment");
            run.order("leave");
            found as u64 == name
        });
        run.end();
    }
}

/// A few entries are used, all over the table: where huge pages are the rule, each would have one cleared.
#[test]
fn the_table_of_homes_has_no_huge_pages() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("skipped: this kernel has no huge pages for such memory");
        return;
    }
    let mut run = Run::begin();
    run.order("enter 1");
    assert_eq!(run.ask("fragment"), 1);
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", run.child.id())).unwrap();
    let of = |name: &str| maps.lines().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
    // 64 bytes for each of 65,536 entries, and a little.
    let is_table =
        |size: &str| (4096..5000).contains(&size.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
    let small_pages = |flags: &str| flags.split_whitespace().any(|flag| flag == "nh");
    let both = of("Size:").into_iter().zip(of("VmFlags:"));
    // That of the process, and that of named fragments.
    let tables = both.filter(|(size, flags)| is_table(size) && small_pages(flags)).count();
    assert_eq!(tables, 2, "{maps}");
    run.end();
}
