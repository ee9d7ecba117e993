//! QEMU's monitor (QMP): one command after the other, over a socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::GuestError;

/// How often something is looked at that QEMU does not tell.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// How long QEMU may take to answer, on a host that has much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection.
pub(crate) struct Monitor {
    stream: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects as soon as QEMU listens.
    pub(crate) fn connect(socket: &Path, qemu: &mut Child) -> Result<Self, GuestError> {
        let began = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(_) if began.elapsed() < PATIENCE && matches!(qemu.try_wait(), Ok(None)) => {
                    thread::sleep(LOOK)
                }
                Err(error) => return Err(wrong(format!("{}: {error}", socket.display()))),
            }
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(wrong)?;
        let mut monitor = Self { stream: BufReader::new(stream) };
        monitor.line()?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// What QEMU answers to a command.
    pub(crate) fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, GuestError> {
        let asked = json!({ "execute": command, "arguments": arguments });
        self.stream.get_mut().write_all(format!("{asked}\n").as_bytes()).map_err(wrong)?;
        loop {
            let mut said = self.line()?;
            if let Some(error) = said.get("error") {
                return Err(wrong(format!("{command}: {error}")));
            }
            if said.get("return").is_some() {
                return Ok(said["return"].take());
            }
        }
    }

    /// Waits until a command's answer has another value than those of a key.
    pub(crate) fn wait_while(
        &mut self,
        command: &str,
        key: &str,
        values: &[&str],
    ) -> Result<String, GuestError> {
        loop {
            let said = self.execute(command, json!({}))?;
            let value = said[key].as_str().unwrap_or_default();
            if !values.contains(&value) {
                return Ok(value.to_owned());
            }
            thread::sleep(LOOK);
        }
    }

    fn line(&mut self) -> Result<Value, GuestError> {
        let mut line = String::new();
        match self.stream.read_line(&mut line).map_err(wrong)? {
            0 => Err(wrong("QEMU ended")),
            _ => serde_json::from_str(&line).map_err(wrong),
        }
    }
}

pub(crate) fn wrong(what: impl ToString) -> GuestError {
    GuestError::Monitor { what: what.to_string() }
}
