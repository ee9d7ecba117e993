//! Programs that the simulated machine runs.
//!
//! Five programs stand for those of Torrellas, Tucker and Gupta, "Evaluating the Performance of
//! Cache-Affinity Scheduling in Shared-Memory Multiprocessors" (JPDC 1995), table I. Three do their
//! real algorithm ([`matrix`], [`cholesky`], [`mp3d`]), as does the database [`oltp`] with its trees,
//! locks and log; what cannot be had (the insides of a compiler and of a commercial database) is
//! synthetic, and says what it stands for.
//!
//! Others stand for those of Chandra, Devine, Verghese, Gupta and Rosenblum, "Scheduling and Page
//! Migration for Multiprocessor Compute Servers" (ASPLOS 1994), table 1: [`ocean`], [`water`],
//! [`locus`], [`panel`], [`radiosity`], [`editor`], and the sequential
//! `mp3d-serial` and the smaller `pmake-4`. They are tuned to the stand-alone times and sizes of that
//! table, which `examples/stand-alone.rs` prints. Those whose names have `-cool` in them are its parallel
//! programs, which do tasks ([`cool`]).
//!
//! [`custom`], [`chat`] and [`hack`] are the benchmarks of "Thread Scheduling Based on Data Affinity", section 5.
//! They declare their data fragments, which counts where the policy has the credit `fragment`.
//!
//! [`spec`] has programs that stand for those of SPEC CPU2000, each by the misses that were measured on it.
//!
//! [`tpcc`] and [`jbb`] stand for the database programs of the same paper, and [`speech`] for its speech recognizer.
//!
//! [`daemons`] has no end: it stands for what a system does by itself beside the others.
//!
//! Each program's named constants are the only things that were tuned, against the papers'
//! descriptions of the applications and nothing else; for the first paper `examples/characterize.rs`
//! prints the description of ours.

mod calls;
pub mod chat;
pub mod cholesky;
pub mod cool;
pub mod custom;
mod daemons;
pub mod editor;
mod filled;
pub mod hack;
pub mod jbb;
pub mod locus;
pub mod matrix;
mod messages;
mod mix;
pub mod mp3d;
pub mod ocean;
pub mod oltp;
mod order_entry;
pub mod panel;
mod parameters;
pub mod pmake;
mod r3000;
pub mod radiosity;
mod replay;
pub mod spec;
pub mod speech;
pub mod spin;
mod staggered;
mod start;
mod streams;
pub mod tpcc;
#[cfg(test)]
mod trial;
pub mod water;

use cool::Invocation;
use hearth_sim::memory::Memory;
use hearth_sim::program::Application;
use parameters::Numbers;
use thiserror::Error;

pub use mix::{Part, build_mix, check_cpus, check_end, mix, seed_of_place};
pub use parameters::Parameter;
pub use replay::replay;
pub use staggered::{LATER, Staggered, StaggeredJob, is_staggered};

/// Says, after the run, whether the program's result is right, and if not what is wrong with it.
pub type Check = Box<dyn Fn() -> Result<(), String>>;

/// A program that is ready to run.
pub struct Built {
    /// Its tasks, as they are measured: mostly one application.
    pub applications: Vec<Application>,
    /// To be asked when the run is over.
    pub check: Check,
}

impl Built {
    /// A program of one application.
    pub fn new(application: Application, check: impl Fn() -> Result<(), String> + 'static) -> Self {
        Self { applications: vec![application], check: Box::new(check) }
    }
}

/// How much of a program is the real thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The algorithm itself: its references are those that the computation makes.
    Real,
    /// Stands for a program that cannot be had; some of its references are drawn at random.
    Synthetic,
}

/// What there is to know about a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name as given on the command line.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// How real it is.
    pub kind: Kind,
    /// Where the program and its parameters come from.
    pub source: &'static str,
}

impl Description {
    /// The program of this name, whether or not numbers are given with it.
    pub fn of(name: &str) -> Option<&'static Description> {
        let program = name.split_once(':').map_or(name, |(program, _)| program);
        DESCRIPTIONS.iter().find(|description| description.name == program)
    }

    /// The numbers that may be given with its name.
    pub fn parameters(&self) -> &'static [Parameter] {
        builder(self.name).map_or(&[], Builder::parameters)
    }
}

/// Why there is no program to run.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// No program of this name.
    #[error("no program is called \"{name}\"; choose from {}, and join several by +", names().join(", "))]
    UnknownProgram {
        /// As given.
        name: String,
    },
    /// The text of a staggered workload is wrong.
    #[error(transparent)]
    Text(#[from] hearth_machine::located::LocatedError),
    /// The file of a staggered workload cannot be read.
    #[error(transparent)]
    Unreadable(#[from] hearth_machine::located::UnreadableError),
    /// A program may run on no CPU of the machine.
    #[error("{name} has none of the machine's {cpus} CPUs; name a larger machine, or other `cpus`")]
    NoCpu {
        /// The program.
        name: String,
        /// How many CPUs there are.
        cpus: usize,
    },
    /// A program does not do tasks, and so cannot be told how many processes to start, and where.
    #[error("{name} is no task-parallel program; choose one whose name has -cool in it")]
    NoTasks {
        /// As given.
        name: String,
    },
    /// A program comes to its end, and cannot run in the background.
    #[error("{name} comes to its end; choose one that can run without: {}", endless_names().join(", "))]
    Ends {
        /// As given.
        name: String,
    },
    /// No program of a workload comes to its end.
    #[error("no program of \"{mix}\" comes to its end; add one that does, or say how long one is")]
    NoEnd {
        /// As given.
        mix: String,
    },
    /// A number given with the program's name is none that it has, or out of range.
    #[error("{program}: {what}; {mend}")]
    BadParameter {
        /// The program.
        program: String,
        /// What is wrong.
        what: String,
        /// What to give instead.
        mend: String,
    },
    /// The scale is not in (0, 1].
    #[error("a scale of {scale} cannot be run; give one above 0 and up to 1 (the paper's size)")]
    BadScale {
        /// As given.
        scale: f64,
    },
}

/// How a program is set up.
#[derive(Clone, Copy)]
enum Builder {
    Plain(fn(&Memory, f64, u64) -> Built),
    /// One that only runs beside others.
    Endless(fn(&Memory, f64, u64) -> Built),
    /// A task-parallel one, which can be started in many ways.
    Tasks(fn(&Memory, f64, u64, &Invocation) -> Built),
    /// One whose size is given with its name.
    Sized(fn(&Memory, f64, u64, &Numbers) -> Built, &'static [Parameter]),
    /// One that is given by its misses.
    Spec(&'static spec::Program),
}

impl Builder {
    fn parameters(self) -> &'static [Parameter] {
        match self {
            Sized(_, parameters) => parameters,
            Spec(_) => spec::PARAMETERS,
            Plain(_) | Endless(_) | Tasks(_) => &[],
        }
    }
}

use Builder::{Endless, Plain, Sized, Spec, Tasks};

const PROGRAMS: [(Description, Builder); 40] = [
    (matrix::DESCRIPTION, Plain(matrix::build)),
    (cholesky::DESCRIPTION, Plain(cholesky::build)),
    (mp3d::DESCRIPTION, Plain(mp3d::build)),
    (pmake::DESCRIPTION, Plain(pmake::build)),
    (oltp::DESCRIPTION, Plain(oltp::build)),
    (mp3d::DESCRIPTION_SERIAL, Plain(mp3d::build_serial)),
    (ocean::DESCRIPTION, Plain(ocean::build)),
    (water::DESCRIPTION, Plain(water::build)),
    (locus::DESCRIPTION, Plain(locus::build)),
    (panel::DESCRIPTION, Plain(panel::build)),
    (pmake::DESCRIPTION_4, Plain(pmake::build_4)),
    (radiosity::DESCRIPTION, Plain(radiosity::build)),
    (editor::DESCRIPTION, Plain(editor::build)),
    (ocean::DESCRIPTION_8, Plain(ocean::build_8)),
    (panel::DESCRIPTION_8, Plain(panel::build_8)),
    (water::DESCRIPTION_512, Tasks(water::build_512)),
    (water::DESCRIPTION_343, Tasks(water::build_343)),
    (ocean::DESCRIPTION_192, Tasks(ocean::build_192)),
    (ocean::DESCRIPTION_146, Tasks(ocean::build_146)),
    (ocean::DESCRIPTION_130, Tasks(ocean::build_130)),
    (locus::DESCRIPTION_COOL, Tasks(locus::build_cool)),
    (panel::DESCRIPTION_29, Tasks(panel::build_29)),
    (panel::DESCRIPTION_17, Tasks(panel::build_17)),
    (custom::DESCRIPTION, Sized(custom::build, custom::PARAMETERS)),
    (chat::DESCRIPTION, Sized(chat::build, chat::PARAMETERS)),
    (hack::DESCRIPTION, Sized(hack::build, hack::PARAMETERS)),
    (spin::DESCRIPTION, Plain(spin::build)),
    (daemons::DESCRIPTION, Endless(daemons::build)),
    (spec::programs::ART.description, Spec(&spec::programs::ART)),
    (spec::programs::CRAFTY.description, Spec(&spec::programs::CRAFTY)),
    (spec::programs::GCC.description, Spec(&spec::programs::GCC)),
    (spec::programs::GZIP.description, Spec(&spec::programs::GZIP)),
    (spec::programs::MCF.description, Spec(&spec::programs::MCF)),
    (spec::programs::PARSER.description, Spec(&spec::programs::PARSER)),
    (spec::programs::TWOLF.description, Spec(&spec::programs::TWOLF)),
    (spec::programs::VORTEX.description, Spec(&spec::programs::VORTEX)),
    (spec::programs::VPR.description, Spec(&spec::programs::VPR)),
    (tpcc::DESCRIPTION, Sized(tpcc::build, tpcc::PARAMETERS)),
    (jbb::DESCRIPTION, Sized(jbb::build, jbb::PARAMETERS)),
    (speech::DESCRIPTION, Sized(speech::build, speech::PARAMETERS)),
];

const DESCRIPTIONS: [Description; PROGRAMS.len()] = {
    let mut descriptions = [spin::DESCRIPTION; PROGRAMS.len()];
    let mut at = 0;
    while at < PROGRAMS.len() {
        descriptions[at] = PROGRAMS[at].0;
        at += 1;
    }
    descriptions
};

/// All programs.
pub fn list() -> &'static [Description] {
    &DESCRIPTIONS
}

fn names() -> Vec<&'static str> {
    DESCRIPTIONS.iter().map(|program| program.name).collect()
}

fn endless_names() -> Vec<&'static str> {
    let is_endless = |program: &&Description| endless(program.name).is_ok();
    DESCRIPTIONS.iter().filter(is_endless).map(|program| program.name).collect()
}

/// How the program of a name is set up, and the numbers that are given with the name.
fn named(name: &str) -> Result<(Builder, Numbers), WorkloadError> {
    let (program, numbers) = name.split_once(':').unwrap_or((name, ""));
    let builder = builder(program)?;
    Ok((builder, Numbers::read(program, builder.parameters(), numbers)?))
}

fn builder(program: &str) -> Result<Builder, WorkloadError> {
    let found = PROGRAMS.iter().find(|(description, _)| description.name == program);
    let (_, build) = found.ok_or_else(|| WorkloadError::UnknownProgram { name: program.into() })?;
    Ok(*build)
}

/// Sets a program up in `memory`. At `scale` 1 it has the paper's size; a smaller scale shortens the
/// run but keeps the working sets. The same `seed` builds the same program.
///
/// # Errors
/// [`WorkloadError`] if there is no such program, or the scale is not in (0, 1].
pub fn build(name: &str, memory: &Memory, scale: f64, seed: u64) -> Result<Built, WorkloadError> {
    build_with(name, memory, scale, seed, &Invocation::default())
}

/// Parameters that say how long a program runs; with 0 it has no end.
const LENGTHS: [&str; 3] = ["millions", "transactions", "frames"];

/// The name of a program that goes on until the run is over, with what else is given with the name.
///
/// # Errors
/// [`WorkloadError::UnknownProgram`], numbers that it does not have, and [`WorkloadError::Ends`] if it always comes to
/// an end.
pub fn endless(name: &str) -> Result<String, WorkloadError> {
    let (builder, _) = named(name)?;
    if matches!(builder, Endless(_)) {
        return Ok(name.into());
    }
    let names = || builder.parameters().iter().map(|parameter| parameter.name);
    let length = LENGTHS.into_iter().find(|length| names().any(|name| name == *length));
    let length = length.ok_or_else(|| WorkloadError::Ends { name: name.into() })?;
    Ok(format!("{name}{}{length}=0", if name.contains(':') { "," } else { ":" }))
}

/// The same for a task-parallel program that is started in some way.
///
/// # Errors
/// As [`build`], and [`WorkloadError::NoTasks`] if the program is of another kind.
pub fn build_invoked(
    name: &str,
    memory: &Memory,
    scale: f64,
    seed: u64,
    invocation: &Invocation,
) -> Result<Built, WorkloadError> {
    match builder(name)? {
        Plain(_) | Endless(_) | Sized(..) | Spec(_) => Err(WorkloadError::NoTasks { name: name.into() }),
        Tasks(_) => build_with(name, memory, scale, seed, invocation),
    }
}

fn build_with(
    name: &str,
    memory: &Memory,
    scale: f64,
    seed: u64,
    invocation: &Invocation,
) -> Result<Built, WorkloadError> {
    let (builder, numbers) = named(name)?;
    if !(scale > 0.0 && scale <= 1.0) {
        return Err(WorkloadError::BadScale { scale });
    }
    Ok(match builder {
        Plain(build) | Endless(build) => build(memory, scale, seed),
        Tasks(build) => build(memory, scale, seed, invocation),
        Sized(build, _) => build(memory, scale, seed, &numbers),
        Spec(program) => spec::build(program, memory, scale, seed, &numbers),
    })
}

/// `count` at scale 1, shortened to `scale`: at least one.
fn scaled(count: usize, scale: f64) -> usize {
    ((count as f64 * scale).round() as usize).max(1)
}

/// The same for a count that may be 0, for a program that never ends by itself: nothing.
fn scaled_unless_endless(count: usize, scale: f64) -> Option<u64> {
    (count > 0).then(|| scaled(count, scale) as u64)
}
