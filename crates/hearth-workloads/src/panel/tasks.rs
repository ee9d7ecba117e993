//! The task-parallel program: an update of a panel is a task of the process that owns that panel, which is
//! dealt to it; it locks the panel, for another process may have come to do one of its tasks.

use super::{DESCRIPTION, Input, MAX_WIDTH, PARALLEL};
use crate::cholesky::factor::{Factor, Tools};
use crate::cool::{Invocation, Process, built};
use crate::{Built, Description};
use hearth_hardware::Placement;
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;
use hearth_sim::two_phase::BlockingLock;
use std::rc::Rc;

/// The larger of the paper's inputs, tk29.O.
pub const DESCRIPTION_29: Description = Description {
    name: "panel-cool",
    description: "panel Cholesky factorization, 11,000 rows, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 4; Rothberg and Gupta, SPLASH",
    ..DESCRIPTION
};

/// The smaller one, tk17.O.
pub const DESCRIPTION_17: Description = Description {
    name: "panel-cool-17",
    description: "panel Cholesky factorization, 6,500 rows, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 5; Rothberg and Gupta, SPLASH",
    ..DESCRIPTION_29
};

/// Nodes of the bricks. The smaller one has six tenths of the larger one's, as the factors of the
/// Harwell-Boeing matrices BCSSTK17 and BCSSTK29 have of entries.
const NODES_29: [usize; 3] = [8, 8, 57];
const NODES_17: [usize; 3] = [8, 8, 34];

/// Sets the larger program up; see [`crate::build_invoked`]. Scale makes the brick shorter.
pub fn build_29(memory: &Memory, scale: f64, seed: u64, invocation: &Invocation) -> Built {
    build(DESCRIPTION_29, NODES_29, memory, scale, seed, invocation)
}

/// The same for the smaller one.
pub fn build_17(memory: &Memory, scale: f64, seed: u64, invocation: &Invocation) -> Built {
    build(DESCRIPTION_17, NODES_17, memory, scale, seed, invocation)
}

fn build(
    description: Description,
    sides: [usize; 3],
    memory: &Memory,
    scale: f64,
    seed: u64,
    invocation: &Invocation,
) -> Built {
    let name = description.name;
    let matrix = super::brick::brick(Input { description, sides, ..PARALLEL }.sides(scale), seed);
    let factor = Factor::new(memory, matrix, MAX_WIDTH, Placement::FirstTouch);
    let panels = Panels::new(memory, factor.clone(), invocation.processes);
    let master = Box::new(move |cpu: &mut Cpu<'_>, master: &Process| panels.direct(cpu, master));
    let check = Box::new(move || factor.check().map_err(|wrong| format!("{name}: {wrong}")));
    built(name, memory, invocation, master, check)
}

/// A factorization under way.
#[derive(Clone)]
struct Panels {
    factor: Factor,
    locks: Rc<[BlockingLock]>,
    tools: Rc<[Tools]>,
}

impl Panels {
    fn new(memory: &Memory, factor: Factor, processes: usize) -> Self {
        let words = memory.array(factor.panels().len(), Placement::FirstTouch);
        let locks = (0..words.len()).map(|panel| BlockingLock::new(&words, panel)).collect();
        let tools = Tools::new(memory, &factor, processes).into();
        Self { factor, locks, tools }
    }

    /// What the master does.
    fn direct(&self, cpu: &mut Cpu<'_>, master: &Process) {
        for panel in 0..self.factor.panels().len() {
            let (elements, range) = self.factor.storage(panel);
            master.distribute_part(cpu, elements, range.clone(), panel % master.processes());
            cpu.write_span(elements.address(range.start), range.len() as u64 * 8);
        }
        cpu.mark_parallel(true);
        let ready: Vec<usize> = self.factor.ready().collect();
        for panel in ready {
            let panels = self.clone();
            let work = move |cpu: &mut Cpu<'_>, process: &Process| {
                panels.factor.begin(cpu, &panels.tools[process.number()]);
                panels.finish(cpu, process, panel);
            };
            master.spawn(cpu, panel % master.processes(), Box::new(work));
        }
        master.wait(cpu);
        cpu.mark_parallel(false);
    }

    /// Does the update of number `number` that a finished panel owes, and finishes its target if it is the
    /// last one.
    fn update(&self, cpu: &mut Cpu<'_>, process: &Process, source: usize, number: usize) {
        let update = &self.factor.panels()[source].updates[number];
        let (lock, tools) = (&self.locks[update.target], &self.tools[process.number()]);
        self.factor.begin(cpu, tools);
        lock.acquire(cpu);
        let is_last = self.factor.apply(cpu, source, update, tools);
        lock.release(cpu);
        if is_last {
            self.finish(cpu, process, update.target);
        }
    }

    /// Finishes a panel, and puts in what it owes to others.
    fn finish(&self, cpu: &mut Cpu<'_>, process: &Process, panel: usize) {
        let done = &self.factor.panels()[panel];
        self.factor.finish(cpu, done, &self.tools[process.number()]);
        for (number, update) in done.updates.iter().enumerate() {
            let panels = self.clone();
            let work = move |cpu: &mut Cpu<'_>, process: &Process| panels.update(cpu, process, panel, number);
            process.spawn(cpu, update.target % process.processes(), Box::new(work));
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
            build(DESCRIPTION_17, [4, 4, 8], memory, 1.0, 1, invocation)
        });
    }
}
