//! Rarefied hypersonic flow past an obstacle in a wind tunnel, particle by particle.
//!
//! The direct-simulation Monte Carlo method, as in the SPLASH program: particles in a grid of cells.
//! In each step every particle moves (`flow.rs`), may collide with another one of its cell, and is
//! counted into its cell's sums. Particles are dealt to the processes once and for all and lie in
//! memory in no order of space, so a process streams through its particles and finds their cells all
//! over the shared grid: next to nothing is in the cache when it is needed. Processes meet at a
//! barrier after each batch of particles.

mod flow;

use crate::calls::{Calls, Rates};
use crate::{Built, Description, Kind, scaled, start};
use flow::{Flow, Grid, Particle};
use hearth_hardware::{Address, Placement};
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::Barrier;
use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "mp3d",
    description: "rarefied flow in a wind tunnel, 50,000 particles, 15 steps, 4 processes",
    kind: Kind::Real,
    source: "Torrellas, Tucker, Gupta 1995, table I; McDonald and Baganoff, SPLASH",
};

/// The sequential program.
pub const DESCRIPTION_SERIAL: Description = Description {
    name: "mp3d-serial",
    description: "rarefied flow in a wind tunnel, 40,000 particles, 15 steps, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; McDonald and Baganoff, SPLASH",
};

/// A size of the program.
struct Input {
    description: Description,
    particles: usize,
    grid: &'static Grid,
    /// At scale 1.
    steps: usize,
    processes: usize,
    /// How often a process makes calls, if it does.
    calls: Option<Rates>,
}

static PARALLEL: Input = Input {
    description: DESCRIPTION,
    particles: 50_000,
    grid: &Grid { cells: [64, 32, 16], obstacle: [(24, 32), (11, 21), (0, 8)] },
    steps: 15,
    processes: 4,
    calls: Some(CALLS),
};

/// The paper's size in memory, and its time. It speaks of 200 steps, which would leave 90 cycles for
/// a particle's step, less than its misses take.
static SERIAL: Input = Input {
    description: DESCRIPTION_SERIAL,
    particles: 40_000,
    grid: &Grid { cells: [96, 40, 20], obstacle: [(36, 48), (14, 26), (0, 10)] },
    steps: 15,
    processes: 1,
    calls: None,
};

/// Calls, in batches: 10.1 and 2.0 % of the dispatch intervals end by them (table III).
const CALLS: Rates = Rates { transfer: 12, call: 50 };

/// Cycles for one particle beside its loads and stores: to move it (about 20 single-precision
/// operations and the tests of six walls and the obstacle), to look for a partner, to collide two
/// (a relative speed, a direction drawn at random), to count it.
const MOVE_CYCLES: u64 = 150;
const PAIR_CYCLES: u64 = 60;
const COLLIDE_CYCLES: u64 = 200;
const COUNT_CYCLES: u64 = 60;
/// Cycles to reset one cell.
const RESET_CYCLES: u64 = 12;
/// Text of a sweep, and how many particles or cells it is fetched once for.
const SWEEP_BYTES: u64 = 512;
const THINGS_PER_FETCH: usize = 16;

/// Something that is done to all cells or all particles in every step.
struct Sweep {
    act: fn(&mut Worker, &mut Cpu<'_>, usize),
    /// Cells or particles in all.
    things: fn(&Input) -> usize,
    /// How many a process does between two barriers: some 18 ms of work.
    batch: usize,
}

const SWEEPS: [Sweep; 4] = [
    Sweep { act: Worker::reset, things: cells, batch: 3_000 },
    Sweep { act: Worker::advance, things: particles, batch: 1_440 },
    Sweep { act: Worker::pair, things: particles, batch: 1_200 },
    Sweep { act: Worker::count, things: particles, batch: 1_650 },
];

fn cells(input: &Input) -> usize {
    input.grid.cells()
}

fn particles(input: &Input) -> usize {
    input.particles
}

/// One cell of the grid: three lines of 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Space {
    /// Particles here now, and summed over all steps; 1 + the particle that waits for a partner;
    /// collisions so far.
    population: u32,
    total_population: u32,
    waiting: u32,
    collisions: u32,
    /// Sums over this step's particles: momentum and number.
    momentum: [f32; 3],
    counted: u32,
    /// The same over all steps.
    total_momentum: [f32; 3],
    total_counted: f32,
}

/// Bytes of a line of [`Space`], and where two of its lines start.
const LINE: Address = 16;
const POPULATION: Address = 0;
const MOMENTUM: Address = LINE;

/// Bytes of a [`Particle`] that a move changes (a bounce or a new particle changes more, but that is
/// rare), and those that a collision changes.
const MOVED: Range<Address> = 0..32;
const COLLIDED: Range<Address> = 32..80;

/// What is kept on the side to check the run: no part of the program.
#[derive(Default)]
struct Books {
    /// Energy that entered less what left, and the energy that collisions made by rounding.
    inflow: Cell<f64>,
    rounding: Cell<f64>,
}

#[derive(Clone)]
struct Tunnel {
    input: &'static Input,
    particles: Array<Particle>,
    space: Array<Space>,
    barrier: Barrier,
    text: Code,
    books: Rc<Books>,
    initial_energy: f64,
    steps: usize,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of steps.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    PARALLEL.build(memory, scale, seed)
}

/// The same for the sequential program.
pub fn build_serial(memory: &Memory, scale: f64, seed: u64) -> Built {
    SERIAL.build(memory, scale, seed)
}

impl Input {
    fn build(&'static self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let mut flow = Flow::new(self.grid, Pcg32::seed_from_u64(seed));
        let particles = memory.array(self.particles, Placement::FirstTouch);
        (0..self.particles).for_each(|index| particles.poke(index, flow.scattered()));
        let tunnel = Tunnel {
            input: self,
            initial_energy: (0..self.particles).map(|index| particles.peek(index).energy()).sum(),
            particles,
            space: memory.array(self.grid.cells(), Placement::FirstTouch),
            barrier: Barrier::new(memory, self.processes),
            text: memory.code(4 * SWEEP_BYTES),
            books: Rc::default(),
            steps: scaled(self.steps, scale),
        };
        let name = self.description.name;
        let mut application = Application::new(name);
        for process in 0..self.processes {
            let tunnel = tunnel.clone();
            let flow = Flow::new(self.grid, Pcg32::new(seed, process as u64));
            application.task(&format!("{name}-{process}"), move |cpu| {
                if tunnel.input.processes == 1 {
                    start::execute(cpu, 0);
                    start::set_up(cpu, &tunnel.particles);
                    start::set_up(cpu, &tunnel.space);
                }
                let calls = tunnel.input.calls.map(|rates| Calls::new(rates, seed, process));
                let mut worker = Worker { tunnel, flow, process, calls };
                (0..worker.tunnel.steps).for_each(|_| worker.step(cpu));
            });
        }
        Built::new(application, move || tunnel.check().map_err(|e| format!("{name}: {e}")))
    }
}

/// A process at work.
struct Worker {
    tunnel: Tunnel,
    flow: Flow,
    process: usize,
    calls: Option<Calls>,
}

impl Worker {
    fn step(&mut self, cpu: &mut Cpu<'_>) {
        for (number, sweep) in SWEEPS.iter().enumerate() {
            let text = self.tunnel.text.part(number as u64 * SWEEP_BYTES, SWEEP_BYTES);
            self.sweep(cpu, sweep, text);
        }
    }

    /// Does a sweep's work on this process's share of its things, a batch at a time.
    fn sweep(&mut self, cpu: &mut Cpu<'_>, sweep: &Sweep, text: Code) {
        let input = self.tunnel.input;
        let start = |process: usize| (sweep.things)(input) * process / input.processes;
        let (first, end) = (start(self.process), start(self.process + 1));
        for batch in (first..end).step_by(sweep.batch) {
            for thing in batch..(batch + sweep.batch).min(end) {
                if thing % THINGS_PER_FETCH == 0 {
                    cpu.fetch(text);
                }
                (sweep.act)(self, cpu, thing);
            }
            if let Some(calls) = &mut self.calls {
                calls.pass(cpu);
            }
            self.tunnel.barrier.wait(cpu);
        }
    }

    /// Makes a cell ready for the next step.
    fn reset(&mut self, cpu: &mut Cpu<'_>, cell: usize) {
        let address = self.tunnel.space.address(cell);
        cpu.read_span(address, size_of::<Space>() as u64);
        let mut space = self.tunnel.space.peek(cell);
        (0..3).for_each(|axis| space.total_momentum[axis] += space.momentum[axis]);
        space.total_counted += space.counted as f32;
        space.total_population += space.population;
        (space.population, space.waiting, space.counted) = (0, 0, 0);
        space.momentum = [0.0; 3];
        self.tunnel.space.poke(cell, space);
        cpu.write_span(address, size_of::<Space>() as u64);
        cpu.compute(RESET_CYCLES);
    }

    /// Changes a part of a cell that others change too: loads a line of it, changes it, stores the
    /// line, with nothing in between.
    fn change<R>(
        &self,
        cpu: &mut Cpu<'_>,
        cell: usize,
        line: Address,
        change: impl FnOnce(&mut Space) -> R,
    ) -> R {
        let address = self.tunnel.space.address(cell) + line;
        cpu.read_span(address, LINE);
        let mut space = self.tunnel.space.peek(cell);
        let result = change(&mut space);
        self.tunnel.space.poke(cell, space);
        cpu.write_span(address, LINE);
        result
    }

    /// Stores the part of a particle that has changed.
    fn store(&self, cpu: &mut Cpu<'_>, index: usize, particle: Particle, part: Range<Address>) {
        self.tunnel.particles.poke(index, particle);
        cpu.write_span(self.tunnel.particles.address(index) + part.start, part.end - part.start);
    }

    /// Moves a particle and enters it in its cell.
    fn advance(&mut self, cpu: &mut Cpu<'_>, index: usize) {
        let mut particle = self.tunnel.particles.get(cpu, index);
        let inflow = self.flow.advance(&mut particle);
        let books = &self.tunnel.books;
        books.inflow.set(books.inflow.get() + inflow);
        cpu.compute(MOVE_CYCLES);
        self.store(cpu, index, particle, MOVED);
        self.change(cpu, particle.cell as usize, POPULATION, |space| space.population += 1);
    }

    /// Finds a partner for a particle in its cell, or leaves it waiting for one.
    fn pair(&mut self, cpu: &mut Cpu<'_>, index: usize) {
        let mut particle = self.tunnel.particles.get(cpu, index);
        cpu.compute(PAIR_CYCLES);
        let (partner, population) = self.change(cpu, particle.cell as usize, POPULATION, |space| {
            let next = if space.waiting == 0 { index as u32 + 1 } else { 0 };
            (std::mem::replace(&mut space.waiting, next), space.population)
        });
        let Some(partner_index) = (partner as usize).checked_sub(1) else { return };
        let mut partner = self.tunnel.particles.get(cpu, partner_index);
        cpu.compute(COLLIDE_CYCLES);
        let before = particle.energy() + partner.energy();
        if !self.flow.collide(&mut particle, &mut partner, population) {
            return;
        }
        let books = &self.tunnel.books;
        books.rounding.set(books.rounding.get() + particle.energy() + partner.energy() - before);
        self.store(cpu, index, particle, COLLIDED);
        self.store(cpu, partner_index, partner, COLLIDED);
        self.change(cpu, particle.cell as usize, POPULATION, |space| space.collisions += 1);
    }

    /// Adds a particle to its cell's sums.
    fn count(&mut self, cpu: &mut Cpu<'_>, index: usize) {
        let particle = self.tunnel.particles.get(cpu, index);
        let cell = particle.cell as usize;
        cpu.compute(COUNT_CYCLES);
        self.change(cpu, cell, MOMENTUM, |space| {
            (0..3).for_each(|axis| space.momentum[axis] += particle.velocity[axis] as f32);
            space.counted += 1;
        });
    }
}

impl Tunnel {
    /// All particles are in the tunnel, in the cell that they say, and counted there; energy is
    /// conserved.
    fn check(&self) -> Result<(), String> {
        let mut populations = vec![0; self.input.grid.cells()];
        let mut energy = 0.0;
        for index in 0..self.input.particles {
            let particle = self.particles.peek(index);
            if self.input.grid.cell_of(particle.position) != Some(particle.cell as usize) {
                return Err(format!("particle {index} is not in its cell {}", particle.cell));
            }
            populations[particle.cell as usize] += 1;
            energy += particle.energy();
        }
        for (cell, &population) in populations.iter().enumerate() {
            let space = self.space.peek(cell);
            if space.population != population || space.counted != population {
                let (entered, counted) = (space.population, space.counted);
                return Err(format!(
                    "cell {cell} holds {population} particles, {entered} entered, {counted} counted"
                ));
            }
        }
        let (inflow, rounding) = (self.books.inflow.get(), self.books.rounding.get());
        let made = energy - self.initial_energy - inflow;
        if made.abs() > 1e-9 * energy || rounding.abs() > 1e-9 * energy {
            return Err(format!("{made:e} of {energy:e} units of energy came from nowhere"));
        }
        Ok(())
    }
}
