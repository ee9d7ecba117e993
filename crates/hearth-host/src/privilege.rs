//! What this process may do: root in a container lacks what root of the machine has.

use procfs::process::Process;

/// Capabilities that something of Hearth needs, with their bits.
const CAPABILITIES: [(u32, &str); 6] = [
    (SYS_ADMIN, "CAP_SYS_ADMIN"),
    (BPF, "CAP_BPF"),
    (PERFMON, "CAP_PERFMON"),
    (23, "CAP_SYS_NICE"),
    (19, "CAP_SYS_PTRACE"),
    (2, "CAP_DAC_READ_SEARCH"),
];
const SYS_ADMIN: u32 = 21;
const BPF: u32 = 39;
const PERFMON: u32 = 38;

/// Whether this process may load BPF programs of all kinds.
pub fn may_load() -> bool {
    let lacks = lacking(effective());
    !lacks.contains(&"CAP_BPF") && !lacks.contains(&"CAP_PERFMON")
}

fn effective() -> u64 {
    Process::myself().and_then(|own| own.status()).map_or(0, |status| status.capeff)
}

/// What this process lacks, as the end of a sentence that says what may not be done.
pub fn advice() -> String {
    advice_of(rustix::process::geteuid().is_root(), effective())
}

/// The same of a user, with these capabilities as bits.
pub fn advice_of(is_root: bool, effective: u64) -> String {
    let lacking = lacking(effective);
    if !is_root {
        "run as root: sudo hearth …".to_owned()
    } else if lacking.is_empty() {
        "root may not either: the file system is read-only here, or a security module forbids it".to_owned()
    } else {
        format!(
            "root lacks {} here, as in a container: run Hearth outside, or give the container these",
            lacking.join(", ")
        )
    }
}

/// Of capabilities as bits, those that are not there.
fn lacking(effective: u64) -> Vec<&'static str> {
    let has = |bit: u32| effective >> bit & 1 == 1;
    // The first holds what the next two do.
    let holds = |bit: u32| has(bit) || matches!(bit, BPF | PERFMON) && has(SYS_ADMIN);
    CAPABILITIES.iter().filter(|(bit, _)| !holds(*bit)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_in_a_container_is_told_what_it_lacks_and_others_to_be_root() {
        assert_eq!(advice_of(false, 0), "run as root: sudo hearth …");
        let docker = 0xa804_25fb;
        let said = advice_of(true, docker);
        assert!(said.starts_with("root lacks CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON, CAP_SYS_NICE"), "{said}");
        assert!(said.contains("container"), "{said}");
        assert!(advice_of(true, u64::MAX).contains("security module"));
        assert_eq!(lacking(1 << SYS_ADMIN), ["CAP_SYS_NICE", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]);
    }
}
