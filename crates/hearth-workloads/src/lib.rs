//! Programs that the simulated machine runs.
//!
//! Five programs stand for those of Torrellas, Tucker and Gupta, "Evaluating the Performance of
//! Cache-Affinity Scheduling in Shared-Memory Multiprocessors" (JPDC 1995), table I. Three do their
//! real algorithm ([`matrix`], [`cholesky`], [`mp3d`]), as does the database [`oltp`] with its trees,
//! locks and log; what cannot be had (the insides of a compiler and of a commercial database) is
//! synthetic, and says what it stands for.
//!
//! Each program's named constants are the only things that were tuned, against that paper's
//! description of the applications (sections 2 and 3) and nothing else; `examples/characterize.rs`
//! prints the description of ours.

pub mod cholesky;
pub mod matrix;
mod mix;
pub mod mp3d;
pub mod oltp;
pub mod pmake;
mod replay;
pub mod spin;

use hearth_sim::memory::Memory;
use hearth_sim::program::Application;
use thiserror::Error;

pub use mix::{Part, build_mix, mix};
pub use replay::replay;

/// Says, after the run, whether the program's result is right, and if not what is wrong with it.
pub type Check = Box<dyn Fn() -> Result<(), String>>;

/// A program that is ready to run.
pub struct Built {
    /// Its tasks.
    pub application: Application,
    /// To be asked when the run is over.
    pub check: Check,
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

/// Why there is no program to run.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WorkloadError {
    /// No program of this name.
    #[error("no program is called \"{name}\"; choose from {}, and join several by +", names().join(", "))]
    UnknownProgram {
        /// As given.
        name: String,
    },
    /// The scale is not in (0, 1].
    #[error("a scale of {scale} cannot be run; give one above 0 and up to 1 (the paper's size)")]
    BadScale {
        /// As given.
        scale: f64,
    },
}

type Builder = fn(&Memory, f64, u64) -> Built;

const PROGRAMS: [(Description, Builder); 6] = [
    (matrix::DESCRIPTION, matrix::build),
    (cholesky::DESCRIPTION, cholesky::build),
    (mp3d::DESCRIPTION, mp3d::build),
    (pmake::DESCRIPTION, pmake::build),
    (oltp::DESCRIPTION, oltp::build),
    (spin::DESCRIPTION, spin::build),
];

const DESCRIPTIONS: [Description; 6] =
    [PROGRAMS[0].0, PROGRAMS[1].0, PROGRAMS[2].0, PROGRAMS[3].0, PROGRAMS[4].0, PROGRAMS[5].0];

/// All programs.
pub fn list() -> &'static [Description] {
    &DESCRIPTIONS
}

fn names() -> Vec<&'static str> {
    DESCRIPTIONS.iter().map(|program| program.name).collect()
}

fn builder(name: &str) -> Result<Builder, WorkloadError> {
    let found = PROGRAMS.iter().find(|(description, _)| description.name == name);
    let (_, build) = found.ok_or_else(|| WorkloadError::UnknownProgram { name: name.into() })?;
    Ok(*build)
}

/// Sets a program up in `memory`. At `scale` 1 it has the paper's size; a smaller scale shortens the
/// run but keeps the working sets. The same `seed` builds the same program.
///
/// # Errors
/// [`WorkloadError`] if there is no such program, or the scale is not in (0, 1].
pub fn build(name: &str, memory: &Memory, scale: f64, seed: u64) -> Result<Built, WorkloadError> {
    let build = builder(name)?;
    if !(scale > 0.0 && scale <= 1.0) {
        return Err(WorkloadError::BadScale { scale });
    }
    Ok(build(memory, scale, seed))
}

/// `count` at scale 1, shortened to `scale`: at least one.
fn scaled(count: usize, scale: f64) -> usize {
    ((count as f64 * scale).round() as usize).max(1)
}
