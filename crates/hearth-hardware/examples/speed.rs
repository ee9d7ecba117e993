//! References a second on one core, by kind of stream. `make bench` runs it beside other tools.

use hearth_hardware::{Access, Hardware, Mode, Placement};
use hearth_machine::Machine;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let references: usize = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(20_000_000);
    let only = arguments.next();
    let machine = Machine::load("server-2s").expect("a preset");
    for (name, footprint, hot, cold_per_mille) in [
        ("0.5 % misses", 1 << 24, 1 << 14, 5),
        ("6 % misses", 1 << 24, 1 << 14, 60),
        ("23 % misses", 1 << 24, 1 << 14, 230),
        ("random", 1 << 26, 0, 1000),
    ] {
        if only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            continue;
        }
        let mut random = Pcg32::seed_from_u64(7);
        let stream: Vec<u64> = (0..references)
            .map(|_| {
                let cold = random.next_u32() % 1000 < cold_per_mille;
                let range = if cold { footprint } else { hot };
                u64::from(random.next_u32()) % range
            })
            .collect();
        let mut hardware = Hardware::new(&machine, 1).expect("a preset can be simulated");
        let base = hardware.segment(footprint, Placement::FirstTouch).base;
        let port = std::rc::Rc::clone(&hardware.ports()[0]);
        for round in 0..2 {
            let (start, before) = (Instant::now(), port.counters());
            for (index, &offset) in stream.iter().enumerate() {
                let address = base + offset;
                if index % 4 == 0 {
                    if !port.write(address) {
                        let _ = hardware.reference(0, address, Access::Write, Mode::User);
                    }
                } else if !port.read(address) {
                    let _ = hardware.reference(0, address, Access::Read, Mode::User);
                }
            }
            let seconds = start.elapsed().as_secs_f64();
            let counters = port.counters() - before;
            if round == 1 {
                println!(
                    "{name}: {:.1} M/s, L1 {:.2} %, memory {:.2} %",
                    references as f64 / seconds / 1e6,
                    100.0 * counters.l1d_misses as f64 / references as f64,
                    100.0 * counters.misses() as f64 / references as f64
                );
            }
        }
    }
}
