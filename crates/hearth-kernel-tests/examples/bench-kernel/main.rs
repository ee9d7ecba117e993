//! What scheduling costs in a real kernel, in instructions and in waits: the kernel's own scheduler
//! beside others, each in a deterministic guest of its own. `make bench-kernel`.

mod bench;
mod run;
mod table;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use bench::Bench;
use run::{Figures, Scheduler};

/// Instructions per operation, and waits, of the kernel's scheduler and of others.
#[derive(Parser)]
struct Options {
    /// CPUs of the guests: 8, 64, or both
    #[arg(long, value_delimiter = ',', default_value = "8,64", value_parser = run::shape)]
    cpus: Vec<run::Cpus>,
    /// Only these operations
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Bench>,
    /// Hearth's command, measured as `PATH start --foreground`
    #[arg(long)]
    hearth: Option<String>,
    /// Arguments of Hearth's start, such as "--policy light"; may be given again for another row
    #[arg(long, allow_hyphen_values = true)]
    start: Vec<String>,
    /// Rows of Hearth on a machine that the masks of tasks divide into so many parts, such as 1,8
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u64).range(1..=8))]
    parts: Vec<u64>,
    /// Another sched_ext scheduler: NAME=COMMAND, the command's first word a program of this host
    #[arg(long)]
    scheduler: Vec<Scheduler>,
    /// The kernel's configuration, for schedulers that read it from /boot
    #[arg(long, value_name = "FILE")]
    kernel_config: Option<PathBuf>,
    /// Just enough to see that everything works: 8 CPUs and two columns
    #[arg(long)]
    small: bool,
    /// Also the kernel's own with cache-aware scheduling
    #[arg(long)]
    cache_aware: bool,
    /// Guests that run at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Options {
    fn schedulers(&self) -> Vec<Scheduler> {
        let mut all = vec![Scheduler::Kernel { cache_aware: false }];
        if self.cache_aware {
            all.push(Scheduler::Kernel { cache_aware: true });
        }
        if let Some(path) = self.hearth.as_deref().filter(|path| !path.is_empty()) {
            let plain = [String::new()];
            let starts = if self.start.is_empty() { &plain[..] } else { &self.start[..] };
            let rows = starts.iter().flat_map(|start| self.parts.iter().map(move |parts| (start, *parts)));
            all.extend(rows.map(|(arguments, parts)| Scheduler::hearth(path, arguments, parts as usize)));
        }
        all.extend(self.scheduler.iter().cloned());
        all
    }

    fn benches(&self) -> Vec<Bench> {
        match (self.only.as_slice(), self.small) {
            ([], true) => Bench::SMALL.to_vec(),
            ([], false) => Bench::ALL.to_vec(),
            (only, _) => only.to_vec(),
        }
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    hearth_guest::available()?;
    let (schedulers, benches) = (options.schedulers(), options.benches());
    let cpus = if options.small { &options.cpus[..1] } else { &options.cpus[..] };
    let runs: Vec<(run::Cpus, &Scheduler)> =
        cpus.iter().flat_map(|cpus| schedulers.iter().map(|scheduler| (*cpus, scheduler))).collect();

    let started = Instant::now();
    let figures = measure(&runs, &benches, &options);
    for cpus in cpus {
        println!("{}", table::costs(*cpus, &benches, &figures));
    }
    if let [few, many] = cpus[..] {
        println!("{}", table::growth(few, many, &benches, &figures));
    }
    println!(
        "Instructions per operation; waits after a timer, the 99th percentile, beside so many spinners for \
         each CPU; in brackets, against the kernel's own."
    );
    println!("{} guests in {:.0} s", runs.len(), started.elapsed().as_secs_f64());
    let failed: Vec<&Figures> = figures.iter().filter(|figures| figures.trouble.is_some()).collect();
    for figures in &failed {
        let trouble = figures.trouble.as_deref().unwrap_or_default();
        eprintln!("{} at {} CPUs: {trouble}", figures.scheduler, figures.cpus.count());
    }
    if !failed.is_empty() {
        bail!("{} of {} runs did not give all their figures", failed.len(), runs.len());
    }
    Ok(())
}

/// Boots a guest for each run, some at a time; the results are in the order of `runs`.
fn measure(runs: &[(run::Cpus, &Scheduler)], benches: &[Bench], options: &Options) -> Vec<Figures> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(|| {
                while let Some((cpus, scheduler)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let figures = run::measure(*cpus, scheduler, benches, options.kernel_config.as_deref());
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(figures);
                }
            });
        }
    });
    let mut figures = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    figures.sort_by_key(|figures| {
        runs.iter()
            .position(|(cpus, scheduler)| *cpus == figures.cpus && scheduler.to_string() == figures.scheduler)
    });
    figures
}
