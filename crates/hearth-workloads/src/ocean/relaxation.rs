//! The solver of elliptic equations, that of the first version of SPLASH: successive over-relaxation.
//!
//! It solves `(laplace - lambda^2) q = rhs` with `q = 0` at the walls. A sweep moves each point towards what
//! its neighbours say, and somewhat beyond, by Young's factor. Points are relaxed in two colours, as on a chess
//! board: each depends only on the other colour, so that any number of processes comes to the same result.
//! (Young, "Iterative Methods for Solving Partial Difference Equations of Elliptic Type", Transactions of the
//! AMS 1954; Singh, Weber and Gupta, "SPLASH: Stanford Parallel Applications for Shared-Memory", Computer
//! Architecture News 1992.)

use crate::r3000::{ADD, LOOP, MULTIPLY, SECOND_WORD};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use std::f64::consts::PI;
use std::ops::Range;

/// Cycles of a point beside its references: what is missing, its square, and the move.
const RELAX_CYCLES: u64 = 7 * ADD + 4 * MULTIPLY + 6 * SECOND_WORD + LOOP;
/// Cycles of adding a square up.
const SQUARE_CYCLES: u64 = ADD + MULTIPLY + SECOND_WORD + LOOP;
/// Sweeps end when what is missing is this small, compared with the right-hand side.
pub const TOLERANCE: f64 = 1e-6;
/// Sweeps of an equation at most.
pub const MOST_SWEEPS: usize = 2000;
/// Text of the relaxation, and of the sum of squares.
const LOOP_BYTES: u64 = 512;
/// Elements from one part's sum to the next, which is in another cache line.
const APART: usize = 8;

/// An equation on `side` x `side` points in a ring of zeros.
pub struct Equation<'a> {
    /// Points along a side.
    pub side: usize,
    /// Its constant.
    pub lambda_squared: f64,
    /// The right-hand side.
    pub rhs: &'a Array<f64>,
    /// The solution, from what was there before.
    pub solution: &'a Array<f64>,
}

impl Equation<'_> {
    /// How much of the right-hand side the solution leaves over: the ratio of their sizes.
    pub fn left_over(&self) -> f64 {
        let Self { side, lambda_squared, rhs, solution } = *self;
        let (stride, points) = (side + 2, (side * side) as f64);
        let (mut left, mut wanted) = (0.0, 0.0);
        for (row, column) in (1..=side).flat_map(|row| (1..=side).map(move |column| (row, column))) {
            let at = row * stride + column;
            let sum: f64 =
                [at - 1, at + 1, at - stride, at + stride].map(|at| solution.peek(at)).iter().sum();
            let diagonal = (4 + walls(side, row) + walls(side, column)) as f64 + lambda_squared / points;
            left += (rhs.peek(at) - (sum - diagonal * solution.peek(at)) * points).powi(2);
            wanted += rhs.peek(at) * rhs.peek(at);
        }
        (left / wanted).sqrt()
    }
}

/// What processes that solve an equation share.
#[derive(Clone)]
pub struct Relaxation {
    /// The sum of squares that each part has found.
    sums: Array<f64>,
    text: Code,
}

impl Relaxation {
    /// For work in so many parts.
    pub fn new(memory: &Memory, parts: usize) -> Self {
        Self { sums: memory.array(parts * APART, Placement::FirstTouch), text: memory.code(2 * LOOP_BYTES) }
    }

    /// Relaxes the points of one colour in some rows, and adds the squares of what was missing before to the
    /// part's sum, which the first colour begins.
    pub fn relax(
        &self,
        cpu: &mut Cpu<'_>,
        equation: &Equation<'_>,
        rows: Range<usize>,
        part: usize,
        colour: usize,
    ) {
        let side = equation.side;
        let spacing_squared = ((side * side) as f64).recip();
        let weight = factor(side, equation.lambda_squared);
        let (stride, q) = (side + 2, equation.solution);
        let mut missing = if colour == 0 { 0.0 } else { self.sums.get(cpu, part * APART) };
        for row in rows {
            cpu.fetch(self.text.part(0, LOOP_BYTES));
            let first = 1 + (row + colour) % 2;
            let mut west = q.get(cpu, row * stride + first - 1);
            for column in (first..=side).step_by(2) {
                let at = row * stride + column;
                let east = q.get(cpu, at + 1);
                let sum = q.get(cpu, at - stride) + q.get(cpu, at + stride) + west + east;
                let diagonal = (4 + walls(side, row) + walls(side, column)) as f64
                    + equation.lambda_squared * spacing_squared;
                let here = q.get(cpu, at);
                let lack = sum - diagonal * here - equation.rhs.get(cpu, at) * spacing_squared;
                q.set(cpu, at, here + weight * lack / diagonal);
                missing += lack * lack;
                cpu.compute(RELAX_CYCLES);
                west = east;
            }
        }
        self.sums.set(cpu, part * APART, missing);
    }

    /// Makes the sum of squares of the right-hand side in some rows the part's sum.
    pub fn size(&self, cpu: &mut Cpu<'_>, equation: &Equation<'_>, rows: Range<usize>, part: usize) {
        let (side, stride) = (equation.side, equation.side + 2);
        let mut sum = 0.0;
        for row in rows {
            cpu.fetch(self.text.part(LOOP_BYTES, LOOP_BYTES));
            for at in row * stride + 1..=row * stride + side {
                let value = equation.rhs.get(cpu, at) / (side * side) as f64;
                sum += value * value;
                cpu.compute(SQUARE_CYCLES);
            }
        }
        self.sums.set(cpu, part * APART, sum);
    }

    /// All parts' sums.
    pub fn total(&self, cpu: &mut Cpu<'_>) -> f64 {
        (0..self.sums.len()).step_by(APART).map(|at| self.sums.get(cpu, at)).sum()
    }
}

/// How many walls a point has beside it along one axis.
pub fn walls(side: usize, at: usize) -> usize {
    usize::from(at == 1) + usize::from(at == side)
}

/// By how much more than all the way a point is best moved: Young's factor.
fn factor(side: usize, lambda_squared: f64) -> f64 {
    let radius = (PI / side as f64).cos() * 4.0 / (4.0 + lambda_squared / (side * side) as f64);
    2.0 / (1.0 + (1.0 - radius * radius).sqrt())
}
