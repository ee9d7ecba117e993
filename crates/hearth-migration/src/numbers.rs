//! Numbers for the planner: which page of which process each of its pages is.

use super::units::Unit;
use std::collections::HashMap;

/// Pages that are known at a time.
const MOST: usize = 256 << 10;

/// Pages by number, and numbers by page.
#[derive(Debug, Default)]
pub struct Numbers {
    pages: Vec<(i32, Unit)>,
    free: Vec<u32>,
    by_process: HashMap<i32, HashMap<u64, u32>>,
}

impl Numbers {
    /// The number of a page, and whether it is new; `None` if there are too many.
    pub fn number(&mut self, pid: i32, unit: Unit) -> Option<(u32, bool)> {
        let of_process = self.by_process.get(&pid);
        if let Some(&number) = of_process.and_then(|pages| pages.get(&unit.address)) {
            let known = &mut self.pages[number as usize].1;
            let is_new = *known != unit;
            *known = unit;
            return Some((number, is_new));
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.pages.len() < MOST => {
                self.pages.push((pid, unit));
                self.pages.len() as u32 - 1
            }
            None => return None,
        };
        self.pages[number as usize] = (pid, unit);
        self.by_process.entry(pid).or_default().insert(unit.address, number);
        Some((number, true))
    }

    /// How many pages there is room for.
    pub fn room(&self) -> usize {
        MOST - self.pages.len() + self.free.len()
    }

    /// Which page has a number.
    pub fn page(&self, number: u32) -> Option<(i32, Unit)> {
        let (pid, unit) = *self.pages.get(number as usize)?;
        (self.by_process.get(&pid)?.get(&unit.address) == Some(&number)).then_some((pid, unit))
    }

    /// The numbers of a process's pages, each with its size.
    pub fn of(&self, pid: i32) -> impl Iterator<Item = (u32, Unit)> + '_ {
        let numbers = self.by_process.get(&pid).into_iter().flat_map(|pages| pages.values());
        numbers.map(|&number| (number, self.pages[number as usize].1))
    }

    /// Gives back the numbers of a process's pages that are not to be kept.
    pub fn forget(&mut self, pid: i32, mut keep: impl FnMut(u32) -> bool, mut gone: impl FnMut(u32)) {
        let Some(pages) = self.by_process.get_mut(&pid) else { return };
        pages.retain(|_, &mut number| {
            let kept = keep(number);
            if !kept {
                gone(number);
                self.free.push(number);
            }
            kept
        });
        if pages.is_empty() {
            self.by_process.remove(&pid);
        }
        if self.by_process.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{HUGE_BYTES, PAGE_BYTES};

    const fn small(address: u64) -> Unit {
        Unit { address, bytes: PAGE_BYTES }
    }

    #[test]
    fn a_page_keeps_its_number_until_it_is_forgotten() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.number(7, small(0)), Some((0, true)));
        assert_eq!(numbers.number(8, small(0)), Some((1, true)));
        assert_eq!(numbers.number(7, small(0)), Some((0, false)));
        let huge = Unit { address: 0, bytes: HUGE_BYTES };
        assert_eq!(numbers.number(7, huge), Some((0, true)));
        assert_eq!(numbers.page(0), Some((7, huge)));
        let mut gone = Vec::new();
        numbers.forget(7, |_| false, |number| gone.push(number));
        assert_eq!((gone, numbers.page(0)), (vec![0], None));
        assert_eq!(numbers.number(8, small(4096)), Some((0, true)));
        assert_eq!(numbers.of(8).count(), 2);
        numbers.forget(8, |number| number == 1, |_| ());
        assert_eq!(numbers.of(8).collect::<Vec<_>>(), [(1, small(0))]);
    }

    #[test]
    fn there_is_a_limit_and_room_again_afterwards() {
        let mut numbers = Numbers::default();
        let all = (0..MOST as u64).all(|page| numbers.number(1, small(page * PAGE_BYTES)).is_some());
        assert!(all && numbers.number(2, small(0)).is_none());
        numbers.forget(1, |_| false, |_| ());
        assert_eq!(numbers.number(2, small(0)), Some((0, true)));
    }
}
