//! Eddy currents in an ocean basin that the wind drives.
//!
//! Two layers of water in a closed square basin, each described by its stream function on a grid. A step computes
//! vorticities, how currents carry them (Jacobians), and friction (`basin.rs`); solves two elliptic equations for
//! the change of the stream functions (`relaxation.rs`); and goes ahead in time. Rows of all grids are dealt to the
//! processes in strips (`team.rs`), or are tasks (`tasks.rs`). Nearly all references are stencils and sums over
//! matrices that are as large as the grid. (Holland, "The Role of Mesoscale Eddies in the General Circulation of the
//! Ocean", Journal of Physical Oceanography 1978; Ocean of the first SPLASH, by Singh, Weber and Gupta, Computer
//! Architecture News 1992, which the second paper cites.)

mod basin;
mod relaxation;
mod tasks;
mod team;

use crate::{Built, Description, Kind, scaled, start};
use basin::{Basin, EQUATIONS};
use hearth_hardware::Placement;
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Barrier;
use relaxation::{MOST_SWEEPS, TOLERANCE};
use team::Team;

pub use tasks::{DESCRIPTION_130, DESCRIPTION_146, DESCRIPTION_192, build_130, build_146, build_192};

/// The sequential program.
pub const DESCRIPTION: Description = Description {
    name: "ocean",
    description: "eddy currents in an ocean basin, 96 x 96 grid, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; Singh, Weber and Gupta, SPLASH 1992",
};

/// The parallel program.
pub const DESCRIPTION_8: Description = Description {
    name: "ocean-8",
    description: "eddy currents in an ocean basin, 192 x 192 grid, 8 processes, pages dealt over memories",
    ..DESCRIPTION
};

/// A size of the program.
struct Input {
    description: Description,
    /// Points along a side.
    side: usize,
    processes: usize,
    /// Time steps at scale 1.
    steps: usize,
    placement: Placement,
}

/// Time steps at scale 1: as many as make the sequential program take the 26.3 s of the paper's table 1.
const STEPS: usize = 5;

const SEQUENTIAL: Input = Input {
    description: DESCRIPTION,
    side: 96,
    processes: 1,
    steps: STEPS,
    placement: Placement::FirstTouch,
};

/// Steps make about as many cache misses as the paper's trace has (table 6), in less time than its
/// whole program takes.
const PARALLEL: Input =
    Input { description: DESCRIPTION_8, side: 192, processes: 8, steps: 9, placement: Placement::RoundRobin };

/// Sets the sequential program up; see [`crate::build`]. Scale cuts the number of time steps.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    SEQUENTIAL.build(memory, scale, seed)
}

/// The same for the parallel program.
pub fn build_8(memory: &Memory, scale: f64, seed: u64) -> Built {
    PARALLEL.build(memory, scale, seed)
}

impl Input {
    fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let name = self.description.name;
        let steps = scaled(self.steps, scale);
        let basin = Basin::new(memory, self.side, self.placement, seed, self.processes);
        let barrier = Barrier::new(memory, self.processes);
        let mut application = Application::new(name);
        for process in 0..self.processes {
            let (basin, team) = (basin.clone(), Team::new(&barrier, process, self.processes));
            let is_alone = self.processes == 1;
            application.task(&format!("{name}-{process}"), move |cpu| {
                if is_alone {
                    start::execute(cpu, 0);
                    basin.fields().for_each(|field| start::set_up(cpu, field));
                }
                (0..steps).for_each(|_| basin.step(cpu, &team));
            });
        }
        Built::new(application, move || basin.check(steps).map_err(|e| format!("{name}: {e}")))
    }
}

impl Basin {
    /// One step in time, as one process of the team does it.
    fn step(&self, cpu: &mut Cpu<'_>, team: &Team) {
        let rows = team.rows(self.side);
        self.begin_step(cpu, rows.clone());
        team.meet(cpu);
        self.accelerate(cpu, rows.clone());
        (0..EQUATIONS.len()).for_each(|number| self.solve(cpu, team, number));
        self.end_step(cpu, rows);
        team.meet(cpu);
    }

    /// Solves one of the equations, starting from the solution of the step before.
    fn solve(&self, cpu: &mut Cpu<'_>, team: &Team, number: usize) {
        let (equation, rows) = (self.equation(number), team.rows(self.side));
        self.solver.size(cpu, &equation, rows.clone(), team.number());
        let wanted = self.sum(cpu, team) * TOLERANCE * TOLERANCE;
        for _ in 0..MOST_SWEEPS {
            self.solver.relax(cpu, &equation, rows.clone(), team.number(), 0);
            team.meet(cpu);
            self.solver.relax(cpu, &equation, rows.clone(), team.number(), 1);
            if self.sum(cpu, team) <= wanted {
                return;
            }
        }
    }

    /// The sum of what all processes have found. Nobody goes on to change it while others still read it.
    fn sum(&self, cpu: &mut Cpu<'_>, team: &Team) -> f64 {
        team.meet(cpu);
        let sum = self.solver.total(cpu);
        team.meet(cpu);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        for processes in [1, 3, 16] {
            let input = Input { side: 24, processes, steps: 2, ..PARALLEL };
            crate::trial::run(|memory| input.build(memory, 1.0, 1));
        }
    }
}
