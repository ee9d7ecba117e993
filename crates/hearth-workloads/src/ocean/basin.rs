//! The equations of motion, and the fields that they are about: those of SPLASH's Ocean, with its numbers but one.
//!
//! For each layer, `d/dt laplace(psi) = J(laplace(psi) + f, psi) + wind - friction * laplace^3(psi)`, and both layers
//! feel the interface between them. What changes is solved for as the difference of the layers, and their mean.

use super::relaxation::{Relaxation, TOLERANCE, left_over};
use crate::r3000::{ADD, LOOP, MULTIPLY, SECOND_WORD};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// From one point to the next, in m, and a time step, in s.
const SPACING: f64 = 20_000.0;
const STEP: f64 = 28_800.0;
/// Depths of the layers, in m.
const DEPTHS: [f64; 2] = [1000.0, 4000.0];
const DEPTH: f64 = DEPTHS[0] + DEPTHS[1];
/// The share of the depth that each layer has.
const SHARES: [f64; 2] = [DEPTHS[0] / DEPTH, DEPTHS[1] / DEPTH];
/// The Coriolis force, 1/s, and its gradient, 1/(m s).
const CORIOLIS: f64 = 8.3e-5;
const CORIOLIS_GRADIENT: f64 = 2e-11;
/// What gravity is between layers of almost the same density, m/s^2.
const REDUCED_GRAVITY: f64 = 0.02;
/// Friction, m^4/s: Holland's. (With SPLASH's, 5.12e11, its own step of 8 hours is unstable: currents blow up after
/// eight, two more than the second SPLASH does.)
const FRICTION: f64 = 8e9;
/// The wind's stress over the density of water, m^2/s^2.
const WIND: f64 = 0.5e-4;
/// How far a stream function goes in a step at most, in m^2/s: for the check. (In 16 steps none goes farther than 340.)
const MOST_JUMP: f64 = 400.0;
/// How far the interface reaches: 1/m^2.
const LAMBDA_SQUARED: f64 = CORIOLIS * CORIOLIS * DEPTH / (DEPTHS[0] * DEPTHS[1] * REDUCED_GRAVITY);

/// The equations, by number: for the change of the layers' difference, and of their mean; `lambda^2` of each, per square
/// of the spacing.
pub const DIFFERENCE: usize = 0;
pub const MEAN: usize = 1;
pub const LAMBDAS_SQUARED: [f64; 2] = [LAMBDA_SQUARED * SPACING * SPACING, 0.0];

/// Cycles of a point beside its references: a Laplacian; a Jacobian (Arakawa's, twelve products of
/// differences); sums of products; copies.
const LAPLACIAN_CYCLES: u64 = 5 * ADD + 2 * MULTIPLY + 4 * SECOND_WORD + LOOP;
const JACOBIAN_CYCLES: u64 = 31 * ADD + 13 * MULTIPLY + 7 * SECOND_WORD + LOOP;
const LAYERS_CYCLES: u64 = 2 * ADD + 2 * MULTIPLY + 4 * SECOND_WORD + LOOP;
const FORCES_CYCLES: u64 = 9 * ADD + 8 * MULTIPLY + 10 * SECOND_WORD + LOOP;
const ADD_CYCLES: u64 = ADD + MULTIPLY + 3 * SECOND_WORD + LOOP;
const COPY_CYCLES: u64 = 2 * SECOND_WORD + LOOP;

/// Text of each phase of a step, and their number.
const PHASE_BYTES: u64 = 1024;
const LAPLACIAN: u64 = 0;
const LAYERS: u64 = 1;
const JACOBIAN: u64 = 2;
const FORCES: u64 = 3;
const SOLVER: u64 = 4;
const AHEAD: u64 = 5;
const PHASES: u64 = 6;

type Field = Array<f64>;

/// The fields of one layer.
#[derive(Clone)]
struct Layer {
    /// The stream function now and one step ago, and a copy of now while it goes ahead.
    now: Field,
    before: Field,
    held: Field,
    /// The vorticity, and what the planet's rotation adds to it.
    vorticity: Field,
    planetary: Field,
    /// How the currents carry vorticity.
    carried: Field,
    /// The Laplacian of the stream function one step ago, that of this, and that of that.
    friction: [Field; 3],
    /// How fast the stream function changes.
    rate: Field,
    /// Its sum over time.
    sum: Field,
}

impl Layer {
    fn fields(&self) -> impl Iterator<Item = &Field> {
        let Self { now, before, held, vorticity, planetary, carried, friction, rate, sum } = self;
        [now, before, held, vorticity, planetary, carried, rate, sum].into_iter().chain(friction)
    }
}

/// An ocean basin.
#[derive(Clone)]
pub struct Basin {
    /// Points along a side.
    pub side: usize,
    layers: [Layer; 2],
    /// The curl of the wind's stress.
    wind: Field,
    /// Difference of the layers' stream functions, their mean at the interface, and how the second
    /// carries the first.
    difference: Field,
    interface: Field,
    carried: Field,
    /// Of each equation: its right-hand side, its solution, and that of the step before, from which the next
    /// starts.
    forces: [Field; 2],
    changes: [Field; 2],
    guesses: [Field; 2],
    /// A solution of the first equation without forces, 1 at the walls, and the sum of its points.
    circulation: Field,
    circulating: Rc<Cell<f64>>,
    /// What solves the equations.
    pub solver: Relaxation,
    text: Code,
    /// Rows that went a step ahead: for the check.
    rows_done: Rc<Cell<usize>>,
}

impl Basin {
    /// A basin at rest, to be worked on in so many parts.
    pub fn new(memory: &Memory, side: usize, placement: Placement, parts: usize) -> Self {
        let field = || memory.array((side + 2) * (side + 2), placement);
        let pair = || [field(), field()];
        let layer = || Layer {
            now: field(),
            before: field(),
            held: field(),
            vorticity: field(),
            planetary: field(),
            carried: field(),
            friction: [field(), field(), field()],
            rate: field(),
            sum: field(),
        };
        let basin = Self {
            side,
            layers: [layer(), layer()],
            wind: field(),
            difference: field(),
            interface: field(),
            carried: field(),
            forces: pair(),
            changes: pair(),
            guesses: pair(),
            circulation: field(),
            circulating: Rc::default(),
            solver: Relaxation::new(memory, side, placement, parts),
            text: memory.code(PHASES * PHASE_BYTES),
            rows_done: Rc::default(),
        };
        basin.fill();
        basin
    }

    /// The planet's rotation, and two gyres of wind.
    fn fill(&self) {
        let half = (self.side + 1) as f64 * SPACING / 2.0;
        for row in 0..self.stride() {
            let north = row as f64 * SPACING;
            let wind = -WIND * std::f64::consts::PI / half * arches(north / half);
            for at in row * self.stride()..(row + 1) * self.stride() {
                let planetary = CORIOLIS + CORIOLIS_GRADIENT * (north - half);
                self.layers.iter().for_each(|layer| layer.planetary.poke(at, planetary));
                self.wind.poke(at, wind);
            }
        }
    }

    fn stride(&self) -> usize {
        self.side + 2
    }

    /// Rows, and those of the ring beside them.
    pub fn with_ring(&self, rows: Range<usize>) -> Range<usize> {
        let start = if rows.start == 1 { 0 } else { rows.start };
        let end = if rows.end == self.side + 1 { self.side + 2 } else { rows.end };
        start..end
    }

    /// All fields.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let shared = [&self.wind, &self.difference, &self.interface, &self.carried, &self.circulation];
        let of_layers = self.layers.iter().flat_map(Layer::fields);
        let of_equations = self.forces.iter().chain(&self.changes).chain(&self.guesses);
        of_layers.chain(shared).chain(of_equations).chain([&self.solver.q, &self.solver.rhs])
    }

    /// First phase of a step: vorticities, the first Laplacians of friction, and the layers' differences.
    pub fn begin_step(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for layer in &self.layers {
            self.laplacian(cpu, rows.clone(), &layer.now, Some(&layer.planetary), &layer.vorticity);
            self.laplacian(cpu, rows.clone(), &layer.before, None, &layer.friction[0]);
            self.copy(cpu, rows.clone(), &layer.now, &layer.held);
        }
        self.layers(cpu, rows);
    }

    /// Second phase: how the currents carry vorticity, and the second Laplacians.
    pub fn carry(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for layer in &self.layers {
            self.jacobian(cpu, rows.clone(), &layer.vorticity, &layer.held, &layer.carried);
            self.laplacian(cpu, rows.clone(), &layer.friction[0], None, &layer.friction[1]);
        }
    }

    /// Third phase: the interface, the third Laplacians, and with them the right-hand sides.
    pub fn accelerate(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        self.jacobian(cpu, rows.clone(), &self.difference, &self.interface, &self.carried);
        for layer in &self.layers {
            self.laplacian(cpu, rows.clone(), &layer.friction[1], None, &layer.friction[2]);
        }
        self.forces(cpu, rows);
    }

    /// Hands an equation to the solver, with the solution of the step before.
    pub fn pose(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, equation: usize) {
        let Relaxation { q, rhs, .. } = &self.solver;
        self.each_point(cpu, rows, SOLVER, |cpu, at| {
            let (force, guess) = (self.forces[equation].get(cpu, at), self.guesses[equation].get(cpu, at));
            rhs.set(cpu, at, force * SPACING * SPACING);
            q.set(cpu, at, guess);
            cpu.compute(ADD_CYCLES);
        });
    }

    /// Takes a solution from the solver.
    pub fn keep(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, equation: usize) {
        self.each_point(cpu, rows, SOLVER, |cpu, at| {
            let change = self.solver.q.get(cpu, at);
            self.changes[equation].set(cpu, at, change);
            self.guesses[equation].set(cpu, at, change);
            cpu.compute(COPY_CYCLES);
        });
    }

    /// Hands the equation of the circulation to the solver: less 1, it is 0 at the walls.
    pub fn pose_circulation(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        let Relaxation { q, rhs, .. } = &self.solver;
        self.each_point(cpu, rows, SOLVER, |cpu, at| {
            rhs.set(cpu, at, LAMBDAS_SQUARED[DIFFERENCE]);
            q.set(cpu, at, 0.0);
            cpu.compute(COPY_CYCLES);
        });
    }

    /// Takes the circulation from the solver.
    pub fn keep_circulation(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        self.each_point(cpu, rows, SOLVER, |cpu, at| {
            let less_one = self.solver.q.get(cpu, at);
            self.circulation.set(cpu, at, less_one + 1.0);
            cpu.compute(ADD_CYCLES);
        });
    }

    /// Adds up a part's circulation.
    pub fn sum_circulation(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, part: usize) {
        self.solver.sum(cpu, &self.circulation, self.with_ring(rows), part);
    }

    /// All parts' sums are that of the circulation.
    pub fn set_circulating(&self, cpu: &mut Cpu<'_>) {
        self.circulating.set(self.solver.total(cpu));
    }

    /// Adds up a part's change of the difference.
    pub fn sum_changes(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, part: usize) {
        self.solver.sum(cpu, &self.changes[DIFFERENCE], self.with_ring(rows), part);
    }

    /// Gives the change of the difference as much circulation as leaves each layer the water that it had: their sum is
    /// what all parts have found.
    pub fn conserve(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, sum: f64) {
        let share = -sum / self.circulating.get();
        self.each_point(cpu, rows, SOLVER, |cpu, at| {
            let change = self.changes[DIFFERENCE].get(cpu, at) + share * self.circulation.get(cpu, at);
            self.changes[DIFFERENCE].set(cpu, at, change);
            cpu.compute(ADD_CYCLES);
        });
    }

    /// Goes a step ahead in some rows; the equations must be solved. The last step is added to the sums.
    pub fn end_step(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, is_last: bool) {
        self.rows_done.set(self.rows_done.get() + rows.len());
        self.each_point(cpu, rows.clone(), AHEAD, |cpu, at| {
            let [difference, mean] = [DIFFERENCE, MEAN].map(|number| self.changes[number].get(cpu, at));
            for (number, layer) in self.layers.iter().enumerate() {
                layer.rate.set(cpu, at, rate(mean, difference, number));
            }
            cpu.compute(LAYERS_CYCLES);
        });
        for layer in &self.layers {
            self.each_point(cpu, rows.clone(), AHEAD, |cpu, at| {
                let ahead = layer.before.get(cpu, at) + 2.0 * STEP * layer.rate.get(cpu, at);
                layer.now.set(cpu, at, ahead);
                cpu.compute(ADD_CYCLES);
            });
            self.copy(cpu, rows.clone(), &layer.held, &layer.before);
        }
        for layer in self.layers.iter().filter(|_| is_last) {
            self.each_point(cpu, rows.clone(), AHEAD, |cpu, at| {
                let sum = layer.sum.get(cpu, at) + layer.before.get(cpu, at);
                layer.sum.set(cpu, at, sum);
                cpu.compute(ADD_CYCLES);
            });
        }
    }

    /// Does something at every point of some rows, and of the ring beside them.
    #[inline]
    fn each_point(
        &self,
        cpu: &mut Cpu<'_>,
        rows: Range<usize>,
        phase: u64,
        mut act: impl FnMut(&mut Cpu<'_>, usize),
    ) {
        for row in self.with_ring(rows) {
            cpu.fetch(self.text.part(phase * PHASE_BYTES, PHASE_BYTES));
            (row * self.stride()..(row + 1) * self.stride()).for_each(|at| act(cpu, at));
        }
    }

    fn copy(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, from: &Field, to: &Field) {
        self.each_point(cpu, rows, AHEAD, |cpu, at| {
            let value = from.get(cpu, at);
            to.set(cpu, at, value);
            cpu.compute(COPY_CYCLES);
        });
    }

    /// `to = laplace(from) + plus`.
    fn laplacian(
        &self,
        cpu: &mut Cpu<'_>,
        rows: Range<usize>,
        from: &Field,
        plus: Option<&Field>,
        to: &Field,
    ) {
        let (side, stride) = (self.side, self.stride());
        let scale = 1.0 / (SPACING * SPACING);
        for row in rows {
            cpu.fetch(self.text.part(LAPLACIAN * PHASE_BYTES, PHASE_BYTES));
            let start = row * stride;
            let (mut west, mut here) = (from.get(cpu, start), from.get(cpu, start + 1));
            for at in start + 1..=start + side {
                let east = from.get(cpu, at + 1);
                let sum = from.get(cpu, at - stride) + from.get(cpu, at + stride) + west + east;
                let plus = plus.map_or(0.0, |plus| plus.get(cpu, at));
                to.set(cpu, at, (sum - 4.0 * here) * scale + plus);
                cpu.compute(LAPLACIAN_CYCLES);
                (west, here) = (here, east);
            }
        }
    }

    /// The layers' difference, and their mean at the interface.
    fn layers(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        self.each_point(cpu, rows, LAYERS, |cpu, at| {
            let [upper, lower] = [0, 1].map(|layer: usize| self.layers[layer].now.get(cpu, at));
            self.difference.set(cpu, at, upper - lower);
            self.interface.set(cpu, at, SHARES[1] * upper + SHARES[0] * lower);
            cpu.compute(LAYERS_CYCLES);
        });
    }

    /// How the stream function `by` carries the field `what`: Arakawa's Jacobian, which keeps energy
    /// and the square of vorticity.
    fn jacobian(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, what: &Field, by: &Field, to: &Field) {
        let stride = self.stride();
        let scale = 1.0 / (12.0 * SPACING * SPACING);
        for row in rows {
            cpu.fetch(self.text.part(JACOBIAN * PHASE_BYTES, PHASE_BYTES));
            let start = row * stride;
            let column = |cpu: &mut Cpu<'_>, field: &Field, at: usize| {
                [at - stride, at, at + stride].map(|at| field.get(cpu, at))
            };
            let mut a = [[0.0; 3], column(cpu, what, start), column(cpu, what, start + 1)];
            let mut b = [[0.0; 3], column(cpu, by, start), column(cpu, by, start + 1)];
            for at in start + 1..=start + self.side {
                a = [a[1], a[2], column(cpu, what, at + 1)];
                b = [b[1], b[2], column(cpu, by, at + 1)];
                to.set(cpu, at, arakawa(&a, &b) * scale);
                cpu.compute(JACOBIAN_CYCLES);
            }
        }
    }

    /// The right-hand sides of both equations.
    fn forces(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for row in rows {
            cpu.fetch(self.text.part(FORCES * PHASE_BYTES, PHASE_BYTES));
            for at in row * self.stride() + 1..=row * self.stride() + self.side {
                let wind = self.wind.get(cpu, at);
                let [above, below] = [0, 1].map(|number: usize| {
                    let Layer { carried, friction, .. } = &self.layers[number];
                    carried.get(cpu, at) - FRICTION * friction[2].get(cpu, at)
                });
                let between = LAMBDA_SQUARED * self.carried.get(cpu, at);
                self.forces[DIFFERENCE].set(cpu, at, above - below - between + wind / DEPTHS[0]);
                self.forces[MEAN].set(cpu, at, SHARES[0] * above + SHARES[1] * below + wind / DEPTH);
                cpu.compute(FORCES_CYCLES);
            }
        }
    }

    /// All rows went all steps ahead, the equations are solved, no layer has gained water, and the layers went where
    /// the solutions say.
    pub fn check(&self, steps: usize) -> Result<(), String> {
        let rows = steps * self.side;
        if self.rows_done.get() != rows {
            return Err(format!("{} of {rows} rows went ahead", self.rows_done.get()));
        }
        // When a colour has moved by the tolerance at most, a point of the other has four such neighbours.
        for number in [DIFFERENCE, MEAN] {
            let rhs = |at| self.forces[number].peek(at) * SPACING * SPACING;
            let left = left_over(self.side, LAMBDAS_SQUARED[number], &self.guesses[number], rhs);
            if !left.is_finite() || left > 4.0 * TOLERANCE {
                return Err(format!("{left:e} of equation {number} is not solved"));
            }
        }
        let changes = &self.changes[DIFFERENCE];
        let (sum, size) = (0..changes.len())
            .map(|at| changes.peek(at))
            .fold((0.0, 0.0), |(sum, size), change| (sum + change, size + change.abs()));
        if !size.is_finite() || size == 0.0 || f64::abs(sum) > 1e-9 * size {
            return Err(format!("the layers have gained {sum:e} of {size:e}"));
        }
        for (number, layer) in self.layers.iter().enumerate() {
            for at in 0..layer.now.len() {
                let [difference, mean] = [DIFFERENCE, MEAN].map(|equation| self.changes[equation].peek(at));
                let rate = rate(mean, difference, number);
                let start = layer.now.peek(at) - 2.0 * STEP * rate;
                let jump = (layer.before.peek(at) - start).abs();
                if layer.rate.peek(at) != rate || !jump.is_finite() || jump > MOST_JUMP {
                    return Err(format!(
                        "layer {number} jumps by {jump:e} at point {at}, its rate is {rate:e}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A wave of parabolas, up and down, each 1 long and high: much like a sine, and the same everywhere.
fn arches(at: f64) -> f64 {
    let within = at.fract();
    let height = 4.0 * within * (1.0 - within);
    if (at as u64).is_multiple_of(2) { height } else { -height }
}

/// How fast a layer's stream function changes, from the changes of the mean and of the difference.
fn rate(mean: f64, difference: f64, layer: usize) -> f64 {
    if layer == 0 { mean + SHARES[1] * difference } else { mean - SHARES[0] * difference }
}

/// Twelve times Arakawa's Jacobian of two fields around a point, for a spacing of 1: each is given as
/// three columns from west to east of three rows from south to north.
#[inline(always)]
fn arakawa(a: &[[f64; 3]; 3], b: &[[f64; 3]; 3]) -> f64 {
    let [[aw0, aw, aw2], [as_, _, an], [ae0, ae, ae2]] = *a;
    let [[bw0, bw, bw2], [bs, _, bn], [be0, be, be2]] = *b;
    let crossed = (ae - aw) * (bn - bs) - (an - as_) * (be - bw);
    let first = ae * (be2 - be0) - aw * (bw2 - bw0) - an * (be2 - bw2) + as_ * (be0 - bw0);
    let second = ae2 * (bn - be) - aw0 * (bw - bs) - aw2 * (bn - bw) + ae0 * (be - bs);
    crossed + first + second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jacobian_of_straight_currents_is_exact() {
        let grid = |f: fn(f64, f64) -> f64| [-1.0, 0.0, 1.0].map(|x| [-1.0, 0.0, 1.0].map(|y| f(x, y)));
        let (x, y) = (grid(|x, _| x), grid(|_, y| y));
        assert_eq!(arakawa(&x, &y), 12.0);
        assert_eq!(arakawa(&y, &x), -12.0);
        let product = grid(|x, y| x * y);
        assert_eq!(arakawa(&product, &product), 0.0);
    }
}
