//! Processor sets: each parallel program has CPUs of its own (Chandra et al., section 5.2; the shape of
//! Solaris's `psrset`).
//!
//! The machine is shared equally between the programs that asked for a set; one that can use fewer CPUs has
//! fewer. Everybody else has the *default set*, as large as its load, and no larger than an equal share;
//! where nobody else runs there is none. A set has whole cache domains first, and what it had before.
//!
//! ```text
//! CPUs      0 1 2 3 | 4 5 6 7 | 8 9 a b | c d e f        four domains, three programs
//! ocean     |-----|                       |
//! water               |-----|               |
//! panel                         |-----|       |-|
//! ```

use super::Planner;
use super::layout::{Cpu, Layout};
use super::programs::Programs;
use crate::plan::{MAX_PARTS, MAX_TARGETS, Plan, Target};
use crate::snapshot::{Asks, Snapshot};

/// A step counts so much, against all before, in the load of everybody else.
const STEPS_OF_LOAD: f64 = 8.0;

/// The default set changes its size when the load has asked for another in so many steps, one after the
/// other: a second.
const STEPS_TO_RESIZE: u32 = 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Sets {
    /// In the order in which they asked.
    programs: Vec<Asked>,
    cpus: Vec<Cpu>,
    layout: Layout,
    /// Of everybody else: tasks that run or could, smoothed.
    load: f64,
    /// The CPUs that everybody else has at least.
    least: usize,
    /// How many CPUs the default set has, or would have where all are free.
    default_size: usize,
    steps_to_differ: u32,
}

/// A program that asked for a set, and the most CPUs that it can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    id: u32,
    most: usize,
}

impl Planner for Sets {
    fn name(&self) -> &'static str {
        super::SETS
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        let programs = Programs::of(snapshot, Asks::Set);
        let resized = self.follow_load(&programs, snapshot.cpus.len());
        let asked: Vec<Asked> = snapshot
            .programs
            .iter()
            .filter(|program| programs.tids.contains_key(&program.id))
            .map(|program| Asked {
                id: program.id,
                most: program.cpus.unwrap_or(usize::MAX).clamp(1, snapshot.cpus.len().max(1)),
            })
            .collect();
        let cpus = snapshot.cpus.iter().map(|cpu| (cpu.node, cpu.domain, cpu.number)).collect();
        if asked != self.programs || cpus != self.cpus || resized {
            self.programs = asked;
            self.cpus = cpus;
            self.lay_out();
        }
        self.say(&programs, plan);
    }
}

impl Sets {
    /// Such as leave a CPU to everybody else, whether somebody is there or not.
    pub fn beside_others() -> Self {
        Self { least: 1, ..Self::default() }
    }

    /// Whether the default set wants another size.
    fn follow_load(&mut self, programs: &Programs, cpus: usize) -> bool {
        self.load += (programs.others as f64 - self.load) / STEPS_OF_LOAD;
        let wanted = ((self.load - 0.25).ceil().max(0.0) as usize).min(cpus);
        self.steps_to_differ = if wanted == self.default_size { 0 } else { self.steps_to_differ + 1 };
        let resized = self.steps_to_differ >= STEPS_TO_RESIZE;
        if resized {
            self.default_size = wanted;
            self.steps_to_differ = 0;
        }
        resized
    }

    fn lay_out(&mut self) {
        let (sizes, rest) = shares(&self.programs, self.cpus.len(), self.default_size.max(self.least));
        let mut keys: Vec<(Option<u32>, usize)> =
            self.programs.iter().zip(sizes).map(|(asked, size)| (Some(asked.id), size)).collect();
        keys.push((None, rest));
        keys.retain(|(_, size)| *size > 0);
        self.layout = Layout::new(&self.cpus, &keys, &self.layout);
    }

    fn say(&self, programs: &Programs, plan: &mut Plan) {
        let sets: Vec<(Option<u32>, &Vec<usize>)> = self.layout.sets().collect();
        if sets.len() < 2 {
            return;
        }
        plan.parts = sets.iter().map(|(_, cpus)| (*cpus).clone()).collect();
        let of_part = |part| Target { part: Some(part), ..Target::default() };
        for (part, (id, _)) in sets.iter().enumerate() {
            match id {
                Some(id) => {
                    let tids = programs.tids.get(id).into_iter().flatten();
                    plan.tasks.extend(tids.map(|tid| (*tid, of_part(part))));
                }
                // Who has no set has the default set, if there is one.
                None => {
                    let groups = programs.groups_of_others.iter();
                    plan.groups.extend(groups.map(|group| (*group, of_part(part))));
                }
            }
        }
        forget_what_has_no_room(plan);
    }
}

/// What a plan has no room for is scheduled as if nobody had asked.
fn forget_what_has_no_room(plan: &mut Plan) {
    let room = MAX_TARGETS.saturating_sub(plan.tasks.len());
    while plan.groups.len() > room && plan.groups.pop_last().is_some() {}
    while plan.tasks.len() > MAX_TARGETS && plan.tasks.pop_last().is_some() {}
}

/// How many CPUs each program has, and how many are left for everybody else. Programs that come when there is
/// no CPU for them left have none: they are among everybody else.
fn shares(programs: &[Asked], cpus: usize, wanted: usize) -> (Vec<usize>, usize) {
    let sets = programs.len().min(MAX_PARTS - 1);
    let left_over = sets < programs.len() || sets > cpus;
    let others = wanted.max(usize::from(left_over)).min((cpus / (sets + 1)).max(1)).min(cpus);
    let sets = sets.min(cpus - others);
    let mut sizes = vec![0; programs.len()];
    let mut free = cpus - others;
    // One CPU after the other to whoever has fewest, and can use more.
    while free > 0 {
        let open = (0..sets).filter(|&set| sizes[set] < programs[set].most);
        let Some(set) = open.min_by_key(|&set| sizes[set]) else { break };
        sizes[set] += 1;
        free -= 1;
    }
    (sizes, others + free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Program, State, Task};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// 16 CPUs in four domains; programs as their process and the most CPUs, with two tasks each.
    fn snapshot(programs: &[(i32, Option<usize>)], others: usize) -> Snapshot {
        let mut snapshot = Snapshot::new(0, (0..16).map(|cpu| (cpu, cpu / 4, cpu / 8)));
        let mask = snapshot.mask((0..16).collect());
        for &(process, cpus) in programs {
            let processes = [process].into();
            snapshot.programs.push(Program { id: process as u32, processes, asks: Asks::Set, cpus });
            for tid in [process * 10, process * 10 + 1] {
                snapshot.add(Task { tid, process, group: 1, mask, ..Task::default() });
            }
        }
        for other in 0..others as i32 {
            let tid = 9000 + other;
            snapshot.add(Task {
                tid,
                process: tid,
                group: 1,
                mask,
                state: State::Running,
                ..Task::default()
            });
        }
        snapshot
    }

    fn plan(sets: &mut Sets, snapshot: &Snapshot) -> Plan {
        let mut plan = Plan::default();
        sets.plan(snapshot, &mut plan);
        assert_eq!(plan.check(snapshot), Ok(()));
        plan
    }

    fn cpus(plan: &Plan, process: i32) -> Vec<usize> {
        plan.tasks.get(&(process * 10)).map_or(Vec::new(), |target| plan.parts[target.part.unwrap()].clone())
    }

    #[test]
    fn programs_share_the_machine_equally_by_whole_domains() {
        let mut sets = Sets::default();
        let two = plan(&mut sets, &snapshot(&[(1, None), (2, None)], 0));
        assert_eq!(cpus(&two, 1), (0..8).collect::<Vec<_>>());
        assert_eq!(cpus(&two, 2), (8..16).collect::<Vec<_>>());
        let three = plan(&mut sets, &snapshot(&[(1, None), (2, None), (3, None)], 0));
        let sizes: Vec<usize> = [1, 2, 3].map(|process| cpus(&three, process).len()).into();
        assert_eq!(sizes, [6, 5, 5]);
        for process in 1..=3 {
            let own = cpus(&three, process);
            assert!((0..4).any(|domain| (domain * 4..domain * 4 + 4).all(|cpu| own.contains(&cpu))));
        }
    }

    #[test]
    fn a_program_that_can_use_fewer_has_fewer_and_the_others_more() {
        let plan = plan(&mut Sets::default(), &snapshot(&[(1, Some(2)), (2, None)], 0));
        assert_eq!((cpus(&plan, 1).len(), cpus(&plan, 2).len()), (2, 14));
    }

    #[test]
    fn the_default_set_follows_its_load_and_is_no_larger_than_the_others() {
        let mut sets = Sets::default();
        let size = |sets: &mut Sets, others| {
            let programs = [(1, None), (2, None)];
            let last = (0..60).map(|_| plan(sets, &snapshot(&programs, others))).last().unwrap();
            last.groups.get(&1).map_or(0, |target| last.parts[target.part.unwrap()].len())
        };
        assert_eq!(size(&mut sets, 0), 0);
        assert_eq!(size(&mut sets, 2), 2);
        assert_eq!(size(&mut sets, 100), 5);
        assert_eq!(size(&mut sets, 0), 0);
    }

    #[test]
    fn a_moment_of_load_moves_no_cpu() {
        let mut sets = Sets::default();
        let quiet = snapshot(&[(1, None), (2, None)], 0);
        let before = plan(&mut sets, &quiet);
        for step in 0..100 {
            let now = if step % 50 == 0 { snapshot(&[(1, None), (2, None)], 3) } else { quiet.clone() };
            assert_eq!(plan(&mut sets, &now).parts, before.parts, "step {step}");
        }
    }

    #[test]
    fn a_program_keeps_most_of_what_it_had() {
        let mut sets = Sets::default();
        plan(&mut sets, &snapshot(&[(1, None), (2, None), (3, None), (4, None)], 0));
        let later = plan(&mut sets, &snapshot(&[(2, None), (4, None)], 0));
        assert!((4..8).all(|cpu| cpus(&later, 2).contains(&cpu)));
        assert!((12..16).all(|cpu| cpus(&later, 4).contains(&cpu)));
    }

    proptest! {
        #[test]
        fn sets_are_never_empty_and_never_overlap(
            steps in prop::collection::vec(
                (prop::collection::btree_map(1..90i32, prop::option::of(0..20usize), 0..80), 0..40usize),
                1..12,
            ),
            beside_others: bool,
        ) {
            let mut sets = if beside_others { Sets::beside_others() } else { Sets::default() };
            for (programs, others) in steps {
                let programs: Vec<_> = programs.into_iter().collect();
                let snapshot = snapshot(&programs, others);
                // Its check: all CPUs, each once, no part empty.
                let plan = plan(&mut sets, &snapshot);
                let parts: BTreeSet<_> = plan.tasks.values().map(|target| target.part).collect();
                prop_assert!(plan.parts.is_empty() || plan.parts.len() - parts.len() <= 1);
                prop_assert!(programs.len() < 2 || programs.len() > 15 || parts.len() == programs.len());
                let own: usize = parts.iter().flatten().map(|part| plan.parts[*part].len()).sum();
                prop_assert!(own <= 16 - usize::from(beside_others));
                for (process, most) in programs {
                    let size = cpus(&plan, process).len();
                    prop_assert!(size <= most.unwrap_or(16).max(1));
                }
            }
        }
    }
}
