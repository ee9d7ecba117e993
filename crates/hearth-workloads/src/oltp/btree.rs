//! A B-tree of 64-bit keys and values whose nodes lie in an array of words.
//!
//! A node takes 128 words: `[count | leaf] [unused] [63 keys] [63 values]`. In a leaf, value `i`
//! belongs to key `i`; in an inner node, value `i` is the child whose keys are at least key `i` and
//! below key `i + 1` (key 0 counts as smaller than all). Full nodes are split on the way down, so
//! that an insertion never turns back.

/// Words of a node.
pub const NODE_WORDS: usize = 128;
/// Keys of a node at most.
pub const MAX_KEYS: usize = 63;

const KEYS: usize = 2;
const VALUES: usize = KEYS + MAX_KEYS;
/// Set in the first word of a leaf.
const LEAF: u64 = 1 << 32;

/// Words that can be read and written: simulated memory, or plain memory in tests and checks.
pub trait Words {
    /// Reads a word.
    fn read(&mut self, at: usize) -> u64;
    /// Writes a word.
    fn write(&mut self, at: usize, value: u64);
}

/// Where the root's number is.
const ROOT_AT: usize = 0;
/// Where the number of nodes in use is.
const USED_AT: usize = 1;

/// Words that a tree of up to `keys` keys may need, inserted in any order.
pub fn words_for(keys: usize) -> usize {
    let leaves = keys / (MAX_KEYS / 2) + 2;
    (1 + leaves + leaves / 15 + 8) * NODE_WORDS
}

/// Makes an empty tree.
pub fn create(words: &mut impl Words) {
    words.write(ROOT_AT, 1);
    words.write(USED_AT, 2);
    words.write(NODE_WORDS, LEAF);
}

#[derive(Clone, Copy)]
struct Node {
    base: usize,
    count: usize,
    leaf: bool,
}

fn load(words: &mut impl Words, number: u64) -> Node {
    let base = number as usize * NODE_WORDS;
    let head = words.read(base);
    Node { base, count: (head & 0xFFFF_FFFF) as usize, leaf: head & LEAF != 0 }
}

impl Node {
    fn set_count(&mut self, words: &mut impl Words, count: usize) {
        self.count = count;
        words.write(self.base, count as u64 | if self.leaf { LEAF } else { 0 });
    }

    fn key(&self, words: &mut impl Words, at: usize) -> u64 {
        words.read(self.base + KEYS + at)
    }

    fn value(&self, words: &mut impl Words, at: usize) -> u64 {
        words.read(self.base + VALUES + at)
    }

    fn put(&self, words: &mut impl Words, at: usize, key: u64, value: u64) {
        words.write(self.base + KEYS + at, key);
        words.write(self.base + VALUES + at, value);
    }

    /// The number of keys, from `start`, that are at most `key`, plus `start`.
    fn up_to(&self, words: &mut impl Words, start: usize, key: u64) -> usize {
        let (mut low, mut high) = (start, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(words, middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The child that may hold a key.
    fn child_for(&self, words: &mut impl Words, key: u64) -> usize {
        self.up_to(words, 1, key) - 1
    }

    /// Makes room at `at`, and puts an entry there.
    fn insert(&mut self, words: &mut impl Words, at: usize, key: u64, value: u64) {
        for from in (at..self.count).rev() {
            let (key, value) = (self.key(words, from), self.value(words, from));
            self.put(words, from + 1, key, value);
        }
        self.put(words, at, key, value);
        self.set_count(words, self.count + 1);
    }
}

fn allocate(words: &mut impl Words) -> u64 {
    let number = words.read(USED_AT);
    words.write(USED_AT, number + 1);
    number
}

/// Moves the upper half of a full child to a new node beside it.
fn split(words: &mut impl Words, parent: &mut Node, at: usize) {
    let number = parent.value(words, at);
    let mut lower = load(words, number);
    let upper_number = allocate(words);
    let mut upper = Node { base: upper_number as usize * NODE_WORDS, count: 0, leaf: lower.leaf };
    let keep = lower.count / 2;
    for from in keep..lower.count {
        let (key, value) = (lower.key(words, from), lower.value(words, from));
        upper.put(words, from - keep, key, value);
    }
    upper.set_count(words, lower.count - keep);
    lower.set_count(words, keep);
    let first = upper.key(words, 0);
    parent.insert(words, at + 1, first, upper_number);
}

/// A root with one child, the old root.
fn grow(words: &mut impl Words, old: u64) -> Node {
    let number = allocate(words);
    let mut root = Node { base: number as usize * NODE_WORDS, count: 0, leaf: false };
    root.put(words, 0, 0, old);
    root.set_count(words, 1);
    words.write(ROOT_AT, number);
    root
}

/// The leaf where a key is if it is there. `descend` is told of each node above, and of the child that is next.
fn leaf_for<W: Words>(
    words: &mut W,
    key: u64,
    mut visit: impl FnMut(&mut W, u64),
    mut descend: impl FnMut(&mut W, &Node, usize),
) -> Node {
    let mut number = words.read(ROOT_AT);
    loop {
        visit(words, number);
        let node = load(words, number);
        if node.leaf {
            return node;
        }
        let child = node.child_for(words, key);
        descend(words, &node, child);
        number = node.value(words, child);
    }
}

/// Where a key is in its leaf.
fn position<W: Words>(words: &mut W, key: u64, visit: impl FnMut(&mut W, u64)) -> Option<(Node, usize)> {
    let leaf = leaf_for(words, key, visit, |_, _, _| ());
    let at = leaf.up_to(words, 0, key).checked_sub(1)?;
    (leaf.key(words, at) == key).then_some((leaf, at))
}

/// The value of a key. `visit` is told of each node on the way, by number.
pub fn find<W: Words>(words: &mut W, key: u64, visit: impl FnMut(&mut W, u64)) -> Option<u64> {
    position(words, key, visit).map(|(leaf, at)| leaf.value(words, at))
}

/// Gives a key that is there another value. False if it is not there.
pub fn set<W: Words>(words: &mut W, key: u64, value: u64) -> bool {
    let found = position(words, key, |_, _| ());
    if let Some((leaf, at)) = found {
        words.write(leaf.base + VALUES + at, value);
    }
    found.is_some()
}

/// Takes a key out. False if it is not there. A leaf keeps its place in the tree even when it is empty.
pub fn remove<W: Words>(words: &mut W, key: u64) -> bool {
    let Some((mut leaf, at)) = position(words, key, |_, _| ()) else { return false };
    for from in at + 1..leaf.count {
        let (key, value) = (leaf.key(words, from), leaf.value(words, from));
        leaf.put(words, from - 1, key, value);
    }
    let count = leaf.count - 1;
    leaf.set_count(words, count);
    true
}

/// Shows `each` the keys from `from` up to `below`, rising, with their values, until it says that it has seen
/// enough. `visit` is told of each node on the way.
pub fn scan<W: Words>(
    words: &mut W,
    mut from: u64,
    below: u64,
    mut visit: impl FnMut(&mut W, u64),
    mut each: impl FnMut(u64, u64) -> bool,
) {
    loop {
        // The first key that is beyond the leaf.
        let mut beyond = None;
        let leaf = leaf_for(words, from, &mut visit, |words, node, child| {
            if child + 1 < node.count {
                beyond = Some(node.key(words, child + 1));
            }
        });
        let first = from.checked_sub(1).map_or(0, |before| leaf.up_to(words, 0, before));
        for at in first..leaf.count {
            let key = leaf.key(words, at);
            if key >= below || !each(key, leaf.value(words, at)) {
                return;
            }
        }
        match beyond {
            Some(next) if next < below => from = next,
            _ => return,
        }
    }
}

/// Puts in a key that is not there, with its value.
pub fn insert(words: &mut impl Words, key: u64, value: u64) {
    let root = words.read(ROOT_AT);
    let mut node = load(words, root);
    if node.count == MAX_KEYS {
        node = grow(words, root);
        split(words, &mut node, 0);
    }
    while !node.leaf {
        let mut at = node.child_for(words, key);
        let number = node.value(words, at);
        let child = load(words, number);
        if child.count == MAX_KEYS {
            split(words, &mut node, at);
            at = node.child_for(words, key);
            let number = node.value(words, at);
            node = load(words, number);
        } else {
            node = child;
        }
    }
    let at = node.up_to(words, 0, key);
    node.insert(words, at, key, value);
}

/// Checks order, depth and fill of all nodes; returns the keys with their values, rising.
///
/// # Errors
/// What is wrong.
pub fn check(words: &mut impl Words) -> Result<Vec<(u64, u64)>, String> {
    check_filled(words, 1)
}

/// The same of a tree from which keys were removed: leaves may be empty.
///
/// # Errors
/// What is wrong.
pub fn check_after_removals(words: &mut impl Words) -> Result<Vec<(u64, u64)>, String> {
    check_filled(words, 0)
}

/// The same, with so many keys at least in a leaf below the root.
fn check_filled(words: &mut impl Words, least: usize) -> Result<Vec<(u64, u64)>, String> {
    let mut entries = Vec::new();
    let mut leaf_depth = None;
    let root = words.read(ROOT_AT);
    // Nodes still to be looked at: number, depth, keys from, keys below.
    let mut stack = vec![(root, 0, 0, u64::MAX)];
    while let Some((number, depth, from, below)) = stack.pop() {
        let node = load(words, number);
        let least = match (node.leaf, number == root) {
            (true, true) => 0,
            (true, false) => least,
            (false, _) => 1,
        };
        if !(least..=MAX_KEYS).contains(&node.count) {
            return Err(format!("node {number} holds {} keys", node.count));
        }
        let keys: Vec<u64> = (0..node.count).map(|at| node.key(words, at)).collect();
        let inside = if node.leaf { &keys[..] } else { &keys[1..] };
        if !inside.is_sorted_by(|a, b| a < b) || inside.iter().any(|key| !(from..below).contains(key)) {
            return Err(format!("node {number} has keys out of order"));
        }
        if node.leaf {
            if *leaf_depth.get_or_insert(depth) != depth {
                return Err(format!("leaf {number} is at another depth than others"));
            }
            for (at, &key) in keys.iter().enumerate() {
                entries.push((key, node.value(words, at)));
            }
        } else {
            for at in (0..node.count).rev() {
                let from = if at == 0 { from } else { keys[at] };
                let below = keys.get(at + 1).copied().unwrap_or(below);
                stack.push((node.value(words, at), depth + 1, from, below));
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Words for Vec<u64> {
        fn read(&mut self, at: usize) -> u64 {
            self[at]
        }

        fn write(&mut self, at: usize, value: u64) {
            self[at] = value;
        }
    }

    fn tree(keys: impl Iterator<Item = u64>, count: usize) -> Vec<u64> {
        let mut words = vec![0; words_for(count)];
        create(&mut words);
        keys.for_each(|key| insert(&mut words, key, key * 3));
        words
    }

    /// Keys in an order that looks random: a stride that has no factor in common with the count.
    fn scattered(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |i| i * 7919 % count)
    }

    #[test]
    fn all_keys_are_found_and_no_others() {
        let mut words = tree(scattered(10_000), 10_000);
        for key in 0..10_000 {
            assert_eq!(find(&mut words, key, |_, _| ()), Some(key * 3));
        }
        assert_eq!(find(&mut words, 10_000, |_, _| ()), None);
    }

    #[test]
    fn invariants_hold_after_each_order_of_insertion() {
        let wanted: Vec<(u64, u64)> = (0..5000).map(|key| (key, key * 3)).collect();
        assert_eq!(check(&mut tree(0..5000, 5000)).unwrap(), wanted);
        assert_eq!(check(&mut tree((0..5000).rev(), 5000)).unwrap(), wanted);
        assert_eq!(check(&mut tree(scattered(5000), 5000)).unwrap(), wanted);
    }

    proptest! {
        #[test]
        fn a_tree_changes_as_a_map_does(changes in prop::collection::vec((0..4u8, 0..700u64), 0..3000)) {
            let mut words = tree(std::iter::empty(), 1000);
            let mut map = BTreeMap::new();
            for (change, key) in changes {
                match change {
                    0 => prop_assert_eq!(remove(&mut words, key), map.remove(&key).is_some()),
                    1 => {
                        let there = map.get_mut(&key).map(|value| *value = key + 1).is_some();
                        prop_assert_eq!(set(&mut words, key, key + 1), there);
                    }
                    _ if !map.contains_key(&key) => {
                        insert(&mut words, key, key);
                        map.insert(key, key);
                    }
                    _ => prop_assert_eq!(find(&mut words, key, |_, _| ()), map.get(&key).copied()),
                }
            }
            prop_assert_eq!(check_after_removals(&mut words).unwrap(), map.clone().into_iter().collect::<Vec<_>>());
            let mut seen = Vec::new();
            scan(&mut words, 100, 600, |_, _| (), |key, value| {
                seen.push((key, value));
                seen.len() < 200
            });
            let wanted: Vec<_> = map.range(100..600).map(|(&key, &value)| (key, value)).take(200).collect();
            prop_assert_eq!(seen, wanted);
        }
    }

    #[test]
    fn an_empty_tree_is_sound() {
        assert_eq!(check(&mut tree(std::iter::empty(), 10)).unwrap(), []);
    }

    #[test]
    fn a_damaged_tree_is_noticed() {
        let mut words = tree(0..500, 500);
        words[2 * NODE_WORDS + KEYS + 3] = 9999;
        assert!(check(&mut words).is_err());
    }

    #[test]
    fn a_search_visits_one_node_of_each_level() {
        let mut words = tree(0..80_000, 80_000);
        let mut visited = 0;
        find(&mut words, 77, |_, _| visited += 1);
        assert_eq!(visited, 4);
    }
}
