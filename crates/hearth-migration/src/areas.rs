//! The areas of a process's memory: where their pages are, and which of them may be moved.
//!
//! `numa_maps` tells of each area its memory policy and its pages by node, `maps` how long it is
//! and whether it is shared. Left alone is what its program placed itself, what others use too, and
//! what is no plain memory.

use super::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// An area of consecutive addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Bytes by node.
    pub bytes: BTreeMap<NodeId, u64>,
    /// Why its pages stay; nothing if they may be moved.
    pub stays: Option<Stays>,
}

/// Why the pages of an area stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stays {
    /// The program asked for a place: `mbind`, `set_mempolicy`.
    Policy,
    /// A file's pages, which belong to whoever reads the file.
    File,
    /// Memory that other processes have mapped too.
    Shared,
    /// Pages of hugetlbfs, which an administrator has set aside by node.
    Hugetlb,
    /// The kernel's own.
    Kernel,
}

impl Stays {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Policy => "the program asked for a place (mbind, set_mempolicy)",
            Self::File => "pages of files",
            Self::Shared => "shared with other processes",
            Self::Hugetlb => "huge pages of hugetlbfs",
            Self::Kernel => "the kernel's own",
        }
    }
}

/// The areas of a process.
pub fn read(pid: i32) -> io::Result<Vec<Area>> {
    let folder = Path::new("/proc").join(pid.to_string());
    let numa = fs::read(folder.join("numa_maps"))?;
    let maps = fs::read(folder.join("maps"))?;
    Ok(parse(&String::from_utf8_lossy(&numa), &String::from_utf8_lossy(&maps)))
}

/// Whether a thread asked for a place for all that it will allocate.
pub fn thread_has_policy(pid: i32, tid: i32) -> bool {
    // The kernel writes the first area alone into so small a buffer; most often that is code, which
    // has no policy of its own.
    let mut start = [0; 64];
    let path = format!("/proc/{pid}/task/{tid}/numa_maps");
    let Ok(length) = fs::File::open(path).and_then(|mut file| file.read(&mut start)) else { return false };
    let text = String::from_utf8_lossy(&start[..length]).into_owned();
    text.split_whitespace().nth(1).is_some_and(|policy| policy != "default")
}

/// Puts both files together. What cannot be read, or is in one of them alone, is left out.
pub fn parse(numa_maps: &str, maps: &str) -> Vec<Area> {
    let ranges: BTreeMap<u64, Range<'_>> = maps.lines().filter_map(Range::parse).collect();
    let area = |line: &str| {
        let (start, rest) = line.split_once(' ')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some(Area::new(start, ranges.get(&start)?, rest))
    };
    numa_maps.lines().filter_map(area).collect()
}

/// A line of `maps`.
struct Range<'a> {
    end: u64,
    is_shared: bool,
    path: &'a str,
}

impl<'a> Range<'a> {
    fn parse(line: &'a str) -> Option<(u64, Self)> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let is_shared = words.next()?.as_bytes().get(3)? == &b's';
        let path = words.nth(3).unwrap_or_default().trim();
        (start < end).then_some((start, Self { end, is_shared, path }))
    }

    /// Memory that has a name, and no file that outlives the processes that map it.
    fn is_memory(&self) -> bool {
        ["", "[heap]", "[stack]"].contains(&self.path)
            || ["[anon:", "[anon_shmem:", "/dev/zero (deleted)", "/memfd:", "/SYSV", "/dev/shm/"]
                .iter()
                .any(|start| self.path.starts_with(start))
    }
}

impl Area {
    fn new(start: u64, range: &Range<'_>, rest: &str) -> Self {
        let mut words = rest.split(' ');
        let is_default = words.next() == Some("default");
        let mut pages = Vec::new();
        let (mut page_bytes, mut sharers, mut is_huge) = (4096, 1, false);
        for word in words {
            is_huge |= word == "huge";
            let Some((key, value)) = word.split_once('=') else { continue };
            let Ok(value) = value.parse::<u64>() else { continue };
            match key {
                "kernelpagesize_kB" => page_bytes = value.saturating_mul(1024),
                "mapmax" => sharers = value,
                _ => pages.extend(key.strip_prefix('N').and_then(|n| n.parse().ok()).map(|n| (n, value))),
            }
        }
        let mut bytes = BTreeMap::new();
        for (node, count) in pages {
            let sum: &mut u64 = bytes.entry(NodeId(node)).or_default();
            *sum = sum.saturating_add(count.saturating_mul(page_bytes));
        }
        let stays = if is_huge {
            Some(Stays::Hugetlb)
        } else if range.path.starts_with("[v") {
            Some(Stays::Kernel)
        } else if !is_default {
            Some(Stays::Policy)
        } else if !range.is_memory() {
            Some(Stays::File)
        } else if range.is_shared && sharers > 1 {
            Some(Stays::Shared)
        } else {
            None
        };
        Self { start, end: range.end, bytes, stays }
    }

    /// Bytes that are in memory.
    pub fn present(&self) -> u64 {
        self.bytes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMA: &str = "\
00400000 default file=/bin/x mapped=149 N0=149 kernelpagesize_kB=4
01be2000 default heap anon=3 dirty=3 active=0 N0=1 N1=2 kernelpagesize_kB=4
7f0000000000 bind:1 anon=10 dirty=10 N1=10 kernelpagesize_kB=4
7f0000100000 default file=/dev/zero\\040(deleted) dirty=4 mapmax=2 N0=4 kernelpagesize_kB=4
7f0000200000 default file=/memfd:x\\040(deleted) dirty=4 N0=4 kernelpagesize_kB=4
7f0040000000 default file=/anon_hugepage\\040(deleted) huge anon=1 N0=1 kernelpagesize_kB=2048
7f0080000000 default
7ffc00000000 default stack anon=2 dirty=2 N1=2 kernelpagesize_kB=4
7ffc10000000 default
";
    const MAPS: &str = "\
00400000-004a5000 r-xp 00001000 00:02 12  /bin/x
01be2000-01be5000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f000000a000 rw-p 00000000 00:00 0 
7f0000100000-7f0000104000 rw-s 00000000 00:01 9   /dev/zero (deleted)
7f0000200000-7f0000204000 rw-s 00000000 00:01 10   /memfd:x (deleted)
7f0040000000-7f0040200000 rw-p 00000000 00:10 11   /anon_hugepage (deleted)
7f0080000000-7f0080004000 rw-p 00000000 00:00 0 
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
7ffc10000000-7ffc10002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn only_memory_that_nobody_placed_or_shares_may_be_moved() {
        let areas = parse(NUMA, MAPS);
        let stays: Vec<_> = areas.iter().map(|area| area.stays).collect();
        assert_eq!(
            stays,
            [
                Some(Stays::File),
                None,
                Some(Stays::Policy),
                Some(Stays::Shared),
                None,
                Some(Stays::Hugetlb),
                None,
                None,
                Some(Stays::Kernel)
            ]
        );
        assert_eq!(areas[1].bytes, BTreeMap::from([(NodeId(0), 4096), (NodeId(1), 8192)]));
        assert_eq!((areas[5].present(), areas[6].present()), (2 << 20, 0));
        assert_eq!((areas[7].start, areas[7].end), (0x7ffc_0000_0000, 0x7ffc_0002_1000));
    }

    #[test]
    fn every_policy_but_the_default_is_the_programs_wish() {
        for policy in ["bind:0", "prefer:1", "prefer (many):0-1", "interleave:0-1", "local", "weighted"] {
            let numa = format!("1000 {policy} anon=1 N0=1 kernelpagesize_kB=4");
            assert_eq!(parse(&numa, "1000-2000 rw-p 0 0:0 0")[0].stays, Some(Stays::Policy), "{policy}");
        }
    }

    #[test]
    fn the_areas_of_this_process_are_read() {
        let Ok(areas) = read(std::process::id() as i32) else {
            eprintln!("skipped: this kernel has no numa_maps");
            return;
        };
        assert!(areas.iter().any(|area| area.stays.is_none() && area.present() > 0));
        assert!(!thread_has_policy(std::process::id() as i32, std::process::id() as i32));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(numa in "(?s).{0,200}", maps in "(?s).{0,200}") {
            parse(&numa, &maps);
        }

        #[test]
        fn lines_with_any_numbers_are_read_or_left_out(
            start in any::<u64>(), end in any::<u64>(), node in any::<u32>(), pages in any::<u64>(),
            size in any::<u64>(), cut in 0usize..120,
        ) {
            let mut numa = format!("{start:x} default anon=1 N{node}={pages} N{node}={pages} kernelpagesize_kB={size}");
            numa.truncate(cut);
            for area in parse(&numa, &format!("{start:x}-{end:x} rw-p 0 0:0 0 ")) {
                area.present();
                prop_assert!(area.start < area.end);
            }
        }
    }
}
