//! The recorder's plugin for QEMU, built for each version of QEMU's plugin interface that matters.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempPath;

/// Version 2 is taken by QEMU 9 and later, version 1 by those before.
const BUILDS: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-2.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-1.so")),
];

/// How QEMU ends when a plugin was loaded only to see whether it can be.
const LOADED: i32 = 77;

/// Writes the build of the plugin that this QEMU loads to a temporary file. If it loads none, the
/// inner error is what it says.
pub(super) fn for_qemu(qemu: &Path) -> io::Result<Result<TempPath, String>> {
    let mut said = String::new();
    for build in BUILDS {
        let mut file = tempfile::Builder::new().prefix("hearth-recorder-").suffix(".so").tempfile()?;
        file.write_all(build)?;
        let plugin = file.into_temp_path();
        let option = format!("file={},check=1", as_option(&plugin));
        let answer = Command::new(qemu).args(["-plugin", &option, "/"]).stdin(Stdio::null()).output()?;
        if answer.status.code() == Some(LOADED) {
            return Ok(Ok(plugin));
        }
        said = String::from_utf8_lossy(&answer.stderr).lines().next().unwrap_or_default().to_owned();
    }
    Ok(Err(said))
}

/// A path as the value of one of QEMU's options.
pub(super) fn as_option(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
