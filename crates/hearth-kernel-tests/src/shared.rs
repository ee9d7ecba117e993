//! Guests that many tests share, each booted once, also where each test is a process.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

use hearth_guest::{Guest, GuestError, Kernel, Output};

use crate::{binary, once, outcome, turn};

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
# Waits until sched_ext is in a state, and prints how many ms that took. It gives up after a minute: a
# scheduler that starts anew may be verified twice.
hundredths() { cut -d' ' -f1 /proc/uptime | tr -d .; }
await() {
	from=$(hundredths)
	for try in $(seq 6000); do
		[ "$(state)" = "$1" ] && break
		usleep 10000
	done
	to=$(hundredths)
	echo "await=$1 state=$(state) ms=$(((to - from) * 10))"
}
"#;

/// A guest that is booted when the first test asks for its output.
pub struct Shared {
    output: OnceLock<Result<Output, String>>,
}

impl Shared {
    /// Not booted yet.
    pub const fn new() -> Self {
        Self { output: OnceLock::new() }
    }

    /// What the guest said, or None, with the reason printed, where no guest can boot; where one is
    /// required, that is a failure.
    pub fn output(&'static self, script: &str, kernel: Kernel) -> Option<&'static Output> {
        self.output_of(script, |hearth| Ok(guest(kernel, hearth)))
    }

    /// The same, of a guest that `make` makes.
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

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

/// What the guest said, or why none can boot.
fn run(script: &str, make: impl FnOnce(&Path) -> Result<Guest, GuestError>) -> Result<Output, String> {
    let hearth = binary::hearth()?;
    let script = format!("{FUNCTIONS}sleep {}\n{script}", later());
    let guest = make(&hearth).unwrap_or_else(|error| panic!("{error}"));
    let mut hasher = DefaultHasher::new();
    (format!("{guest:?}"), &script).hash(&mut hasher);
    Ok(once(&format!("guest-{:016x}", hasher.finish()), || {
        let _turn = turn();
        guest.run(&script).unwrap_or_else(|error| panic!("{error}"))
    }))
}

/// How much later than at once the script begins, in seconds. A guest's clock counts instructions, so
/// this shifts all that the script does against what the kernel does by itself.
fn later() -> f64 {
    let seed = env::var("HEARTH_GUEST_SEED").unwrap_or_default();
    let seed: u32 = if seed.is_empty() { 0 } else { seed.parse().expect("HEARTH_GUEST_SEED: a number") };
    f64::from(seed % 1000) * 0.0173
}

/// A deterministic guest with Hearth in it. `HEARTH_KERNEL=second` or `floor`: of that kernel where the pinned one
/// is meant.
///
/// # Panics
/// Where a library that Hearth needs is missing.
pub fn guest(kernel: Kernel, hearth: &Path) -> Guest {
    let named = env::var("HEARTH_KERNEL").unwrap_or_default();
    let kernel = match (kernel, named.as_str()) {
        (Kernel::Pinned, "second") => Kernel::Second,
        (Kernel::Pinned, "floor") => Kernel::Floor,
        (kernel, "" | "pinned" | "second" | "floor") => kernel,
        (_, other) => panic!("HEARTH_KERNEL: {other} is none of pinned, second, floor"),
    };
    Guest::new(kernel).program(hearth, "/bin/hearth", &[]).unwrap_or_else(|error| panic!("{error}"))
}
