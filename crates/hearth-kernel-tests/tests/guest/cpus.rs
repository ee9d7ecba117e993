//! How many CPUs programs are told that they can get, by a daemon in a real kernel.

use hearth_guest::{Kernel, Output};
use hearth_kernel_tests::{Shared, assert_untroubled, line, text};

/// Programs `a` and `b` in cgroups of unequal weights, `a` in one that is nested.
const SCRIPT: &str = r#"
# Until they say so, each as a pattern, at most 20 s; then what they say. To look takes CPU time, too, which
# they do not get: so seldom.
await_numbers() {
	for try in $(seq 20); do
		read a_says rest <<-END
			$(tail -n 1 /tmp/a 2>/dev/null)
		END
		read b_says rest <<-END
			$(tail -n 1 /tmp/b 2>/dev/null)
		END
		case "$a_says $b_says" in $1\ $2) break ;; esac
		usleep 1000000
	done
	echo "$a_says $b_says"
}
mkdir /dev/shm
cd /sys/fs/cgroup
echo +cpu >cgroup.subtree_control
mkdir a a/inner b
echo +cpu >a/cgroup.subtree_control
echo 300 >a/cpu.weight
section alone
(echo 0 >a/inner/cgroup.procs; exec tasks follow 600000 >/tmp/a) &
a=$!
await_numbers cpus=8
section together
start --policy fair
(echo 0 >b/cgroup.procs; exec tasks follow 600000 >/tmp/b) &
b=$!
await_numbers cpus=6 cpus=2
section view
hearth cpus
hearth cpus $a
hearth cpus 1 --json | grep '"follows"'
hearth cpus 99999; echo code=$?
section quota
echo "200000 100000" >a/cpu.max
await_numbers cpus=2 cpus=6
hearth cpus $a | head -n 1
section nested
echo "100000 100000" >a/inner/cpu.max
await_numbers cpus=1 cpus=7
section mask
taskset -p 7 $b >/dev/null
await_numbers cpus=1 cpus=3
taskset -p ff $b >/dev/null
await_numbers cpus=1 cpus=7
section killed
kill -9 $(hearth status --json | sed -n 's/^    "pid": \([0-9]*\),/\1/p')
await_numbers cpus=1 cpus=8
section again
start --policy fair
await_numbers cpus=1 cpus=7
section others
tasks spin 60000 0,0,0,0 >/dev/null &
await_numbers cpus=1 'cpus=[34]'
for try in $(seq 50); do
	hearth status --json | grep -q '"uses_snapshots": true' && break
	usleep 100000
done
hearth status --json | grep -o '"uses_snapshots": [a-z]*'
kill $!
wait $!
await_numbers cpus=1 cpus=7
section gone
kill -9 $b
echo max >a/inner/cpu.max
echo max >a/cpu.max
await_numbers cpus=8 cpus=7
ls /dev/shm/hearth-0 | wc -l
kill -9 $a
for try in $(seq 100); do
	[ "$(ls /dev/shm/hearth-0 | wc -l)" = 0 ] && break
	usleep 100000
done
ls /dev/shm/hearth-0 | wc -l
hearth cpus | tail -n 1
hearth stop
"#;

fn output() -> Option<&'static Output> {
    static GUEST: Shared = Shared::new();
    GUEST.output(SCRIPT, Kernel::Pinned)
}

#[test]
fn a_program_is_told_its_share_by_the_weights_of_nested_cgroups() {
    let Some(output) = output() else { return };
    assert_eq!(line(output, "alone").trim(), "cpus=8", "nobody says it: that is the mask");
    assert!(text(output, "together").ends_with("cpus=6 cpus=2"), "{}", text(output, "together"));
}

#[test]
fn quotas_and_masks_bound_it_and_what_one_may_not_use_goes_to_the_other() {
    let Some(output) = output() else { return };
    let quota = text(output, "quota");
    assert!(quota.starts_with("cpus=2 cpus=6\n"), "{quota}");
    assert!(quota.contains("its quota, or that of a cgroup above it"), "{quota}");
    assert_eq!(text(output, "nested"), "cpus=1 cpus=7");
    assert_eq!(text(output, "mask"), "cpus=1 cpus=3\ncpus=1 cpus=7");
}

#[test]
fn hearth_cpus_shows_it_with_the_reason() {
    let Some(output) = output() else { return };
    let view = text(output, "view");
    assert!(view.contains("others want CPUs too") && view.contains("of this machine's 8 (exactly"), "{view}");
    assert!(view.contains("it has been told"), "{view}");
    assert!(view.contains("\"follows\": false"), "{view}");
    assert!(view.contains("there is no process 99999") && view.ends_with("code=2"), "{view}");
}

#[test]
fn without_the_daemon_programs_go_on_with_mask_and_quota() {
    let Some(output) = output() else { return };
    assert_eq!(text(output, "killed"), "cpus=1 cpus=8");
    assert!(text(output, "again").ends_with("cpus=1 cpus=7"), "{}", text(output, "again"));
}

#[test]
fn programs_that_do_not_follow_have_their_share_by_what_the_scheduler_sees() {
    let Some(output) = output() else { return };
    let others = text(output, "others");
    // Four spinners of eight CPUs; what else runs in the guest takes a part of one.
    assert!(others.starts_with("cpus=1 cpus=3\n") || others.starts_with("cpus=1 cpus=4\n"), "{others}");
    assert!(others.ends_with("\"uses_snapshots\": true\ncpus=1 cpus=7"), "{others}");
}

#[test]
fn pages_end_with_their_programs() {
    let Some(output) = output() else { return };
    let gone = text(output, "gone");
    assert!(gone.starts_with("cpus=8 cpus=7\n1\n0\nNo program follows"), "{gone}");
    assert_untroubled(output);
}
