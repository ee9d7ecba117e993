//! Which control group is of which class.

use hearth_host::cgroup;
use hearth_policy::Snapshot;
use hearth_policy::snapshot::Class;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// `hearth exec --class` has cgroups below these, at the root of the hierarchy.
pub const OWN: [(&str, Class); 2] =
    [("hearth.cache-fair", Class::CacheFair), ("hearth.best-effort", Class::BestEffort)];

/// Control groups that are not known are looked for this often at most: it is a walk over all.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What classes are said to be, and what they are.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Paths in the hierarchy.
    said: BTreeMap<PathBuf, Class>,
    /// By number: the group that a group has its class from.
    known: BTreeMap<u64, Option<(PathBuf, Class)>>,
    looked: Option<Instant>,
}

/// Why classes cannot be as is said.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClassError {
    /// One group in two classes.
    #[error("{} cannot be both cache-fair and best-effort; leave one of them out", .0.display())]
    Both(PathBuf),
}

impl Default for Classes {
    fn default() -> Self {
        let own = OWN.map(|(name, class)| (Path::new("/").join(name), class));
        Self { said: own.into(), known: BTreeMap::new(), looked: None }
    }
}

impl Classes {
    /// Has a control group, by its path in the hierarchy, be of a class with all below it.
    ///
    /// # Errors
    /// [`ClassError`]
    pub fn say(&mut self, path: PathBuf, class: Class) -> Result<(), ClassError> {
        match self.said.insert(path.clone(), class) {
            Some(other) if other != class => Err(ClassError::Both(path)),
            _ => Ok(()),
        }
    }

    /// Those of a snapshot's groups.
    pub(crate) fn of(&mut self, snapshot: &Snapshot) -> BTreeMap<u64, Class> {
        let is_new = |number: &u64| !self.known.contains_key(number);
        let may_look = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN);
        if may_look && snapshot.groups.keys().any(is_new) {
            self.look(&cgroup::numbered(), snapshot);
        }
        let class = |number: &u64| Some((*number, self.known.get(number)?.as_ref()?.1));
        snapshot.groups.keys().filter_map(class).collect()
    }

    fn look(&mut self, numbered: &BTreeMap<u64, PathBuf>, snapshot: &Snapshot) {
        self.looked = Some(Instant::now());
        let known = |number: &u64| {
            let path = numbered.get(number);
            (*number, path.and_then(|path| self.class(path)))
        };
        self.known = snapshot.groups.keys().map(known).collect();
    }

    /// The nearest group that has a class, from this one up.
    fn class(&self, path: &Path) -> Option<(PathBuf, Class)> {
        path.ancestors().find_map(|ancestor| Some((ancestor.to_owned(), *self.said.get(ancestor)?)))
    }

    /// The path of the group that one has its class from.
    pub(crate) fn origin(&self, number: u64) -> Option<&Path> {
        self.known.get(&number)?.as_ref().map(|(path, _)| path.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::snapshot::Task;

    fn classes() -> Classes {
        let mut classes = Classes::default();
        classes.say("/batch.slice".into(), Class::BestEffort).unwrap();
        classes.say("/batch.slice/web".into(), Class::CacheFair).unwrap();
        classes
    }

    #[test]
    fn the_nearest_group_that_has_a_class_gives_it() {
        let mut classes = classes();
        let numbered: BTreeMap<u64, PathBuf> = [
            (1, "/".into()),
            (2, "/batch.slice".into()),
            (3, "/batch.slice/web/x".into()),
            (4, "/batch.slice-2".into()),
            (5, "/hearth.cache-fair/7".into()),
        ]
        .into();
        let mut snapshot = Snapshot::default();
        (1..=6).for_each(|group| snapshot.add(Task { group, ..Task::default() }));
        classes.look(&numbered, &snapshot);
        let wanted = [(2, Class::BestEffort), (3, Class::CacheFair), (5, Class::CacheFair)];
        assert_eq!(classes.of(&snapshot), wanted.into());
        assert_eq!(classes.origin(3), Some(Path::new("/batch.slice/web")));
    }

    #[test]
    fn one_group_is_not_of_two_classes() {
        let mut classes = classes();
        assert_eq!(classes.say("/batch.slice".into(), Class::BestEffort), Ok(()));
        let both = classes.say("/batch.slice".into(), Class::CacheFair);
        assert!(both.unwrap_err().to_string().starts_with("/batch.slice cannot be both"));
    }
}
