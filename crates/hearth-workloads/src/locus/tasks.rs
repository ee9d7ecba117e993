//! The task-parallel program: routing a wire is a task, of the process whose strip of the chip the wire has
//! its middle in. The strips are of equal width, from column to column.

use super::circuit::COLUMNS;
use super::{DESCRIPTION, Input, PASSES, Router, WIRE_BYTES};
use crate::cool::{Invocation, Process, built};
use crate::{Built, Description, start};
use hearth_sim::memory::{Array, Memory};
use hearth_sim::program::Cpu;

/// What this program is.
pub const DESCRIPTION_COOL: Description = Description {
    name: "locus-cool",
    description: "routing of a standard-cell circuit with 3,029 wires, 16 processes that do tasks",
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 4; Rose, SPLASH",
    ..DESCRIPTION
};

/// Sets the program up; see [`crate::build_invoked`]. Scale cuts the number of wires, on the same chip.
pub fn build_cool(memory: &Memory, scale: f64, seed: u64, invocation: &Invocation) -> Built {
    let name = DESCRIPTION_COOL.name;
    let input = Input { description: DESCRIPTION_COOL, wires: 3_029, processes: invocation.processes };
    let router = input.router(memory, scale, seed);
    let checked = router.clone();
    let master = Box::new(move |cpu: &mut Cpu<'_>, master: &Process| router.direct(cpu, master));
    let check = Box::new(move || checked.check().map_err(|wrong| format!("{name}: {wrong}")));
    built(name, memory, invocation, master, check)
}

impl Router {
    /// What the master does.
    fn direct(&self, cpu: &mut Cpu<'_>, master: &Process) {
        self.set_up(cpu, master);
        cpu.mark_parallel(true);
        for _ in 0..PASSES {
            for number in 0..self.wires.len() {
                let router = self.clone();
                let work = move |cpu: &mut Cpu<'_>, _: &Process| {
                    cpu.fetch(router.text.part(0, WIRE_BYTES));
                    router.route_wire(cpu, number);
                };
                let strip = self.middle(cpu, number) * master.processes() / COLUMNS;
                master.spawn(cpu, strip, Box::new(work));
            }
            master.wait(cpu);
        }
        cpu.mark_parallel(false);
    }

    /// The column in the middle of a wire's pins.
    fn middle(&self, cpu: &mut Cpu<'_>, number: usize) -> usize {
        let wire = self.wires.get(cpu, number);
        let pins = wire.first_pin as usize..(wire.first_pin + wire.pins) as usize;
        let columns: Vec<usize> = pins.map(|pin| self.pins.get(cpu, pin).column as usize).collect();
        let (least, most) = (columns.iter().min(), columns.iter().max());
        least.copied().unwrap_or_default().midpoint(most.copied().unwrap_or_default())
    }

    /// Distributes the chip and the room for wires in equal parts, and writes all.
    fn set_up(&self, cpu: &mut Cpu<'_>, master: &Process) {
        self.uses.iter().for_each(|uses| spread(cpu, master, uses));
        spread(cpu, master, &self.steps);
        spread(cpu, master, &self.wires);
        spread(cpu, master, &self.pins);
    }
}

/// Distributes an array in equal parts, and writes it.
fn spread<T: Copy>(cpu: &mut Cpu<'_>, master: &Process, array: &Array<T>) {
    let start = |part: usize| array.len() * part / master.processes();
    for part in 0..master.processes() {
        master.distribute_part(cpu, array, start(part)..start(part + 1), part);
    }
    start::set_up(cpu, array);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::run_with_any_number_of_processes;

    #[test]
    fn any_number_of_processes_comes_to_the_right_result() {
        run_with_any_number_of_processes(|memory, invocation| build_cool(memory, 0.02, 1, invocation));
    }
}
