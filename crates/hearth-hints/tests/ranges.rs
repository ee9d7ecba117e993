//! Ranges of addresses that are one fragment each. Of this process, so one test after the other.

#![allow(clippy::unwrap_used)]

use hearth_hints::fragments::{counts, forget, range};
use hearth_hints::{fragment_at, fragment_named};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

const LIMIT: u64 = 16384;
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn names_and_addresses_make_numbers_of_their_own() {
    let ours = fragment_named("shard 1");
    assert_eq!(ours, fragment_named("shard 1\0 and more"));
    assert_ne!(ours, fragment_named("shard 2"));
    let data = [0_u8; 2];
    let addresses = [&data[0], &data[1]].map(fragment_at);
    assert_ne!(addresses[0], addresses[1]);
    assert!(ours >> 63 == 1 && addresses.iter().all(|number| number >> 62 == 1));
}

#[test]
fn ranges_beyond_the_limit_are_counted_and_name_their_first_address() {
    let _alone = ALONE.lock();
    let data = vec![0_u8; 4 * LIMIT as usize];
    let all: Vec<_> = data.chunks(2).take(LIMIT as usize + 10).collect();
    let fragments: Vec<_> = all.iter().map(|&bytes| range(bytes)).collect();
    let is_one = |at: usize| fragment_at(&all[at][1]) == fragments[at];
    assert!((0..all.len()).all(|at| is_one(at) == (at < LIMIT as usize)));
    assert!((0..all.len()).all(|at| fragment_at(all[at]) == fragments[at]));
    assert_eq!(counts().unranged, 10);
    forget(all[0]);
    range(all[LIMIT as usize]);
    assert!(!is_one(0) && is_one(LIMIT as usize), "what is forgotten makes room");
    forget(&data[..]);
    assert!((0..all.len()).all(|at| !is_one(at)));
}

#[derive(Clone, Debug)]
struct Step {
    bytes: Range<usize>,
    is_made: bool,
}

fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..length, 0..20_usize, any::<bool>())
        .prop_map(move |(begin, count, is_made)| Step { bytes: begin..length.min(begin + count), is_made });
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn each_address_of_a_range_has_the_number_of_its_first(steps in steps(100)) {
        let _alone = ALONE.lock();
        let data = [0_u8; 100];
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for Step { bytes, is_made } in steps {
            ranges.retain(|one| one.end <= bytes.start || bytes.end <= one.start || bytes.is_empty());
            if is_made {
                range(&data[bytes.clone()]);
                ranges.push(bytes);
            } else {
                forget(&data[bytes]);
            }
            for at in 0..data.len() {
                let around = ranges.iter().find(|one| one.contains(&at));
                let begin = &raw const data[around.map_or(at, |one| one.start)];
                prop_assert_eq!(fragment_at(&data[at]) & !(1 << 62), begin as u64, "byte {}", at);
            }
        }
        forget(&data[..]);
    }
}
