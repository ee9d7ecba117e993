//! DAMON, the kernel's monitor of data accesses, through `/sys/kernel/mm/damon/admin`.
//!
//! A `kdamond` is a thread of the kernel with one process to watch. Those of all users stand in one
//! list, which can only be replaced as a whole: so Hearth takes the list if it is empty, marks its
//! entries, and leaves it alone from the moment when it finds it changed.

use crate::Outcome;
use crate::error::errno;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const KDAMONDS: &str = "/sys/kernel/mm/damon/admin/kdamonds";

/// Entries of Hearth's: processes watched at a time.
pub const SLOTS: usize = 4;
/// How often a page of each region is looked at, and how often the counts begin anew.
const SAMPLE_US: u64 = 10_000;
const AGGREGATION_US: u64 = 200_000;
/// Regions that one process is divided into.
const REGIONS: (u64, u64) = (10, 100);
/// With given areas this interval has no effect: its odd value tells Hearth's entries from others.
const MARK_US: u64 = 60_104_729;

/// Modules of the kernel that have DAMON for themselves while they are on.
const EXCLUSIVE: [&str; 3] = ["damon_stat", "damon_reclaim", "damon_lru_sort"];

/// Addresses that are used alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first address.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
    /// How often a page of it is found used in a second.
    pub per_second: u32,
}

/// Hearth's entries, as the journal has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    slots: usize,
    mark_us: u64,
}

impl Claim {
    /// The entries that Hearth takes.
    pub const OURS: Self = Self { slots: SLOTS, mark_us: MARK_US };
}

/// Why DAMON cannot be used, and what to do.
pub fn refusal(root: &Path) -> Option<String> {
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
        Ok(_) if list.is_ours(Claim::OURS) => None,
        Ok(count) => {
            Some(format!("somebody else has DAMON ({KDAMONDS}/nr_kdamonds is {count}); it is left to them"))
        }
        Err(error) => Some(format!("{KDAMONDS}/nr_kdamonds: {error}")),
    }
}

/// The list of kdamonds.
#[derive(Debug)]
pub struct List(PathBuf);

impl List {
    /// This machine's.
    pub fn here() -> Self {
        Self(KDAMONDS.into())
    }

    fn write(&self, file: &str, value: impl ToString) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    fn number(&self, file: &str) -> io::Result<u64> {
        let text = fs::read_to_string(self.0.join(file))?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{text:?}")))
    }

    /// Whether the list is as Hearth left it. An entry without a context has not been set up yet.
    pub fn is_ours(&self, claim: Claim) -> bool {
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

    /// Whether an entry watches its process.
    pub fn is_on(&self, slot: usize) -> bool {
        fs::read_to_string(self.0.join(format!("{slot}/state"))).is_ok_and(|text| text.trim() == "on")
    }

    /// Ends the thread of an entry and forgets whom it watched.
    pub fn stop(&self, slot: usize) -> io::Result<()> {
        if self.is_on(slot) {
            // It may end by itself in this moment.
            match self.write(&format!("{slot}/state"), "off") {
                Err(error) if self.is_on(slot) => return Err(error),
                _ => {}
            }
        }
        self.write(&format!("{slot}/contexts/0/targets/nr_targets"), 0)
    }

    /// Has an entry watch areas of a process, in place of what it watched.
    pub fn start(&self, slot: usize, pid: i32, areas: &[(u64, u64)]) -> io::Result<()> {
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

    /// What is in use of what an entry watches, by address.
    pub fn read(&self, slot: usize) -> io::Result<Vec<Region>> {
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
                all.push(Region { start, end, per_second: per_second as u32 });
            }
        }
        all.sort_unstable_by_key(|region| region.start);
        Ok(all)
    }
}

/// Makes the entries of a claim.
pub(crate) fn make(claim: Claim) -> Result<(), Errno> {
    List::here().take(claim).map_err(errno)
}

/// Removes the entries of a claim, if they are still Hearth's.
pub(crate) fn take_back(claim: Claim) -> Outcome {
    take_back_from(&List::here(), claim)
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

#[cfg(test)]
mod tests;
