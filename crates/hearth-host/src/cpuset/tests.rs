use super::*;
use crate::Outcome;
use rustix::io::Errno;

/// A hierarchy as files: each cgroup's files and what they say.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchy) {
    let root = tempfile::tempdir().unwrap();
    let controllers = ("cgroup.controllers", "cpuset cpu io");
    for (path, text) in [controllers, ("cgroup.procs", ""), ("cgroup.threads", "")].iter().chain(files) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let hierarchy = Hierarchy::at(root.path()).unwrap();
    (root, hierarchy)
}

#[test]
fn what_the_kernel_says_of_a_partition_is_understood() {
    assert_eq!(Partition::parse("root\n"), Partition::Own);
    assert_eq!(Partition::parse("member\n"), Partition::Shared);
    let why = "Cpu list in cpuset.cpus not exclusive";
    assert_eq!(Partition::parse(&format!("root invalid ({why})\n")), Partition::Invalid(why.into()));
    assert_eq!(Partition::parse("root invalid\n"), Partition::Invalid("the kernel does not say why".into()));
}

#[test]
fn a_hierarchy_without_cpusets_is_refused_with_a_way_out() {
    let (root, _) = tree(&[]);
    fs::write(root.path().join("cgroup.controllers"), "cpu io").unwrap();
    let error = Hierarchy::at(root.path()).unwrap_err();
    assert!(matches!(error, Error::Impossible(_)) && error.to_string().contains("cgroup_no_v1=cpuset"));
}

#[test]
fn cpus_that_others_have_given_away_are_known_unless_they_are_all() {
    let (_root, hierarchy) = tree(&[
        ("cpuset.cpus.effective", "0-7\n"),
        ("a/cpuset.cpus", "5-6\n"),
        ("a/b/cpuset.cpus", "\n"),
        ("c/d/cpuset.cpus", "1\n"),
        ("all/cpuset.cpus", "0-7\n"),
        ("hearth-set-1/cpuset.cpus", "3\n"),
    ]);
    let free = hierarchy.free_cpus().unwrap();
    assert_eq!(free, (0..8).collect());
    let is_ours = |folder: &Path| folder.ends_with("hearth-set-1");
    assert_eq!(hierarchy.named_by_others(&free, is_ours), [1, 5, 6].into());
}

#[test]
fn a_process_stays_where_a_cgroup_limits_it() {
    let (root, hierarchy) = tree(&[
        ("free/cpu.max", "max 100000\n"),
        ("free/memory.max", "max\n"),
        ("free/cpuset.cpus", "\n"),
        ("quota/cpu.max", "50000 100000\n"),
        ("quota/inner/cpu.max", "max 100000\n"),
        ("bound/cpuset.cpus", "0-1\n"),
        ("threads/cgroup.type", "threaded\n"),
    ]);
    let holds = |path: &str| hierarchy.holds(&root.path().join(path));
    assert_eq!((holds(""), holds("free")), (None, None));
    assert!(holds("quota/inner").unwrap().contains("quota/cpu.max limits it"));
    assert!(holds("bound").unwrap().contains("cpuset.cpus"));
    assert!(holds("threads").unwrap().contains("apart from their process"));
}

#[test]
fn cpusets_stay_on_where_another_manager_uses_them() {
    let (root, _hierarchy) = tree(&[("cgroup.subtree_control", "cpuset cpu\n"), ("a/cpuset.mems", "1\n")]);
    let outcome = switch_off(root.path());
    assert!(matches!(&outcome, Outcome::Changed(who) if who.contains("/a uses")), "{outcome:?}");
    fs::write(root.path().join("a/cpuset.mems"), "\n").unwrap();
    assert_eq!(switch_off(root.path()), Outcome::Undone(1));
    fs::write(root.path().join("cgroup.subtree_control"), "cpu\n").unwrap();
    assert_eq!(switch_off(root.path()), Outcome::Already);
}

#[test]
fn a_cgroup_is_removed_once_and_what_is_in_use_is_told() {
    let (root, _hierarchy) = tree(&[]);
    let folder = root.path().join("hearth-set-1");
    make_group(&folder).unwrap();
    assert_eq!(make_group(&folder), Err(Errno::EXIST));
    fs::create_dir(folder.join("foreign")).unwrap();
    assert!(matches!(remove_group(&folder, root.path()), Outcome::Failed(_)));
    fs::remove_dir(folder.join("foreign")).unwrap();
    assert_eq!(remove_group(&folder, root.path()), Outcome::Undone(1));
    assert_eq!(remove_group(&folder, root.path()), Outcome::Gone);
}

#[test]
fn what_the_kernel_lets_go_of_a_moment_later_is_removed_too() {
    let (root, _hierarchy) = tree(&[]);
    let folder = root.path().join("hearth-set-1");
    make_group(&folder).unwrap();
    fs::create_dir(folder.join("task")).unwrap();
    let mut pauses = 0;
    let outcome = own::remove_patiently(&folder, root.path(), || {
        pauses += 1;
        if pauses == 3 {
            fs::remove_dir(folder.join("task")).unwrap();
        }
    });
    assert_eq!((outcome, pauses), (Outcome::Undone(1), 3));
}
