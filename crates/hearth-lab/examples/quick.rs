use hearth_lab::*;
use std::sync::Arc;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let m = Arc::new(hearth_machine::Machine::load("sgi-4d340").unwrap());
    for p in a[3].split(',') {
        let t = std::time::Instant::now();
        let j = Job {
            machine: m.clone(),
            workload: Workload::Mix(a[1].clone()),
            policy: hearth_policy::Policy::load(p).unwrap(),
            scale: a[2].parse().unwrap(),
            seed: 1,
            options: Default::default(),
        };
        match run_one(&j, None) {
            Ok(r) => {
                let r = r.result;
                let c = r.total.counters;
                let s = t.elapsed().as_secs_f64();
                println!(
                    "{p}: mean exec {:.2}s elapsed {:.2} idle {:.1}% misses {:.2}M (i {:.2}) slices {:.1}ms sw {} moves {} | host {s:.1}s {:.0}M refs/s, {:.0} Mcyc/s; causes {:?} stall {:.1}% queue {:.1}%",
                    r.mean_execution_ns as f64 / 1e9,
                    r.elapsed_ns as f64 / 1e9,
                    r.idle_share * 100.,
                    c.misses() as f64 / 1e6,
                    c.instruction_misses as f64 / 1e6,
                    r.total.slices.mean_ms(),
                    r.total.switches,
                    r.total.cpu_moves,
                    r.references as f64 / s / 1e6,
                    r.total.cpu_ns as f64 * 0.033 / s / 1e6,
                    c.causes.map(|x| x / 1000),
                    c.stall_ps as f64 / r.total.cpu_ns as f64 / 10.,
                    c.queue_ps as f64 / r.total.cpu_ns as f64 / 10.
                )
            }
            Err(e) => println!("{p}: {e}"),
        }
    }
}
