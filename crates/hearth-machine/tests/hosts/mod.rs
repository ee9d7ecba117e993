//! Hosts in the making: folders with the files of `/sys` and `/proc` that are read.

use hearth_machine::host::{self, HostTopology};
use std::fs;
use std::path::Path;

/// A copy of `/sys` and `/proc` in the making.
pub struct Fixture(tempfile::TempDir);

impl Fixture {
    pub fn new(online: &str) -> Self {
        let fixture = Fixture(tempfile::tempdir().expect("temporary folder"));
        fixture.write("sys/devices/system/cpu/online", online);
        fixture
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, format!("{text}\n")).expect("file");
    }

    pub fn cpu(&self, cpu: usize, package: usize, threads: &str, max_khz: u64) {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        self.write(&format!("{folder}/topology/core_cpus_list"), threads);
        self.write(&format!("{folder}/topology/physical_package_id"), &package.to_string());
        if max_khz > 0 {
            self.write(&format!("{folder}/cpufreq/cpuinfo_max_freq"), &max_khz.to_string());
        }
    }

    /// `caches`: level, type, size, ways, and the CPUs that share it.
    pub fn caches(&self, cpu: usize, caches: &[(u32, &str, &str, u32, &str)]) {
        for (index, (level, kind, size, ways, shared)) in caches.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            self.write(&format!("{folder}/level"), &level.to_string());
            self.write(&format!("{folder}/type"), kind);
            self.write(&format!("{folder}/size"), size);
            self.write(&format!("{folder}/ways_of_associativity"), &ways.to_string());
            self.write(&format!("{folder}/coherency_line_size"), "64");
            self.write(&format!("{folder}/shared_cpu_list"), shared);
        }
    }

    pub fn node(&self, node: usize, cpus: &str, mebibytes: u64, distance: &str) {
        let folder = format!("sys/devices/system/node/node{node}");
        self.write(&format!("{folder}/cpulist"), cpus);
        self.write(&format!("{folder}/distance"), distance);
        self.write(&format!("{folder}/meminfo"), &format!("Node {node} MemTotal: {} kB", mebibytes * 1024));
    }

    pub fn read(&self) -> HostTopology {
        let host = host::read(self.root()).expect("readable");
        HostTopology { page_bytes: 4096, ..host }
    }
}

/// Six performance cores of two threads, with 2 MiB each; eight efficient cores, four to 2 MiB.
pub fn hybrid_laptop() -> Fixture {
    let fixture = Fixture::new("0-19");
    for cpu in 0..12 {
        let pair = format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1);
        fixture.cpu(cpu, 0, &pair, 4_700_000);
        fixture.caches(
            cpu,
            &[
                (1, "Data", "48K", 12, &pair),
                (1, "Instruction", "32K", 8, &pair),
                (2, "Unified", "1280K", 10, &pair),
                (3, "Unified", "24576K", 12, "0-19"),
            ],
        );
    }
    for cpu in 12..20 {
        let own = cpu.to_string();
        let module = if cpu < 16 { "12-15" } else { "16-19" };
        fixture.cpu(cpu, 0, &own, 3_500_000);
        fixture.caches(
            cpu,
            &[
                (1, "Data", "32K", 8, &own),
                (1, "Instruction", "64K", 8, &own),
                (2, "Unified", "2048K", 16, module),
                (3, "Unified", "24576K", 12, "0-19"),
            ],
        );
    }
    fixture.node(0, "0-19", 16_000, "10");
    fixture.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Hybrid Laptop\ncpu MHz\t\t: 800.000");
    fixture
}

/// Two sockets of four cores of two threads, numbered as firmware does: threads far apart.
pub fn two_sockets() -> Fixture {
    let fixture = Fixture::new("0-15");
    for cpu in 0..16 {
        let core = cpu % 8;
        let package = core / 4;
        let pair = format!("{core},{}", core + 8);
        let socket = format!("{}-{},{}-{}", package * 4, package * 4 + 3, package * 4 + 8, package * 4 + 11);
        fixture.cpu(cpu, package, &pair, 3_000_000);
        fixture.caches(
            cpu,
            &[
                (1, "Data", "32K", 8, &pair),
                (1, "Instruction", "32K", 8, &pair),
                (2, "Unified", "1024K", 16, &pair),
                (3, "Unified", "11264K", 11, &socket),
            ],
        );
    }
    fixture.node(0, "0-3,8-11", 64 * 1024, "10 21");
    fixture.node(1, "4-7,12-15", 64 * 1024, "21 10");
    fixture
}

/// CPUs 0, 2, 3, 7, of which 3 is off; no word of caches or clocks.
pub fn holes_without_caches() -> Fixture {
    let fixture = Fixture::new("0,2,7");
    for cpu in [0, 2, 3, 7] {
        fixture.cpu(cpu, 0, &cpu.to_string(), 0);
    }
    fixture.node(0, "0,2-3,7", 2048, "10");
    fixture
}

/// Eight cores in two groups of four; a node of memory alone, and one of nothing.
pub fn memory_only_nodes() -> Fixture {
    let fixture = Fixture::new("0-7");
    for cpu in 0..8 {
        let own = cpu.to_string();
        fixture.cpu(cpu, 0, &own, 2_000_000);
        let group = if cpu < 4 { "0-3" } else { "4-7" };
        fixture.caches(cpu, &[(1, "Unified", "64K", 4, &own), (2, "Unified", "4096K", 16, group)]);
    }
    fixture.node(0, "0-7", 8192, "10 20 14");
    fixture.node(2, "", 4096, "20 10 20");
    fixture.node(5, "", 0, "14 20 10");
    fixture
}

/// 768 cores on two nodes in groups of 48.
pub fn many_cores() -> Fixture {
    let fixture = Fixture::new("0-767");
    for cpu in 0..768 {
        let own = cpu.to_string();
        let group = format!("{}-{}", cpu / 48 * 48, cpu / 48 * 48 + 47);
        fixture.cpu(cpu, cpu / 384, &own, 3_700_000);
        fixture.caches(
            cpu,
            &[
                (1, "Data", "32K", 8, &own),
                (1, "Instruction", "32K", 8, &own),
                (2, "Unified", "1024K", 8, &own),
                (3, "Unified", "32768K", 16, &group),
            ],
        );
    }
    fixture.node(0, "0-383", 384 * 1024, "10 32");
    fixture.node(1, "384-767", 384 * 1024, "32 10");
    fixture
}
