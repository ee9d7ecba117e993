//! Runs of a guest: one that boots, or begins where others of its kind have come to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::boot::Boot;
use crate::guest::{Preparation, escaped};
use crate::state::{self, Key, State};
use crate::{Guest, GuestError, Mode, Output, image, install};

impl Preparation {
    /// Of a guest that was of another key before.
    fn key(&self, before: Key) -> Result<Key, GuestError> {
        before.with(&self.script).with_placed(&self.files)
    }
}

/// Waits for the rest of a script, and runs it.
const GO_ON: &str = "\nhearth-load pause\ncd /\nhearth-load | cpio -idu 2>/dev/null\n. /rest\n";

impl Guest {
    /// Boots the guest, runs a shell script in it, and shuts it down. In the script,
    /// `section NAME` starts a section of the output.
    pub fn run(&self, script: &str) -> Result<Output, GuestError> {
        self.run_unless(script, &AtomicBool::new(false))
    }

    /// The same, but ends the guest when `stop` becomes true: [`GuestError::Stopped`].
    pub fn run_unless(&self, script: &str, stop: &AtomicBool) -> Result<Output, GuestError> {
        self.check()?;
        let kernel = install::kernel_image(self.kernel);
        if !kernel.is_file() {
            let message = format!("{} is missing: run tools/install-guest", kernel.display());
            return Err(GuestError::NotInstalled(message));
        }
        let boot = Boot::new()?;
        if !self.begins_with_state() {
            let (script, files) = self.whole(script);
            image::write_all(&boot.initrd(), &script, &files)?;
            return boot.run(self.qemu(&kernel, &boot), self.limit, stop, "", |_| Ok(()));
        }
        let found = self.state(&kernel, &boot);
        // Who interrupts this program interrupts QEMU, too.
        let state = match found {
            Err(_) if stop.load(Ordering::Relaxed) => return Err(GuestError::Stopped),
            Err(state::Failure::Ended(output)) => return Ok(output),
            Err(state::Failure::Error(error)) => return Err(error),
            Ok(state) => state,
        };
        let name = if self.preparation.is_some() { image::REST } else { image::SCRIPT };
        image::write_given(&boot.given(), name, script, &self.files)?;
        let qemu = self.qemu_with(&kernel, &boot, Some(&state), None);
        boot.run(qemu, self.limit, stop, &state.said()?, |qemu| state::go_on(qemu, &boot))
    }

    /// What tells guests apart that do not do the same: all but the plugin's arguments.
    pub fn digest(&self, script: &str) -> Result<u64, GuestError> {
        let mut key = self.booted(&install::kernel_image(self.kernel), &Boot::new()?)?;
        if let Some(first) = &self.preparation {
            key = first.key(key)?;
        }
        Ok(key.with(script).with_placed(&self.files)?.number())
    }

    /// The script and the files of a guest that does all of it by itself.
    fn whole(&self, script: &str) -> (String, BTreeMap<PathBuf, PathBuf>) {
        let Some(first) = &self.preparation else { return (script.to_owned(), self.files.clone()) };
        let mut files = first.files.clone();
        files.extend(self.files.clone());
        (format!("{}\n{script}", first.script), files)
    }

    /// What a booted guest's state hangs on: what QEMU is told, the kernel, the guest's own files, in an archive, and the
    /// plugin, whose doing is the time at which things happen in a boot.
    fn booted(&self, kernel: &Path, boot: &Boot) -> Result<Key, GuestError> {
        let initrd = boot.initrd();
        image::write_own(&initrd)?;
        let plugin = self.plugin.as_ref().map(|plugin| plugin.library.as_path());
        Key::of(&self.told())?.with_files([kernel, initrd.as_path()].into_iter().chain(plugin))
    }

    /// The state that the guest begins with.
    fn state(&self, kernel: &Path, boot: &Boot) -> Result<State, state::Failure> {
        let key = self.booted(kernel, boot)?;
        let booted = State::of(key.clone(), self.limit, None, |first, clock| {
            image::write_own(&first.initrd())?;
            image::write_given(&first.given(), image::SCRIPT, "", &BTreeMap::new())?;
            Ok(self.qemu_with(kernel, first, None, Some(clock)))
        })?;
        let Some(first) = &self.preparation else { return Ok(booted) };
        let Preparation { script, files } = first;
        State::of(first.key(key)?, self.limit, Some(&booted), |first, clock| {
            image::write_own(&first.initrd())?;
            image::write_given(&first.given(), image::SCRIPT, &format!("{script}{GO_ON}"), files)?;
            Ok(self.qemu_with(kernel, first, Some(&booted), Some(clock)))
        })
    }

    /// QEMU for a guest that begins with a state, or boots, and whose clock is told at the end where that is asked for.
    fn qemu_with(&self, kernel: &Path, boot: &Boot, state: Option<&State>, clock: Option<&Path>) -> Command {
        let mut guest = self.clone();
        if let Some(plugin) = &mut guest.plugin {
            let begin = state.map(State::clock);
            for (name, file) in [("begin", begin.as_deref()), ("clock", clock)] {
                if let Some(file) = file {
                    plugin.option += &format!(",{name}={}", escaped(&file.to_string_lossy()));
                }
            }
        }
        let mut qemu = guest.qemu(kernel, boot);
        state::tell(&mut qemu, boot, &boot.given());
        if let Some(state) = state {
            state.tell(&mut qemu);
        }
        qemu
    }

    /// Whether a guest of its kind that has booted is as good as one that boots. Not beside a plugin where QEMU's clock
    /// counts instructions: beside other work, some runs that begin with a state differ from the rest.
    fn begins_with_state(&self) -> bool {
        match self.mode {
            Mode::Deterministic => self.plugin.is_none(),
            Mode::Timed => true,
            Mode::Concurrent => false,
        }
    }
}
