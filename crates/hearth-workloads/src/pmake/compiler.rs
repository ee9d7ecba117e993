//! A synthetic compiler: stands for the C compiler of the early nineties, whose insides cannot be had.
//!
//! Five passes go over the file unit by unit (a part of a header for the preprocessor, a function for the
//! others). A unit is read; its tokens are looked up in a hash table of symbols and become nodes of a
//! tree in fresh memory; the tree is walked several times, each node calling into the pass's large
//! text; and the result is written block by block. Text and memory add up to the size that the paper about
//! memory gives its make. The cycles of a visit, the lines of a unit and how often it waits are tuned to what
//! the paper about caches measured: a file of 460 lines takes some four seconds of a CPU and its misses (table
//! V), and why dispatch intervals end, after how long (tables II and III).

use super::files::{BLOCK_BYTES, Files};
use super::text::Walk;
use super::tree::{Heap, Symbols};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use rand_core::Rng;
use rand_pcg::Pcg32;
use std::rc::Rc;

/// A pass of the compiler.
struct Pass {
    /// Bytes of its text.
    text_bytes: u64,
    /// Whether it works on headers, rather than functions.
    preprocesses: bool,
    /// Walks over the tree of a unit.
    walks: u64,
    /// Cycles of a visit to a node, beside the text that it calls and its references.
    visit_cycles: u64,
    /// Units in a hundred for which a block is read from disk.
    reads_percent: u32,
    /// Units in a hundred after which a block of the result is full.
    writes_percent: u32,
}

const PASSES: [Pass; 5] = [
    // Preprocessor.
    Pass {
        text_bytes: 48 << 10,
        preprocesses: true,
        walks: 1,
        visit_cycles: 250,
        reads_percent: 20,
        writes_percent: 40,
    },
    // Parser.
    Pass {
        text_bytes: 320 << 10,
        preprocesses: false,
        walks: 6,
        visit_cycles: 960,
        reads_percent: 55,
        writes_percent: 40,
    },
    // Optimizer.
    Pass {
        text_bytes: 400 << 10,
        preprocesses: false,
        walks: 7,
        visit_cycles: 960,
        reads_percent: 45,
        writes_percent: 40,
    },
    // Code generator.
    Pass {
        text_bytes: 240 << 10,
        preprocesses: false,
        walks: 5,
        visit_cycles: 960,
        reads_percent: 45,
        writes_percent: 40,
    },
    // Assembler.
    Pass {
        text_bytes: 128 << 10,
        preprocesses: false,
        walks: 4,
        visit_cycles: 780,
        reads_percent: 45,
        writes_percent: 40,
    },
];

/// Parts of headers that a file includes, and the lines of one on average.
const HEADERS: usize = 90;
const HEADER_LINES: usize = 14;
/// Lines of a function on average; functions differ by up to two thirds.
const FUNCTION_LINES: usize = 18;
/// Tokens of a line that become nodes.
const TOKENS: usize = 8;
/// Symbols of a file, and those that one function uses most of the time.
const SYMBOLS: u32 = 600;
const LOCAL_SYMBOLS: u32 = 24;
/// One token in so many is any symbol of the file.
const TOKENS_PER_FAR_SYMBOL: u32 = 4;
/// System calls to start a pass: it is executed afresh, and opens its files.
const START_CALLS: usize = 8;

/// The compiler's text, shared by all compilations.
pub struct Toolchain {
    texts: Vec<Code>,
}

impl Toolchain {
    /// Loads the compiler.
    pub fn new(memory: &Memory) -> Self {
        Self { texts: PASSES.iter().map(|pass| memory.code(pass.text_bytes)).collect() }
    }
}

/// One compilation.
pub struct Compiler {
    toolchain: Rc<Toolchain>,
    files: Files,
    random: Pcg32,
}

/// A pass at work: its memory is its own.
struct Work {
    pass: &'static Pass,
    walk: Walk,
    symbols: Symbols,
    heap: Heap,
    block: Array<u64>,
    tokens: u64,
}

impl Compiler {
    /// A compilation with its own random numbers.
    pub fn new(toolchain: Rc<Toolchain>, files: Files, random: Pcg32) -> Self {
        Self { toolchain, files, random }
    }

    /// Compiles a file of so many lines.
    ///
    /// # Errors
    /// What is wrong with the result.
    pub fn compile(mut self, cpu: &mut Cpu<'_>, lines: usize) -> Result<(), &'static str> {
        for (pass, text) in PASSES.iter().zip(self.toolchain.texts.clone()) {
            let units = self.units(pass, lines);
            let nodes = units.iter().sum::<usize>() * TOKENS;
            let memory = cpu.memory();
            let mut work = Work {
                pass,
                walk: Walk::new(text, &mut self.random),
                symbols: Symbols::new(&memory),
                heap: Heap::new(&memory, nodes),
                block: memory.array(BLOCK_BYTES as usize / 8, Placement::FirstTouch),
                tokens: 0,
            };
            (0..START_CALLS).for_each(|_| cpu.system_call());
            for lines in units {
                self.unit(cpu, &mut work, lines)?;
            }
            if work.symbols.seen() != work.tokens {
                return Err("the symbol table lost a symbol");
            }
        }
        Ok(())
    }

    /// The lines of each unit of a pass.
    fn units(&mut self, pass: &Pass, lines: usize) -> Vec<usize> {
        let mut vary = |mean: usize| mean / 3 + self.random.next_u32() as usize % (mean * 4 / 3);
        if pass.preprocesses {
            return (0..HEADERS).map(|_| vary(HEADER_LINES)).collect();
        }
        let mut units = Vec::new();
        let mut left = lines;
        while left > 0 {
            let unit = vary(FUNCTION_LINES).clamp(1, left);
            units.push(unit);
            left -= unit;
        }
        units
    }

    fn happens(&mut self, percent: u32) -> bool {
        self.random.next_u32() % 100 < percent
    }

    /// A symbol that a token of a function names.
    fn symbol(&mut self, function: u32) -> u32 {
        let drawn = self.random.next_u32();
        if drawn.is_multiple_of(TOKENS_PER_FAR_SYMBOL) {
            drawn / TOKENS_PER_FAR_SYMBOL % SYMBOLS
        } else {
            (function + drawn / TOKENS_PER_FAR_SYMBOL % LOCAL_SYMBOLS) % SYMBOLS
        }
    }

    fn unit(&mut self, cpu: &mut Cpu<'_>, work: &mut Work, lines: usize) -> Result<(), &'static str> {
        self.files.ask_server(cpu);
        if self.happens(work.pass.reads_percent) {
            self.files.read(cpu, &work.block);
        }
        let function = self.random.next_u32() % SYMBOLS;
        let (mut root, mut wanted) = (0, 0);
        for _ in 0..lines * TOKENS {
            let symbol = self.symbol(function);
            work.symbols.see(cpu, symbol);
            work.walk.call(cpu, &mut self.random);
            cpu.compute(work.pass.visit_cycles);
            let node = work.heap.add(cpu, root, symbol);
            root = if root == 0 { node } else { root };
            wanted += u64::from(symbol);
            work.tokens += 1;
        }
        for _ in 0..work.pass.walks {
            let Work { heap, walk, pass, .. } = work;
            let sum = heap.walk(cpu, root, |cpu| {
                walk.call(cpu, &mut self.random);
                cpu.compute(pass.visit_cycles);
            });
            if sum != wanted {
                return Err("a tree lost a node");
            }
        }
        if self.happens(work.pass.writes_percent) {
            self.files.write(cpu, &work.block);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pmake::tree::Node;

    /// Bytes that a pass over so many lines works in.
    fn memory_of(lines: usize) -> usize {
        lines * TOKENS * size_of::<Node>() + Symbols::BYTES + BLOCK_BYTES as usize
    }

    #[test]
    fn four_compilations_work_in_the_memory_that_the_paper_says() {
        let text: u64 = PASSES.iter().map(|pass| pass.text_bytes).sum();
        let at_a_time = text as usize + 4 * memory_of(HEADERS * HEADER_LINES);
        let kilobytes = at_a_time >> 10;
        assert!((1_773..2_955).contains(&kilobytes), "{kilobytes} KB, the paper has 2,364");
    }
}
