//! `hearth exec --class`: a program in a cgroup of its own, of those that have a class.

use crate::linux::start::failure;
use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hearth_command::failure::{Failure, Outcome};
use hearth_host::cgroup::{self, Own};
use hearth_linux::daemon::{self, Status};
use hearth_linux::isolation::OWN;
use std::path::Path;

/// What names of the classes' cgroups begin with.
const PREFIX: &str = "hearth.";

/// The classes that there are.
pub fn parser() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(OWN.map(|(group, _)| group.trim_start_matches(PREFIX)))
}

/// Has this process enter a cgroup of a class, for the program that it is about to start; nothing, with the
/// reason said, where that cannot be. `set`: the program is to have CPUs of its own.
pub fn enter(class: &str, set: bool) -> Result<Option<Own>, Failure> {
    let status = daemon::ask_status(&daemon::run_folder());
    if let Ok(Some(status)) = &status {
        refuse_cpusets(status, set)?;
    }
    let Some(folder) = cgroup::folder(&Path::new("/").join(format!("{PREFIX}{class}"))) else {
        anstream::eprintln!(
            "hearth: classes are given by control groups, version 2, and none are mounted (mount -t cgroup2 none \
             EMPTY-FOLDER); the program runs as others do"
        );
        return Ok(None);
    };
    match Own::enter(&folder) {
        Ok(own) => {
            status
                .map_or_else(|error| anstream::eprintln!("hearth: {error}"), |status| heed(status.as_ref()));
            weigh(&folder);
            Ok(Some(own))
        }
        Err(error) => {
            let error = match failure(error) {
                Failure::Code(_, error) | Failure::Input(error) | Failure::Failed(error) => error,
                other => return Err(other),
            };
            anstream::eprintln!("hearth: {error}; the program runs as others do");
            Ok(None)
        }
    }
}

/// Goes back to where this process was: what it has started stays.
pub fn leave(own: &mut Own) {
    if let Err(error) = own.leave() {
        anstream::eprintln!("hearth: {error}; {} stays after the program", own.folder().display());
    }
}

/// One program cannot be in the cgroup of its set and in that of its class.
fn refuse_cpusets(status: &Status, set: bool) -> Outcome {
    let has_cpusets = status.policy.is_none() && status.planner.is_some();
    if set && has_cpusets {
        return Err(Failure::Input(anyhow!(
            "under `hearth start --no-scheduler` a set is a cgroup, and so is a class: a program cannot be in \
             both; leave --set or --class out"
        )));
    }
    Ok(())
}

/// Says so where nobody heeds classes.
fn heed(status: Option<&Status>) {
    if status.is_none_or(|status| status.isolation.is_none()) {
        anstream::eprintln!(
            "hearth: classes act under a Hearth that isolates (hearth start --planner masks,sets,gangs,cache-fair, \
             or with --cache-fair); until one runs the program runs as others do"
        );
    }
}

/// Says so where the class has no weight.
fn weigh(folder: &Path) {
    let Some(root) = folder.parent().filter(|root| !cgroup::is_on(root, "cpu")) else { return };
    anstream::eprintln!(
        "hearth: {} has no cpu.weight: the controller `cpu` is not on in {}/cgroup.subtree_control",
        folder.display(),
        root.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_linux::PlannerStatus;
    use serde_json::json;

    #[test]
    fn a_set_that_is_a_cgroup_is_refused_beside_a_class() {
        let bare = json!({ "schema": 1, "version": "1", "pid": 1, "up_s": 1.0, "cpus": [] });
        let bare: Status = serde_json::from_value(bare).unwrap();
        let cpusets = Status { planner: Some(PlannerStatus::default()), ..bare.clone() };
        let scheduler = Status { policy: Some("fair".into()), ..cpusets.clone() };
        assert!(matches!(refuse_cpusets(&cpusets, true), Err(Failure::Input(_))));
        for (status, set) in [(&cpusets, false), (&scheduler, true), (&bare, true)] {
            assert!(refuse_cpusets(status, set).is_ok());
        }
    }
}
