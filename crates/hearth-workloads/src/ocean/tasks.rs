//! The task-parallel program: each phase of a step is a task for each process's strip of rows, which goes from one
//! side to the other.

use super::basin::{Basin, DIFFERENCE, LAMBDAS_SQUARED, MEAN};
use super::relaxation::{MOST_SWEEPS, TOLERANCE};
use super::{DESCRIPTION, STEPS};
use crate::cool::{Invocation, Process, built};
use crate::{Built, Description, scaled, start};
use hearth_hardware::Placement;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use std::ops::Range;
use std::rc::Rc;

/// The largest of the paper's inputs.
pub const DESCRIPTION_192: Description = Description {
    name: "ocean-cool",
    description: "eddy currents in an ocean basin, 192 x 192 grid, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 4; Singh, Weber and Gupta, SPLASH 1992",
    ..DESCRIPTION
};

/// A smaller one.
pub const DESCRIPTION_146: Description = Description {
    name: "ocean-cool-146",
    description: "eddy currents in an ocean basin, 146 x 146 grid, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 5; Singh, Weber and Gupta, SPLASH 1992",
    ..DESCRIPTION
};

/// The smallest one.
pub const DESCRIPTION_130: Description = Description {
    name: "ocean-cool-130",
    description: "eddy currents in an ocean basin, 130 x 130 grid, 16 processes that do tasks",
    ..DESCRIPTION_146
};

/// Sets the program up for 192 x 192 points; see [`crate::build_invoked`]. Scale cuts the number of time steps.
pub fn build_192(memory: &Memory, scale: f64, _seed: u64, invocation: &Invocation) -> Built {
    build(DESCRIPTION_192, 192, memory, scale, invocation)
}

/// The same for 146 x 146 points.
pub fn build_146(memory: &Memory, scale: f64, _seed: u64, invocation: &Invocation) -> Built {
    build(DESCRIPTION_146, 146, memory, scale, invocation)
}

/// The same for 130 x 130 points.
pub fn build_130(memory: &Memory, scale: f64, _seed: u64, invocation: &Invocation) -> Built {
    build(DESCRIPTION_130, 130, memory, scale, invocation)
}

fn build(
    description: Description,
    side: usize,
    memory: &Memory,
    scale: f64,
    invocation: &Invocation,
) -> Built {
    let name = description.name;
    let (steps, parts) = (scaled(STEPS, scale), invocation.processes);
    let basin = Basin::new(memory, side, Placement::FirstTouch, parts);
    let ocean = Ocean { basin: Rc::new(basin), parts };
    let checked = Rc::clone(&ocean.basin);
    let master = Box::new(move |cpu: &mut Cpu<'_>, master: &Process| ocean.direct(cpu, master, steps));
    let check = move || checked.check(steps).map_err(|wrong| format!("{name}: {wrong}"));
    built(name, memory, invocation, master, Box::new(check))
}

#[derive(Clone)]
struct Ocean {
    basin: Rc<Basin>,
    parts: usize,
}

impl Ocean {
    /// The rows of a part, counted from 1.
    fn rows(&self, part: usize) -> Range<usize> {
        let start = |part: usize| 1 + self.basin.side * part / self.parts;
        start(part)..start(part + 1)
    }

    /// What the master does.
    fn direct(&self, cpu: &mut Cpu<'_>, master: &Process, steps: usize) {
        self.set_up(cpu, master);
        self.begin(cpu, master);
        cpu.mark_parallel(true);
        for step in 1..=steps {
            self.phase(cpu, master, |basin, cpu, rows, _| basin.begin_step(cpu, rows));
            self.phase(cpu, master, |basin, cpu, rows, _| basin.carry(cpu, rows));
            self.phase(cpu, master, |basin, cpu, rows, _| basin.accelerate(cpu, rows));
            self.solve(cpu, master, DIFFERENCE);
            self.phase(cpu, master, |basin, cpu, rows, part| basin.sum_changes(cpu, rows, part));
            let sum = self.basin.solver.total(cpu);
            self.phase(cpu, master, move |basin, cpu, rows, _| basin.conserve(cpu, rows, sum));
            self.solve(cpu, master, MEAN);
            self.phase(cpu, master, move |basin, cpu, rows, _| basin.end_step(cpu, rows, step == steps));
        }
        cpu.mark_parallel(false);
    }

    /// Finds the circulation.
    fn begin(&self, cpu: &mut Cpu<'_>, master: &Process) {
        self.phase(cpu, master, |basin, cpu, rows, _| basin.pose_circulation(cpu, rows));
        self.relax(cpu, master, DIFFERENCE);
        self.phase(cpu, master, |basin, cpu, rows, part| {
            basin.keep_circulation(cpu, rows.clone());
            basin.sum_circulation(cpu, rows, part);
        });
        self.basin.set_circulating(cpu);
    }

    fn phase(
        &self,
        cpu: &mut Cpu<'_>,
        master: &Process,
        act: impl Fn(&Basin, &mut Cpu<'_>, Range<usize>, usize) + 'static,
    ) {
        let ocean = self.clone();
        master.on_each(cpu, move |cpu, part| act(&ocean.basin, cpu, ocean.rows(part), part));
    }

    /// Solves an equation, starting from the solution of the step before.
    fn solve(&self, cpu: &mut Cpu<'_>, master: &Process, equation: usize) {
        self.phase(cpu, master, move |basin, cpu, rows, _| basin.pose(cpu, rows, equation));
        self.relax(cpu, master, equation);
        self.phase(cpu, master, move |basin, cpu, rows, _| basin.keep(cpu, rows, equation));
    }

    /// Relaxes what the solver was given, until nothing moves any more.
    fn relax(&self, cpu: &mut Cpu<'_>, master: &Process, equation: usize) {
        let lambda_squared = LAMBDAS_SQUARED[equation];
        for _ in 0..MOST_SWEEPS {
            for colour in 0..2 {
                self.phase(cpu, master, move |basin, cpu, rows, part| {
                    basin.solver.relax(cpu, lambda_squared, rows, part, colour);
                });
            }
            if self.basin.solver.largest(cpu) <= TOLERANCE {
                return;
            }
        }
    }

    /// Distributes the rows of all fields to who works on them, and writes the fields.
    fn set_up(&self, cpu: &mut Cpu<'_>, master: &Process) {
        let stride = self.basin.side + 2;
        for field in self.basin.fields() {
            for part in 0..self.parts {
                let rows = self.rows(part);
                // The rings belong to the first and to the last part.
                let Range { start, end } = self.basin.with_ring(rows);
                master.distribute_part(cpu, field, start * stride..end * stride, part);
            }
            start::set_up(cpu, field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::run_with_any_number_of_processes;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        run_with_any_number_of_processes(|memory, invocation| {
            build(DESCRIPTION_192, 24, memory, 0.13, invocation)
        });
    }
}
