//! Runs that were made before, and need not be made again.

use crate::{EmulateError, Run};
use hearth_machine::Machine;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A folder with what came of guests, a file for each: by all that makes a guest do what it does, so that what is found
/// is what would be counted again.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
}

/// The place of a guest's runs.
pub(crate) struct Slot {
    file: PathBuf,
}

impl Kept {
    /// Keeps runs in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// One that cannot be made or written to, or is a file.
    pub fn in_folder(folder: &Path) -> Result<Self, EmulateError> {
        fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).map_err(at(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// That of a guest's number, with what only its plugin is told.
    pub(crate) fn slot(&self, guest: u64, machine: &Machine, is_timed: bool) -> Slot {
        let mut hasher = DefaultHasher::new();
        (guest, machine.to_toml(), is_timed).hash(&mut hasher);
        Slot { file: self.folder.join(format!("{:016x}.json", hasher.finish())) }
    }
}

impl Slot {
    /// The runs that lie there; nothing if there are none, or something else.
    pub(crate) fn runs(&self) -> Option<Vec<Run>> {
        serde_json::from_slice(&fs::read(&self.file).ok()?).ok()
    }

    /// Keeps a guest's runs if all went well.
    pub(crate) fn keep(&self, runs: &[Result<Run, EmulateError>]) -> Result<(), EmulateError> {
        let Ok(runs) = runs.iter().map(Result::as_ref).collect::<Result<Vec<&Run>, _>>() else {
            return Ok(());
        };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut whole = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
        serde_json::to_writer(&mut whole, &runs).map_err(|error| at(&self.file)(error.into()))?;
        whole.persist(&self.file).map_err(|error| at(&self.file)(error.error))?;
        Ok(())
    }
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> EmulateError {
    let path = path.to_owned();
    move |error| EmulateError::Keep { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Region;

    fn run() -> Run {
        Run {
            scheduler: "kernel".into(),
            seed: 1,
            round: 2,
            cycle_ps: 500,
            frames: "1f".into(),
            scheduler_said: Vec::new(),
            measures: [("p99_us".to_owned(), 12.5)].into(),
            region: Region { name: "command-2".into(), guest_ns: 7, ..Region::default() },
        }
    }

    #[test]
    fn what_is_kept_is_found_where_all_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::in_folder(&folder.path().join("new")).unwrap();
        let machine = |name: &str| Machine::load(name).unwrap();
        let slot = kept.slot(1, &machine("dash-16"), true);
        assert!(slot.runs().is_none());
        slot.keep(&[Ok(run()), Err(EmulateError::Stopped)]).unwrap();
        assert!(slot.runs().is_none(), "what did not go well is tried again");
        slot.keep(&[Ok(run())]).unwrap();
        assert_eq!(kept.slot(1, &machine("dash-16"), true).runs(), Some(vec![run()]));
        for other in [
            kept.slot(2, &machine("dash-16"), true),
            kept.slot(1, &machine("sgi-4d340"), true),
            kept.slot(1, &machine("dash-16"), false),
        ] {
            assert!(other.runs().is_none());
        }
        fs::write(&slot.file, "[{").unwrap();
        assert!(slot.runs().is_none());
    }
}
