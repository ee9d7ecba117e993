//! Random machines, written as sysfs writes them in one of several ways: what is read is what was written, lscpu
//! reads the same, and whatever is read can be simulated. And files that no kernel would write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hearth_machine::host::{self, HostTopology};
use hearth_machine::list::show_list;
use hearth_machine::{Holds, Machine};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A machine: CPUs, with what each is part of by a number of its own.
#[derive(Clone, Debug)]
struct Truth {
    cpus: Vec<Cpu>,
    levels: Vec<Level>,
    /// Memory of each node.
    mebibytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    id: usize,
    core: usize,
    pair: usize,
    node: usize,
    socket: usize,
    is_online: bool,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    level: u64,
    holds: Holds,
    kibibytes: Option<u64>,
    ways: Option<u64>,
    shared_by: Scope,
    /// Whether only the first socket has it.
    is_in_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Core,
    Pair,
    Node,
    Socket,
}

impl Cpu {
    fn group(self, scope: Scope) -> usize {
        match scope {
            Scope::Core => self.core,
            Scope::Pair => self.pair,
            Scope::Node => self.node,
            Scope::Socket => self.socket,
        }
    }
}

/// How a kernel, or who copied its files, writes it down.
#[derive(Clone, Copy, Debug)]
struct Style {
    has_lists: bool,
    has_masks: bool,
    /// One file `online`, or one of each CPU that may go.
    has_online: bool,
    has_nodes: bool,
    /// Sockets have numbers of their own, or all the same one, or none.
    packages: Packages,
    ends_in_zero: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packages {
    Numbered,
    Alike,
    None,
}

impl Truth {
    fn online(&self) -> Vec<Cpu> {
        self.cpus.iter().copied().filter(|cpu| cpu.is_online).collect()
    }

    /// The online CPUs that are alike in something, each group once.
    fn groups(&self, of: impl Fn(Cpu) -> usize) -> BTreeSet<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        self.online().into_iter().for_each(|cpu| groups.entry(of(cpu)).or_default().push(cpu.id));
        groups.into_values().collect()
    }

    fn with(&self, scope: Scope, cpu: Cpu) -> Vec<usize> {
        self.online()
            .iter()
            .filter(|other| other.group(scope) == cpu.group(scope))
            .map(|cpu| cpu.id)
            .collect()
    }

    fn levels_of(&self, cpu: Cpu) -> impl Iterator<Item = Level> {
        self.levels.iter().copied().filter(move |level| !level.is_in_first || cpu.socket == 0)
    }

    /// Who shares the outermost cache and a node; where there is none, those of the socket that have none either.
    fn domains(&self) -> BTreeSet<Vec<usize>> {
        let outermost = |cpu: Cpu| {
            let data = self.levels_of(cpu).filter(|level| level.holds != Holds::Instructions);
            data.max_by_key(|level| level.level).map(|level| (level.level, cpu.group(level.shared_by)))
        };
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for cpu in self.online() {
            let cache = outermost(cpu);
            let socket = cache.is_none().then_some(cpu.socket);
            groups.entry((cache, socket, cpu.node)).or_default().push(cpu.id);
        }
        groups.into_values().collect()
    }

    fn write(&self, root: &Path, style: Style) {
        let put = |path: String, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            fs::write(path, format!("{text}\n{}", if style.ends_in_zero { "\0" } else { "" })).expect("file");
        };
        let set = |folder: &str, list: &str, mask: &str, cpus: &[usize]| {
            if style.has_lists {
                put(format!("{folder}/{list}"), &show_list(cpus));
            }
            if style.has_masks {
                put(format!("{folder}/{mask}"), &show_mask(cpus));
            }
        };
        let all: Vec<usize> = self.cpus.iter().map(|cpu| cpu.id).collect();
        let online: Vec<usize> = self.online().iter().map(|cpu| cpu.id).collect();
        put("proc/cpuinfo".into(), "processor\t: 0\nmodel name\t: Random @ 2.5GHz\ncpu MHz\t\t: 800.0");
        put("proc/meminfo".into(), &format!("MemTotal: {} kB\nMemFree: 655360 kB", self.mebibytes << 10));
        put("proc/vmstat".into(), "nr_free_pages 10241\nnr_zone 3");
        put("sys/devices/system/cpu/possible".into(), &show_list(&all));
        put("sys/devices/system/cpu/present".into(), &show_list(&all));
        if style.has_online {
            put("sys/devices/system/cpu/online".into(), &show_list(&online));
        }
        for &cpu in &self.cpus {
            let folder = format!("sys/devices/system/cpu/cpu{}", cpu.id);
            if cpu.id != online[0] {
                put(format!("{folder}/online"), if cpu.is_online { "1" } else { "0" });
            }
            if !cpu.is_online {
                continue;
            }
            let topology = format!("{folder}/topology");
            set(&topology, "thread_siblings_list", "thread_siblings", &self.with(Scope::Core, cpu));
            set(&topology, "core_siblings_list", "core_siblings", &self.with(Scope::Socket, cpu));
            put(format!("{topology}/core_id"), &cpu.core.to_string());
            let package = match style.packages {
                Packages::Numbered => cpu.socket.to_string(),
                Packages::Alike => "0".to_owned(),
                Packages::None => "-1".to_owned(),
            };
            put(format!("{topology}/physical_package_id"), &package);
            for (index, level) in self.levels_of(cpu).enumerate() {
                let cache = format!("{folder}/cache/index{index}");
                let kind = match level.holds {
                    Holds::Instructions => "Instruction",
                    Holds::Data => "Data",
                    Holds::Both => "Unified",
                };
                put(format!("{cache}/type"), kind);
                put(format!("{cache}/level"), &level.level.to_string());
                set(&cache, "shared_cpu_list", "shared_cpu_map", &self.with(level.shared_by, cpu));
                if let Some(size) = level.kibibytes {
                    put(format!("{cache}/size"), &format!("{size}K"));
                }
                if let Some(ways) = level.ways {
                    put(format!("{cache}/ways_of_associativity"), &ways.to_string());
                }
            }
        }
        if style.has_nodes {
            for (node, cpus) in self.groups(|cpu| cpu.node).iter().enumerate() {
                let folder = format!("sys/devices/system/node/node{}", 3 * node);
                set(&folder, "cpulist", "cpumap", cpus);
                let memory = format!("Node {node} MemTotal: {} kB", self.mebibytes << 10);
                put(format!("{folder}/meminfo"), &memory);
            }
        }
    }
}

fn show_mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |last| last / 32 + 1);
    let word = |place: usize| {
        cpus.iter().filter(|cpu| **cpu / 32 == place).fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let words: Vec<String> = (0..words).rev().map(|place| format!("{:08x}", word(place))).collect();
    words.join(",")
}

fn level(number: u64, holds: Holds, scopes: &'static [Scope]) -> impl Strategy<Value = Level> {
    let size = prop::option::weighted(0.8, 1_u64 << (2 * number + 2)..1 << (2 * number + 8));
    (size, prop::option::of(1_u64..32), prop::sample::select(scopes), prop::bool::weighted(0.2)).prop_map(
        move |(kibibytes, ways, shared_by, is_in_first)| Level {
            level: number,
            holds,
            kibibytes,
            ways,
            shared_by,
            is_in_first,
        },
    )
}

fn levels() -> impl Strategy<Value = Vec<Level>> {
    use Scope::{Core, Node, Pair, Socket};
    let (inner, outer): (&[Scope], &[Scope]) = (&[Core, Pair], &[Pair, Node, Socket]);
    let one = |number, scopes| prop::option::of(level(number, Holds::Both, scopes));
    let split = |number| {
        let half = move |holds| level(number, holds, &[Core]);
        prop::option::of((half(Holds::Data), half(Holds::Instructions)))
    };
    (split(1), one(1, &[Core]), split(2), one(2, inner), one(3, outer), one(4, &[Socket])).prop_map(
        |(first, first_of_both, second, second_of_both, third, fourth)| {
            let mut levels = Vec::new();
            let mut add = |split: Option<(Level, Level)>, both: Option<Level>| match (split, both) {
                (Some((data, code)), _) => levels.extend([data, code]),
                (None, both) => levels.extend(both),
            };
            add(first, first_of_both);
            add(second, second_of_both);
            add(None, third);
            add(None, fourth);
            levels
        },
    )
}

fn truth() -> impl Strategy<Value = Truth> {
    let sizes = (1_usize..3, 1_usize..3, 1_usize..4, 1_usize..3);
    let numbers = (any::<bool>(), 1_usize..4);
    let offline = prop::collection::btree_set(1_usize..24, 0..3);
    (sizes, numbers, offline, levels(), 64_u64..1 << 20).prop_map(
        |((sockets, nodes, cores, threads), (is_far, stride), offline, levels, mebibytes)| {
            let all_cores = sockets * nodes * cores;
            let cpus = (0..all_cores * threads).map(|number| {
                // Threads of a core side by side, or all first threads first.
                let core = if is_far { number % all_cores } else { number / threads };
                let node = core / cores;
                let is_online = !offline.contains(&number);
                Cpu {
                    id: number * stride,
                    core,
                    pair: node * cores + core % cores / 2,
                    node,
                    socket: node / nodes,
                    is_online,
                }
            });
            Truth { cpus: cpus.collect(), levels, mebibytes }
        },
    )
}

fn style() -> impl Strategy<Value = Style> {
    let packages = prop::sample::select(vec![Packages::Numbered, Packages::Alike, Packages::None]);
    ((0_usize..3), any::<[bool; 3]>(), packages).prop_map(
        |(sets, [has_online, has_nodes, ends_in_zero], packages)| Style {
            has_lists: sets != 1,
            has_masks: sets != 0,
            has_online,
            has_nodes,
            packages,
            ends_in_zero,
        },
    )
}

/// A machine of what was read; whatever it is it can be simulated and read back.
fn machine_of(host: &HostTopology) -> Machine {
    let made = host.to_machine().expect("a machine");
    assert_eq!(Machine::parse(&made.to_toml(), "host").expect("readable"), made.machine);
    assert_eq!(made.host_cpus.len(), made.machine.cpus());
    assert!(made.host_cpus.iter().all(|id| host.cpus.iter().any(|cpu| cpu.id == *id)));
    made.machine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_read_is_what_was_written(truth in truth(), style in style()) {
        let root = tempfile::tempdir().expect("folder");
        truth.write(root.path(), style);
        let host = host::read(root.path()).expect("readable");
        let online: Vec<usize> = truth.online().iter().map(|cpu| cpu.id).collect();
        let read: Vec<usize> = host.cpus.iter().map(|cpu| cpu.id).collect();
        prop_assert_eq!(&read, &online);
        prop_assert_eq!(host.offline.len(), truth.cpus.len() - online.len());
        prop_assert!(host.cpus.iter().all(|cpu| cpu.clock_hz == Some(2_500_000_000)));
        prop_assert_eq!(host.page_bytes, 64 << 10);
        let cores: BTreeSet<Vec<usize>> = host.cores().into_iter().map(<[usize]>::to_vec).collect();
        prop_assert_eq!(cores, truth.groups(|cpu| cpu.core));
        let sockets: BTreeSet<Vec<usize>> = host.sockets.iter().cloned().collect();
        prop_assert_eq!(sockets, truth.groups(|cpu| cpu.socket));
        let nodes: BTreeSet<Vec<usize>> = host.nodes.iter().map(|node| node.cpus.clone()).collect();
        let one = || BTreeSet::from([online.clone()]);
        prop_assert_eq!(nodes, if style.has_nodes { truth.groups(|cpu| cpu.node) } else { one() });
        prop_assert!(host.nodes.iter().all(|node| node.memory_bytes == Some(truth.mebibytes << 20)));
        let caches: BTreeSet<_> = truth.online().into_iter().flat_map(|cpu| {
            let cache = |level: Level| {
                let cpus = truth.with(level.shared_by, cpu);
                (level.level, format!("{:?}", level.holds), level.kibibytes, level.ways, cpus)
            };
            truth.levels_of(cpu).map(cache).collect::<Vec<_>>()
        }).collect();
        let read: Vec<_> = host.caches.iter().map(|cache| {
            let size = cache.size_bytes.map(|bytes| bytes >> 10);
            (cache.level, format!("{:?}", cache.holds), size, cache.ways, cache.cpus.clone())
        }).collect();
        prop_assert_eq!(read.len(), caches.len());
        prop_assert_eq!(read.into_iter().collect::<BTreeSet<_>>(), caches);
        if style.has_nodes {
            let domains: BTreeSet<Vec<usize>> = host.domains().into_iter().collect();
            prop_assert_eq!(domains, truth.domains());
        }
        prop_assert_eq!(machine_of(&host).cpus(), truth.groups(|cpu| cpu.core).len());
    }
}

/// What lscpu says of each CPU, in columns.
fn lscpu(root: &Path, columns: &str) -> Option<Vec<(usize, String)>> {
    let output =
        Command::new("lscpu").arg("--sysroot").arg(root).arg(format!("-p=CPU,{columns}")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (cpu, rest) = line.split_once(',')?;
            Some((cpu.parse().ok()?, rest.to_owned()))
        })
        .collect()
}

#[test]
fn lscpu_reads_the_same() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut compared = 0;
    for _ in 0..25 {
        let truth = truth().new_tree(&mut runner).expect("a machine").current();
        let root = tempfile::tempdir().expect("folder");
        let style = Style {
            has_lists: true,
            has_masks: true,
            has_online: true,
            has_nodes: true,
            packages: Packages::Numbered,
            ends_in_zero: false,
        };
        truth.write(root.path(), style);
        let host = host::read(root.path()).expect("readable");
        let groups = |columns: &str| {
            let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (cpu, value) in lscpu(root.path(), columns).expect("lscpu, of util-linux, should be there") {
                groups.entry(value).or_default().push(cpu);
            }
            groups.into_values().collect::<BTreeSet<_>>()
        };
        assert_eq!(groups("CORE"), host.cores().into_iter().map(<[usize]>::to_vec).collect(), "{truth:?}");
        assert_eq!(groups("SOCKET"), host.sockets.iter().cloned().collect(), "{truth:?}");
        assert_eq!(groups("NODE"), host.nodes.iter().map(|node| node.cpus.clone()).collect(), "{truth:?}");
        compared += host.cpus.len();
    }
    assert!(compared > 100, "{compared} CPUs compared");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("folder").flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(self::files(&path)),
            path => files.push(path),
        }
    }
    files.sort();
    files
}

fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let lines =
        ["", "\0", "-1", "0", "0-65535", "65536", "0-99999999999999999999", "ffffffff,ffffffff", "f,", "3-1"];
    let known = prop::sample::select(lines.map(|line| line.as_bytes().to_vec()).to_vec());
    let sizes = prop::sample::select(
        ["0K", "18446744073709551615K", "1M", "7", "x"].map(|size| size.as_bytes().to_vec()).to_vec(),
    );
    prop_oneof![known, sizes, prop::collection::vec(any::<u8>(), 0..40), Just(b"0-65535,".repeat(8192))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nonsense_in_any_file_is_an_error_that_names_it_or_left_out(
        truth in truth(),
        style in style(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(nonsense())), 1..8),
    ) {
        let root = tempfile::tempdir().expect("folder");
        truth.write(root.path(), style);
        for (index, text) in changes {
            let files = files(root.path());
            let file = index.get(&files);
            match text {
                Some(text) => fs::write(file, text).expect("file"),
                None => fs::remove_file(file).expect("file"),
            }
        }
        match host::read(root.path()) {
            Ok(host) => {
                let mut members = host.domains().concat();
                members.sort_unstable();
                prop_assert!(members.iter().eq(host.cpus.iter().map(|cpu| &cpu.id)), "each CPU is in one domain");
                prop_assert!(!host.tree().chars().any(|letter| letter.is_control() && letter != '\n'));
                machine_of(&host);
            }
            Err(error) => prop_assert!(error.to_string().contains("/sys/devices/system/"), "{}", error),
        }
    }
}
