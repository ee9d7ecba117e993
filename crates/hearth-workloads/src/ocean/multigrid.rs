//! The solver of elliptic equations: red-black Gauss-Seidel on a hierarchy of grids.
//!
//! It solves `(laplace - lambda^2) q = rhs` with `q = 0` at the walls. A V-cycle relaxes, takes the
//! residual to a grid of half as many points each way, solves there in the same way, adds the
//! correction, and relaxes again. (Brandt, "Multi-Level Adaptive Solutions to Boundary-Value
//! Problems", Mathematics of Computation 1977; SPLASH-2's Ocean.)

use super::team::Team;
use crate::r3000::{ADD, LOOP, MULTIPLY, SECOND_WORD};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;

/// Sweeps before and after the coarser grids, and on the coarsest grid, which has a few points.
const SWEEPS_BEFORE: usize = 2;
const SWEEPS_AFTER: usize = 1;
const SWEEPS_COARSEST: usize = 8;
/// The least number of points along a side of a coarser grid.
const LEAST_SIDE: usize = 3;
/// V-cycles end when the residual is this small, compared with the right-hand side.
pub const TOLERANCE: f64 = 1e-6;
/// V-cycles at most.
const MOST_CYCLES: usize = 20;

/// Cycles of one point, beside its references. A relaxation adds three neighbours and a fourth that is
/// in a register, and multiplies twice; a residual takes one operation of each kind more; a
/// restriction adds four; an interpolation weighs four.
const RELAX_CYCLES: u64 = 4 * ADD + 2 * MULTIPLY + 5 * SECOND_WORD + LOOP;
const RESIDUAL_CYCLES: u64 = 6 * ADD + 3 * MULTIPLY + 5 * SECOND_WORD + LOOP;
const RESTRICT_CYCLES: u64 = 3 * ADD + MULTIPLY + 6 * SECOND_WORD + LOOP;
const INTERPOLATE_CYCLES: u64 = 3 * ADD + 2 * MULTIPLY + 3 * SECOND_WORD + LOOP;
const ZERO_CYCLES: u64 = SECOND_WORD + LOOP;

/// Text of each loop, and their number.
const LOOP_BYTES: u64 = 512;
const RELAX: u64 = 0;
const RESIDUAL: u64 = 1;
const RESTRICT: u64 = 2;
const INTERPOLATE: u64 = 3;
const LOOPS: u64 = 4;

/// How many walls a point has beside it along one axis.
pub fn walls(side: usize, at: usize) -> usize {
    usize::from(at == 1) + usize::from(at == side)
}

/// One grid: `side` x `side` points in a ring of zeros.
#[derive(Clone)]
pub struct Grid {
    /// Points along a side.
    pub side: usize,
    /// The solution.
    pub solution: Array<f64>,
    /// The right-hand side.
    pub rhs: Array<f64>,
    residual: Array<f64>,
    /// Square of the distance of two points.
    spacing_squared: f64,
}

impl Grid {
    /// Elements from one row to the next.
    pub fn stride(&self) -> usize {
        self.side + 2
    }

    /// The equation's coefficients of a point, times the square of the spacing, by its walls.
    fn diagonals(&self, lambda_squared: f64) -> [f64; 5] {
        [0.0, 1.0, 2.0, 3.0, 4.0].map(|walls| 4.0 + walls + lambda_squared * self.spacing_squared)
    }
}

/// The grids, finest first, and what the processes share to solve on them.
#[derive(Clone)]
pub struct Multigrid {
    grids: Vec<Grid>,
    /// The sum of squares that is being gathered.
    norm: Array<f64>,
    text: Code,
}

impl Multigrid {
    /// Grids down from `side` x `side` points on the unit square.
    pub fn new(memory: &Memory, side: usize, placement: Placement) -> Self {
        let halves = std::iter::successors(Some(side), |side| Some(side / 2).filter(|_| side % 2 == 0));
        let grid = |side: usize| {
            let array = || memory.array((side + 2) * (side + 2), placement);
            let spacing = 1.0 / side as f64;
            Grid {
                side,
                solution: array(),
                rhs: array(),
                residual: array(),
                spacing_squared: spacing * spacing,
            }
        };
        Self {
            grids: halves.take_while(|&half| half >= LEAST_SIDE || half == side).map(grid).collect(),
            norm: memory.array(1, Placement::FirstTouch),
            text: memory.code(LOOPS * LOOP_BYTES),
        }
    }

    /// The grid on which equations are put and solutions are found.
    pub fn finest(&self) -> &Grid {
        &self.grids[0]
    }

    /// Solves the equation of the finest grid, from the solution that is there.
    pub fn solve(&self, cpu: &mut Cpu<'_>, team: &Team, lambda_squared: f64) {
        let wanted = self.norm_of(cpu, team, &self.grids[0].rhs) * TOLERANCE * TOLERANCE;
        for _ in 0..MOST_CYCLES {
            self.cycle(cpu, team, lambda_squared, 0);
            self.residual(cpu, team, &self.grids[0], lambda_squared);
            if self.norm_of(cpu, team, &self.grids[0].residual) <= wanted {
                return;
            }
        }
    }

    fn fetch(&self, cpu: &mut Cpu<'_>, part: u64) {
        cpu.fetch(self.text.part(part * LOOP_BYTES, LOOP_BYTES));
    }

    /// One V-cycle from a grid down.
    fn cycle(&self, cpu: &mut Cpu<'_>, team: &Team, lambda_squared: f64, level: usize) {
        let grid = &self.grids[level];
        let Some(coarser) = self.grids.get(level + 1) else {
            (0..SWEEPS_COARSEST).for_each(|_| self.relax(cpu, team, grid, lambda_squared));
            return;
        };
        (0..SWEEPS_BEFORE).for_each(|_| self.relax(cpu, team, grid, lambda_squared));
        self.residual(cpu, team, grid, lambda_squared);
        self.restrict(cpu, team, grid, coarser);
        self.cycle(cpu, team, lambda_squared, level + 1);
        self.interpolate(cpu, team, coarser, grid);
        (0..SWEEPS_AFTER).for_each(|_| self.relax(cpu, team, grid, lambda_squared));
    }

    /// Relaxes the red points and then the black ones: each depends only on the other colour.
    fn relax(&self, cpu: &mut Cpu<'_>, team: &Team, grid: &Grid, lambda_squared: f64) {
        let weights = grid.diagonals(lambda_squared).map(f64::recip);
        for colour in 0..2 {
            for row in team.rows(grid.side) {
                self.fetch(cpu, RELAX);
                self.relax_row(cpu, grid, row, colour, &weights);
            }
            team.meet(cpu);
        }
    }

    #[inline]
    fn relax_row(&self, cpu: &mut Cpu<'_>, grid: &Grid, row: usize, colour: usize, weights: &[f64; 5]) {
        let (side, stride, q) = (grid.side, grid.stride(), &grid.solution);
        let across = walls(side, row);
        let first = 1 + (row + colour) % 2;
        let mut west = q.get(cpu, row * stride + first - 1);
        for column in (first..=side).step_by(2) {
            let at = row * stride + column;
            let east = q.get(cpu, at + 1);
            let sum = q.get(cpu, at - stride) + q.get(cpu, at + stride) + west + east;
            let value = sum - grid.rhs.get(cpu, at) * grid.spacing_squared;
            q.set(cpu, at, value * weights[across + walls(side, column)]);
            cpu.compute(RELAX_CYCLES);
            west = east;
        }
    }

    /// What is missing from the right-hand side.
    fn residual(&self, cpu: &mut Cpu<'_>, team: &Team, grid: &Grid, lambda_squared: f64) {
        let (side, stride, q) = (grid.side, grid.stride(), &grid.solution);
        let diagonals = grid.diagonals(lambda_squared);
        let scale = grid.spacing_squared.recip();
        for row in team.rows(side) {
            self.fetch(cpu, RESIDUAL);
            let start = row * stride;
            let (mut west, mut here) = (q.get(cpu, start), q.get(cpu, start + 1));
            for column in 1..=side {
                let at = start + column;
                let east = q.get(cpu, at + 1);
                let sum = q.get(cpu, at - stride) + q.get(cpu, at + stride) + west + east;
                let diagonal = diagonals[walls(side, row) + walls(side, column)];
                let residual = grid.rhs.get(cpu, at) - (sum - diagonal * here) * scale;
                grid.residual.set(cpu, at, residual);
                cpu.compute(RESIDUAL_CYCLES);
                (west, here) = (here, east);
            }
        }
        team.meet(cpu);
    }

    /// Makes the mean residual of four points the right-hand side of one of the coarser grid.
    fn restrict(&self, cpu: &mut Cpu<'_>, team: &Team, fine: &Grid, coarse: &Grid) {
        let stride = fine.stride();
        for row in team.rows(coarse.side) {
            self.fetch(cpu, RESTRICT);
            for column in 1..=coarse.side {
                let from = (2 * row - 1) * stride + 2 * column - 1;
                let four = [from, from + 1, from + stride, from + stride + 1];
                let sum: f64 = four.map(|at| fine.residual.get(cpu, at)).iter().sum();
                let to = row * coarse.stride() + column;
                coarse.rhs.set(cpu, to, sum / 4.0);
                coarse.solution.set(cpu, to, 0.0);
                cpu.compute(RESTRICT_CYCLES);
            }
        }
        team.meet(cpu);
    }

    /// Adds the coarser grid's solution to the finer one's, weighed by the distance of the points.
    fn interpolate(&self, cpu: &mut Cpu<'_>, team: &Team, coarse: &Grid, fine: &Grid) {
        let stride = coarse.stride();
        for row in team.rows(fine.side) {
            self.fetch(cpu, INTERPOLATE);
            let near = row.div_ceil(2) * stride;
            let far = if row % 2 == 1 { near - stride } else { near + stride };
            let mix = |cpu: &mut Cpu<'_>, column: usize| {
                0.75 * coarse.solution.get(cpu, near + column) + 0.25 * coarse.solution.get(cpu, far + column)
            };
            let (mut west, mut here) = (mix(cpu, 0), mix(cpu, 1));
            for column in 1..=coarse.side {
                let east = mix(cpu, column + 1);
                for (side, other) in [(1, west), (0, east)] {
                    let at = row * fine.stride() + 2 * column - side;
                    let value = fine.solution.get(cpu, at) + 0.75 * here + 0.25 * other;
                    fine.solution.set(cpu, at, value);
                    cpu.compute(INTERPOLATE_CYCLES);
                }
                (west, here) = (here, east);
            }
        }
        team.meet(cpu);
    }

    /// The sum of squares of a field of the finest grid, gathered from all processes.
    fn norm_of(&self, cpu: &mut Cpu<'_>, team: &Team, field: &Array<f64>) -> f64 {
        let (side, stride) = (self.grids[0].side, self.grids[0].stride());
        let mut sum = 0.0;
        for at in team.rows(side).flat_map(|row| row * stride + 1..=row * stride + side) {
            let value = field.get(cpu, at);
            sum += value * value;
            cpu.compute(ADD + MULTIPLY + ZERO_CYCLES);
        }
        team.sum(cpu, &self.norm, sum)
    }

    /// How much of the right-hand side the solution leaves over: the ratio of their sizes.
    pub fn left_over(&self, lambda_squared: f64) -> f64 {
        let Grid { side, solution, rhs, .. } = &self.grids[0];
        left_over(*side, solution, rhs, lambda_squared)
    }
}

/// How much of a right-hand side a solution on `side` x `side` points leaves over: the ratio of their sizes.
pub fn left_over(side: usize, solution: &Array<f64>, rhs: &Array<f64>, lambda_squared: f64) -> f64 {
    let (stride, points) = (side + 2, (side * side) as f64);
    let (mut left, mut wanted) = (0.0, 0.0);
    for (row, column) in (1..=side).flat_map(|row| (1..=side).map(move |column| (row, column))) {
        let at = row * stride + column;
        let sum: f64 = [at - 1, at + 1, at - stride, at + stride].map(|at| solution.peek(at)).iter().sum();
        let diagonal = (4 + walls(side, row) + walls(side, column)) as f64 + lambda_squared / points;
        left += (rhs.peek(at) - (sum - diagonal * solution.peek(at)) * points).powi(2);
        wanted += rhs.peek(at) * rhs.peek(at);
    }
    (left / wanted).sqrt()
}
