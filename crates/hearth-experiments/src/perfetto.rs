//! What ran where, as a trace for Perfetto (ui.perfetto.dev): each run is a machine of the trace, and
//! each task's application its category.

use crate::Run;
use crate::report::Comparison;
use hearth_report::format;
use hearth_report::perfetto::{Slice, Trace};
use hearth_sim::measure::Stretch;

/// The trace of every run whose timeline was kept.
pub fn trace(comparison: &Comparison) -> Vec<u8> {
    let runs = comparison.policies.iter().flat_map(|policy| &policy.runs);
    let kept = runs.filter(|run| !run.result.timeline.is_empty());
    let mut trace = Trace::default();
    for (index, run) in kept.enumerate() {
        add_run(&mut trace, index as u64 + 1, run);
    }
    trace.bytes()
}

fn add_run(trace: &mut Trace, number: u64, run: &Run) {
    let name = format!("{} under {}, seed {}", run.workload, run.policy, run.seed);
    let machine = trace.machine(number, &name, 0..run.result.cpus);
    let mut stretches: Vec<&Stretch> = run.result.timeline.iter().collect();
    stretches.sort_by_key(|stretch| (stretch.start_ns, stretch.cpu));
    for stretch in stretches {
        let Some(task) = run.result.tasks.get(stretch.task) else { continue };
        let application = run.result.applications.get(task.application);
        let application = application.map_or("", |application| &application.name);
        let slice = Slice {
            cpu: stretch.cpu,
            start_ns: stretch.start_ns,
            end_ns: stretch.end_ns,
            name: &format::task(application, &task.name),
            category: application,
            notes: &[],
        };
        trace.slice(machine, &slice);
    }
}
