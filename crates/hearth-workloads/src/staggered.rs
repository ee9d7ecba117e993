//! Workloads whose programs start one after another, as TOML: `workloads/*.toml`.

use crate::WorkloadError;
use hearth_machine::located;
use hearth_machine::units::Nanoseconds;
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
}

macro_rules! preset {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../workloads/", $name, ".toml")))
    };
}

const PRESETS: &[(&str, &str)] = &[preset!("engineering"), preset!("io")];

impl Staggered {
    /// The workloads that come with Hearth: name and TOML text, as in `workloads/`.
    pub fn presets() -> &'static [(&'static str, &'static str)] {
        PRESETS
    }

    /// Reads a workload; `origin` is the file name that errors give.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, a wrong unit, no job at all.
    pub fn parse(text: &str, origin: &str) -> Result<Self, WorkloadError> {
        let staggered: Self = located::read(text, origin)?;
        if staggered.jobs.is_empty() {
            let fault =
                located::Fault::new("jobs", "a workload without jobs", "name a program and its start");
            return Err(fault.locate(text, origin).into());
        }
        Ok(staggered)
    }

    /// The workload of a name or, if it ends in `.toml`, of a file; nothing if it is neither.
    ///
    /// # Errors
    /// A file that cannot be read, or that [`Staggered::parse`] refuses.
    pub fn find(name: &str) -> Result<Option<Self>, WorkloadError> {
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
    fn the_papers_workloads_have_25_jobs_of_programs_that_exist() {
        for (name, _) in PRESETS {
            let workload = Staggered::find(name).unwrap().unwrap();
            assert_eq!((workload.name.as_str(), workload.jobs.len()), (*name, 25));
            assert!(workload.jobs.is_sorted_by_key(|job| job.start));
        }
    }

    #[test]
    fn a_wrong_workload_says_where_and_what() {
        let error = |text: &str| Staggered::parse(text, "w.toml").unwrap_err().to_string();
        let head = "name = \"w\"\ndescription = \"d\"\n";
        assert!(error(&format!("{head}jobs = []")).contains("w.toml:3"));
        let wrong = error(&format!("{head}jobs = [{{ program = \"ocean\", start = \"5\" }}]"));
        assert!(wrong.contains("unit"), "{wrong}");
        assert!(Staggered::find("no-such.toml").is_err());
        assert_eq!(Staggered::find("matrix").unwrap(), None);
    }
}
