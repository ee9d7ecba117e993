//! What a pass builds in its memory: trees of nodes in a heap that only grows, and a hash table of
//! symbols.

use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;

/// One node: what it stands for and its links, as numbers of nodes (0 for none).
#[derive(Clone, Copy, Default)]
pub struct Node {
    /// Number of the symbol.
    symbol: u32,
    /// The first operand.
    first: u32,
    /// The next operand of the same parent.
    next: u32,
    /// Walks that have been here.
    walks: u32,
    /// What a walk found out about the node.
    attribute: u64,
    _type: u64,
}

/// Operands of a node at most.
const OPERANDS: u32 = 3;

/// A heap of nodes. Node 0 is none.
pub struct Heap {
    nodes: Array<Node>,
    used: usize,
}

impl Heap {
    /// A heap in fresh memory for so many nodes.
    pub fn new(memory: &Memory, nodes: usize) -> Self {
        Self { nodes: memory.array(nodes + 1, Placement::FirstTouch), used: 1 }
    }

    /// Adds a node for a symbol to the tree that starts at `root` (0: it is a root itself): node
    /// `i` of a tree is an operand of node `(i - 1) / 3`. Returns its number.
    pub fn add(&mut self, cpu: &mut Cpu<'_>, root: u32, symbol: u32) -> u32 {
        let number = self.used.min(self.nodes.len() - 1) as u32;
        self.used += 1;
        let mut node = Node { symbol, ..Node::default() };
        if root != 0 {
            let parent = root + (number - root - 1) / OPERANDS;
            let mut above = self.nodes.get(cpu, parent as usize);
            node.next = std::mem::replace(&mut above.first, number);
            self.nodes.set(cpu, parent as usize, above);
        }
        self.nodes.set(cpu, number as usize, node);
        number
    }

    /// Visits all nodes of a tree, parents first, and gives each an attribute: the sum of the symbols
    /// up to it. Returns the sum of all.
    pub fn walk(&self, cpu: &mut Cpu<'_>, root: u32, mut visit: impl FnMut(&mut Cpu<'_>)) -> u64 {
        let mut sum = 0;
        let mut stack = vec![root];
        while let Some(number) = stack.pop() {
            let mut node = self.nodes.get(cpu, number as usize);
            visit(cpu);
            sum += u64::from(node.symbol);
            node.attribute = sum;
            node.walks += 1;
            self.nodes.set(cpu, number as usize, node);
            stack.extend([node.next, node.first].into_iter().filter(|&link| link != 0));
        }
        sum
    }
}

/// Slots of the symbol table, two words each: the symbol, and how often it was seen.
const SLOTS: usize = 2048;

/// A hash table of symbols with open addressing.
pub struct Symbols {
    words: Array<u64>,
}

impl Symbols {
    /// Bytes of a table.
    pub const BYTES: usize = 2 * SLOTS * size_of::<u64>();

    /// An empty table in fresh memory.
    pub fn new(memory: &Memory) -> Self {
        Self { words: memory.array(Self::BYTES / size_of::<u64>(), Placement::FirstTouch) }
    }

    /// Finds a symbol, or puts it in; counts that it was seen.
    pub fn see(&self, cpu: &mut Cpu<'_>, symbol: u32) {
        let wanted = u64::from(symbol) + 1;
        let mut slot = (wanted.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % SLOTS;
        for _ in 0..SLOTS {
            let found = self.words.get(cpu, 2 * slot);
            if found == wanted || found == 0 {
                let seen = self.words.get(cpu, 2 * slot + 1);
                self.words.set(cpu, 2 * slot, wanted);
                self.words.set(cpu, 2 * slot + 1, seen + 1);
                return;
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// How often symbols were seen in all.
    pub fn seen(&self) -> u64 {
        (0..SLOTS).map(|slot| self.words.peek(2 * slot + 1)).sum()
    }
}
