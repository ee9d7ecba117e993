//! The kernel: its release, sched_ext, type information, lockdown; and what this process may do.

use super::{Finding, Root, host};
use hearth_host::kernel::version;
use hearth_host::privilege;

const FLOOR: (u32, u32) = (6, 12);

/// Bits of `CapEff`, and what each is for.
const CAPABILITIES: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), (23, "CAP_SYS_NICE")];
const SYS_ADMIN: u32 = 21;

pub(super) fn findings(root: &Root) -> Vec<Finding> {
    let mut findings = vec![release(root), sched_ext(root), types(root)];
    findings.extend(lockdown(root));
    findings
}

fn release(root: &Root) -> Finding {
    let Some(release) = root.text("/proc/sys/kernel/osrelease") else {
        return Finding::missing(
            "kernel",
            "unknown",
            root.lacks("/proc/sys/kernel/osrelease", "mount /proc"),
        );
    };
    match version(&release) {
        Some(version) if version < FLOOR => Finding::missing(
            "kernel",
            format!("{release}, older than 6.12"),
            "boot 6.12 or later built with CONFIG_SCHED_CLASS_EXT; Debian's kernels have it from 6.16 on",
        ),
        Some(_) => Finding::ok("kernel", release),
        None => Finding::warning("kernel", release, "its version cannot be read; 6.12 or later is needed"),
    }
}

fn sched_ext(root: &Root) -> Finding {
    const SUBJECT: &str = "sched_ext";
    let Some(state) = root.text("/sys/kernel/sched_ext/state") else {
        let found = match config(root, "CONFIG_SCHED_CLASS_EXT") {
            Some(false) => "not in this kernel (CONFIG_SCHED_CLASS_EXT is not set)",
            _ => "not in this kernel",
        };
        return Finding::missing(
            SUBJECT,
            found,
            format!(
                "boot a kernel built with CONFIG_SCHED_CLASS_EXT; until then, {}",
                without_scheduler(root)
            ),
        );
    };
    let loaded = root.text("/sys/kernel/sched_ext/root/ops").filter(|name| !name.is_empty());
    match loaded {
        Some(name) if name.starts_with("hearth") => Finding::ok(SUBJECT, format!("{state}: {name} runs")),
        Some(name) => Finding::warning(
            SUBJECT,
            format!("{state}: the scheduler {name} is loaded"),
            "hearth start refuses until it is ended",
        ),
        None => Finding::ok(SUBJECT, format!("there, {state}")),
    }
}

/// What can be done where no scheduler can be loaded.
fn without_scheduler(root: &Root) -> &'static str {
    match host::has_cpusets(root) {
        Some(false) => {
            "only hearth observe is of use: hearth start --no-scheduler needs cpusets of control groups of version 2, \
             which are not here"
        }
        _ => "do without one: hearth start --no-scheduler, hearth observe",
    }
}

/// Whether an option is set, as far as a configuration can be read.
fn config(root: &Root, option: &str) -> Option<bool> {
    let release = root.text("/proc/sys/kernel/osrelease")?;
    let text = root
        .text(&format!("/boot/config-{release}"))
        .or_else(|| root.text(&format!("/lib/modules/{release}/config")))?;
    Some(text.lines().any(|line| line.strip_prefix(option).is_some_and(|rest| rest.starts_with("=y"))))
}

fn types(root: &Root) -> Finding {
    if root.has("/sys/kernel/btf/vmlinux") {
        Finding::ok("type information", "/sys/kernel/btf/vmlinux is there")
    } else {
        Finding::missing(
            "type information",
            "no /sys/kernel/btf/vmlinux",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF",
        )
    }
}

fn lockdown(root: &Root) -> Option<Finding> {
    let text = root.text("/sys/kernel/security/lockdown")?;
    Some(if text.contains("[confidentiality]") {
        Finding::missing(
            "lockdown",
            "confidentiality",
            "BPF programs may not read kernel memory; boot with lockdown=integrity or none",
        )
    } else {
        Finding::ok("lockdown", text)
    })
}

/// What this process may do.
pub(super) fn privilege() -> Finding {
    let effective =
        procfs::process::Process::myself().and_then(|own| own.status()).map(|status| status.capeff);
    judge_privilege(effective.unwrap_or(0))
}

fn judge_privilege(effective: u64) -> Finding {
    const SUBJECT: &str = "privilege";
    let has = |bit: u32| effective >> bit & 1 == 1;
    let lacking: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| *name).collect();
    if lacking.is_empty() && has(SYS_ADMIN) {
        Finding::ok(SUBJECT, "all that start and observe need")
    } else if has(SYS_ADMIN) {
        Finding::warning(
            SUBJECT,
            format!("without {}", lacking.join(", ")),
            "--only needs CAP_SYS_NICE, counters need CAP_PERFMON",
        )
    } else if lacking.is_empty() {
        Finding::ok(SUBJECT, "CAP_BPF, CAP_PERFMON, CAP_SYS_NICE")
    } else {
        Finding::missing(SUBJECT, format!("without {}", lacking.join(", ")), privilege::advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn privilege_is_judged_by_capabilities() {
        assert_eq!(judge_privilege(u64::MAX).level, Level::Ok);
        assert_eq!(judge_privilege(1 << 39 | 1 << 38 | 1 << 23).level, Level::Ok);
        assert_eq!(judge_privilege(1 << SYS_ADMIN).level, Level::Warning);
        let none = judge_privilege(0);
        assert_eq!(none.level, Level::Missing);
        assert!(none.found.contains("CAP_BPF"));
    }
}
