//! Records the memory references of a program while it runs.

mod channel;
mod control;
mod lackey;
mod plugin;
mod program;
mod qemu;
mod start;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::writer::TraceWriter;
use crate::{Trace, TraceError, TraceInfo};
use control::Control;
use program::Program;

/// Which tool observes the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// QEMU where it is installed, or else valgrind.
    #[default]
    Auto,
    /// qemu-user with this crate's plugin: fast, threads apart.
    Qemu,
    /// valgrind's lackey: about a hundred times slower, and all threads appear as one.
    Lackey,
}

/// How to record. `RecordOptions::new(path)` and change what you need.
pub struct RecordOptions {
    /// The trace file. It appears only when the recording is complete.
    pub output: PathBuf,
    /// Replace a file that is there and is no trace. A trace or an empty file is replaced without.
    pub force: bool,
    /// Which tool observes the program.
    pub backend: Backend,
    /// End the program after so many data references. It is told by SIGTERM, then killed.
    pub max_references: Option<u64>,
    /// zstd level, 1 to 22. Above 3 the recorder, rather than the program, sets the pace.
    pub level: i32,
    /// When it becomes true (see [`interrupt_on_signals`]), the program is interrupted and what
    /// was recorded becomes a trace with a note.
    pub interrupt: Arc<AtomicBool>,
    /// Called with the tool, before the program starts.
    pub started: Option<fn(&Tool)>,
    /// Called about ten times a second with the data references recorded.
    pub progress: Option<Box<dyn FnMut(u64)>>,
}

impl RecordOptions {
    /// Records to `output` with the best tool at hand, without limit.
    pub fn new(output: impl Into<PathBuf>) -> Self {
        RecordOptions {
            output: output.into(),
            force: false,
            backend: Backend::Auto,
            max_references: None,
            level: 1,
            interrupt: Arc::default(),
            started: None,
            progress: None,
        }
    }
}

/// The tool that observes a program.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name and version.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Why it is not a faster one, where [`Backend::Auto`] looked for one in vain.
    pub slower_because: Option<String>,
}

/// What a recording gave.
#[derive(Debug)]
pub struct Summary {
    /// What the trace says about itself; its `notes` hold the warnings.
    pub info: TraceInfo,
    /// What observed the program.
    pub tool: Tool,
    /// The trace file's size.
    pub bytes: u64,
    /// How long the program ran.
    pub wall: Duration,
    /// How the program ended.
    pub status: ExitStatus,
}

/// A program cannot be recorded. No trace file is left.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The command is empty.
    #[error("no command to record; write it after `--`, as in `hearth record -o sort.trace -- sort FILE`")]
    NoCommand,
    /// The program does not exist.
    #[error("{0}: command not found; give a path, or a program in PATH")]
    NotFound(String),
    /// The program's file cannot be read or executed.
    #[error("{path}: cannot be executed: {reason}; check the path and its permissions", path = path.display())]
    NotExecutable {
        /// The program's file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The program is a script.
    #[error(
        "{path}: is a script, and only its interpreter can be recorded; \
         record `{interpreter} {path}` instead", path = path.display()
    )]
    Script {
        /// The script.
        path: PathBuf,
        /// What runs it.
        interpreter: String,
    },
    /// The program is for another machine.
    #[error("{path}: is {found}; only x86-64 Linux programs (ELF) can be recorded", path = path.display())]
    NotX86 {
        /// The program's file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The output names a file of something else.
    #[error("{path}: is there already and is not a Hearth trace; name another file, or replace it with --force",
        path = path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// The tool is not installed.
    #[error("{tool} is not installed; on Debian: apt-get install {package}")]
    NoTool {
        /// The command that is missing.
        tool: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// This QEMU does not take the plugin.
    #[error(
        "{path}: this QEMU ({version}) does not load the recorder's plugin: {said}; get one of version 6 or later \
         that is built with plugins (on Debian 12: tools/install-recorder), or record with valgrind's lackey",
        path = path.display()
    )]
    NoPlugins {
        /// The emulator found.
        path: PathBuf,
        /// What it says of its version.
        version: String,
        /// What it says of the plugin.
        said: String,
    },
    /// The tool ended before the program ran.
    #[error("{tool} ended ({status}) before the program ran; its own message is above")]
    ToolFailed {
        /// The tool.
        tool: &'static str,
        /// How it ended.
        status: ExitStatus,
    },
    /// The operating system refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was being done.
        action: String,
        /// The system's reason.
        source: io::Error,
    },
}

impl RecordError {
    fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| RecordError::Io { action: action.into(), source }
    }
}

/// Refuses to replace a file that holds something else than a trace, whole or damaged.
fn check_output(options: &RecordOptions) -> Result<(), RecordError> {
    let path = &options.output;
    let Ok(file) = path.metadata() else { return Ok(()) };
    let replaceable = file.len() == 0
        || !matches!(Trace::open(path), Err(TraceError::NotATrace { .. } | TraceError::Io { .. }));
    match file.is_file() && (options.force || replaceable) {
        true => Ok(()),
        false => Err(RecordError::NotOurs { path: path.clone() }),
    }
}

/// A tool that runs a program and sees its references.
trait Recorder {
    /// Which it is.
    fn tool(&self) -> Tool;

    /// Runs the program to its end and writes what it does. Returns how it ended, with notes on
    /// what a reader of the trace should know.
    fn run(
        &self,
        program: &Program,
        writer: &mut TraceWriter,
        control: &mut Control,
    ) -> Result<(ExitStatus, Vec<String>), RecordError>;
}

/// Runs `command` and records the references of its first process into `options.output`.
///
/// The program keeps its standard input, output and error. Processes that it forks run on
/// unrecorded. If it crashes or is interrupted, the trace holds what it did until then, and says
/// so in its notes.
///
/// # Errors
/// The command cannot be recorded, `options.output` is a file of something else, or the trace cannot be written; then no trace is left, and one
/// that was there before stays as it was.
pub fn record(command: &[OsString], options: RecordOptions) -> Result<Summary, RecordError> {
    let program = Program::find(command)?;
    check_output(&options)?;
    let (recorder, tool) = choose(options.backend)?;
    let output = options.output.clone();
    let mut writer = TraceWriter::create(&output, options.level)
        .map_err(RecordError::io(format!("create a file beside {}", output.display())))?;
    if let Some(started) = options.started {
        started(&tool);
    }
    let begin = Instant::now();
    let mut control = Control::new(options);
    let (status, mut notes) = recorder.run(&program, &mut writer, &mut control)?;
    let wall = begin.elapsed();
    notes.splice(0..0, control.notes(status));
    let arguments: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let written = RecordError::io(format!("write {}", output.display()));
    let info = writer.finish(&arguments, &tool.name, &notes).map_err(written)?;
    let bytes = std::fs::metadata(&output).map_err(RecordError::io("read the trace's size"))?.len();
    Ok(Summary { info, tool, bytes, wall, status })
}

fn choose(backend: Backend) -> Result<(Box<dyn Recorder>, Tool), RecordError> {
    let with_tool = |recorder: Box<dyn Recorder>| {
        let tool = recorder.tool();
        (recorder, tool)
    };
    match backend {
        Backend::Qemu => Ok(with_tool(Box::new(qemu::Qemu::find()?))),
        Backend::Lackey => Ok(with_tool(Box::new(lackey::Lackey::find()?))),
        Backend::Auto => match choose(Backend::Qemu) {
            Ok(qemu) => Ok(qemu),
            Err(error) => match choose(Backend::Lackey) {
                Ok((lackey, tool)) => Ok((lackey, Tool { slower_because: Some(error.to_string()), ..tool })),
                Err(_) => Err(error),
            },
        },
    }
}

/// The tool that records with this back end on this machine.
///
/// # Errors
/// Says what is missing and how to get it.
pub fn find_tool(backend: Backend) -> Result<Tool, RecordError> {
    choose(backend).map(|(_, tool)| tool)
}

/// A flag for [`RecordOptions::interrupt`] that Ctrl-C, SIGTERM and SIGHUP set from now on,
/// in place of ending this process.
///
/// # Errors
/// The signals cannot be caught.
pub fn interrupt_on_signals() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
