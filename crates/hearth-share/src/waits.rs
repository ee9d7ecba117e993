//! For how long the threads of a process have waited for CPUs, as the kernel counts it: with the time for
//! which they ran, what the process would use if nobody else were there.

use hearth_host::task::threads_of;
use std::collections::HashMap;
use std::fs;

/// Of more threads it is not looked.
const MAX_THREADS: usize = 1000;

/// The time that each thread has waited since it began, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits(HashMap<i32, u64>);

impl Waits {
    /// Those of a process now; none if the kernel does not count them, or there are too many.
    pub fn now(pid: i32) -> Option<Self> {
        let mut waits = HashMap::new();
        for tid in threads_of(pid) {
            if waits.len() == MAX_THREADS {
                return None;
            }
            let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"));
            // A thread that has ended meanwhile waits no longer.
            waits.extend(text.ok().and_then(|text| Some((tid, parse(&text)?))));
        }
        (!waits.is_empty()).then_some(Self(waits))
    }

    /// What all that are there have waited since then, in nanoseconds; one that began since, all that it has.
    pub fn since_ns(&self, before: &Self) -> u64 {
        let more = |(tid, waited): (&i32, &u64)| waited.saturating_sub(*before.0.get(tid).unwrap_or(&0));
        self.0.iter().map(more).fold(0, u64::saturating_add)
    }
}

/// "RAN WAITED SLICES". The kernel writes zeros where it counts nothing; a thread that runs has run.
fn parse(text: &str) -> Option<u64> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (ran > 0).then_some(waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_read_and_nothing_else() {
        assert_eq!(parse("722582 3382239 1\n"), Some(3_382_239));
        for wrong in ["", "1", "0 0 0", "a b c", "1 -1 1", "1 99999999999999999999999 1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn threads_that_come_and_go_count_for_what_they_waited() {
        let [before, after] = [[(1, 5), (2, 7)], [(2, 9), (3, 4)]].map(|all| Waits(all.into()));
        assert_eq!(after.since_ns(&before), 6);
        assert_eq!(before.since_ns(&before), 0);
    }
}
