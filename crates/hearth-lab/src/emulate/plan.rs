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
    EmulateError, Emulation, Files, Job, Named, Other, Outcome, Run, Scheduler, Turn, topology,
};
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
    /// What each turn of each job is.
    places: Vec<Vec<Place>>,
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
        let schedulers = schedulers(&separate(&arguments.schedulers), &mut files)?;
        topology::shape(&machine).map_err(Failure::input)?;
        let has_others = schedulers.iter().any(|scheduler| matches!(scheduler, Scheduler::Other(_)));
        let lacks_config = has_others && !files.add_kernel_config();
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
        emulation.check().map_err(|error| Failure::Code(4, error.into()))?;
        let seeds: Vec<u64> = (1..=arguments.seeds).collect();
        let places = places(&schedulers, &seeds, arguments.rounds);
        let turn =
            |place: &Place| Turn { scheduler: schedulers[place.scheduler].clone(), round: place.round };
        let jobs = places
            .iter()
            .map(|(seed, places)| Job { turns: places.iter().map(turn).collect(), seed: *seed })
            .collect();
        let places = places.into_iter().map(|(_, places)| places).collect();
        let (command, rounds) = (arguments.command.join(" "), arguments.rounds);
        Ok(Self { emulation, jobs, places, schedulers, command, seeds, rounds, lacks_config })
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
        self.places.iter().flatten().filter(|place| place.round > 0).count()
    }

    /// The finished runs side by side, and what went wrong with the others.
    pub fn collect(&self, results: Vec<Outcome>) -> (Comparison, Vec<EmulateError>) {
        let mut runs: Vec<Vec<Run>> = self.schedulers.iter().map(|_| Vec::new()).collect();
        let mut again = Vec::new();
        let (mut errors, mut endings) = (Vec::new(), Vec::new());
        let any_ran = results.iter().flatten().flatten().any(Result::is_ok);
        for (job, result) in results.into_iter().enumerate() {
            let turns = match result {
                Ok(turns) => turns,
                Err(error) => {
                    errors.extend((!error.is_interruption()).then_some(error));
                    continue;
                }
            };
            for (place, result) in self.places[job].iter().zip(turns) {
                let scheduler = &self.schedulers[place.scheduler];
                match result {
                    Ok(_) if place.round == 0 => {}
                    Ok(run) if place.is_again => again.push(run),
                    Ok(run) => runs[place.scheduler].push(run),
                    // Beside others that were compared, this is what came of it.
                    Err(error) if any_ran && is_ending(&error, scheduler) => endings.push(Ending {
                        scheduler: scheduler.name(),
                        seed: self.jobs[job].seed,
                        round: place.round,
                        what: error.to_string(),
                    }),
                    Err(error) => errors.push(error),
                }
            }
        }
        let done = runs.iter().map(Vec::len).sum::<usize>() + again.len() + endings.len();
        let partial = done < self.runs();
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

/// What a turn of a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// By its number.
    scheduler: usize,
    /// 0: not counted.
    round: u32,
    /// It is the first scheduler once more, which shows what turns of one guest leave to each other.
    is_again: bool,
}

/// The turns of each guest, with its seed. Without rounds each run has a guest of its own: seeds outside, schedulers
/// inside, so that what an interruption leaves can be compared. With rounds a seed is a guest; its rounds run forwards
/// and backwards in turn (ABBA), beginning with another scheduler for each seed. The first turn is not counted: no other finds memory as new.
fn places(schedulers: &[Scheduler], seeds: &[u64], rounds: Option<u32>) -> Vec<(u64, Vec<Place>)> {
    let Some(rounds) = rounds else {
        let one = |scheduler| vec![Place { scheduler, round: 1, is_again: false }];
        let of_seed = |&seed: &u64| (0..schedulers.len()).map(move |scheduler| (seed, one(scheduler)));
        return seeds.iter().flat_map(of_seed).collect();
    };
    let of_seed = |&seed: &u64| {
        let round = |round: u32| {
            let mut turns: Vec<Place> = (0..=schedulers.len())
                .map(|number| Place {
                    scheduler: number % schedulers.len(),
                    round,
                    is_again: number == schedulers.len(),
                })
                .collect();
            let length = turns.len();
            turns.rotate_left((seed as usize - 1) % length);
            if round.is_multiple_of(2) {
                turns.reverse();
            }
            turns
        };
        let first = Place { scheduler: 0, round: 0, is_again: false };
        (seed, std::iter::once(first).chain((1..=rounds).flat_map(round)).collect())
    };
    seeds.iter().map(of_seed).collect()
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
fn schedulers(names: &[&str], files: &mut Files) -> Result<Vec<Scheduler>, Failure> {
    let schedulers: Vec<Scheduler> =
        names.iter().map(|name| scheduler(name.trim(), files)).collect::<Result<_, _>>()?;
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

fn scheduler(text: &str, files: &mut Files) -> Result<Scheduler, Failure> {
    match Named::from(text) {
        Named::Policy(name) => Ok(Scheduler::Hearth(Box::new(names::live_policy(name)?))),
        Named::Own(name) => Scheduler::own(name).map_or_else(|| other(name, files), Ok),
    }
}

/// The scheduler that a command loads.
fn other(text: &str, files: &mut Files) -> Result<Scheduler, Failure> {
    let words = shlex::split(text).ok_or_else(|| {
        Failure::Input(anyhow!(
            "the scheduler {text:?} has a quote that does not end; write it as for a shell"
        ))
    })?;
    let Some((program, arguments)) = words.split_first() else { return Err(unknown(text)) };
    let program = match files.add_program(program) {
        Ok(place) => place.display().to_string(),
        Err(EmulateError::NoProgram(_)) => return Err(unknown(program)),
        Err(error) => return Err(Failure::input(error)),
    };
    for file in arguments.iter().map(Path::new).filter(|path| path.is_file()) {
        files.add(file, None).map_err(Failure::input)?;
    }
    Ok(Scheduler::Other(Other {
        name: text.to_owned(),
        command: [vec![program], arguments.to_vec()].concat(),
    }))
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
        match schedulers(names, &mut Files::default()) {
            Err(Failure::Input(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn schedulers_are_found_by_their_names() {
        let names = separate("kernel,kernel-cache,hearth:light,sort -k '1,2'");
        let mut files = Files::default();
        let found = schedulers(&names, &mut files).unwrap();
        let Scheduler::Other(other) = &found[3] else { panic!("{found:?}") };
        assert!(other.command[0].ends_with("/sort") && other.command[1..] == ["-k", "1,2"]);
        assert!(files.iter().any(|(place, _)| place.ends_with("sort")));
        assert_eq!(found.iter().map(Scheduler::name).collect::<Vec<_>>(), names);
    }

    #[test]
    fn rounds_run_forwards_and_backwards_with_the_first_scheduler_once_more() {
        let schedulers = [Scheduler::Kernel, Scheduler::KernelCache];
        let order = |places: &[Place]| -> Vec<(usize, bool)> {
            places.iter().map(|place| (place.scheduler, place.is_again)).collect()
        };
        let single = places(&schedulers, &[1, 2], None);
        assert_eq!(single.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), [1, 1, 2, 2]);
        assert!(single.iter().all(|(_, places)| places.len() == 1));
        let two = places(&schedulers, &[1, 2], Some(2));
        let (first, second, again) = ((0, false), (1, false), (0, true));
        assert_eq!(order(&two[0].1), [first, first, second, again, again, second, first]);
        assert_eq!(order(&two[1].1), [first, second, again, first, first, again, second]);
        assert!(two[0].1.iter().map(|place| place.round).eq([0, 1, 1, 1, 2, 2, 2]));
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
