//! Eddy currents in an ocean basin that the wind drives.
//!
//! Two layers of water in a closed square basin, each described by its stream function on a grid. A step computes
//! vorticities, how currents carry them (Jacobians), and friction (`basin.rs`); solves two elliptic equations for
//! the change of the stream functions (`relaxation.rs`); and goes ahead in time. Rows of all grids are dealt to the
//! processes in strips (`team.rs`), or are tasks (`tasks.rs`). Nearly all references are stencils and sums over
//! matrices that are as large as the grid. (Holland, "The Role of Mesoscale Eddies in the General Circulation of the
//! Ocean", Journal of Physical Oceanography 1978; Ocean of the first SPLASH, by Singh, Weber and Gupta, Computer
//! Architecture News 1992, which the second paper cites. Its successor in the second SPLASH says what it changed: the
//! solver and how grids are cut. The equations, the order of a step and all numbers but friction are from there.)

mod basin;
mod relaxation;
mod tasks;
mod team;

use crate::{Built, Description, Kind, scaled, start};
use basin::{Basin, DIFFERENCE, LAMBDAS_SQUARED, MEAN};
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
    placement: Placement,
}

/// Time steps at scale 1. With the solver's tolerance they are calibrated to two inputs: table 1's 26.3 s of the
/// sequential program, and the 24.2 million misses of the parallel one in table 6.
const STEPS: usize = 16;

const SEQUENTIAL: Input =
    Input { description: DESCRIPTION, side: 96, processes: 1, placement: Placement::FirstTouch };

const PARALLEL: Input =
    Input { description: DESCRIPTION_8, side: 192, processes: 8, placement: Placement::RoundRobin };

/// Sets the sequential program up; see [`crate::build`]. Scale cuts the number of time steps.
pub fn build(memory: &Memory, scale: f64, _seed: u64) -> Built {
    SEQUENTIAL.build(memory, scale)
}

/// The same for the parallel program.
pub fn build_8(memory: &Memory, scale: f64, _seed: u64) -> Built {
    PARALLEL.build(memory, scale)
}

impl Input {
    fn build(&self, memory: &Memory, scale: f64) -> Built {
        let name = self.description.name;
        let steps = scaled(STEPS, scale);
        let basin = Basin::new(memory, self.side, self.placement, self.processes);
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
                basin.begin(cpu, &team);
                (1..=steps).for_each(|step| basin.step(cpu, &team, step == steps));
            });
        }
        Built::new(application, move || basin.check(steps).map_err(|e| format!("{name}: {e}")))
    }
}

impl Basin {
    /// Finds the circulation, as one process of the team does it.
    fn begin(&self, cpu: &mut Cpu<'_>, team: &Team) {
        let rows = team.rows(self.side);
        self.pose_circulation(cpu, rows.clone());
        self.relax(cpu, team, DIFFERENCE);
        self.keep_circulation(cpu, rows.clone());
        self.sum_circulation(cpu, rows, team.number());
        team.meet(cpu);
        self.set_circulating(cpu);
        team.meet(cpu);
    }

    /// One step in time.
    fn step(&self, cpu: &mut Cpu<'_>, team: &Team, is_last: bool) {
        let rows = team.rows(self.side);
        self.begin_step(cpu, rows.clone());
        team.meet(cpu);
        self.carry(cpu, rows.clone());
        team.meet(cpu);
        self.accelerate(cpu, rows.clone());
        self.solve(cpu, team, DIFFERENCE);
        self.sum_changes(cpu, rows.clone(), team.number());
        team.meet(cpu);
        let sum = self.solver.total(cpu);
        self.conserve(cpu, rows.clone(), sum);
        self.solve(cpu, team, MEAN);
        self.end_step(cpu, rows, is_last);
        team.meet(cpu);
    }

    /// Solves one of the equations, starting from the solution of the step before.
    fn solve(&self, cpu: &mut Cpu<'_>, team: &Team, equation: usize) {
        let rows = team.rows(self.side);
        self.pose(cpu, rows.clone(), equation);
        self.relax(cpu, team, equation);
        self.keep(cpu, rows, equation);
    }

    /// Relaxes what the solver was given, until nothing moves any more.
    fn relax(&self, cpu: &mut Cpu<'_>, team: &Team, equation: usize) {
        let (lambda_squared, rows) = (LAMBDAS_SQUARED[equation], team.rows(self.side));
        for _ in 0..MOST_SWEEPS {
            for colour in 0..2 {
                team.meet(cpu);
                self.solver.relax(cpu, lambda_squared, rows.clone(), team.number(), colour);
            }
            team.meet(cpu);
            // Nobody goes on to change it while others still read it: they meet before the next sweep.
            if self.solver.largest(cpu) <= TOLERANCE {
                break;
            }
        }
        team.meet(cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        for processes in [1, 3, 16] {
            let input = Input { side: 24, processes, ..PARALLEL };
            crate::trial::run(|memory| input.build(memory, 0.13));
        }
    }
}
