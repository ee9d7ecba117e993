//! Fragments of data, as the scheduler knows them (`bpf/fragments.h`), for those who ask.

use hearth_abi::{Fragment, MAX_FRAGMENTS, SHARED_FRAGMENT};
use serde::{Deserialize, Serialize};

/// What all tasks declare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FragmentsStatus {
    /// Fragments that tasks declare.
    pub fragments: usize,
    /// As many can be declared at a time.
    pub most: usize,
    /// Tasks that declare one.
    pub tasks: u64,
    /// Declarations that found no place, since the scheduler was loaded.
    pub refused: u64,
}

impl FragmentsStatus {
    pub(crate) fn of(fragments: impl Iterator<Item = Fragment>, refused: u64) -> Self {
        let none = Self { most: MAX_FRAGMENTS, refused, ..Self::default() };
        fragments.filter(|fragment| fragment.tasks() > 0).fold(none, |sum, fragment| Self {
            fragments: sum.fragments + 1,
            tasks: sum.tasks + u64::from(fragment.tasks()),
            ..sum
        })
    }
}

/// The fragment that a task declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Its number, in the process or among all.
    pub number: u64,
    /// Whether it is the same in all processes.
    pub shared: bool,
    /// The CPU where it lives.
    pub home: usize,
    /// Tasks that declare it.
    pub tasks: u32,
    /// How many of these run, or are about to.
    pub runs: u32,
}

impl Declared {
    pub(crate) fn new(number: u64, fragment: &Fragment) -> Self {
        Self {
            number: number & !SHARED_FRAGMENT,
            shared: number & SHARED_FRAGMENT != 0,
            home: fragment.home(),
            tasks: fragment.tasks(),
            runs: fragment.runs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(tasks: u64, runs: u64, home: u64) -> Fragment {
        Fragment { key: 9, word: tasks << 32 | runs << 16 | home, ..Fragment::default() }
    }

    #[test]
    fn what_nobody_declares_any_more_does_not_count() {
        let all = [fragment(3, 1, 4), fragment(0, 0, 5), fragment(1, 0, 511)];
        let status = FragmentsStatus::of(all.into_iter(), 2);
        assert_eq!((status.fragments, status.tasks, status.refused), (2, 4, 2));
    }

    #[test]
    fn a_number_of_all_processes_is_told_from_one_of_its_own() {
        let declared = Declared::new(SHARED_FRAGMENT | 7, &fragment(3, 2, 511));
        assert_eq!(declared, Declared { number: 7, shared: true, home: 511, tasks: 3, runs: 2 });
        assert!(!Declared::new(7, &fragment(3, 2, 511)).shared);
    }
}
