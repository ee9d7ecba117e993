//! Light in a room: hierarchical radiosity.
//!
//! Each surface of a scene (`room.rs`) is an element that may be cut into quarters, and these again.
//! Elements have lists of interactions with others that they see (`links.rs`). In each round an
//! interaction that carries too much light for its size is replaced by some with the quarters of one
//! side; every element gathers light through its interactions; and light is handed down to the
//! quarters and summed up again. Elements and interactions come from free lists that are chained
//! together at the start, as in the SPLASH program, so all of the memory is touched once and most of
//! it not again. (Hanrahan, Salzman, Aupperle, "A Rapid Hierarchical Radiosity Algorithm", SIGGRAPH
//! 1991.)

mod links;
mod room;

use crate::r3000::{ADD, LOOP, MULTIPLY, SECOND_WORD};
use crate::{Built, Description, Kind, start};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::{Application, Cpu};
use links::{Interaction, Sight};
use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use room::{Scene, Shape};
use std::cell::Cell;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "radiosity",
    description: "hierarchical radiosity of a room with 20 pieces of furniture, 1 process",
    kind: Kind::Real,
    source: "Chandra, Devine, Verghese, Gupta, Rosenblum 1994, table 1; Singh and others, SPLASH-2",
};

/// Elements and interactions that there is memory for: it makes the paper's size.
const ELEMENTS: usize = 80_000;
const INTERACTIONS: usize = 1_600_000;
/// Rounds of gathering.
const ROUNDS: usize = 8;
/// Light that an interaction may carry at scale 1, and the least area that is cut.
const FINE: f64 = 0.0095;
const LEAST_AREA: f64 = 0.02;
/// The most that light may still change in the last round, as a share of the brightest.
const SETTLED: f64 = 0.02;

/// Cycles beside references: to chain one thing; to look whether an interaction is fine; to gather
/// through it; to cut an element; to hand light down and sum it up.
const CHAIN_CYCLES: u64 = LOOP;
const LOOK_CYCLES: u64 = 2 * MULTIPLY + 2 * ADD + 4 * SECOND_WORD + LOOP;
const GATHER_CYCLES: u64 = 2 * MULTIPLY + ADD + 3 * SECOND_WORD + LOOP;
const CUT_CYCLES: u64 = 4 * (8 * ADD + 8 * MULTIPLY + 20 * SECOND_WORD);
const PUSH_CYCLES: u64 = 4 * ADD + 2 * MULTIPLY + 6 * SECOND_WORD + 10;

/// Text of each phase, and their number.
const PHASE_BYTES: u64 = 3072;
const REFINE: u64 = 0;
const GATHER: u64 = 1;
const PUSH: u64 = 2;
const PHASES: u64 = 3;

/// No element, and no interaction.
const NONE: u32 = u32::MAX;

/// One element: 64 bytes beside its shape.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Element {
    radiosity: f64,
    gathered: f64,
    emission: f64,
    reflectance: f64,
    /// Quarters, or none.
    quarters: [u32; 4],
    /// The first of its interactions; the next free element, if it is free.
    first: u32,
    /// Elements above it.
    depth: u32,
    _spare: u64,
}

/// What is kept on the side to check the run: no part of the program.
#[derive(Default)]
struct Books {
    rounds: Cell<usize>,
    elements: Cell<usize>,
    interactions: Cell<usize>,
    /// The most that an element's light changed in this round.
    changed: Cell<f64>,
}

#[derive(Clone)]
struct Radiosity {
    elements: Array<Element>,
    shapes: Array<Shape>,
    interactions: Array<Interaction>,
    /// The first free element and interaction.
    free: Array<u32>,
    sight: Sight,
    scene: Rc<Scene>,
    text: Code,
    fine: f64,
    books: Rc<Books>,
}

const FREE_ELEMENT: usize = 0;
const FREE_INTERACTION: usize = 1;

/// Sets the program up; see [`crate::build`]. Scale makes interactions coarser, and so fewer.
pub fn build(memory: &Memory, scale: f64, seed: u64) -> Built {
    let scene = Scene::new(&mut Pcg32::seed_from_u64(seed));
    let radiosity = Radiosity {
        elements: memory.array(ELEMENTS, Placement::FirstTouch),
        shapes: memory.array(ELEMENTS, Placement::FirstTouch),
        interactions: memory.array(INTERACTIONS, Placement::FirstTouch),
        free: memory.array(2, Placement::FirstTouch),
        sight: Sight::new(memory, &scene.blocks),
        scene: Rc::new(scene),
        text: memory.code(PHASES * PHASE_BYTES),
        fine: FINE / scale,
        books: Rc::default(),
    };
    let mut application = Application::new(DESCRIPTION.name);
    let program = radiosity.clone();
    application.task("radiosity", move |cpu| program.run(cpu));
    Built::new(application, move || radiosity.check().map_err(|e| format!("radiosity: {e}")))
}

impl Radiosity {
    fn run(&self, cpu: &mut Cpu<'_>) {
        start::execute(cpu, 0);
        self.chain(cpu);
        let surfaces = self.scene.surfaces.len() as u32;
        self.place(cpu);
        for element in 0..surfaces {
            (0..surfaces).filter(|&other| other != element).for_each(|other| self.join(cpu, element, other));
        }
        for _ in 0..ROUNDS {
            self.books.changed.set(0.0);
            (0..surfaces).for_each(|element| self.refine(cpu, element));
            (0..surfaces).for_each(|element| self.gather(cpu, element));
            for element in 0..surfaces {
                self.push(cpu, element, 0.0);
            }
            self.books.rounds.set(self.books.rounds.get() + 1);
        }
    }

    fn fetch(&self, cpu: &mut Cpu<'_>, phase: u64) {
        cpu.fetch(self.text.part(phase * PHASE_BYTES, PHASE_BYTES));
    }

    /// Chains all free elements, and all free interactions.
    fn chain(&self, cpu: &mut Cpu<'_>) {
        let next = |at: usize, end: usize| if at + 1 == end { NONE } else { at as u32 + 1 };
        for at in 0..ELEMENTS {
            let free = Element { first: next(at, ELEMENTS), quarters: [NONE; 4], ..Element::default() };
            self.elements.set(cpu, at, free);
            self.shapes.set(cpu, at, Shape::default());
            cpu.compute(CHAIN_CYCLES);
        }
        for at in 0..INTERACTIONS {
            let free = Interaction { next: next(at, INTERACTIONS), ..Interaction::default() };
            self.interactions.set(cpu, at, free);
            cpu.compute(CHAIN_CYCLES);
        }
        self.free.set(cpu, FREE_ELEMENT, 0);
        self.free.set(cpu, FREE_INTERACTION, 0);
    }

    /// Makes the surfaces elements.
    fn place(&self, cpu: &mut Cpu<'_>) {
        for surface in &self.scene.surfaces {
            let element = Element {
                radiosity: surface.emission,
                emission: surface.emission,
                reflectance: surface.reflectance,
                ..Element::default()
            };
            self.new_element(cpu, element, surface.shape);
        }
    }

    /// Takes an element off the free list.
    fn new_element(&self, cpu: &mut Cpu<'_>, element: Element, shape: Shape) -> Option<u32> {
        let number = self.free.get(cpu, FREE_ELEMENT);
        if number == NONE {
            return None;
        }
        let next = self.elements.peek(number as usize).first;
        self.elements.set(cpu, number as usize, Element { first: NONE, quarters: [NONE; 4], ..element });
        self.shapes.set(cpu, number as usize, shape);
        self.free.set(cpu, FREE_ELEMENT, next);
        self.books.elements.set(self.books.elements.get() + 1);
        Some(number)
    }

    /// Puts an interaction at the head of an element's list, if the two can see each other.
    fn join(&self, cpu: &mut Cpu<'_>, element: u32, partner: u32) {
        let this = self.shapes.get(cpu, element as usize);
        let other = self.shapes.get(cpu, partner as usize);
        let Some(mut interaction) = self.sight.interaction(cpu, &this, &other) else { return };
        let number = self.free.get(cpu, FREE_INTERACTION);
        if number == NONE {
            return;
        }
        let next = self.interactions.peek(number as usize).next;
        cpu.read(self.interactions.address(number as usize));
        self.free.set(cpu, FREE_INTERACTION, next);
        (interaction.partner, interaction.next) = (partner, self.elements.peek(element as usize).first);
        self.interactions.set(cpu, number as usize, interaction);
        self.change(cpu, element, |element| element.first = number);
        self.books.interactions.set(self.books.interactions.get() + 1);
    }

    /// Loads a word of an element, changes it, and stores it.
    fn change(&self, cpu: &mut Cpu<'_>, number: u32, change: impl FnOnce(&mut Element)) {
        let address = self.elements.address(number as usize);
        cpu.read(address);
        let mut element = self.elements.peek(number as usize);
        change(&mut element);
        self.elements.poke(number as usize, element);
        cpu.write(address);
    }

    /// Replaces all interactions of an element that carry too much, and then those of its quarters.
    fn refine(&self, cpu: &mut Cpu<'_>, number: u32) {
        self.fetch(cpu, REFINE);
        // The list is taken off and put back one by one, so that new ones are looked at as well.
        let mut waiting = self.elements.get(cpu, number as usize).first;
        self.change(cpu, number, |element| element.first = NONE);
        let mut kept = NONE;
        while waiting != NONE {
            let interaction = self.interactions.get(cpu, waiting as usize);
            let next = interaction.next;
            if self.is_fine(cpu, &interaction) || !self.split(cpu, number, &interaction) {
                self.interactions.set(cpu, waiting as usize, Interaction { next: kept, ..interaction });
                kept = waiting;
            } else {
                self.release(cpu, waiting);
            }
            waiting = next;
            if waiting == NONE {
                // What splitting added to this element's own list.
                waiting = self.elements.peek(number as usize).first;
                self.change(cpu, number, |element| element.first = NONE);
            }
        }
        self.change(cpu, number, |element| element.first = kept);
        for quarter in self.quarters(number) {
            self.refine(cpu, quarter);
        }
    }

    fn quarters(&self, number: u32) -> impl Iterator<Item = u32> {
        self.elements.peek(number as usize).quarters.into_iter().filter(|&quarter| quarter != NONE)
    }

    /// Whether an interaction carries little enough light.
    fn is_fine(&self, cpu: &mut Cpu<'_>, interaction: &Interaction) -> bool {
        cpu.read(self.elements.address(interaction.partner as usize));
        cpu.compute(LOOK_CYCLES);
        let partner = self.elements.peek(interaction.partner as usize);
        partner.radiosity * interaction.bound * interaction.seen <= self.fine
    }

    /// Replaces an interaction by those with the quarters of the larger side; whether it could.
    fn split(&self, cpu: &mut Cpu<'_>, number: u32, interaction: &Interaction) -> bool {
        let [this, other] =
            [number, interaction.partner].map(|element| self.shapes.peek(element as usize).area);
        if this.max(other) < LEAST_AREA {
            return false;
        }
        let larger = if this >= other { number } else { interaction.partner };
        if !self.cut(cpu, larger) {
            return false;
        }
        for quarter in self.quarters(larger) {
            if larger == number {
                self.join(cpu, quarter, interaction.partner);
            } else {
                self.join(cpu, number, quarter);
            }
        }
        true
    }

    /// Cuts an element into quarters, unless it is; whether there was memory for them.
    fn cut(&self, cpu: &mut Cpu<'_>, number: u32) -> bool {
        let element = self.elements.get(cpu, number as usize);
        if element.quarters[0] != NONE {
            return true;
        }
        let shape = self.shapes.get(cpu, number as usize);
        let new = Element { gathered: 0.0, depth: element.depth + 1, ..element };
        let quarters = [0, 1, 2, 3].map(|quarter| self.new_element(cpu, new, shape.quarter(quarter)));
        cpu.compute(CUT_CYCLES);
        let [Some(a), Some(b), Some(c), Some(d)] = quarters else { return false };
        self.change(cpu, number, |element| element.quarters = [a, b, c, d]);
        true
    }

    /// Puts an interaction back on the free list.
    fn release(&self, cpu: &mut Cpu<'_>, number: u32) {
        let next = self.free.get(cpu, FREE_INTERACTION);
        self.interactions.set(cpu, number as usize, Interaction { next, ..Interaction::default() });
        self.free.set(cpu, FREE_INTERACTION, number);
        self.books.interactions.set(self.books.interactions.get() - 1);
    }

    /// Gathers light through an element's interactions, and its quarters'.
    fn gather(&self, cpu: &mut Cpu<'_>, number: u32) {
        self.fetch(cpu, GATHER);
        let element = self.elements.get(cpu, number as usize);
        let mut sum = 0.0;
        let mut at = element.first;
        while at != NONE {
            let interaction = self.interactions.get(cpu, at as usize);
            cpu.read(self.elements.address(interaction.partner as usize));
            let partner = self.elements.peek(interaction.partner as usize);
            sum += interaction.factor * interaction.seen * partner.radiosity;
            cpu.compute(GATHER_CYCLES);
            at = interaction.next;
        }
        self.change(cpu, number, |changed| changed.gathered = sum * element.reflectance);
        for quarter in self.quarters(number) {
            self.gather(cpu, quarter);
        }
    }

    /// Hands light down to the quarters, and sums up what they give off. Returns the element's own.
    fn push(&self, cpu: &mut Cpu<'_>, number: u32, from_above: f64) -> f64 {
        self.fetch(cpu, PUSH);
        let element = self.elements.get(cpu, number as usize);
        let light = from_above + element.gathered;
        cpu.compute(PUSH_CYCLES);
        let radiosity = if element.quarters[0] == NONE {
            element.emission + light
        } else {
            element.quarters.into_iter().map(|quarter| self.push(cpu, quarter, light)).sum::<f64>() / 4.0
        };
        let change = (radiosity - element.radiosity).abs();
        self.books.changed.set(self.books.changed.get().max(change));
        self.change(cpu, number, |element| element.radiosity = radiosity);
        radiosity
    }

    /// All rounds were done, light has settled, what an element gives off is the mean of its quarters,
    /// and nothing was lost from the lists.
    fn check(&self) -> Result<(), String> {
        let books = &self.books;
        if books.rounds.get() != ROUNDS {
            return Err(format!("{} of {ROUNDS} rounds were done", books.rounds.get()));
        }
        let elements: Vec<Element> = (0..books.elements.get()).map(|at| self.elements.peek(at)).collect();
        let brightest = elements.iter().map(|element| element.radiosity).fold(0.0, f64::max);
        if !brightest.is_finite() || books.changed.get() > SETTLED * brightest {
            return Err(format!("light still changes by {} of {brightest}", books.changed.get()));
        }
        let mut listed = 0;
        for (number, element) in elements.iter().enumerate() {
            if element.radiosity < element.emission {
                return Err(format!("element {number} gives off less than its own light"));
            }
            let given: f64 = self.quarters(number as u32).map(|at| elements[at as usize].radiosity).sum();
            if element.quarters[0] != NONE && (given / 4.0 - element.radiosity).abs() > 1e-9 * brightest {
                return Err(format!("element {number} does not give off what its quarters do"));
            }
            let mut at = element.first;
            while at != NONE {
                listed += 1;
                at = self.interactions.peek(at as usize).next;
            }
        }
        if listed != books.interactions.get() {
            return Err(format!("{listed} of {} interactions are listed", books.interactions.get()));
        }
        Ok(())
    }
}
