//! The text of a compiler's pass: large, but used with locality.
//!
//! A pass at work on one construct of the language goes round a few dozen small procedures; now and
//! then it needs another one. All compilations share the text.

use hearth_sim::memory::Code;
use hearth_sim::program::Cpu;
use rand_core::Rng;
use rand_pcg::Pcg32;

/// Bytes of a procedure, or of the part of one that is executed.
const PIECE_BYTES: u64 = 128;
/// Procedures in use at a time.
const IN_USE: usize = 48;
/// Calls in a hundred that go to a procedure that was not in use.
const CHANGED_PERCENT: u32 = 48;

/// Where a task is in the text of a pass.
pub struct Walk {
    code: Code,
    in_use: [u32; IN_USE],
}

impl Walk {
    /// Starts in the text of a pass.
    pub fn new(code: Code, random: &mut Pcg32) -> Self {
        let mut walk = Self { code, in_use: [0; IN_USE] };
        (0..IN_USE).for_each(|at| walk.in_use[at] = walk.draw(random));
        walk
    }

    fn draw(&self, random: &mut Pcg32) -> u32 {
        random.next_u32() % (self.code.bytes / PIECE_BYTES) as u32
    }

    /// Calls a procedure.
    pub fn call(&mut self, cpu: &mut Cpu<'_>, random: &mut Pcg32) {
        let drawn = random.next_u32();
        let at = drawn as usize % IN_USE;
        if drawn / IN_USE as u32 % 100 < CHANGED_PERCENT {
            self.in_use[at] = self.draw(random);
        }
        cpu.execute(self.code.part(u64::from(self.in_use[at]) * PIECE_BYTES, PIECE_BYTES));
    }
}
