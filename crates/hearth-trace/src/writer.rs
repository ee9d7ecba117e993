//! Writes a trace: beside its final place first, renamed when it is complete.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use zstd::bulk::Compressor;

use crate::event::PAGE_BYTES;
use crate::format::{ChunkHeader, Counts, End, MAGIC, MAX_PAGES, MAX_THREADS, TraceInfo, VERSION};
use crate::pages::Pages;
use crate::thread::{Block, ThreadEncoder};
use crate::word::{self, BUFFER_WORDS, Word};

/// A data reference for [`TraceWriter::execute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which instruction of the block makes it, from 0. References are in the order of execution.
    pub instruction: u32,
    /// A write, or else a read.
    pub write: bool,
    /// Virtual address of the first byte, below 2^48.
    pub address: u64,
    /// log2 of the bytes touched, at most 12.
    pub log2_bytes: u32,
}

/// Writes a trace file, block by block. Dropped before [`TraceWriter::finish`], it leaves nothing.
pub struct TraceWriter {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
    offset: u64,
    chunks: u64,
    compressor: Compressor<'static>,
    raw: Vec<u8>,
    packed: Vec<u8>,
    pages: Pages,
    blocks: Vec<Block>,
    threads: Vec<ThreadEncoder>,
    words: Vec<Word>,
}

impl TraceWriter {
    /// Begins a trace that will be at `path`, compressed at zstd's `level` (1 to 22; 0 means 3).
    pub fn create(path: &Path, level: i32) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".hearth-trace-").permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut writer = TraceWriter {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, builder.tempfile_in(folder)?),
            offset: 0,
            chunks: 0,
            compressor: Compressor::new(level)?,
            raw: Vec::new(),
            packed: Vec::new(),
            pages: Pages::new(),
            blocks: Vec::new(),
            threads: Vec::new(),
            words: Vec::new(),
        };
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&(PAGE_BYTES as u32).to_le_bytes())?;
        Ok(writer)
    }

    /// Names a run of consecutive instructions: `bytes` of code (1 to 4096) at `address`.
    pub fn define_block(&mut self, address: u64, bytes: u32, instructions: u32) -> u32 {
        self.blocks.push(Block { address, bytes: bytes.min(PAGE_BYTES as u32), instructions });
        (self.blocks.len() - 1) as u32
    }

    /// A thread executes a block once, with these references. Threads are numbered from 0.
    pub fn execute(&mut self, thread: u32, block: u32, accesses: &[Access]) -> io::Result<()> {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.push(word::of_block(block));
        words.extend(accesses.iter().map(|access| {
            word::of_reference(access.instruction, access.write, access.log2_bytes, access.address)
        }));
        let done = self.feed(thread, &words);
        self.words = words;
        done
    }

    /// What has been written so far, all threads together. Blocks still open are not in it.
    pub fn counts(&self) -> Counts {
        let mut total = Counts::default();
        self.threads.iter().for_each(|thread| total += thread.counts());
        total
    }

    /// Defines block `number`, which may come before lower ones.
    pub(crate) fn define_numbered(&mut self, number: u32, block: Block) -> io::Result<()> {
        let number = number as usize;
        if number > self.blocks.len() + (1 << 20) {
            return Err(invalid("the recorder skipped a million block numbers"));
        }
        if self.blocks.len() <= number {
            self.blocks.resize(number + 1, Block::default());
        }
        self.blocks[number] = block;
        Ok(())
    }

    /// Makes sure that `thread` exists, even if it never executes anything.
    pub(crate) fn begin_thread(&mut self, thread: u32) -> io::Result<()> {
        if thread as usize >= MAX_THREADS {
            return Err(invalid("more than 65536 threads"));
        }
        while self.threads.len() <= thread as usize {
            self.threads.push(ThreadEncoder::new());
        }
        Ok(())
    }

    /// Adds a thread's raw words.
    pub(crate) fn feed(&mut self, thread: u32, words: &[Word]) -> io::Result<()> {
        self.begin_thread(thread)?;
        for buffer in words.chunks(BUFFER_WORDS) {
            let mut rest = buffer;
            while !rest.is_empty() {
                let encoder = &mut self.threads[thread as usize];
                rest = encoder.feed(rest, &self.blocks, &mut self.pages);
                if encoder.chunk_is_full() {
                    self.write_chunk(thread)?;
                }
            }
        }
        match self.pages.len() > MAX_PAGES {
            true => Err(invalid("the program touches more than 512 GiB of memory")),
            false => Ok(()),
        }
    }

    /// Completes the trace and moves it to its place, replacing what was there.
    pub fn finish(mut self, command: &[String], recorder: &str, notes: &[String]) -> io::Result<TraceInfo> {
        for thread in 0..self.threads.len() {
            self.threads[thread].close(&self.blocks, &mut self.pages);
            if self.threads[thread].chunk.events > 0 {
                self.write_chunk(thread as u32)?;
            }
        }
        let info = TraceInfo {
            command: command.to_vec(),
            recorder: recorder.to_owned(),
            page_bytes: PAGE_BYTES,
            pages: self.pages.len(),
            chunks: self.chunks,
            total: self.counts(),
            threads: self.threads.iter().map(ThreadEncoder::counts).collect(),
            notes: notes.to_vec(),
        };
        let trailer = serde_json::to_vec(&info)?;
        let end = End {
            trailer_offset: self.offset,
            trailer_bytes: trailer.len() as u32,
            crc: crc32fast::hash(&trailer),
        };
        self.put(&trailer)?;
        self.put(&end.to_bytes())?;
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(info)
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    fn write_chunk(&mut self, thread: u32) -> io::Result<()> {
        let events = self.threads[thread as usize].finish_chunk(&mut self.raw);
        self.packed.clear();
        self.packed.resize(zstd::zstd_safe::compress_bound(self.raw.len()), 0);
        let packed_bytes = self.compressor.compress_to_buffer(&self.raw, &mut self.packed[..])?;
        self.packed.truncate(packed_bytes);
        let mut header = ChunkHeader {
            thread,
            sequence: self.chunks,
            events: events as u32,
            packed_bytes: packed_bytes as u32,
            raw_bytes: self.raw.len() as u32,
            crc: 0,
        };
        header.crc = header.checksum(&self.packed);
        self.chunks += 1;
        self.put(&header.to_bytes())?;
        let packed = std::mem::take(&mut self.packed);
        let done = self.put(&packed);
        self.packed = packed;
        done
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.offset += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
