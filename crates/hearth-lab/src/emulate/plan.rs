//! What is to be run, and what came of it.

use super::Arguments;
use super::comparison::{Comparison, Ending, SchedulerRuns};
use super::pairs;
use crate::names::machine;
use anyhow::{Context, anyhow};
use hearth_command::failure::Failure;
use hearth_command::names::{self, POLICY};
use hearth_command::program;
use hearth_emulate::{
    EmulateError, Emulation, Files, Job, Kept, Named, Other, Outcome, Run, Scheduler, topology,
};
use hearth_machine::located;
use std::collections::BTreeMap;
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
    pub kept: Option<Kept>,
    schedulers: Vec<Scheduler>,
    command: String,
    seeds: Vec<u64>,
    rounds: Option<u32>,
    /// Other schedulers are to be loaded, and the configuration of the guest's kernel is not here.
    lacks_config: bool,
}

impl Plan {
    /// Reads and checks everything that the arguments name.
    pub fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let machine = machine(&arguments.machine)?;
        let mut files = Files::default();
        let schedulers = schedulers(&separate(&arguments.schedulers))?;
        topology::shape(&machine).map_err(Failure::input)?;
        let lacks = |scheduler: &Scheduler| matches!(scheduler, Scheduler::Other(other) if !other.files.has_kernel_config());
        let lacks_config = schedulers.iter().any(lacks);
        let command = taken_along(arguments, &mut files).map_err(Failure::input)?;
        let path = env::var("PATH").map_or_else(|_| OWN_PATH.into(), |path| format!("{path}:{OWN_PATH}"));
        let emulation = Emulation {
            machine,
            command,
            before: arguments.before.clone(),
            files,
            hearth: hearth()?,
            folder: env::current_dir().context("the current folder is not known").map_err(Failure::Failed)?,
            path,
            copies: arguments.copies,
            is_warm: arguments.warm,
            is_timed: arguments.timed,
            memory_mib: arguments.memory,
            limit: arguments.limit,
        };
        let kept = arguments.keep.as_deref().map(Kept::in_folder).transpose().map_err(Failure::input)?;
        emulation.check().map_err(|error| Failure::Code(4, error.into()))?;
        let seeds: Vec<u64> = arguments.seeds.all();
        let jobs = jobs(&schedulers, &seeds, arguments.rounds);
        let (command, rounds) = (arguments.command.join(" "), arguments.rounds);
        Ok(Self { emulation, jobs, kept, schedulers, command, seeds, rounds, lacks_config })
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
        let lacks_config = self.lacks_config.then(|| {
            "the configuration of the guest's kernel, which most published schedulers read, is not here; \
             tools/install-guest config gets it"
                .to_owned()
        });
        let few = self.rounds.and_then(|rounds| pairs::note(rounds * self.seeds.len() as u32));
        slow.into_iter().chain(lacks_config).chain(few).collect()
    }

    /// How many runs there are to be.
    pub fn runs(&self) -> usize {
        self.jobs.iter().flat_map(Job::counted).count()
    }

    /// The finished runs side by side, and what went wrong with the others.
    pub fn collect(&self, results: Vec<Outcome>) -> (Comparison, Vec<EmulateError>) {
        let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        let mut again = Vec::new();
        let (mut errors, mut endings) = (Vec::new(), Vec::new());
        let any_ran = results.iter().flatten().flatten().any(Result::is_ok);
        for (job, result) in self.jobs.iter().zip(results) {
            let rounds = match result {
                Ok(rounds) => rounds,
                Err(error) => {
                    errors.extend((!error.is_interruption()).then_some(error));
                    continue;
                }
            };
            for (round, result) in job.counted().zip(rounds) {
                match result {
                    Ok(run) if job.is_again => again.push(run),
                    Ok(run) => runs.entry(run.scheduler.clone()).or_default().push(run),
                    // Beside others that were compared, this is what came of it.
                    Err(error) if any_ran && is_ending(&error, &job.scheduler) => endings.push(Ending {
                        scheduler: job.scheduler.name(),
                        seed: job.seed,
                        round,
                        what: error.to_string(),
                    }),
                    Err(error) => errors.push(error),
                }
            }
        }
        let done = runs.values().map(Vec::len).sum::<usize>() + again.len() + endings.len();
        let partial = done < self.runs();
        let of = |scheduler: &Scheduler| runs.remove(&scheduler.name()).unwrap_or_default();
        let runs: Vec<Vec<Run>> = self.schedulers.iter().map(of).collect();
        let pairs = self.rounds.map_or_else(Vec::new, |_| pairs::of(&self.schedulers, &runs, &again));
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
            is_warm: self.emulation.is_warm,
            is_timed: self.emulation.is_timed,
            seeds: self.seeds.clone(),
            rounds: self.rounds,
            partial,
            schedulers: schedulers.collect(),
            pairs,
            endings,
        };
        (comparison, errors)
    }
}

/// The guests. Without rounds each run has one of its own: seeds outside, schedulers inside, so that what an
/// interruption leaves can be compared. With rounds a scheduler has one for each seed, in which the first round is not
/// counted: no other finds memory as new. The first scheduler has a second one for each seed, in which all is drawn
/// once more: what chance does is in the difference.
fn jobs(schedulers: &[Scheduler], seeds: &[u64], rounds: Option<u32>) -> Vec<Job> {
    let one = |seed: u64| schedulers.iter().map(move |scheduler| Job::one(scheduler.clone(), seed));
    let Some(rounds) = rounds else { return seeds.iter().flat_map(|&seed| one(seed)).collect() };
    let of_rounds = |job: Job| Job { rounds: 0..=rounds, ..job };
    let of_seed = |&seed: &u64| {
        let again = one(seed).take(1).map(|job| Job { is_again: true, ..job });
        again.chain(one(seed)).map(of_rounds)
    };
    seeds.iter().flat_map(of_seed).collect()
}

/// The program that loads Hearth's scheduler: beside this one, or on PATH.
fn hearth() -> Result<PathBuf, Failure> {
    program::find("hearth").ok_or_else(|| {
        Failure::Failed(anyhow!(
            "the program `hearth` is neither beside this one nor on PATH; \
             `make build` in Hearth's sources builds it"
        ))
    })
}

/// Whether an error says how a scheduler ended, or that another does not start: it, and not the run, has failed.
fn is_ending(error: &EmulateError, scheduler: &Scheduler) -> bool {
    match error {
        EmulateError::SchedulerEnded { .. } => true,
        EmulateError::NoScheduler { .. } => matches!(scheduler, Scheduler::Other(_)),
        _ => false,
    }
}

/// What commas separate, those in quotes apart.
fn separate(text: &str) -> Vec<&str> {
    let mut quote = None;
    text.split(|letter| {
        match (quote, letter) {
            (None, '\'' | '"') => quote = Some(letter),
            (Some(begun), _) if begun == letter => quote = None,
            _ => {}
        }
        quote.is_none() && letter == ','
    })
    .collect()
}

/// The schedulers by name, each once. Those that a command loads come along.
fn schedulers(names: &[&str]) -> Result<Vec<Scheduler>, Failure> {
    let schedulers: Vec<Scheduler> =
        names.iter().map(|name| scheduler(name.trim())).collect::<Result<_, _>>()?;
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
        Named::Policy(name) => Ok(Scheduler::Hearth(Box::new(names::live_policy(name)?))),
        Named::Own(name) => Scheduler::own(name).map_or_else(|| other(name), Ok),
    }
}

/// The scheduler that a command loads.
fn other(text: &str) -> Result<Scheduler, Failure> {
    let words = shlex::split(text).ok_or_else(|| {
        Failure::Input(anyhow!(
            "the scheduler {text:?} has a quote that does not end; write it as for a shell"
        ))
    })?;
    let Some((program, arguments)) = words.split_first() else { return Err(unknown(text)) };
    let mut files = Files::default();
    let program = match files.add_program(program) {
        Ok(place) => place.display().to_string(),
        Err(EmulateError::NoProgram(_)) => return Err(unknown(program)),
        Err(error) => return Err(Failure::input(error)),
    };
    for file in arguments.iter().map(Path::new).filter(|path| path.is_file()) {
        files.add(file, None).map_err(Failure::input)?;
    }
    files.add_kernel_config();
    let command = [vec![program], arguments.to_vec()].concat();
    Ok(Scheduler::Other(Other { name: text.to_owned(), command, files }))
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
            format!(
                "choose from {own}, {policies}, name a TOML file: {}FILE, or a program in PATH that loads one",
                Scheduler::PREFIX
            )
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
        match schedulers(names) {
            Err(Failure::Input(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn schedulers_are_found_by_their_names() {
        let names = separate("kernel,kernel-cache,hearth:light,sort -k '1,2'");
        let found = schedulers(&names).unwrap();
        let Scheduler::Other(other) = &found[3] else { panic!("{found:?}") };
        assert!(other.command[0].ends_with("/sort") && other.command[1..] == ["-k", "1,2"]);
        assert!(other.files.iter().any(|(place, _)| place.ends_with("sort")));
        assert_eq!(found.iter().map(Scheduler::name).collect::<Vec<_>>(), names);
    }

    #[test]
    fn with_rounds_a_scheduler_has_a_guest_for_each_seed_and_the_first_has_two() {
        let schedulers = [Scheduler::Kernel, Scheduler::KernelCache];
        let said = |jobs: Vec<Job>| -> Vec<String> {
            let said = |job: Job| {
                let again = if job.is_again { " again" } else { "" };
                format!("{}{again} {} {:?}", job.scheduler.name(), job.seed, job.rounds)
            };
            jobs.into_iter().map(said).collect()
        };
        let single = ["kernel 1 1..=1", "kernel-cache 1 1..=1", "kernel 2 1..=1", "kernel-cache 2 1..=1"];
        assert_eq!(said(jobs(&schedulers, &[1, 2], None)), single);
        let rounds = ["kernel again 5 0..=3", "kernel 5 0..=3", "kernel-cache 5 0..=3"];
        assert_eq!(said(jobs(&schedulers, &[5], Some(3))), rounds);
    }

    #[test]
    fn an_unknown_scheduler_is_answered_with_the_nearest() {
        assert!(error(&["kernal"]).contains("did you mean kernel?"));
        assert!(error(&["light"]).contains("did you mean hearth:light?"));
        assert!(error(&["hearth:ligth"]).contains("did you mean light?"));
        assert!(error(&["something-else"]).contains("choose from kernel, kernel-cache, hearth:"));
        assert!(error(&["sort 'x"]).contains("a quote that does not end"));
        assert!(error(&[""]).contains("choose from"));
        assert!(error(&["kernel", "kernel"]).contains("two called kernel"));
    }
}
