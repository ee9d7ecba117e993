//! Reads traces in a stream: one chunk of one thread at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zstd::bulk::Decompressor;

use crate::chunk;
use crate::error::TraceError;
use crate::event::{Event, PAGE_BYTES};
use crate::executions::Executions;
use crate::format::{
    CHUNK_HEADER_BYTES, ChunkHeader, Counts, END_BYTES, End, FILE_HEADER_BYTES, MAGIC, MAX_PAGES,
    MAX_THREADS, MAX_TRAILER_BYTES, TraceInfo, VERSION,
};
use crate::shape::Dictionary;

/// An open trace file. Cloning shares it; each [`ThreadReader`] keeps its own place.
#[derive(Clone, Debug)]
pub struct Trace {
    file: Arc<TraceFile>,
}

#[derive(Debug)]
struct TraceFile {
    path: PathBuf,
    file: File,
    /// Where the chunks end and the trailer begins.
    chunks_end: u64,
    info: TraceInfo,
}

impl Trace {
    /// Opens a trace and checks its frame. The chunks are checked as they are read.
    ///
    /// # Errors
    /// The file cannot be read, is not a trace, is of a newer version, is truncated, or its
    /// trailer is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref().to_owned();
        let file = File::open(&path).map_err(|source| io_error(&path, "open it", source))?;
        let length = file.metadata().map_err(|source| io_error(&path, "read its size", source))?.len();
        check_header(&path, &file, length)?;
        let (chunks_end, info) = read_trailer(&path, &file, length)?;
        Ok(Trace { file: Arc::new(TraceFile { path, file, chunks_end, info }) })
    }

    /// What the trace says about itself.
    pub fn info(&self) -> &TraceInfo {
        &self.file.info
    }

    /// The file's path, as it was opened.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// A reader of one thread, at its beginning. Threads are numbered from 0.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn thread(&self, thread: u32) -> Result<ThreadReader, TraceError> {
        let threads = self.file.info.threads.len() as u32;
        if thread >= threads {
            let path = self.file.path.clone();
            return Err(TraceError::NoSuchThread { path, thread, last: threads.saturating_sub(1) });
        }
        let decompressor = Decompressor::new();
        let decompressor =
            decompressor.map_err(|source| io_error(&self.file.path, "set up zstd for it", source))?;
        Ok(ThreadReader {
            trace: self.clone(),
            thread,
            offset: FILE_HEADER_BYTES as u64,
            sequence: 0,
            counts: Counts::default(),
            dictionary: Dictionary::default(),
            decompressor,
            packed: Vec::new(),
            raw: Vec::new(),
            decoded: Executions::default(),
        })
    }

    /// Decodes a whole thread into memory, to be shared by many replays of a small trace.
    /// `limit` is the most events to accept (8 bytes each).
    ///
    /// # Errors
    /// As for [`ThreadReader::next_chunk`], or the thread has more events than `limit`.
    pub fn load_thread(&self, thread: u32, limit: u64) -> Result<Arc<[Event]>, TraceError> {
        let mut reader = self.thread(thread)?;
        let events = self.file.info.threads[thread as usize].events;
        if events > limit {
            return Err(TraceError::TooLarge { path: self.file.path.clone(), events, limit });
        }
        let (mut all, mut chunk) = (Vec::new(), Vec::new());
        while reader.next_chunk(&mut chunk)? {
            all.append(&mut chunk);
        }
        Ok(all.into())
    }

    /// Reads everything and compares it with the trailer's counts.
    ///
    /// # Errors
    /// Anything is damaged.
    pub fn verify(&self) -> Result<(), TraceError> {
        let mut chunk = Executions::default();
        for number in 0..self.file.info.threads.len() {
            let mut reader = self.thread(number as u32)?;
            while reader.next_executions(&mut chunk)?.is_some() {}
        }
        Ok(())
    }

    fn corrupt(&self, offset: u64, chunk: Option<u64>, what: impl Into<String>) -> TraceError {
        TraceError::Corrupt { path: self.file.path.clone(), offset, chunk, what: what.into() }
    }
}

/// Reads the events of one thread, in a few MiB of memory whatever the trace's size.
pub struct ThreadReader {
    trace: Trace,
    thread: u32,
    offset: u64,
    sequence: u64,
    /// What has been read so far.
    counts: Counts,
    dictionary: Dictionary,
    decompressor: Decompressor<'static>,
    packed: Vec<u8>,
    raw: Vec<u8>,
    decoded: Executions,
}

impl std::fmt::Debug for ThreadReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.trace.path();
        write!(f, "ThreadReader of thread {} at byte {} of {}", self.thread, self.offset, path.display())
    }
}

impl ThreadReader {
    /// Replaces `out` by the thread's next events, at most 160 Ki of them. False at the end.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged; `out` is then empty.
    pub fn next_chunk(&mut self, out: &mut Vec<Event>) -> Result<bool, TraceError> {
        self.next_chunk_in_order(out).map(|sequence| sequence.is_some())
    }

    /// As [`Self::next_chunk`], and returns the chunk's number in the whole file: a chunk with a
    /// lower number, of any thread, was completed earlier.
    ///
    /// # Errors
    /// As for [`Self::next_chunk`].
    pub fn next_chunk_in_order(&mut self, out: &mut Vec<Event>) -> Result<Option<u64>, TraceError> {
        out.clear();
        let mut decoded = std::mem::take(&mut self.decoded);
        let sequence = self.next_executions(&mut decoded);
        if matches!(sequence, Ok(Some(_))) {
            out.reserve(decoded.counts().events as usize);
            decoded.iter().for_each(|execution| out.extend(execution.events()));
        }
        self.decoded = decoded;
        sequence
    }

    /// As [`Self::next_chunk_in_order`], block by block.
    ///
    /// # Errors
    /// As for [`Self::next_chunk`]; `out` is then of no use.
    pub fn next_executions(&mut self, out: &mut Executions) -> Result<Option<u64>, TraceError> {
        while self.offset < self.trace.file.chunks_end {
            let header = self.read_header()?;
            let begin = self.offset;
            let sequence = self.sequence;
            self.offset += CHUNK_HEADER_BYTES as u64 + u64::from(header.packed_bytes);
            self.sequence += 1;
            if header.thread == self.thread {
                return self.read_payload(&header, begin, out).map(|()| Some(sequence));
            }
        }
        self.check_end()
    }

    /// Another reader that goes on from here.
    pub(crate) fn branch(&self) -> Result<Self, TraceError> {
        let fresh = self.trace.thread(self.thread)?;
        let (offset, sequence, counts) = (self.offset, self.sequence, self.counts);
        Ok(ThreadReader { offset, sequence, counts, dictionary: self.dictionary.clone(), ..fresh })
    }

    /// Goes back to the thread's beginning.
    pub fn rewind(&mut self) {
        (self.offset, self.sequence, self.counts) = (FILE_HEADER_BYTES as u64, 0, Counts::default());
        self.dictionary.clear();
    }

    fn read_header(&self) -> Result<ChunkHeader, TraceError> {
        let file = &self.trace.file;
        let corrupt = |what: String| self.trace.corrupt(self.offset, Some(self.sequence), what);
        let room = file.chunks_end - self.offset;
        if room < CHUNK_HEADER_BYTES as u64 {
            return Err(corrupt(format!("{room} bytes where a chunk's header belongs")));
        }
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        read_at(&file.path, &file.file, &mut bytes, self.offset)?;
        let header = ChunkHeader::parse(&bytes).map_err(corrupt)?;
        if header.sequence != self.sequence {
            return Err(corrupt(format!(
                "chunk {} is in the place of chunk {}",
                header.sequence, self.sequence
            )));
        }
        if header.thread as usize >= file.info.threads.len() {
            return Err(corrupt(format!("it belongs to thread {}, which does not exist", header.thread)));
        }
        if u64::from(header.packed_bytes) > room - CHUNK_HEADER_BYTES as u64 {
            return Err(corrupt("it is longer than the file has room for".into()));
        }
        Ok(header)
    }

    fn read_payload(
        &mut self,
        header: &ChunkHeader,
        begin: u64,
        out: &mut Executions,
    ) -> Result<(), TraceError> {
        let file = &self.trace.file;
        let corrupt = |what: String| self.trace.corrupt(begin, Some(header.sequence), what);
        self.packed.resize(header.packed_bytes as usize, 0);
        read_at(&file.path, &file.file, &mut self.packed, begin + CHUNK_HEADER_BYTES as u64)?;
        if header.checksum(&self.packed) != header.crc {
            return Err(corrupt("its checksum does not match its contents".into()));
        }
        self.raw.resize(header.raw_bytes as usize, 0);
        let length = self.decompressor.decompress_to_buffer(&self.packed, &mut self.raw[..]);
        match length {
            Ok(length) if length == self.raw.len() => {}
            Ok(length) => {
                return Err(corrupt(format!("it unpacks to {length} bytes, not {}", self.raw.len())));
            }
            Err(error) => return Err(corrupt(format!("it does not unpack ({error})"))),
        }
        let events = header.events as usize;
        chunk::decode(&mut self.raw, &mut self.dictionary, file.info.pages, events, out).map_err(corrupt)?;
        self.counts += out.counts();
        Ok(())
    }

    fn check_end(&self) -> Result<Option<u64>, TraceError> {
        let info = &self.trace.file.info;
        let expected = info.threads[self.thread as usize];
        let what = if self.counts != expected {
            format!("thread {} has {:?}, but the trailer says {expected:?}", self.thread, self.counts)
        } else if self.sequence != info.chunks {
            format!("there are {} chunks, but the trailer says {}", self.sequence, info.chunks)
        } else {
            return Ok(None);
        };
        Err(self.trace.corrupt(self.offset, None, what))
    }
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), action, source }
}

/// Reads exactly; a file that ended meanwhile is truncated.
fn read_at(path: &Path, file: &File, buffer: &mut [u8], offset: u64) -> Result<(), TraceError> {
    file.read_exact_at(buffer, offset).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => truncated(path, offset, "the file became shorter while it was read"),
        _ => io_error(path, "read it", source),
    })
}

fn truncated(path: &Path, offset: u64, what: impl Into<String>) -> TraceError {
    TraceError::Truncated { path: path.to_owned(), offset, what: what.into() }
}

fn check_header(path: &Path, file: &File, length: u64) -> Result<(), TraceError> {
    let mut header = [0; FILE_HEADER_BYTES];
    let present = length.min(FILE_HEADER_BYTES as u64) as usize;
    read_at(path, file, &mut header[..present], 0)?;
    let magic = present.min(MAGIC.len());
    if present == 0 || header[..magic] != MAGIC[..magic] {
        return Err(TraceError::NotATrace { path: path.to_owned() });
    }
    if present < FILE_HEADER_BYTES {
        return Err(truncated(path, length, "the file ends within its header"));
    }
    let field = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    if field(8) != VERSION {
        return Err(TraceError::Version { path: path.to_owned(), found: field(8), known: VERSION });
    }
    match u64::from(field(12)) {
        PAGE_BYTES => Ok(()),
        other => {
            let what = format!("pages of {other} bytes, where only {PAGE_BYTES} are possible");
            Err(TraceError::Corrupt { path: path.to_owned(), offset: 12, chunk: None, what })
        }
    }
}

fn read_trailer(path: &Path, file: &File, length: u64) -> Result<(u64, TraceInfo), TraceError> {
    let corrupt =
        |offset: u64, what: String| TraceError::Corrupt { path: path.to_owned(), offset, chunk: None, what };
    let incomplete = "the trailer is missing: the recording or a copy of the file did not complete";
    let end_offset =
        length.checked_sub(END_BYTES as u64).filter(|offset| *offset >= FILE_HEADER_BYTES as u64);
    let end_offset = end_offset.ok_or_else(|| truncated(path, length, incomplete))?;
    let mut end = [0; END_BYTES];
    read_at(path, file, &mut end, end_offset)?;
    let end = End::parse(&end).ok_or_else(|| truncated(path, length, incomplete))?;
    let bytes = end.trailer_bytes as usize;
    let fits = end.trailer_offset.checked_add(bytes as u64) == Some(end_offset);
    if !fits || bytes > MAX_TRAILER_BYTES || end.trailer_offset < FILE_HEADER_BYTES as u64 {
        return Err(corrupt(end_offset, format!("a trailer of {bytes} bytes at {}", end.trailer_offset)));
    }
    let mut trailer = vec![0; bytes];
    read_at(path, file, &mut trailer, end.trailer_offset)?;
    if crc32fast::hash(&trailer) != end.crc {
        return Err(corrupt(end.trailer_offset, "the trailer's checksum does not match its contents".into()));
    }
    let info: TraceInfo = serde_json::from_slice(&trailer)
        .map_err(|error| corrupt(end.trailer_offset, format!("the trailer is not readable ({error})")))?;
    if info.pages > MAX_PAGES || info.threads.len() > MAX_THREADS || info.page_bytes != PAGE_BYTES {
        let what = format!("{} pages and {} threads", info.pages, info.threads.len());
        return Err(corrupt(end.trailer_offset, what));
    }
    Ok((end.trailer_offset, info))
}
