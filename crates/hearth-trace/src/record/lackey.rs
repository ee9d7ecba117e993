//! Records with valgrind's lackey, whose log names every instruction and reference.

use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::control::Control;
use super::program::{Program, find_in_path};
use super::start::start;
use super::{RecordError, Recorder, Tool};
use crate::event::PAGE_BYTES;
use crate::writer::{Access, TraceWriter};

/// Longest run of instructions that becomes one block.
const MAX_BLOCK_INSTRUCTIONS: u32 = 256;

/// valgrind.
pub(super) struct Lackey {
    path: PathBuf,
    version: String,
}

impl Lackey {
    pub fn find() -> Result<Self, RecordError> {
        let path =
            find_in_path("valgrind").ok_or(RecordError::NoTool { tool: "valgrind", package: "valgrind" })?;
        let answer = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
        let answer = answer.map_err(RecordError::io(format!("run {}", path.display())))?;
        Ok(Lackey { path, version: String::from_utf8_lossy(&answer.stdout).trim().to_owned() })
    }

    fn start(&self, program: &Program, log: OwnedFd) -> io::Result<Child> {
        let mut command = Command::new(&self.path);
        command.args(["-q", "--tool=lackey", "--trace-mem=yes", "--child-silent-after-fork=yes"]);
        command.arg(format!("--log-fd={}", log.as_raw_fd()));
        command.arg("--").arg(&program.path).args(&program.arguments);
        start(command, vec![log])
    }
}

impl Recorder for Lackey {
    fn tool(&self) -> Tool {
        Tool { name: format!("{} lackey", self.version), path: self.path.clone(), slower_because: None }
    }

    fn run(
        &self,
        program: &Program,
        writer: &mut TraceWriter,
        control: &mut Control,
    ) -> Result<(ExitStatus, Vec<String>), RecordError> {
        let (log, guest_log) = io::pipe().map_err(RecordError::io("create a pipe"))?;
        let child = self.start(program, guest_log.into());
        let mut child = child.map_err(RecordError::io(format!("start {}", self.path.display())))?;
        let mut blocks = Blocks::new(writer);
        let read = blocks.read(BufReader::with_capacity(1 << 20, log), &child, control);
        if read.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(RecordError::io("wait for the program"))?;
        read.map_err(RecordError::io("record into the trace"))?;
        if !blocks.began {
            return Err(RecordError::ToolFailed { tool: "valgrind", status });
        }
        Ok((status, vec!["recorded with lackey, which shows all threads of a program as one".into()]))
    }
}

/// Gathers consecutive instructions into blocks.
struct Blocks<'a> {
    writer: &'a mut TraceWriter,
    numbers: std::collections::HashMap<(u64, u32, u32), u32>,
    address: u64,
    bytes: u32,
    instructions: u32,
    accesses: Vec<Access>,
    began: bool,
}

impl<'a> Blocks<'a> {
    fn new(writer: &'a mut TraceWriter) -> Self {
        let (numbers, accesses) = Default::default();
        Blocks { writer, numbers, address: 0, bytes: 0, instructions: 0, accesses, began: false }
    }

    /// Reads lackey's log to its end.
    fn read(&mut self, mut log: impl BufRead, child: &Child, control: &mut Control) -> io::Result<()> {
        let mut line = Vec::new();
        let mut lines = 0u64;
        while log.read_until(b'\n', &mut line)? > 0 {
            if !control.is_stopping() {
                self.line(&line)?;
            }
            line.clear();
            lines += 1;
            if lines.is_multiple_of(4096) {
                control.watch(child, self.writer.counts().references());
            }
        }
        self.end_block()
    }

    /// One line: `I  ADDRESS,BYTES` or ` L`, ` S`, ` M` (load, store, both) in the same form.
    /// Other lines are valgrind's messages.
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Some((kind, address, bytes)) = parse(line) else { return Ok(()) };
        match kind {
            b'I' => self.instruction(address, bytes)?,
            b'L' => self.access(address, bytes, false),
            b'S' => self.access(address, bytes, true),
            _ => {
                self.access(address, bytes, false);
                self.access(address, bytes, true);
            }
        }
        Ok(())
    }

    fn instruction(&mut self, address: u64, bytes: u32) -> io::Result<()> {
        let follows = self.instructions > 0
            && address == self.address + u64::from(self.bytes)
            && self.instructions < MAX_BLOCK_INSTRUCTIONS
            && u64::from(self.bytes + bytes) <= PAGE_BYTES;
        if !follows {
            self.end_block()?;
            (self.address, self.bytes, self.instructions) = (address, 0, 0);
        }
        self.bytes += bytes;
        self.instructions += 1;
        self.began = true;
        Ok(())
    }

    /// A reference of a size that is no power of two (10-byte floats) becomes several.
    fn access(&mut self, mut address: u64, mut bytes: u32, write: bool) {
        let instruction = self.instructions.saturating_sub(1);
        while bytes > 0 {
            let log2_bytes = bytes.ilog2().min(12);
            self.accesses.push(Access { instruction, write, address, log2_bytes });
            address += 1 << log2_bytes;
            bytes -= 1 << log2_bytes;
        }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.instructions == 0 {
            return Ok(());
        }
        let key = (self.address, self.bytes, self.instructions);
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.writer.define_block(self.address, self.bytes, self.instructions);
                self.numbers.insert(key, number);
                number
            }
        };
        self.writer.execute(0, number, &self.accesses)?;
        self.accesses.clear();
        Ok(())
    }
}

/// The kind, address and size of a line of the trace.
fn parse(line: &[u8]) -> Option<(u8, u64, u32)> {
    let line = std::str::from_utf8(line).ok()?;
    let kind = match line.get(..3)? {
        "I  " => b'I',
        " L " => b'L',
        " S " => b'S',
        " M " => b'M',
        _ => return None,
    };
    let (address, bytes) = line[3..].trim_end().split_once(',')?;
    Some((kind, u64::from_str_radix(address, 16).ok()?, bytes.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_trace_are_told_from_messages() {
        assert_eq!(parse(b"I  0023C790,2\n"), Some((b'I', 0x23c790, 2)));
        assert_eq!(parse(b" M 1ffefff8,8\n"), Some((b'M', 0x1ffefff8, 8)));
        assert_eq!(parse(b"==12== Lackey\n"), None);
        assert_eq!(parse(b" L what,8\n"), None);
        assert_eq!(parse(b"\xff\xff\xff\xff"), None);
    }
}
