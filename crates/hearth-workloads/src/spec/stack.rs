//! An LRU stack of numbered items: which item was used so many others ago, and moving it to the front.
//!
//! Each item lies in the slot of the time when it was last used; a Fenwick tree counts the slots that are taken.
//! Finding the item at a depth and moving it are O(log n). When the slots have run out, the items move together.

/// Marks a slot that no item lies in.
const EMPTY: u32 = u32::MAX;

/// Items from the most recently used, at depth 0, down to the least recently used.
pub(crate) struct Stack {
    /// The item that was last used at each time.
    slots: Vec<u32>,
    /// A Fenwick tree, from index 1, of how many slots are taken.
    taken: Vec<u32>,
    /// The next time.
    now: usize,
    len: usize,
}

impl Stack {
    /// A stack of the items from 0 up to `len`, used in this order.
    pub(crate) fn new(len: usize) -> Self {
        let slots = (2 * len).next_power_of_two();
        let mut stack = Self { slots: vec![EMPTY; slots], taken: vec![0; slots + 1], now: len, len };
        (0..len).for_each(|item| stack.slots[item] = item as u32);
        stack.count_front();
        stack
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Uses the item at `depth`, below [`len`](Self::len): it moves to the front.
    pub(crate) fn touch(&mut self, depth: usize) -> u32 {
        if self.now == self.slots.len() {
            self.move_together();
        }
        let at = self.slot_of(self.len - depth);
        let item = std::mem::replace(&mut self.slots[at], EMPTY);
        self.count(at, u32::MAX);
        self.slots[self.now] = item;
        self.count(self.now, 1);
        self.now += 1;
        item
    }

    /// The slot of the `nth` item from the least recently used, from 1.
    fn slot_of(&self, nth: usize) -> usize {
        let (mut at, mut missing) = (0, nth as u32);
        let mut step = self.slots.len();
        while step > 0 {
            if let Some(&taken) = self.taken.get(at + step)
                && taken < missing
            {
                at += step;
                missing -= taken;
            }
            step /= 2;
        }
        at
    }

    /// Adds to the count of a slot, modulo 2^32.
    fn count(&mut self, slot: usize, more: u32) {
        let mut at = slot + 1;
        while at < self.taken.len() {
            self.taken[at] = self.taken[at].wrapping_add(more);
            at += at & at.wrapping_neg();
        }
    }

    /// Moves all items to the first slots, in order.
    fn move_together(&mut self) {
        let mut free = 0;
        for at in 0..self.slots.len() {
            let item = std::mem::replace(&mut self.slots[at], EMPTY);
            if item != EMPTY {
                self.slots[free] = item;
                free += 1;
            }
        }
        self.now = free;
        self.count_front();
    }

    /// Counts anew, where the first slots are taken and no others.
    fn count_front(&mut self) {
        for at in 1..self.taken.len() {
            let covered = at & at.wrapping_neg();
            self.taken[at] = self.len.saturating_sub(at - covered).min(covered) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_come_as_from_a_list(len in 1..40usize, draws in prop::collection::vec(0..1000usize, 0..400)) {
            let mut stack = Stack::new(len);
            let mut list: Vec<u32> = (0..len as u32).rev().collect();
            for draw in draws {
                let depth = draw % len;
                let item = list.remove(depth);
                list.insert(0, item);
                prop_assert_eq!(stack.touch(depth), item);
            }
        }
    }

    #[test]
    fn at_one_depth_items_come_in_the_order_in_which_they_were_used() {
        let mut stack = Stack::new(10);
        let items: Vec<u32> = (0..8).map(|_| stack.touch(3)).collect();
        assert_eq!(items, [6, 7, 8, 9, 6, 7, 8, 9]);
    }
}
