use super::*;
use proptest::prelude::*;
use tempfile::TempDir;

const CLAIM: Claim = Claim { slots: 2, mark_us: MARK_US };

fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A list of entries with these marks.
fn list(marks: &[u64]) -> (TempDir, List) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "nr_kdamonds", &format!("{}\n", marks.len()));
    for (slot, mark) in marks.iter().enumerate() {
        put(folder.path(), &format!("{slot}/state"), "off\n");
        put(folder.path(), &format!("{slot}/contexts/nr_contexts"), "1\n");
        put(folder.path(), &format!("{slot}/contexts/0/targets/nr_targets"), "1\n");
        let attributes = format!("{slot}/contexts/0/monitoring_attrs/intervals/update_us");
        put(folder.path(), &attributes, &format!("{mark}\n"));
    }
    let path = folder.path().to_owned();
    (folder, List(path))
}

#[test]
fn damon_is_refused_where_it_is_not_or_is_somebody_elses() {
    let root = tempfile::tempdir().unwrap();
    assert!(refusal(root.path()).unwrap().contains("no DAMON"));
    put(root.path(), "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0\n");
    assert_eq!(refusal(root.path()), None);
    put(root.path(), "sys/module/damon_stat/parameters/enabled", "N\n");
    assert_eq!(refusal(root.path()), None);
    put(root.path(), "sys/module/damon_stat/parameters/enabled", "Y\n");
    assert!(refusal(root.path()).unwrap().contains("echo N > /sys/module/damon_stat"));
    put(root.path(), "sys/module/damon_stat/parameters/enabled", "N\n");
    put(root.path(), "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1\n");
    assert!(refusal(root.path()).unwrap().contains("somebody else"));
    put(root.path(), "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "many\n");
    assert!(refusal(root.path()).unwrap().contains("many"));
}

#[test]
fn what_is_hearths_is_taken_back_once() {
    let (_folder, list) = list(&[MARK_US, MARK_US]);
    assert_eq!(take_back_from(&list, CLAIM), Outcome::Undone(1));
    assert_eq!(list.number("nr_kdamonds").unwrap(), 0);
    assert_eq!(list.number("1/contexts/0/targets/nr_targets").unwrap(), 0);
    assert_eq!(take_back_from(&list, CLAIM), Outcome::Already);
}

#[test]
fn what_somebody_else_set_up_is_left_alone() {
    for marks in [&[MARK_US, 60_000_000][..], &[MARK_US], &[MARK_US; 3]] {
        let (_folder, list) = list(marks);
        assert!(matches!(take_back_from(&list, CLAIM), Outcome::Changed(_)), "{marks:?}");
        assert_eq!(list.number("nr_kdamonds").unwrap(), marks.len() as u64);
    }
}

#[test]
fn entries_that_a_crash_left_without_a_context_are_taken_back() {
    let (folder, list) = list(&[MARK_US, 0]);
    put(folder.path(), "1/contexts/nr_contexts", "0\n");
    assert_eq!(take_back_from(&list, CLAIM), Outcome::Undone(1));
}

#[test]
fn a_kernel_without_damon_has_nothing_to_take_back() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(take_back_from(&List(folder.path().join("none")), CLAIM), Outcome::Gone);
}

#[test]
fn regions_are_read_in_order_with_their_accesses_in_a_second() {
    let (folder, list) = list(&[MARK_US]);
    let regions = [(0, 4096_u64, 8192_u64, 20_u64), (10, 1 << 40, (1 << 40) + 4096, 3), (2, 9, 9, 1)];
    for (index, start, end, accesses) in regions {
        for (file, value) in [("start", start), ("end", end), ("nr_accesses", accesses)] {
            put(
                folder.path(),
                &format!("0/contexts/0/schemes/0/tried_regions/{index}/{file}"),
                &value.to_string(),
            );
        }
    }
    put(folder.path(), "0/contexts/0/schemes/0/tried_regions/total_bytes", "8192");
    let seen = list.read(0).unwrap();
    assert_eq!(
        seen,
        [
            Region { start: 4096, end: 8192, per_second: 100 },
            Region { start: 1 << 40, end: (1 << 40) + 4096, per_second: 15 }
        ]
    );
    put(folder.path(), "0/contexts/0/schemes/0/tried_regions/3/start", "x");
    assert!(list.read(0).is_err());
}

proptest! {
    #[test]
    fn no_number_of_the_kernel_is_too_strange(text in ".{0,20}", accesses in any::<u64>()) {
        let (folder, list) = list(&[MARK_US]);
        for (file, value) in [("start", "0"), ("end", "4096"), ("nr_accesses", &accesses.to_string())] {
            put(folder.path(), &format!("0/contexts/0/schemes/0/tried_regions/0/{file}"), value);
        }
        prop_assert!(list.read(0).unwrap().iter().all(|seen| seen.per_second <= 100));
        put(folder.path(), "0/contexts/0/schemes/0/tried_regions/0/end", &text);
        let _ = list.read(0);
        put(folder.path(), "nr_kdamonds", &text);
        take_back_from(&list, CLAIM);
    }
}
