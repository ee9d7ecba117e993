//! What cache-fair tasks gain, and who pays for it.
//!
//! A task of weight `w` and factor `f` takes `w (f - 1)` from the best-effort tasks that may run where it is,
//! or gives as much to them. They pay by the same part of their shares each, whatever their weights: so
//!
//! ```text
//! sum of w (f - 1) of cache-fair tasks  =  sum of w (1 - f) of best-effort tasks
//! ```
//!
//! and what one takes and another gives cancels in those who would do both. Bounds come first: a best-effort
//! task keeps its least share, after what it is given, and has ten times its share at most. Who wants more of it
//! than that gets less, all by the same part.

use super::{Rule, Spread, WHOLE_PERMILLE};
use crate::plan::SHARE_PERMILLE;
use crate::snapshot::{Snapshot, Task};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The most that a task may have, as a factor of its share.
const MOST: f64 = *SHARE_PERMILLE.end() as f64 / WHOLE_PERMILLE as f64;

/// The most that may be lost of a share, so that what is left can be in a plan.
const MOST_LOST_PERMILLE: u32 = WHOLE_PERMILLE - *SHARE_PERMILLE.start();

/// The factor that a cache-fair task wants.
pub(super) struct Wish {
    pub tid: i32,
    pub cpu: usize,
    pub weight: u32,
    pub factor: f64,
}

/// What a task gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// What it gets of its nominal share.
    pub factor_permille: u32,
    /// What its weight is to be multiplied by for that.
    pub share_permille: u32,
}

/// See the module.
pub(super) struct Ledger<'a> {
    snapshot: &'a Snapshot,
    payers: &'a [&'a Task],
    spread: Spread,
    most_lost: f64,
    /// Tasks that run or wait on each CPU, and their weights.
    loads: BTreeMap<usize, (usize, f64)>,
    /// The payers of CPUs that were asked for, by place.
    of_cpus: BTreeMap<usize, Account>,
}

/// Who pays on a CPU, and for what.
#[derive(Clone, Debug, Default)]
struct Account {
    payers: Vec<usize>,
    weight: f64,
    /// What cache-fair tasks here want to take, or to give, as a part of each payer's share.
    wanted: f64,
    /// What of it they get.
    scale: f64,
    /// What they take less what they give, as far as it is granted.
    net: f64,
}

impl<'a> Ledger<'a> {
    /// `payers`: best-effort tasks that run or could, by thread id.
    pub fn new(snapshot: &'a Snapshot, payers: &'a [&'a Task], rule: &Rule) -> Self {
        let mut loads: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
        for task in snapshot.tasks.iter().filter(|task| task.is_runnable()) {
            let (count, sum) = loads.entry(task.cpu).or_default();
            *count += 1;
            *sum += weight(task.weight);
        }
        let most_lost = rule.most_lost_permille.min(MOST_LOST_PERMILLE);
        Self {
            snapshot,
            payers,
            spread: rule.spread,
            most_lost: f64::from(most_lost) / f64::from(WHOLE_PERMILLE),
            loads,
            of_cpus: BTreeMap::new(),
        }
    }

    /// Whether another task runs or waits where this one is.
    pub fn is_contested(&self, task: &Task) -> bool {
        self.loads.get(&task.cpu).is_some_and(|(count, _)| *count > usize::from(task.is_runnable()))
    }

    /// The factors that a task can have: as much more as payers can pay if nobody else takes from them.
    pub fn bounds(&mut self, task: &Task) -> RangeInclusive<f64> {
        let most_lost = self.most_lost;
        let gain = most_lost * self.account(task.cpu).weight / weight(task.weight);
        1.0 - most_lost..=(1.0 + gain).min(MOST)
    }

    fn account(&mut self, cpu: usize) -> &mut Account {
        self.of_cpus.entry(cpu).or_insert_with(|| {
            let masks = &self.snapshot.masks;
            let may: Vec<bool> = masks.iter().map(|mask| mask.has(cpu)).collect();
            let serves = |place: &usize| may.get(self.payers[*place].mask) == Some(&true);
            let most = match self.spread {
                Spread::All => usize::MAX,
                Spread::One => 1,
            };
            let payers: Vec<usize> = (0..self.payers.len()).filter(serves).take(most).collect();
            let weight = payers.iter().map(|place| weight(self.payers[*place].weight)).sum();
            Account { payers, weight, ..Account::default() }
        })
    }

    /// What each task gets whose share changes. Losses come first: what they give, gains may take.
    pub fn settle(mut self, wishes: &[Wish]) -> BTreeMap<i32, Share> {
        let mut shares = BTreeMap::new();
        let (losses, gains): (Vec<&Wish>, Vec<&Wish>) = wishes.iter().partition(|wish| wish.factor < 1.0);
        let most = vec![MOST - 1.0; self.payers.len()];
        self.grant(&losses, &most, &mut shares);
        let most: Vec<f64> =
            self.sums(|account| account.net).iter().map(|net| self.most_lost - net).collect();
        self.grant(&gains, &most, &mut shares);
        self.pay(&mut shares);
        shares
    }

    /// Grants wishes that all are gains, or all losses, as far as no payer has more of them than its most.
    fn grant(&mut self, wishes: &[&Wish], most: &[f64], shares: &mut BTreeMap<i32, Share>) {
        self.of_cpus.values_mut().for_each(|account| account.wanted = 0.0);
        for wish in wishes {
            let account = self.account(wish.cpu);
            account.wanted += account.part(wish, wish.factor).abs();
        }
        let sums = self.sums(|account| account.wanted);
        let scale =
            |place: &usize| if sums[*place] > most[*place] { most[*place] / sums[*place] } else { 1.0 };
        for account in self.of_cpus.values_mut() {
            account.scale = account.payers.iter().map(scale).fold(1.0, f64::min);
        }
        for wish in wishes {
            let account = self.account(wish.cpu);
            let is_alone = account.payers.is_empty();
            if is_alone && wish.factor > 1.0 {
                continue;
            }
            // Towards no change, so that bounds hold.
            let change = account.scale * (wish.factor - 1.0) * f64::from(WHOLE_PERMILLE);
            let factor_permille = WHOLE_PERMILLE.saturating_add_signed(change as i32);
            if factor_permille == WHOLE_PERMILLE {
                continue;
            }
            account.net += account.part(wish, permille(factor_permille));
            let share_permille =
                if is_alone { self.share_beside_others(wish, factor_permille) } else { factor_permille };
            shares.insert(wish.tid, Share { factor_permille, share_permille });
        }
    }

    /// A sum over all CPUs on which a payer pays, for each payer.
    fn sums(&self, part: impl Fn(&Account) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.payers.len()];
        for account in self.of_cpus.values() {
            account.payers.iter().for_each(|place| sums[*place] += part(account));
        }
        sums
    }

    /// Where nobody takes up a loss: the factor of its weight with which a task's part of the CPU falls by
    /// its factor.
    fn share_beside_others(&self, wish: &Wish, factor_permille: u32) -> u32 {
        let (own, factor) = (weight(wish.weight), permille(factor_permille));
        let others = self.loads.get(&wish.cpu).map_or(0.0, |(_, all)| all - own).max(0.0);
        let share = factor * others / (others + own * (1.0 - factor));
        let share = (share * f64::from(WHOLE_PERMILLE)).round() as u32;
        share.clamp(*SHARE_PERMILLE.start(), WHOLE_PERMILLE)
    }

    /// Payers' shares. What rounding leaves is passed on from the lightest to the heaviest.
    fn pay(&self, shares: &mut BTreeMap<i32, Share>) {
        let losses = self.sums(|account| account.net);
        let mut order: Vec<usize> = (0..losses.len()).filter(|place| losses[*place] != 0.0).collect();
        order.sort_unstable_by_key(|place| (self.payers[*place].weight, self.payers[*place].tid));
        let least = ((1.0 - self.most_lost) * f64::from(WHOLE_PERMILLE)).round() as i64;
        let mut owed = 0.0;
        for place in order {
            let own = weight(self.payers[place].weight);
            owed += own * losses[place] * f64::from(WHOLE_PERMILLE);
            let share = i64::from(WHOLE_PERMILLE).saturating_sub((owed / own).round() as i64);
            let share = share.clamp(least, i64::from(*SHARE_PERMILLE.end())) as u32;
            owed -= own * f64::from(WHOLE_PERMILLE as i32 - share as i32);
            if share != WHOLE_PERMILLE {
                shares
                    .insert(self.payers[place].tid, Share { factor_permille: share, share_permille: share });
            }
        }
    }
}

impl Account {
    /// What a task takes with this factor, as a part of each payer's share; below 0 if it gives.
    fn part(&self, wish: &Wish, factor: f64) -> f64 {
        weight(wish.weight) * (factor - 1.0) / self.weight.max(1.0)
    }
}

fn weight(weight: u32) -> f64 {
    f64::from(weight.max(1))
}

fn permille(factor: u32) -> f64 {
    f64::from(factor) / f64::from(WHOLE_PERMILLE)
}
