//! On which nodes processes run: the CPU time of their threads, by the node of the CPU where each
//! was found.

use super::nodes::{NodeId, Nodes};
use hearth_host::task;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

/// A smaller process is not worth a look.
const LEAST_BYTES: u64 = 4 << 20;
const PAGE_BYTES: u64 = 4096;
/// `PF_KTHREAD`: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What `/proc/PID/stat` says of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    parent: i32,
    flags: u64,
    /// CPU time in ticks.
    ticks: u64,
    threads: u64,
    start: u64,
    resident_bytes: u64,
    cpu: usize,
}

impl Stat {
    fn read(path: &str) -> Option<Self> {
        Self::parse(&String::from_utf8_lossy(&fs::read(path).ok()?))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may hold anything, brackets too.
        let (head, tail) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        // The third field is the first here.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            name,
            parent: i32::try_from(number(4)?).ok()?,
            flags: number(9)?,
            ticks: number(14)?.saturating_add(number(15)?),
            threads: number(20)?,
            start: number(22)?,
            resident_bytes: number(24)?.saturating_mul(PAGE_BYTES),
            cpu: usize::try_from(number(39)?).ok()?,
        })
    }
}

/// A process that has run since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its number.
    pub pid: i32,
    /// When it began, which tells it from a later one of the same number.
    pub start: u64,
    /// The first 15 bytes of its program's name.
    pub name: String,
    /// Its memory.
    pub resident_bytes: u64,
    /// CPU time in ticks, by the node near to it.
    pub by_node: BTreeMap<NodeId, u64>,
}

/// What was seen of a process before.
#[derive(Debug)]
struct Before {
    start: u64,
    ticks: u64,
    /// CPU time of each thread; empty until there is more than one.
    threads: HashMap<i32, u64>,
    /// What was noted between two looks.
    noted: BTreeMap<NodeId, u64>,
}

/// Processes, and how much each had run at the last look.
#[derive(Debug, Default)]
pub struct Processes {
    before: HashMap<i32, Before>,
    /// Threads of the kernel, which need not be read again.
    kernel: HashSet<i32>,
    family: Option<Family>,
}

/// A process with its children, theirs, and so on.
#[derive(Debug)]
struct Family {
    head: i32,
    members: HashSet<i32>,
}

impl Family {
    /// Whether a process is a descendant of the head. One whose parent has ended still is, if it was seen
    /// before.
    fn has(&mut self, pid: i32, parent: i32) -> bool {
        if parent == self.head || self.members.contains(&parent) {
            self.members.insert(pid);
        }
        self.members.contains(&pid)
    }
}

impl Processes {
    /// None but the descendants of a process.
    pub fn of_family(head: i32) -> Self {
        Self { family: Some(Family { head, members: HashSet::new() }), ..Self::default() }
    }

    /// Looks at all processes that `may` be looked at. Returns those that have run since the last look
    /// and are large enough to matter.
    pub fn look(&mut self, nodes: &Nodes, may: impl Fn(i32) -> bool) -> Vec<Ran> {
        let mut there = HashSet::new();
        let mut ran = Vec::new();
        let known = std::mem::take(&mut self.kernel);
        for pid in task::processes().filter(|pid| may(*pid)) {
            if known.contains(&pid) {
                self.kernel.insert(pid);
                continue;
            }
            let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else { continue };
            if stat.flags & KERNEL_THREAD != 0 {
                self.kernel.insert(pid);
                continue;
            }
            if self.family.as_mut().is_some_and(|family| !family.has(pid, stat.parent)) {
                continue;
            }
            there.insert(pid);
            ran.extend(self.update(pid, stat, nodes));
        }
        self.before.retain(|pid, _| there.contains(pid));
        if let Some(family) = &mut self.family {
            family.members.retain(|pid| there.contains(pid));
        }
        ran
    }

    /// Whether it is the same process as at the last look.
    pub fn is_there(&self, pid: i32, start: u64) -> bool {
        self.before.get(&pid).is_some_and(|before| before.start == start)
    }

    /// Looks at one process between two looks at all, for threads that change their CPU often.
    pub fn note(&mut self, pid: i32, nodes: &Nodes) {
        if let Some(stat) = Stat::read(&format!("/proc/{pid}/stat"))
            && let Some(Ran { by_node, .. }) = self.update(pid, stat, nodes)
            && let Some(before) = self.before.get_mut(&pid)
        {
            by_node.into_iter().for_each(|(node, ticks)| *before.noted.entry(node).or_default() += ticks);
        }
    }

    fn update(&mut self, pid: i32, stat: Stat, nodes: &Nodes) -> Option<Ran> {
        let fresh = || Before {
            start: stat.start,
            ticks: stat.ticks,
            threads: HashMap::new(),
            noted: BTreeMap::new(),
        };
        let before = self.before.entry(pid).or_insert_with(fresh);
        if before.start != stat.start {
            *before = fresh();
        }
        let ticks = stat.ticks.saturating_sub(before.ticks);
        before.ticks = stat.ticks;
        let mut by_node = std::mem::take(&mut before.noted);
        if stat.resident_bytes < LEAST_BYTES || (ticks == 0 && by_node.is_empty()) {
            return None;
        }
        let mut add = |cpu, ticks| {
            if let Some(node) = nodes.near(cpu).filter(|_| ticks > 0) {
                *by_node.entry(node).or_default() += ticks;
            }
        };
        if stat.threads == 1 {
            add(stat.cpu, ticks);
        } else {
            before.threads = threads(pid, &before.threads, &mut add);
        }
        let Stat { name, start, resident_bytes, .. } = stat;
        Some(Ran { pid, start, name, resident_bytes, by_node })
    }
}

/// The CPU time of each thread; what each has had since `before` is added where it is now.
fn threads(pid: i32, before: &HashMap<i32, u64>, add: &mut impl FnMut(usize, u64)) -> HashMap<i32, u64> {
    let mut now = HashMap::new();
    for tid in task::threads_of(pid) {
        let Some(stat) = Stat::read(&format!("/proc/{pid}/task/{tid}/stat")) else { continue };
        // At the first look nobody knows where it ran before.
        let ticks = before.get(&tid).map_or(0, |ticks| stat.ticks.saturating_sub(*ticks));
        add(stat.cpu, ticks);
        now.insert(tid, stat.ticks);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    const STAT: &str = "7 (a) b (c)) R 1 7 7 0 -1 4194304 0 0 0 0 12 3 0 0 20 0 2 0 811 4096 1024 1 0 0 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_stat_is_read_whatever_the_name() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!((stat.name.as_str(), stat.ticks, stat.threads, stat.start), ("a) b (c)", 15, 2, 811));
        assert_eq!(stat.parent, 1);
        assert_eq!((stat.resident_bytes, stat.cpu), (4 << 20, 5));
        assert_eq!(Stat::parse("7 (a R 1"), None);
    }

    #[test]
    fn a_process_that_runs_is_found_on_its_node_and_one_that_ended_is_forgotten() {
        let nodes = Nodes::read(Path::new("/")).unwrap();
        let mut processes = Processes::default();
        let own = std::process::id() as i32;
        let memory = vec![1_u8; 8 << 20];
        assert_eq!(processes.look(&nodes, |pid| pid == own), []);
        let start = processes.before[&own].start;
        let mut ran = Vec::new();
        while ran.iter().all(|ran: &Ran| ran.by_node.is_empty()) {
            std::hint::black_box(memory.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            ran = processes.look(&nodes, |pid| pid == own);
        }
        assert_eq!((ran[0].pid, ran[0].start), (own, start));
        assert!(ran[0].by_node.keys().all(|node| nodes.with_memory().contains(node)));
        assert!(processes.is_there(own, start) && !processes.is_there(own, start + 1));
        processes.look(&nodes, |_| false);
        assert!(!processes.is_there(own, start));
    }

    #[test]
    fn a_family_is_the_descendants_of_its_head_that_were_seen_with_a_parent() {
        let mut family = Family { head: 10, members: HashSet::new() };
        let seen =
            [(1, 0), (11, 10), (12, 11), (13, 1), (14, 13)].map(|(pid, parent)| family.has(pid, parent));
        assert_eq!(seen, [false, true, true, false, false]);
        assert!(family.has(12, 1), "its parent has ended");
    }

    #[test]
    fn of_a_family_nobody_else_is_looked_at() {
        let nodes = Nodes::read(Path::new("/")).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        let mut processes = Processes::of_family(std::process::id() as i32);
        processes.look(&nodes, |_| true);
        assert!(processes.before.contains_key(&pid));
        assert!(
            !processes.before.contains_key(&1)
                && !processes.before.contains_key(&(std::process::id() as i32))
        );
        child.kill().and_then(|()| child.wait()).unwrap();
        processes.look(&nodes, |_| true);
        assert!(!processes.before.contains_key(&pid));
    }

    proptest! {
        #[test]
        fn no_stat_is_too_strange(text in "(?s).{0,200}", cut in 0usize..160) {
            Stat::parse(&text);
            Stat::parse(&STAT[..cut.min(STAT.len())]);
        }
    }
}
