//! Samples by DAMON, the kernel's monitor of data accesses, through `/sys/kernel/mm/damon/admin`.
//!
//! A `kdamond` is a thread of the kernel with one process to watch. Those of all users stand in one
//! list, which can only be replaced as a whole: so Hearth takes the list if it is empty, marks its
//! entries, and leaves it alone from the moment when it finds it changed.

use super::{Backend, Lost, Sampler, Seen};
use crate::journal::{Change, Journal, Outcome};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// Processes watched at a time.
const SLOTS: usize = 4;
/// How often a page of each region is looked at, and how often the counts begin anew.
const SAMPLE_US: u64 = 10_000;
const AGGREGATION_US: u64 = 200_000;
/// Regions that one process is divided into.
const REGIONS: (u64, u64) = (10, 100);
/// With given areas this interval has no effect: its odd value tells Hearth's entries from others.
const MARK_US: u64 = 60_104_729;

/// Modules of the kernel that have DAMON for themselves while they are on.
const EXCLUSIVE: [&str; 3] = ["damon_stat", "damon_reclaim", "damon_lru_sort"];

/// Hearth's entries, as the journal has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    slots: usize,
    mark_us: u64,
}

/// Why DAMON cannot be used, and what to do.
pub(super) fn refusal(root: &Path) -> Option<String> {
    let list = List(root.join(KDAMONDS.trim_start_matches('/')));
    if !list.0.is_dir() {
        return Some("this kernel has no DAMON (CONFIG_DAMON_VADDR, CONFIG_DAMON_SYSFS)".into());
    }
    for module in EXCLUSIVE {
        let path = root.join("sys/module").join(module).join("parameters/enabled");
        if fs::read_to_string(path).is_ok_and(|text| text.trim() == "Y") {
            return Some(format!(
                "{module} has DAMON for itself; echo N > /sys/module/{module}/parameters/enabled gives it to Hearth"
            ));
        }
    }
    match list.number("nr_kdamonds") {
        Ok(0) => None,
        Ok(_) if list.is_ours(Claim { slots: SLOTS, mark_us: MARK_US }) => None,
        Ok(count) => {
            Some(format!("somebody else has DAMON ({KDAMONDS}/nr_kdamonds is {count}); it is left to them"))
        }
        Err(error) => Some(format!("{KDAMONDS}/nr_kdamonds: {error}")),
    }
}

/// The list of kdamonds.
struct List(PathBuf);

impl List {
    fn write(&self, file: &str, value: impl ToString) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    fn number(&self, file: &str) -> io::Result<u64> {
        let text = fs::read_to_string(self.0.join(file))?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{text:?}")))
    }

    /// Whether the list is as Hearth left it. An entry without a context has not been set up yet.
    fn is_ours(&self, claim: Claim) -> bool {
        let entry = |slot: usize| match self.number(&format!("{slot}/contexts/nr_contexts")) {
            Ok(0) => true,
            _ => self
                .number(&format!("{slot}/contexts/0/monitoring_attrs/intervals/update_us"))
                .is_ok_and(|mark| mark == claim.mark_us),
        };
        self.number("nr_kdamonds").is_ok_and(|count| count == claim.slots as u64)
            && (0..claim.slots).all(entry)
    }

    fn take(&self, claim: Claim) -> io::Result<()> {
        if self.number("nr_kdamonds")? != 0 {
            return Err(Errno::BUSY.into());
        }
        self.write("nr_kdamonds", claim.slots)?;
        for slot in 0..claim.slots {
            self.write(&format!("{slot}/contexts/nr_contexts"), 1)?;
            let context = |file: &str| format!("{slot}/contexts/0/{file}");
            for (file, value) in [
                ("monitoring_attrs/intervals/update_us", claim.mark_us),
                ("monitoring_attrs/intervals/aggr_us", AGGREGATION_US),
                ("monitoring_attrs/intervals/sample_us", SAMPLE_US),
                ("monitoring_attrs/nr_regions/min", REGIONS.0),
                ("monitoring_attrs/nr_regions/max", REGIONS.1),
                ("schemes/nr_schemes", 1),
                ("schemes/0/access_pattern/sz/max", u64::MAX),
                ("schemes/0/access_pattern/nr_accesses/min", 1),
                ("schemes/0/access_pattern/nr_accesses/max", u64::from(u32::MAX)),
                ("schemes/0/access_pattern/age/max", u64::from(u32::MAX)),
            ] {
                self.write(&context(file), value)?;
            }
            self.write(&context("operations"), "fvaddr")?;
            self.write(&context("schemes/0/action"), "stat")?;
        }
        Ok(())
    }

    fn is_on(&self, slot: usize) -> bool {
        fs::read_to_string(self.0.join(format!("{slot}/state"))).is_ok_and(|text| text.trim() == "on")
    }

    /// Ends the thread of an entry and forgets whom it watched.
    fn stop(&self, slot: usize) -> io::Result<()> {
        if self.is_on(slot) {
            // It may end by itself in this moment.
            match self.write(&format!("{slot}/state"), "off") {
                Err(error) if self.is_on(slot) => return Err(error),
                _ => {}
            }
        }
        self.write(&format!("{slot}/contexts/0/targets/nr_targets"), 0)
    }

    fn start(&self, slot: usize, pid: i32, areas: &[(u64, u64)]) -> io::Result<()> {
        self.stop(slot)?;
        let target = |file: &str| format!("{slot}/contexts/0/targets/0/{file}");
        self.write(&format!("{slot}/contexts/0/targets/nr_targets"), 1)?;
        self.write(&target("pid_target"), pid)?;
        self.write(&target("regions/nr_regions"), areas.len())?;
        for (index, (start, end)) in areas.iter().enumerate() {
            self.write(&target(&format!("regions/{index}/start")), start)?;
            self.write(&target(&format!("regions/{index}/end")), end)?;
        }
        self.write(&format!("{slot}/state"), "on")
    }

    fn read(&self, slot: usize) -> io::Result<Vec<Seen>> {
        self.write(&format!("{slot}/state"), "update_schemes_tried_regions")?;
        let tried = format!("{slot}/contexts/0/schemes/0/tried_regions");
        let mut all = Vec::new();
        for entry in fs::read_dir(self.0.join(&tried))?.flatten() {
            let name = entry.file_name();
            let Some(index) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            else {
                continue;
            };
            let number = |file: &str| self.number(&format!("{tried}/{index}/{file}"));
            let (start, end, accesses) = (number("start")?, number("end")?, number("nr_accesses")?);
            let most = AGGREGATION_US / SAMPLE_US;
            let per_second = accesses.min(most) * (1_000_000 / AGGREGATION_US);
            if start < end {
                all.push(Seen { start, end, per_second: per_second as u32 });
            }
        }
        all.sort_unstable_by_key(|seen| seen.start);
        Ok(all)
    }
}

/// Makes the entries of a claim.
pub(crate) fn make(claim: Claim) -> Result<(), Errno> {
    let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    List(KDAMONDS.into()).take(claim).map_err(errno)
}

/// Removes the entries of a claim, if they are still Hearth's.
pub(crate) fn take_back(claim: Claim) -> Outcome {
    take_back_from(&List(KDAMONDS.into()), claim)
}

fn take_back_from(list: &List, claim: Claim) -> Outcome {
    match list.number("nr_kdamonds") {
        Err(_) => return Outcome::Gone,
        Ok(0) => return Outcome::Already,
        Ok(_) if !list.is_ours(claim) => return Outcome::Changed("somebody else has set it up anew".into()),
        Ok(_) => {}
    }
    let stop = |slot| match list.number(&format!("{slot}/contexts/nr_contexts")) {
        Ok(0) => Ok(()),
        _ => list.stop(slot),
    };
    match (0..claim.slots).try_for_each(stop).and_then(|()| list.write("nr_kdamonds", 0)) {
        Ok(()) => Outcome::Undone(1),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

pub(super) struct Damon {
    list: List,
    journal: Arc<Mutex<Journal>>,
    claim: Option<Claim>,
    /// Whom each entry watches.
    watched: [Option<i32>; SLOTS],
}

impl Damon {
    pub(super) fn new(journal: Arc<Mutex<Journal>>) -> Self {
        Self { list: List(KDAMONDS.into()), journal, claim: None, watched: [None; SLOTS] }
    }

    /// Takes the list when it is needed first, and sees to it that it is still Hearth's.
    fn hold(&mut self) -> Result<(), Lost> {
        match self.claim {
            Some(claim) if self.list.is_ours(claim) => Ok(()),
            Some(_) => {
                self.watched = [None; SLOTS];
                Err(Lost::Backend("somebody else uses DAMON now".into()))
            }
            None => {
                let claim = Claim { slots: SLOTS, mark_us: MARK_US };
                let mut journal = self.journal.lock().map_err(|_| Lost::Backend("the journal".into()))?;
                let refused = journal.make(vec![Change::Damon { claim }]);
                match refused.map_err(|error| Lost::Backend(error.to_string()))?.first() {
                    Some((_, error)) => Err(Lost::Backend(format!("DAMON cannot be set up: {error}"))),
                    None => {
                        self.claim = Some(claim);
                        Ok(())
                    }
                }
            }
        }
    }

    fn slot(&self, pid: i32) -> Option<usize> {
        self.watched.iter().position(|watched| *watched == Some(pid))
    }

    /// What an error means: the process may have ended meanwhile.
    fn lost(pid: i32, error: &io::Error) -> Lost {
        if !Path::new("/proc").join(pid.to_string()).exists() {
            return Lost::Gone;
        }
        Lost::Backend(format!("DAMON: {error}"))
    }
}

impl Sampler for Damon {
    fn backend(&self) -> Backend {
        Backend::Damon
    }

    fn most(&self) -> usize {
        SLOTS
    }

    fn watch(&mut self, pid: i32, areas: &[(u64, u64)]) -> Result<(), Lost> {
        self.hold()?;
        let free = || self.watched.iter().position(Option::is_none);
        let Some(slot) = self.slot(pid).or_else(free) else {
            return Err(Lost::Backend("more processes than kdamonds".into()));
        };
        self.watched[slot] = Some(pid);
        let started = self.list.start(slot, pid, areas).map_err(|error| Self::lost(pid, &error));
        if started.is_err() {
            self.release(pid);
        }
        started
    }

    fn read(&mut self, pid: i32) -> Result<Vec<Seen>, Lost> {
        self.hold()?;
        let slot = self.slot(pid).ok_or(Lost::Gone)?;
        if !self.list.is_on(slot) {
            return Err(Lost::Gone);
        }
        self.list.read(slot).map_err(|error| Self::lost(pid, &error))
    }

    fn release(&mut self, pid: i32) {
        let Some(slot) = self.slot(pid) else { return };
        self.watched[slot] = None;
        if self.claim.is_some_and(|claim| self.list.is_ours(claim)) {
            // What cannot be stopped here ends with its process, or when the journal is undone.
            let _ = self.list.stop(slot);
        }
    }
}

#[cfg(test)]
mod tests;
