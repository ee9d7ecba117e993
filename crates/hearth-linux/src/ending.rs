//! Why the kernel let go of the scheduler, in words, with what is needed to look into it.

use crate::{Error, Exit};
use hearth_host::hogs::{self, Hog};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many dumps are kept.
const DUMPS_KEPT: usize = 10;
/// How long real-time tasks are watched after an error.
const WATCH: Duration = Duration::from_millis(500);
const LAST: &str = "last-ending.json";

// `enum scx_exit_kind`.
const UNREGISTERED: i32 = 64;
const UNREGISTERED_BY_KERNEL: i32 = 66;
const SYSRQ: i32 = 67;
const ERROR: i32 = 1024;
const ERROR_BPF: i32 = 1025;
const STALL: i32 = 1026;

/// The end of a scheduler that was not asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// What the kernel says.
    pub exit: Exit,
    /// What it means.
    pub words: String,
    /// Real-time tasks that held CPUs just then.
    pub hogs: Vec<Hog>,
    /// The kernel's account of every CPU and task.
    pub dump: Option<PathBuf>,
}

impl Ending {
    /// Saves the kernel's account.
    pub fn note(exit: Exit, state: &Path) -> Self {
        let at = SystemTime::now();
        let _ = fs::create_dir_all(state);
        let dump = if exit.dump.is_empty() { None } else { save_dump(&exit, at, state).ok() };
        let at_unix_s = at.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self { at_unix_s, words: words(&exit), exit, hogs: Vec::new(), dump }
    }

    /// Looks at the machine right after the kernel let go, and saves what the kernel says.
    pub fn look(exit: Exit, state: &Path) -> Self {
        let hogs = if exit.is_error() { hogs::watch(WATCH) } else { Vec::new() };
        let ending = Self { hogs, ..Self::note(exit, state) };
        // What cannot be kept is still printed.
        let _ = serde_json::to_vec(&ending).map(|text| fs::write(state.join(LAST), text));
        ending
    }

    /// The last one that was kept. A file that cannot be read is none.
    pub fn last(state: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(state.join(LAST)).ok()?).ok()
    }

    /// Forgets the last one.
    pub fn forget(state: &Path) {
        let _ = fs::remove_file(state.join(LAST));
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.words)?;
        if !self.hogs.is_empty() {
            write!(out, ". Real-time tasks held CPUs, and go before every fair task under any scheduler:")?;
            for hog in &self.hogs {
                write!(out, "\n  {hog}")?;
            }
            write!(
                out,
                "\nmake them sleep now and then, bind them to CPUs of their own (isolcpus, cpusets), or lower their class"
            )?;
        }
        if let Some(dump) = &self.dump {
            write!(out, "\nthe kernel's account of every CPU and task: {}", dump.display())?;
        }
        Ok(())
    }
}

fn words(exit: &Exit) -> String {
    let message = if exit.message.is_empty() { &exit.reason } else { &exit.message };
    match exit.kind {
        STALL => match Stall::parse(&exit.message) {
            Some(Stall { task, pid, counted }) => {
                let (place, holder) = match Place::of(&exit.dump, pid) {
                    Some(place) => (format!(" at CPU {}", place.cpu), place.holder.unwrap_or_default()),
                    None => Default::default(),
                };
                match exit.waited {
                    Some(waited) => format!(
                        "the kernel counted a wait that did not happen. {task} (task {pid}) had waited{place} for \
                         {:.3}s{holder}; the kernel counted {counted}, from before the task was in another \
                         scheduling class. Some kernels do so, Linux 6.16 and 7.0 among them; 7.3 does not",
                        waited.as_secs_f64()
                    ),
                    None => {
                        format!("{task} (task {pid}) waited{place} for {counted} without running{holder}")
                    }
                }
            }
            None => format!("a task did not get to run: {message}"),
        },
        ERROR => format!("the kernel found an error in the scheduler: {message}"),
        ERROR_BPF => format!("the scheduler gave up: {message}"),
        SYSRQ => "it was ended from the keyboard or the console (sysrq-S)".to_owned(),
        UNREGISTERED => "another program unregistered it".to_owned(),
        UNREGISTERED_BY_KERNEL if message.contains("cpu") => {
            format!("the set of CPUs changed ({message})")
        }
        _ => message.clone(),
    }
}

/// What the kernel says of a task that waits: `NAME[PID] failed to run for SECONDSs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stall<'a> {
    task: &'a str,
    pub(crate) pid: i32,
    /// For how long it did, as the kernel counts: `2.780s`.
    counted: &'a str,
}

impl<'a> Stall<'a> {
    pub(crate) fn parse(message: &'a str) -> Option<Self> {
        let (task, counted) = message.split_once(" failed to run for ")?;
        let (task, pid) = task.strip_suffix(']')?.rsplit_once('[')?;
        Some(Self { task, pid: pid.parse().ok()?, counted })
    }

    /// For how long it did, if it came to wait so long ago, and the kernel counted more than that. Both count ticks.
    /// A task that has run since then came to wait later than that, and the kernel counts less.
    pub(crate) fn really_waited(&self, since: Duration, tick: Duration) -> Option<Duration> {
        let counted: f64 = self.counted.strip_suffix('s')?.parse().ok()?;
        (Duration::try_from_secs_f64(counted).ok()? > since + 2 * tick).then_some(since)
    }
}

/// Where the kernel's account lists a task that waits.
struct Place {
    cpu: usize,
    /// Who ran there, in words, if no scheduler of fair tasks could have taken the CPU from it. The kernel
    /// may take long to let go, and the holder be gone by then: only the account has it.
    holder: Option<String>,
}

impl Place {
    fn of(dump: &str, pid: i32) -> Option<Self> {
        let mark = format!("[{pid}]");
        let mut place = None;
        for line in dump.lines() {
            if let Some(rest) = line.strip_prefix("CPU ") {
                let cpu = rest.split([' ', ':']).next().and_then(|number| number.parse().ok());
                place = cpu.map(|cpu| Self { cpu, holder: None });
            } else if let Some(current) = line.trim_start().strip_prefix("curr=") {
                place = place.map(|place| Self { holder: holder(current), ..place });
            } else if line.contains(&mark) && !line.contains("failed to run") {
                return place;
            }
        }
        None
    }
}

/// `NAME[PID] class=CLASS`
fn holder(current: &str) -> Option<String> {
    let (task, class) = current.rsplit_once(" class=")?;
    let (name, pid) = task.strip_suffix(']')?.rsplit_once('[')?;
    let class = match class {
        "rt_sched_class" => "a real-time class",
        "dl_sched_class" => "the deadline class",
        _ => return None,
    };
    Some(format!(", while {name} (task {pid}), of {class}, held that CPU"))
}

fn save_dump(exit: &Exit, at: SystemTime, state: &Path) -> Result<PathBuf, Error> {
    let folder = state.join("dumps");
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let date = humantime::format_rfc3339_seconds(at).to_string().replace(':', "-");
    let path = folder.join(format!("{date}.txt"));
    let mut text = String::new();
    let _ = write!(text, "{}: {}\n\n{}\n", exit.reason, exit.message, exit.dump);
    fs::write(&path, text).map_err(Error::file(&path))?;
    let mut dumps: Vec<PathBuf> =
        fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    dumps.retain(|dump| dump.extension().is_some_and(|extension| extension == "txt"));
    dumps.sort();
    for old in &dumps[..dumps.len().saturating_sub(DUMPS_KEPT)] {
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "spin[70] triggered exit kind 1026:\n  runnable task stall (spin[71] failed to run for \
        10.112s)\n\nCPU states\n----------\n\nCPU 0   : nr_run=1 flags=0x0\n          curr=spin[70] class=x\n\n\
        CPU 3   : nr_run=1 flags=0x0\n          curr=hog[66] class=rt_sched_class\n\n  R spin[71] -10112ms\n";

    fn exit(kind: i32, message: &str) -> Exit {
        Exit {
            kind,
            code: 0,
            reason: "reason".into(),
            message: message.into(),
            dump: DUMP.into(),
            waited: None,
        }
    }

    #[test]
    fn a_stall_names_the_task_the_time_and_the_cpu() {
        assert_eq!(
            words(&exit(STALL, "spin[71] failed to run for 10.112s")),
            "spin (task 71) waited at CPU 3 for 10.112s without running, while hog (task 66), of a real-time class, \
                held that CPU"
        );
        let fair = Exit {
            dump: DUMP.replace("rt_sched", "ext_sched"),
            ..exit(STALL, "spin[71] failed to run for 9s")
        };
        assert_eq!(words(&fair), "spin (task 71) waited at CPU 3 for 9s without running");
        assert_eq!(
            words(&exit(STALL, "watchdog failed to check in for 10.0s")),
            "a task did not get to run: watchdog failed to check in for 10.0s"
        );
        assert!(words(&exit(STALL, "a[b][9] failed to run for 1.0s")).starts_with("a[b] (task 9)"));
    }

    #[test]
    fn a_wait_that_did_not_happen_is_told_with_the_one_that_did() {
        let waited = Some(Duration::from_millis(340));
        let told = words(&Exit { waited, ..exit(STALL, "spin[71] failed to run for 10.112s") });
        assert!(told.starts_with("the kernel counted a wait that did not happen. spin (task 71)"), "{told}");
        assert!(told.contains("at CPU 3 for 0.340s, while hog (task 66)"), "{told}");
        assert!(told.contains("counted 10.112s") && told.contains("Linux 6.16 and 7.0"), "{told}");
    }

    #[test]
    fn a_wait_is_false_where_the_kernel_counts_more_than_there_was() {
        let ms = Duration::from_millis;
        let really_waited = |message, since| Stall::parse(message).unwrap().really_waited(since, ms(4));
        assert_eq!(really_waited("a[9] failed to run for 2.780s", ms(340)), Some(ms(340)));
        assert_eq!(really_waited("a[9] failed to run for 2.780s", ms(2776)), None, "one tick is none");
        assert_eq!(really_waited("a[9] failed to run for 2.780s", ms(60_000)), None, "it has run since");
        assert_eq!(really_waited("a[9] failed to run for ever", ms(0)), None);
    }

    #[test]
    fn each_kind_of_end_has_words() {
        for (kind, word) in [
            (ERROR, "bad dsq"),
            (ERROR_BPF, "bad dsq"),
            (SYSRQ, "sysrq-S"),
            (UNREGISTERED, "another program"),
            (UNREGISTERED_BY_KERNEL, "bad dsq"),
            (4711, "bad dsq"),
        ] {
            assert!(words(&exit(kind, "bad dsq")).contains(word), "{kind}");
        }
    }

    #[test]
    fn the_newest_dumps_are_kept_and_the_last_ending_is_remembered() {
        let state = tempfile::tempdir().unwrap();
        for second in 0..12 {
            save_dump(&exit(STALL, ""), UNIX_EPOCH + Duration::from_secs(second), state.path()).unwrap();
        }
        let ending = Ending::look(exit(SYSRQ, "disabled by sysrq-S"), state.path());
        let names: Vec<_> = fs::read_dir(state.path().join("dumps")).unwrap().flatten().collect();
        assert_eq!(names.len(), DUMPS_KEPT);
        assert!(fs::read_to_string(ending.dump.as_ref().unwrap()).unwrap().contains("CPU states"));
        let mut last = Ending::last(state.path()).unwrap();
        last.exit.dump = DUMP.into();
        assert_eq!(last, ending);
        Ending::forget(state.path());
        assert_eq!(Ending::last(state.path()), None);
    }
}
