//! One measurement: a command's time, or a service's metric after a window of time.

use anyhow::anyhow;
use hearth_command::failure::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often Ctrl-C and the scheduler are looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What is measured.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A command, run each time. Seconds.
    Command(Vec<OsString>),
    /// A service that runs: the number that a shell command prints at the end of a window.
    Service {
        /// The shell command.
        metric: String,
        /// How long the window is.
        window: Duration,
        /// How long after a switch it begins.
        settle: Duration,
    },
}

/// Why there is no value.
pub enum Lack {
    /// Ctrl-C.
    Interrupted,
    /// Everything else.
    Failed(Failure),
}

impl From<Failure> for Lack {
    fn from(failure: Failure) -> Self {
        Lack::Failed(failure)
    }
}

impl Subject {
    /// What the values are.
    pub fn unit(&self) -> &'static str {
        match self {
            Subject::Command(_) => "s",
            Subject::Service { .. } => "",
        }
    }

    /// Measures once. `look` is called now and then, and may end it.
    pub fn measure(&self, stop: &AtomicBool, look: impl Fn() -> Result<(), Failure>) -> Result<f64, Lack> {
        match self {
            Subject::Command(words) => {
                let begin = Instant::now();
                let child = Group(spawn(words, Stdio::null())?);
                child.wait(words, stop, look)?;
                Ok(begin.elapsed().as_secs_f64())
            }
            Subject::Service { metric, window, settle } => {
                wait(*settle + *window, stop, &look)?;
                let words = ["sh", "-c", metric].map(OsString::from);
                let child = Group(spawn(&words, Stdio::piped())?);
                number(metric, &child.wait(&words, stop, look)?)
            }
        }
    }
}

fn wait(time: Duration, stop: &AtomicBool, look: impl Fn() -> Result<(), Failure>) -> Result<(), Lack> {
    let until = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Lack::Interrupted);
        }
        look()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn number(metric: &str, output: &str) -> Result<f64, Lack> {
    let line = output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("").trim();
    match line.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        Ok(value) => {
            Err(Failure::failed(anyhow!("{metric} printed {value}; a metric is a number above 0")).into())
        }
        Err(_) => Err(Failure::failed(anyhow!(
            "{metric} printed {line:?} in its last line; a metric is one number above 0"
        ))
        .into()),
    }
}

fn spawn(words: &[OsString], output: Stdio) -> Result<Child, Failure> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Failure::Input(anyhow!("name a command after --")));
    };
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::Input(anyhow!("cannot run {}: {error}", program.to_string_lossy())))
}

/// A child that leads a process group, which ends with it.
struct Group(Child);

impl Group {
    /// Waits for the end, and gives what it printed. One that failed is an error.
    fn wait(
        mut self,
        words: &[OsString],
        stop: &AtomicBool,
        look: impl Fn() -> Result<(), Failure>,
    ) -> Result<String, Lack> {
        let descriptor =
            pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty()).map_err(Failure::failed)?;
        while self.0.try_wait().map_err(Failure::failed)?.is_none() {
            if stop.load(Ordering::Relaxed) {
                return Err(Lack::Interrupted);
            }
            look()?;
            // A signal ends the wait early, which is looked at next.
            let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&LOOK));
        }
        let mut text = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            std::io::Read::read_to_string(&mut output, &mut text).map_err(Failure::failed)?;
        }
        let status = self.0.wait().map_err(Failure::failed)?;
        if status.success() {
            return Ok(text);
        }
        let name = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Err(Failure::failed(anyhow!("{name} failed ({status}); its output goes nowhere: try it by itself"))
            .into())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(subject: &Subject) -> Result<f64, String> {
        subject.measure(&AtomicBool::new(false), || Ok(())).map_err(|lack| match lack {
            Lack::Interrupted => "interrupted".into(),
            Lack::Failed(failure) => format!("{failure:?}"),
        })
    }

    fn metric(text: &str) -> Subject {
        Subject::Service { metric: text.into(), window: Duration::ZERO, settle: Duration::ZERO }
    }

    fn command(words: &[&str]) -> Subject {
        Subject::Command(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn a_metric_is_the_number_in_the_last_line() {
        assert_eq!(measure(&metric("echo requests; echo 12.5; echo")), Ok(12.5));
        assert!(measure(&metric("echo fast")).unwrap_err().contains("one number"));
        assert!(measure(&metric("echo -1")).unwrap_err().contains("above 0"));
        assert!(measure(&metric("echo nan")).unwrap_err().contains("above 0"));
        assert!(measure(&metric("echo 1; exit 3")).unwrap_err().contains("exit status: 3"));
    }

    #[test]
    fn a_command_takes_time_or_is_said_to_fail() {
        assert!(measure(&command(&["true"])).unwrap() > 0.0);
        assert!(measure(&command(&["false"])).unwrap_err().contains("false failed"));
        assert!(measure(&command(&["/no/such/program"])).unwrap_err().contains("cannot run"));
    }

    #[test]
    fn what_runs_ends_when_the_user_interrupts() {
        let subject = command(&["sleep", "1000"]);
        let lack = subject.measure(&AtomicBool::new(true), || Ok(()));
        assert!(matches!(lack, Err(Lack::Interrupted)));
        let failed = subject.measure(&AtomicBool::new(false), || Err(Failure::Refuted));
        assert!(matches!(failed, Err(Lack::Failed(Failure::Refuted))));
    }
}
