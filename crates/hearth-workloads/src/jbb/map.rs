//! A balanced binary tree of objects: the benchmark's tables are binary trees.

use crate::filled::touch_pages;
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;
use rand_core::Rng;

/// No child.
const NONE: u64 = u64::MAX;

/// A node as Java has it: a header, the key, and three references.
#[derive(Clone, Copy, Default)]
struct Node {
    _header: u64,
    key: u64,
    value: u64,
    children: [u64; 2],
}

/// Cycles to go from a node to its child, beside the references.
const STEP_CYCLES: u64 = 8;

/// A map from the numbers below a count to objects.
pub(super) struct Map {
    nodes: Array<Node>,
    root: u64,
}

impl Map {
    /// A map of `count` keys, at least one, each to its own number. The nodes lie in an order drawn at random.
    pub(super) fn new(memory: &Memory, count: usize, random: &mut impl Rng) -> Self {
        let nodes = memory.array(count, Placement::FirstTouch);
        let mut places: Vec<u64> = (0..count as u64).collect();
        for last in (1..count).rev() {
            places.swap(last, random.next_u32() as usize % (last + 1));
        }
        let middle = |keys: [u64; 2]| (keys[0] + keys[1]) / 2;
        let mut left = vec![[0, count as u64]];
        while let Some(keys) = left.pop() {
            let key = middle(keys);
            let children = [[keys[0], key], [key + 1, keys[1]]].map(|keys| {
                if keys[0] == keys[1] {
                    return NONE;
                }
                left.push(keys);
                places[middle(keys) as usize]
            });
            nodes.poke(places[key as usize] as usize, Node { _header: 0, key, value: key, children });
        }
        Self { root: places[middle([0, count as u64]) as usize], nodes }
    }

    /// Gives all nodes memory.
    pub(super) fn touch(&self, cpu: &mut Cpu<'_>) {
        touch_pages(cpu, self.nodes.address(0), (self.nodes.len() * size_of::<Node>()) as u64);
    }

    /// The object of a key.
    pub(super) fn get(&self, cpu: &mut Cpu<'_>, key: u64) -> Option<u64> {
        let mut at = self.root;
        while at != NONE {
            let node = self.nodes.peek(at as usize);
            let address = self.nodes.address(at as usize);
            cpu.compute(STEP_CYCLES);
            cpu.read(address + 8);
            if node.key == key {
                cpu.read(address + 16);
                return Some(node.value);
            }
            let side = usize::from(key > node.key);
            cpu.read(address + 24 + 8 * side as u64);
            at = node.children[side];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Built, trial};
    use hearth_sim::program::Application;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg32;

    #[test]
    fn every_key_is_found_and_no_other() {
        for count in [1, 2, 3, 1000] {
            trial::run(|memory| {
                let map = Map::new(memory, count, &mut Pcg32::seed_from_u64(1));
                let mut application = Application::new("map");
                application.task("map", move |cpu| {
                    (0..count as u64).for_each(|key| assert_eq!(map.get(cpu, key), Some(key)));
                    assert_eq!(map.get(cpu, count as u64), None);
                });
                Built::new(application, || Ok(()))
            });
        }
    }
}
