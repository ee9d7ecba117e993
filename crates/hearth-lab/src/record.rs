//! `hearth record`: the memory references of a real program.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use hearth_command::failure::{Failure, Outcome};
use hearth_command::output;
use hearth_report::format;
use hearth_trace::{Backend, RecordError, RecordOptions, Summary};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

pub const EXAMPLES: &str = "\
Examples:
  hearth record -o sort.trace -- sort /etc/services
  hearth compare --trace sort.trace --copies 8";

#[derive(Debug, Args)]
pub struct Arguments {
    /// The trace to write; it appears when the recording is complete
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace FILE even if it is no trace
    #[arg(short, long)]
    force: bool,
    /// Which tool observes the program
    #[arg(long, value_enum, default_value_t = Tool::Auto)]
    tool: Tool,
    /// End the program after so many million data references
    #[arg(long, value_name = "MILLIONS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: Option<u64>,
    /// Print a summary as JSON, on the last line of the output, after the program's own
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Tool {
    /// qemu-user where one loads the recorder's plugin, or else valgrind
    Auto,
    /// qemu-user: fast, keeps threads apart
    Qemu,
    /// valgrind's lackey: slow, all threads appear as one
    Lackey,
}

pub fn run(arguments: &Arguments) -> Outcome {
    output::check_writable(&arguments.output)?;
    let interrupt = hearth_trace::interrupt_on_signals().map_err(Failure::failed)?;
    let mut options = RecordOptions::new(&arguments.output);
    options.force = arguments.force;
    options.backend = match arguments.tool {
        Tool::Auto => Backend::Auto,
        Tool::Qemu => Backend::Qemu,
        Tool::Lackey => Backend::Lackey,
    };
    options.max_references = arguments.limit.map(|millions| millions * 1_000_000);
    options.interrupt = interrupt.clone();
    options.started = Some(announce);
    let counter = counter();
    let shown = counter.clone();
    options.progress = Some(Box::new(move |references| shown.set_position(references)));
    let recorded = hearth_trace::record(&arguments.command, options);
    counter.finish_and_clear();
    report(arguments, &recorded.map_err(refusal)?)?;
    if interrupt.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Says which tool records, and why it is a slow one.
fn announce(tool: &hearth_trace::Tool) {
    let (name, path) = (&tool.name, tool.path.display());
    match &tool.slower_because {
        None => anstream::eprintln!("recording with {name}: {path}"),
        Some(why) => anstream::eprintln!("recording slowly, with {name}: {path}, because {why}"),
    }
}

/// Counts references on a terminal, unless the program itself writes there.
fn counter() -> ProgressBar {
    if !std::io::stderr().is_terminal() || output::to_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("recording: {human_pos} data references, {elapsed}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn refusal(error: RecordError) -> Failure {
    match error {
        RecordError::NoCommand
        | RecordError::NotOurs { .. }
        | RecordError::NotFound(_)
        | RecordError::NotExecutable { .. }
        | RecordError::Script { .. }
        | RecordError::NotX86 { .. } => Failure::input(error),
        error => Failure::Failed(anyhow!(error)),
    }
}

fn report(arguments: &Arguments, summary: &Summary) -> Outcome {
    for note in &summary.info.notes {
        anstream::eprintln!("note: {note}");
    }
    if arguments.json {
        return print_json(arguments, summary);
    }
    let threads = summary.info.threads.len();
    let text = format!(
        "{}: {} M data references of {threads} thread{}, {} MB, recorded in {:.1} s\n",
        arguments.output.display(),
        format::millions(summary.info.total.references() as f64),
        if threads == 1 { "" } else { "s" },
        format::significant(summary.bytes as f64 / 1e6),
        summary.wall.as_secs_f64(),
    );
    // Standard output belongs to the program.
    anstream::eprint!("{text}");
    Ok(())
}

fn print_json(arguments: &Arguments, summary: &Summary) -> Outcome {
    let line = json!({
        "schema": output::SCHEMA,
        "path": arguments.output,
        "tool": summary.tool.name,
        "tool_path": summary.tool.path,
        "bytes": summary.bytes,
        "wall_s": summary.wall.as_secs_f64(),
        "threads": summary.info.threads.len(),
        "data_references": summary.info.total.references(),
        "notes": summary.info.notes,
    });
    output::print(&format!("{line}\n"))
}
