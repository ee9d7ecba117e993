//! Shares and whole numbers of random demands.

#![allow(clippy::unwrap_used)]

use hearth_share::share::shares;
use hearth_share::whole::{Follower, whole};
use hearth_share::{Application, Demand, Group, Mask};
use proptest::prelude::*;

/// Machines of some CPUs, with groups in groups, masks nested, apart and across, and applications.
fn demands() -> impl Strategy<Value = Demand> {
    let cpus = 1_usize..48;
    cpus.prop_flat_map(|cpus| {
        let masks = prop::collection::vec(prop::collection::btree_set(0..cpus, 1..=cpus), 0..5);
        let groups = prop::collection::vec(
            (any::<prop::sample::Index>(), 1.0..1000.0, prop::option::of(0.2..40.0)),
            0..6,
        );
        let applications = prop::collection::vec(
            (any::<prop::sample::Index>(), 1.0..1000.0, any::<prop::sample::Index>(), 0.0..64.0),
            1..24,
        );
        (Just(cpus), masks, groups, applications).prop_map(|(cpus, masks, groups, applications)| {
            let mut demand = Demand::of_machine(Mask::new(0..cpus));
            masks.into_iter().for_each(|mask| {
                demand.mask(&Mask::new(mask));
            });
            for (parent, weight, quota) in groups {
                let parent = parent.index(demand.groups.len());
                demand.groups.push(Group { parent, weight, quota: quota.unwrap_or(f64::INFINITY) });
            }
            for (group, weight, mask, want) in applications {
                let (group, mask) = (group.index(demand.groups.len()), mask.index(demand.masks.len()));
                demand.applications.push(Application { group, weight, mask, want });
            }
            demand
        })
    })
}

fn is_in(demand: &Demand, application: &Application, group: usize) -> bool {
    let mut at = application.group;
    while at != group && at != 0 {
        at = demand.groups[at].parent;
    }
    at == group
}

fn sum_of(demand: &Demand, shares: &[f64], is_member: impl Fn(&Application) -> bool) -> f64 {
    demand
        .applications
        .iter()
        .zip(shares)
        .filter(|(application, _)| is_member(application))
        .map(|(_, share)| share)
        .sum()
}

proptest! {
    #[test]
    fn nobody_gets_more_than_it_wants_and_no_group_or_mask_more_than_it_has(demand in demands()) {
        let shares = shares(&demand);
        for (application, share) in demand.applications.iter().zip(&shares) {
            prop_assert!(*share >= 0.0 && *share <= application.want + 1e-6);
        }
        prop_assert!(shares.iter().sum::<f64>() <= demand.cpus() + 1e-6);
        for (index, group) in demand.groups.iter().enumerate() {
            prop_assert!(sum_of(&demand, &shares, |one| is_in(&demand, one, index)) <= group.quota + 1e-6);
        }
        for mask in &demand.masks {
            let within = sum_of(&demand, &shares, |one| demand.masks[one.mask].is_within(mask));
            prop_assert!(within <= mask.len() as f64 + 1e-6);
        }
    }

    #[test]
    fn nothing_is_left_that_somebody_could_use(mut demand in demands()) {
        demand.applications.iter_mut().for_each(|one| one.mask = 0);
        demand.groups.iter_mut().for_each(|group| group.quota = f64::INFINITY);
        let cpus = demand.cpus();
        let wanted: f64 = demand.applications.iter().map(|one| one.want.min(cpus)).sum();
        let given: f64 = shares(&demand).iter().sum();
        prop_assert!((given - wanted.min(cpus)).abs() < 1e-6, "{given} of {wanted}");
    }

    #[test]
    fn who_gets_less_than_it_wants_gets_no_less_by_weight_than_its_neighbours(mut demand in demands()) {
        demand.applications.iter_mut().for_each(|one| one.mask = 0);
        let shares = shares(&demand);
        let level = |at: usize| shares[at] / demand.applications[at].weight;
        for (a, short) in demand.applications.iter().enumerate() {
            if shares[a] < short.want.min(demand.cpus()) - 1e-6 {
                for (b, other) in demand.applications.iter().enumerate() {
                    if other.group == short.group {
                        prop_assert!(level(b) <= level(a) + 1e-6);
                    }
                }
            }
        }
    }

    #[test]
    fn who_wants_more_never_gets_less(mut demand in demands(), at: prop::sample::Index, more in 0.0..32.0) {
        let at = at.index(demand.applications.len());
        demand.applications.iter_mut().for_each(|one| one.mask = 0);
        let before = shares(&demand)[at];
        demand.applications[at].want += more;
        prop_assert!(shares(&demand)[at] >= before - 1e-6);
    }

    #[test]
    fn whole_numbers_are_within_all_limits_and_add_up(demand in demands(), before in prop::collection::vec(0_u32..9, 24)) {
        let shares = shares(&demand);
        let followers: Vec<Follower> = (0..demand.applications.len())
            .map(|application| Follower { application, before: before[application] })
            .collect();
        let numbers = whole(&demand, &shares, &followers);
        let lifted: f64 = shares.iter().map(|share| (1.0 - share).max(0.0)).sum();
        for (number, share) in numbers.iter().zip(&shares) {
            prop_assert!(*number >= 1);
            prop_assert!(f64::from(*number) >= share.floor() && f64::from(*number) <= share.ceil().max(1.0) + 1e-6);
        }
        let said: f64 = numbers.iter().copied().map(f64::from).sum();
        prop_assert!(said <= shares.iter().sum::<f64>() + lifted + 0.6 + 1e-3);
    }

    #[test]
    fn numbers_add_up_to_the_machine_if_all_want_more(cpus in 1_usize..200, weights in prop::collection::vec(1.0..20.0, 1..40)) {
        let mut demand = Demand::of_machine(Mask::new(0..cpus));
        demand.applications =
            weights.iter().map(|weight| Application { group: 0, weight: *weight, mask: 0, want: 1e9 }).collect();
        let shares = shares(&demand);
        let followers: Vec<Follower> =
            (0..weights.len()).map(|application| Follower { application, before: 0 }).collect();
        let said: u32 = whole(&demand, &shares, &followers).iter().sum();
        let forced: f64 = shares.iter().map(|share| (1.0 - share).max(0.0)).sum();
        let least = cpus as f64 * 0.9;
        prop_assert!(f64::from(said) >= least && f64::from(said) <= cpus as f64 * 1.1 + forced + 1.0, "{said} of {cpus}");
        if forced == 0.0 {
            prop_assert_eq!(said as usize, cpus);
        }
    }
}

fn application(group: usize, weight: f64, mask: usize, want: f64) -> Application {
    Application { group, weight, mask, want }
}

fn numbers(demand: &Demand) -> Vec<u32> {
    let followers: Vec<Follower> =
        (0..demand.applications.len()).map(|application| Follower { application, before: 0 }).collect();
    whole(demand, &shares(demand), &followers)
}

#[test]
fn what_one_of_a_group_does_not_want_goes_to_the_others_of_its_group() {
    let mut demand = Demand::of_machine(Mask::new(0..16));
    demand.groups.push(Group { parent: 0, weight: 1.0, quota: f64::INFINITY });
    demand.applications =
        vec![application(0, 1.0, 0, 16.0), application(1, 1.0, 0, 1.0), application(1, 1.0, 0, 16.0)];
    assert_eq!(numbers(&demand), [8, 1, 7]);
}

#[test]
fn a_quota_binds_all_that_are_below_it() {
    let mut demand = Demand::of_machine(Mask::new(0..16));
    demand.groups.push(Group { parent: 0, weight: 9.0, quota: 4.0 });
    demand.groups.push(Group { parent: 1, weight: 3.0, quota: f64::INFINITY });
    demand.groups.push(Group { parent: 1, weight: 1.0, quota: f64::INFINITY });
    demand.applications =
        vec![application(2, 1.0, 0, 16.0), application(3, 1.0, 0, 16.0), application(0, 1.0, 0, 16.0)];
    assert_eq!(numbers(&demand), [3, 1, 12]);
}

#[test]
fn programs_that_are_bound_to_the_same_cpus_share_those() {
    let mut demand = Demand::of_machine(Mask::new(0..16));
    let (pair, across) = (demand.mask(&Mask::new([0, 1])), demand.mask(&Mask::new([1, 2])));
    demand.applications =
        vec![application(0, 1.0, pair, 2.0), application(0, 1.0, pair, 2.0), application(0, 1.0, 0, 16.0)];
    assert_eq!(numbers(&demand), [1, 1, 14]);
    demand.applications =
        vec![application(0, 1.0, pair, 2.0), application(0, 1.0, across, 2.0), application(0, 1.0, 0, 16.0)];
    assert!(shares(&demand)[..2].iter().sum::<f64>() <= 3.0);
}

#[test]
fn a_mask_without_any_of_the_machines_cpus_is_the_whole_machine() {
    let mut demand = Demand::of_machine(Mask::new(0..4));
    assert_eq!(demand.mask(&Mask::new([70])), 0);
    assert_eq!(demand.mask(&Mask::new([3, 70])), demand.mask(&Mask::new([3])));
}
