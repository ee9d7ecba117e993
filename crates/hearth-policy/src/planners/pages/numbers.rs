//! Numbers for pages, from 0 on, so that what is known of them lies in flat tables.

use std::collections::BTreeMap;

/// Pages that are known at a time.
const MOST: usize = 256 << 10;

/// Pages by number, and numbers by page. In order of processes and addresses, so that the same snapshots give
/// the same numbers.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pages: Vec<Known>,
    free: Vec<u32>,
    by_process: BTreeMap<i32, Numbered>,
}

/// A page that has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) process: i32,
    /// Where it was among the pages of its process, in the last snapshot that had it.
    pub(super) place: usize,
}

/// A process some of whose pages have numbers.
#[derive(Debug)]
struct Numbered {
    began: u64,
    /// By address.
    pages: BTreeMap<u64, u32>,
}

impl Numbers {
    /// The number of a page, which may be new; `None` if there are too many.
    pub(super) fn number(&mut self, process: (i32, u64), address: u64, place: usize) -> Option<u32> {
        let (id, began) = process;
        let known = Known { process: id, place };
        if let Some(number) = self.find(id, address) {
            self.pages[number as usize] = known;
            return Some(number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.pages.len() < MOST => {
                self.pages.push(known);
                self.pages.len() as u32 - 1
            }
            None => return None,
        };
        self.pages[number as usize] = known;
        let new = || Numbered { began, pages: BTreeMap::new() };
        self.by_process.entry(id).or_insert_with(new).pages.insert(address, number);
        Some(number)
    }

    /// The number of a page that has one.
    pub(super) fn find(&self, process: i32, address: u64) -> Option<u32> {
        self.by_process.get(&process)?.pages.get(&address).copied()
    }

    /// How many pages there is room for.
    pub(super) fn room(&self) -> usize {
        MOST - self.pages.len() + self.free.len()
    }

    /// Which page has a number that [`Self::number`] gave.
    pub(super) fn page(&self, number: u32) -> Known {
        self.pages[number as usize]
    }

    /// Processes some of whose pages have numbers, and when they began.
    pub(super) fn processes(&self) -> impl Iterator<Item = (i32, u64)> + '_ {
        self.by_process.iter().map(|(&id, numbered)| (id, numbered.began))
    }

    /// The numbers of a process's pages.
    pub(super) fn of(&self, process: i32) -> impl Iterator<Item = u32> + '_ {
        self.by_process.get(&process).into_iter().flat_map(|numbered| numbered.pages.values().copied())
    }

    /// Gives back the numbers of a process's pages that are not to be kept.
    pub(super) fn forget(&mut self, process: i32, mut keep: impl FnMut(u32) -> bool) {
        let Some(numbered) = self.by_process.get_mut(&process) else { return };
        let free = &mut self.free;
        numbered.pages.retain(|_, &mut number| {
            let kept = keep(number);
            if !kept {
                free.push(number);
            }
            kept
        });
        if numbered.pages.is_empty() {
            self.by_process.remove(&process);
        }
        if self.by_process.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_number_until_it_is_forgotten() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.number((7, 1), 0, 5), Some(0));
        assert_eq!(numbers.number((8, 1), 0, 6), Some(1));
        assert_eq!(numbers.number((7, 1), 0, 9), Some(0));
        assert_eq!(numbers.page(0), Known { process: 7, place: 9 });
        assert_eq!((numbers.find(7, 0), numbers.find(7, 4096)), (Some(0), None));
        numbers.forget(7, |_| false);
        assert_eq!(numbers.find(7, 0), None);
        assert_eq!(numbers.number((8, 1), 4096, 0), Some(0));
        assert_eq!(numbers.of(8).count(), 2);
        numbers.forget(8, |number| number == 1);
        assert_eq!(numbers.of(8).collect::<Vec<_>>(), [1]);
        assert_eq!(numbers.processes().collect::<Vec<_>>(), [(8, 1)]);
    }

    #[test]
    fn there_is_a_limit_and_room_again_afterwards() {
        let mut numbers = Numbers::default();
        let all = (0..MOST as u64).all(|page| numbers.number((1, 0), page * 4096, 0).is_some());
        assert!(all && numbers.number((2, 0), 0, 0).is_none() && numbers.room() == 0);
        numbers.forget(1, |_| false);
        assert_eq!(numbers.number((2, 0), 0, 0), Some(0));
    }
}
