//! One guest with one scheduler: its script, and the figures in its output.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hearth_guest::{Guest, Kernel, Output, Shape};

use crate::bench::Bench;

const LIMIT: Duration = Duration::from_secs(590);
const LOG_LINES: usize = 20;

/// The size of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus(Shape);

impl Cpus {
    pub fn count(self) -> usize {
        self.0.cpus()
    }
}

pub fn shape(text: &str) -> Result<Cpus> {
    match text {
        "8" => Ok(Cpus(Shape::SMALL)),
        "64" => Ok(Cpus(Shape::LARGE)),
        _ => bail!("guests have 8 or 64 CPUs, not {text}"),
    }
}

/// What schedules a guest.
#[derive(Debug, Clone)]
pub enum Scheduler {
    /// The kernel itself.
    Kernel { cache_aware: bool },
    /// A program that loads a sched_ext scheduler and stays.
    Program {
        name: String,
        path: String,
        arguments: String,
        /// In so many parts the masks of sleeping tasks divide the machine; 1: not at all.
        parts: usize,
    },
}

impl Scheduler {
    pub fn hearth(path: &str, arguments: &str, parts: usize) -> Self {
        let divided = if parts > 1 { format!(", {parts} parts") } else { String::new() };
        let name = format!("hearth {arguments}").trim().to_owned() + &divided;
        Self::Program {
            name,
            path: path.to_owned(),
            arguments: format!("start --foreground --pages none {arguments}"),
            parts,
        }
    }
}

impl FromStr for Scheduler {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text.split_once('=').context("a scheduler is NAME=COMMAND")?;
        let (path, arguments) = command.split_once(' ').unwrap_or((command, ""));
        if name.is_empty() || path.is_empty() {
            bail!("a scheduler is NAME=COMMAND, not {text:?}");
        }
        Ok(Self::Program {
            name: name.to_owned(),
            path: path.to_owned(),
            arguments: arguments.to_owned(),
            parts: 1,
        })
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel { cache_aware: false } => out.write_str("kernel"),
            Self::Kernel { cache_aware: true } => out.write_str("kernel, cache-aware"),
            Self::Program { name, .. } => out.write_str(name),
        }
    }
}

/// What one guest measured.
#[derive(Debug)]
pub struct Figures {
    pub scheduler: String,
    pub cpus: Cpus,
    pub values: BTreeMap<Bench, f64>,
    pub start: Option<Duration>,
    pub resident_kib: Option<u64>,
    /// Why figures are missing or not to be trusted.
    pub trouble: Option<String>,
}

/// Never fails: what went wrong is in the figures' `trouble`.
pub fn measure(cpus: Cpus, scheduler: &Scheduler, benches: &[Bench], config: Option<&Path>) -> Figures {
    let mut figures = Figures {
        scheduler: scheduler.to_string(),
        cpus,
        values: BTreeMap::new(),
        start: None,
        resident_kib: None,
        trouble: None,
    };
    let filled =
        boot(cpus, scheduler, benches, config).and_then(|output| figures.fill(&output, scheduler, benches));
    figures.trouble = filled.err().map(|error| format!("{error:#}"));
    figures
}

fn boot(cpus: Cpus, scheduler: &Scheduler, benches: &[Bench], config: Option<&Path>) -> Result<Output> {
    let mut guest = Guest::new(Kernel::Pinned).shape(cpus.0).limit(LIMIT);
    if let Scheduler::Program { path, .. } = scheduler {
        guest = guest.program(path, "/bin/scheduler", &[])?;
    }
    if let Some(config) = config {
        guest = guest.file(config, "/boot/config");
    }
    Ok(guest.run(&script(cpus, scheduler, benches))?)
}

fn script(cpus: Cpus, scheduler: &Scheduler, benches: &[Bench]) -> String {
    let mut script = "[ -e /boot/config ] && ln -s config /boot/config-$(uname -r)\n".to_owned();
    let commands: String = benches.iter().map(|bench| bench.command(cpus.count()) + "\n").collect();
    let measure = format!("section bench\n{commands}");
    match scheduler {
        Scheduler::Kernel { cache_aware } => {
            let knob = "/sys/kernel/debug/sched/llc_balancing/enabled";
            let _ = writeln!(script, "[ -e {knob} ] && echo {} > {knob}", u8::from(*cache_aware));
            script += &measure;
        }
        Scheduler::Program { arguments, parts, .. } => {
            let divide = divide(cpus.count(), *parts);
            let _ = write!(
                script,
                "section start\nbench start /tmp/log /bin/scheduler {arguments} >/tmp/start\n\
                 cat /tmp/start\nsleep 4\npid=$(sed 's/start=//;s/ .*//' /tmp/start)\n{divide}\
                 {measure}section memory\nbench memory $pid\nkill -INT $pid\n\
                 section log\ncat /tmp/log\ndmesg | grep sched_ext\n"
            );
        }
    }
    script
}

/// Has the masks of tasks divide the machine: such as spin until the masks count, and such as stay, and sleep.
fn divide(cpus: usize, parts: usize) -> String {
    if parts <= 1 {
        return String::new();
    }
    let each = cpus / parts;
    let sets = (0..parts).map(|part| format!("{}-{}", part * each, (part + 1) * each - 1));
    let tasks: String = sets
        .map(|set| format!("taskset -c {set} sleep 10000 &\ntasks spin 60000 0,0,0 {set} >/dev/null &\n"))
        .collect();
    let divided = format!("/bin/scheduler status | grep -q ': {parts} parts'");
    format!(
        "{tasks}for try in $(seq 100); do {divided} && break; usleep 100000; done\nkillall tasks\nsleep 1\n\
         {divided} || echo not divided >>/tmp/log\n"
    )
}

impl Figures {
    fn fill(&mut self, output: &Output, scheduler: &Scheduler, benches: &[Bench]) -> Result<()> {
        let wanted = match scheduler {
            Scheduler::Kernel { .. } => "disabled",
            Scheduler::Program { .. } => {
                self.fill_start(output)?;
                "enabled"
            }
        };
        let section = output.section("bench")?;
        for bench in benches {
            let record = section.record("bench", bench.name())?;
            if record.text("state") != Some(wanted) {
                bail!("the scheduler was thrown out during {}:\n{}", bench.name(), log(output));
            }
            self.values.insert(*bench, record.get(bench.key())?);
        }
        if log(output).contains("not divided") {
            bail!("the machine was not divided:\n{}", log(output));
        }
        if let Some(line) = output.kernel_trouble().first() {
            bail!("the kernel complained: {line}");
        }
        Ok(())
    }

    fn fill_start(&mut self, output: &Output) -> Result<()> {
        let records = output.section("start")?.records();
        let start = records.first().context("no word of how the scheduler started")?;
        if start.text("start") == Some("failed") {
            return Err(anyhow!("it did not start:\n{}", log(output)));
        }
        self.start = Some(Duration::from_micros(start.get("after_us")?));
        let memory = output.section("memory")?.records();
        let memory = memory.first().with_context(|| format!("it was gone at the end:\n{}", log(output)))?;
        self.resident_kib = Some(memory.get("resident_kib")?);
        Ok(())
    }
}

fn log(output: &Output) -> String {
    let lines = output.section("log").map(|section| section.lines.as_slice()).unwrap_or_default();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
