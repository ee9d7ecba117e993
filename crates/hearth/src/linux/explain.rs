//! `hearth explain`: why a task is on its CPU, in words.

use super::start::{failure, none_runs};
use super::trace::watch;
use super::{isolation, no_process, plan};
use crate::values;
use anyhow::anyhow;
use clap::Args;
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_host::task::threads_of;
use hearth_linux::daemon;
use hearth_linux::{Decision, Declared, Source, Task};
use serde_json::json;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth explain 4242             watches the process or thread for a second
  hearth explain 4242 --for 5s    longer, for one that sleeps most of the time";

#[derive(Debug, Args)]
pub struct Arguments {
    /// A process, with all its threads, or one thread
    #[arg(value_parser = values::pid)]
    pid: i32,
    /// How long to watch
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = values::time)]
    duration: Duration,
    /// Show so many decisions, the last ones
    #[arg(short = 'n', long, default_value_t = 10, value_parser = values::count)]
    count: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let tids = threads(arguments.pid)?;
    let folder = daemon::run_folder();
    let tasks = daemon::ask_tasks(&folder, &tids).map_err(failure)?.ok_or_else(none_runs)?.tasks;
    if tasks.is_empty() {
        return Err(Failure::Failed(anyhow!(
            "{} is not Hearth's: it has a real-time policy, or Hearth was started for other tasks only (--only)",
            arguments.pid
        )));
    }
    let told = watch(Some(arguments.pid), arguments.duration)?;
    let last = &told.decisions[told.decisions.len().saturating_sub(arguments.count as usize)..];
    if arguments.json {
        return output::print_json(&json!({ "tasks": tasks, "decisions": last, "lost": told.lost }));
    }
    let isolated = daemon::ask_status(&folder).map_err(failure)?.and_then(|status| status.isolation);
    let isolated: String = isolated
        .iter()
        .flat_map(|isolation| &isolation.tasks)
        .filter(|task| tids.contains(&task.tid))
        .map(|task| format!("cache-fair: {}\n", isolation::sentence(task)))
        .collect();
    output::print(&format!("{isolated}{}", text(&tasks, last, arguments.duration)))
}

/// The thread ids of a process, or the thread itself.
fn threads(pid: i32) -> Result<Vec<i32>, Failure> {
    let threads: Vec<i32> = threads_of(pid).collect();
    if threads.is_empty() {
        return Err(no_process(pid));
    }
    Ok(threads)
}

fn text(tasks: &[Task], decisions: &[Decision], watched: Duration) -> String {
    let mut text: String = tasks.iter().map(|task| format!("{}\n", history(task))).collect();
    text.push('\n');
    if decisions.is_empty() {
        let watched = humantime::format_duration(watched);
        return text
            + &format!("It did not begin to run within {watched}: it slept, or ran on undisturbed\n");
    }
    let end_ns = decisions.last().map_or(0, |decision| decision.at_ns);
    text +=
        "Ranks in ms: CPU time received less credit, compared with the one that was chosen; the least runs\n";
    for decision in decisions {
        let ago_ms = (end_ns - decision.at_ns) as f64 / 1e6;
        let (tid, name) = (decision.pid, &decision.comm);
        text += &format!("{ago_ms:>9.3} ms before  {tid} {name}: {}\n", words(decision));
    }
    text
}

/// What a task did since Hearth knows it.
fn history(task: &Task) -> String {
    let place = match (task.queue, task.last_cpu) {
        (Some(queue), _) => format!("waits in the queue of CPU {queue}"),
        (None, Some(cpu)) => format!("runs, or ran last, on CPU {cpu}"),
        (None, None) => "has not run yet".to_owned(),
    };
    let before = task.previous_cpu.map(|cpu| format!(", before that on CPU {cpu}")).unwrap_or_default();
    let plan = plan::of_task(&task.plan).map(|plan| format!("; {plan}")).unwrap_or_default();
    let declared = task.declared.as_ref().map(fragment).unwrap_or_default();
    let [domain, node, far] = task.moves;
    let waited = waits(task);
    format!(
        "{} {place}{before}; began to run {} times, moved {} times ({domain} in its cache domain, {node} in its \
         node, {far} further), went on by its credit {} times{waited}{plan}{declared}",
        task.tid,
        task.runs,
        domain + node + far,
        task.by_credit
    )
}

/// What a task has collected towards its next move; empty if nothing.
fn waits(task: &Task) -> String {
    if task.waited_ns == 0 {
        return String::new();
    }
    let [all, near] = [task.waited_ns, task.waited_near_ns].map(|ns| ns as f64 / 1e6);
    format!(
        "; has waited {all:.3} ms beside idle CPUs since it last moved ({near:.3} ms beside one of its cache)"
    )
}

/// What a task declares to work on.
fn fragment(declared: &Declared) -> String {
    let Declared { number, shared, home, tasks, runs } = declared;
    let whose = if *shared { " of all processes" } else { "" };
    format!(
        "; works on fragment {number:#x}{whose}, which lives on CPU {home} ({tasks} tasks, {runs} of them run)"
    )
}

/// One decision as a sentence.
fn words(decision: &Decision) -> String {
    let cpu = decision.cpu;
    let (chosen, why) = match decision.source {
        Source::Kept => (decision.kept_rank_ns, format!("went on on CPU {cpu}")),
        Source::Own => (decision.own_rank_ns, format!("runs on CPU {cpu}, in whose queue it waited")),
        Source::Domain => (
            decision.elsewhere_rank_ns,
            format!("taken by CPU {cpu} from CPU {} of its cache domain", from(decision)),
        ),
        Source::Foreign => (
            decision.elsewhere_rank_ns,
            format!("taken by CPU {cpu} from CPU {}, further away", from(decision)),
        ),
        Source::Direct => {
            let again = if decision.last_cpu == Some(cpu) { ", where it ran last" } else { "" };
            return format!("woke up, and CPU {cpu} was idle{again}");
        }
        Source::Kernel => return format!("goes on on CPU {cpu} after a task of a higher class"),
        Source::Late => {
            return format!("runs on CPU {cpu}, for it had waited for too long{}", elsewhere(decision));
        }
        Source::Stray => {
            return format!(
                "taken by CPU {cpu} from CPU {}, where more wait and others may not take it",
                from(decision)
            );
        }
        Source::Member => return format!("runs on CPU {cpu}, for it is its gang's time"),
        Source::Fragment => {
            return format!(
                "taken by CPU {cpu} from CPU {}, where others run of what it declares to work on",
                from(decision)
            );
        }
        Source::Idle => return format!("CPU {cpu} goes idle"),
    };
    let Some(chosen) = chosen else { return why };
    let against = |rank: Option<i64>, what: String| {
        rank.filter(|&rank| rank != chosen || decision.source == Source::Kept)
            .map(|rank| format!("{what} {:+.3}", (rank - chosen) as f64 / 1e6))
    };
    let rivals = [
        against(decision.kept_rank_ns.filter(|_| decision.source != Source::Kept), "the one that ran".into()),
        against(decision.own_rank_ns.filter(|_| decision.source != Source::Own), "first of its queue".into()),
        against(
            decision
                .elsewhere_rank_ns
                .filter(|_| !matches!(decision.source, Source::Domain | Source::Foreign)),
            format!("first elsewhere (CPU {})", decision.elsewhere.unwrap_or(-1)),
        ),
    ];
    let rivals: Vec<String> = rivals.into_iter().flatten().collect();
    let credit_ms = (decision.usage_ns as i64).wrapping_sub(chosen) as f64 / 1e6;
    let rivals = if rivals.is_empty() { "nothing else could".to_owned() } else { rivals.join(", ") };
    format!("{why} (credit {credit_ms:.3}; {rivals})")
}

/// In whose queue it waited, if that is another CPU's.
fn elsewhere(decision: &Decision) -> String {
    let other = decision.from.filter(|&from| from != decision.cpu);
    other.map(|from| format!(" at CPU {from}")).unwrap_or_default()
}

fn from(decision: &Decision) -> String {
    decision.from.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(source: Source) -> Decision {
        Decision {
            at_ns: 0,
            cpu: 3,
            pid: 7,
            comm: "cc1".into(),
            source,
            from: Some(5),
            last_cpu: Some(3),
            usage_ns: 10_000_000,
            kept_rank_ns: Some(6_000_000),
            own_rank_ns: Some(7_500_000),
            elsewhere_rank_ns: Some(9_000_000),
            elsewhere: Some(5),
        }
    }

    #[test]
    fn a_sentence_names_the_credit_and_the_rivals() {
        assert_eq!(
            words(&decision(Source::Kept)),
            "went on on CPU 3 (credit 4.000; first of its queue +1.500, first elsewhere (CPU 5) +3.000)"
        );
        assert_eq!(
            words(&decision(Source::Own)),
            "runs on CPU 3, in whose queue it waited (credit 2.500; the one that ran -1.500, first elsewhere (CPU 5) \
             +1.500)"
        );
        assert_eq!(words(&decision(Source::Direct)), "woke up, and CPU 3 was idle, where it ran last");
    }

    #[test]
    fn what_a_task_declares_is_told_with_its_home() {
        let declared = Declared { number: 0x40, shared: true, home: 3, tasks: 4, runs: 1 };
        assert_eq!(
            fragment(&declared),
            "; works on fragment 0x40 of all processes, which lives on CPU 3 (4 tasks, 1 of them run)"
        );
    }

    #[test]
    fn what_went_before_all_ranks_is_said() {
        assert_eq!(words(&decision(Source::Late)), "runs on CPU 3, for it had waited for too long at CPU 5");
        let own = Decision { from: Some(3), ..decision(Source::Late) };
        assert_eq!(words(&own), "runs on CPU 3, for it had waited for too long");
        assert_eq!(
            words(&decision(Source::Stray)),
            "taken by CPU 3 from CPU 5, where more wait and others may not take it"
        );
        assert_eq!(words(&decision(Source::Member)), "runs on CPU 3, for it is its gang's time");
        assert_eq!(
            words(&decision(Source::Fragment)),
            "taken by CPU 3 from CPU 5, where others run of what it declares to work on"
        );
    }

    #[test]
    fn without_a_rival_nothing_else_could_run() {
        let alone = Decision { own_rank_ns: None, elsewhere_rank_ns: None, ..decision(Source::Kept) };
        assert_eq!(words(&alone), "went on on CPU 3 (credit 4.000; nothing else could)");
    }

    #[test]
    fn a_process_that_is_not_there_is_wrong_input() {
        assert!(matches!(threads(i32::MAX), Err(Failure::Input(_))));
        assert!(!threads(std::process::id() as i32).unwrap_or_default().is_empty());
    }
}
