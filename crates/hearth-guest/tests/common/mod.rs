//! Guests that many tests share, each booted once.

#![allow(dead_code)]

mod binary;
mod outcome;

use std::env;
use std::path::Path;
use std::sync::OnceLock;

use hearth_guest::{Guest, GuestError, Kernel, Output, Record};

/// Shell functions of the scripts.
const FUNCTIONS: &str = r#"
start() {
	bench start /tmp/log hearth start --foreground --pages none "$@" && return
	cat /tmp/log
	exit 1
}
# Waits until `hearth status` has these words in a line.
until_status_says() {
	for try in $(seq 300); do
		hearth status | grep -q "$1" && return
		usleep 100000
	done
	echo "never=$1"
	hearth status
}
# Waits until the planner has taken a step: it loads a program of its own once the scheduler runs.
settle() {
	until_status_says 'last step'
}
state() {
	cat /sys/kernel/sched_ext/state
}
# Waits until sched_ext is in a state, for at most 10 s, and prints how many ms that took.
await() {
	from=$(cut -d' ' -f1 /proc/uptime | tr -d .)
	for try in $(seq 1000); do
		[ "$(state)" = "$1" ] && break
		usleep 10000
	done
	to=$(cut -d' ' -f1 /proc/uptime | tr -d .)
	echo "await=$1 state=$(state) ms=$(((to - from) * 10))"
}
"#;

/// A guest that is booted when the first test asks for its output.
pub struct Shared {
    output: OnceLock<Result<Output, String>>,
}

impl Shared {
    pub const fn new() -> Self {
        Self { output: OnceLock::new() }
    }

    /// What the guest said, or None, with the reason printed, where no guest can boot; where one is
    /// required, that is a failure.
    pub fn output(&'static self, script: &str, kernel: Kernel) -> Option<&'static Output> {
        self.output_of(script, |hearth| Ok(guest(kernel, hearth)))
    }

    pub fn output_of(
        &'static self,
        script: &str,
        make: impl FnOnce(&Path) -> Result<Guest, GuestError>,
    ) -> Option<&'static Output> {
        match self.output.get_or_init(|| run(script, make)) {
            Ok(output) => {
                outcome::ran();
                Some(output)
            }
            Err(reason) => {
                outcome::skipped(reason);
                None
            }
        }
    }
}

/// What the guest said, or why none can boot.
fn run(script: &str, make: impl FnOnce(&Path) -> Result<Guest, GuestError>) -> Result<Output, String> {
    let hearth = binary::hearth()?;
    let script = format!("{FUNCTIONS}sleep {}\n{script}", later());
    let output = make(&hearth).and_then(|guest| guest.run(&script));
    Ok(output.unwrap_or_else(|error| panic!("{error}")))
}

/// How much later than at once the script begins, in seconds. A guest's clock counts instructions, so
/// this shifts all that the script does against what the kernel does by itself.
fn later() -> f64 {
    let seed = env::var("HEARTH_GUEST_SEED").unwrap_or_default();
    let seed: u32 = if seed.is_empty() { 0 } else { seed.parse().expect("HEARTH_GUEST_SEED: a number") };
    f64::from(seed % 1000) * 0.0173
}

/// A deterministic guest with Hearth in it.
pub fn guest(kernel: Kernel, hearth: &Path) -> Guest {
    Guest::new(kernel).file(hearth, "/bin/hearth")
}

/// The records of a section that have a key.
pub fn records(output: &Output, section: &str, key: &str) -> Vec<Record> {
    let records = output.section(section).unwrap().records();
    records.into_iter().filter(|record| record.text(key).is_some()).collect()
}

/// A key's number in each record.
pub fn numbers(records: &[Record], key: &str) -> Vec<f64> {
    records.iter().map(|record| record.get(key).unwrap()).collect()
}

/// The first record of a section with a key.
pub fn first(output: &Output, section: &str, key: &str) -> Record {
    let records = records(output, section, key);
    records.into_iter().next().unwrap_or_else(|| {
        panic!("no {key}= in section {section}: {:#?}", output.section(section).unwrap().lines)
    })
}

/// The number of the first record of a section with a key.
pub fn number(output: &Output, section: &str, key: &str) -> u64 {
    first(output, section, key).get(key).unwrap()
}

/// All numbers of a key in a section, in order.
pub fn numbers_in(output: &Output, section: &str, key: &str) -> Vec<u64> {
    records(output, section, key).iter().map(|record| record.get(key).unwrap()).collect()
}

/// The lines of a section.
pub fn text(output: &Output, section: &str) -> String {
    output.section(section).unwrap_or_else(|error| panic!("{error}")).lines.join("\n")
}

/// The only line of a section.
pub fn line<'a>(output: &'a Output, section: &str) -> &'a str {
    output.section(section).unwrap().lines.first().map_or("", String::as_str)
}

/// Whether a section has this line.
pub fn has_line(output: &Output, section: &str, wanted: &str) -> bool {
    output.section(section).unwrap().lines.iter().any(|line| line == wanted)
}

pub fn assert_untroubled(output: &Output) {
    assert_eq!(output.kernel_trouble(), Vec::<&str>::new());
    assert!(output.powered_off, "the guest did not shut down");
}
