//! Weighted max-min fair shares of a machine's CPUs: nobody gets more than it wants, and what one
//! does not want goes to the others by their weights, to those of its own group first. This is what a
//! fair scheduler with groups converges to.
//!
//! Pour water into vessels that stand side by side: each is as broad as its member's weight and holds
//! what the member wants, and all fill to the same level until they are full. A group is a vessel that
//! holds what its members want, or its quota. First, from the leaves to the machine, what each group
//! can use; then, from the machine to the leaves, what each gets.
//!
//! ```text
//! 16 CPUs    a, weight 100 (wants 16) --> 8 CPUs
//!            b, weight 100 -+ c (wants 1)  --> 1
//!                           + d (wants 16) --> 7   of what c leaves, not of a's
//! ```
//!
//! A mask bounds together all that may run nowhere else: two programs that are bound to the same two
//! CPUs get one each, on a machine of sixteen. So each set of CPUs is shared out among those within
//! it, the smallest sets first, and what they get there is their limit on the machine. That is exact
//! for masks that are nested or apart. Of masks that cross, the union is bounded too.

use crate::demand::{Demand, Group, Mask};

/// CPUs that each application gets, in their order.
pub fn shares(demand: &Demand) -> Vec<f64> {
    let cpus = demand.cpus();
    let mut tree = Tree::new(demand);
    for set in bounding_sets(&demand.masks) {
        let within: Vec<bool> = demand.masks.iter().map(|mask| mask.is_within(&set)).collect();
        let is_member = |index: usize| within[demand.applications[index].mask];
        let wanted: f64 =
            (0..tree.limits.len()).filter(|index| is_member(*index)).map(|index| tree.limits[index]).sum();
        let size = set.len() as f64;
        if wanted > size {
            let shares = tree.fill(size, is_member);
            (0..shares.len())
                .filter(|index| is_member(*index))
                .for_each(|index| tree.limits[index] = shares[index]);
        }
    }
    tree.fill(cpus, |_| true)
}

/// The masks but for the whole machine, and the unions of those that cross; the smallest first.
fn bounding_sets(masks: &[Mask]) -> Vec<Mask> {
    let crosses = |a: &Mask, b: &Mask| a.meets(b) && !a.is_within(b) && !b.is_within(a);
    let mut sets: Vec<Mask> = masks[1..].to_vec();
    let mut unions: Vec<Mask> = Vec::new();
    for mask in &masks[1..] {
        let mut union = mask.clone();
        while let Some(at) = unions.iter().position(|other| crosses(other, &union)) {
            union.add(&unions.swap_remove(at));
        }
        unions.push(union);
    }
    sets.append(&mut unions);
    sets.retain(|set| set.len() < masks[0].len());
    sets.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    sets.dedup();
    sets
}

/// A member of a group: a group, or an application.
#[derive(Clone, Copy)]
enum Member {
    Group(usize),
    Application(usize),
}

struct Tree<'a> {
    demand: &'a Demand,
    /// The members of each group.
    members: Vec<Vec<Member>>,
    /// What each application can use at most.
    limits: Vec<f64>,
}

impl<'a> Tree<'a> {
    fn new(demand: &'a Demand) -> Self {
        let mut members: Vec<Vec<Member>> = vec![Vec::new(); demand.groups.len()];
        for (index, group) in demand.groups.iter().enumerate().skip(1) {
            members[group.parent].push(Member::Group(index));
        }
        for (index, application) in demand.applications.iter().enumerate() {
            members[application.group].push(Member::Application(index));
        }
        let sizes: Vec<f64> = demand.masks.iter().map(|mask| mask.len() as f64).collect();
        let limit = |application: &crate::Application| application.want.clamp(0.0, sizes[application.mask]);
        Self { demand, members, limits: demand.applications.iter().map(limit).collect() }
    }

    /// Shares `cpus` out among the applications that are members; the others get nothing.
    fn fill(&self, cpus: f64, is_member: impl Fn(usize) -> bool) -> Vec<f64> {
        let groups = &self.demand.groups;
        let used = |index: usize| if is_member(index) { self.limits[index] } else { 0.0 };
        let mut can_use = vec![0.0; groups.len()];
        for (index, Group { quota, parent, .. }) in groups.iter().enumerate().rev() {
            let own = self.members[index].iter().map(|member| match member {
                Member::Application(application) => used(*application),
                Member::Group(_) => 0.0,
            });
            can_use[index] = (can_use[index] + own.sum::<f64>()).min(*quota);
            if index > 0 {
                can_use[*parent] += can_use[index];
            }
        }
        let mut gets = vec![0.0; groups.len()];
        gets[0] = can_use[0].min(cpus);
        let mut shares = vec![0.0; self.limits.len()];
        let mut vessels = Vec::new();
        for index in 0..groups.len() {
            vessels.clear();
            vessels.extend(self.members[index].iter().map(|member| match member {
                Member::Group(group) => (groups[*group].weight, can_use[*group]),
                Member::Application(application) => {
                    (self.demand.applications[*application].weight, used(*application))
                }
            }));
            let filled = pour(gets[index], &vessels);
            for (member, filled) in self.members[index].iter().zip(filled) {
                match member {
                    Member::Group(group) => gets[*group] = filled,
                    Member::Application(application) => shares[*application] = filled,
                }
            }
        }
        shares
    }
}

/// Fills vessels of these breadths and capacities to one level.
fn pour(water: f64, vessels: &[(f64, f64)]) -> Vec<f64> {
    let full_at = |vessel: &(f64, f64)| vessel.1 / vessel.0;
    let mut order: Vec<usize> = (0..vessels.len()).collect();
    order.sort_unstable_by(|a, b| full_at(&vessels[*a]).total_cmp(&full_at(&vessels[*b])));
    // From the last to fill backwards, so that rounding never makes the last one's breadth nothing.
    let mut breadths = vec![0.0; order.len() + 1];
    for (at, index) in order.iter().enumerate().rev() {
        breadths[at] = breadths[at + 1] + vessels[*index].0;
    }
    let mut left = water;
    let mut filled = vec![0.0; vessels.len()];
    for (index, breadth) in order.into_iter().zip(breadths) {
        let (weight, capacity) = vessels[index];
        filled[index] = (left * weight / breadth).clamp(0.0, capacity);
        left -= filled[index];
    }
    filled
}
