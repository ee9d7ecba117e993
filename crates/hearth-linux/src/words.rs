//! Words: where threads declare the data that they work on (`bpf/fragments.h`). A thread that wants its word
//! to be read connects to a socket of its own, whatever its user, and gives the address:
//!
//! ```text
//! to the daemon     version u32 | thread id u32 | address of the word u64
//! from the daemon   0, or an error's number, as i32
//! ```
//!
//! in the machine's byte order. Or it sends the same as a datagram to the socket beside that one, and goes on: nobody
//! answers, and who finds no room there connects, and does not wait either. A thread that lives for long asks later.
//!
//! The word is the thread's own memory, read in its name, so there is nothing
//! that a client could do to another. A thread that registers again says where its word is now; address 0
//! withdraws it. Whoever finds another socket in the place of the one that it knew registers anew.

use crate::Error;
use crate::door::{self, Door, Limits};
use bytemuck::{Pod, Zeroable};
use hearth_abi::Registration;
use hearth_host::task::threads_of;
use libbpf_rs::libbpf_sys;
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// The socket's name in the daemon's folder.
pub const NAME: &str = "words";

/// That of the socket beside it, for who waits for no answer.
const ANNOUNCED: &str = "words-announced";

/// Announcements that are read before others have their turn.
const MOST_ANNOUNCED: usize = 256;

/// Of what a client says.
const VERSION: u32 = 1;

/// How long a client may take to say what it wants. It has that ready when it connects; but where CPUs are short,
/// it may wait for one before it says it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client says.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Asked {
    version: u32,
    tid: u32,
    word_at: u64,
}

/// The programs of the loaded scheduler that know words.
pub(crate) struct Programs {
    pub(crate) register: OwnedFd,
    pub(crate) switched: OwnedFd,
}

/// The thread that registers words. Dropping it ends it; the words stay known to the scheduler.
pub(crate) struct Words {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Words {
    /// Registers words from now on, with the scheduler whose programs these are.
    pub(crate) fn listen(folder: &Path, programs: Programs) -> Result<Self, Error> {
        let (path, announced) = (folder.join(NAME), folder.join(ANNOUNCED));
        for path in [&path, &announced] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::file(path)(error)),
                _ => {}
            }
        }
        let announcements = UnixDatagram::bind(&announced).map_err(Error::file(&announced))?;
        announcements.set_nonblocking(true).map_err(Error::file(&announced))?;
        set_socket_passcred(&announcements, true).map_err(|error| Error::file(&announced)(error.into()))?;
        fs::set_permissions(&announced, Permissions::from_mode(0o666)).map_err(Error::file(&announced))?;
        let listener = UnixListener::bind(&path).map_err(Error::file(&path))?;
        let limits = Limits { request: PATIENCE, answer: PATIENCE, each_user: 64 };
        let door = Door::new(listener, limits).map_err(Error::file(&path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o666)).map_err(Error::file(&path))?;
        let (stop, stopped) = UnixStream::pair().map_err(Error::file(&path))?;
        let serve = move || {
            serve(door, &announcements, &stopped, &mut Registrar { programs, switches: None, known: None })
        };
        let thread = std::thread::Builder::new().name("hearth-words".into()).spawn(serve);
        Ok(Self { stop: Some(stop), thread: Some(thread.map_err(Error::file(&path))?) })
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.stop = None;
        // A thread that panicked has said so.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(
    mut door: Door<UnixListener>,
    announcements: &UnixDatagram,
    stopped: &UnixStream,
    registrar: &mut Registrar,
) {
    loop {
        let left = door.left().and_then(|left| Timespec::try_from(left).ok());
        let mut awaited =
            vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(announcements, PollFlags::IN)];
        awaited.extend(door.awaited());
        match poll(&mut awaited, left.as_ref()) {
            Ok(_) if !awaited[0].revents().is_empty() => return,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for _ in 0..MOST_ANNOUNCED {
            let Ok(announced) = announcement(announcements) else { break };
            // Whoever gets no answer asks for one later.
            let _ = announced.map(|(process, said)| answer(process, &said, registrar));
        }
        door.open(|client| door::local(client, |_| size_of::<Asked>()));
        let is_whole = |said: &[u8]| said.len() >= size_of::<Asked>();
        door.turn(is_whole, |caller, said| answer(caller.process, said, registrar));
    }
}

/// What a thread has announced, and its process, as the kernel says; nothing if that is nonsense.
///
/// # Errors
/// Nobody has announced anything.
fn announcement(from: &UnixDatagram) -> rustix::io::Result<Option<(i32, [u8; size_of::<Asked>()])>> {
    let mut said = [0; size_of::<Asked>()];
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
    let mut about = RecvAncillaryBuffer::new(&mut room);
    let got = recvmsg(from, &mut [IoSliceMut::new(&mut said)], &mut about, RecvFlags::empty())?;
    let process = about.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid.as_raw_pid()),
        _ => None,
    });
    Ok(process.filter(|_| got.bytes == said.len()).map(|process| (process, said)))
}

/// 0 or an error's number; nothing to who says less than all.
fn answer(process: i32, said: &[u8], registrar: &mut Registrar) -> Vec<u8> {
    let Ok(Asked { version, tid, word_at }) = bytemuck::try_pod_read_unaligned(said) else {
        return Vec::new();
    };
    let known = match version {
        VERSION => registrar.register(process, tid, word_at),
        _ => Err(io::Error::from_raw_os_error(libc::EPROTONOSUPPORT)),
    };
    let result = known.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    result.to_ne_bytes().to_vec()
}

/// A process's thread by the number that it has in the process's own namespace.
fn thread_of(process: i32, tid: u32) -> Option<i32> {
    let namespace = |of: &str| fs::metadata(format!("/proc/{of}/ns/pid")).ok().map(|meta| meta.ino());
    if namespace(&process.to_string()).is_some_and(|its| namespace("self") == Some(its)) {
        return i32::try_from(tid).ok().filter(|tid| *tid > 0);
    }
    let has_number = |thread: &i32| {
        let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok();
        let numbers = status.as_deref()?.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        Some(numbers.split_whitespace().last()?.parse() == Ok(tid))
    };
    threads_of(process).find(|thread| has_number(thread) == Some(true))
}

/// Tells the scheduler of words.
struct Registrar {
    programs: Programs,
    /// Has the scheduler look at words when tasks stop: from the first one on.
    switches: Option<OwnedFd>,
    /// A process whose threads have the same numbers here as there: its threads come one after the other.
    known: Option<i32>,
}

impl Registrar {
    /// The word of a process's thread, by its number there, lies at this address.
    fn register(&mut self, process: i32, tid: u32, word_at: u64) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        if self.switches.is_none() {
            self.switches = Some(attach(self.programs.switched.as_fd())?);
        }
        // If its number is another process's by now, no thread of that process has this one.
        let asked = i32::try_from(tid).ok().filter(|tid| *tid > 0);
        if let Some(asked) = asked.filter(|_| self.known == Some(process))
            && self.tell(process, asked, word_at)?
        {
            return Ok(());
        }
        let found = thread_of(process, tid).ok_or_else(gone)?;
        self.known = (Some(found) == asked).then_some(process);
        if self.tell(process, found, word_at)? { Ok(()) } else { Err(gone()) }
    }

    /// Whether the process has this thread.
    fn tell(&self, process: i32, tid: i32, word_at: u64) -> io::Result<bool> {
        let mut registration = Registration { word_at, tid, process, found: 0, pad: 0 };
        run(self.programs.register.as_fd(), &mut registration)?;
        Ok(registration.found != 0)
    }
}

/// Attaches a tracing program for as long as the descriptor is open.
fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: without a name there is nothing that the call reads.
    let link = unsafe { libbpf_sys::bpf_raw_tracepoint_open(std::ptr::null(), program.as_raw_fd()) };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Runs a program of type `syscall`, which may change its argument.
fn run(program: BorrowedFd<'_>, registration: &mut Registration) -> io::Result<()> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ctx_in: (&raw mut *registration).cast(),
        ctx_size_in: size_of::<Registration>() as u32,
        ..Default::default()
    };
    // SAFETY: the options are complete, and name memory of the right size that lives during the call.
    match unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn in_the_same_namespace_a_thread_has_its_own_number() {
        let process = std::process::id() as i32;
        assert_eq!(thread_of(process, 17), Some(17));
        assert_eq!(thread_of(process, 0), None);
        assert_eq!(thread_of(process, u32::MAX), None);
        assert_eq!(thread_of(i32::MAX, 17), None);
    }
}
