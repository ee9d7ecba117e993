//! The equations of motion, and the fields that they are about.

use super::relaxation::{Equation, Relaxation, TOLERANCE, walls};
use crate::r3000::{ADD, LOOP, MULTIPLY, SECOND_WORD};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// The basin's side and the gradient of the Coriolis force are 1; all else is in these units.
const STEP: f64 = 0.02;
/// The share of the depth that each layer has.
const DEPTH: [f64; 2] = [0.2, 0.8];
const VISCOSITY: f64 = 6.4e-5;
const BOTTOM_FRICTION: f64 = 1e-3;
const WIND: f64 = 1e-3;
const HILLS: f64 = 0.02;
/// The square of the basin's side over the radius of eddies.
const LAMBDA_SQUARED: f64 = 400.0;
/// `lambda^2` of the two equations.
pub const EQUATIONS: [f64; 2] = [0.0, LAMBDA_SQUARED];
/// How much of the difference of neighbouring steps is smoothed away (Asselin's filter).
const SMOOTHING: f64 = 0.05;
/// Waves of random size that the currents start with, each way, and their largest size.
const WAVES: usize = 6;
const WAVE: f64 = 2e-4;

/// Cycles of a point beside its references: a Laplacian; a Jacobian (Arakawa's, twelve products of
/// differences); the sums that make up the right-hand sides, and the step ahead.
const LAPLACIAN_CYCLES: u64 = 5 * ADD + 2 * MULTIPLY + 4 * SECOND_WORD + LOOP;
const JACOBIAN_CYCLES: u64 = 31 * ADD + 13 * MULTIPLY + 7 * SECOND_WORD + LOOP;
const LAYERS_CYCLES: u64 = 2 * ADD + 2 * MULTIPLY + 4 * SECOND_WORD + LOOP;
const FORCES_CYCLES: u64 = 9 * ADD + 9 * MULTIPLY + 10 * SECOND_WORD + LOOP;
const AHEAD_CYCLES: u64 = 8 * ADD + 8 * MULTIPLY + 15 * SECOND_WORD + LOOP;

/// Text of each phase of a step, and their number.
const PHASE_BYTES: u64 = 1024;
const VORTICITY: u64 = 0;
const LAYERS: u64 = 1;
const JACOBIAN: u64 = 2;
const FORCES: u64 = 3;
const AHEAD: u64 = 4;
const PHASES: u64 = 5;

type Field = Array<f64>;

/// The fields of one layer.
#[derive(Clone)]
struct Layer {
    /// The stream function now, one step ago, and one step ahead.
    now: Field,
    before: Field,
    ahead: Field,
    /// What the planet's rotation and the bottom add to the vorticity.
    planetary: Field,
    vorticity: Field,
    /// How the currents carry vorticity.
    carried: Field,
    /// The vorticity one step ago, and its Laplacian.
    old_vorticity: Field,
    viscous: Field,
    /// Sums over all steps: of the stream function, its square, and its product with the vorticity.
    mean: Field,
    square: Field,
    energy: Field,
}

impl Layer {
    fn fields(&self) -> [&Field; 11] {
        let Self { now, before, ahead, planetary, vorticity, carried, .. } = self;
        let Self { old_vorticity, viscous, mean, square, energy, .. } = self;
        [now, before, ahead, planetary, vorticity, carried, old_vorticity, viscous, mean, square, energy]
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
    /// Right-hand sides, and solutions, which the next step's solver starts from: for the change of
    /// the depth's mean and of the difference.
    forces: [Field; 2],
    changes: [Field; 2],
    /// What solves the equations.
    pub solver: Relaxation,
    text: Code,
    /// Rows that went a step ahead: for the check.
    rows_done: Rc<Cell<usize>>,
}

impl Basin {
    /// A basin with currents at random, to be worked on in so many parts.
    pub fn new(memory: &Memory, side: usize, placement: Placement, seed: u64, parts: usize) -> Self {
        let field = || memory.array((side + 2) * (side + 2), placement);
        let layer = || Layer {
            now: field(),
            before: field(),
            ahead: field(),
            planetary: field(),
            vorticity: field(),
            carried: field(),
            old_vorticity: field(),
            viscous: field(),
            mean: field(),
            square: field(),
            energy: field(),
        };
        let basin = Self {
            side,
            layers: [layer(), layer()],
            wind: field(),
            difference: field(),
            interface: field(),
            carried: field(),
            forces: [field(), field()],
            changes: [field(), field()],
            solver: Relaxation::new(memory, parts),
            text: memory.code(PHASES * PHASE_BYTES),
            rows_done: Rc::default(),
        };
        basin.fill(&mut Pcg32::seed_from_u64(seed));
        basin
    }

    fn fill(&self, random: &mut Pcg32) {
        let mut draw = || f64::from(random.next_u32() % 2001) / 1000.0 - 1.0;
        let sizes: [[[f64; WAVES]; WAVES]; 3] =
            std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(|_| draw())));
        let shape = |at: usize| std::array::from_fn(|wave| arches((wave + 1) as f64 * self.place(at)));
        let shapes: Vec<[f64; WAVES]> = (0..=self.side).map(shape).collect();
        for (row, column) in (1..=self.side).flat_map(|row| (1..=self.side).map(move |column| (row, column)))
        {
            let at = row * self.stride() + column;
            let waves = |sizes: &[[f64; WAVES]; WAVES]| -> f64 {
                let along =
                    |sizes: &[f64; WAVES]| sizes.iter().zip(&shapes[column]).map(|(a, b)| a * b).sum();
                sizes.iter().map(along).zip(&shapes[row]).map(|(a, b): (f64, _)| a * b).sum()
            };
            for (layer, sizes) in self.layers.iter().zip(&sizes) {
                let value = WAVE * waves(sizes);
                layer.now.poke(at, value);
                layer.before.poke(at, value);
                layer.planetary.poke(at, self.place(row));
            }
            self.layers[1].planetary.poke(at, self.place(row) + HILLS * waves(&sizes[2]));
            self.wind.poke(at, -WIND * arches(2.0 * self.place(row)));
        }
    }

    /// Where a row or column lies between the walls, 0 to 1.
    fn place(&self, at: usize) -> f64 {
        (at as f64 - 0.5) / self.side as f64
    }

    fn stride(&self) -> usize {
        self.side + 2
    }

    /// All fields.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let shared = [&self.wind, &self.difference, &self.interface, &self.carried];
        let of_layers = self.layers.iter().flat_map(Layer::fields);
        of_layers.chain(shared).chain(&self.forces).chain(&self.changes)
    }

    /// One of the [`EQUATIONS`], by its number.
    pub fn equation(&self, number: usize) -> Equation<'_> {
        Equation {
            side: self.side,
            lambda_squared: EQUATIONS[number],
            rhs: &self.forces[number],
            solution: &self.changes[number],
        }
    }

    /// The vorticities, and the layers' differences, in some rows.
    pub fn begin_step(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for layer in &self.layers {
            self.laplacian(cpu, rows.clone(), &layer.now, Some(&layer.planetary), &layer.vorticity);
            self.laplacian(cpu, rows.clone(), &layer.before, None, &layer.old_vorticity);
        }
        self.layers(cpu, rows);
    }

    /// The right-hand sides of the equations, in some rows; others must have begun.
    pub fn accelerate(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for layer in &self.layers {
            self.jacobian(cpu, rows.clone(), &layer.vorticity, &layer.now, &layer.carried);
            self.laplacian(cpu, rows.clone(), &layer.old_vorticity, None, &layer.viscous);
        }
        self.jacobian(cpu, rows.clone(), &self.difference, &self.interface, &self.carried);
        self.forces(cpu, rows);
    }

    /// Goes a step ahead in some rows; the equations must be solved.
    pub fn end_step(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        self.rows_done.set(self.rows_done.get() + rows.len());
        self.ahead(cpu, rows);
    }

    /// Does something at every point of some rows.
    #[inline]
    fn each_point(
        &self,
        cpu: &mut Cpu<'_>,
        rows: Range<usize>,
        phase: u64,
        mut act: impl FnMut(&mut Cpu<'_>, usize),
    ) {
        for row in rows {
            cpu.fetch(self.text.part(phase * PHASE_BYTES, PHASE_BYTES));
            let start = row * self.stride();
            (start + 1..=start + self.side).for_each(|at| act(cpu, at));
        }
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
        let scale = (side * side) as f64;
        for row in rows {
            cpu.fetch(self.text.part(VORTICITY * PHASE_BYTES, PHASE_BYTES));
            let start = row * stride;
            let (mut west, mut here) = (from.get(cpu, start), from.get(cpu, start + 1));
            for column in 1..=side {
                let at = start + column;
                let east = from.get(cpu, at + 1);
                let sum = from.get(cpu, at - stride) + from.get(cpu, at + stride) + west + east;
                let diagonal = (4 + walls(side, row) + walls(side, column)) as f64;
                let plus = plus.map_or(0.0, |plus| plus.get(cpu, at));
                to.set(cpu, at, (sum - diagonal * here) * scale + plus);
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
            self.interface.set(cpu, at, DEPTH[1] * upper + DEPTH[0] * lower);
            cpu.compute(LAYERS_CYCLES);
        });
    }

    /// How the stream function `by` carries the field `what`: Arakawa's Jacobian, which keeps energy
    /// and the square of vorticity.
    fn jacobian(&self, cpu: &mut Cpu<'_>, rows: Range<usize>, what: &Field, by: &Field, to: &Field) {
        let stride = self.stride();
        let scale = (self.side * self.side) as f64 / 12.0;
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
        let [upper, lower] = &self.layers;
        self.each_point(cpu, rows, FORCES, |cpu, at| {
            let above = upper.carried.get(cpu, at)
                + VISCOSITY * upper.viscous.get(cpu, at)
                + self.wind.get(cpu, at) / DEPTH[0];
            let below = lower.carried.get(cpu, at) + VISCOSITY * lower.viscous.get(cpu, at)
                - BOTTOM_FRICTION * lower.old_vorticity.get(cpu, at);
            self.forces[0].set(cpu, at, DEPTH[0] * above + DEPTH[1] * below);
            let between = above - below - LAMBDA_SQUARED * self.carried.get(cpu, at);
            self.forces[1].set(cpu, at, between);
            cpu.compute(FORCES_CYCLES);
        });
    }

    /// Goes a step ahead, and adds to the sums.
    fn ahead(&self, cpu: &mut Cpu<'_>, rows: Range<usize>) {
        for (number, layer) in self.layers.iter().enumerate() {
            self.each_point(cpu, rows.clone(), AHEAD, |cpu, at| {
                let change = change(self.changes[0].get(cpu, at), self.changes[1].get(cpu, at), number);
                let (before, now) = (layer.before.get(cpu, at), layer.now.get(cpu, at));
                let ahead = before + 2.0 * STEP * change;
                layer.ahead.set(cpu, at, ahead);
                layer.before.set(cpu, at, now + SMOOTHING * (before - 2.0 * now + ahead));
                layer.now.set(cpu, at, ahead);
                let vorticity = layer.vorticity.get(cpu, at);
                for (sum, more) in
                    [(&layer.mean, now), (&layer.square, now * now), (&layer.energy, now * vorticity)]
                {
                    let total = sum.get(cpu, at) + more;
                    sum.set(cpu, at, total);
                }
                cpu.compute(AHEAD_CYCLES);
            });
        }
    }

    /// All rows went all steps ahead, the equations are solved, and the layers went where the solutions say.
    pub fn check(&self, steps: usize) -> Result<(), String> {
        let rows = steps * self.side;
        if self.rows_done.get() != rows {
            return Err(format!("{} of {rows} rows went ahead", self.rows_done.get()));
        }
        for (number, left) in (0..EQUATIONS.len()).map(|number| (number, self.equation(number).left_over())) {
            if !left.is_finite() || left > 2.0 * TOLERANCE {
                return Err(format!("{left:e} of equation {number} is not solved"));
            }
        }
        for (number, layer) in self.layers.iter().enumerate() {
            for at in 0..layer.now.len() {
                let now = layer.now.peek(at);
                let change = change(self.changes[0].peek(at), self.changes[1].peek(at), number);
                // `before` was smoothed with the step ahead; undone, it is where the step started.
                let start = now - 2.0 * STEP * change;
                let middle = (layer.before.peek(at) - SMOOTHING * (start + now)) / (1.0 - 2.0 * SMOOTHING);
                if !middle.is_finite() || (middle - start).abs() > WAVE * 100.0 {
                    return Err(format!("layer {number} jumps by {:e} at point {at}", middle - start));
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
fn change(mean: f64, difference: f64, layer: usize) -> f64 {
    if layer == 0 { mean + DEPTH[1] * difference } else { mean - DEPTH[0] * difference }
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
