//! The rule that keeps numbers from fluttering. One step is 100 ms.
//!
//! - What others use counts as its mean over 300 ms, and of that the largest of the last 300 ms. A
//!   burst of 50 ms changes nothing; who comes to stay is seen in 300 ms.
//! - A number goes down at once, and up when that has held for 3 steps, to the least of these.
//! - Followers count by what they want, not by what they use: one that has just come gets its share,
//!   and the others make room, before the next step. One that has used less than half of its number for
//!   400 ms *lends* the rest: others get it, and its own number stays, so that it may come back at any
//!   time. Then it uses more than it kept, and the others make room in the next step.
//! - A number that went up and had to come down within a second does not go up again in the same
//!   circumstances: until programs come or go, their limits change, others use half a CPU more or less,
//!   or somebody lends.
//!   What others use depends on the number itself, which could go up and down for ever.
//! - Where it is nearly a toss-up how to round, what was said stays ([`crate::whole`]).
//!
//! After a step in load, numbers are settled within a second, but where they go up in vain.

use crate::cgroups::USUAL_WEIGHT;
use crate::demand::{Application, Demand};
use crate::share::shares;
use crate::whole::{Follower, whole};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Steps whose mean is what others use.
const MEAN_STEPS: usize = 3;
/// Of so many such means the largest counts.
const LARGEST_STEPS: usize = 3;
/// Steps for which a higher number must hold.
const RAISE_STEPS: usize = 3;
/// Steps for which a follower must use little, to lend.
const IDLE_STEPS: usize = 4;
/// Of its number: what uses less lends.
const IDLE_SHARE: f64 = 0.5;
/// What a lender keeps, over what it used; and how far above that it is back.
const KEPT: f64 = 1.25;
const BACK_CPUS: f64 = 0.3;
/// A number that comes down within so many steps after it went up went up in vain.
const TRIAL_STEPS: usize = 10;
/// What others use is the same as long as it differs by no more.
const SAME_CPUS: f64 = 0.5;
/// The weight of what is seen to be used, and not by whom.
const UNKNOWN_WEIGHT: f64 = USUAL_WEIGHT;

/// A process that follows: its number and its start time.
pub type Id = (i32, u64);

/// What one look at the machine has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Followers with what they want, and others with what they use and wait for.
    pub demand: Demand,
    /// The followers.
    pub followers: Vec<Present>,
    /// The others: their applications, and CPUs that each used when it was looked at.
    pub others: Vec<(usize, f64)>,
    /// CPUs that all others together used since the last step.
    pub others_use: f64,
}

/// A follower, as it is now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Present {
    /// Which.
    pub id: Id,
    /// In [`Demand::applications`].
    pub application: usize,
    /// CPUs that it used since the last step.
    pub used: f64,
    /// CPUs that it used before it followed, which were counted as others' use.
    pub before: f64,
    /// What it was told by who led before; 0: nothing.
    pub told: u32,
}

/// What a follower is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Whole CPUs.
    pub cpus: u32,
    /// Before it was made whole.
    pub share: f64,
    /// Whether others have what it does not use.
    pub lends: bool,
}

/// What the rule remembers.
#[derive(Debug, Default)]
pub struct Steady {
    others: Others,
    followers: HashMap<Id, Known>,
    /// Who follows, and within which limits: see [`standing`].
    standing: u64,
}

/// What others used in the last steps, and its means.
#[derive(Debug, Default)]
struct Others {
    uses: VecDeque<f64>,
    means: VecDeque<f64>,
}

/// A follower in the last steps.
#[derive(Debug, Default)]
struct Known {
    uses: VecDeque<f64>,
    /// What it keeps, if it lends the rest.
    keeps: Option<f64>,
    said: u32,
    /// What it would be told if nobody lent.
    own: u32,
    targets: VecDeque<u32>,
    /// Steps since its number went up, and the circumstances in which it did.
    raised: Option<(usize, Circumstances)>,
    /// Those in which it went up and had to come down again.
    in_vain: Option<Circumstances>,
}

/// What a number depends on, but for what others do when it changes.
#[derive(Clone, Copy, Debug)]
struct Circumstances {
    others_use: f64,
    lenders: usize,
}

impl Steady {
    /// The followers' numbers, in their order, 100 ms after the step before.
    pub fn step(&mut self, look: Look) -> Vec<Number> {
        self.meet(&look);
        self.others.note(look.others_use);
        for follower in &look.followers {
            self.followers.entry(follower.id).or_default().used(follower.used);
        }
        let lenders = self.followers.values().filter(|known| known.keeps.is_some()).count();
        let now = Circumstances { others_use: self.others.use_now(), lenders };
        self.say(look, |known, target| known.say(target, now))
    }

    /// The same between two steps, because programs have come or gone: time has hardly passed, so numbers
    /// only go down, for newcomers, who get theirs.
    pub fn between(&mut self, look: Look) -> Vec<Number> {
        self.meet(&look);
        self.say(look, Known::make_room)
    }

    fn meet(&mut self, look: &Look) {
        let present: HashSet<Id> = look.followers.iter().map(|follower| follower.id).collect();
        let standing = standing(look);
        if std::mem::replace(&mut self.standing, standing) != standing {
            self.followers.values_mut().for_each(|known| (known.raised, known.in_vain) = (None, None));
        }
        self.followers.retain(|id, _| present.contains(id));
        for Present { id, before, told, .. } in &look.followers {
            self.followers.entry(*id).or_insert_with(|| {
                self.others.forget(*before);
                Known { said: *told, own: *told, ..Known::default() }
            });
        }
    }

    fn say(&mut self, mut look: Look, say: impl Fn(&mut Known, u32) -> u32) -> Vec<Number> {
        self.others.count(&mut look);
        let numbers = self.targets(&mut look);
        let say = |(follower, number): (&Present, Number)| {
            let known = self.followers.entry(follower.id).or_default();
            Number { cpus: say(known, number.cpus), ..number }
        };
        look.followers.iter().zip(numbers).map(say).collect()
    }

    /// What each should have now: lenders what they would have if they used it, others more.
    fn targets(&mut self, look: &mut Look) -> Vec<Number> {
        let mut numbers = self.numbers(&look.demand, look.followers.iter(), |known| known.own);
        for (follower, number) in look.followers.iter().zip(&numbers) {
            self.followers.entry(follower.id).or_default().own = number.cpus;
        }
        let keeps = |follower: &Present| self.followers.get(&follower.id).and_then(|known| known.keeps);
        if look.followers.iter().all(|follower| keeps(follower).is_none()) {
            return numbers;
        }
        for follower in &look.followers {
            let application = &mut look.demand.applications[follower.application];
            application.want = application.want.min(keeps(follower).unwrap_or(f64::INFINITY));
        }
        let active = || look.followers.iter().filter(|follower| keeps(follower).is_none());
        let mut more = self.numbers(&look.demand, active(), |known| known.said).into_iter();
        for (number, follower) in numbers.iter_mut().zip(&look.followers) {
            match keeps(follower) {
                Some(_) => number.lends = true,
                None => *number = more.next().unwrap_or(*number),
            }
        }
        numbers
    }

    fn numbers<'a>(
        &self,
        demand: &Demand,
        present: impl Iterator<Item = &'a Present>,
        before: impl Fn(&Known) -> u32,
    ) -> Vec<Number> {
        let before = |id: &Id| self.followers.get(id).map_or(0, &before);
        let followers: Vec<Follower> = present
            .map(|follower| Follower { application: follower.application, before: before(&follower.id) })
            .collect();
        let shares = shares(demand);
        let whole = whole(demand, &shares, &followers);
        let number = |(follower, cpus): (&Follower, u32)| Number {
            cpus,
            share: shares[follower.application],
            lends: false,
        };
        followers.iter().zip(whole).map(number).collect()
    }
}

/// A number that is another when programs come or go, or when their masks, weights, quotas or wants change.
fn standing(look: &Look) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Demand { masks, groups, applications } = &look.demand;
    for follower in &look.followers {
        let Application { mut group, weight, mask, want } = applications[follower.application];
        (follower.id, &masks[mask], weight.to_bits(), want.to_bits()).hash(&mut hasher);
        while group > 0 {
            (groups[group].weight.to_bits(), groups[group].quota.to_bits()).hash(&mut hasher);
            group = groups[group].parent;
        }
    }
    hasher.finish()
}

impl Others {
    /// Makes the others' demand what they use now, as far as that is known to be other than when each
    /// of them was looked at. What nobody was seen to use is one application more.
    fn count(&mut self, look: &mut Look) {
        let now = self.use_now();
        let seen: f64 = look.others.iter().map(|(_, used)| used).sum();
        if now > seen {
            look.demand.applications.push(Application {
                group: 0,
                weight: UNKNOWN_WEIGHT,
                mask: 0,
                want: now - seen,
            });
        } else if seen > 0.0 {
            for (application, _) in &look.others {
                look.demand.applications[*application].want *= now / seen;
            }
        }
    }

    fn use_now(&self) -> f64 {
        self.means.iter().copied().fold(0.0, f64::max)
    }

    fn note(&mut self, use_now: f64) {
        push(&mut self.uses, use_now, MEAN_STEPS);
        push(&mut self.means, self.uses.iter().sum::<f64>() / MEAN_STEPS as f64, LARGEST_STEPS);
    }

    /// One that follows from now on is none of them, and used so much.
    fn forget(&mut self, cpus: f64) {
        for known in self.uses.iter_mut().chain(&mut self.means) {
            *known = (*known - cpus).max(0.0);
        }
    }
}

impl Known {
    fn used(&mut self, used: f64) {
        push(&mut self.uses, used, IDLE_STEPS);
        let largest = self.uses.iter().copied().fold(0.0, f64::max);
        self.keeps = match self.keeps {
            Some(keeps) if used > keeps + BACK_CPUS => {
                self.uses.clear();
                None
            }
            Some(keeps) => Some(keeps),
            None if self.uses.len() < IDLE_STEPS => None,
            None => (largest < IDLE_SHARE * f64::from(self.said)).then_some(largest * KEPT),
        };
    }

    fn say(&mut self, target: u32, now: Circumstances) -> u32 {
        let before = self.said;
        self.raised =
            self.raised.map(|(steps, then)| (steps + 1, then)).filter(|(steps, _)| *steps <= TRIAL_STEPS);
        if self.make_room(target) < before
            && let Some((_, then)) = self.raised.take()
        {
            self.in_vain = Some(then);
        }
        push(&mut self.targets, target, RAISE_STEPS);
        let least = self.targets.iter().copied().min().unwrap_or(target);
        let is_in_vain = self.in_vain.is_some_and(|then| then.are_like(&now));
        if self.targets.len() == RAISE_STEPS && least > self.said && !is_in_vain {
            self.said = least;
            self.raised = Some((0, now));
            self.in_vain = None;
        }
        self.said
    }

    /// One that is new gets its number at once, and one that had more has less at once.
    fn make_room(&mut self, target: u32) -> u32 {
        if self.said == 0 || target < self.said {
            self.said = target;
            self.targets.clear();
        }
        self.said
    }
}

impl Circumstances {
    fn are_like(&self, other: &Self) -> bool {
        self.lenders == other.lenders && (self.others_use - other.others_use).abs() <= SAME_CPUS
    }
}

fn push<T>(window: &mut VecDeque<T>, value: T, steps: usize) {
    window.push_back(value);
    if window.len() > steps {
        window.pop_front();
    }
}
