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

/// Cycles of a point beside its references: what is missing, the move, and whether it is the largest.
const RELAX_CYCLES: u64 = 7 * ADD + 3 * MULTIPLY + 6 * SECOND_WORD + LOOP;
/// Cycles of adding a point up.
const SUM_CYCLES: u64 = ADD + SECOND_WORD + LOOP;
/// Sweeps end when none of their moves is larger, in m^2/s^2: calibrated, with the number of steps. (The second
/// SPLASH's is 1e-7 for multigrid.)
pub const TOLERANCE: f64 = 1e-6;
/// Sweeps of an equation at most.
pub const MOST_SWEEPS: usize = 2000;
/// Text of the relaxation, and of the sum.
const LOOP_BYTES: u64 = 512;
/// Elements from one part's finding to the next, which is in another cache line.
const APART: usize = 8;

/// A solver for grids of `side` x `side` points in a ring of zeros, which processes share.
#[derive(Clone)]
pub struct Relaxation {
    side: usize,
    /// The solution, from where the sweeps start, and the right-hand side times the square of the spacing.
    pub q: Array<f64>,
    pub rhs: Array<f64>,
    /// What each part has found: its largest move, or its sum.
    found: Array<f64>,
    text: Code,
}

impl Relaxation {
    /// For work in so many parts.
    pub fn new(memory: &Memory, side: usize, placement: Placement, parts: usize) -> Self {
        let grid = || memory.array((side + 2) * (side + 2), placement);
        Self {
            side,
            q: grid(),
            rhs: grid(),
            found: memory.array(parts * APART, Placement::FirstTouch),
            text: memory.code(2 * LOOP_BYTES),
        }
    }

    /// Relaxes the points of one colour in some rows, and notes the part's largest move, which the first colour
    /// begins; `lambda_squared` is per square of the spacing.
    pub fn relax(
        &self,
        cpu: &mut Cpu<'_>,
        lambda_squared: f64,
        rows: Range<usize>,
        part: usize,
        colour: usize,
    ) {
        let Self { side, q, .. } = self;
        let (stride, diagonal) = (side + 2, 4.0 + lambda_squared);
        let weight = factor(*side, diagonal) / diagonal;
        let mut largest = if colour == 0 { 0.0 } else { self.found.get(cpu, part * APART) };
        for row in rows {
            cpu.fetch(self.text.part(0, LOOP_BYTES));
            let first = 1 + (row + colour) % 2;
            let mut west = q.get(cpu, row * stride + first - 1);
            for column in (first..=*side).step_by(2) {
                let at = row * stride + column;
                let east = q.get(cpu, at + 1);
                let sum = q.get(cpu, at - stride) + q.get(cpu, at + stride) + west + east;
                let here = q.get(cpu, at);
                let change = weight * (sum - diagonal * here - self.rhs.get(cpu, at));
                q.set(cpu, at, here + change);
                largest = f64::max(largest, change.abs());
                cpu.compute(RELAX_CYCLES);
                west = east;
            }
        }
        self.found.set(cpu, part * APART, largest);
    }

    /// The largest move that any part has found.
    pub fn largest(&self, cpu: &mut Cpu<'_>) -> f64 {
        self.all_found(cpu).fold(0.0, f64::max)
    }

    /// Adds up a grid's elements in a part's rows, its ring included.
    pub fn sum(&self, cpu: &mut Cpu<'_>, grid: &Array<f64>, rows: Range<usize>, part: usize) {
        let mut sum = 0.0;
        for row in rows {
            cpu.fetch(self.text.part(LOOP_BYTES, LOOP_BYTES));
            for at in row * (self.side + 2)..(row + 1) * (self.side + 2) {
                sum += grid.get(cpu, at);
                cpu.compute(SUM_CYCLES);
            }
        }
        self.found.set(cpu, part * APART, sum);
    }

    /// All parts' sums.
    pub fn total(&self, cpu: &mut Cpu<'_>) -> f64 {
        self.all_found(cpu).sum()
    }

    fn all_found(&self, cpu: &mut Cpu<'_>) -> impl Iterator<Item = f64> {
        (0..self.found.len()).step_by(APART).map(|at| self.found.get(cpu, at))
    }
}

/// By how much a solution does not meet an equation, at the worst point; `rhs` is times the square of the spacing.
pub fn left_over(side: usize, lambda_squared: f64, q: &Array<f64>, rhs: impl Fn(usize) -> f64) -> f64 {
    let stride = side + 2;
    let points = (1..=side).flat_map(|row| (1..=side).map(move |column| row * stride + column));
    let left = points.map(|at| {
        let sum: f64 = [at - 1, at + 1, at - stride, at + stride].map(|at| q.peek(at)).iter().sum();
        (sum - (4.0 + lambda_squared) * q.peek(at) - rhs(at)).abs()
    });
    // A NaN is the worst of all.
    left.fold(0.0, |worst, left| if left <= worst { worst } else { left })
}

/// By how much more than all the way a point is best moved: Young's factor.
fn factor(side: usize, diagonal: f64) -> f64 {
    let radius = (PI / (side + 1) as f64).cos() * 4.0 / diagonal;
    2.0 / (1.0 + (1.0 - radius * radius).sqrt())
}
