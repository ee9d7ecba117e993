//! Programs that stand for those of SPEC CPU2000, which cannot be had, in Fedorova, Seltzer and Smith, "Improving
//! Performance Isolation on Chip Multiprocessors via an Operating System Scheduler" (PACT 2007), section 5.1.
//!
//! A program is given by its miss-rate curve alone ([`programs`] has the nine, with their sources). Its references
//! are drawn by the LRU stack model (Mattson, Gecsei, Slutz and Traiger 1970; Spirn, "Program Behavior: Models and
//! Measurements", 1977): each takes the line at a stack depth that is drawn from the curve, and moves it to the
//! front. So a cache of any size misses as the curve says, and a cache that is shared shows what sharing does.
//!
//! What the model leaves out, and assumes:
//! - References that hit the first-level data cache are not made one by one. They are part of the instructions
//!   between the others, each of which takes a cycle: the T1's cores issue one instruction a cycle (Kongetira,
//!   Aingaran and Olukotun, "Niagara: A 32-Way Multithreaded Sparc Processor", IEEE Micro 2005). Stalls other
//!   than for caches and translations are left out.
//! - The others are evenly spaced. There are no phases but those that are asked for: with `phase` a program is by
//!   turns itself and `crafty`, each with its footprint.
//! - Instructions are those of one loop, which stays in the first level unless another program drives it out.
//! - When the program starts, its stack holds its footprint in order of address. Memory is first touched as the
//!   references come to it.

mod curve;
pub mod programs;
mod stack;
mod walk;

pub use curve::{Curve, FIRST_KIB, Origin, Point};
pub use programs::{PROGRAMS, Program};

use crate::{Built, Numbers, Parameter, scaled_unless_endless, seed_of_place};
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Application, Cpu};
use std::cell::Cell;
use std::rc::Rc;
use walk::{Reference, Walk};

/// What may be given with the name of each.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "millions",
        description: "instructions at scale 1, in millions; 0 for a program that never ends by itself",
        default: 500,
        range: 0..=1_000_000,
    },
    Parameter {
        name: "phase",
        description: "instructions of a phase, in millions at any scale; every second one is like crafty; 0 for \
                      none",
        default: 0,
        range: 0..=1_000_000,
    },
];

/// The loop that the program is in, and how often its lines are fetched anew, in instructions.
const LOOP_BYTES: u64 = 4 << 10;
const FETCH_INSTRUCTIONS: u64 = 10_000;

impl Program {
    /// Its curve.
    pub fn curve(&self) -> Curve {
        Curve::new(self.points)
    }
}

/// Sets a program up; see [`crate::build`]. Scale cuts the number of instructions.
pub(crate) fn build(program: &Program, memory: &Memory, scale: f64, seed: u64, numbers: &Numbers) -> Built {
    let wanted = scaled_unless_endless(numbers.of("millions") * 1_000_000, scale);
    let run = Run::new(program.curve(), numbers.of("phase") as u64 * 1_000_000, memory, seed);
    let done = Rc::clone(&run.done);
    let application = application(program.description.name, run, wanted);
    Built::new(application, move || match (done.get(), wanted) {
        (done, Some(wanted)) if done != wanted => Err(format!("{done} instructions of {wanted} were done")),
        _ => Ok(()),
    })
}

fn application(name: &str, run: Run, wanted: Option<u64>) -> Application {
    let mut application = Application::new(name);
    application.is_background = wanted.is_none();
    application.task(name, move |cpu| run.work(cpu, wanted.unwrap_or(u64::MAX)));
    application
}

/// A program as it runs.
struct Run {
    /// What it does in its phases, by turns.
    phases: Vec<Phase>,
    phase_instructions: u64,
    code: Code,
    /// Instructions that were done, so far.
    done: Rc<Cell<u64>>,
}

/// References as a curve has them.
struct Phase {
    walk: Walk,
    /// Where the footprint lies.
    base: Address,
    instructions_a_reference: f64,
}

impl Run {
    /// With phases of so many instructions, or none.
    fn new(curve: Curve, phase_instructions: u64, memory: &Memory, seed: u64) -> Self {
        let mut phases = vec![Phase::new(curve, memory, seed)];
        if phase_instructions > 0 {
            phases.push(Phase::new(programs::CRAFTY.curve(), memory, seed_of_place(seed, 1)));
        }
        let phase_instructions = if phase_instructions > 0 { phase_instructions } else { u64::MAX };
        Self { phases, phase_instructions, code: memory.code(LOOP_BYTES), done: Rc::default() }
    }

    fn work(mut self, cpu: &mut Cpu<'_>, wanted: u64) {
        for turn in 0.. {
            let done = self.done.get();
            if done >= wanted {
                break;
            }
            let place = turn % self.phases.len();
            let until = wanted.min(done.saturating_add(self.phase_instructions));
            self.phases[place].work(cpu, self.code, &self.done, until);
        }
    }
}

impl Phase {
    fn new(curve: Curve, memory: &Memory, seed: u64) -> Self {
        let instructions_a_reference = 1000.0 / curve.misses(f64::from(FIRST_KIB));
        let walk = Walk::new(curve, seed);
        let base = memory.segment(walk.footprint_bytes(), Placement::FirstTouch).base;
        Self { walk, base, instructions_a_reference }
    }

    /// Computes from reference to reference, of which each is an instruction, until so many in all are done.
    fn work(&mut self, cpu: &mut Cpu<'_>, code: Code, all_done: &Cell<u64>, wanted: u64) {
        let start = all_done.get();
        let (mut done, mut next_fetch) = (start, start);
        for number in 1u64.. {
            if done >= next_fetch {
                cpu.fetch(code);
                next_fetch = done + FETCH_INSTRUCTIONS;
            }
            let until = start + (number as f64 * self.instructions_a_reference) as u64;
            if until > wanted {
                break;
            }
            cpu.compute(until - done - 1);
            self.refer(cpu);
            done = until;
            all_done.set(done);
        }
        cpu.compute(wanted - done);
        all_done.set(wanted);
    }

    fn refer(&mut self, cpu: &mut Cpu<'_>) {
        let Reference { offset, is_store } = self.walk.step();
        match is_store {
            true => cpu.write(self.base + offset),
            false => cpu.read(self.base + offset),
        }
    }
}
