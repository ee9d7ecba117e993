//! `hearth trace`: what the scheduler does, as a trace for Perfetto.

use super::start::{failure, none_runs};
use crate::values;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::{interrupt, output};
use hearth_host::kernel;
use hearth_linux::daemon::{self, Told};
use hearth_linux::{Decision, Source};
use hearth_report::perfetto::{Slice, Trace};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the decisions are fetched: the kernel keeps some 10,000.
const FETCH_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub struct Arguments {
    /// The file to write
    file: PathBuf,
    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "2s", value_parser = values::time)]
    duration: Duration,
}

pub fn run(arguments: &Arguments) -> Outcome {
    output::check_writable(&arguments.file)?;
    let told = watch(None, arguments.duration)?;
    output::write_file(&arguments.file, &trace(&told.decisions))?;
    let lost =
        if told.lost > 0 { format!("; {} came too fast and are missing", told.lost) } else { String::new() };
    anstream::eprintln!("{} decisions in {}{lost}", told.decisions.len(), arguments.file.display());
    Ok(())
}

/// The decisions of a while: about a process or thread, or all; until Ctrl-C, or the end of Hearth, at most.
pub fn watch(pid: Option<i32>, duration: Duration) -> Result<Told, Failure> {
    let folder = daemon::run_folder();
    let stop = interrupt::flag()?;
    let begin = Instant::now();
    let mut told = daemon::ask_trace(&folder, pid).map_err(failure)?.ok_or_else(none_runs)?;
    while begin.elapsed() < duration && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(FETCH_INTERVAL.min(duration));
        let Some(next) = daemon::ask_decisions(&folder).map_err(failure)? else { break };
        told.decisions.extend(next.decisions);
    }
    match daemon::ask_untrace(&folder).map_err(failure)? {
        Some(last) => {
            told.decisions.extend(last.decisions);
            told.lost = last.lost;
        }
        None => anstream::eprintln!("Hearth ended meanwhile; these are the decisions up to then"),
    }
    Ok(told)
}

/// A stretch from each decision to the next one of its CPU, where it is of another task.
fn trace(decisions: &[Decision]) -> Vec<u8> {
    let mut by_cpu: BTreeMap<i32, Vec<&Decision>> = BTreeMap::new();
    for decision in decisions {
        by_cpu.entry(decision.cpu).or_default().push(decision);
    }
    let mut trace = Trace::default();
    let cpus = by_cpu.keys().map(|&cpu| cpu as usize);
    let machine = trace.machine(1, &format!("Linux {}", kernel::release()), cpus);
    let end_ns = decisions.iter().map(|decision| decision.at_ns).max().unwrap_or_default();
    for (&cpu, decisions) in &by_cpu {
        for (index, decision) in decisions.iter().enumerate() {
            if decision.source == Source::Idle {
                continue;
            }
            let slice = Slice {
                cpu: cpu as usize,
                start_ns: decision.at_ns,
                end_ns: decisions.get(index + 1).map_or(end_ns, |next| next.at_ns),
                name: &format!("{} {}", decision.comm, decision.pid),
                category: &decision.comm,
                notes: &notes(decision),
            };
            trace.slice(machine, &slice);
        }
    }
    trace.bytes()
}

fn notes(decision: &Decision) -> Vec<(&'static str, String)> {
    let ms = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
    let mut notes = vec![("why", format!("{:?}", decision.source).to_lowercase())];
    let ranks = [
        ("usage", Some(decision.usage_ns as i64)),
        ("rank of the one that ran", decision.kept_rank_ns),
        ("rank of the own queue's first", decision.own_rank_ns),
        ("rank of the first elsewhere", decision.elsewhere_rank_ns),
    ];
    notes.extend(ranks.into_iter().filter_map(|(name, rank)| Some((name, ms(rank?)))));
    let cpus = [("ran last on CPU", decision.last_cpu), ("waited in the queue of CPU", decision.from)];
    notes.extend(cpus.into_iter().filter_map(|(name, cpu)| Some((name, cpu?.to_string()))));
    notes
}
