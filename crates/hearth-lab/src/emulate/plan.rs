//! What is to be run, and what came of it.

use super::Arguments;
use super::comparison::{Comparison, SchedulerRuns};
use crate::names::machine;
use anyhow::{Context, anyhow};
use hearth_command::failure::Failure;
use hearth_command::names::{self, POLICY};
use hearth_command::program;
use hearth_emulate::{EmulateError, Emulation, Files, Job, Named, Run, Scheduler, topology};
use hearth_machine::located;
use std::env;
use std::path::{Path, PathBuf};

/// Where the guest has programs of its own.
const OWN_PATH: &str = "/usr/bin:/bin";
/// From here on a guest's CPUs are said to be slow.
const SLOW: f64 = 4.0;

/// The runs of a comparison.
pub struct Plan {
    pub emulation: Emulation,
    pub jobs: Vec<Job>,
    schedulers: Vec<Scheduler>,
    command: String,
    seeds: Vec<u64>,
}

impl Plan {
    /// Reads and checks everything that the arguments name.
    pub fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let machine = machine(&arguments.machine)?;
        let schedulers = schedulers(&arguments.schedulers)?;
        topology::shape(&machine).map_err(Failure::input)?;
        let mut files = Files::default();
        let command = taken_along(arguments, &mut files).map_err(Failure::input)?;
        let path = env::var("PATH").map_or_else(|_| OWN_PATH.into(), |path| format!("{path}:{OWN_PATH}"));
        let emulation = Emulation {
            machine,
            command,
            files,
            hearth: hearth()?,
            folder: env::current_dir().context("the current folder is not known").map_err(Failure::Failed)?,
            path,
            copies: arguments.copies,
            is_timed: arguments.timed,
            memory_mib: arguments.memory,
            limit: arguments.limit,
        };
        emulation.check().map_err(|error| Failure::Code(4, error.into()))?;
        let seeds: Vec<u64> = (1..=arguments.seeds).collect();
        // Seeds outside, schedulers inside: what an interruption leaves can be compared.
        let job = |seed: u64, scheduler: &Scheduler| Job { scheduler: scheduler.clone(), seed };
        let jobs =
            seeds.iter().flat_map(|&seed| schedulers.iter().map(move |scheduler| job(seed, scheduler)));
        let jobs = jobs.collect();
        Ok(Self { emulation, jobs, schedulers, command: arguments.command.join(" "), seeds })
    }

    /// What a reader of the figures should know beforehand.
    pub fn notes(&self) -> Vec<String> {
        let slowness = topology::slowness(&self.emulation.machine);
        let slow = (slowness >= SLOW && !self.emulation.is_timed).then(|| {
            format!(
                "{} executes {slowness:.0} times as many instructions between two ticks as the guest does: time \
                 slices are too short by as much, and switches too many, under every scheduler",
                self.emulation.machine.name
            )
        });
        slow.into_iter().collect()
    }

    /// The finished runs side by side, and what went wrong with the others.
    pub fn collect(&self, results: Vec<Result<Run, EmulateError>>) -> (Comparison, Vec<EmulateError>) {
        let mut runs: Vec<Vec<Run>> = self.schedulers.iter().map(|_| Vec::new()).collect();
        let mut errors = Vec::new();
        for (index, result) in results.into_iter().enumerate() {
            match result {
                Ok(run) => runs[index % self.schedulers.len()].push(run),
                Err(error) if !error.is_interruption() => errors.push(error),
                Err(_) => {}
            }
        }
        let partial = runs.iter().any(|runs| runs.len() < self.seeds.len());
        let named = self.schedulers.iter().zip(runs);
        let schedulers = named.filter_map(|(scheduler, runs)| {
            SchedulerRuns::new(&scheduler.name(), &scheduler.description(), runs)
        });
        let machine = &self.emulation.machine;
        let comparison = Comparison {
            machine: machine.name.clone(),
            machine_description: machine.description.clone(),
            command: self.command.clone(),
            copies: self.emulation.copies,
            is_timed: self.emulation.is_timed,
            seeds: self.seeds.clone(),
            partial,
            schedulers: schedulers.collect(),
        };
        (comparison, errors)
    }
}

/// The program that loads Hearth's scheduler, which every guest has: beside this one, or on PATH.
fn hearth() -> Result<PathBuf, Failure> {
    program::find("hearth").ok_or_else(|| {
        Failure::Failed(anyhow!(
            "the program `hearth`, which every guest has, is neither beside this one nor on PATH; \
             `make build` in Hearth's sources builds it"
        ))
    })
}

/// The schedulers by name, each once.
fn schedulers(names: &[String]) -> Result<Vec<Scheduler>, Failure> {
    let schedulers: Vec<Scheduler> = names.iter().map(|name| scheduler(name)).collect::<Result<_, _>>()?;
    for (index, scheduler) in schedulers.iter().enumerate() {
        let name = scheduler.name();
        if schedulers[..index].iter().any(|other| other.name() == name) {
            return Err(Failure::Input(anyhow!(
                "--schedulers has two called {name}; leave one out, or give its policy another `name`"
            )));
        }
    }
    Ok(schedulers)
}

fn scheduler(text: &str) -> Result<Scheduler, Failure> {
    match Named::from(text) {
        Named::Policy(name) => Ok(Scheduler::Hearth(Box::new(names::policy(name)?))),
        Named::Own(name) => Scheduler::own(name).ok_or_else(|| unknown(name)),
    }
}

fn unknown(name: &str) -> Failure {
    let prefixed = |policy: &str| format!("{}{policy}", Scheduler::PREFIX);
    let policies = (POLICY.names)();
    let own = located::nearest(name, &Scheduler::OWN).map(str::to_owned);
    let mend = match own.or_else(|| located::nearest(name, &policies).map(prefixed)) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => {
            let policies: Vec<String> = policies.into_iter().map(prefixed).collect();
            let (own, policies) = (Scheduler::OWN.join(", "), policies.join(", "));
            format!("choose from {own}, {policies}, or name a TOML file: {}FILE", Scheduler::PREFIX)
        }
    };
    Failure::Input(anyhow!("there is no scheduler called {name:?}; {mend}"))
}

/// The command with its program's place, and what it needs.
fn taken_along(arguments: &Arguments, files: &mut Files) -> Result<Vec<String>, EmulateError> {
    let Some((program, rest)) = arguments.command.split_first() else { return Ok(Vec::new()) };
    let program = files.add_program(program)?.display().to_string();
    for name in &arguments.program {
        files.add_program(name)?;
    }
    for text in &arguments.file {
        let (host, guest) =
            text.split_once(':').map_or((text.as_str(), None), |(host, guest)| (host, Some(guest)));
        files.add(Path::new(host), guest.map(Path::new))?;
    }
    for file in rest.iter().map(Path::new).filter(|path| path.is_file()) {
        files.add(file, None)?;
    }
    Ok([vec![program], rest.to_vec()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        match schedulers(&names) {
            Err(Failure::Input(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn schedulers_are_found_by_their_names() {
        let names = ["kernel", "kernel-cache", "hearth:light"].map(str::to_owned);
        let found = schedulers(&names).unwrap();
        assert_eq!(found.iter().map(Scheduler::name).collect::<Vec<_>>(), names);
    }

    #[test]
    fn an_unknown_scheduler_is_answered_with_the_nearest() {
        assert!(error(&["kernal"]).contains("did you mean kernel?"));
        assert!(error(&["light"]).contains("did you mean hearth:light?"));
        assert!(error(&["hearth:ligth"]).contains("did you mean light?"));
        assert!(error(&["something-else"]).contains("choose from kernel, kernel-cache, hearth:"));
        assert!(error(&["kernel", "kernel"]).contains("two called kernel"));
    }
}
