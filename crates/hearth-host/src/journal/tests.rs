use super::*;
use crate::task::{BATCH, Class, OTHER, Thread};
use proptest::prelude::*;
use std::process::{Child, Command};

/// A process that waits, ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    fn thread(&self) -> Thread {
        Thread::now(self.0.id() as i32).unwrap()
    }

    fn class(&self) -> Class {
        Class::of(self.0.id() as i32).unwrap().unwrap()
    }

    /// `SCHED_EXT` is not on every machine; `SCHED_BATCH` is.
    fn to_batch(&self) -> Change {
        Change::Class { thread: self.thread(), before: self.class(), policy: BATCH }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn outcomes(report: &Report) -> Vec<Outcome> {
    report.changes.iter().map(|undone| undone.outcome.clone()).collect()
}

#[test]
fn a_change_is_on_the_disk_before_it_is_made_and_is_undone_once() {
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::start();
    let mut journal = Journal::begin(folder.path()).unwrap();
    assert_eq!(journal.make(vec![sleeper.to_batch()]).unwrap(), []);
    assert_eq!(sleeper.class().policy, BATCH);

    let report = undo(folder.path()).unwrap();
    assert_eq!(outcomes(&report), [Outcome::Undone(1)]);
    assert_eq!(sleeper.class().policy, OTHER);
    assert!(undo(folder.path()).unwrap().is_empty());
}

#[test]
fn a_change_that_was_written_but_not_made_is_nothing_to_undo() {
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::start();
    drop(write_whole(folder.path(), &[sleeper.to_batch()]).unwrap());
    assert_eq!(outcomes(&undo(folder.path()).unwrap()), [Outcome::Already]);
}

#[test]
fn a_task_that_is_gone_or_has_another_class_since_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, changed) = (Sleeper::start(), Sleeper::start());
    let mut journal = Journal::begin(folder.path()).unwrap();
    journal.make(vec![gone.to_batch(), changed.to_batch()]).unwrap();
    drop(gone);
    let idle = 5;
    Class { policy: idle, ..changed.class() }.set(changed.thread().tid).unwrap();

    let report = undo(folder.path()).unwrap();
    let left = Outcome::Changed("it is in SCHED_IDLE now".into());
    assert_eq!(outcomes(&report), [left, Outcome::Gone], "the last change comes first");
    assert_eq!(changed.class().policy, idle);
}

#[test]
fn a_nice_value_that_somebody_set_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::start();
    Journal::begin(folder.path()).unwrap().make(vec![sleeper.to_batch()]).unwrap();
    Class { nice: 7, ..sleeper.class() }.set(sleeper.thread().tid).unwrap();
    undo(folder.path()).unwrap();
    assert_eq!((sleeper.class().policy, sleeper.class().nice), (OTHER, 7));
}

#[test]
fn tasks_that_inherited_the_class_in_a_cgroup_get_the_default_one() {
    let folder = tempfile::tempdir().unwrap();
    let cgroup = tempfile::tempdir().unwrap();
    let (child, other) = (Sleeper::start(), Sleeper::start());
    for sleeper in [&child, &other] {
        Class { policy: BATCH, ..sleeper.class() }.set(sleeper.thread().tid).unwrap();
    }
    let threads = format!("{}\n{}\n", child.thread().tid, other.thread().tid);
    fs::write(cgroup.path().join("cgroup.threads"), threads).unwrap();
    let change =
        Change::Cgroup { folder: cgroup.path().to_owned(), others: vec![other.thread()], policy: BATCH };
    Journal::begin(folder.path()).unwrap().make(vec![change]).unwrap();

    assert_eq!(outcomes(&undo(folder.path()).unwrap()), [Outcome::Undone(1)]);
    assert_eq!((child.class().policy, other.class().policy), (OTHER, BATCH));
}

#[test]
fn a_damaged_journal_is_kept_aside_and_what_can_be_read_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::start();
    Journal::begin(folder.path()).unwrap().make(vec![sleeper.to_batch()]).unwrap();
    let path = folder.path().join(NAME);
    let mut text = fs::read(&path).unwrap();
    text.extend(b"\xff\x00 no journal\n");
    fs::write(&path, &text).unwrap();

    let report = undo(folder.path()).unwrap();
    assert_eq!(outcomes(&report), [Outcome::Undone(1)]);
    let damage = report.damage.unwrap();
    assert_eq!(damage.lines, [3]);
    assert_eq!(fs::read(damage.kept).unwrap(), text);
    assert!(!path.exists());
}

#[test]
fn a_line_that_a_crash_cut_off_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    drop(write_whole(folder.path(), &[]).unwrap());
    let mut file = OpenOptions::new().append(true).open(folder.path().join(NAME)).unwrap();
    file.write_all(b"{\"change\":\"class\",\"thr").unwrap();
    assert!(undo(folder.path()).unwrap().is_empty());
}

#[test]
fn nothing_is_undone_after_the_machine_was_booted() {
    let folder = tempfile::tempdir().unwrap();
    let sleeper = Sleeper::start();
    Journal::begin(folder.path()).unwrap().make(vec![sleeper.to_batch()]).unwrap();
    let path = folder.path().join(NAME);
    let text = fs::read_to_string(&path).unwrap().replace(&task::boot_id().unwrap(), "another");
    fs::write(&path, text).unwrap();
    let report = undo(folder.path()).unwrap();
    assert!(report.booted_since);
    assert_eq!(outcomes(&report), [Outcome::Gone]);
    assert_eq!(sleeper.class().policy, BATCH);
}

#[test]
fn a_long_journal_forgets_tasks_that_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::begin(folder.path()).unwrap();
    let sleeper = Sleeper::start();
    let before = sleeper.class();
    let gone = |tid: usize| Change::to_ext(Thread { tid: tid as i32, start: u64::MAX }, before);
    let many: Vec<Change> = (1..=COMPACT_ABOVE).map(gone).chain([sleeper.to_batch()]).collect();
    // Nothing has these numbers and start times, but something may have the numbers.
    drop(write_whole(folder.path(), &many).unwrap());
    journal.changes = many;
    journal.make(vec![sleeper.to_batch()]).unwrap();
    assert_eq!(Read::parse(&fs::read(folder.path().join(NAME)).unwrap()).changes.len(), 2);
}

#[test]
fn a_change_that_cannot_be_written_down_is_not_made_and_loses_none_of_those_before() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second, third) = (Sleeper::start(), Sleeper::start(), Sleeper::start());
    let mut journal = Journal::begin(folder.path()).unwrap();
    journal.make(vec![first.to_batch()]).unwrap();
    journal.file = Some(File::open(folder.path().join(NAME)).unwrap());
    journal.make(vec![second.to_batch()]).unwrap_err();
    assert_eq!(second.class().policy, OTHER);
    journal.make(vec![third.to_batch()]).unwrap();
    assert_eq!(outcomes(&undo(folder.path()).unwrap()), [Outcome::Undone(1), Outcome::Undone(1)]);
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_reading_fail(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), &bytes).unwrap();
        let report = undo(folder.path()).unwrap();
        prop_assert!(report.changes.is_empty());
        prop_assert!(undo(folder.path()).unwrap().is_empty());
    }
}
