//! A guest over a machine whose caches are simulated, with the program of known references.

use hearth_emulate::plugin_arguments;
use hearth_guest::{Guest, Kernel, Mode, Shape};
use std::env;
use std::path::{Path, PathBuf};

const KNOWN: &str = concat!(env!("OUT_DIR"), "/known");

/// What is emulated.
#[derive(Clone, Copy)]
pub struct Setup {
    /// A file.
    pub machine: &'static str,
    /// Memory of each node in MiB, of the guest and of the plugin's machine.
    pub node_mib: &'static [usize],
    pub shape: Shape,
    pub kernel: Kernel,
    pub mode: Mode,
}

impl Setup {
    /// 2 nodes of 2 last-level caches of 2 CPUs.
    pub const fn new(mode: Mode) -> Self {
        let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machine.toml");
        Self { machine, node_mib: &[512, 512], shape: Shape::SMALL, kernel: Kernel::Pinned, mode }
    }

    /// The guest without the plugin.
    pub fn uncounted(&self) -> Guest {
        let guest = Guest::new(self.kernel).mode(self.mode).shape(self.shape);
        guest.node_memory_mib(self.node_mib).file(KNOWN, "/bin/known")
    }

    /// The guest with the plugin, which writes what it counted to `out`.
    pub fn counted(&self, out: &Path) -> Guest {
        let (machine, is_timed) = (Path::new(self.machine), self.mode == Mode::Timed);
        let arguments = plugin_arguments(machine, out, is_timed, 0, self.node_mib);
        self.uncounted().plugin(&plugin(), &arguments)
    }
}

/// The library that cargo built for this test or example.
pub fn plugin() -> PathBuf {
    let own = env::current_exe().unwrap_or_default();
    let profile = own.ancestors().nth(2).unwrap_or(Path::new("."));
    profile.join("deps/libhearth_emulate_plugin.so")
}
