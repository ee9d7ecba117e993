//! Planners for tests.

#![allow(dead_code, clippy::unwrap_used)]

use hearth_policy::planners::Planner;
use hearth_policy::{Controller, Plan, Rows, Snapshot, Target};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Who plans in a random run.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    Nobody,
    Masks,
    /// Each step any plan, by a seed; `confines`: also such as keep tasks off CPUs that they could run on.
    Anything {
        seed: u64,
        confines: bool,
    },
}

pub fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        1 => Just(Who::Nobody),
        1 => Just(Who::Masks),
        2 => (any::<u64>(), any::<bool>()).prop_map(|(seed, confines)| Who::Anything { seed, confines }),
    ]
}

impl Who {
    pub fn controller(self) -> Option<Controller> {
        match self {
            Who::Nobody => None,
            Who::Masks => Controller::named("masks"),
            Who::Anything { seed, confines } => {
                let random = Pcg32::seed_from_u64(seed);
                Some(Controller::new(vec![Box::new(Anything { random, confines })]))
            }
        }
    }

    /// Whether a CPU may idle beside a task that its mask would let run there.
    pub fn confines(self) -> bool {
        matches!(self, Who::Anything { confines: true, .. })
    }
}

/// Plans without reason: parts, homes and slices at random, now and then nothing, and now and then what no
/// machine could follow.
struct Anything {
    random: Pcg32,
    confines: bool,
}

impl Anything {
    fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end.max(1)
    }

    fn parts(&mut self, snapshot: &Snapshot) -> Vec<Vec<usize>> {
        let count = 1 + self.below(snapshot.cpus.len());
        let mut parts = vec![Vec::new(); count];
        for cpu in &snapshot.cpus {
            let part = self.below(count);
            parts[part].push(cpu.number);
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    fn target(&mut self, snapshot: &Snapshot, parts: &[Vec<usize>], rows: Rows) -> Target {
        let part = Some(self.below(parts.len())).filter(|_| self.confines && !parts.is_empty());
        let part = part.filter(|_| self.below(2) == 0);
        let homes = match part {
            Some(part) => parts[part].clone(),
            None => snapshot.cpus.iter().map(|cpu| cpu.number).collect(),
        };
        let home = Some(homes[self.below(homes.len())]).filter(|_| self.below(2) == 0);
        let slice_permille = if self.below(2) == 0 { 1000 } else { 1 + self.below(2000) as u32 };
        let row = home.filter(|_| rows.count > 0 && self.below(2) == 0).map(|_| self.below(rows.count));
        let share_permille = if self.below(2) == 0 { 1000 } else { 100 + self.below(4000) as u32 };
        Target { home, part, slice_permille, share_permille, row }
    }
}

impl Planner for Anything {
    fn name(&self) -> &'static str {
        "anything"
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        match self.below(8) {
            0 => return,
            1 => drop(plan.tasks.insert(1, Target::at_home(usize::MAX))),
            2..=4 => plan.parts = self.parts(snapshot),
            _ => {}
        }
        if self.below(2) == 0 {
            plan.rows =
                Rows { count: 1 + self.below(4), length_ns: (10 + self.below(150) as u64) * 1_000_000 };
        }
        for task in &snapshot.tasks {
            if self.below(3) == 0 {
                let target = self.target(snapshot, &plan.parts, plan.rows);
                plan.tasks.insert(task.tid, target);
            }
        }
        for &group in snapshot.groups.keys() {
            if self.below(3) == 0 {
                let target = self.target(snapshot, &plan.parts, plan.rows);
                plan.groups.insert(group, target);
            }
        }
    }
}
