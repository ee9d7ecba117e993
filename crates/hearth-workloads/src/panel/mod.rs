//! Panel Cholesky factorization of a sparse matrix: `A = L * L^T`.
//!
//! The matrix is a solid brick of finite elements (`brick.rs`). The structure of its factor, and the
//! dense work on panels of it, are those of [`crate::cholesky`]; what differs is who does what. A task
//! is the update of a panel by another one, and is done by the process that owns the updated panel,
//! which is dealt to it once and for all. So no panel is locked, and each process writes to its own.
//! (Rothberg and Gupta, "Efficient Sparse Matrix Factorization on High-Performance Workstations", ACM
//! TOMS 1991; SPLASH.)

mod brick;
mod tasks;

use crate::cholesky::factor::{Factor, Tools};
use crate::cholesky::queue::Queue;
use crate::cholesky::symbolic::Update;
use crate::{Built, Description, Kind};
use brick::brick;
use hearth_hardware::Placement;
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use std::rc::Rc;

pub use tasks::{DESCRIPTION_17, DESCRIPTION_29, build_17, build_29};

/// The sequential program.
pub const DESCRIPTION: Description = Description {
    name: "panel",
    description: "panel Cholesky factorization of a sparse matrix with 4,000 rows, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; Rothberg and Gupta, SPLASH",
};

/// The parallel program.
pub const DESCRIPTION_8: Description = Description {
    name: "panel-8",
    description: "panel Cholesky factorization, 11,000 rows, 8 processes, pages dealt over memories",
    ..DESCRIPTION
};

/// A size of the program.
struct Input {
    description: Description,
    /// Nodes of the brick along each axis at scale 1; each has three rows.
    sides: [usize; 3],
    processes: usize,
    placement: Placement,
}

const SEQUENTIAL: Input =
    Input { description: DESCRIPTION, sides: [11, 11, 11], processes: 1, placement: Placement::FirstTouch };

/// A long brick: as many rows as the paper's matrix, and about as many cache misses as its trace has
/// (table 6).
const PARALLEL: Input =
    Input { description: DESCRIPTION_8, sides: [8, 8, 57], processes: 8, placement: Placement::RoundRobin };

/// Columns of a panel at most (an estimate).
const MAX_WIDTH: usize = 16;
/// The shortest that the brick's longest axis becomes.
const LEAST_LENGTH: usize = 3;

/// Sets the sequential program up; see [`crate::build`]. Scale makes the brick shorter along its last
/// axis, and so the factor smaller, but not the largest of its panels.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    SEQUENTIAL.build(memory, scale, seed)
}

/// The same for the parallel program.
pub fn build_8(memory: &Memory, scale: f64, seed: u64) -> Built {
    PARALLEL.build(memory, scale, seed)
}

/// An update that a finished panel owes.
struct Task {
    source: usize,
    update: Update,
}

/// A factorization under way.
#[derive(Clone)]
struct Factorization {
    factor: Factor,
    /// All updates; those of a panel start at `first`.
    tasks: Rc<[Task]>,
    first: Rc<[usize]>,
    /// For each process: tasks, by number, and after these the panels that can be finished at once.
    queues: Rc<[Queue]>,
    tools: Rc<[Tools]>,
}

impl Input {
    /// The brick at a scale.
    fn sides(&self, scale: f64) -> [usize; 3] {
        let [x, y, z] = self.sides;
        [x, y, ((z as f64 * scale).round() as usize).max(LEAST_LENGTH)]
    }

    fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let name = self.description.name;
        let factor = Factor::new(memory, brick(self.sides(scale), seed), MAX_WIDTH, self.placement);
        let factorization = Factorization::new(memory, factor, self.processes);
        let mut application = Application::new(name);
        for process in 0..self.processes {
            let factorization = factorization.clone();
            let is_alone = self.processes == 1;
            application.task(&format!("{name}-{process}"), move |cpu| {
                if is_alone {
                    factorization.factor.start(cpu);
                }
                factorization.work(cpu, process);
            });
        }
        let check = move || factorization.factor.check().map_err(|wrong| format!("{name}: {wrong}"));
        Built::new(application, check)
    }
}

impl Factorization {
    fn new(memory: &Memory, factor: Factor, processes: usize) -> Self {
        let mut tasks = Vec::new();
        let mut first = Vec::new();
        let mut owed = vec![0; processes];
        for (source, panel) in factor.panels().iter().enumerate() {
            first.push(tasks.len());
            for &update in &panel.updates {
                owed[update.target % processes] += 1;
                tasks.push(Task { source, update });
            }
        }
        factor.ready().for_each(|panel| owed[panel % processes] += 1);
        let queues: Rc<[Queue]> = owed.into_iter().map(|owed| Queue::new(memory, owed)).collect();
        factor.ready().for_each(|panel| queues[panel % processes].start_with(tasks.len() + panel));
        let tools = Tools::new(memory, &factor, processes).into();
        Self { factor, tasks: tasks.into(), first: first.into(), queues, tools }
    }

    /// What each process does until its panels are finished.
    fn work(&self, cpu: &mut Cpu<'_>, process: usize) {
        let tools = &self.tools[process];
        while let Some(number) = self.queues[process].take(cpu) {
            self.factor.begin(cpu, tools);
            let Some(Task { source, update }) = self.tasks.get(number) else {
                self.finish(cpu, number - self.tasks.len(), tools);
                continue;
            };
            if self.factor.apply(cpu, *source, update, tools) {
                self.finish(cpu, update.target, tools);
            }
        }
    }

    /// Finishes a panel, and tells the owners of those that it updates.
    fn finish(&self, cpu: &mut Cpu<'_>, panel: usize, tools: &Tools) {
        self.factor.finish(cpu, &self.factor.panels()[panel], tools);
        for (number, update) in self.factor.panels()[panel].updates.iter().enumerate() {
            self.queues[update.target % self.queues.len()].put(cpu, self.first[panel] + number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        for processes in [1, 3, 16] {
            let input = Input { sides: [4, 4, 6], processes, ..PARALLEL };
            crate::trial::run(|memory| input.build(memory, 1.0, 1));
        }
    }
}
