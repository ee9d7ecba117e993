//! What moves as one: a page, or a huge page.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A base page.
pub const PAGE_BYTES: u64 = 4096;
/// What one entry of a middle page table maps.
pub const HUGE_BYTES: u64 = 2 << 20;

/// A page or a huge page that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// Its first address.
    pub address: u64,
    /// `PAGE_BYTES` or `HUGE_BYTES`.
    pub bytes: u64,
}

impl Unit {
    /// How many base pages it stands for, as a power of two.
    pub fn order(self) -> u8 {
        (self.bytes / PAGE_BYTES).max(1).ilog2() as u8
    }
}

/// `struct pm_scan_arg` of `linux/fs.h`.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_any_mask: u64,
    return_mask: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const _: () = assert!(size_of::<Scan>() == 96 && size_of::<Region>() == 24);

/// `_IOWR('f', 16, struct pm_scan_arg)`
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_PRESENT: u64 = 1 << 3;
const IS_HUGE: u64 = 1 << 6;

/// Finds the pages of a process.
pub struct Pagemap {
    file: File,
}

impl Pagemap {
    /// Of a process.
    pub fn open(pid: i32) -> io::Result<Self> {
        Ok(Self { file: File::open(format!("/proc/{pid}/pagemap"))? })
    }

    /// Appends the pages from `start` on that are in memory, at most `limit` in all, and returns where
    /// it stopped. Kernels before 6.7 do not tell what is there: then each address is one, and a huge
    /// page moves with its first.
    pub fn units(&self, start: u64, end: u64, limit: usize, units: &mut Vec<Unit>) -> u64 {
        let mut at = start;
        while at < end && units.len() < limit {
            let mut regions = [Region::default(); 64];
            let Some((count, next)) = self.scan(at, end, &mut regions) else {
                return plain(at, end, limit, units);
            };
            for region in &regions[..count] {
                let stopped = cut(region, limit, units);
                if stopped < region.end {
                    return stopped;
                }
            }
            at = next.max(at + PAGE_BYTES);
        }
        at.min(end)
    }

    /// Ranges that are in memory, and how far it looked; `None` if the kernel does not tell.
    fn scan(&self, start: u64, end: u64, regions: &mut [Region]) -> Option<(usize, u64)> {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end,
            walk_end: 0,
            regions: regions.as_mut_ptr() as u64,
            regions_length: regions.len() as u64,
            max_pages: 0,
            category_inverted: 0,
            category_mask: IS_PRESENT,
            category_any_mask: 0,
            return_mask: IS_PRESENT | IS_HUGE,
        };
        // SAFETY: the kernel reads and writes a structure of the size that it names, and at most so many
        // regions as there are.
        let count = unsafe { libc::ioctl(self.file.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
        let count = usize::try_from(count).ok()?;
        Some((count.min(regions.len()), scan.walk_end))
    }
}

/// A range that is in memory, in pages; returns where the limit stopped it.
fn cut(region: &Region, limit: usize, units: &mut Vec<Unit>) -> u64 {
    let mut address = region.start;
    while address < region.end && units.len() < limit {
        let is_huge = region.categories & IS_HUGE != 0
            && address.is_multiple_of(HUGE_BYTES)
            && region.end - address >= HUGE_BYTES;
        let bytes = if is_huge { HUGE_BYTES } else { PAGE_BYTES };
        units.push(Unit { address, bytes });
        address = address.saturating_add(bytes);
    }
    address.min(region.end)
}

fn plain(start: u64, end: u64, limit: usize, units: &mut Vec<Unit>) -> u64 {
    let region = Region { start, end, categories: 0 };
    cut(&region, limit, units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_one_unit_each() {
        let mut units = Vec::new();
        let region = Region { start: 0, end: 2 * HUGE_BYTES + PAGE_BYTES, categories: IS_PRESENT | IS_HUGE };
        assert_eq!(cut(&region, 10, &mut units), region.end);
        assert_eq!(units.iter().map(|unit| unit.order()).collect::<Vec<_>>(), [9, 9, 0]);
    }

    #[test]
    fn a_limit_says_where_to_go_on() {
        let mut units = Vec::new();
        assert_eq!(plain(0, 10 * PAGE_BYTES, 3, &mut units), 3 * PAGE_BYTES);
        assert_eq!(units.len(), 3);
        assert_eq!(plain(u64::MAX - 10, u64::MAX, 4, &mut units), u64::MAX);
    }

    #[test]
    fn pages_of_this_process_that_were_written_to_are_there() {
        let memory = vec![1_u8; 64 << 10];
        let start = memory.as_ptr() as u64 & !(PAGE_BYTES - 1);
        let mut units = Vec::new();
        let pagemap = Pagemap::open(std::process::id() as i32).unwrap();
        pagemap.units(start, start + (64 << 10), 100, &mut units);
        assert!(units.iter().any(|unit| unit.address >= start), "{units:?}");
    }
}
