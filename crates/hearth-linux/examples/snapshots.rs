//! Takes snapshots of this machine, with whatever scheduler it has, and says what they take.
//! Needs root: `snapshots [TIMES]`.

use hearth_host::clock::thread_cpu_time;
use hearth_linux::Snapshots;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let times: usize = std::env::args().nth(1).map_or(Ok(10), |times| times.parse())?;
    let host = hearth_machine::host::read(Path::new("/"))?;
    let begin = Instant::now();
    let mut snapshots = Snapshots::load(&host, None, false)?;
    println!("loaded_ms={:.1}", begin.elapsed().as_secs_f64() * 1e3);
    for _ in 0..times {
        let (begin, used) = (Instant::now(), thread_cpu_time());
        let snapshot = snapshots.take()?;
        let used = thread_cpu_time() - used;
        println!(
            "took_ms={:.3} cpu_ms={:.3} tasks={} runnable={} masks={} groups={}",
            begin.elapsed().as_secs_f64() * 1e3,
            used.as_secs_f64() * 1e3,
            snapshot.tasks.len(),
            snapshot.tasks.iter().filter(|task| task.is_runnable()).count(),
            snapshot.masks.len(),
            snapshot.groups.len(),
        );
    }
    Ok(())
}
