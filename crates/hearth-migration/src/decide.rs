//! From samples to moves: what a round of the worker does for the processes that it samples.

use super::mover::{self, Done, Reason, Task};
use super::sampler::Seen;
use super::units::{HUGE_BYTES, PAGE_BYTES, Pagemap, Unit};
use super::worker::Worker;
use hearth_policy::pages::{Move, Sample};
use std::collections::HashMap;
use std::time::Instant;

/// Pages of a process that are looked at in a round.
const MOST_UNITS: usize = 16 << 10;

impl Worker {
    /// Has the planner decide by new samples of all that are sampled.
    pub(super) fn sample(&mut self) {
        // What was decided comes first.
        if !self.mover.is_idle() {
            return;
        }
        let sampled: Vec<i32> =
            self.followed.iter().filter(|(_, one)| one.sampled.is_some()).map(|(pid, _)| *pid).collect();
        let mut samples = Vec::new();
        for pid in sampled {
            if self.is_over() {
                return;
            }
            let Some(sampler) = &mut self.sampler else { return };
            match sampler.read(pid) {
                Ok(seen) => self.gather(pid, &seen, &mut samples),
                Err(lost) => self.lose(pid, lost),
            }
        }
        let mut moves = Vec::new();
        self.planner.step(self.now_ns(), &samples, &mut moves);
        self.queue(&moves);
    }

    /// Samples of one process.
    fn gather(&mut self, pid: i32, seen: &[Seen], samples: &mut Vec<Sample>) {
        self.make_room(pid);
        let Some(one) = self.followed.get_mut(&pid) else { return };
        let Some((areas, since)) = one.sampled.as_mut() else { return };
        let elapsed = since.elapsed();
        *since = Instant::now();
        if one.ran.is_empty() {
            return;
        }
        let units = find(pid, areas, seen, &mut one.cursor);
        let addresses: Vec<u64> = units.iter().map(|(unit, _)| unit.address).collect();
        let homes = match mover::query(pid, &addresses) {
            Ok(homes) => homes,
            Err(error) => {
                let reason = Reason::of_call(error);
                self.tally.fail(reason, addresses.len() as u64);
                one.report.tally.fail(reason, addresses.len() as u64);
                if reason == Reason::ProcessGone {
                    self.forget(pid);
                }
                return;
            }
        };
        let ran: Vec<(u8, f64)> =
            one.ran.iter().filter_map(|(node, part)| Some((self.nodes.index(*node)?, *part))).collect();
        for ((unit, per_second), home) in units.into_iter().zip(homes) {
            let Some(home) = home.ok().and_then(|home| self.nodes.index(home)) else { continue };
            let Some((page, is_new)) = self.numbers.number(pid, unit) else { break };
            if (is_new || self.planner.home(page) != Some(home)) && self.planner.set_home(page, home).is_ok()
            {
                self.planner.set_order(page, unit.order());
            }
            // Nobody sees which part of a huge page is used: it counts as if all were.
            let accesses = f64::from(per_second) * elapsed.as_secs_f64() * (unit.bytes / PAGE_BYTES) as f64;
            let sample =
                |&(node, part): &(u8, f64)| Sample { page, node, accesses: (accesses * part) as u32 };
            // Uses from the page's own node come last: nobody knows the order, and they speak for staying.
            samples.extend(ran.iter().filter(|(node, _)| *node != home).map(sample));
            samples.extend(ran.iter().filter(|(node, _)| *node == home).map(sample));
        }
    }

    /// Sees to it that there are numbers for new pages: gives up those of pages that are free to move.
    fn make_room(&mut self, pid: i32) {
        if self.numbers.room() < MOST_UNITS {
            let now_ns = self.now_ns();
            let mut free = Vec::new();
            self.numbers.forget(pid, |page| self.planner.is_frozen(now_ns, page), |page| free.push(page));
            free.into_iter().for_each(|page| self.planner.forget(page));
        }
    }

    fn queue(&mut self, moves: &[Move]) {
        let mut asked: HashMap<i32, usize> = HashMap::new();
        for &Move { page, to, .. } in moves {
            let node = self.nodes.with_memory().get(usize::from(to)).copied();
            if let (Some((pid, unit)), Some(to)) = (self.numbers.page(page), node) {
                *asked.entry(pid).or_default() += 1;
                self.mover.add(Task { pid, unit, page, to });
            }
        }
        let now = Instant::now();
        for (pid, one) in self.followed.iter_mut().filter(|(_, one)| one.sampled.is_some()) {
            one.sampled_for(asked.get(pid).copied().unwrap_or(0), now);
        }
    }

    /// Moves what was decided, as far as the quota goes.
    pub(super) fn move_pages(&mut self) {
        while !self.is_over() {
            let done = self.mover.step();
            if done.is_empty() {
                break;
            }
            let now_ns = self.now_ns();
            let is_gone = done.iter().any(|(_, end)| *end == Err(Reason::ProcessGone));
            let pid = done[0].0.pid;
            done.into_iter().for_each(|done| self.account(now_ns, done));
            if is_gone {
                self.forget(pid);
            } else if let Some(one) = self.followed.get_mut(&pid) {
                one.look_soon(Instant::now());
            }
        }
    }

    fn account(&mut self, now_ns: u64, (Task { pid, unit, page, to }, end): Done) {
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
            Ok(node) => {
                tallies.iter_mut().for_each(|tally| tally.add(pages, unit.bytes));
                if let Some(node) = self.nodes.index(node) {
                    // The planner knows the node: it asked for it.
                    let _ = self.planner.moved(now_ns, page, node);
                }
            }
            Err(reason) => {
                tallies.iter_mut().for_each(|tally| tally.fail(reason, pages));
                self.planner.refused(now_ns, page, reason.refusal());
            }
        }
    }
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
