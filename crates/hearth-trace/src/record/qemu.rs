//! Records with qemu-user and our plugin (`plugin/recorder.c`, which describes the protocol).

use std::env;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempPath;

use super::channel::{Channel, MAX_SLOTS};
use super::control::Control;
use super::plugin;
use super::program::{Program, find_in_path};
use super::start::start;
use super::{RecordError, Recorder, Tool};
use crate::writer::TraceWriter;

const TOOL: &str = "qemu-x86_64";

/// The environment variable that names the QEMU to record with.
const CHOICE: &str = "HEARTH_QEMU";

/// An x86-64-v2 processor: what distributions build for, without AVX (which QEMU emulates slowly)
/// and without fast string moves (which would make copies go byte by byte).
const PROCESSOR: &str = "Nehalem";

/// qemu-user with plugins.
pub(super) struct Qemu {
    path: PathBuf,
    version: String,
    plugin: TempPath,
}

impl Qemu {
    /// The first QEMU that loads the plugin.
    pub fn find() -> Result<Self, RecordError> {
        let mut refusal = RecordError::NoTool { tool: TOOL, package: "qemu-user" };
        for path in candidates() {
            match Self::at(&path) {
                Ok(qemu) => return Ok(qemu),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    fn at(path: &Path) -> Result<Self, RecordError> {
        let run = || RecordError::io(format!("run {}", path.display()));
        let answer = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
        let answer = answer.map_err(run())?;
        let version =
            String::from_utf8_lossy(&answer.stdout).lines().next().unwrap_or(TOOL).trim().to_owned();
        let path = path.to_owned();
        match plugin::for_qemu(&path).map_err(run())? {
            Ok(plugin) => Ok(Qemu { path, version, plugin }),
            Err(said) => Err(RecordError::NoPlugins { path, version, said }),
        }
    }

    /// Starts the program with the plugin, which gets the guest's ends of the channel.
    fn start(&self, program: &Program, guest: [OwnedFd; 3]) -> io::Result<Child> {
        let [memory, full, empty] = [&guest[0], &guest[1], &guest[2]].map(AsRawFd::as_raw_fd);
        let plugin = plugin::as_option(&self.plugin);
        let mut command = Command::new(&self.path);
        command.arg("-plugin");
        command.arg(format!("file={plugin},memory={memory},full={full},empty={empty},slots={MAX_SLOTS}"));
        command.args(["-cpu", PROCESSOR, "-seed", "1", "-0"]).arg(&program.name);
        command.arg(&program.path).args(&program.arguments);
        start(command, guest.into())
    }
}

/// The QEMU that the environment names, or else the one that `tools/install-recorder` keeps apart
/// from the system's, and the system's.
fn candidates() -> Vec<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(choice) = set(CHOICE) {
        return vec![choice];
    }
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let kept = cache.map(|cache| cache.join("hearth/recorder").join(TOOL)).filter(|path| path.is_file());
    kept.into_iter().chain(find_in_path(TOOL)).collect()
}

impl Recorder for Qemu {
    fn tool(&self) -> Tool {
        Tool {
            name: format!("{}, hearth plugin", self.version),
            path: self.path.clone(),
            slower_because: None,
        }
    }

    fn run(
        &self,
        program: &Program,
        writer: &mut TraceWriter,
        control: &mut Control,
    ) -> Result<(ExitStatus, Vec<String>), RecordError> {
        let (mut channel, guest) =
            Channel::new().map_err(RecordError::io("set up shared memory and pipes"))?;
        let child = self.start(program, guest);
        let mut child = child.map_err(RecordError::io(format!("start {}", self.path.display())))?;
        let received = channel.receive(&child, writer, control);
        if received.is_err() {
            let _ = child.kill();
        }
        let status = wait(&mut child, writer, control).map_err(RecordError::io("wait for the program"))?;
        received.and_then(|()| channel.recover(writer)).map_err(RecordError::io("record into the trace"))?;
        if !channel.began {
            return Err(RecordError::ToolFailed { tool: TOOL, status });
        }
        let mut notes = Vec::new();
        if channel.replaced {
            notes.push(
                "the program replaced itself (execve), and the recording ended there: record what it became",
            );
        } else if channel.was_cut_off().map_err(RecordError::io("read the shared memory"))? {
            notes
                .push("the program closed descriptors that it had not opened, and the recording ended there");
        }
        Ok((status, notes.into_iter().map(String::from).collect()))
    }
}

/// Waits for the program, which may have replaced itself and run on unrecorded.
fn wait(child: &mut Child, writer: &TraceWriter, control: &mut Control) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        control.watch(child, writer.counts().references());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_qemu_that_does_not_load_the_plugin_is_refused_with_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qemu");
        let script = "#!/bin/sh\n[ $1 = --version ] && echo qemu version 99 && exit\necho unknown option >&2\nexit 1\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let refusal = Qemu::at(&path).err().unwrap().to_string();
        for word in ["qemu version 99", "unknown option", "tools/install-recorder"] {
            assert!(refusal.contains(word), "{word}: {refusal}");
        }
    }
}
