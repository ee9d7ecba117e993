//! Blocked multiplication of two dense matrices: `C = A * B`, 512 x 512, in blocks of 64 x 64.
//!
//! The algorithm of Lam, Rothberg and Wolf, "The Cache Performance and Optimizations of Blocked Algorithms"
//! (ASPLOS 1991): a block of B is copied, so that it does not replace itself in a direct-mapped cache. Row by row,
//! 64 elements of A are then multiplied with the whole block, into 64 elements of C: all loops run along lines. Each
//! process computes rows of C of its own; nothing is shared but A and B, which are only read.

use crate::calls::{Calls, Rates};
use crate::{Built, Description, Kind, scaled};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "matrix",
    description: "blocked multiplication of two 512 x 512 matrices in 64 x 64 blocks, 4 processes",
    kind: Kind::Real,
    source: "Torrellas, Tucker, Gupta 1995, table I",
};

/// Elements along a side of a block.
const BLOCK: usize = 64;
/// Elements of a block.
const BLOCK_ELEMENTS: usize = BLOCK * BLOCK;
/// Elements along a side of a matrix.
const SIDE: usize = 512;
/// Blocks along a side of a matrix.
const BLOCKS: usize = SIDE / BLOCK;
const PROCESSES: usize = 4;
/// Rows of C of a process, in blocks of rows.
const STRIPS: usize = BLOCKS / PROCESSES;
/// Block products of one process: each block of B with each of its strips.
const PRODUCTS: usize = BLOCKS * BLOCKS * STRIPS;

/// Rows of the block of B that are gone through at once, so that what is loaded of C and stored to it is used as often.
const UNROLLED: usize = 4;
/// Cycles of one step of the inner loop, four multiply-adds, beside its five loads and its store: six second words
/// of doubles, eight arithmetic instructions of an R3010, whose multiplier takes five cycles each time, and its part
/// of the loop's counter. Six cycles a multiply-add, without misses.
const STEP_CYCLES: u64 = 18;
/// Cycles around the inner loop: second words of what stays in registers, addresses, and the loop's set-up.
const LOOP_CYCLES: u64 = 20;
/// Calls, in rows of a block product: 2.2 and 2.1 % of the dispatch intervals end by them (table III).
const CALLS: Rates = Rates { transfer: 1600, call: 1600 };
/// Cycles to copy an element beside its load and store: their second words, and the loop.
const COPY_CYCLES: u64 = 3;
/// Text of the three inner loops, unrolled.
const LOOP_BYTES: u64 = 640;
/// Text of the loops around them.
const OUTER_BYTES: u64 = 512;
/// Entries are whole numbers below this, so that every sum is exact.
const MAX_ENTRY: u32 = 16;

/// The matrices, row by row.
#[derive(Clone)]
struct Matrices {
    a: Array<f64>,
    b: Array<f64>,
    c: Array<f64>,
    text: Code,
}

/// One block product: rows of C, in a block of its columns, get what the same rows of A have in a block of columns
/// times the block of B in these rows and those columns.
#[derive(Clone, Copy)]
struct Product {
    /// First row of A and C.
    row: usize,
    /// First column of B and C.
    column: usize,
    /// First column of A, and row of B.
    inner: usize,
}

/// Where an element is.
fn at(row: usize, column: usize) -> usize {
    row * SIDE + column
}

/// The products of one process, in order: block by block of B, each with all of its rows.
fn products(process: usize, count: usize) -> impl Iterator<Item = Product> {
    (0..count).map(move |number| {
        let (block, strip) = (number / STRIPS, number % STRIPS);
        Product {
            row: (process * STRIPS + strip) * BLOCK,
            column: block % BLOCKS * BLOCK,
            inner: block / BLOCKS * BLOCK,
        }
    })
}

/// Sets the program up; see [`crate::build`]. Scale shortens the list of block products.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let array = || memory.array(SIDE * SIDE, Placement::FirstTouch);
    let matrices =
        Matrices { a: array(), b: array(), c: array(), text: memory.code(LOOP_BYTES + OUTER_BYTES) };
    let mut random = Pcg32::seed_from_u64(seed);
    for index in 0..SIDE * SIDE {
        matrices.a.poke(index, f64::from(random.next_u32() % MAX_ENTRY));
        matrices.b.poke(index, f64::from(random.next_u32() % MAX_ENTRY));
    }
    let count = scaled(PRODUCTS, scale);
    let mut application = Application::new(DESCRIPTION.name);
    for process in 0..PROCESSES {
        let matrices = matrices.clone();
        let copy = memory.array(BLOCK_ELEMENTS, Placement::FirstTouch);
        let mut calls = Calls::new(CALLS, seed, process);
        application.task(&format!("matrix-{process}"), move |cpu| {
            for (number, product) in products(process, count).enumerate() {
                if number % STRIPS == 0 {
                    matrices.copy(cpu, product, &copy);
                }
                matrices.multiply(cpu, product, &copy, &mut calls);
            }
        });
    }
    Built::new(application, move || matrices.check(count))
}

impl Matrices {
    /// Copies a block of B.
    fn copy(&self, cpu: &mut Cpu<'_>, product: Product, copy: &Array<f64>) {
        for k in 0..BLOCK {
            for j in 0..BLOCK {
                let element = self.b.get(cpu, at(product.inner + k, product.column + j));
                copy.set(cpu, k * BLOCK + j, element);
            }
            cpu.compute(COPY_CYCLES * BLOCK as u64);
        }
    }

    fn multiply(&self, cpu: &mut Cpu<'_>, product: Product, copy: &Array<f64>, calls: &mut Calls) {
        let Product { row, column, inner } = product;
        cpu.execute(self.text.part(LOOP_BYTES, OUTER_BYTES));
        for i in row..row + BLOCK {
            cpu.fetch(self.text.part(0, LOOP_BYTES));
            for k in (0..BLOCK).step_by(UNROLLED) {
                self.add_rows(cpu, at(i, inner + k), (copy, k * BLOCK), at(i, column));
            }
            calls.pass(cpu);
        }
    }

    /// Adds four elements of A, times four rows of the copy, to a row of a block of C.
    #[inline]
    fn add_rows(&self, cpu: &mut Cpu<'_>, a: usize, (copy, b): (&Array<f64>, usize), c: usize) {
        let factors: [f64; UNROLLED] = std::array::from_fn(|k| self.a.get(cpu, a + k));
        cpu.compute(LOOP_CYCLES);
        for j in 0..BLOCK {
            let mut total = self.c.get(cpu, c + j);
            for (k, factor) in factors.into_iter().enumerate() {
                total += factor * copy.get(cpu, b + k * BLOCK + j);
            }
            self.c.set(cpu, c + j, total);
            cpu.compute(STEP_CYCLES);
        }
    }

    /// Compares each row of C, times a vector, with the same sum of products of the inputs.
    fn check(&self, count: usize) -> Result<(), String> {
        let vector: Vec<f64> = (0..BLOCK).map(|i| (i * i % 97) as f64).collect();
        let times = |row: &dyn Fn(usize) -> f64| (0..BLOCK).map(|j| row(j) * vector[j]).sum::<f64>();
        // By row, and block of columns.
        let mut expected = vec![[0.0; BLOCKS]; SIDE];
        for Product { row, column, inner } in (0..PROCESSES).flat_map(|process| products(process, count)) {
            let b_times: Vec<f64> =
                (0..BLOCK).map(|k| times(&|j| self.b.peek(at(inner + k, column + j)))).collect();
            for (i, row) in expected.iter_mut().enumerate().skip(row).take(BLOCK) {
                row[column / BLOCK] +=
                    (0..BLOCK).map(|k| self.a.peek(at(i, inner + k)) * b_times[k]).sum::<f64>();
            }
        }
        for (i, row) in expected.iter().enumerate() {
            for (block, &expected) in row.iter().enumerate() {
                if times(&|j| self.c.peek(at(i, block * BLOCK + j))) != expected {
                    return Err(format!("matrix: row {i} of the product is wrong, in its block {block}"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_product_is_done_exactly_once() {
        let mut done = vec![0; BLOCKS * BLOCKS * BLOCKS];
        for process in 0..PROCESSES {
            for Product { row, column, inner } in products(process, PRODUCTS) {
                done[(row / BLOCK * BLOCKS + column / BLOCK) * BLOCKS + inner / BLOCK] += 1;
            }
        }
        assert!(done.iter().all(|&times| times == 1));
    }
}
