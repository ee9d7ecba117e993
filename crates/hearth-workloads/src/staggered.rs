//! Workloads whose programs start one after another, as TOML: `workloads/*.toml`.

use crate::{Builder, WorkloadError, builder, names};
use hearth_machine::located::{self, Fault};
use hearth_machine::units::Nanoseconds;
use hearth_machine::{CpuSet, MAX_CPUS};
use serde::Deserialize;

/// Programs that start at different times.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Staggered {
    /// Name on the command line: `engineering`.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// What starts when.
    pub jobs: Vec<StaggeredJob>,
}

/// A program that starts at some time.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct StaggeredJob {
    /// The program's name.
    pub program: String,
    /// When it starts at scale 1; shorter programs start as much earlier.
    pub start: Nanoseconds,
    /// The CPUs on which alone its processes run, as the kernel writes them: `0-3,8`. All, if left out.
    pub cpus: Option<String>,
    /// Of a task-parallel program: how many processes it starts, 1 to 64; 16, if left out.
    pub processes: Option<usize>,
    /// Whether it distributes its data where each of its processes stays on one CPU.
    #[serde(default)]
    pub distributes: bool,
}

impl StaggeredJob {
    /// The CPUs on which its processes run.
    pub(crate) fn mask(&self) -> Option<CpuSet> {
        let Some(text) = &self.cpus else { return Some(CpuSet::ALL) };
        CpuSet::parse(text).filter(|cpus| !cpus.is_empty())
    }
}

/// So many processes a task-parallel program can start.
const PROCESSES: std::ops::RangeInclusive<usize> = 1..=64;

/// What follows a workload's name where its programs start at other times.
const STARTS: &str = ":starts=";
/// How many times as late they may start.
pub const LATER: std::ops::RangeInclusive<f64> = 0.0..=100.0;

/// Whether a name is that of a staggered workload, or of a file of one.
pub fn is_staggered(name: &str) -> bool {
    PRESETS.iter().any(|(preset, _)| *preset == name) || name.ends_with(".toml")
}

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../workloads/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] = &[
    preset!("engineering"),
    preset!("io"),
    preset!("containers"),
    preset!("parallel-static"),
    preset!("parallel-dynamic"),
];

impl Staggered {
    /// The workloads that come with Hearth: name and TOML text, as in `workloads/`.
    pub fn presets() -> &'static [(&'static str, &'static str)] {
        PRESETS
    }

    /// Reads a workload; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a wrong unit, no job at all, an unknown program.
    pub fn parse(text: &str, origin: &str) -> Result<Self, WorkloadError> {
        let staggered: Self = located::read(text, origin)?;
        staggered.check().map_err(|fault| fault.locate(text, origin))?;
        Ok(staggered)
    }

    fn check(&self) -> Result<(), Fault> {
        if self.jobs.is_empty() {
            return Err(Fault::new("jobs", "a workload without jobs", "name a program and its start"));
        }
        let known = names();
        for (index, job) in self.jobs.iter().enumerate() {
            let program = job.program.as_str();
            if job.mask().is_none() {
                let what = format!(
                    "{:?} is no list of CPUs below {MAX_CPUS}",
                    job.cpus.as_deref().unwrap_or_default()
                );
                let mend = "write numbers and ranges, such as \"0-3,8\"";
                return Err(Fault::new(format!("jobs[{index}].cpus"), what, mend));
            }
            let Ok(builder) = builder(program) else {
                let what = format!("no program is called {program:?}");
                return Err(Fault::new(
                    format!("jobs[{index}].program"),
                    what,
                    located::one_of(program, &known),
                ));
            };
            let is_parallel = matches!(builder, Builder::Tasks(_));
            if !is_parallel && (job.processes.is_some() || job.distributes) {
                let what = format!("{program} starts as many processes as it does, with data of its own");
                let mend = "leave `processes` and `distributes` out, or name a program with -cool in it";
                return Err(Fault::new(format!("jobs[{index}]"), what, mend));
            }
            if job.processes.is_some_and(|processes| !PROCESSES.contains(&processes)) {
                let what = format!("{program} cannot start so many processes");
                return Err(Fault::new(format!("jobs[{index}].processes"), what, "name 1 to 64"));
            }
        }
        Ok(())
    }

    /// The workload of a name or, if it ends in `.toml`, of a file; nothing if it is neither. With `:starts=2` after
    /// it, its programs start twice as late.
    ///
    /// # Errors
    /// A file that cannot be read, or that [`Staggered::parse`] refuses; starts that are no number.
    pub fn find(name: &str) -> Result<Option<Self>, WorkloadError> {
        let Some((workload, starts)) = name.split_once(STARTS).filter(|(name, _)| is_staggered(name)) else {
            return Self::find_as_written(name);
        };
        let Some(starts) = starts.parse().ok().filter(|starts| LATER.contains(starts)) else {
            return Err(WorkloadError::BadParameter {
                program: workload.into(),
                what: format!("its programs cannot start {starts:?} times as late"),
                mend: format!("give a number from {} to {}", LATER.start(), LATER.end()),
            });
        };
        let mut found = Self::find_as_written(workload)?;
        for job in found.iter_mut().flat_map(|staggered| &mut staggered.jobs) {
            job.start.0 = (job.start.0 as f64 * starts) as u64;
        }
        Ok(found)
    }

    fn find_as_written(name: &str) -> Result<Option<Self>, WorkloadError> {
        if let Some((name, text)) = PRESETS.iter().find(|(preset, _)| *preset == name) {
            return Self::parse(text, &format!("workloads/{name}.toml")).map(Some);
        }
        if !name.ends_with(".toml") {
            return Ok(None);
        }
        Self::parse(&located::read_file(name, "workload", PRESETS)?, name).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_come_along_have_jobs_of_programs_that_exist() {
        for (name, _) in PRESETS {
            let workload = Staggered::find(name).unwrap().unwrap();
            let jobs = match *name {
                "engineering" | "io" => 25,
                "containers" => workload.jobs.len(),
                _ => 6,
            };
            assert_eq!((workload.name.as_str(), workload.jobs.len()), (*name, jobs));
            assert!(workload.jobs.is_sorted_by_key(|job| job.start));
        }
    }

    #[test]
    fn programs_start_later_or_sooner_as_asked() {
        let starts = |name: &str| -> Vec<u64> {
            let jobs = Staggered::find(name).unwrap().unwrap().jobs;
            jobs.iter().map(|job| job.start.0 / 1_000_000).collect()
        };
        let twice: Vec<u64> = starts("engineering").iter().map(|start| start * 2).collect();
        assert_eq!(starts("engineering:starts=2"), twice);
        assert!(starts("engineering:starts=0").iter().all(|&start| start == 0));
        for wrong in ["engineering:starts=two", "io:starts=-1", "io:starts=NaN"] {
            let error = Staggered::find(wrong).unwrap_err().to_string();
            assert!(error.contains("cannot start") && error.contains("from 0 to 100"), "{error}");
        }
    }

    #[test]
    fn a_wrong_workload_says_where_and_what() {
        let error = |text: &str| Staggered::parse(text, "w.toml").unwrap_err().to_string();
        let head = "name = \"w\"\ndescription = \"d\"\n";
        assert!(error(&format!("{head}jobs = []")).contains("w.toml:3"));
        let wrong = error(&format!("{head}jobs = [{{ program = \"ocean\", start = \"5\" }}]"));
        assert!(wrong.contains("unit"), "{wrong}");
        let jobs = "jobs = [\n  { program = \"water\", start = \"0 s\" },\n  { program = \"ocaen\", start = \"1 s\" },\n]";
        assert_eq!(
            error(&format!("{head}{jobs}")),
            "w.toml:5: jobs[1].program: no program is called \"ocaen\"; did you mean `ocean`?"
        );
        for cpus in ["", "3-1", "0,512", "two"] {
            let jobs = format!("jobs = [{{ program = \"spin\", start = \"0 s\", cpus = {cpus:?} }}]");
            let wrong = error(&format!("{head}{jobs}"));
            assert!(wrong.starts_with("w.toml:3: jobs[0].cpus: ") && wrong.contains("0-3,8"), "{wrong}");
        }
        let tables = "[[jobs]]\nprogram = \"doom\"\nstart = \"0 s\"\n";
        let wrong = error(&format!("{head}{tables}"));
        assert!(wrong.starts_with("w.toml:4: jobs[0].program: ") && wrong.contains("cholesky"), "{wrong}");
        for (keys, wanted) in [
            ("program = \"ocean\", processes = 4", "w.toml:3: jobs[0]: ocean starts as many"),
            ("program = \"ocean\", distributes = true", "w.toml:3: jobs[0]: ocean starts as many"),
            ("program = \"ocean-cool\", processes = 0", "w.toml:3: jobs[0].processes: "),
            ("program = \"ocean-cool\", processes = 65", "w.toml:3: jobs[0].processes: "),
        ] {
            let wrong = error(&format!("{head}jobs = [{{ {keys}, start = \"0 s\" }}]"));
            assert!(wrong.starts_with(wanted), "{wrong}");
        }
        assert!(Staggered::find("no-such.toml").is_err());
        assert_eq!(Staggered::find("matrix").unwrap(), None);
    }
}
