//! Shares made whole: numbers of CPUs, by the largest remainder, so that they add up to what they
//! were together.
//!
//! A number that was published is worth a tenth of a CPU: where it is nearly a toss-up, what was said
//! before stays. So what others use may waver by that much, and no number changes.

use crate::demand::{Demand, Mask};
use std::cmp::Reverse;

/// By how much what was said before is preferred.
pub const STICKY: f64 = 0.1;

/// A remainder below this is none.
const NOTHING: f64 = 1e-6;

/// A follower, to get a whole number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follower {
    /// Its application, in [`Demand::applications`].
    pub application: usize,
    /// What was published; 0 for one that is new.
    pub before: u32,
}

/// CPUs for each follower: at least 1, at most its share rounded up; together their shares rounded,
/// more only where the least of 1 makes it so. In the followers' order.
pub fn whole(demand: &Demand, shares: &[f64], followers: &[Follower]) -> Vec<u32> {
    let share = |follower: &Follower| shares[follower.application];
    let mut numbers: Vec<u32> = followers.iter().map(|follower| floor(share(follower))).collect();
    let mut budgets = Budgets::new(demand, shares, followers, &numbers);
    let worth = |(index, follower): (usize, &Follower)| {
        let said_more = follower.before > numbers[index];
        // In millionths, so that equal shares are equal however they were rounded.
        let worth = remainder(share(follower)) + if said_more { STICKY } else { 0.0 };
        (Reverse((worth / NOTHING).round() as i64), index)
    };
    let has_remainder =
        |(index, follower): &(usize, &Follower)| numbers[*index] >= 1 && remainder(share(follower)) > NOTHING;
    let mut by_remainder: Vec<_> = followers.iter().enumerate().filter(has_remainder).map(worth).collect();
    by_remainder.sort_unstable();
    for (_, index) in by_remainder {
        if budgets.take(demand, followers[index].application) {
            numbers[index] += 1;
        }
    }
    numbers.into_iter().map(|number| number.max(1)).collect()
}

fn floor(share: f64) -> u32 {
    (share + NOTHING).max(0.0) as u32
}

fn remainder(share: f64) -> f64 {
    share - f64::from(floor(share))
}

/// CPUs that may still be given, beyond what is whole already: in all, in each group, in each mask.
struct Budgets {
    all: i64,
    groups: Vec<i64>,
    masks: Vec<i64>,
    /// The masks that each mask is within.
    around: Vec<Vec<usize>>,
}

impl Budgets {
    fn new(demand: &Demand, shares: &[f64], followers: &[Follower], numbers: &[u32]) -> Self {
        let around = |mask: &Mask| {
            (0..demand.masks.len()).filter(|other| mask.is_within(&demand.masks[*other])).collect()
        };
        let around: Vec<Vec<usize>> = demand.masks.iter().map(around).collect();
        let mut left = 0.0;
        let mut said = 0;
        let mut in_groups = vec![0.0; demand.groups.len()];
        let mut in_masks = vec![0.0; demand.masks.len()];
        let is_known = followers.iter().all(|follower| follower.before > 0);
        for (follower, number) in followers.iter().zip(numbers).filter(|(_, number)| **number >= 1) {
            let more = shares[follower.application] - f64::from(*number);
            left += more;
            said += i64::from(follower.before) - i64::from(*number);
            let application = &demand.applications[follower.application];
            in_groups[application.group] += more;
            around[application.mask].iter().for_each(|mask| in_masks[*mask] += more);
        }
        for index in (1..demand.groups.len()).rev() {
            in_groups[demand.groups[index].parent] += in_groups[index];
        }
        let up = |more: Vec<f64>| more.into_iter().map(|more| (more - NOTHING).ceil() as i64).collect();
        let stays = is_known && (left - said as f64).abs() < 0.5 + STICKY;
        let all = if stays { said } else { left.round() as i64 };
        Self { all, groups: up(in_groups), masks: up(in_masks), around }
    }

    /// Takes a CPU for this application, if there is one in all that it is in.
    fn take(&mut self, demand: &Demand, application: usize) -> bool {
        let application = &demand.applications[application];
        let mut groups = vec![application.group];
        while let Some(&last) = groups.last().filter(|last| **last > 0) {
            groups.push(demand.groups[last].parent);
        }
        let masks = &self.around[application.mask];
        let has_left = self.all > 0
            && groups.iter().all(|group| self.groups[*group] > 0)
            && masks.iter().all(|mask| self.masks[*mask] > 0);
        if has_left {
            self.all -= 1;
            groups.iter().for_each(|group| self.groups[*group] -= 1);
            masks.iter().for_each(|mask| self.masks[*mask] -= 1);
        }
        has_left
    }
}
