//! Samples by idle page tracking (`/sys/kernel/mm/page_idle/bitmap`): each page is marked idle, and a
//! moment later those that are not idle any more were used.

use super::{Backend, Lost, Sampler, Seen, WINDOW};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;

const PAGE_BYTES: u64 = 4096;
/// Processes watched at a time, and pages of one that are looked at.
const MOST: usize = 2;
const MOST_PAGES: u64 = 16 << 10;
/// An entry of `pagemap`: whether the page is in memory, and where.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

pub(super) fn refusal(root: &Path) -> Option<String> {
    (!bitmap(root).exists())
        .then(|| "this kernel has no idle page tracking (CONFIG_IDLE_PAGE_TRACKING)".to_owned())
}

fn bitmap(root: &Path) -> PathBuf {
    root.join("sys/kernel/mm/page_idle/bitmap")
}

pub(super) struct Idle {
    bitmap: PathBuf,
    watched: HashMap<i32, Watched>,
}

struct Watched {
    areas: Vec<(u64, u64)>,
    /// Where the next look begins: each looks at a part of a large process.
    next: u64,
}

impl Idle {
    pub(super) fn new(root: &Path) -> Self {
        Self { bitmap: bitmap(root), watched: HashMap::new() }
    }
}

impl Sampler for Idle {
    fn backend(&self) -> Backend {
        Backend::PageIdle
    }

    fn most(&self) -> usize {
        MOST
    }

    fn watch(&mut self, pid: i32, areas: &[(u64, u64)]) -> Result<(), Lost> {
        let next = self.watched.get(&pid).map_or(0, |watched| watched.next);
        self.watched.insert(pid, Watched { areas: areas.to_vec(), next });
        Ok(())
    }

    fn read(&mut self, pid: i32) -> Result<Vec<Seen>, Lost> {
        let watched = self.watched.get_mut(&pid).ok_or(Lost::Gone)?;
        let pages = choose(&watched.areas, watched.next);
        watched.next = pages.last().map_or(0, |last| last + PAGE_BYTES);
        let lost = |error: io::Error| super::lost(pid, &error);
        let frames = File::open(format!("/proc/{pid}/pagemap"))
            .and_then(|pagemap| frames(&pagemap, &pages))
            .map_err(lost)?;
        let bitmap = OpenOptions::new().read(true).write(true).open(&self.bitmap).map_err(lost)?;
        mark_idle(&bitmap, &frames).map_err(lost)?;
        sleep(WINDOW);
        used(&bitmap, &frames).map_err(lost)
    }

    fn release(&mut self, pid: i32) {
        self.watched.remove(&pid);
    }
}

/// The next pages of the areas from an address on, and from the beginning again.
fn choose(areas: &[(u64, u64)], from: u64) -> Vec<u64> {
    let behind = areas.iter().map(|&(start, end)| (start.max(from), end));
    let before = areas.iter().map(|&(start, end)| (start, end.min(from)));
    let pages =
        behind.chain(before).flat_map(|(start, end)| (start..end.max(start)).step_by(PAGE_BYTES as usize));
    pages.take(MOST_PAGES as usize).collect()
}

/// The page frames of those pages that are in memory.
fn frames(pagemap: &File, pages: &[u64]) -> io::Result<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    for &page in pages {
        let mut entry = [0; 8];
        if pagemap.read_at(&mut entry, page / PAGE_BYTES * 8)? < entry.len() {
            continue;
        }
        let entry = u64::from_ne_bytes(entry);
        if entry & PRESENT != 0 && entry & FRAME != 0 {
            all.push((page, entry & FRAME));
        }
    }
    Ok(all)
}

/// Sets the bits of frames; where the kernel finds 0 it leaves bits as they are.
fn mark_idle(bitmap: &File, frames: &[(u64, u64)]) -> io::Result<()> {
    let mut words: BTreeMap<u64, u64> = BTreeMap::new();
    frames.iter().for_each(|(_, frame)| *words.entry(frame / 64).or_default() |= 1 << (frame % 64));
    words.iter().try_for_each(|(word, bits)| bitmap.write_all_at(&bits.to_ne_bytes(), word * 8))
}

/// Which pages were used since: those that are not idle.
fn used(bitmap: &File, frames: &[(u64, u64)]) -> io::Result<Vec<Seen>> {
    let per_second = (1000 / WINDOW.as_millis()) as u32;
    let mut all: Vec<Seen> = Vec::new();
    for &(page, frame) in frames {
        let mut word = [0; 8];
        bitmap.read_exact_at(&mut word, frame / 64 * 8)?;
        if u64::from_ne_bytes(word) >> (frame % 64) & 1 == 1 {
            continue;
        }
        match all.last_mut() {
            Some(last) if last.end == page => last.end += PAGE_BYTES,
            _ => all.push(Seen { start: page, end: page + PAGE_BYTES, per_second }),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_goes_on_where_the_one_before_ended() {
        let areas = [(0, 2 * PAGE_BYTES), (0x10000, 0x10000 + MOST_PAGES * PAGE_BYTES)];
        let first = choose(&areas, 0);
        assert_eq!((first.len() as u64, first[0], first[2]), (MOST_PAGES, 0, 0x10000));
        let second = choose(&areas, first.last().unwrap() + PAGE_BYTES);
        assert_eq!(
            second[..3],
            [0x10000 + (MOST_PAGES - 2) * PAGE_BYTES, 0x10000 + (MOST_PAGES - 1) * PAGE_BYTES, 0]
        );
        assert_eq!(choose(&[], 7), [0; 0]);
    }

    #[test]
    fn pages_that_are_not_idle_any_more_were_used() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64).unwrap();
        let frames: Vec<_> =
            [3, 4, 70, 200].iter().enumerate().map(|(i, f)| (i as u64 * PAGE_BYTES, *f)).collect();
        mark_idle(&file, &frames).unwrap();
        assert_eq!(used(&file, &frames).unwrap(), []);
        file.write_all_at(&0_u64.to_ne_bytes(), 0).unwrap();
        assert_eq!(used(&file, &frames).unwrap(), [Seen { start: 0, end: 2 * PAGE_BYTES, per_second: 100 }]);
        assert!(used(&file, &[(0, 1 << 20)]).is_err());
    }

    #[test]
    fn pages_of_this_process_have_frames_for_root() {
        let value = Box::new(1_u64);
        let page = (&raw const *value as u64) & !(PAGE_BYTES - 1);
        let found = File::open("/proc/self/pagemap").and_then(|pagemap| frames(&pagemap, &[page]));
        match found {
            Ok(found) if !found.is_empty() => assert_eq!(found[0].0, page),
            _ => eprintln!("skipped: page frames are not shown here"),
        }
    }
}
