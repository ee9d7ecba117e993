//! Workload mixes: the names of programs, joined by `+`, or a staggered workload.

use crate::cool::{Invocation, Sharing};
use crate::staggered::{Staggered, StaggeredJob};
use crate::{Built, WorkloadError, build_with, named};
use hearth_machine::CpuSet;
use hearth_machine::units::Nanoseconds;
use hearth_sim::memory::Memory;
use std::path::Path;

/// One program of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The program.
    pub program: String,
    /// What it is called in reports: the program's name, numbered from 1 if the mix has it twice.
    pub name: String,
    /// When it starts at scale 1.
    pub start_ns: u64,
    /// The CPUs on which its processes run.
    pub cpus: CpuSet,
    /// Of a task-parallel program: how many processes it starts.
    pub processes: usize,
    /// Whether it distributes its data where each of its processes stays on one CPU.
    pub distributes: bool,
}

/// The programs of a mix such as `"oltp+custom:threads=8+matrix"`, which start together. In place of a program there may
/// be a staggered workload, by its name or its TOML file.
///
/// # Errors
/// [`WorkloadError::UnknownProgram`] for a name that is no program's; a file that is wrong.
pub fn mix(text: &str) -> Result<Vec<Part>, WorkloadError> {
    // A file's name may have a + in it.
    let parts: Vec<&str> = if Path::new(text).is_file() { vec![text] } else { text.split('+').collect() };
    let jobs = parts.into_iter().map(|part| jobs(part.trim())).collect::<Result<Vec<_>, _>>()?.concat();
    let part = |(index, job): (usize, &StaggeredJob)| {
        named(&job.program)?;
        let same = |jobs: &[StaggeredJob]| jobs.iter().filter(|other| other.program == job.program).count();
        let name = match same(&jobs) {
            1 => job.program.clone(),
            _ => format!("{}#{}", job.program, same(&jobs[..=index])),
        };
        Ok(Part {
            program: job.program.clone(),
            name,
            start_ns: job.start.0,
            cpus: job.mask().unwrap_or(CpuSet::ALL),
            processes: job.processes.unwrap_or(Invocation::default().processes),
            distributes: job.distributes,
        })
    };
    jobs.iter().enumerate().map(part).collect()
}

/// The programs of a part: a staggered workload, or a program by itself.
fn jobs(part: &str) -> Result<Vec<StaggeredJob>, WorkloadError> {
    Ok(Staggered::find(part)?.map_or_else(|| vec![at_once(part)], |staggered| staggered.jobs))
}

/// A program that starts with the machine.
fn at_once(program: &str) -> StaggeredJob {
    let start = Nanoseconds(0);
    StaggeredJob { program: program.to_owned(), start, cpus: None, processes: None, distributes: false }
}

/// Refuses parts that could run on no CPU of a machine, which has so many.
///
/// # Errors
/// [`WorkloadError::NoCpu`]
pub fn check_cpus(parts: &[Part], machine_cpus: usize) -> Result<(), WorkloadError> {
    match parts.iter().find(|part| part.cpus.lowest().is_none_or(|cpu| cpu >= machine_cpus)) {
        Some(part) => Err(WorkloadError::NoCpu { name: part.name.clone(), cpus: machine_cpus }),
        None => Ok(()),
    }
}

/// Sets all programs of a mix up. Copies of one program have different random numbers; parallel ones share
/// the machine in this way.
///
/// # Errors
/// [`WorkloadError`], as [`mix`] and [`build`](crate::build).
pub fn build_mix(
    text: &str,
    memory: &Memory,
    scale: f64,
    seed: u64,
    sharing: Sharing,
) -> Result<Vec<Built>, WorkloadError> {
    let parts = mix(text)?;
    let build_part = |(index, part): (usize, &Part)| {
        let seed = seed_of_place(seed, index);
        let invocation = Invocation::among_others(part.processes, part.distributes, sharing);
        let mut built = build_with(&part.program, memory, scale, seed, &invocation)?;
        let several = built.applications.len() > 1;
        for application in &mut built.applications {
            let own = if several { format!(" {}", application.name) } else { String::new() };
            application.name = part.name.clone() + &own;
            application.start_ns = (part.start_ns as f64 * scale) as u64;
            application.cpus = part.cpus;
        }
        Ok(built)
    };
    let built: Vec<Built> = parts.iter().enumerate().map(build_part).collect::<Result<_, WorkloadError>>()?;
    check_end(&built, text)?;
    Ok(built)
}

/// The seed of a workload's program, by its place among them: copies of one program are to differ.
pub fn seed_of_place(seed: u64, place: usize) -> u64 {
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(place as u64)
}

/// Refuses a workload of which no program comes to an end.
///
/// # Errors
/// [`WorkloadError::NoEnd`], with the workload as `text` has it.
pub fn check_end(built: &[Built], text: &str) -> Result<(), WorkloadError> {
    let mut applications = built.iter().flat_map(|built| &built.applications);
    match applications.all(|application| application.is_background) {
        true => Err(WorkloadError::NoEnd { mix: text.into() }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_machine::Machine;
    use hearth_policy::Policy;
    use hearth_sim::{Options, Simulation};

    fn names(text: &str) -> Vec<String> {
        mix(text).unwrap().into_iter().map(|part| part.name).collect()
    }

    #[test]
    fn only_a_program_that_comes_twice_is_numbered() {
        assert_eq!(names("oltp+matrix+matrix"), ["oltp", "matrix#1", "matrix#2"]);
        assert_eq!(names("matrix + cholesky"), ["matrix", "cholesky"]);
    }

    #[test]
    fn a_staggered_workload_may_be_a_part() {
        let alone = mix("engineering:starts=2").unwrap();
        let beside = mix("engineering:starts=2+daemons").unwrap();
        assert_eq!(beside[..alone.len()], alone);
        assert_eq!(
            beside[alone.len()..].iter().map(|part| part.name.as_str()).collect::<Vec<_>>(),
            ["daemons"]
        );
        assert!(mix("daemons+nowhere.toml").is_err());
    }

    #[test]
    fn a_workload_without_an_end_is_refused() {
        assert_eq!(crate::endless("tpcc:warehouses=2").unwrap(), "tpcc:warehouses=2,transactions=0");
        assert!(crate::endless("matrix").unwrap_err().to_string().contains("art"));
        let (machine, policy) = (Machine::load("t1-dual").unwrap(), Policy::load("fair").unwrap());
        let memory = Simulation::new(&machine, &policy, &Options::default()).unwrap().memory();
        let build = |mix: &str| build_mix(mix, &memory, 0.01, 1, Sharing::OneByOne);
        assert!(matches!(build("art:millions=0"), Err(WorkloadError::NoEnd { .. })));
        assert!(matches!(build("daemons"), Err(WorkloadError::NoEnd { .. })));
        assert_eq!(crate::endless("daemons").unwrap(), "daemons");
        assert_eq!(build("art:millions=0+spin").unwrap().len(), 2);
    }

    #[test]
    fn an_unknown_program_is_named_beside_those_that_exist() {
        let error = mix("matrix+doom").unwrap_err().to_string();
        assert!(error.contains("\"doom\"") && error.contains("cholesky"), "{error}");
        assert!(mix("").is_err() && mix("matrix+").is_err());
    }
}
