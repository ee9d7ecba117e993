use super::*;
use crate::journal::{self, NAME, Report};
use hearth_policy::isolation::weights::{LEAST_WEIGHT, MOST_WEIGHT, WHOLE};
use proptest::prelude::*;
use std::fs;

/// Cgroups as plain files, and a journal.
struct Host {
    root: tempfile::TempDir,
    weights: Weights,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.threads"), "").unwrap();
        let journal = Journal::begin(&root.path().join("state")).unwrap();
        Self { root, weights: Weights::new(Arc::new(Mutex::new(journal))) }
    }

    /// A cgroup whose weight is this.
    fn group(&self, name: &str, weight: &str) -> PathBuf {
        let folder = self.root.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cpu.weight"), weight).unwrap();
        folder
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.root.path().join("state").join(NAME)).unwrap_or_default()
    }

    /// The claims in the journal's file, those included that others have taken the place of.
    fn claims(&self) -> usize {
        self.journal().lines().filter(|line| line.contains("\"weight\"")).count()
    }

    /// Ends as `kill -9` does, and undoes what the file of the journal says.
    fn killed(self) -> (tempfile::TempDir, Report) {
        let Self { root, weights } = self;
        drop(weights);
        let report = journal::undo(&root.path().join("state")).unwrap();
        (root, report)
    }
}

fn weight(folder: &Path) -> String {
    fs::read_to_string(folder.join("cpu.weight")).unwrap().trim().to_owned()
}

fn set(folder: &Path, weight: &str) {
    fs::write(folder.join("cpu.weight"), weight).unwrap();
}

fn outcomes(report: &Report) -> Vec<Outcome> {
    report.changes.iter().map(|undone| undone.outcome.clone()).collect()
}

fn refused(held: Held) -> String {
    match held {
        Held::Refused(why) => why,
        held => panic!("{held:?}"),
    }
}

#[test]
fn a_weight_is_scaled_from_the_one_first_seen_and_given_back() {
    let mut host = Host::new();
    let (a, b) = (host.group("a", "200\n"), host.group("b", "100\n"));
    assert_eq!(host.weights.give(&a, 1250), Held::Given(250));
    assert_eq!(host.weights.give(&b, 900), Held::Given(90));
    assert_eq!(host.weights.give(&a, 500), Held::Given(100), "of 200, not of 250");
    assert_eq!((weight(&a), weight(&b)), ("100".into(), "90".into()));
    let state: Vec<_> = host.weights.state().collect();
    assert_eq!(state, [(&*a, Some(200), &Held::Given(100)), (&*b, Some(100), &Held::Given(90))]);

    host.weights.keep_only(&[b.clone()].into());
    assert_eq!((weight(&a), weight(&b)), ("200".into(), "90".into()));
    assert_eq!((host.weights.state().count(), host.claims()), (1, 1));
    host.weights.keep_only(&BTreeSet::new());
    assert_eq!((weight(&b), host.claims()), ("100".into(), 0));
    assert!(host.killed().1.is_empty());
}

#[test]
fn a_weight_that_stays_as_it_is_is_neither_written_nor_in_the_journal() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    assert_eq!(host.weights.give(&folder, WHOLE), Held::Given(100));
    assert_eq!(fs::read_to_string(folder.join("cpu.weight")).unwrap(), "100\n");
    assert_eq!(host.journal(), "");

    host.weights.give(&folder, 500);
    let journal = host.journal();
    set(&folder, "50\n");
    assert_eq!(host.weights.give(&folder, 500), Held::Given(50));
    assert_eq!((host.journal(), fs::read(folder.join("cpu.weight")).unwrap()), (journal, b"50\n".into()));
}

#[test]
fn a_cgroup_that_has_its_own_weight_again_is_no_longer_in_the_journal() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    assert_eq!(host.claims(), 1);
    assert_eq!(host.weights.give(&folder, WHOLE), Held::Given(100));
    assert_eq!((weight(&folder), host.claims()), ("100".into(), 0));
}

#[test]
fn what_was_scaled_before_a_kill_is_undone_from_the_file() {
    let mut host = Host::new();
    let (a, b, gone) = (host.group("a", "300\n"), host.group("b", "100\n"), host.group("gone", "100\n"));
    for folder in [&a, &b, &gone, &a] {
        for permille in [700, 800, 900] {
            host.weights.give(folder, permille);
        }
    }
    set(&b, "77\n");
    fs::remove_dir_all(&gone).unwrap();

    let (_root, report) = host.killed();
    let left = Outcome::Changed("its weight is 77 now".into());
    assert_eq!(outcomes(&report), [Outcome::Undone(1), Outcome::Gone, left]);
    assert_eq!(report.changes[0].what, format!("{}: weight back to 300", a.display()));
    assert_eq!((weight(&a), weight(&b)), ("300".into(), "77".into()));
}

#[test]
fn a_crash_between_the_journal_and_the_file_leaves_nothing_behind() {
    for (before_the_crash, outcome) in [(None, Outcome::Already), (Some(500), Outcome::Undone(1))] {
        let mut host = Host::new();
        let folder = host.group("a", "100\n");
        before_the_crash.map(|permille| host.weights.give(&folder, permille));
        let file = weight(&folder);
        host.weights.give(&folder, 700);
        set(&folder, &file);
        let (_root, report) = host.killed();
        assert_eq!((outcomes(&report), weight(&folder)), (vec![outcome], "100".into()));
    }
}

#[test]
fn a_weight_that_somebody_else_writes_is_left_alone_until_it_is_seen_anew() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    set(&folder, "80\n");
    let foreign = Held::Foreign { ours: 50, theirs: 80 };
    assert_eq!(host.weights.give(&folder, 700), foreign);
    assert_eq!((weight(&folder), host.claims()), ("80".into(), 0));
    set(&folder, "50\n");
    assert_eq!(host.weights.give(&folder, 700), foreign, "not ours for having our value");

    host.weights.keep_only(&BTreeSet::new());
    assert_eq!(weight(&folder), "50");
    assert_eq!(host.weights.give(&folder, 500), Held::Given(25));
    host.weights.keep_only(&BTreeSet::new());
    assert_eq!(weight(&folder), "50");
}

#[test]
fn a_weight_that_somebody_else_writes_before_it_is_given_back_stays() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    set(&folder, "80\n");
    host.weights.keep_only(&BTreeSet::new());
    assert_eq!((weight(&folder), host.claims()), ("80".into(), 0));
}

#[test]
fn a_cgroup_that_somebody_gave_its_own_weight_is_scaled_again() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    set(&folder, "100\n");
    assert_eq!(host.weights.give(&folder, 500), Held::Given(50));
    assert_eq!(weight(&folder), "50");
}

#[test]
fn a_cgroup_that_was_made_in_the_place_of_another_is_seen_anew() {
    let mut host = Host::new();
    let folder = host.group("a", "200\n");
    host.weights.give(&folder, 500);
    let make_another = || {
        // Moved, so that its number is not given again.
        fs::rename(&folder, host.root.path().join(format!("before-{}", weight(&folder)))).unwrap();
        host.group("a", "100\n")
    };
    make_another();
    assert_eq!(host.weights.give(&folder, 700), Held::Given(70));
    assert_eq!(host.weights.state().next().unwrap().1, Some(100));
    assert_eq!(host.claims(), 1);
}

#[test]
fn a_cgroup_made_in_the_place_of_another_has_its_weight_after_undoing() {
    let mut host = Host::new();
    let folder = host.group("a", "200\n");
    host.weights.give(&folder, 500);
    fs::rename(&folder, host.root.path().join("before")).unwrap();
    host.group("a", "100\n");
    let (_root, report) = host.killed();
    assert_eq!((outcomes(&report), weight(&folder)), (vec![Outcome::Gone], "100".into()));
}

#[test]
fn the_journal_does_not_grow_with_the_changes() {
    let mut host = Host::new();
    let folders = [host.group("a", "5000\n"), host.group("b", "5000\n")];
    let mut most = 0;
    for change in 0..1000 {
        host.weights.give(&folders[change % 2], 1001 + change as u32);
        most = most.max(host.claims());
    }
    assert!(most < 80, "{most}");
    let (_root, report) = host.killed();
    assert_eq!(outcomes(&report), [Outcome::Undone(1), Outcome::Undone(1)]);
    assert!(folders.iter().all(|folder| weight(folder) == "5000"));
}

#[test]
fn a_cgroup_without_a_weight_is_refused_with_a_way_out() {
    let mut host = Host::new();
    let (folder, idle) = (host.group("a", "100\n"), host.group("idle", "0\n"));
    fs::remove_file(folder.join("cpu.weight")).unwrap();
    fs::write(idle.join("cpu.idle"), "1\n").unwrap();
    let way_out = format!("echo +cpu > {}/cgroup.subtree_control", host.root.path().display());
    let why = refused(host.weights.give(&folder, 500));
    assert!(why.contains(&way_out), "{why}");
    assert!(!folder.join("cpu.weight").exists());
    assert!(refused(host.weights.give(&idle, 500)).contains("cpu.idle is 1"));
    assert_eq!(refused(host.weights.give(&host.root.path().join("none"), 500)), "it is gone");
    let root = host.root.path().to_owned();
    assert!(refused(host.weights.give(&root, 500)).contains("root of its hierarchy"));
    assert_eq!(host.journal(), "");

    // It is seen for the first time when there is something to see.
    set(&folder, "100\n");
    assert_eq!(host.weights.give(&folder, 500), Held::Given(50));
}

#[test]
fn a_cgroup_that_becomes_idle_meanwhile_is_told_and_left_alone() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    fs::write(folder.join("cpu.idle"), "1\n").unwrap();
    set(&folder, "0\n");
    assert!(refused(host.weights.give(&folder, 700)).contains("cpu.idle is 1"));
    let (_root, report) = host.killed();
    assert_eq!(outcomes(&report), [Outcome::Changed("its cpu.idle is 1 now".into())]);
    assert_eq!(weight(&folder), "0");
}

#[test]
fn garbage_is_refused_and_what_cannot_be_undone_is_tried_again() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    host.weights.give(&folder, 500);
    for garbage in ["", "max\n", "0\n", "10001\n", "-5\n", "99999999999999999999\n"] {
        set(&folder, garbage);
        let why = refused(host.weights.give(&folder, 700));
        assert!(why.contains(&format!("{garbage:?} is no weight")), "{why}");
        host.weights.keep_only(&BTreeSet::new());
        assert_eq!((host.weights.state().count(), host.claims()), (1, 1));
    }
    set(&folder, "50\n");
    host.weights.keep_only(&BTreeSet::new());
    assert_eq!((weight(&folder), host.weights.state().count(), host.claims()), ("100".into(), 0, 0));
}

#[test]
fn a_weight_that_the_system_refuses_is_not_claimed() {
    let mut host = Host::new();
    let folder = host.group("a", "100\n");
    let file = folder.join("cpu.weight");
    // A number that can be read and not written, by root either.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/proc/sys/kernel/cap_last_cap", &file).unwrap();
    let why = refused(host.weights.give(&folder, 500));
    assert!(why.contains("refuses"), "{why}");
    assert!(!host.journal().is_empty(), "it was written down first");
    assert_eq!(host.claims(), 0);
}

proptest! {
    #[test]
    fn whatever_is_asked_for_undoing_gives_every_cgroup_its_own_weight(
        own in LEAST_WEIGHT..=MOST_WEIGHT,
        asked in proptest::collection::vec(0u32..20_000, 1..6),
    ) {
        let mut host = Host::new();
        let folder = host.group("a", &own.to_string());
        for permille in asked {
            prop_assert_eq!(host.weights.give(&folder, permille), Held::Given(scaled(own, permille)));
            prop_assert_eq!(weight(&folder), scaled(own, permille).to_string());
        }
        let (_root, _) = host.killed();
        prop_assert_eq!(weight(&folder), own.to_string());
    }
}
