//! `hearth cpus`: how many CPUs a program can get now, and why not more.

use super::{no_process, require_process};
use crate::values;
use clap::Args;
use comfy_table::Cell;
use hearth_command::failure::Outcome;
use hearth_command::output::{self, shown};
use hearth_command::table::{number, table};
use hearth_share::view::{self, Program, View};

pub const EXAMPLES: &str = "\
Examples:
  hearth cpus              all programs that follow the number
  hearth cpus 4242         one program, whether it follows or not
  hearth cpus 4242 --json  the same for scripts";

#[derive(Debug, Args)]
pub struct Arguments {
    /// The process; all that follow if none is named
    #[arg(value_parser = values::pid)]
    pid: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Outcome {
    arguments.pid.map_or(Ok(()), require_process)?;
    let mut view = view::look(arguments.pid);
    if let Some(pid) = arguments.pid {
        let Some(program) = view.programs.iter().find(|program| program.pid == pid) else {
            return Err(no_process(pid));
        };
        let text = sentences(&view, program);
        view.programs.retain(|program| program.pid == pid);
        return if arguments.json { output::print_json(&view) } else { output::print(&text) };
    }
    if arguments.json { output::print_json(&view) } else { output::print(&summary(&view)) }
}

fn summary(view: &View) -> String {
    let others = format!(
        "This machine has {}; what follows nobody uses {:.1}",
        count(view.cpus, "CPU"),
        view.others_use
    );
    if view.programs.is_empty() {
        return format!("{others}\nNo program follows; hearth cpus PID says what one could get\n");
    }
    let mut table = table(&["pid", "program", "CPUs", "why no more", "follows by"], 2);
    for program in &view.programs {
        table.add_row(vec![
            Cell::new(program.pid),
            Cell::new(shown(&program.name)),
            number(program.cpus.to_string()),
            number(reason(program).to_owned()),
            number(follows(program)),
        ]);
    }
    format!("{others}\n{table}\n")
}

fn sentences(view: &View, program: &Program) -> String {
    let mut text = format!(
        "{} ({}) can get {} of this machine's {} (exactly {:.2}): {}\n",
        shown(&program.name),
        program.pid,
        program.cpus,
        view.cpus,
        program.share,
        reason(program),
    );
    text += &format!("  it may run on {}", count(program.mask, "CPU"));
    text += &match program.quota {
        Some(quota) => format!(", with a quota of {quota:.2}"),
        None => ", without a quota".to_owned(),
    };
    if view.hides_quotas {
        text += " (control groups above this namespace's may have less, which cannot be seen from here)";
    }
    text += &program.want.map_or("\n".into(), |want| format!(", and would use {want} at most\n"));
    let followers = view.programs.iter().filter(|other| other.follows && other.pid != program.pid).count();
    text += &format!(
        "  beside it {} use {:.1}, and {} the number\n",
        "programs that follow nobody",
        view.others_use,
        if followers == 1 { "1 other follows".to_owned() } else { format!("{followers} others follow") }
    );
    text + "  " + &told(program) + "\n"
}

fn told(program: &Program) -> String {
    match (program.follows, program.told) {
        (false, _) => {
            "it does not know: it follows nobody; hearth exec -- COMMAND starts one that does".into()
        }
        (true, _) if program.hands_off != 0 => "it is left alone: see hearth exec".into(),
        (true, true) => format!("it has been told, and follows by {}", follows(program)),
        (true, false) => "nobody tells it: neither hearth exec nor a daemon runs".into(),
    }
}

fn follows(program: &Program) -> String {
    match (program.hands_off, program.runtimes.as_slice()) {
        (1.., _) => "not: hands off".into(),
        (_, []) => "asking".into(),
        (_, runtimes) => runtimes.join(", "),
    }
}

fn reason(program: &Program) -> &'static str {
    match program.why {
        "want" => "it wants no more",
        "quota" => "its quota, or that of a cgroup above it",
        "mask" => "the CPUs that it may run on",
        "share" => "others want CPUs too",
        _ => "the machine has no more",
    }
}

fn count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
