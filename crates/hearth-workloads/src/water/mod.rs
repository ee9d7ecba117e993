//! Molecular dynamics of liquid water.
//!
//! Molecules lie in a box whose sides are joined. In each step all atoms are moved ahead by the
//! derivatives of their paths; springs within molecules and forces between all pairs that are near
//! enough are summed (`forces.rs`); paths are corrected by what the forces say (`paths.rs`); and
//! positions are kept for the trajectory. Each process has a share of the molecules, acts on pairs
//! with the half of all others that follows, and sums forces in memory of its own, which all then add
//! up. Arithmetic prevails, and all but the trajectory fits the cache. (SPLASH's Water.)

mod forces;
mod paths;
mod tasks;
mod turn;

use crate::r3000::{ADD, DIVIDE, LOOP, MULTIPLY, SECOND_WORD, SQUARE_ROOT};
use crate::{Built, Description, Kind, scaled, start};
use forces::{Atoms, MASS, at_rest, between, image, near, within};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Barrier;
use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use turn::{draw, rotation};

pub use tasks::{DESCRIPTION_343, DESCRIPTION_512, build_343, build_512};

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "water",
    description: "molecular dynamics of 343 water molecules, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; Singh and Hennessy, SPLASH",
};

/// A size of the program.
struct Input {
    description: Description,
    /// Molecules along a side of the box.
    side: usize,
    processes: usize,
    /// Time steps at scale 1.
    steps: usize,
}

const SEQUENTIAL: Input = Input { description: DESCRIPTION, side: 7, processes: 1, steps: 28 };

/// Å between molecules of the liquid; femtoseconds of a step; mean square of a component of an atom's
/// velocity, times its mass, at room temperature.
const SPACING: f64 = 3.104;
const STEP: f64 = 0.2;
const THERMAL: f64 = 2.478e-4;

/// Bytes of a molecule in the file that they are read from: positions and velocities of three atoms (estimate).
const INPUT_BYTES_PER_MOLECULE: u64 = 216;

/// Derivatives of a path that are kept, the position being the first, each scaled so that a step
/// ahead is a sum.
const ORDERS: usize = 6;
/// Coordinates of a molecule: three atoms, three axes.
const COORDINATES: usize = 9;
/// Doubles of a molecule: its derivatives, the force, and the velocity of its mass.
const MOLECULE: usize = (ORDERS + 1) * COORDINATES + 3;
const FORCE: usize = ORDERS * COORDINATES;
const MASS_VELOCITY: usize = FORCE + COORDINATES;
/// Doubles of a molecule that the trajectory keeps: its atoms' positions and its mass's velocity.
const KEPT: usize = COORDINATES + 3;

/// Cycles of a spring; of finding whether two molecules are near; of the forces of two atoms, of
/// which a pair of molecules has nine; of what else a pair has; of adding one force up.
const SPRING_CYCLES: u64 = 12 * ADD + 11 * MULTIPLY + SQUARE_ROOT + DIVIDE + 6 * SECOND_WORD;
const NEAR_CYCLES: u64 = 14 * ADD + 3 * MULTIPLY + 3 * SECOND_WORD + LOOP;
const ATOMS_CYCLES: u64 = 12 * ADD + 10 * MULTIPLY + SQUARE_ROOT + DIVIDE + LOOP;
const PAIR_CYCLES: u64 =
    9 * ATOMS_CYCLES + 14 * ADD + 16 * MULTIPLY + 2 * DIVIDE + SQUARE_ROOT + 24 * SECOND_WORD;
const SUM_CYCLES: u64 = ADD + 2 * SECOND_WORD + LOOP;

/// Text of each phase of a step, and their number.
const PHASE_BYTES: u64 = 2048;
const PREDICT: u64 = 0;
const WITHIN: u64 = 1;
const BETWEEN: u64 = 2;
const CORRECT: u64 = 3;
const PHASES: u64 = 4;

/// What is kept on the side to check the run: no part of the program.
#[derive(Default)]
struct Books {
    steps: Cell<usize>,
    /// Energy of springs and between molecules, and of motion, in the step under way.
    potential: Cell<f64>,
    kinetic: Cell<f64>,
    /// Kinetic and all energy after the first step and after the last.
    first: Cell<[f64; 2]>,
    last: Cell<[f64; 2]>,
}

/// The box of molecules.
#[derive(Clone)]
struct Water {
    molecules: usize,
    /// Length of a side of the box.
    side: f64,
    processes: usize,
    state: Array<f64>,
    /// For each process, the forces that it has summed.
    sums: Rc<[Array<f64>]>,
    trajectory: Array<f64>,
    barrier: Barrier,
    text: Code,
    steps: usize,
    books: Rc<Books>,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of time steps.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    SEQUENTIAL.build(memory, scale, seed)
}

impl Input {
    fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let name = self.description.name;
        let water = self.water(memory, scale, seed);
        let mut application = Application::new(name);
        for process in 0..self.processes {
            let water = water.clone();
            application.task(&format!("{name}-{process}"), move |cpu| {
                if water.processes == 1 {
                    start::execute(cpu, water.molecules as u64 * INPUT_BYTES_PER_MOLECULE);
                    start::set_up(cpu, &water.state);
                }
                water.run(cpu, process);
            });
        }
        Built::new(application, move || water.check().map_err(|e| format!("{name}: {e}")))
    }

    /// The box of molecules at its start.
    fn water(&self, memory: &Memory, scale: f64, seed: u64) -> Water {
        let molecules = self.side * self.side * self.side;
        let steps = scaled(self.steps, scale);
        let array = |len: usize| memory.array(len, Placement::FirstTouch);
        let water = Water {
            molecules,
            side: self.side as f64 * SPACING,
            processes: self.processes,
            state: array(molecules * MOLECULE),
            sums: (0..self.processes).map(|_| array(molecules * COORDINATES)).collect(),
            trajectory: array(molecules * KEPT * steps),
            barrier: Barrier::new(memory, self.processes),
            text: memory.code(PHASES * PHASE_BYTES),
            steps,
            books: Rc::default(),
        };
        water.fill(self.side, &mut Pcg32::seed_from_u64(seed));
        water
    }
}

impl Water {
    /// Puts the molecules in a lattice, each turned at random, with velocities at random.
    fn fill(&self, side: usize, random: &mut Pcg32) {
        for molecule in 0..self.molecules {
            let cell = [molecule % side, molecule / side % side, molecule / side / side];
            let axes = rotation(random);
            for (atom, place) in at_rest().into_iter().enumerate() {
                for axis in 0..3 {
                    let turned: f64 = (0..3).map(|along| axes[along][axis] * place[along]).sum();
                    let at = molecule * MOLECULE + atom * 3 + axis;
                    self.state.poke(at, (cell[axis] as f64 + 0.5) * SPACING + turned);
                    let thermal = (3.0 * THERMAL / MASS[atom]).sqrt() * draw(random);
                    self.state.poke(at + COORDINATES, thermal * STEP);
                }
            }
        }
    }

    /// What each process does.
    fn run(&self, cpu: &mut Cpu<'_>, process: usize) {
        self.forces(cpu, process);
        self.start(cpu, process);
        self.meet(cpu);
        for step in 0..self.steps {
            self.predict(cpu, process);
            self.meet(cpu);
            self.forces(cpu, process);
            self.correct(cpu, process, step);
            self.meet(cpu);
            if process == 0 {
                self.note();
            }
        }
    }

    fn meet(&self, cpu: &mut Cpu<'_>) {
        self.barrier.wait(cpu);
    }

    fn fetch(&self, cpu: &mut Cpu<'_>, phase: u64) {
        cpu.fetch(self.text.part(phase * PHASE_BYTES, PHASE_BYTES));
    }

    /// The molecules of a process.
    fn share(&self, process: usize) -> Range<usize> {
        let start = |process: usize| self.molecules * process / self.processes;
        start(process)..start(process + 1)
    }

    /// Where each coordinate of a molecule is: the first of [`ORDERS`] derivatives.
    fn coordinates(molecule: usize) -> Range<usize> {
        molecule * MOLECULE..molecule * MOLECULE + COORDINATES
    }

    fn atoms(&self, cpu: &mut Cpu<'_>, molecule: usize) -> Atoms {
        let at = molecule * MOLECULE;
        [0, 1, 2].map(|atom| [0, 1, 2].map(|axis| self.state.get(cpu, at + atom * 3 + axis)))
    }

    /// Sums this process's forces, and then those of all on its molecules.
    fn forces(&self, cpu: &mut Cpu<'_>, process: usize) {
        self.sum_own(cpu, process);
        self.meet(cpu);
        self.sum_all(cpu, process);
    }

    /// Sums the forces that a process's molecules have and cause.
    fn sum_own(&self, cpu: &mut Cpu<'_>, process: usize) {
        let sums = &self.sums[process];
        (0..sums.len()).for_each(|at| sums.set(cpu, at, 0.0));
        for molecule in self.share(process) {
            self.fetch(cpu, WITHIN);
            let atoms = self.atoms(cpu, molecule);
            let (mut forces, energy) = within(&atoms);
            cpu.compute(3 * SPRING_CYCLES);
            let mut potential = energy;
            self.fetch(cpu, BETWEEN);
            for other in self.partners(molecule) {
                potential += self.act(cpu, &atoms, &mut forces, other, sums);
            }
            self.add(cpu, sums, molecule, &forces);
            self.books.potential.set(self.books.potential.get() + potential);
        }
    }

    /// Adds up the forces of all on a process's molecules.
    fn sum_all(&self, cpu: &mut Cpu<'_>, process: usize) {
        for molecule in self.share(process) {
            for coordinate in 0..COORDINATES {
                let at = molecule * COORDINATES + coordinate;
                let force: f64 = self.sums.iter().map(|sums| sums.get(cpu, at)).sum();
                self.state.set(cpu, molecule * MOLECULE + FORCE + coordinate, force);
                cpu.compute(SUM_CYCLES * self.processes as u64);
            }
        }
    }

    /// The half of all other molecules that follows, around the end: each pair comes once.
    fn partners(&self, molecule: usize) -> impl Iterator<Item = usize> {
        let all = self.molecules;
        let half = (all - 1) / 2 + usize::from(all.is_multiple_of(2) && molecule < all / 2);
        (1..=half).map(move |step| (molecule + step) % all)
    }

    /// The forces between two molecules, if they are near; returns their energy.
    #[inline]
    fn act(
        &self,
        cpu: &mut Cpu<'_>,
        atoms: &Atoms,
        forces: &mut Atoms,
        other: usize,
        sums: &Array<f64>,
    ) -> f64 {
        let oxygen = [0, 1, 2].map(|axis| self.state.get(cpu, other * MOLECULE + axis));
        let shift = image(atoms[0], oxygen, self.side);
        cpu.compute(NEAR_CYCLES);
        if !near(atoms[0], oxygen, shift, self.side / 2.0) {
            return 0.0;
        }
        let hydrogen = |cpu: &mut Cpu<'_>, atom: usize| {
            [0, 1, 2].map(|axis| self.state.get(cpu, other * MOLECULE + atom * 3 + axis))
        };
        let others = [oxygen, hydrogen(cpu, 1), hydrogen(cpu, 2)];
        let (on_this, on_other, energy) = between(atoms, &others, shift, self.side / 2.0);
        cpu.compute(PAIR_CYCLES);
        forces.iter_mut().flatten().zip(on_this.iter().flatten()).for_each(|(sum, force)| *sum += force);
        self.add(cpu, sums, other, &on_other);
        energy
    }

    fn add(&self, cpu: &mut Cpu<'_>, sums: &Array<f64>, molecule: usize, forces: &Atoms) {
        for (coordinate, force) in forces.iter().flatten().enumerate() {
            let at = molecule * COORDINATES + coordinate;
            let sum = sums.get(cpu, at) + force;
            sums.set(cpu, at, sum);
        }
        cpu.compute(COORDINATES as u64 * SUM_CYCLES);
    }

    /// Notes the energy after a step.
    fn note(&self) {
        let kinetic = self.books.kinetic.take();
        let energies = [kinetic, kinetic + self.books.potential.take()];
        if self.books.steps.get() == 0 {
            self.books.first.set(energies);
        }
        self.books.last.set(energies);
        self.books.steps.set(self.books.steps.get() + 1);
    }

    /// All steps were done; energy was conserved; forces cancel out; the trajectory ends where the
    /// atoms are.
    fn check(&self) -> Result<(), String> {
        if self.books.steps.get() != self.steps {
            return Err(format!("{} of {} steps were done", self.books.steps.get(), self.steps));
        }
        let ([kinetic, first], [_, last]) = (self.books.first.get(), self.books.last.get());
        let gained = (last - first) / kinetic;
        if !gained.is_finite() || gained.abs() > 0.01 {
            return Err(format!("{:.2} % of the kinetic energy came from nowhere", gained * 100.0));
        }
        for axis in 0..3 {
            let forces = |molecule: usize| {
                (0..3).map(move |atom| self.state.peek(molecule * MOLECULE + FORCE + atom * 3 + axis))
            };
            let sum: f64 = (0..self.molecules).flat_map(forces).sum();
            if !sum.is_finite() || sum.abs() > 1e-9 {
                return Err(format!("the forces along axis {axis} add up to {sum:e}"));
            }
        }
        let kept = self.trajectory.len() - self.molecules * KEPT;
        let stray = (0..self.molecules).find(|&molecule| {
            (0..COORDINATES).any(|coordinate| {
                self.trajectory.peek(kept + molecule * KEPT + coordinate)
                    != self.state.peek(molecule * MOLECULE + coordinate)
            })
        });
        stray.map_or(Ok(()), |molecule| Err(format!("the trajectory lost molecule {molecule}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_share_the_molecules_come_to_the_right_result() {
        let input = Input { side: 4, processes: 3, steps: 2, ..SEQUENTIAL };
        crate::trial::run(|memory| input.build(memory, 1.0, 1));
    }
}
