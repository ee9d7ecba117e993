//! What the plugin is told on QEMU's command line.

use hearth_machine::{Machine, MachineError};
use std::path::PathBuf;

/// Why the plugin does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("plugin argument {0:?} is not of the form NAME=VALUE")]
    NotAPair(String),
    #[error(
        "plugin argument {0:?} is not known; there are machine, out, mode, quantum, begin, clock, seed and \
         node_mib"
    )]
    Unknown(String),
    #[error("plugin argument {name}={value}: {expected}")]
    Value { name: &'static str, value: String, expected: &'static str },
    #[error("plugin argument {0}= is missing")]
    Missing(&'static str),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Unsupported(#[from] hearth_hardware::Unsupported),
    #[error("{path}: {source}; name a file that can be written with out=")]
    Out { path: PathBuf, source: std::io::Error },
    #[error("{path}: {what}; name the file that a guest wrote with clock=")]
    Begin { path: PathBuf, what: String },
    #[error("the guest has {guest} CPUs and machine {machine} has {cpus}; start it with at most as many")]
    TooManyCpus { guest: usize, machine: String, cpus: usize },
    #[error("this QEMU has version {0} of the plugin interface, and version 4 is needed: that of QEMU 10.0")]
    Interface(i32),
    #[error("a guest of architecture {0} cannot be counted, only x86_64 in system emulation")]
    Target(String),
    #[error(
        "this build of QEMU keeps its clock elsewhere; mode=timed needs Debian's QEMU 10.0.2, without -icount"
    )]
    Clock,
    #[error("this QEMU does not export {0}; the plugin needs QEMU 10.0 as Debian builds it")]
    NoSymbol(&'static str),
}

/// Cycles by which CPUs may be apart, if nothing else is said.
const QUANTUM_CYCLES: u64 = 20_000;

/// The arguments, checked.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) machine: Machine,
    pub(crate) out: PathBuf,
    /// Bytes of memory of each node of the guest.
    pub(crate) node_bytes: Vec<u64>,
    /// Cycles by which CPUs may be apart, where their time drives the guest's clock.
    pub(crate) quantum_cycles: Option<u64>,
    /// Says where the guest's clock begins, in nanoseconds; without it, at 0.
    pub(crate) begin: Option<PathBuf>,
    /// Where it is written where the clock has come to at the end.
    pub(crate) clock: Option<PathBuf>,
}

impl Arguments {
    /// Reads `NAME=VALUE` pairs.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Refusal> {
        let (mut machine, mut out, mut node_bytes) = (None, None, None);
        let (mut is_timed, mut quantum_cycles, mut begin, mut clock) = (false, QUANTUM_CYCLES, None, None);
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| Refusal::NotAPair(word.clone()))?;
            match name {
                "machine" => machine = Some(Machine::load(value)?),
                "out" => out = Some(PathBuf::from(value)),
                "mode" => is_timed = mode(value)?,
                "quantum" => quantum_cycles = number("quantum", value)?.max(1000),
                "begin" => begin = Some(PathBuf::from(value)),
                "clock" => clock = Some(PathBuf::from(value)),
                // Nothing here is left to chance: whoever varies a guest's start by a seed may say so.
                "seed" => _ = number("seed", value)?,
                "node_mib" => node_bytes = Some(sizes(value)?),
                _ => return Err(Refusal::Unknown(name.to_owned())),
            }
        }
        let machine = machine.ok_or(Refusal::Missing("machine"))?;
        let own = || machine.nodes.iter().map(|node| node.memory_bytes).collect();
        let node_bytes = node_bytes.unwrap_or_else(own);
        let out = out.ok_or(Refusal::Missing("out"))?;
        let quantum_cycles = is_timed.then_some(quantum_cycles);
        Ok(Self { machine, out, node_bytes, quantum_cycles, begin, clock })
    }
}

fn number(name: &'static str, value: &str) -> Result<u64, Refusal> {
    let wrong = |_| Refusal::Value { name, value: value.to_owned(), expected: "a number is expected" };
    value.parse().map_err(wrong)
}

fn mode(value: &str) -> Result<bool, Refusal> {
    match value {
        "counts" => Ok(false),
        "timed" => Ok(true),
        _ => Err(Refusal::Value { name: "mode", value: value.to_owned(), expected: "counts or timed" }),
    }
}

/// `A:B:...` in MiB, as bytes.
fn sizes(value: &str) -> Result<Vec<u64>, Refusal> {
    let bytes = |mib: &str| mib.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20));
    let expected = "MiB of memory of each node, as A:B:...";
    let wrong = || Refusal::Value { name: "node_mib", value: value.to_owned(), expected };
    value.split(':').map(bytes).collect::<Option<_>>().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Arguments, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Arguments::parse(&words).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn memory_is_that_of_the_machine_unless_it_is_said() {
        let told = parse(&["machine=server-2s", "out=x.json", "node_mib=1024:512", "seed=3"]).unwrap();
        assert_eq!(told.node_bytes, [1 << 30, 1 << 29]);
        let untold = parse(&["machine=server-2s", "out=x.json", "mode=counts"]).unwrap();
        assert_eq!(untold.node_bytes.len(), untold.machine.nodes.len());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |words: &[&str]| parse(words).unwrap_err();
        assert!(refused(&["out=x"]).contains("machine= is missing"));
        assert!(refused(&["machine=server-2s"]).contains("out= is missing"));
        assert!(refused(&["machine=nowhere.toml", "out=x"]).contains("nowhere.toml"));
        assert!(refused(&["speed=1"]).contains("\"speed\" is not known"));
        assert!(refused(&["node_mib=1:x"]).contains("A:B"));
        assert!(refused(&["mode=fast"]).contains("mode=fast"));
        assert!(refused(&["machine"]).contains("NAME=VALUE"));
    }
}
