//! What a system does by itself beside the programs of its users: processes that wake up now and then, look around, and
//! sleep again. They have no end.

use crate::{Built, Description, Kind};
use hearth_hardware::{Placement, Segment};
use hearth_sim::memory::{Code, Memory};
use hearth_sim::program::{Application, Cpu};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// What this program is.
pub const DESCRIPTION: Description = Description {
    name: "daemons",
    description: "five processes of a Unix of 1990 that wake up 2.4 times a second in all, for as long as others run",
    kind: Kind::Synthetic,
    source: "defaults of System V (buffers, paging), 4.3BSD (routed, rwhod, cron)",
};

/// When a daemon wakes up.
enum Wakes {
    /// So many milliseconds after it fell asleep.
    After(u64),
    /// When a message comes: at random, so many milliseconds apart on average.
    OnMessages(u64),
}

/// A daemon, and what it does each time.
struct Daemon {
    name: &'static str,
    wakes: Wakes,
    text_bytes: u64,
    /// It looks at a word of each stride of them.
    data_bytes: u64,
    cycles: u64,
}

/// How far apart what a daemon looks at lies: a buffer's header, an entry of a table.
const STRIDE_BYTES: usize = 64;

/// System V looks each second whether a buffer has waited for long enough to be written (FDFLUSHR), and whether memory
/// is short. `rwhod` of each host tells all others every three minutes how it is; of 60 hosts, one every three
/// seconds. `routed` tells every 30 s. Buffers, text, data and cycles are estimates.
const DAEMONS: [Daemon; 5] = [
    Daemon {
        name: "bdflush",
        wakes: Wakes::After(1_000),
        text_bytes: 2 << 10,
        data_bytes: 32 << 10,
        cycles: 10_000,
    },
    Daemon {
        name: "vhand",
        wakes: Wakes::After(1_000),
        text_bytes: 1 << 10,
        data_bytes: 1 << 10,
        cycles: 1_000,
    },
    Daemon {
        name: "rwhod",
        wakes: Wakes::OnMessages(3_000),
        text_bytes: 8 << 10,
        data_bytes: 2 << 10,
        cycles: 30_000,
    },
    Daemon {
        name: "routed",
        wakes: Wakes::OnMessages(30_000),
        text_bytes: 8 << 10,
        data_bytes: 4 << 10,
        cycles: 30_000,
    },
    Daemon {
        name: "cron",
        wakes: Wakes::After(60_000),
        text_bytes: 4 << 10,
        data_bytes: 4 << 10,
        cycles: 30_000,
    },
];

/// Sets the program up; see [`crate::build`]. There is nothing in it to scale.
pub fn build(memory: &Memory, _scale: f64, seed: u64) -> Built {
    let mut application = Application::new(DESCRIPTION.name);
    application.is_background = true;
    for (number, daemon) in DAEMONS.iter().enumerate() {
        let code = memory.code(daemon.text_bytes);
        let data = memory.segment(daemon.data_bytes, Placement::FirstTouch);
        let mut random = Pcg32::seed_from_u64(seed);
        random.advance((number as u64) << 32);
        application.task(daemon.name, move |cpu| daemon.serve(cpu, code, data, &mut random));
    }
    Built::new(application, || Ok(()))
}

/// Above 0 and up to 1.
fn chance(random: &mut Pcg32) -> f64 {
    (f64::from(random.next_u32()) + 1.0) / (f64::from(u32::MAX) + 1.0)
}

impl Daemon {
    /// For ever: sleeps, and does what it is there for.
    fn serve(&self, cpu: &mut Cpu<'_>, code: Code, data: Segment, random: &mut Pcg32) -> ! {
        // They began at different times, long ago.
        cpu.sleep_ns((chance(random) * self.wakes.mean_ns()) as u64);
        loop {
            cpu.fetch(code);
            (0..data.bytes).step_by(STRIDE_BYTES).for_each(|at| cpu.read(data.base + at));
            cpu.compute(self.cycles);
            cpu.sleep_ns(self.wakes.next_ns(random));
        }
    }
}

impl Wakes {
    fn mean_ns(&self) -> f64 {
        let (Wakes::After(ms) | Wakes::OnMessages(ms)) = self;
        *ms as f64 * 1e6
    }

    fn next_ns(&self, random: &mut Pcg32) -> u64 {
        let of_mean = match self {
            Wakes::After(_) => 1.0,
            Wakes::OnMessages(_) => -chance(random).ln(),
        };
        (of_mean * self.mean_ns()) as u64
    }
}
