//! Blocked multiplication of two dense matrices: `C = A * B`, 512 x 512, in blocks of 64 x 64.
//!
//! Each process computes blocks of C of its own; nothing is shared but A and B, which are only read.
//! Blocks are stored contiguously, those of B by columns, so that every loop runs along lines, and
//! the inner loop keeps a tile of 4 x 2 sums in registers: six loads for eight multiply-adds. One
//! block product works on 96 KB and sweeps the block of B 16 times; products follow each other so that
//! two of three blocks were used shortly before.

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
/// Blocks along a side of a matrix.
const SIDE: usize = 8;
const PROCESSES: usize = 4;
/// Block products of one process: its share of the blocks of C, times the products that add up to one.
const PRODUCTS: usize = SIDE * SIDE * SIDE / PROCESSES;

/// Rows of A and columns of B that make a tile: its sums and operands fill the R3010's registers.
const TILE_ROWS: usize = 4;
const TILE_COLUMNS: usize = 2;
/// Cycles of one step of the inner loop beside its six loads: on an R3010 eight double multiplies (5
/// cycles each; the additions overlap with them), and part of the second words of the loads and of
/// the loop's counter. About 6 cycles a multiply-add, without misses.
const TILE_STEP_CYCLES: u64 = 42;
/// Cycles around a tile: addresses and the loop's set-up.
const TILE_CYCLES: u64 = 40;
/// Text of the three inner loops, unrolled.
const LOOP_BYTES: u64 = 640;
/// Text of the loops around them.
const OUTER_BYTES: u64 = 512;
/// Entries are whole numbers below this, so that every sum is exact.
const MAX_ENTRY: u32 = 16;

/// The matrices, block by block.
#[derive(Clone)]
struct Matrices {
    a: Array<f64>,
    /// Blocks stored by columns.
    b: Array<f64>,
    c: Array<f64>,
    text: Code,
}

/// One block product: `C[row][column] += A[row][inner] * B[inner][column]`.
#[derive(Clone, Copy)]
struct Product {
    row: usize,
    column: usize,
    inner: usize,
}

/// Where a block starts.
fn block(row: usize, column: usize) -> usize {
    (row * SIDE + column) * BLOCK_ELEMENTS
}

/// The four blocks of C that are computed together, as (row, column), in an order in which each
/// product shares a block of A or of B with the one before.
const TOGETHER: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 1), (1, 0)];

/// The products of one process, in order: its two rows of blocks, two columns at a time.
fn products(process: usize, count: usize) -> impl Iterator<Item = Product> {
    (0..count).map(move |number| {
        let (row, column) = TOGETHER[number % TOGETHER.len()];
        let step = number / TOGETHER.len();
        Product { row: process * 2 + row, column: step / SIDE * 2 + column, inner: step % SIDE }
    })
}

/// Sets the program up; see [`crate::build`]. Scale shortens the list of block products.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let elements = SIDE * SIDE * BLOCK_ELEMENTS;
    let array = || memory.array(elements, Placement::FirstTouch);
    let matrices =
        Matrices { a: array(), b: array(), c: array(), text: memory.code(LOOP_BYTES + OUTER_BYTES) };
    let mut random = Pcg32::seed_from_u64(seed);
    for index in 0..elements {
        matrices.a.poke(index, f64::from(random.next_u32() % MAX_ENTRY));
        matrices.b.poke(index, f64::from(random.next_u32() % MAX_ENTRY));
    }
    let count = scaled(PRODUCTS, scale);
    let mut application = Application::new(DESCRIPTION.name);
    for process in 0..PROCESSES {
        let matrices = matrices.clone();
        application.task(&format!("matrix-{process}"), move |cpu| {
            products(process, count).for_each(|product| matrices.multiply(cpu, product));
        });
    }
    Built::new(application, move || matrices.check(count))
}

impl Matrices {
    fn multiply(&self, cpu: &mut Cpu<'_>, product: Product) {
        let a = block(product.row, product.inner);
        let b = block(product.inner, product.column);
        let c = block(product.row, product.column);
        cpu.execute(self.text.part(LOOP_BYTES, OUTER_BYTES));
        for i in (0..BLOCK).step_by(TILE_ROWS) {
            cpu.fetch(self.text.part(0, LOOP_BYTES));
            for j in (0..BLOCK).step_by(TILE_COLUMNS) {
                self.tile(cpu, a + i * BLOCK, b + j * BLOCK, c + i * BLOCK + j);
            }
        }
    }

    /// Adds four rows of a block of A times two columns of a block of B to eight elements of C.
    #[inline]
    fn tile(&self, cpu: &mut Cpu<'_>, a: usize, b: usize, c: usize) {
        let mut sums = [[0.0; TILE_COLUMNS]; TILE_ROWS];
        for k in 0..BLOCK {
            let columns = [0, 1].map(|j| self.b.get(cpu, b + j * BLOCK + k));
            for (i, sums) in sums.iter_mut().enumerate() {
                let element = self.a.get(cpu, a + i * BLOCK + k);
                (0..TILE_COLUMNS).for_each(|j| sums[j] += element * columns[j]);
            }
            cpu.compute(TILE_STEP_CYCLES);
        }
        for (i, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                let at = c + i * BLOCK + j;
                let total = self.c.get(cpu, at) + sum;
                self.c.set(cpu, at, total);
            }
        }
        cpu.compute(TILE_CYCLES);
    }

    /// Compares every block of C, times a vector, with the same sum of products of the inputs.
    fn check(&self, count: usize) -> Result<(), String> {
        let vector: Vec<f64> = (0..BLOCK).map(|i| (i * i % 97) as f64).collect();
        for process in 0..PROCESSES {
            let mut expected = vec![[0.0; BLOCK]; SIDE * SIDE];
            for product in products(process, count) {
                let b_times = |k: usize| self.row_times(&self.b, product.inner, product.column, k, &vector);
                let inner: Vec<f64> = (0..BLOCK).map(b_times).collect();
                let sums = &mut expected[product.row * SIDE + product.column];
                for (i, sum) in sums.iter_mut().enumerate() {
                    let row = block(product.row, product.inner) + i * BLOCK;
                    *sum += (0..BLOCK).map(|k| self.a.peek(row + k) * inner[k]).sum::<f64>();
                }
            }
            for product in products(process, count) {
                let (row, column) = (product.row, product.column);
                self.check_block(block(row, column), &expected[row * SIDE + column], &vector).map_err(
                    |i| format!("matrix: row {i} of block ({row}, {column}) of the product is wrong"),
                )?;
            }
        }
        Ok(())
    }

    /// Compares a block of C, times a vector, with what it should be; tells the first wrong row.
    fn check_block(&self, start: usize, expected: &[f64; BLOCK], vector: &[f64]) -> Result<(), usize> {
        let times =
            |i: usize| (0..BLOCK).map(|j| self.c.peek(start + i * BLOCK + j) * vector[j]).sum::<f64>();
        let wrong = (0..BLOCK).find(|&i| times(i) != expected[i]);
        wrong.map_or(Ok(()), Err)
    }

    /// Row `k` of a block stored by columns, times a vector.
    fn row_times(&self, blocks: &Array<f64>, row: usize, column: usize, k: usize, vector: &[f64]) -> f64 {
        let start = block(row, column) + k;
        (0..BLOCK).map(|j| blocks.peek(start + j * BLOCK) * vector[j]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_product_is_done_exactly_once() {
        let mut done = vec![0; SIDE * SIDE * SIDE];
        for process in 0..PROCESSES {
            for product in products(process, PRODUCTS) {
                done[(product.row * SIDE + product.column) * SIDE + product.inner] += 1;
            }
        }
        assert!(done.iter().all(|&times| times == 1));
    }
}
