//! The recorder's side of the channel that `plugin/recorder.c` describes.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};

use super::control::Control;
use crate::thread::Block;
use crate::word::BUFFER_WORDS;
use crate::writer::TraceWriter;

const SLOT_BYTES: usize = 65536;
const SLOT_HEADER_BYTES: usize = 64;
const _: () = assert!(SLOT_BYTES == SLOT_HEADER_BYTES + 8 * BUFFER_WORDS);
/// Slots in the shared memory, which takes real memory only for those handed out.
pub(super) const MAX_SLOTS: usize = 4096;
/// The last slot is for the plugin to say what became of it.
const STATUS_SLOT: usize = MAX_SLOTS - 1;
const STATUS_CUT_OFF: u32 = 1;
/// Slots that let the program run ahead of the recorder, and more for each thread.
const FIRST_SLOTS: usize = 16;
const SLOTS_PER_THREAD: usize = 2;

const MESSAGE_BYTES: usize = 24;
const MESSAGE_BLOCK: u32 = 1;
const MESSAGE_FULL: u32 = 2;
const MESSAGE_THREAD: u32 = 3;
const MESSAGE_EXEC: u32 = 4;
const MESSAGE_EXEC_FAILED: u32 = 5;

/// The recorder's side of the shared slots and the two pipes.
pub(super) struct Channel {
    memory: File,
    full: PipeReader,
    empty: PipeWriter,
    slots: usize,
    slot: Vec<u8>,
    /// The plugin was loaded and the program began.
    pub began: bool,
    /// The program replaced itself.
    pub replaced: bool,
}

impl Channel {
    /// The channel, and the descriptors of its other end: memory, full, empty.
    pub fn new() -> io::Result<(Self, [OwnedFd; 3])> {
        let memory = File::from(memfd_create("hearth-recorder", MemfdFlags::CLOEXEC)?);
        memory.set_len((MAX_SLOTS * SLOT_BYTES) as u64)?;
        let (full, full_guest) = io::pipe()?;
        let (empty_guest, empty) = io::pipe()?;
        let guest = [memory.try_clone()?.into(), full_guest.into(), empty_guest.into()];
        let slot = vec![0; SLOT_BYTES];
        let mut channel = Channel { memory, full, empty, slots: 0, slot, began: false, replaced: false };
        channel.hand_out(FIRST_SLOTS)?;
        Ok((channel, guest))
    }

    /// Gives the plugin slots that it has not had yet.
    fn hand_out(&mut self, more: usize) -> io::Result<()> {
        for number in self.slots..(self.slots + more).min(STATUS_SLOT) {
            self.give(number as u32)?;
            self.slots = number + 1;
        }
        Ok(())
    }

    /// Gives the plugin an empty slot. A program that has just ended needs none.
    fn give(&mut self, slot: u32) -> io::Result<()> {
        match self.empty.write_all(&slot.to_ne_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    }

    /// Handles messages until the program has ended, or has replaced itself.
    pub fn receive(
        &mut self,
        child: &Child,
        writer: &mut TraceWriter,
        control: &mut Control,
    ) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut buffer = [0; MESSAGE_BYTES * 64];
        let mut filled = 0;
        loop {
            control.watch(child, writer.counts().references());
            let mut waiting = [PollFd::new(&self.full, PollFlags::IN)];
            match poll(&mut waiting, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let got = self.full.read(&mut buffer[filled..])?;
            if got == 0 {
                return Ok(());
            }
            filled += got;
            let (messages, rest) = buffer[..filled].as_chunks::<MESSAGE_BYTES>();
            for message in messages {
                self.handle(message, writer, control)?;
            }
            let (done, left) = (filled - rest.len(), rest.len());
            buffer.copy_within(done..filled, 0);
            filled = left;
        }
    }

    fn handle(
        &mut self,
        message: &[u8; MESSAGE_BYTES],
        writer: &mut TraceWriter,
        control: &Control,
    ) -> io::Result<()> {
        let long = |i: usize| u64::from(word_at(message, i)) | u64::from(word_at(message, i + 4)) << 32;
        let number = word_at(message, 4);
        match word_at(message, 0) {
            MESSAGE_BLOCK => {
                self.began = true;
                let block = Block {
                    address: long(8),
                    bytes: word_at(message, 16),
                    instructions: word_at(message, 20),
                };
                writer.define_numbered(number, block)
            }
            MESSAGE_FULL => {
                self.take_slot(number as usize, Some(long(8) as usize), writer, control.is_stopping())?;
                self.give(number)
            }
            MESSAGE_THREAD => {
                writer.begin_thread(number)?;
                self.hand_out(SLOTS_PER_THREAD)
            }
            MESSAGE_EXEC => {
                self.replaced = true;
                Ok(())
            }
            MESSAGE_EXEC_FAILED => {
                self.replaced = false;
                Ok(())
            }
            other => Err(io::Error::other(format!("the plugin sent an unknown message ({other})"))),
        }
    }

    /// Moves a slot's words into the trace, and marks it empty. Without `words`, they end at the
    /// first zero.
    fn take_slot(
        &mut self,
        number: usize,
        words: Option<usize>,
        writer: &mut TraceWriter,
        discard: bool,
    ) -> io::Result<()> {
        if number >= self.slots {
            return Err(io::Error::other(format!("the plugin returned slot {number}, which it never had")));
        }
        let offset = (number * SLOT_BYTES) as u64;
        self.memory.read_exact_at(&mut self.slot, offset)?;
        let (all, _) = self.slot[SLOT_HEADER_BYTES..].as_chunks();
        let words = words.or_else(|| all.iter().position(|word| *word == [0; 8])).unwrap_or(0);
        if !discard && words > 0 {
            writer.feed(word_at(&self.slot, 0), &all[..words.min(BUFFER_WORDS)])?;
        }
        self.memory.write_all_at(&[0; 8], offset + SLOT_HEADER_BYTES as u64)
    }

    /// Whether the plugin lost its pipes before the program ended.
    pub fn was_cut_off(&mut self) -> io::Result<bool> {
        self.memory.read_exact_at(&mut self.slot, (STATUS_SLOT * SLOT_BYTES) as u64)?;
        Ok(word_at(&self.slot, 0) == STATUS_CUT_OFF)
    }

    /// Takes what threads had written into slots that they could not hand over any more.
    pub fn recover(&mut self, writer: &mut TraceWriter) -> io::Result<()> {
        (0..self.slots).try_for_each(|number| self.take_slot(number, None, writer, false))
    }
}

fn word_at(bytes: &[u8], i: usize) -> u32 {
    u32::from_ne_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]])
}
