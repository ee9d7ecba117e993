//! Prints how fast a guest runs with the plugin, and without: instructions and references of a load that is
//! counted, for each second of this host's CPU time beyond that of the same guest without the load.
//!
//! ```text
//! cargo run --release -p hearth-emulate-plugin --example speed -- [ROUNDS]
//! ```

#[path = "../tests/common/guest.rs"]
mod guest;

use guest::Setup;
use hearth_emulate::counts::{Counts, Report};
use hearth_guest::{GuestError, Mode};
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

/// Rounds of the load if none are given: matrices of 4 MiB in all are multiplied.
const ROUNDS: u32 = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("counts.json");
    let counted = load(Mode::Deterministic, Some(&out), rounds)?;
    let Counts { instructions, loads, stores, fetches, .. } = counts(&out)?;
    println!("{instructions} instructions, {} loads and stores, {fetches} lines fetched", loads + stores);
    let millions = |what: u64, seconds: f64| what as f64 / 1e6 / seconds;
    for (name, seconds) in [
        ("no plugin", load(Mode::Deterministic, None, rounds)?),
        ("counts", counted),
        ("timed", load(Mode::Timed, Some(&out), rounds)?),
    ] {
        let (mips, references) = (millions(instructions, seconds), millions(loads + stores, seconds));
        println!("{name}: {seconds:.1} CPU s, {mips:.0} MIPS, {references:.0} M loads and stores a second");
    }
    Ok(())
}

/// CPU seconds that the load takes.
fn load(mode: Mode, out: Option<&Path>, rounds: u32) -> Result<f64, GuestError> {
    let idle = boot(mode, out, 0)?;
    Ok(boot(mode, out, rounds)? - idle)
}

/// CPU seconds of a guest that does so many rounds.
fn boot(mode: Mode, out: Option<&Path>, rounds: u32) -> Result<f64, GuestError> {
    let before = children_s();
    let setup = Setup::new(mode);
    let guest = out.map_or_else(|| setup.uncounted(), |out| setup.counted(out));
    guest.run(&format!("hearth-region symbols\nknown mix mix 4096 {rounds}\n"))?;
    Ok(children_s() - before)
}

/// All that all tasks but the idle ones did in the region.
fn counts(out: &Path) -> Result<Counts, Box<dyn std::error::Error>> {
    let report: Report = serde_json::from_str(&fs::read_to_string(out)?)?;
    let mut all = Counts::default();
    for task in report.regions.iter().flat_map(|region| &region.tasks).filter(|task| task.pid != 0) {
        all += task.user;
        all += task.kernel;
    }
    Ok(all)
}

/// CPU time in user mode of programs that were started and have ended.
fn children_s() -> f64 {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: the kernel fills in what it is given room for; zeroes are a usage, too.
    let usage: libc::rusage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
}
