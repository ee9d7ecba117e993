//! Real-time tasks that hold CPUs. They go before every fair task, whoever schedules those.

use crate::task::{self, Class, class_name};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// A thread that ran for at least this share of the time holds its CPU.
const HOG_SHARE: f64 = 0.5;

/// A real-time task that ran for most of the time that it was watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hog {
    /// The thread.
    pub tid: i32,
    /// Its program's name.
    pub name: String,
    /// `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub class: String,
    /// Its real-time priority.
    pub priority: u32,
    /// Where it ran last.
    pub cpu: Option<i32>,
    /// The share of the time for which it ran.
    pub share: f64,
}

impl fmt::Display for Hog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tid, name, class, priority, share, .. } = self;
        write!(out, "{name} (task {tid}, {class} priority {priority})")?;
        if let Some(cpu) = self.cpu {
            write!(out, " on CPU {cpu}")?;
        }
        write!(out, ", {:.0} % of the time", share * 100.0)
    }
}

/// Watches all real-time tasks for `time`.
pub fn watch(time: Duration) -> Vec<Hog> {
    let before: HashMap<i32, (u32, u64)> = task::processes()
        .flat_map(task::threads_of)
        .filter_map(|tid| {
            let class = Class::of(tid).ok()??;
            task::is_real_time(class.policy).then_some(())?;
            Some((tid, (class.policy, ran_ns(tid)?)))
        })
        .collect();
    if before.is_empty() {
        return Vec::new();
    }
    let begin = Instant::now();
    std::thread::sleep(time);
    let watched_ns = begin.elapsed().as_nanos().max(1) as f64;
    let mut hogs: Vec<Hog> = before
        .into_iter()
        .filter_map(|(tid, (policy, ran_before))| {
            let share = ran_ns(tid)?.saturating_sub(ran_before) as f64 / watched_ns;
            (share >= HOG_SHARE).then(|| hog(tid, policy, share.min(1.0)))
        })
        .collect();
    hogs.sort_by_key(|hog| hog.tid);
    hogs
}

fn hog(tid: i32, policy: u32, share: f64) -> Hog {
    let stat = procfs::process::Process::new(tid).and_then(|process| process.stat()).ok();
    Hog {
        tid,
        name: task::name_of(tid),
        class: class_name(policy),
        priority: stat.as_ref().and_then(|stat| stat.rt_priority).unwrap_or(0),
        cpu: stat.and_then(|stat| stat.processor),
        share,
    }
}

/// CPU time that a thread has had.
fn ran_ns(tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_task_is_no_hog_however_much_it_runs() {
        let own = std::process::id() as i32;
        assert!(watch(Duration::from_millis(1)).iter().all(|hog| hog.tid != own));
    }

    #[test]
    fn a_hog_is_named_with_its_class_and_place() {
        let hog = Hog {
            tid: 7,
            name: "spin".into(),
            class: "SCHED_FIFO".into(),
            priority: 50,
            cpu: Some(3),
            share: 0.984,
        };
        assert_eq!(hog.to_string(), "spin (task 7, SCHED_FIFO priority 50) on CPU 3, 98 % of the time");
    }
}
