//! The custom benchmark of the data-affinity paper (section 5.2): threads that update elements of data
//! fragments, many threads to a fragment, and never sleep.
//!
//! The first thread makes the fragments, one after another on the heap, and starts the others in a loop. Each
//! works on one fragment for all its life; fragments are dealt evenly, in an order drawn at random. An iteration
//! picks four elements of the fragment at random and adds to each, and computes. Additions commute, so the
//! elements must end as those of a serial program whatever the schedule.

use crate::{Built, Description, Kind, Numbers, Parameter, scaled};
use hearth_hardware::{Address, Placement, Segment};
use hearth_sim::memory::Memory;
use hearth_sim::program::{Application, Cpu};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::cell::Cell;
use std::rc::Rc;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "custom",
    description: "threads that update data fragments which they share",
    kind: Kind::Real,
    source: "\"Thread Scheduling Based on Data Affinity\", section 5.2",
};

/// What may be given with its name.
pub const PARAMETERS: &[Parameter] = &[
    Parameter { name: "threads", description: "threads", default: 8, range: 1..=1024 },
    Parameter { name: "fragments", description: "data fragments", default: 4, range: 1..=1024 },
    Parameter {
        name: "size",
        description: "elements of a fragment, 4 bytes each",
        default: 8000,
        range: 1..=1 << 20,
    },
    Parameter {
        name: "iterations",
        description: "iterations of each thread at scale 1",
        default: 10_000_000,
        range: 1..=1_000_000_000,
    },
];

/// Elements that an iteration updates. Tables 3 and 4 have 0.26, 0.47 and 0.58 misses an iteration with 8, 32 and
/// 128 threads under the old scheduler (size 8000). Two threads on two CPUs are on one of four fragments with a
/// chance of 1/7, 7/31 and 31/127, and of what both write half was written by the other: so 3.6, 4.2 and 4.8.
const UPDATES: usize = 4;
/// Cycles of an iteration beside its references: table 3 has 27.5 s for 8 threads of 10 M iterations on two CPUs
/// of 3.2 GHz under the new scheduler, where hardly any miss.
const ITERATION_CYCLES: u64 = 2_200;
const ELEMENT_BYTES: u64 = 4;
/// What the heap keeps before each allocation, and the multiple of bytes at which it hands out.
const HEAP_HEADER_BYTES: u64 = 4;
const HEAP_ALIGNMENT: u64 = 8;

/// The fragments of a run.
#[derive(Clone)]
struct Fragments {
    heap: Segment,
    /// Bytes from one fragment to the next.
    stride: u64,
    size: usize,
    elements: Rc<[Cell<u32>]>,
}

/// What a thread draws: the same numbers in the simulated program and in the serial one.
struct Draws(Pcg32);

impl Draws {
    fn new(seed: u64, thread: usize) -> Self {
        Self(Pcg32::seed_from_u64(seed ^ ((thread as u64 + 1) << 32)))
    }

    /// An element below `size`, and what to add to it.
    fn update(&mut self, size: usize) -> (usize, u32) {
        let drawn = self.0.next_u32();
        (((u64::from(drawn) * size as u64) >> 32) as usize, drawn | 1)
    }
}

/// Sets the program up; see [`crate::build`]. Scale cuts the number of iterations.
pub(crate) fn build(memory: &Memory, scale: f64, seed: u64, numbers: &Numbers) -> Built {
    let (threads, count, size) = (numbers.of("threads"), numbers.of("fragments"), numbers.of("size"));
    let iterations = scaled(numbers.of("iterations"), scale);
    let fragments = Fragments::new(memory, count, size);
    let of_thread = dealt(threads, count, seed);
    let mut application = Application::new(DESCRIPTION.name);
    let (shared, dealt) = (fragments.clone(), of_thread.clone());
    application.task("custom", move |cpu| {
        shared.clear(cpu);
        for (thread, &fragment) in dealt.iter().enumerate() {
            let fragments = shared.clone();
            cpu.fork(&format!("custom-{thread}"), move |cpu| {
                cpu.enter(fragment as u64 + 1);
                fragments.work(cpu, fragment, Draws::new(seed, thread), iterations);
                cpu.leave();
            });
        }
    });
    Built::new(application, move || fragments.check(seed, &of_thread, iterations))
}

/// A fragment for each thread, as many threads to each as can be, in an order drawn at random.
fn dealt(threads: usize, fragments: usize, seed: u64) -> Vec<usize> {
    let mut random = Pcg32::seed_from_u64(seed);
    let mut dealt: Vec<usize> = (0..threads).map(|thread| thread % fragments).collect();
    for last in (1..threads).rev() {
        dealt.swap(last, random.next_u32() as usize % (last + 1));
    }
    dealt
}

impl Fragments {
    fn new(memory: &Memory, count: usize, size: usize) -> Self {
        let stride = (size as u64 * ELEMENT_BYTES + HEAP_HEADER_BYTES).next_multiple_of(HEAP_ALIGNMENT);
        let heap = memory.segment(stride * count as u64, Placement::FirstTouch);
        Self { heap, stride, size, elements: vec![Cell::new(0); count * size].into() }
    }

    fn address(&self, fragment: usize, element: usize) -> Address {
        self.heap.base + HEAP_HEADER_BYTES + fragment as u64 * self.stride + element as u64 * ELEMENT_BYTES
    }

    /// The first thread sets all elements to 0.
    fn clear(&self, cpu: &mut Cpu<'_>) {
        let count = self.elements.len() / self.size;
        (0..count).for_each(|fragment| {
            cpu.write_span(self.address(fragment, 0), self.size as u64 * ELEMENT_BYTES);
        });
    }

    fn work(&self, cpu: &mut Cpu<'_>, fragment: usize, mut draws: Draws, iterations: usize) {
        let base = self.address(fragment, 0);
        let elements = &self.elements[fragment * self.size..][..self.size];
        for _ in 0..iterations {
            for _ in 0..UPDATES {
                let (element, more) = draws.update(elements.len());
                elements[element].set(elements[element].get().wrapping_add(more));
                let address = base + element as u64 * ELEMENT_BYTES;
                cpu.read(address);
                cpu.write(address);
            }
            cpu.compute(ITERATION_CYCLES);
        }
    }

    /// Compares the elements with those of a serial program.
    fn check(&self, seed: u64, of_thread: &[usize], iterations: usize) -> Result<(), String> {
        let mut serial = vec![0u32; self.elements.len()];
        for (thread, &fragment) in of_thread.iter().enumerate() {
            let mut draws = Draws::new(seed, thread);
            for _ in 0..iterations * UPDATES {
                let (element, more) = draws.update(self.size);
                let element = &mut serial[fragment * self.size + element];
                *element = element.wrapping_add(more);
            }
        }
        match self.elements.iter().zip(&serial).position(|(is, should)| is.get() != *should) {
            Some(at) => Err(format!(
                "element {} of fragment {} is not the serial program's",
                at % self.size,
                at / self.size
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beside_each_other_compute_what_a_serial_program_does() {
        let numbers = Numbers::read("custom", PARAMETERS, "threads=9,fragments=2,size=40").unwrap();
        crate::trial::run_by_data(|memory| build(memory, 0.0005, 1, &numbers));
    }

    #[test]
    fn fragments_are_dealt_evenly_and_by_seed() {
        let dealt_of = |seed| dealt(32, 4, seed);
        for fragment in 0..4 {
            assert_eq!(dealt_of(1).iter().filter(|&&of| of == fragment).count(), 8);
        }
        assert_ne!(dealt_of(1), dealt_of(2));
    }
}
