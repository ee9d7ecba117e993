//! Accessed bits of whole areas: cleared through `/proc/PID/clear_refs`, counted by `smaps` a moment
//! later.
//!
//! It tells what share of an area's pages is in use, not which. And clearing the bits makes pages
//! look older to reclaim than they are, so this is used only where there is nothing better.

use super::{Backend, Lost, Sampler, Seen, WINDOW};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;

/// Processes watched at a time: each costs two walks of its page tables a look.
const MOST: usize = 2;

pub(super) fn refusal(root: &Path) -> Option<String> {
    let there = root.join("proc/self/clear_refs").exists() && root.join("proc/self/smaps").exists();
    (!there).then(|| "no /proc/PID/clear_refs: this kernel was built without CONFIG_PROC_PAGE_MONITOR".into())
}

#[derive(Default)]
pub(super) struct Refs {
    watched: HashMap<i32, Vec<(u64, u64)>>,
}

impl Refs {
    pub(super) fn new() -> Self {
        Self::default()
    }
}

impl Sampler for Refs {
    fn backend(&self) -> Backend {
        Backend::ClearRefs
    }

    fn most(&self) -> usize {
        MOST
    }

    fn watch(&mut self, pid: i32, areas: &[(u64, u64)]) -> Result<(), Lost> {
        self.watched.insert(pid, areas.to_vec());
        Ok(())
    }

    fn read(&mut self, pid: i32) -> Result<Vec<Seen>, Lost> {
        let areas = self.watched.get(&pid).ok_or(Lost::Gone)?;
        fs::write(format!("/proc/{pid}/clear_refs"), "1").map_err(|error| super::lost(pid, &error))?;
        sleep(WINDOW);
        let smaps = fs::read(format!("/proc/{pid}/smaps")).map_err(|error| super::lost(pid, &error))?;
        let mut seen = parse(&String::from_utf8_lossy(&smaps));
        seen.retain(|seen| areas.iter().any(|&(start, end)| start <= seen.start && seen.end <= end));
        Ok(seen)
    }

    fn release(&mut self, pid: i32) {
        self.watched.remove(&pid);
    }
}

/// The areas of `smaps`, each with the share of its pages that was in use within the window.
pub(super) fn parse(smaps: &str) -> Vec<Seen> {
    let per_second = (1000 / WINDOW.as_millis()) as u64;
    let mut all = Vec::new();
    let mut area: Option<(u64, u64)> = None;
    let mut resident_kb = 0;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(range) = first.split_once('-').and_then(|(start, end)| {
            Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        }) {
            area = (range.0 < range.1).then_some(range);
            resident_kb = 0;
            continue;
        }
        let Some(value) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
        match (first, area) {
            ("Rss:", _) => resident_kb = value,
            ("Referenced:", Some((start, end))) if resident_kb > 0 => {
                let share =
                    u128::from(value.min(resident_kb)) * u128::from(per_second) / u128::from(resident_kb);
                all.push(Seen { start, end, per_second: share as u32 });
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_area_is_used_as_much_as_its_pages_are() {
        let smaps = "\
7f00-9f00 rw-p 00000000 00:00 0 
Size:                 64 kB
Rss:                  64 kB
Referenced:           16 kB
aa00-bb00 rw-p 00000000 00:00 0 
Rss:                   0 kB
Referenced:            0 kB
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
Rss:                   4 kB
Referenced:            4 kB
";
        let seen = parse(smaps);
        assert_eq!(seen[0], Seen { start: 0x7f00, end: 0x9f00, per_second: 25 });
        assert_eq!((seen.len(), seen[1].per_second), (2, 100));
    }

    #[test]
    fn memory_that_this_process_uses_is_seen() {
        if refusal(Path::new("/")).is_some() {
            eprintln!("skipped: no clear_refs");
            return;
        }
        let pid = std::process::id() as i32;
        let mut refs = Refs::new();
        refs.watch(pid, &[(0, u64::MAX)]).unwrap();
        match refs.read(pid) {
            Ok(seen) => assert!(!seen.is_empty()),
            Err(lost) => eprintln!("skipped: {lost:?}"),
        }
        refs.release(pid);
        assert_eq!(refs.read(pid), Err(Lost::Gone));
    }

    proptest! {
        #[test]
        fn no_smaps_is_too_strange(text in "(?s).{0,300}", rss in any::<u64>(), used in any::<u64>()) {
            parse(&text);
            let seen = parse(&format!("0-1000 rw-p 0 0:0 0\nRss: {rss} kB\nReferenced: {used} kB"));
            prop_assert!(seen.iter().all(|seen| seen.per_second <= 100));
        }
    }
}
