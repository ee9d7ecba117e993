//! Interactions: how much of the light of one element reaches another.

use super::room::{Block, Shape, between, dot};
use crate::r3000::{ADD, DIVIDE, LOOP, MULTIPLY, SECOND_WORD, SQUARE_ROOT};
use hearth_hardware::Placement;
use hearth_sim::memory::{Array, Code, Memory};
use hearth_sim::program::Cpu;
use std::f64::consts::PI;

/// Where rays between two elements start and end, along each one's edges.
const RAYS: [([f64; 2], [f64; 2]); 8] = [
    ([-0.7, -0.2], [0.6, 0.3]),
    ([-0.1, -0.8], [-0.4, 0.8]),
    ([0.4, -0.4], [0.1, -0.7]),
    ([0.8, 0.1], [-0.8, -0.1]),
    ([0.3, 0.6], [0.4, -0.3]),
    ([-0.4, 0.4], [0.8, 0.7]),
    ([-0.8, 0.8], [-0.6, -0.6]),
    ([0.0, 0.1], [0.2, 0.0]),
];
/// Rays end a little before what they go to, which may be the side of a block.
const SKIN: f64 = 1e-3;

/// Cycles beside references: to tell which corners face what, of a form factor, to set a ray up, and
/// to cut it at one axis of a block.
const FACING_CYCLES: u64 = 8 * (5 * ADD + 5 * MULTIPLY) + 24 * SECOND_WORD;
const FACTOR_CYCLES: u64 = 12 * ADD + 14 * MULTIPLY + SQUARE_ROOT + 2 * DIVIDE;
const RAY_CYCLES: u64 = 15 * ADD + 12 * MULTIPLY + 3 * DIVIDE;
const AXIS_CYCLES: u64 = 6 * ADD + 2 * MULTIPLY + 2 * SECOND_WORD + LOOP;
/// Text of all this.
const TEXT_BYTES: u64 = 4096;

/// One way that light takes: 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Interaction {
    /// The next of the same element, or of the free list.
    pub next: u32,
    /// The element that light comes from.
    pub partner: u32,
    /// The form factor, and the most that it may be somewhere on the element.
    pub factor: f64,
    /// See `factor`.
    pub bound: f64,
    /// The share of rays that nothing stands in the way of.
    pub seen: f64,
}

/// Looks through the scene.
#[derive(Clone)]
pub struct Sight {
    blocks: Array<Block>,
    text: Code,
}

impl Sight {
    /// For a scene with these blocks.
    pub fn new(memory: &Memory, blocks: &[Block]) -> Self {
        let array = memory.array(blocks.len(), Placement::FirstTouch);
        blocks.iter().enumerate().for_each(|(at, &block)| array.poke(at, block));
        Self { blocks: array, text: memory.code(TEXT_BYTES) }
    }

    /// How light comes from `other` to `this`, if it does: the form factor of a disc as large as
    /// `other`, and what rays see.
    pub fn interaction(&self, cpu: &mut Cpu<'_>, this: &Shape, other: &Shape) -> Option<Interaction> {
        cpu.fetch(self.text);
        cpu.compute(FACING_CYCLES);
        let facing = [this.corners_before(other), other.corners_before(this)];
        if facing.contains(&0) {
            return None;
        }
        let way = between(this.centre, other.centre);
        let square = dot(way, way);
        let disc = other.area / (PI * square + other.area);
        let leaving = dot(this.normal, way).max(0.0);
        let arriving = (-dot(other.normal, way)).max(0.0);
        let factor = disc * leaving * arriving / square;
        cpu.compute(FACTOR_CYCLES);
        let bound = if facing == [4, 4] { factor } else { disc };
        let open = RAYS.iter().filter(|(from, to)| self.is_open(cpu, this.point(*from), other.point(*to)));
        let seen = open.count() as f64 / RAYS.len() as f64;
        (seen > 0.0).then_some(Interaction { next: 0, partner: 0, factor, bound, seen })
    }

    /// Whether no block is between two points.
    fn is_open(&self, cpu: &mut Cpu<'_>, from: [f64; 3], to: [f64; 3]) -> bool {
        let inverse = between(from, to).map(f64::recip);
        cpu.compute(RAY_CYCLES);
        (0..self.blocks.len()).all(|block| !self.is_hit(cpu, block, from, inverse))
    }

    /// Whether a block is between: the stretches of the ray between each pair of its sides overlap.
    #[inline]
    fn is_hit(&self, cpu: &mut Cpu<'_>, block: usize, from: [f64; 3], inverse: [f64; 3]) -> bool {
        let address = self.blocks.address(block);
        let Block { sides } = self.blocks.peek(block);
        let (mut enter, mut leave) = (SKIN, 1.0 - SKIN);
        for axis in 0..3 {
            cpu.read_span(address + 16 * axis as u64, 16);
            cpu.compute(AXIS_CYCLES);
            let [one, other] = sides[axis].map(|side| (side - from[axis]) * inverse[axis]);
            enter = f64::max(enter, one.min(other));
            leave = f64::min(leave, one.max(other));
            if enter >= leave {
                return false;
            }
        }
        true
    }
}
