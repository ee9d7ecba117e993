//! The paths of the atoms: predicted from their derivatives, and corrected by what the forces say (Gear's
//! method).

use super::forces::MASS;
use super::{COORDINATES, CORRECT, FORCE, KEPT, MASS_VELOCITY, MOLECULE, ORDERS, PREDICT, STEP, Water};
use crate::r3000::{ADD, DIVIDE, LOOP, MULTIPLY, SECOND_WORD};
use hearth_sim::program::Cpu;

/// How much of an error in the second derivative each is corrected by (Gear's).
const CORRECTION: [f64; ORDERS] = [3.0 / 20.0, 251.0 / 360.0, 1.0, 11.0 / 18.0, 1.0 / 6.0, 1.0 / 60.0];

/// Cycles of a coordinate beside its references: ahead (15 sums), and its correction.
const PREDICT_CYCLES: u64 = 15 * ADD + 11 * SECOND_WORD + LOOP;
const CORRECT_CYCLES: u64 = 8 * ADD + 8 * MULTIPLY + 13 * SECOND_WORD + LOOP;

impl Water {
    /// Moves the atoms a step ahead along their paths.
    pub(super) fn predict(&self, cpu: &mut Cpu<'_>, process: usize) {
        for molecule in self.share(process) {
            self.fetch(cpu, PREDICT);
            for at in Self::coordinates(molecule) {
                let mut path: [f64; ORDERS] =
                    std::array::from_fn(|order| self.state.get(cpu, at + order * COORDINATES));
                for last in 0..ORDERS - 1 {
                    (last..ORDERS - 1).rev().for_each(|order| path[order] += path[order + 1]);
                }
                for (order, &value) in path.iter().enumerate().take(ORDERS - 1) {
                    self.state.set(cpu, at + order * COORDINATES, value);
                }
                cpu.compute(PREDICT_CYCLES);
            }
        }
    }

    /// What a coordinate's second derivative should be, scaled, by the force on it.
    fn wanted(&self, cpu: &mut Cpu<'_>, at: usize, coordinate: usize) -> f64 {
        self.state.get(cpu, at + FORCE) * (STEP * STEP / 2.0 / MASS[coordinate / 3])
    }

    /// Starts all paths with the second derivative that the forces say.
    pub(super) fn start(&self, cpu: &mut Cpu<'_>, process: usize) {
        for molecule in self.share(process) {
            for (coordinate, at) in Self::coordinates(molecule).enumerate() {
                let wanted = self.wanted(cpu, at, coordinate);
                self.state.set(cpu, at + 2 * COORDINATES, wanted);
                cpu.compute(MULTIPLY + LOOP);
            }
        }
        self.books.potential.set(0.0);
    }

    /// Corrects all paths, and keeps where the atoms are.
    pub(super) fn correct(&self, cpu: &mut Cpu<'_>, process: usize, step: usize) {
        for molecule in self.share(process) {
            self.fetch(cpu, CORRECT);
            let kept = (step * self.molecules + molecule) * KEPT;
            let (mut momentum, mut kinetic) = ([0.0; 3], 0.0);
            for (coordinate, at) in Self::coordinates(molecule).enumerate() {
                let wanted = self.wanted(cpu, at, coordinate);
                let error = wanted - self.state.get(cpu, at + 2 * COORDINATES);
                for (order, share) in CORRECTION.into_iter().enumerate() {
                    let corrected = self.state.get(cpu, at + order * COORDINATES) + share * error;
                    self.state.set(cpu, at + order * COORDINATES, corrected);
                    match order {
                        0 => self.trajectory.set(cpu, kept + coordinate, corrected),
                        1 => {
                            let mass = MASS[coordinate / 3];
                            momentum[coordinate % 3] += mass * corrected / STEP;
                            kinetic += mass * (corrected / STEP) * (corrected / STEP) / 2.0;
                        }
                        _ => {}
                    }
                }
                cpu.compute(CORRECT_CYCLES);
            }
            self.books.kinetic.set(self.books.kinetic.get() + kinetic);
            for (axis, momentum) in momentum.into_iter().enumerate() {
                let value = momentum / MASS.iter().sum::<f64>();
                self.state.set(cpu, molecule * MOLECULE + MASS_VELOCITY + axis, value);
                self.trajectory.set(cpu, kept + COORDINATES + axis, value);
                cpu.compute(DIVIDE);
            }
        }
    }
}
