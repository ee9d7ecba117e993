//! A process whose pages follow it: where it runs, where its memory is, whether to sample it.

use super::areas::{self, Area, Stays};
use super::nodes::{self, NodeId};
use super::report::{Moment, ProcessPages};
use super::running::Ran;
use hearth_host::task::threads_of;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

/// A node with less of the CPU time does not count.
const LEAST_PART: f64 = 0.05;
/// With less than so much elsewhere, nothing is sampled.
const LEAST_REMOTE: u64 = 256 << 10;
/// Areas with less elsewhere are left out, and those with most of it are taken.
const LEAST_OF_AREA: u64 = 16 << 10;
const MOST_AREAS: usize = 64;
/// How often memory is looked at while a process is sampled, and at least while it is not.
const LOOK_SAMPLED: Duration = Duration::from_secs(2);
const LOOK_FIRST: Duration = Duration::from_secs(5);
const LOOK_LAST: Duration = Duration::from_secs(60);
/// A look takes at most this part of the time until the next.
const LOOK_PART: u32 = 250;
/// So many samples without a move end the sampling for a while, which doubles up to the last.
const IDLE_SAMPLES: u32 = 10;
const REST_FIRST: Duration = Duration::from_secs(10);
const REST_LAST: Duration = Duration::from_secs(320);
/// Points of the history that are kept.
const MOST_MOMENTS: usize = 120;
/// Threads of a process whose policies are looked at.
const MOST_THREADS: usize = 64;

/// What is known of a process.
#[derive(Debug)]
pub(super) struct Followed {
    /// See [`Ran::start`].
    pub start: u64,
    /// What is told of it.
    pub report: ProcessPages,
    /// Whether that has changed since it was told.
    pub changed: bool,
    /// Where it ran since the last sample, in parts; only nodes that may have its memory.
    pub ran: BTreeMap<NodeId, f64>,
    /// Areas that are worth sampling.
    pub areas: Vec<(u64, u64)>,
    /// Areas that are sampled, and since when; none if it is not.
    pub sampled: Option<(Vec<(u64, u64)>, Instant)>,
    /// Where the next look for pages begins.
    pub cursor: u64,
    resident_bytes: u64,
    allowed: Option<BTreeSet<NodeId>>,
    look_at: Instant,
    look_pause: Duration,
    idle_samples: u32,
    rest: Duration,
    rest_until: Instant,
}

impl Followed {
    pub(super) fn new(ran: &Ran, now: Instant) -> Self {
        let report = ProcessPages { pid: ran.pid, name: ran.name.clone(), ..ProcessPages::default() };
        Self {
            start: ran.start,
            report,
            changed: true,
            ran: BTreeMap::new(),
            areas: Vec::new(),
            sampled: None,
            cursor: 0,
            resident_bytes: ran.resident_bytes,
            allowed: None,
            look_at: now,
            look_pause: LOOK_FIRST,
            idle_samples: 0,
            rest: REST_FIRST,
            rest_until: now,
        }
    }

    /// It ran there. On other nodes than before, or with more memory, it is looked at soon.
    pub(super) fn note(&mut self, ran: &Ran, now: Instant) {
        let parts = parts(&ran.by_node);
        if parts.is_empty() {
            return;
        }
        let on: BTreeSet<NodeId> = parts.keys().copied().collect();
        let grew = ran.resident_bytes.abs_diff(self.resident_bytes) > self.resident_bytes / 16;
        let moved = on != self.report.runs_on.keys().copied().collect();
        if moved || grew {
            self.resident_bytes = ran.resident_bytes;
            self.look_at = self.look_at.min(now);
            self.look_pause = LOOK_FIRST;
        }
        if moved {
            self.rest = REST_FIRST;
            self.rest_until = now;
            self.idle_samples = 0;
        }
        self.changed |= self.report.runs_on != parts;
        self.report.runs_on.clone_from(&parts);
        let allowed = |node: &NodeId| self.allowed.as_ref().is_none_or(|allowed| allowed.contains(node));
        self.ran = parts.into_iter().filter(|(node, _)| allowed(node)).collect();
    }

    /// Looks where its memory is, if it is time.
    pub(super) fn look(&mut self, now: Instant, since_start: Duration) -> io::Result<()> {
        if now < self.look_at {
            return Ok(());
        }
        let areas = match areas::read(self.report.pid) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.report.left_alone = Some(format!("Hearth may not look at its memory ({error})"));
                (self.areas, self.changed, self.look_at) = (Vec::new(), true, now + LOOK_LAST);
                return Ok(());
            }
            other => other?,
        };
        self.allowed = nodes::allowed(self.report.pid);
        let (movable, stays) = sums(&areas);
        (self.report.movable, self.report.stays) = (movable, stays);
        self.report.left_alone = self.left_alone();
        self.areas = if self.report.left_alone.is_some() { Vec::new() } else { self.choose(&areas) };
        if let Some(local_share) = self.report.local_share() {
            if self.report.history.len() >= MOST_MOMENTS {
                self.report.history.remove(0);
            }
            self.report.history.push(Moment { at_s: since_start.as_secs_f64(), local_share });
        }
        self.changed = true;
        let took = now.elapsed();
        self.look_pause = if self.sampled.is_some() {
            LOOK_SAMPLED
        } else {
            (self.look_pause * 2).clamp(LOOK_FIRST, LOOK_LAST)
        };
        self.look_at = now + self.look_pause.max(took * LOOK_PART);
        Ok(())
    }

    /// Why nothing of it is to be moved.
    fn left_alone(&self) -> Option<String> {
        let pid = self.report.pid;
        if threads_of(pid).take(MOST_THREADS).any(|tid| areas::thread_has_policy(pid, tid)) {
            return Some("a thread asked for a place for its memory (set_mempolicy)".into());
        }
        let allowed = self.allowed.as_ref()?;
        let on: Vec<&NodeId> = self.report.runs_on.keys().collect();
        (!on.is_empty() && on.iter().all(|node| !allowed.contains(node))).then(|| {
            let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            format!("its control group allows memory on node {} only (cpuset.mems)", list.join(", "))
        })
    }

    /// Areas with most of the memory that is not where the process runs.
    fn choose(&self, areas: &[Area]) -> Vec<(u64, u64)> {
        let remote = |area: &Area| match self.report.runs_on.len() {
            0 => 0,
            // What is near to one part of the process is far from the others.
            2.. => area.present(),
            _ => {
                let far = area.bytes.iter().filter(|(node, _)| !self.report.runs_on.contains_key(node));
                far.map(|(_, bytes)| bytes).sum::<u64>()
            }
        };
        let movable = areas.iter().filter(|area| area.stays.is_none());
        let mut chosen: Vec<(u64, &Area)> = movable.map(|area| (remote(area), area)).collect();
        chosen.retain(|(remote, _)| *remote >= LEAST_OF_AREA);
        if chosen.iter().map(|(remote, _)| remote).sum::<u64>() < LEAST_REMOTE {
            return Vec::new();
        }
        chosen.sort_unstable_by_key(|(remote, _)| std::cmp::Reverse(*remote));
        chosen.truncate(MOST_AREAS);
        let mut areas: Vec<(u64, u64)> = chosen.iter().map(|(_, area)| (area.start, area.end)).collect();
        areas.sort_unstable();
        areas
    }

    /// Whether it should be sampled now.
    pub(super) fn wants_samples(&self, now: Instant) -> bool {
        !self.areas.is_empty() && now >= self.rest_until
    }

    /// Whether areas are to be sampled that are not yet.
    pub(super) fn wants_more(&self) -> bool {
        self.sampled.as_ref().is_none_or(|(sampled, _)| self.areas.iter().any(|area| !sampled.contains(area)))
    }

    /// Samples led to moves, or not. After some that did not, it is left in peace for a while.
    pub(super) fn sampled_for(&mut self, moves: usize, now: Instant) {
        if moves > 0 {
            (self.idle_samples, self.rest) = (0, REST_FIRST);
            return;
        }
        self.idle_samples += 1;
        if self.idle_samples >= IDLE_SAMPLES {
            self.idle_samples = 0;
            self.rest_until = now + self.rest;
            self.rest = (self.rest * 2).min(REST_LAST);
        }
    }

    /// It is to be looked at as soon as may be.
    pub(super) fn look_soon(&mut self, now: Instant) {
        self.look_at = self.look_at.min(now);
        self.look_pause = LOOK_FIRST;
    }
}

/// The part of each node in the CPU time; those that hardly count are left out.
fn parts(by_node: &BTreeMap<NodeId, u64>) -> BTreeMap<NodeId, f64> {
    let all: u64 = by_node.values().sum();
    let counted =
        by_node.iter().filter(|(_, ticks)| **ticks as f64 >= LEAST_PART * all as f64 && **ticks > 0);
    let counted: Vec<(NodeId, u64)> = counted.map(|(node, ticks)| (*node, *ticks)).collect();
    let sum: u64 = counted.iter().map(|(_, ticks)| ticks).sum();
    counted.into_iter().map(|(node, ticks)| (node, ticks as f64 / sum as f64)).collect()
}

type ByNode = BTreeMap<NodeId, u64>;

/// Bytes by node that may be moved, and those that stay.
pub(super) fn sums(areas: &[Area]) -> (ByNode, BTreeMap<Stays, ByNode>) {
    let (mut movable, mut stays) = (ByNode::new(), BTreeMap::<Stays, ByNode>::new());
    for area in areas {
        let sum = match area.stays {
            None => &mut movable,
            Some(_) if area.bytes.is_empty() => continue,
            Some(why) => stays.entry(why).or_default(),
        };
        for (node, bytes) in &area.bytes {
            let sum = sum.entry(*node).or_default();
            *sum = sum.saturating_add(*bytes);
        }
    }
    (movable, stays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(by_node: &[(u32, u64)]) -> Ran {
        let by_node = by_node.iter().map(|&(node, ticks)| (NodeId(node), ticks)).collect();
        Ran { pid: 1, start: 1, name: "x".into(), resident_bytes: 1 << 24, by_node }
    }

    fn area(start: u64, bytes: &[(u32, u64)], stays: Option<Stays>) -> Area {
        let bytes = bytes.iter().map(|&(node, bytes)| (NodeId(node), bytes)).collect();
        Area { start, end: start + (1 << 20), bytes, stays }
    }

    fn followed(by_node: &[(u32, u64)]) -> Followed {
        let (ran, now) = (ran(by_node), Instant::now());
        let mut followed = Followed::new(&ran, now);
        followed.note(&ran, now);
        followed
    }

    #[test]
    fn a_node_that_was_hardly_visited_does_not_count() {
        assert_eq!(followed(&[(0, 97), (1, 3)]).ran, BTreeMap::from([(NodeId(0), 1.0)]));
        assert_eq!(followed(&[(0, 75), (1, 25)]).ran, BTreeMap::from([(NodeId(0), 0.75), (NodeId(1), 0.25)]));
        assert_eq!(followed(&[]).ran, BTreeMap::new());
    }

    #[test]
    fn only_memory_elsewhere_that_may_be_moved_is_sampled() {
        let areas = [
            area(0, &[(0, 1 << 20)], None),
            area(1 << 20, &[(1, 1 << 20)], None),
            area(2 << 20, &[(1, 1 << 20)], Some(Stays::Policy)),
            area(3 << 20, &[(1, 4096)], None),
        ];
        assert_eq!(followed(&[(0, 9)]).choose(&areas), [(1 << 20, 2 << 20)]);
        assert_eq!(followed(&[(1, 9)]).choose(&areas), [(0, 1 << 20)]);
        assert_eq!(followed(&[(0, 5), (1, 5)]).choose(&areas).len(), 2);
        assert_eq!(followed(&[]).choose(&areas), []);
        assert_eq!(followed(&[(0, 9)]).choose(&areas[3..]), [], "too little");
    }

    #[test]
    fn samples_that_move_nothing_make_place_for_longer_and_longer_rests() {
        let mut process = followed(&[(0, 9)]);
        process.areas = vec![(0, 4096)];
        let mut now = Instant::now();
        let mut rests = Vec::new();
        for _ in 0..3 {
            for _ in 0..IDLE_SAMPLES {
                assert!(process.wants_samples(now));
                process.sampled_for(0, now);
            }
            rests.push(process.rest_until - now);
            assert!(!process.wants_samples(now));
            now = process.rest_until;
        }
        assert_eq!(rests, [REST_FIRST, REST_FIRST * 2, REST_FIRST * 4]);
        process.sampled_for(1, now);
        assert_eq!(process.rest, REST_FIRST);
        // When it runs elsewhere, the rest is over.
        process.rest_until = now + REST_LAST;
        process.note(&ran(&[(1, 9)]), now);
        assert!(process.wants_samples(now));
    }

    #[test]
    fn this_process_is_looked_at() {
        let mut own = ran(&[(0, 9)]);
        own.pid = std::process::id() as i32;
        let now = Instant::now();
        let mut followed = Followed::new(&own, now);
        followed.note(&own, now);
        if followed.look(now, Duration::ZERO).is_err() {
            eprintln!("skipped: this kernel has no numa_maps");
            return;
        }
        assert!(followed.report.movable.values().sum::<u64>() > 0);
        assert_eq!(followed.report.left_alone, None);
        assert_eq!(followed.report.history.len(), 1);
    }
}
