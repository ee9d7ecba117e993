//! All threads of the host and what they did, from `/proc`. Works under every scheduler.

use crate::task;
use procfs::FromRead;
use std::collections::HashMap;
use std::fs;
use std::time::Instant;

/// What a thread had done when it was looked at. Counts since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// Its program's name.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Where it runs, or ran last.
    pub cpu: usize,
    /// Whether it was running or waiting for a CPU.
    pub runnable: bool,
    /// Whether its class is one that sched_ext may serve.
    pub fair: bool,
    /// CPU time that it has had.
    pub ran_ns: u64,
    /// Time for which it waited for a CPU.
    pub waited_ns: u64,
    /// How often it was given a CPU.
    pub slices: u64,
}

/// Threads that did something since the machine began, by number.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Each thread.
    pub threads: HashMap<i32, ThreadState>,
}

/// Looks at all threads. Those that did not run since `before` are not read again.
pub fn sample(before: Option<&Sample>) -> Sample {
    let at = Instant::now();
    let of_process = |pid| task::threads_of(pid).filter_map(move |tid| Some((tid, state(pid, tid, before)?)));
    Sample { at, threads: task::processes().flat_map(of_process).collect() }
}

fn state(pid: i32, tid: i32, before: Option<&Sample>) -> Option<ThreadState> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let (ran_ns, waited_ns, slices) =
        parse_schedstat(&fs::read_to_string(format!("{folder}/schedstat")).ok()?)?;
    if let Some(known) = before.and_then(|before| before.threads.get(&tid))
        && (known.ran_ns, known.slices) == (ran_ns, slices)
    {
        return Some(ThreadState { waited_ns, ..known.clone() });
    }
    let stat = procfs::process::Stat::from_read(fs::File::open(format!("{folder}/stat")).ok()?).ok()?;
    Some(ThreadState {
        name: stat.comm,
        pid,
        cpu: stat.processor.and_then(|cpu| usize::try_from(cpu).ok())?,
        runnable: stat.state == 'R',
        fair: stat.policy.is_some_and(task::is_fair),
        ran_ns,
        waited_ns,
        slices,
    })
}

fn parse_schedstat(text: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_among_all_and_has_run() {
        let first = sample(None);
        let own = &first.threads[&rustix::thread::gettid().as_raw_nonzero().get()];
        assert!(own.fair && own.pid == std::process::id() as i32);
        assert!(sample(Some(&first)).threads.len() > 1);
    }

    #[test]
    fn a_line_that_is_no_schedstat_is_none() {
        assert_eq!(parse_schedstat("10 20 3\n"), Some((10, 20, 3)));
        assert_eq!(parse_schedstat("10 20"), None);
        assert_eq!(parse_schedstat("a b c"), None);
    }
}
