//! From samples to moves: what a round of the worker does for the processes that it samples.

use super::NodeId;
use super::followed::Followed;
use super::mover::{self, Done, Reason, Task};
use super::sampler::Seen;
use super::units::{HUGE_BYTES, PAGE_BYTES, Pagemap, Unit};
use super::worker::Worker;
use hearth_host::clock::thread_cpu_time;
use hearth_policy::snapshot::{Moved, Page, Process};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// Pages of a process that are looked at in a round.
const MOST_UNITS: usize = 16 << 10;

impl Worker {
    /// Has the planner decide by new samples of all that are sampled, and takes up what it decides.
    pub(super) fn plan(&mut self) {
        let cpu = thread_cpu_time();
        // What was decided comes first: samples wait until it is done.
        let sampled = if self.mover.is_idle() { self.sample() } else { HashMap::new() };
        if self.is_over() {
            return;
        }
        let mut pages = sampled;
        let watched: Vec<i32> = pages.keys().copied().collect();
        let process = |(&pid, one): (&i32, &Followed)| (pid, process(one, pages.remove(&pid)));
        let processes: BTreeMap<i32, Process> = self.followed.iter().map(process).collect();
        self.planning.step(self.now_ns(), self.nodes.numbers(), PAGE_BYTES, processes);
        self.take_up(&watched);
        self.planning.account.cpu_s += thread_cpu_time().saturating_sub(cpu).as_secs_f64();
    }

    /// The pages that were used of each process that is sampled.
    fn sample(&mut self) -> HashMap<i32, Vec<Page>> {
        let mut used = HashMap::new();
        let sampled: Vec<i32> =
            self.followed.iter().filter(|(_, one)| one.sampled.is_some()).map(|(pid, _)| *pid).collect();
        for pid in sampled {
            if self.is_over() {
                break;
            }
            let Some(sampler) = self.sampler.as_mut() else { break };
            match sampler.read(pid) {
                Ok(seen) => used.extend(self.gather(pid, &seen).map(|pages| (pid, pages))),
                Err(lost) => self.lose(pid, lost),
            }
        }
        used
    }

    /// The pages that were used of one process; nothing if it is gone.
    fn gather(&mut self, pid: i32, seen: &[Seen]) -> Option<Vec<Page>> {
        let one = self.followed.get_mut(&pid)?;
        let (areas, since) = one.sampled.as_mut()?;
        let elapsed_s = since.elapsed().as_secs_f64();
        *since = Instant::now();
        if one.ran.is_empty() {
            return Some(Vec::new());
        }
        let units = find(pid, areas, seen, &mut one.cursor);
        let addresses: Vec<u64> = units.iter().map(|(unit, _)| unit.address).collect();
        match mover::query(pid, &addresses) {
            Ok(homes) => {
                let pages = units.into_iter().zip(homes).filter_map(|((unit, per_second), home)| {
                    let accesses = f64::from(per_second) * elapsed_s;
                    Some(page(unit, home.ok()?, accesses))
                });
                Some(pages.collect())
            }
            Err(error) => {
                let reason = Reason::of_call(error);
                self.tally.fail(reason, addresses.len() as u64);
                one.report.tally.fail(reason, addresses.len() as u64);
                if reason == Reason::ProcessGone {
                    self.forget(pid);
                    return None;
                }
                Some(Vec::new())
            }
        }
    }

    /// Has the mover do what the plan says. `watched` are those of whom samples were taken.
    fn take_up(&mut self, watched: &[i32]) {
        self.mover.limit(self.planning.plan.bytes_per_second);
        let mut asked: HashMap<i32, usize> = HashMap::new();
        for found in &self.planning.plan.moves {
            // A plan that was checked names pages of its snapshot.
            let Some(page) = self.planning.page(found) else { continue };
            let unit = Unit { address: page.address, bytes: PAGE_BYTES << page.order };
            let to = NodeId(u32::try_from(found.to).unwrap_or(u32::MAX));
            *asked.entry(found.process).or_default() += 1;
            self.mover.add(Task { pid: found.process, unit, to });
        }
        let now = Instant::now();
        for pid in watched {
            if let Some(one) = self.followed.get_mut(pid).filter(|one| one.sampled.is_some()) {
                one.sampled_for(asked.get(pid).copied().unwrap_or(0), now);
            }
        }
    }

    /// Moves what was decided, as far as the quota goes.
    pub(super) fn move_pages(&mut self) {
        while !self.is_over() {
            let done = self.mover.step();
            if done.is_empty() {
                break;
            }
            let at_ns = self.now_ns();
            let is_gone = done.iter().any(|(_, end)| *end == Err(Reason::ProcessGone));
            let pid = done[0].0.pid;
            done.into_iter().for_each(|done| self.account(at_ns, done));
            if is_gone {
                self.forget(pid);
            } else if let Some(one) = self.followed.get_mut(&pid) {
                one.look_soon(Instant::now());
            }
        }
    }

    fn account(&mut self, at_ns: u64, (Task { pid, unit, to }, end): Done) {
        let pages = unit.bytes / PAGE_BYTES;
        let mut tallies = vec![&mut self.tally];
        if let Some(one) = self.followed.get_mut(&pid) {
            one.changed = true;
            tallies.push(&mut one.report.tally);
        }
        let end = match end {
            Ok(node) if node == to => Ok(node),
            // It has gone elsewhere meanwhile.
            Ok(_) => Err(Reason::Busy),
            Err(reason) => Err(reason),
        };
        match end {
            Ok(_) => tallies.iter_mut().for_each(|tally| tally.add(pages, unit.bytes)),
            Err(reason) => tallies.iter_mut().for_each(|tally| tally.fail(reason, pages)),
        }
        let end = end.map(|node| node.0 as usize).map_err(Reason::refusal);
        self.planning.ended(Moved { process: pid, address: unit.address, at_ns, end });
    }
}

/// What the planner is told of a process.
fn process(one: &Followed, pages: Option<Vec<Page>>) -> Process {
    let permille = |(node, part): (&NodeId, &f64)| (node.0 as usize, (part * 1000.0).round() as u32);
    Process {
        began: one.start,
        // Only with samples does it matter where they came from.
        ran_permille: pages.iter().flat_map(|_| one.ran.iter().map(permille)).collect(),
        is_watched: one.sampled.is_some(),
        pages: pages.unwrap_or_default(),
    }
}

/// What the planner is told of a page. Nobody sees which part of a huge page is used: it counts as if all were.
fn page(unit: Unit, home: NodeId, accesses: f64) -> Page {
    let accesses = accesses * (unit.bytes / PAGE_BYTES) as f64;
    Page { address: unit.address, home: home.0 as usize, accesses: accesses as u32, order: unit.order() }
}

/// Pages of the areas that were seen in use, from the cursor on and from the beginning again, with how
/// often each is used in a second.
fn find(pid: i32, areas: &[(u64, u64)], seen: &[Seen], cursor: &mut u64) -> Vec<(Unit, u32)> {
    let Ok(pagemap) = Pagemap::open(pid) else { return Vec::new() };
    let used: Vec<Seen> = seen.iter().filter(|seen| seen.per_second > 0).copied().collect();
    let stretches = stretches(areas, &used);
    let from = std::mem::take(cursor);
    let behind = stretches.iter().map(|&(start, end)| (start.max(from), end));
    let before = stretches.iter().map(|&(start, end)| (start, end.min(from)));
    let mut units = Vec::new();
    for (start, end) in behind.chain(before).filter(|(start, end)| start < end) {
        let stopped = pagemap.units(start, end, MOST_UNITS, &mut units);
        if stopped < end {
            *cursor = stopped;
            break;
        }
    }
    let rate = |unit: Unit| {
        let next = used.partition_point(|seen| seen.start <= unit.address);
        let seen = used[..next].last().filter(|seen| unit.address < seen.end)?;
        Some((unit, seen.per_second))
    };
    units.into_iter().filter_map(rate).collect()
}

/// The parts of areas that were used, in order, each once, and widened to where huge pages may begin and
/// end: a huge page belongs to where it begins, and is known as one only if it is looked at whole.
fn stretches(areas: &[(u64, u64)], used: &[Seen]) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for &(start, end) in areas {
        for seen in used.iter().filter(|seen| seen.start < end && start < seen.end) {
            let from = (seen.start / HUGE_BYTES * HUGE_BYTES).max(start);
            let to = seen.end.checked_next_multiple_of(HUGE_BYTES).map_or(end, |to| to.min(end));
            match all.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => all.push((from, to)),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn seen(start: u64, end: u64) -> Seen {
        Seen { start, end, per_second: 7 }
    }

    #[test]
    fn what_was_used_is_looked_at_once_and_with_whole_huge_pages() {
        let used = [seen(5 * MIB, 5 * MIB + 4096), seen(5 * MIB + 8192, 7 * MIB), seen(20 * MIB, 21 * MIB)];
        assert_eq!(stretches(&[(MIB, 10 * MIB)], &used), [(4 * MIB, 8 * MIB)]);
        assert_eq!(stretches(&[(MIB, 5 * MIB), (20 * MIB, 40 * MIB)], &used), [(20 * MIB, 22 * MIB)]);
        let last = u64::MAX - 4095;
        assert_eq!(stretches(&[(last, u64::MAX)], &[seen(0, u64::MAX)]), [(last, u64::MAX)]);
    }

    #[test]
    fn a_huge_page_counts_as_used_in_all_its_parts() {
        let huge = Unit { address: HUGE_BYTES, bytes: HUGE_BYTES };
        assert_eq!(
            page(huge, NodeId(3), 2.5),
            Page { address: HUGE_BYTES, home: 3, accesses: 1280, order: 9 }
        );
        let small = Unit { address: 0, bytes: PAGE_BYTES };
        assert_eq!(page(small, NodeId(0), 2.5).accesses, 2);
    }

    #[test]
    fn pages_of_this_process_are_found_where_they_were_used() {
        let memory = vec![1_u8; MIB as usize];
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE_BYTES);
        let used = [
            seen(start, start + 8 * PAGE_BYTES),
            Seen { per_second: 0, ..seen(start + MIB / 2, start + MIB) },
        ];
        let mut cursor = 0;
        let found = find(std::process::id() as i32, &[(start, start + MIB / 2)], &used, &mut cursor);
        assert!(!found.is_empty() && found.len() <= 8, "{found:?}");
        assert!(found.iter().all(|(unit, rate)| *rate == 7 && unit.address < start + 8 * PAGE_BYTES));
        assert_eq!(cursor, 0);
    }
}
