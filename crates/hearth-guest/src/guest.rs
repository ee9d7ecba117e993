//! A guest's description, and how QEMU is told of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::boot::{self, Boot};
use crate::{GuestError, libraries::libraries};

/// Without these features a kernel copies and clears memory by words. With them it does so by bytes, each of which is
/// executed, and counted, as an instruction: a processor that has them does many at once.
const WORD_STRINGS: &str = ",-erms,-fsrm";

/// How far a deterministic guest's clock moves with each instruction.
pub const NS_PER_INSTRUCTION: u64 = 8;
/// The most that QEMU takes.
const MOST_ICOUNT_SHIFT: u32 = 10;

/// Without this, self-tests of the kernel run beside the script; with `damon_stat`, a monitor does.
const QUIET_KERNEL: &str = "cryptomgr.notests damon_stat.enabled=N";

/// CPUs that start wait for each other in loops, in which a CPU that takes turns can only lose time. Time-stamp
/// counters count nanoseconds, which a kernel measures less well than it can be told.
const TIMED_KERNEL: &str = "tsc=reliable tsc_early_khz=1000000 cpuhp.parallel=0 cpu_init_udelay=0";

/// Which kernel boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// The one that figures are measured with.
    Pinned,
    /// An older one.
    Second,
    /// The oldest one with sched_ext.
    Floor,
    /// One without sched_ext.
    Plain,
}

/// How the guest's CPUs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In turns, on a clock that counts instructions: the same bytes every time.
    Deterministic,
    /// In turns, on a clock that a plugin moves: the same bytes every time, if the plugin is.
    Timed,
    /// At once, each on a thread of its own.
    Concurrent,
}

/// How far nodes are apart where nobody says so, as in Linux (`REMOTE_DISTANCE`).
const NODE_DISTANCE: u8 = 20;

/// The guest's CPUs: `nodes * caches_per_node * cores_per_cache * threads_per_core`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Memory nodes.
    pub nodes: usize,
    /// Last-level caches of a node.
    pub caches_per_node: usize,
    /// Cores that share a last-level cache.
    pub cores_per_cache: usize,
    /// Hardware threads of a core.
    pub threads_per_core: usize,
}

impl Shape {
    /// 2 nodes of 2 last-level caches of 2 CPUs.
    pub const SMALL: Self = Self { nodes: 2, caches_per_node: 2, cores_per_cache: 2, threads_per_core: 1 };
    /// 64 CPUs: 2 nodes of 4 last-level caches of 8 CPUs.
    pub const LARGE: Self = Self { nodes: 2, caches_per_node: 4, cores_per_cache: 8, threads_per_core: 1 };

    /// Number of CPUs.
    pub fn cpus(self) -> usize {
        self.nodes * self.caches_per_node * self.cores_per_cache * self.threads_per_core
    }

    /// One socket a last-level cache: under software emulation nothing else makes a cache domain.
    fn tell(self, qemu: &mut Command, node_memory_mib: &[usize], distance: u8) {
        let sockets = self.nodes * self.caches_per_node;
        qemu.arg("-smp").arg(format!(
            "{},sockets={sockets},cores={},threads={}",
            self.cpus(),
            self.cores_per_cache,
            self.threads_per_core
        ));
        let per_node = self.cpus() / self.nodes;
        for (node, size) in node_memory_mib.iter().enumerate() {
            let mut numa = format!("node,nodeid={node}");
            if node < self.nodes {
                numa += &format!(",cpus={}-{}", node * per_node, (node + 1) * per_node - 1);
            }
            if *size > 0 {
                qemu.arg("-object").arg(format!("memory-backend-ram,id=memory{node},size={size}M"));
                numa += &format!(",memdev=memory{node}");
            }
            qemu.arg("-numa").arg(numa);
        }
        let nodes = node_memory_mib.len();
        for (from, to) in (0..nodes).flat_map(|from| (from + 1..nodes).map(move |to| (from, to))) {
            qemu.arg("-numa").arg(format!("dist,src={from},dst={to},val={distance}"));
        }
    }
}

/// A plugin of QEMU.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub(crate) library: PathBuf,
    /// What QEMU is told of it.
    pub(crate) option: String,
}

/// What a guest does first, and others that do the same share.
#[derive(Debug, Clone)]
pub(crate) struct Preparation {
    pub(crate) script: String,
    pub(crate) files: BTreeMap<PathBuf, PathBuf>,
}

/// A guest to boot: a builder, ended by [`Guest::run`].
#[derive(Debug, Clone)]
pub struct Guest {
    pub(crate) kernel: Kernel,
    shape: Shape,
    pub(crate) mode: Mode,
    memory_mib: usize,
    node_memory_mib: Vec<usize>,
    node_distance: u8,
    kernel_arguments: String,
    ns_per_instruction: f64,
    pub(crate) plugin: Option<Plugin>,
    pub(crate) preparation: Option<Preparation>,
    pub(crate) files: BTreeMap<PathBuf, PathBuf>,
    pub(crate) limit: Duration,
}

impl Guest {
    /// A deterministic guest of 8 CPUs with 2 GiB, for at most 4 minutes.
    pub fn new(kernel: Kernel) -> Self {
        Self {
            kernel,
            shape: Shape::SMALL,
            mode: Mode::Deterministic,
            memory_mib: 2048,
            node_memory_mib: Vec::new(),
            node_distance: NODE_DISTANCE,
            kernel_arguments: String::new(),
            ns_per_instruction: NS_PER_INSTRUCTION as f64,
            plugin: None,
            preparation: None,
            files: BTreeMap::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// Its CPUs.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// How its CPUs run.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Its memory, spread evenly over the nodes of its CPUs.
    #[must_use]
    pub fn memory_mib(mut self, memory_mib: usize) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// The memory of each node, in place of an even spread. A node of 0 has CPUs only; nodes beyond
    /// those of the shape have memory only.
    #[must_use]
    pub fn node_memory_mib(mut self, sizes: &[usize]) -> Self {
        self.node_memory_mib = sizes.to_vec();
        self
    }

    /// What its firmware says of how far its nodes are apart, in place of 20: 10 is a node's own memory, 20 twice as
    /// far. From 31 on (`RECLAIM_DISTANCE`) a kernel begins no task on another node, and wakes none there.
    #[must_use]
    pub fn node_distance(mut self, distance: u8) -> Self {
        self.node_distance = distance;
        self
    }

    /// More of the kernel's command line.
    #[must_use]
    pub fn kernel_arguments(mut self, arguments: &str) -> Self {
        self.kernel_arguments = format!("{} {arguments}", self.kernel_arguments);
        self
    }

    /// How far the guest's clock moves with each instruction, in place of [`NS_PER_INSTRUCTION`]. A deterministic
    /// guest takes the nearest power of two, 1 to 1024; that of a timed one is its plugin's.
    #[must_use]
    pub fn ns_per_instruction(mut self, ns: f64) -> Self {
        self.ns_per_instruction = ns;
        self
    }

    /// Has QEMU load a plugin, with its arguments by name. One that moves the guest's clock has two more, both files:
    /// `begin` says where the clock begins, and `clock` where it has come to at the end.
    #[must_use]
    pub fn plugin(mut self, library: &Path, arguments: &[(&str, String)]) -> Self {
        let mut option = escaped(&library.to_string_lossy());
        for (name, value) in arguments {
            option += &format!(",{name}={}", escaped(value));
        }
        self.plugin = Some(Plugin { library: library.to_owned(), option });
        self
    }

    /// Has the guest do this first, with these files, by their places in the guest; [`Self::run`]'s script goes on in
    /// the same shell, and what this one printed comes first. Where guests begin with a state, those that do the same
    /// first share one. If it ends the shell, that is the guest's end.
    #[must_use]
    pub fn first(mut self, script: &str, files: BTreeMap<PathBuf, PathBuf>) -> Self {
        self.preparation = Some(Preparation { script: script.to_owned(), files });
        self
    }

    /// Puts a file of the host into the guest, where it may be executed.
    #[must_use]
    pub fn file(mut self, host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Self {
        self.files.insert(guest.as_ref().to_owned(), host.as_ref().to_owned());
        self
    }

    /// Puts a program into the guest with the shared libraries that it needs, which are looked for
    /// in `folders` first.
    pub fn program(
        mut self,
        host: impl AsRef<Path>,
        guest: impl AsRef<Path>,
        folders: &[PathBuf],
    ) -> Result<Self, GuestError> {
        for library in libraries(host.as_ref(), folders)? {
            self = self.file(library.host, library.guest);
        }
        Ok(self.file(host, guest))
    }

    /// When the guest is killed, in time of the host.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn qemu(&self, kernel: &Path, boot: &Boot) -> Command {
        let mut qemu = boot::qemu_within(self.limit);
        self.tell(&mut qemu, kernel, boot);
        qemu
    }

    /// What QEMU is told of the machine: all that a booted guest's state hangs on, but files. Those that are left out
    /// here are in the files of its key, in others of these, or come after the boot.
    pub(crate) fn told(&self) -> String {
        // A field that is new has to be thought of here.
        let Self {
            shape,
            mode,
            node_distance,
            kernel_arguments,
            ns_per_instruction,
            kernel: _,
            memory_mib: _,
            node_memory_mib: _,
            plugin: _,
            preparation: _,
            files: _,
            limit: _,
        } = self;
        format!(
            "{shape:?} {mode:?} {:?} {node_distance} {kernel_arguments} {ns_per_instruction} {}",
            self.memory_of_nodes(),
            self.cpu_model()
        )
    }

    pub(crate) fn check(&self) -> Result<(), GuestError> {
        let cpus = self.shape.cpus();
        if !(1..=128).contains(&cpus) {
            return Err(GuestError::Shape(format!("a guest has 1 to 128 CPUs, not {cpus}")));
        }
        let sizes = self.memory_of_nodes();
        if sizes.len() < self.shape.nodes || sizes.iter().all(|size| *size == 0) {
            let message = format!("{} nodes with CPUs and memory of {sizes:?} MiB", self.shape.nodes);
            return Err(GuestError::Shape(format!("{message}: name a size for each, and one above 0")));
        }
        Ok(())
    }

    fn memory_of_nodes(&self) -> Vec<usize> {
        match self.node_memory_mib.as_slice() {
            [] => vec![self.memory_mib / self.shape.nodes.max(1); self.shape.nodes],
            sizes => sizes.to_vec(),
        }
    }

    fn tell(&self, qemu: &mut Command, kernel: &Path, boot: &Boot) {
        let memory = self.memory_of_nodes();
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-monitor", "none"]);
        qemu.args(["-cpu", &self.cpu_model(), "-m"]).arg(format!("{}M", memory.iter().sum::<usize>()));
        self.shape.tell(qemu, &memory, self.node_distance);
        qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(boot.initrd());
        let clock = match self.mode {
            Mode::Deterministic => "tsc=reliable",
            Mode::Timed => TIMED_KERNEL,
            Mode::Concurrent => "",
        };
        qemu.arg("-append").arg(format!(
            "console=ttyS0 panic=-1 quiet nokaslr {QUIET_KERNEL} {clock}{}",
            self.kernel_arguments
        ));
        qemu.arg("-serial").arg(format!("file:{}", boot.console().display()));
        qemu.arg("-serial").arg(format!("file:{}", boot.results().display()));
        if let Some(plugin) = &self.plugin {
            qemu.arg("-plugin").arg(&plugin.option);
        }
        match self.mode {
            Mode::Deterministic | Mode::Timed => {
                qemu.args(["-accel", "tcg,thread=single", "-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]);
            }
            Mode::Concurrent => {
                qemu.args(["-accel", "tcg,thread=multi"]);
            }
        }
        if self.mode == Mode::Deterministic {
            qemu.arg("-icount").arg(format!("shift={},sleep=off", self.icount_shift()));
        }
    }

    fn icount_shift(&self) -> u32 {
        self.ns_per_instruction.max(1.0).log2().round().min(f64::from(MOST_ICOUNT_SHIFT)) as u32
    }

    /// Hardware threads are told of only where the vendor has them.
    fn cpu_model(&self) -> String {
        let vendor = if self.shape.threads_per_core > 1 { ",vendor=GenuineIntel" } else { "" };
        format!("max{vendor}{WORD_STRINGS}")
    }
}

/// A value of an option of QEMU, whose parts are joined by commas.
pub(crate) fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(guest: &Guest) -> String {
        let mut qemu = Command::new("qemu");
        guest.tell(&mut qemu, Path::new("vmlinuz"), &Boot::new().unwrap());
        qemu.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_last_level_cache_is_a_socket() {
        let text = told(&Guest::new(Kernel::Pinned));
        assert!(text.contains("-smp 8,sockets=4,cores=2,threads=1"), "{text}");
        assert!(text.contains("node,nodeid=1,cpus=4-7,memdev=memory1"), "{text}");
        assert!(text.contains("dist,src=0,dst=1,val=20"), "{text}");
    }

    #[test]
    fn nodes_may_be_unequal_and_lack_memory_or_cpus() {
        let text = told(&Guest::new(Kernel::Pinned).node_memory_mib(&[1536, 0, 512]));
        assert!(text.contains("-m 2048M"), "{text}");
        assert!(text.contains("node,nodeid=0,cpus=0-3,memdev=memory0"), "{text}");
        assert!(text.contains("node,nodeid=1,cpus=4-7 "), "{text}");
        assert!(text.contains("node,nodeid=2,memdev=memory2"), "{text}");
        assert!(text.contains("dist,src=1,dst=2,val=20"), "{text}");
        for sizes in [&[1024][..], &[0, 0]] {
            let guest = Guest::new(Kernel::Pinned).node_memory_mib(sizes);
            assert!(matches!(guest.run(""), Err(GuestError::Shape(_))), "{sizes:?}");
        }
    }

    #[test]
    fn guests_that_are_told_something_else_share_no_state() {
        let guest = || Guest::new(Kernel::Pinned);
        let told = [
            guest(),
            guest().node_distance(34),
            guest().memory_mib(1024),
            guest().shape(Shape::LARGE),
            guest().mode(Mode::Timed),
            guest().ns_per_instruction(0.3),
            guest().ns_per_instruction(0.4),
            guest().kernel_arguments("quiet"),
        ]
        .map(|guest| guest.told());
        for (place, one) in told.iter().enumerate() {
            assert!(!told[..place].contains(one), "{one}");
        }
    }

    #[test]
    fn only_a_deterministic_guest_counts_instructions() {
        assert!(told(&Guest::new(Kernel::Pinned)).contains("-icount shift=3"));
        assert!(!told(&Guest::new(Kernel::Pinned).mode(Mode::Concurrent)).contains("-icount"));
        let timed = told(&Guest::new(Kernel::Pinned).mode(Mode::Timed));
        assert!(timed.contains("thread=single") && !timed.contains("-icount"), "{timed}");
    }

    #[test]
    fn the_clock_moves_by_a_power_of_two() {
        for (ns, shift) in [(0.1, 0), (1.0, 0), (2.9, 2), (8.0, 3), (1e9, 10)] {
            let text = told(&Guest::new(Kernel::Pinned).ns_per_instruction(ns));
            assert!(text.contains(&format!("-icount shift={shift},")), "{ns}: {text}");
        }
    }

    #[test]
    fn a_plugin_has_its_arguments_by_name() {
        let arguments = [("out", "a,b.json".to_owned()), ("seed", "1".to_owned())];
        let text = told(&Guest::new(Kernel::Pinned).plugin(Path::new("/p.so"), &arguments));
        assert!(text.contains("-plugin /p.so,out=a,,b.json,seed=1"), "{text}");
    }

    #[test]
    fn memory_is_copied_by_words_with_hardware_threads_and_without() {
        let threads = Shape { threads_per_core: 2, ..Shape::SMALL };
        for (shape, model) in [(Shape::SMALL, "max"), (threads, "max,vendor=GenuineIntel")] {
            let text = told(&Guest::new(Kernel::Pinned).shape(shape));
            assert!(text.contains(&format!("-cpu {model},-erms,-fsrm ")), "{text}");
        }
    }

    #[test]
    fn a_shape_without_cpus_is_refused() {
        let shape = Shape { nodes: 0, ..Shape::SMALL };
        assert!(matches!(Guest::new(Kernel::Pinned).shape(shape).run(""), Err(GuestError::Shape(_))));
    }
}
