//! One command on one machine: what every run of it has in common, and a run.

use crate::counts::Region;
use crate::kept::{Kept, Slot};
use crate::script::{self, Work};
use crate::{EmulateError, Files, Job, Outcome, Scheduler, plugin, topology};
use hearth_guest::{Guest, GuestError, Kernel, Mode};
use hearth_machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What keeps the boot short and the same: no self-tests, CPUs one after the other and at once.
const QUICK_BOOT: &str = "cpuhp.parallel=0 cpu_init_udelay=0";

/// Memory of the guest's own, and for each copy of a command.
const KERNEL_MIB: u64 = 1024;
const COPY_MIB: u64 = 96;
/// Guests with as much memory begin with the same booted guest's state, so sizes are few.
const STEP_MIB: u64 = 512;
/// Of a node's memory, an eighth is put in another order, and no more than this.
const SHUFFLED: usize = 8;
const MOST_SHUFFLED_MIB: usize = 32;
/// A file is in memory as part of the image and unpacked, is written once more to other pages, and something is
/// written of it.
const FILES_FACTOR: u64 = 5;
const MIB: u64 = 1 << 20;

/// A command to emulate.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The machine whose caches are simulated, and whose shape the guest has.
    pub machine: Machine,
    /// The command and its arguments; its first word is the program's place in the guest.
    pub command: Vec<String>,
    /// What a shell of the guest runs before it in each round, under the same scheduler and uncounted. What that leaves
    /// running ends after the command.
    pub before: Option<String>,
    /// What it needs.
    pub files: Files,
    /// Hearth itself, where it schedules.
    pub hearth: PathBuf,
    /// Where it runs.
    pub folder: PathBuf,
    /// Where it finds programs.
    pub path: String,
    /// How many run at once.
    pub copies: usize,
    /// Whether the caches are as a run of the command leaves them; else they are cold.
    pub is_warm: bool,
    /// Whether what the CPUs do drives the guest's clock; else it counts their instructions.
    pub is_timed: bool,
    /// The guest's memory; nothing for as much as the files make likely.
    pub memory_mib: Option<usize>,
    /// When a guest is killed, in time of the host, for each round that it has.
    pub limit: Duration,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scheduler's name.
    pub scheduler: String,
    /// The seed.
    pub seed: u64,
    /// The round, from 1, of those of its guest.
    pub round: u32,
    /// Picoseconds of a cycle of the machine.
    pub cycle_ps: u64,
    /// Which page frames the command's files are on, as a checksum.
    pub frames: String,
    /// The last lines that another scheduler printed, and the kernel of it; none of the kernel's own and Hearth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scheduler_said: Vec<String>,
    /// What the command measured itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, f64>,
    /// What was counted while the command ran.
    pub region: Region,
}

impl Emulation {
    /// Checks what can be checked before anything runs: that the machine can be told, and that QEMU,
    /// a kernel and the plugin are there.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&self) -> Result<(), EmulateError> {
        topology::shape(&self.machine)?;
        plugin::library()?;
        hearth_guest::ready(Kernel::Pinned).map_err(EmulateError::NotReady)
    }

    /// Runs the command in a guest in each round of a job, and returns what was counted. Whatever happens, the guest has
    /// ended then. What lies in `kept` is not run.
    ///
    /// # Errors
    /// A guest that does not end well, or that was stopped. A command or a scheduler that does not is an error of its
    /// round.
    pub fn run(&self, job: &Job, kept: Option<&Kept>, stop: &AtomicBool) -> Outcome {
        let name = job.scheduler.name();
        let folder = tempfile::Builder::new().prefix("hearth-emulate-").tempdir();
        let folder = folder.map_err(|error| EmulateError::File { path: std::env::temp_dir(), error })?;
        let out = folder.path().join("counts.json");
        let guest = self.guest(job, folder.path(), &out)?;
        let work = Work {
            command: &self.command,
            before: self.before.as_deref(),
            folder: &self.folder,
            path: &self.path,
            copies: self.copies,
            is_warm: self.is_warm,
            shuffled_mib: self.shuffled_mib(),
        };
        let script = script::text(&work, job);
        let slot = kept.map(|kept| Ok(kept.slot(guest.digest(&script)?, &self.machine, self.is_timed)));
        let slot = slot.transpose().map_err(|error| self.trouble(&name, error))?;
        if let Some(runs) = slot.as_ref().and_then(Slot::runs) {
            let named = |run| Ok(Run { scheduler: name.clone(), ..run });
            return Ok(runs.into_iter().map(named).collect());
        }
        let output = guest.run_unless(&script, stop).map_err(|error| self.trouble(&name, error))?;
        let counts = plugin::read(&out);
        let of_round = |round: u32| {
            let scheduler = job.scheduler.name();
            let said = script::check(&output, &work, &job.scheduler, round)?;
            let counted = |(cycle_ps, regions): &(u64, Vec<Region>)| {
                Ok((*cycle_ps, plugin::region(regions, &script::region(round))?))
            };
            let (cycle_ps, region) = counts
                .as_ref()
                .map_err(Clone::clone)
                .and_then(counted)
                .map_err(|what| EmulateError::Counts { scheduler: scheduler.clone(), what })?;
            Ok(Run {
                scheduler,
                seed: job.seed,
                round,
                cycle_ps,
                frames: said.frames,
                scheduler_said: said.scheduler,
                measures: said.measures,
                region,
            })
        };
        let runs: Vec<Result<Run, EmulateError>> = job.counted().map(of_round).collect();
        if let Some(slot) = slot {
            slot.keep(&runs)?;
        }
        Ok(runs)
    }

    /// A guest for the command, which nothing tells who schedules but the scheduler itself.
    fn guest(&self, job: &Job, folder: &Path, out: &Path) -> Result<Guest, EmulateError> {
        let shape = topology::shape(&self.machine)?;
        let machine = written(folder.join("machine.toml"), &self.machine.to_toml())?;
        let places: Vec<String> =
            self.files.iter().map(|(place, _)| format!("{}\n", place.display())).collect();
        let list = written(folder.join("files"), &places.concat())?;
        let memory = self.node_memory_mib();
        let arguments = plugin::arguments(&machine, out, self.is_timed, job.seed, &memory);
        let guest = Guest::new(Kernel::Pinned)
            .shape(shape)
            .node_memory_mib(&memory)
            .node_distance(topology::node_distance(&self.machine))
            .mode(if self.is_timed { Mode::Timed } else { Mode::Deterministic })
            .ns_per_instruction(topology::ns_per_instruction(&self.machine))
            .kernel_arguments(QUICK_BOOT)
            .file(list, script::LIST_FILE)
            .plugin(&plugin::library()?, &arguments)
            .limit(self.limit.saturating_mul(job.rounds.clone().count() as u32))
            .first(&script::start(job, &self.path), self.scheduler_files(job, folder)?);
        Ok(self.files.iter().fold(guest, |guest, (place, host)| guest.file(host, place)))
    }

    /// What the guest's scheduler needs, by its place in the guest.
    fn scheduler_files(&self, job: &Job, folder: &Path) -> Result<BTreeMap<PathBuf, PathBuf>, EmulateError> {
        match &job.scheduler {
            Scheduler::Kernel | Scheduler::KernelCache => Ok(BTreeMap::new()),
            Scheduler::Other(other) => {
                Ok(other.files.iter().map(|(guest, host)| (guest.to_owned(), host.to_owned())).collect())
            }
            Scheduler::Hearth(_) => {
                let missing = |error: GuestError| EmulateError::Program {
                    program: self.hearth.clone(),
                    what: error.to_string(),
                };
                let libraries = hearth_guest::libraries(&self.hearth, &[]).map_err(missing)?;
                let policy = written(folder.join("policy.toml"), &job.scheduler.policy_text())?;
                let own = [(script::HEARTH, self.hearth.clone()), (script::POLICY_FILE, policy)];
                let own = own.map(|(guest, host)| (PathBuf::from(guest), host));
                Ok(libraries.into_iter().map(|library| (library.guest, library.host)).chain(own).collect())
            }
        }
    }

    /// The guest's memory, the same under every scheduler: there is room for a program as long as Hearth's.
    pub fn memory_mib(&self) -> usize {
        let hearth_bytes = fs::metadata(&self.hearth).map_or(0, |about| about.len());
        let files_mib = (self.files.bytes() + hearth_bytes).div_ceil(MIB);
        let likely = KERNEL_MIB + FILES_FACTOR * files_mib + COPY_MIB * self.copies as u64;
        self.memory_mib.unwrap_or(likely.next_multiple_of(STEP_MIB) as usize)
    }

    fn node_memory_mib(&self) -> Vec<usize> {
        topology::node_memory_mib(&self.machine, self.memory_mib())
    }

    fn shuffled_mib(&self) -> usize {
        let least = self.node_memory_mib().into_iter().filter(|&mib| mib > 0).min().unwrap_or(0);
        (least / SHUFFLED).min(MOST_SHUFFLED_MIB)
    }

    fn trouble(&self, scheduler: &str, error: GuestError) -> EmulateError {
        let scheduler = scheduler.to_owned();
        match error {
            GuestError::Stopped => EmulateError::Stopped,
            GuestError::TimeLimit { limit, tail } => EmulateError::TimeLimit { scheduler, limit, tail },
            source => EmulateError::Guest { scheduler, source },
        }
    }
}

fn written(path: PathBuf, text: &str) -> Result<PathBuf, EmulateError> {
    match fs::write(&path, text) {
        Ok(()) => Ok(path),
        Err(error) => Err(EmulateError::File { path, error }),
    }
}
