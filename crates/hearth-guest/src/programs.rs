//! The programs of `programs/`, compiled for the guest. Every guest has them in `/bin`.

use std::path::{Path, PathBuf};

fn program(name: &str) -> PathBuf {
    Path::new(env!("OUT_DIR")).join(name)
}

/// What scheduling costs, in instructions: `programs/bench.c`.
pub fn bench() -> PathBuf {
    program("bench")
}

/// Small programs whose scheduling is known: `programs/tasks/main.c`.
pub fn tasks() -> PathBuf {
    program("tasks")
}

/// Marks what a plugin is to count: `programs/region/main.c`.
pub fn region() -> PathBuf {
    program("hearth-region")
}

/// Gets what the host gives after the boot: `programs/load.c`.
pub(crate) fn load() -> PathBuf {
    program("hearth-load")
}
