use super::*;

/// A host of two CPUs in one socket with a kernel that can run Hearth.
fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let base = [
        ("proc/sys/kernel/osrelease", "7.3.4-amd64\n"),
        ("proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("sys/kernel/debug/sched/features", "RUN_TO_PARITY"),
        ("sys/kernel/debug/sched/ext_server/cpu0/runtime", "50000000"),
        ("sys/kernel/sched_ext/state", "disabled\n"),
        ("sys/kernel/btf/vmlinux", "types"),
        ("proc/77/cmdline", "program\0--option\0"),
        ("proc/78/comm", "scx_enable_help"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
        ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
    ];
    for (path, text) in base.iter().chain(files) {
        let path = root.path().join(path);
        if text.is_empty() {
            fs::remove_file(path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn find(files: &[(&str, &str)], subject: &str) -> (Level, String, Verdict) {
    let root = host(files);
    let report = look(root.path());
    let finding = report.findings.iter().find(|finding| finding.subject == subject);
    let finding = finding.unwrap_or_else(|| panic!("no {subject} in {:#?}", report.findings));
    let words = format!("{} {}", finding.found, finding.advice.clone().unwrap_or_default());
    (finding.level, words, report.verdict)
}

#[test]
fn a_kernel_with_everything_is_ready() {
    let root = host(&[]);
    let report = look(root.path());
    assert_eq!(report.verdict, Verdict::Ready, "{report:#?}");
    assert!(report.findings.iter().all(|finding| finding.level == Level::Ok), "{report:#?}");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    for (file, text, subject, word) in [
        ("proc/sys/kernel/osrelease", "6.1.0-10-amd64", "kernel", "boot 6.12"),
        ("sys/kernel/sched_ext/state", "", "sched_ext", "hearth observe"),
        ("sys/kernel/btf/vmlinux", "", "type information", "CONFIG_DEBUG_INFO_BTF"),
        ("sys/kernel/security/lockdown", "none integrity [confidentiality]", "lockdown", "boot with"),
        ("sys/devices/system/cpu/online", "0-1,600", "topology", "below number 512"),
    ] {
        let beyond = ("sys/devices/system/cpu/cpu600/online", "1");
        let (level, words, verdict) = find(&[(file, text), beyond], subject);
        assert_eq!((level, verdict), (Level::Missing, Verdict::Cannot), "{subject}: {words}");
        assert!(words.contains(word), "{subject}: {words}");
    }
}

#[test]
fn the_kernel_s_configuration_says_why_there_is_no_sched_ext() {
    let config = ("boot/config-7.3.4-amd64", "# CONFIG_SCHED_CLASS_EXT is not set\n");
    let (_, words, _) = find(&[("sys/kernel/sched_ext/state", ""), config], "sched_ext");
    assert!(words.contains("is not set"), "{words}");
}

#[test]
fn what_a_scheduler_turns_off_is_a_warning_with_the_consequence() {
    for (file, text, subject, word) in [
        ("proc/sys/kernel/numa_balancing", "1", "NUMA balancing", "moves pages itself"),
        ("sys/kernel/debug/sched/llc_balancing/enabled", "1", "cache-aware load balancing", "credit"),
        ("sys/kernel/debug/sched/features", "GENTLE SCHED_CACHE", "cache-aware load balancing", "credit"),
        ("sys/devices/system/cpu/smt/active", "1", "core scheduling", "cookie"),
        (
            "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            "schedutil",
            "CPU frequency",
            "full speed",
        ),
        ("sys/fs/cgroup/a/b/cpu.max", "50000 100000", "cpu.max of control groups", "a/b"),
        ("sys/fs/cgroup/a/cpu.weight", "300", "cpu.weight of control groups", "nice"),
        ("sys/fs/cgroup/a/cpu.idle", "1", "cpu.idle of control groups", "SCHED_IDLE"),
        ("sys/kernel/sched_ext/root/ops", "flash", "sched_ext", "refuses"),
        ("sys/kernel/debug/sched/ext_server/cpu0/runtime", "0", "real-time reserve", "starves"),
        ("sys/kernel/debug/sched/features", "", "real-time reserve", "the copy has no"),
        (
            "proc/mounts",
            "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0",
            "control groups",
            "version 1",
        ),
        ("proc/77/comm", "scx_lavd", "other daemons", "refuses"),
        ("proc/77/comm", "numad", "other daemons", "moves tasks"),
    ] {
        let (level, words, verdict) = find(&[(file, text)], subject);
        assert_eq!((level, verdict), (Level::Warning, Verdict::Ready), "{subject}: {words}");
        assert!(words.contains(word), "{subject}: {words}");
    }
}

#[test]
fn every_control_group_that_is_meant_is_named() {
    let files = ["a", "b", "c/d"].map(|group| (format!("sys/fs/cgroup/{group}/cpu.weight"), "300"));
    let files = files.each_ref().map(|(path, text)| (path.as_str(), *text));
    let (_, words, _) = find(&files, "cpu.weight of control groups");
    for group in ["cgroup/a,", "cgroup/b,", "cgroup/c/d "] {
        assert!(words.contains(group), "{group}: {words}");
    }
    assert!(!words.contains("more"), "{words}");
    let many = (0..12).map(|group| format!("sys/fs/cgroup/{group}/cpu.weight")).collect::<Vec<_>>();
    let many: Vec<_> = many.iter().map(|path| (path.as_str(), "300")).collect();
    let (_, words, _) = find(&many, "cpu.weight of control groups");
    assert!(words.contains("and 2 more: grep . /sys/fs/cgroup/*/cpu.weight"), "{words}");
}

#[test]
fn without_a_scheduler_is_advised_only_where_cpusets_are_of_version_2() {
    let no_scheduler = ("sys/kernel/sched_ext/state", "");
    for (files, works) in [
        (vec![no_scheduler], true),
        (vec![no_scheduler, ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory")], true),
        (vec![no_scheduler, ("sys/fs/cgroup/cgroup.controllers", "memory")], false),
        (vec![no_scheduler, ("proc/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0")], false),
    ] {
        let (_, words, _) = find(&files, "sched_ext");
        assert_eq!(words.contains("do without one: hearth start --no-scheduler"), works, "{words}");
        assert!(words.contains("hearth observe"), "{words}");
    }
}

#[test]
fn of_a_copy_it_is_said_which_file_it_lacks() {
    for (file, subject) in [("proc/sys/kernel/osrelease", "kernel"), ("proc/mounts", "control groups")] {
        let (_, words, _) = find(&[(file, "")], subject);
        assert!(words.contains("the copy has no") && words.contains(file), "{words}");
    }
}

#[test]
fn what_is_off_or_usual_is_fine() {
    for (file, text, subject) in [
        ("proc/sys/kernel/numa_balancing", "0", "NUMA balancing"),
        ("sys/kernel/debug/sched/llc_balancing/enabled", "0", "cache-aware load balancing"),
        ("sys/kernel/debug/sched/features", "NO_SCHED_CACHE", "cache-aware load balancing"),
        ("sys/fs/cgroup/a/cpu.max", "max 100000", "cpu.max of control groups"),
        ("sys/fs/cgroup/a/cpu.weight", "100", "cpu.weight of control groups"),
        ("proc/77/comm", "irqbalance", "other daemons"),
        ("sys/kernel/sched_ext/root/ops", "hearth", "sched_ext"),
    ] {
        assert_eq!(find(&[(file, text)], subject).0, Level::Ok, "{subject}");
    }
}

#[test]
fn a_folder_without_a_host_cannot_run_it() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(look(root.path()).verdict, Verdict::Cannot);
}

#[test]
fn commands_work_as_far_as_the_host_lets_them() {
    let works = |files: &[(&str, &str)], name: &str| {
        let report = look(host(files).path());
        let command = report.commands.iter().find(|command| command.name == name).unwrap();
        (command.works, command.why.clone().unwrap_or_default())
    };
    for (files, name, expected, why) in [
        (&[][..], "start", Works::Yes, ""),
        (&[], "start --pages-only", Works::No, "memory"),
        (&[("sys/kernel/sched_ext/state", "")], "start", Works::No, "sched_ext: not in this kernel"),
        (&[("sys/kernel/sched_ext/state", "")], "explain", Works::No, "sched_ext"),
        (&[("sys/kernel/sched_ext/state", "")], "observe", Works::Yes, ""),
        (&[("sys/kernel/btf/vmlinux", "")], "observe", Works::No, "type information"),
        (&[("sys/kernel/btf/vmlinux", "")], "neighbours", Works::No, "type information"),
        (&[("sys/kernel/btf/vmlinux", "")], "top", Works::Yes, ""),
    ] {
        let (found, said) = works(files, name);
        assert!(found == expected && said.contains(why), "{name}: {found:?}, {said}");
    }
    // This host's counters are those of its own, and no copy tells of them.
    let here = look("/".as_ref());
    let counts = !here.findings.iter().any(|finding| finding.advice.as_deref() == Some(counters::NO_RELOADS));
    let observe = here.commands.iter().find(|command| command.name == "observe").unwrap();
    assert!(counts || observe.works != Works::Yes, "{observe:?}");
}
