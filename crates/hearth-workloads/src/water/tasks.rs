//! The task-parallel program: each phase of a step is a task for each process's share of the molecules.

use super::{COORDINATES, DESCRIPTION, Input, MOLECULE, SEQUENTIAL, Water};
use crate::cool::{Invocation, Process, built};
use crate::{Built, Description, start};
use hearth_sim::memory::Memory;
use hearth_sim::program::Cpu;

/// The larger of the paper's inputs.
pub const DESCRIPTION_512: Description = Description {
    name: "water-cool",
    description: "molecular dynamics of 512 water molecules, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 4; Singh and Hennessy, SPLASH",
    ..DESCRIPTION
};

/// The smaller one.
pub const DESCRIPTION_343: Description = Description {
    name: "water-cool-343",
    description: "molecular dynamics of 343 water molecules, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 5; Singh and Hennessy, SPLASH",
    ..DESCRIPTION_512
};

/// Sets the program up for 512 molecules; see [`crate::build_invoked`]. Scale cuts the number of time steps.
pub fn build_512(memory: &Memory, scale: f64, seed: u64, invocation: &Invocation) -> Built {
    build(&DESCRIPTION_512, 8, memory, scale, seed, invocation)
}

/// The same for 343 molecules.
pub fn build_343(memory: &Memory, scale: f64, seed: u64, invocation: &Invocation) -> Built {
    build(&DESCRIPTION_343, 7, memory, scale, seed, invocation)
}

fn build(
    description: &Description,
    side: usize,
    memory: &Memory,
    scale: f64,
    seed: u64,
    invocation: &Invocation,
) -> Built {
    let name = description.name;
    let input = Input { description: *description, side, processes: invocation.processes, ..SEQUENTIAL };
    let water = input.water(memory, scale, seed);
    let checked = water.clone();
    let master = Box::new(move |cpu: &mut Cpu<'_>, master: &Process| water.direct(cpu, master));
    let check = Box::new(move || checked.check().map_err(|wrong| format!("{name}: {wrong}")));
    built(name, memory, invocation, master, check)
}

impl Water {
    /// What the master does.
    fn direct(&self, cpu: &mut Cpu<'_>, master: &Process) {
        self.set_up(cpu, master);
        cpu.mark_parallel(true);
        self.phase(cpu, master, Self::sum_own);
        self.phase(cpu, master, |water, cpu, part| {
            water.sum_all(cpu, part);
            water.start(cpu, part);
        });
        for step in 0..self.steps {
            self.phase(cpu, master, Self::predict);
            self.phase(cpu, master, Self::sum_own);
            self.phase(cpu, master, move |water, cpu, part| {
                water.sum_all(cpu, part);
                water.correct(cpu, part, step);
            });
            self.note();
        }
        cpu.mark_parallel(false);
    }

    fn phase(&self, cpu: &mut Cpu<'_>, master: &Process, act: impl Fn(&Self, &mut Cpu<'_>, usize) + 'static) {
        let water = self.clone();
        master.on_each(cpu, move |cpu, part| act(&water, cpu, part));
    }

    /// Distributes molecules and sums to who works on them, and writes the molecules.
    fn set_up(&self, cpu: &mut Cpu<'_>, master: &Process) {
        for part in 0..self.processes {
            let share = self.share(part);
            master.distribute_part(cpu, &self.state, share.start * MOLECULE..share.end * MOLECULE, part);
            master.distribute_part(cpu, &self.sums[part], 0..self.molecules * COORDINATES, part);
        }
        start::set_up(cpu, &self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::run_with_any_number_of_processes;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        run_with_any_number_of_processes(|memory, invocation| {
            build(&DESCRIPTION_343, 4, memory, 0.3, 1, invocation)
        });
    }
}
