//! A synthetic C compiler: stands for cpp, cc1 and as of about 1990.
//!
//! It has what such a program has. Its text is large and is executed function by function, a few
//! functions far more often than the rest. Each token looks a name up in a hash table of symbols and
//! appends a node to the tree of the function being read; at a function's end the tree is walked by
//! several passes, each of which changes the nodes. Includes are read from the disk, output and
//! temporary files go to it block by block. The tables and trees are real, and are checked.

use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Functions of the compiler: 384 KB of text, as cc1 had on a MIPS.
const FUNCTIONS: u32 = 512;
const FUNCTION_BYTES: u64 = 768;
/// Functions executed for a token: the scanner, the parser, the action.
const CALLS_A_TOKEN: u32 = 3;
/// Cycles of a call, beside its references: its loops go over its text a few times.
const CALL_CYCLES: u64 = 420;
/// Tokens of a line, comments and included lines counted in.
const TOKENS_A_LINE: u32 = 44;
/// Lines of a function of the program being compiled.
const LINES_A_FUNCTION: u32 = 30;
/// Passes over the tree of a function: folding, allocation of registers, output.
const PASSES: usize = 3;
/// Cycles for a node in a pass, beside its references.
const NODE_CYCLES: u64 = 120;
/// Different names in a file, and buckets of their table.
const NAMES: u32 = 1200;
const BUCKETS: usize = 1024;
/// Bytes read at a time: a block of the file system.
const READ_BYTES: u64 = 8 << 10;
/// Tokens from one use of a file to the next: most come in bursts (an include opens the next one), the
/// others while a function is compiled. Means of exponential distributions, and the share of bursts in
/// percent.
const BURST_TOKENS: f64 = 90.0;
const STRETCH_TOKENS: f64 = 420.0;
const BURST_PERCENT: u32 = 60;
/// Of the uses of a file, the share in percent that writes a block; the others read one.
const WRITE_PERCENT: u32 = 28;

/// A file to compile.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Its length.
    pub lines: u32,
    /// Decides what is in it.
    pub seed: u64,
}

/// A node of the tree, 32 bytes.
#[derive(Clone, Copy, Default)]
struct Node {
    name: u32,
    kind: u32,
    value: u64,
    link: u64,
    passes: u64,
}

/// A symbol, chained in its bucket.
#[derive(Clone, Copy, Default)]
struct Symbol {
    name: u32,
    /// 1 + index of the next one.
    next: u32,
    uses: u64,
}

/// The compiler's program, shared by all processes that run it.
#[derive(Clone)]
pub struct Compiler {
    text: Code,
}

/// One process compiling one file.
struct Process<'a> {
    text: Code,
    random: Pcg32,
    buckets: Array<u32>,
    symbols: Array<Symbol>,
    symbol_count: usize,
    nodes: Array<Node>,
    node_count: usize,
    until_file: u32,
    write_block: &'a dyn Fn(&mut Cpu<'_>),
}

impl Compiler {
    /// Sets the text aside.
    pub fn new(memory: &Memory) -> Self {
        Self { text: memory.code(u64::from(FUNCTIONS) * FUNCTION_BYTES) }
    }

    /// Compiles a file; `write_block` hands a block to be written. Says what is wrong with the tables if
    /// something is.
    pub fn compile(
        &self,
        cpu: &mut Cpu<'_>,
        source: &Source,
        write_block: &dyn Fn(&mut Cpu<'_>),
    ) -> Result<(), String> {
        let memory = cpu.memory();
        let tokens_a_function = (TOKENS_A_LINE * LINES_A_FUNCTION) as usize;
        let mut process = Process {
            text: self.text,
            random: Pcg32::seed_from_u64(source.seed),
            buckets: memory.array(BUCKETS, Placement::FirstTouch),
            symbols: memory.array(NAMES as usize, Placement::FirstTouch),
            symbol_count: 0,
            nodes: memory.array(tokens_a_function, Placement::FirstTouch),
            node_count: 0,
            until_file: 0,
            write_block,
        };
        cpu.io(READ_BYTES);
        let mut uses = 0;
        for line in 0..source.lines {
            (0..TOKENS_A_LINE).for_each(|_| process.token(cpu));
            uses += u64::from(TOKENS_A_LINE);
            if (line + 1) % LINES_A_FUNCTION == 0 || line + 1 == source.lines {
                process.end_function(cpu)?;
            }
        }
        process.check(uses)
    }
}

impl Process<'_> {
    /// A number below `bound`, small ones far more often.
    fn skewed(&mut self, bound: u32) -> u32 {
        let uniform = u64::from(self.random.next_u32());
        let cubed = ((uniform * uniform) >> 32) * uniform >> 32;
        ((cubed * u64::from(bound)) >> 32) as u32
    }

    fn call(&mut self, cpu: &mut Cpu<'_>) {
        let function = self.skewed(FUNCTIONS);
        cpu.fetch(self.text.part(u64::from(function) * FUNCTION_BYTES, FUNCTION_BYTES));
        cpu.compute(CALL_CYCLES);
    }

    fn token(&mut self, cpu: &mut Cpu<'_>) {
        (0..CALLS_A_TOKEN).for_each(|_| self.call(cpu));
        let name = self.skewed(NAMES);
        let symbol = self.look_up(cpu, name);
        let node = Node { name, kind: symbol as u32 % 64, value: symbol, link: self.node_count as u64 / 2, passes: 0 };
        self.nodes.set(cpu, self.node_count, node);
        self.node_count += 1;
        self.use_files(cpu);
    }

    /// Finds or enters a name in the table of symbols; returns how often it has been used.
    fn look_up(&mut self, cpu: &mut Cpu<'_>, name: u32) -> u64 {
        let bucket = (name.wrapping_mul(0x9E37_79B1) >> 16) as usize % BUCKETS;
        let first = self.buckets.get(cpu, bucket);
        let mut at = first;
        while at != 0 {
            let mut symbol = self.symbols.get(cpu, at as usize - 1);
            if symbol.name == name {
                symbol.uses += 1;
                self.symbols.set(cpu, at as usize - 1, symbol);
                return symbol.uses;
            }
            at = symbol.next;
        }
        self.symbols.set(cpu, self.symbol_count, Symbol { name, next: first, uses: 1 });
        self.symbol_count += 1;
        self.buckets.set(cpu, bucket, self.symbol_count as u32);
        1
    }

    /// Walks the tree of the function that has just been read, pass by pass, and drops it.
    fn end_function(&mut self, cpu: &mut Cpu<'_>) -> Result<(), String> {
        for pass in 0..PASSES {
            for index in 0..self.node_count {
                if index % 8 == 0 {
                    self.call(cpu);
                }
                let mut node = self.nodes.get(cpu, index);
                let parent = self.nodes.get(cpu, node.link as usize);
                if node.passes != pass as u64 {
                    return Err(format!("node {index} has seen {} passes, not {pass}", node.passes));
                }
                node.value = node.value.wrapping_add(parent.value);
                node.passes += 1;
                self.nodes.set(cpu, index, node);
                cpu.compute(NODE_CYCLES);
                if index % 4 == 0 {
                    self.use_files(cpu);
                }
            }
        }
        self.node_count = 0;
        Ok(())
    }

    /// Reads or writes a block if it is time for it.
    fn use_files(&mut self, cpu: &mut Cpu<'_>) {
        if self.until_file > 0 {
            self.until_file -= 1;
            return;
        }
        let mean = if self.random.next_u32() % 100 < BURST_PERCENT { BURST_TOKENS } else { STRETCH_TOKENS };
        let uniform = (f64::from(self.random.next_u32()) + 1.0) / f64::from(u32::MAX);
        self.until_file = (-mean * uniform.ln()) as u32;
        if self.random.next_u32() % 100 < WRITE_PERCENT {
            (self.write_block)(cpu);
        } else {
            cpu.io(READ_BYTES);
        }
    }

    /// Every token was counted with one symbol, and no name has two.
    fn check(&self, tokens: u64) -> Result<(), String> {
        let symbols = (0..self.symbol_count).map(|index| self.symbols.peek(index));
        let uses: u64 = symbols.clone().map(|symbol| symbol.uses).sum();
        let mut names: Vec<u32> = symbols.map(|symbol| symbol.name).collect();
        names.sort_unstable();
        names.dedup();
        if uses != tokens || names.len() != self.symbol_count {
            return Err(format!("{uses} uses of {} names, for {tokens} tokens", names.len()));
        }
        Ok(())
    }
}
