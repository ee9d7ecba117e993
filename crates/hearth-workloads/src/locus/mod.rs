//! A router of standard cells: lays the wires of a circuit so that channels stay narrow.
//!
//! A grid tells how many wires use each place, one way and the other. Processes take wires off a
//! shared list. A wire is cut into segments between two pins; every way between them with two bends
//! at most is walked and its uses added up; the cheapest is taken, and its places become more used by
//! one. Further passes take each wire out again and route it afresh. The grid is shared and changed
//! without locks, as the router is content with costs that are nearly right. (Rose, "LocusRoute: A
//! Parallel Global Router for Standard Cells", DAC 1988; SPLASH.)

mod circuit;
mod tasks;

use crate::r3000::LOOP;
use crate::{Built, Description, Kind, scaled, start};
use circuit::{Direction, PLACES, Pin, Route, most_steps, routes, segments, wire};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use hearth_sim::sync::{Barrier, Lock};
use rand_core::SeedableRng;
use rand_pcg::Pcg32;

pub use tasks::{DESCRIPTION_COOL, build_cool};

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "locus",
    description: "routing of a standard-cell circuit with 2,040 wires, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; Rose, SPLASH",
};

/// A size of the program.
struct Input {
    description: Description,
    /// At scale 1.
    wires: usize,
    processes: usize,
}

const SEQUENTIAL: Input = Input { description: DESCRIPTION, wires: 2_040, processes: 1 };

/// Passes over all wires.
const PASSES: usize = 3;

/// Cycles of a place beside its reference: when a route is walked, laid, and taken out.
const WALK_CYCLES: u64 = LOOP;
const LAY_CYCLES: u64 = LOOP + 4;
const REMOVE_CYCLES: u64 = LOOP + 3;
/// Cycles to set a run up, a route, and a wire; and of a pair of pins when segments are found.
const RUN_CYCLES: u64 = 15;
const ROUTE_CYCLES: u64 = 30;
const WIRE_CYCLES: u64 = 500;
const PAIR_CYCLES: u64 = 20;

/// Bytes of a pin in the file that a circuit is read from (estimate).
const INPUT_BYTES_PER_PIN: u64 = 12;

/// Text of routing a wire, of walking a route, and of laying and taking out.
const WIRE_BYTES: u64 = 2048;
const WALK_BYTES: u64 = 512;
const LAY_BYTES: u64 = 512;

/// A wire, as the program keeps it.
#[derive(Clone, Copy, Default)]
struct Wire {
    first_pin: u32,
    pins: u32,
    /// Where its steps start, and how many there are now.
    first_step: u32,
    steps: u32,
}

/// A place that a wire uses, and which way.
#[derive(Clone, Copy, Default)]
struct Step {
    place: u32,
    direction: Direction,
}

#[derive(Clone)]
struct Router {
    /// Uses of each place, along channels and across.
    uses: [Array<u32>; 2],
    wires: Array<Wire>,
    pins: Array<Pin>,
    steps: Array<Step>,
    /// The next wire of the pass to be taken.
    next: Array<u64>,
    lock: Lock,
    barrier: Barrier,
    text: Code,
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of wires, on the same chip.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    SEQUENTIAL.build(memory, scale, seed)
}

impl Input {
    fn build(&self, memory: &Memory, scale: f64, seed: u64) -> Built {
        let name = self.description.name;
        let router = self.router(memory, scale, seed);
        let mut application = Application::new(name);
        for process in 0..self.processes {
            let router = router.clone();
            let is_alone = self.processes == 1;
            application.task(&format!("{name}-{process}"), move |cpu| {
                if is_alone {
                    router.start(cpu);
                }
                router.run(cpu);
            });
        }
        Built::new(application, move || router.check().map_err(|e| format!("{name}: {e}")))
    }

    /// The chip with its wires, none of them laid.
    fn router(&self, memory: &Memory, scale: f64, seed: u64) -> Router {
        let mut random = Pcg32::seed_from_u64(seed);
        let wires: Vec<Vec<Pin>> = (0..scaled(self.wires, scale)).map(|_| wire(&mut random)).collect();
        Router::new(memory, &wires, self.processes)
    }
}

fn most_steps_of(pins: &[Pin]) -> usize {
    segments(pins).iter().map(most_steps).sum()
}

impl Router {
    fn new(memory: &Memory, wires: &[Vec<Pin>], processes: usize) -> Self {
        let uses = || memory.array(PLACES, Placement::FirstTouch);
        let router = Self {
            uses: [uses(), uses()],
            wires: memory.array(wires.len(), Placement::FirstTouch),
            pins: memory.array(wires.iter().map(Vec::len).sum(), Placement::FirstTouch),
            steps: memory.array(wires.iter().map(|pins| most_steps_of(pins)).sum(), Placement::FirstTouch),
            next: memory.array(1, Placement::FirstTouch),
            lock: Lock::new(memory),
            barrier: Barrier::new(memory, processes),
            text: memory.code(WIRE_BYTES + WALK_BYTES + LAY_BYTES),
        };
        let mut wire = Wire::default();
        for (number, pins) in wires.iter().enumerate() {
            wire.pins = pins.len() as u32;
            router.wires.poke(number, wire);
            for &pin in pins {
                router.pins.poke(wire.first_pin as usize, pin);
                wire.first_pin += 1;
            }
            wire.first_step += most_steps_of(pins) as u32;
        }
        router
    }

    /// Reads the wires, and sets the chip up.
    fn start(&self, cpu: &mut Cpu<'_>) {
        start::execute(cpu, self.pins.len() as u64 * INPUT_BYTES_PER_PIN);
        self.uses.iter().for_each(|uses| start::set_up(cpu, uses));
        start::set_up(cpu, &self.wires);
        start::set_up(cpu, &self.pins);
    }

    /// What each process does.
    fn run(&self, cpu: &mut Cpu<'_>) {
        for pass in 0..PASSES {
            while let Some(number) = self.take(cpu, pass) {
                cpu.fetch(self.text.part(0, WIRE_BYTES));
                self.route_wire(cpu, number);
            }
            self.barrier.wait(cpu);
        }
    }

    /// The next wire of a pass.
    fn take(&self, cpu: &mut Cpu<'_>, pass: usize) -> Option<usize> {
        self.lock.acquire(cpu);
        let next = self.next.get(cpu, 0);
        let number = (next as usize).checked_sub(pass * self.wires.len());
        let number = number.filter(|&number| number < self.wires.len());
        if number.is_some() {
            self.next.set(cpu, 0, next + 1);
        }
        self.lock.release(cpu);
        number
    }

    /// Changes the uses of a place: loads, changes and stores with nothing in between.
    fn change(&self, cpu: &mut Cpu<'_>, step: Step, change: impl FnOnce(u32) -> u32) {
        let uses = &self.uses[step.direction as usize];
        let place = step.place as usize;
        cpu.read(uses.address(place));
        uses.poke(place, change(uses.peek(place)));
        cpu.write(uses.address(place));
    }

    /// Takes a wire out, if it is laid, and lays it the cheapest way.
    fn route_wire(&self, cpu: &mut Cpu<'_>, number: usize) {
        let mut wire = self.wires.get(cpu, number);
        cpu.compute(WIRE_CYCLES);
        self.remove(cpu, &wire);
        let pins: Vec<Pin> = (wire.first_pin..wire.first_pin + wire.pins)
            .map(|pin| self.pins.get(cpu, pin as usize))
            .collect();
        cpu.compute(PAIR_CYCLES * u64::from(wire.pins * wire.pins));
        wire.steps = 0;
        for (from, to) in segments(&pins) {
            if let Some(route) = self.cheapest(cpu, from, to) {
                self.lay(cpu, &mut wire, route, from, to);
            }
        }
        self.wires.set(cpu, number, wire);
    }

    fn remove(&self, cpu: &mut Cpu<'_>, wire: &Wire) {
        cpu.fetch(self.text.part(WIRE_BYTES + WALK_BYTES, LAY_BYTES));
        for at in wire.first_step..wire.first_step + wire.steps {
            let step = self.steps.get(cpu, at as usize);
            self.change(cpu, step, |uses| uses - 1);
            cpu.compute(REMOVE_CYCLES);
        }
    }

    /// The way between two pins whose places are used least.
    fn cheapest(&self, cpu: &mut Cpu<'_>, from: Pin, to: Pin) -> Option<Route> {
        cpu.fetch(self.text.part(WIRE_BYTES, WALK_BYTES));
        let mut best = None;
        for route in routes(from, to) {
            let uses = self.walk(cpu, route, from, to);
            if best.is_none_or(|(least, _)| uses < least) {
                best = Some((uses, route));
            }
        }
        best.map(|(_, route)| route)
    }

    /// Adds up the uses of the places of a route.
    #[inline]
    fn walk(&self, cpu: &mut Cpu<'_>, route: Route, from: Pin, to: Pin) -> u32 {
        let mut sum = 0;
        for run in route.runs(from, to) {
            let uses = &self.uses[run.direction as usize];
            for place in run.places() {
                sum += uses.get(cpu, place);
            }
            cpu.compute(RUN_CYCLES + WALK_CYCLES * run.len() as u64);
        }
        cpu.compute(ROUTE_CYCLES);
        sum
    }

    fn lay(&self, cpu: &mut Cpu<'_>, wire: &mut Wire, route: Route, from: Pin, to: Pin) {
        cpu.fetch(self.text.part(WIRE_BYTES + WALK_BYTES, LAY_BYTES));
        for run in route.runs(from, to) {
            for place in run.places() {
                let step = Step { place: place as u32, direction: run.direction };
                self.change(cpu, step, |uses| uses + 1);
                self.steps.set(cpu, (wire.first_step + wire.steps) as usize, step);
                wire.steps += 1;
                cpu.compute(LAY_CYCLES);
            }
        }
    }

    /// Each wire connects its pins, and the grid counts the wires' places.
    fn check(&self) -> Result<(), String> {
        let mut uses = [vec![0; PLACES], vec![0; PLACES]];
        for number in 0..self.wires.len() {
            let wire = self.wires.peek(number);
            let steps: Vec<Step> = (wire.first_step..wire.first_step + wire.steps)
                .map(|at| self.steps.peek(at as usize))
                .collect();
            steps.iter().for_each(|step| uses[step.direction as usize][step.place as usize] += 1);
            let pins: Vec<Pin> = (wire.first_pin..wire.first_pin + wire.pins)
                .map(|pin| self.pins.peek(pin as usize))
                .collect();
            connects(&steps, &segments(&pins)).map_err(|place| {
                format!("wire {number} is torn at channel {}, column {}", place.channel, place.column)
            })?;
        }
        for (direction, counted) in uses.iter().enumerate() {
            let wrong = (0..PLACES).find(|&place| self.uses[direction].peek(place) != counted[place]);
            if let Some(place) = wrong {
                let noted = self.uses[direction].peek(place);
                return Err(format!(
                    "place {place} is noted as used by {noted}, and is by {}",
                    counted[place]
                ));
            }
        }
        Ok(())
    }
}

/// Whether steps lead along all segments, one after the other; else the pin that is not reached.
fn connects(steps: &[Step], segments: &[(Pin, Pin)]) -> Result<(), Pin> {
    let mut steps = steps.iter().map(|step| step.place as usize);
    for &(from, to) in segments.iter().filter(|(from, to)| from != to) {
        let mut at = steps.next().filter(|&place| place == from.place()).ok_or(from)?;
        while at != to.place() {
            let next = steps.next().ok_or(to)?;
            if ![0, 1, circuit::COLUMNS].contains(&at.abs_diff(next)) {
                return Err(to);
            }
            at = next;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_share_the_wires_come_to_the_right_result() {
        let input = Input { wires: 100, processes: 4, ..SEQUENTIAL };
        crate::trial::run(|memory| input.build(memory, 1.0, 1));
    }
}
