//! `hearth neighbours`: which programs slow which by sharing a cache with them.

use crate::failure::{Failure, Outcome};
use crate::observe::{duration, percent, refusal};
use crate::table::{number, table};
use crate::{interrupt, output};
use clap::Args;
use hearth_host::task::threads_of;
use hearth_observe::neighbours::{Neighbours, Options, neighbours};
use hearth_page::format::significant;
use hearth_policy::isolation::blame::{Slowing, Victim};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  hearth neighbours                  which programs slow which, for 10 seconds
  hearth neighbours 4242 --for 1m    what slows the program of this process
  hearth neighbours --json";

/// Programs with less of all cycles are left out, in percent, unless all are wanted.
const SMALL_PERCENT: f64 = 0.5;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Show the program of this process only
    pid: Option<i32>,
    /// How long: 10s, 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// What reading counters may take of each CPU's time, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = hearth_observe::COUNTERS_PERCENT, value_parser = percent)]
    counters_percent: f64,
    /// Show programs with little CPU time, too
    #[arg(short, long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// For tests: what the kernel counts stands for what a CPU would
    #[arg(long, hide = true)]
    software_counters: bool,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    elapsed_s: f64,
    cpus: usize,
    cache_domains: usize,
    /// Stretches of CPUs' time that were counted, and such as found no room.
    stretches: usize,
    lost: u64,
    /// What counting took of all CPUs' time, in percent.
    cost_percent: Option<f64>,
    /// Whether it was stopped before its end.
    partial: bool,
    /// Those with most cycles first.
    programs: Vec<Program>,
}

#[derive(Debug, Serialize)]
struct Program {
    name: String,
    /// Of all cycles that were counted.
    cycles_percent: f64,
    samples: usize,
    instructions_per_cycle: f64,
    misses_per_1000_instructions: f64,
    /// By all neighbours together; nothing if it cannot be told.
    slowed: Option<By>,
    /// By each, the one that misses most first.
    by: Vec<Neighbour>,
}

#[derive(Debug, Serialize)]
struct Neighbour {
    name: String,
    /// Nothing if it always misses as another does, or always the same.
    #[serde(flatten)]
    slowed: Option<By>,
}

/// A [`Slowing`], as printed.
#[derive(Clone, Copy, Debug, Serialize)]
struct By {
    percent: f64,
    /// The standard error, in points.
    error: f64,
    sure: bool,
}

impl From<Slowing> for By {
    fn from(slowing: Slowing) -> Self {
        Self { percent: slowing.percent, error: slowing.error, sure: slowing.is_sure() }
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let program = arguments.pid.map(program_of).transpose()?;
    let options = Options {
        duration: arguments.duration,
        counters_percent: arguments.counters_percent,
        software: arguments.software_counters,
    };
    let found = neighbours(&options, interrupt::flag()?).map_err(refusal)?;
    let mut report = Report::new(&found);
    if let Some(name) = &program {
        report.programs.retain(|program| program.name == *name);
    }
    match arguments.json {
        true => output::print_json(&report)?,
        false => output::print(&report.text(program.as_deref(), arguments.verbose))?,
    }
    if found.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

/// The name of a process's program, as the kernel has it.
fn program_of(pid: i32) -> Result<String, Failure> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    let is_process = threads_of(pid).next().is_some();
    match name.ok().filter(|_| is_process) {
        Some(name) => Ok(name.trim_end_matches('\n').to_owned()),
        None => Err(crate::linux::no_process(pid)),
    }
}

impl Report {
    fn new(found: &Neighbours) -> Self {
        let cycles: f64 = found.victims.iter().map(|victim| victim.cycles).sum();
        let name =
            |who| found.names.get(&who).map_or_else(|| "(unknown)".to_owned(), |name| output::shown(name));
        let program = |victim: &Victim| Program {
            name: name(victim.who),
            cycles_percent: 100.0 * victim.cycles / cycles,
            samples: victim.samples,
            instructions_per_cycle: victim.ipc,
            misses_per_1000_instructions: victim.misses_per_ki,
            slowed: victim.by_all.map(By::from),
            by: victim
                .by
                .iter()
                .map(|(who, by)| Neighbour { name: name(*who), slowed: by.map(By::from) })
                .collect(),
        };
        let all_ns = found.elapsed.as_nanos() as f64 * found.cpus as f64;
        Self {
            elapsed_s: found.elapsed.as_secs_f64(),
            cpus: found.cpus,
            cache_domains: found.domains,
            stretches: found.stretches,
            lost: found.lost,
            cost_percent: found.run_time.map(|(ns, _)| 100.0 * ns as f64 / all_ns),
            partial: found.interrupted,
            programs: found.victims.iter().map(program).collect(),
        }
    }

    fn text(&self, wanted: Option<&str>, verbose: bool) -> String {
        let mut text = format!(
            "Who slows whom: {:.1} s on {} CPUs in {} cache domains, {} stretches of CPUs' time\n\n",
            self.elapsed_s, self.cpus, self.cache_domains, self.stretches
        );
        let is_shown =
            |program: &&Program| verbose || wanted.is_some() || program.cycles_percent >= SMALL_PERCENT;
        let shown: Vec<&Program> = self.programs.iter().filter(is_shown).collect();
        if shown.is_empty() {
            let whose = wanted.unwrap_or("any program");
            let _ = writeln!(
                text,
                "Nothing was counted of {whose}: it slept, or its CPU has no neighbours whose cache it shares."
            );
        } else {
            let _ = writeln!(text, "{}\n", table_of(&shown));
        }
        let hidden = self.programs.len() - shown.len();
        if hidden > 0 {
            let _ = writeln!(
                text,
                "{hidden} programs with less than {SMALL_PERCENT} % each are left out (--verbose shows them)"
            );
        }
        if self.lost > 0 {
            let _ = writeln!(text, "note: {} stretches came too fast and are missing", self.lost);
        }
        if let Some(percent) = self.cost_percent {
            let _ = writeln!(text, "Counting took {} % of the CPUs' time.", significant(percent));
        }
        text + &self.worst()
    }

    /// What a reader is to take away.
    fn worst(&self) -> String {
        let pairs = self.programs.iter().flat_map(|victim| {
            let sure = victim.by.iter().filter_map(|by| Some((by, by.slowed.filter(|slowed| slowed.sure)?)));
            sure.map(move |(by, slowed)| (victim, by, slowed))
        });
        match pairs.max_by(|one, other| one.2.percent.total_cmp(&other.2.percent)) {
            Some((victim, by, slowed)) => format!(
                "{} slows {} most: by {}. Nothing was changed.\n",
                by.name,
                victim.name,
                with_error(slowed)
            ),
            None => "Nobody slows anybody for sure; longer (--for 1m) tells more.\n".to_owned(),
        }
    }
}

fn table_of(programs: &[&Program]) -> comfy_table::Table {
    let header = [
        "program",
        "by whom (± standard error)",
        "slowed",
        "cycles %",
        "samples",
        "instr./cycle",
        "misses/1000",
    ];
    let mut table = table(&header, 2);
    for program in programs {
        table.add_row([
            program.name.clone().into(),
            by_whom(program).into(),
            number(program.slowed.map_or_else(|| "-".to_owned(), with_error)),
            number(format!("{:.1}", program.cycles_percent)),
            number(program.samples.to_string()),
            number(format!("{:.2}", program.instructions_per_cycle)),
            number(significant(program.misses_per_1000_instructions)),
        ]);
    }
    table
}

fn by_whom(program: &Program) -> String {
    let sure = program.by.iter().filter_map(|by| Some((by, by.slowed.filter(|slowed| slowed.sure)?)));
    let sure: Vec<String> = sure.map(|(by, slowed)| format!("{} {}", by.name, with_error(slowed))).collect();
    match (sure.is_empty(), program.slowed, program.by.is_empty()) {
        (false, ..) => sure.join(", "),
        (true, _, true) => "no neighbour missed".to_owned(),
        (true, None, _) => "too few samples, or neighbours that never change".to_owned(),
        (true, Some(_), _) => "nobody for sure".to_owned(),
    }
}

fn with_error(by: By) -> String {
    format!("{:.1} % ±{:.1}", by.percent, by.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(by: &[(&str, Option<Slowing>)]) -> Program {
        Program {
            name: "nginx".into(),
            cycles_percent: 40.0,
            samples: 900,
            instructions_per_cycle: 1.5,
            misses_per_1000_instructions: 2.0,
            slowed: by.iter().find_map(|(_, by)| by.map(By::from)),
            by: by
                .iter()
                .map(|(name, by)| Neighbour { name: (*name).to_owned(), slowed: by.map(By::from) })
                .collect(),
        }
    }

    fn report(programs: Vec<Program>) -> Report {
        Report {
            elapsed_s: 10.0,
            cpus: 8,
            cache_domains: 1,
            stretches: 1000,
            lost: 0,
            cost_percent: Some(0.02),
            partial: false,
            programs,
        }
    }

    #[test]
    fn only_what_is_sure_is_blamed() {
        let slowing = |percent, error| Some(Slowing { percent, error });
        let all = report(vec![program(&[("backup", slowing(12.0, 1.0)), ("make", slowing(3.0, 2.0))])]);
        let text = all.text(None, false);
        assert!(text.contains("backup 12.0 % ±1.0") && !text.contains("make"), "{text}");
        assert!(text.ends_with("backup slows nginx most: by 12.0 % ±1.0. Nothing was changed.\n"), "{text}");
        let unsure = report(vec![program(&[("make", slowing(3.0, 2.0))])]).text(None, false);
        assert!(unsure.contains("nobody for sure") && unsure.contains("--for 1m"), "{unsure}");
        let alone = report(vec![program(&[])]).text(None, false);
        assert!(alone.contains("no neighbour missed"), "{alone}");
        assert!(report(Vec::new()).text(Some("nginx"), false).contains("Nothing was counted of nginx"));
    }

    #[test]
    fn what_cannot_be_told_is_null_in_json() {
        let json = serde_json::to_value(report(vec![program(&[("make", None)])])).unwrap();
        assert_eq!(json["programs"][0]["slowed"], serde_json::Value::Null);
        assert_eq!(json["programs"][0]["by"][0], serde_json::json!({ "name": "make" }));
    }
}
