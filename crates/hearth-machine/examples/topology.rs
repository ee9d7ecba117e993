//! How long it takes to read the topology of a large machine: four sockets of 64 cores with two threads each, as
//! sysfs describes them, in a folder of this machine's.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use hearth_machine::host;

const CPUS: usize = 512;
const CORES: usize = CPUS / 2;
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let root = tempfile::tempdir()?;
    write(root.path())?;
    let mut ms = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let host = host::read(root.path())?;
        ms.push(begin.elapsed().as_secs_f64() * 1e3);
        assert_eq!((host.cpus.len(), host.domains().len(), host.nodes.len()), (CPUS, CORES / 8, 8));
    }
    ms.sort_by(f64::total_cmp);
    println!(
        "topology of {CPUS} CPUs: median {:.1} ms, longest {:.1} ms of {ROUNDS}",
        ms[ROUNDS / 2],
        ms[ROUNDS - 1]
    );
    Ok(())
}

/// Both threads of `count` cores from `first` on.
fn threads(first: usize, count: usize) -> String {
    let last = first + count - 1;
    format!("{first}-{last},{}-{}", first + CORES, last + CORES)
}

fn write(root: &Path) -> std::io::Result<()> {
    let put = |path: String, text: &str| {
        let path = root.join("sys/devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, format!("{text}\n"))
    };
    put("cpu/online".into(), &format!("0-{}", CPUS - 1))?;
    for cpu in 0..CPUS {
        let core = cpu % CORES;
        let (own, group, socket) = (threads(core, 1), threads(core / 8 * 8, 8), threads(core / 64 * 64, 64));
        put(format!("cpu/cpu{cpu}/topology/core_cpus_list"), &own)?;
        put(format!("cpu/cpu{cpu}/topology/package_cpus_list"), &socket)?;
        put(format!("cpu/cpu{cpu}/topology/physical_package_id"), &(core / 64).to_string())?;
        put(format!("cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), "3700000")?;
        let caches = [
            ("1", "Data", "32K", "8", &own),
            ("1", "Instruction", "32K", "8", &own),
            ("2", "Unified", "1024K", "8", &own),
            ("3", "Unified", "32768K", "16", &group),
        ];
        for (index, (level, kind, size, ways, shared)) in caches.into_iter().enumerate() {
            let folder = format!("cpu/cpu{cpu}/cache/index{index}");
            put(format!("{folder}/level"), level)?;
            put(format!("{folder}/type"), kind)?;
            put(format!("{folder}/size"), size)?;
            put(format!("{folder}/ways_of_associativity"), ways)?;
            put(format!("{folder}/coherency_line_size"), "64")?;
            put(format!("{folder}/shared_cpu_list"), shared)?;
        }
    }
    for node in 0..8 {
        put(format!("node/node{node}/cpulist"), &threads(node * 32, 32))?;
        put(format!("node/node{node}/meminfo"), &format!("Node {node} MemTotal: 100000000 kB"))?;
        put(format!("node/node{node}/distance"), "10 32 32 32 32 32 32 32")?;
    }
    Ok(())
}
