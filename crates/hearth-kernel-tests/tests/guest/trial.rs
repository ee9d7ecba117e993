//! Trials of page migration in real kernels of two memory nodes.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, number, numbers_in, text};
use serde_json::Value;

const FUNCTIONS: &str = include_str!("pages.sh");

/// Each run notes the mode of NUMA balancing; its memory is on node 1, and it runs on node 0.
const FUNCTIONS_OF_TRIALS: &str = r#"
balancing() {
	echo balancing=$(cat /proc/sys/kernel/numa_balancing)
}
cat >/tmp/remote <<'END'
echo run=$(cat /proc/sys/kernel/numa_balancing) >>/tmp/runs
exec tasks pages 4 4 0 15000
END
trial() {
	rm -f /tmp/runs
	hearth trial "$@" 2>/tmp/said; echo status=$?
}
"#;

const SCRIPT: &str = r#"
# Between the halves of Hearth the kernel would move pages.
echo 0 >/proc/sys/kernel/numa_balancing
# Somebody else's program, which is to be left alone.
remote other 4 0
section pages
trial --rounds 2 --json -- sh /tmp/remote
section pages-after
cat /tmp/runs /tmp/said
damon
state
[ -e /var/lib/hearth/journal ] || echo journal=gone
section other
end other
last other
section none
trial --rounds 1 --pages none --json -- sleep 0.1

section only
mkdir /sys/fs/cgroup/a
sh -c 'echo 0 >/sys/fs/cgroup/a/cgroup.procs; exec sleep 10000' &
echo $! >/tmp/sleeper
sleep 0.2
class='echo $((1 + $(cut -d" " -f41 /proc/$(cat /tmp/sleeper)/stat)))'
trial --only a --rounds 1 --window 20ms --settle 0s --json --metric "$class"
"#;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{FUNCTIONS}{FUNCTIONS_OF_TRIALS}{SCRIPT}"), Kernel::Pinned)
}

/// A kernel without sched_ext.
const PLAIN: &str = r#"
section text
trial --pages-only --rounds 1 -- sh /tmp/remote
section text-after
cat /tmp/runs
balancing
damon
section fails
trial --pages-only -- false
balancing
section killed
trial --pages-only -- sleep 1000 &
for try in $(seq 100); do
	[ $(cat /proc/sys/kernel/numa_balancing) = 0 ] && break
	sleep 0.1
done
kill -9 $(cat /run/hearth/lock)
balancing
section undone
hearth undo
balancing
section keep
policy slow "1 MB/s"
trial --keep --pages-only --pages /tmp/slow.toml --rounds 6 -- \
	sh -c '[ $(cat /proc/sys/kernel/numa_balancing) = 0 ] || usleep 300000'
section kept
hearth status
balancing
hearth stop
balancing
"#;

fn plain() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(&format!("{FUNCTIONS}{FUNCTIONS_OF_TRIALS}{PLAIN}"), Kernel::Plain)
}

/// The JSON that is before `status=0` in a section.
fn json(output: &Output, section: &str) -> Value {
    let text = text(output, section);
    let json = text.strip_suffix("status=0").unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(json).unwrap()
}

/// Pages of 4 MiB.
const PAGES: u64 = 1024;

#[test]
fn a_trial_tells_the_pages_that_moved_in_each_half_of_hearth() {
    let Some(output) = output() else { return };
    let trial = json(output, "pages");
    assert_eq!((&trial["pages"]["policy"], &trial["pages"]["backend"]), (&"linux".into(), &"damon".into()));
    let rounds = trial["rounds"].as_array().unwrap();
    for round in rounds {
        let pages = &round["pages"];
        let moved = pages["moved_pages"].as_u64().unwrap();
        assert!((PAGES * 9 / 10..=PAGES + PAGES / 10).contains(&moved), "the command's, once: {trial:#}");
        assert_eq!(pages["moved_bytes"].as_u64(), Some(4096 * moved));
        assert!(pages["local_share"].as_f64().unwrap() >= 0.9, "{trial:#}");
    }
    let sum: u64 = rounds.iter().map(|round| round["pages"]["moved_pages"].as_u64().unwrap()).sum();
    assert_eq!((rounds.len(), trial["pages"]["moved_pages"].as_u64()), (2, Some(sum)));
    assert!(text(output, "pages-after").contains("pages moved"), "{}", text(output, "pages-after"));
    assert!(json(output, "none")["pages"].is_null());
}

#[test]
fn after_a_trial_nothing_of_it_is_left() {
    let Some(output) = output() else { return };
    let text = text(output, "pages-after");
    // The run that is not counted, then ABBA.
    assert_eq!(numbers_in(output, "pages-after", "run").len(), 5, "{text}");
    assert_eq!(number(output, "pages-after", "kdamonds"), 0);
    assert!(text.contains("disabled") && text.contains("journal=gone"), "{text}");
}

#[test]
fn what_a_trial_did_not_start_is_left_alone() {
    let Some(output) = output() else { return };
    assert_eq!((number(output, "other", "local"), number(output, "other", "changes")), (0, 0));
}

#[test]
fn only_tasks_of_the_cgroup_change_their_class_in_a_half_of_hearth() {
    let Some(output) = output() else { return };
    let trial = json(output, "only");
    let round = &trial["rounds"][0];
    assert_eq!((&round["kernel"], &round["hearth"]), (&1.0.into(), &8.0.into()), "{trial:#}");
    assert!(trial["pages"].is_null(), "a service's pages stay: {trial:#}");
}

#[test]
fn without_sched_ext_pages_alone_are_compared_and_numa_balancing_is_off_in_halves_of_hearth() {
    let Some(output) = plain() else { return };
    let shown = text(output, "text");
    for part in ["the same with Hearth's pages (linux)", "sampled by DAMON", "% was local", "status=0"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let moved = shown.split_once("  moved ").unwrap().1.split(' ').next().unwrap();
    assert!(moved.parse::<u64>().unwrap() >= PAGES * 9 / 10, "{shown}");
    assert_eq!(numbers_in(output, "text-after", "run"), [0, 1, 0], "{}", text(output, "text-after"));
    assert_eq!((number(output, "text-after", "balancing"), number(output, "text-after", "kdamonds")), (1, 0));
    assert_eq!((number(output, "fails", "status"), number(output, "fails", "balancing")), (1, 1));
}

#[test]
fn what_a_killed_trial_left_is_undone() {
    let Some(output) = plain() else { return };
    assert_eq!((number(output, "killed", "balancing"), number(output, "undone", "balancing")), (0, 1));
    let undone = text(output, "undone");
    assert!(undone.contains("NUMA balancing: back to mode 1: undone"), "{undone}");
}

#[test]
fn pages_that_were_better_go_on_if_that_is_wanted() {
    let Some(output) = plain() else { return };
    let shown = text(output, "keep");
    assert!(shown.contains("Hearth is better") && shown.contains("hearth stop ends it"), "{shown}");
    let kept = text(output, "kept");
    assert!(kept.contains("page policy slow") && kept.contains("kernel's own scheduler schedules"), "{kept}");
    assert_eq!(numbers_in(output, "kept", "balancing"), [0, 1], "{kept}");
}

#[test]
fn the_guests_shut_down_without_trouble() {
    for output in [output(), plain()].into_iter().flatten() {
        assert_untroubled(output);
    }
}
