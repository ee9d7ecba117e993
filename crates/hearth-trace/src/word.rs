//! The recorder's raw words, eight bytes each: `plugin/recorder.c` writes the same layout.
//!
//! ```text
//! block executed   63: 1 | 31..0: block number
//! data reference   63: 0 | 62..53: instruction within the block | 52: store
//!                        | 51..48: log2 of its bytes            | 47..0: virtual address
//! ```

use crate::event::PAGE_BYTES;

/// One raw word, little endian.
pub(crate) type Word = [u8; 8];

const BLOCK: u64 = 1 << 63;
const INSTRUCTION_SHIFT: u32 = 53;
const STORE: u64 = 1 << 52;
const SIZE_SHIFT: u32 = 48;
const ADDRESS_MASK: u64 = (1 << SIZE_SHIFT) - 1;

/// Words in one buffer of the recorder.
pub(crate) const BUFFER_WORDS: usize = (65536 - 64) / 8;

pub(crate) const fn of_block(number: u32) -> Word {
    (BLOCK | number as u64).to_le_bytes()
}

pub(crate) const fn of_reference(instruction: u32, store: bool, log2_bytes: u32, address: u64) -> Word {
    let store = if store { STORE } else { 0 };
    let size = (log2_bytes as u64 & 15) << SIZE_SHIFT;
    let instruction = (instruction as u64 & 1023) << INSTRUCTION_SHIFT;
    (instruction | store | size | address & ADDRESS_MASK).to_le_bytes()
}

#[inline]
pub(crate) const fn is_block(word: Word) -> bool {
    word[7] & 0x80 != 0
}

pub(crate) const fn block(word: Word) -> usize {
    (u64::from_le_bytes(word) & u32::MAX as u64) as usize
}

pub(crate) const fn instruction(word: Word) -> u32 {
    (u64::from_le_bytes(word) >> INSTRUCTION_SHIFT) as u32 & 1023
}

pub(crate) const fn is_store(word: Word) -> bool {
    u64::from_le_bytes(word) & STORE != 0
}

/// Bytes referenced; sizes above a page are cut to a page.
#[inline]
pub(crate) const fn bytes(word: Word) -> u32 {
    let log2 = (u64::from_le_bytes(word) >> SIZE_SHIFT) as u32 & 15;
    1 << if log2 > 12 { 12 } else { log2 }
}

#[inline]
pub(crate) const fn address(word: Word) -> u64 {
    u64::from_le_bytes(word) & ADDRESS_MASK
}

/// All of a reference but its address.
#[inline]
pub(crate) const fn pattern(word: Word) -> u16 {
    u16::from_le_bytes([word[6], word[7]])
}

#[inline]
pub(crate) const fn crosses_page(word: Word) -> bool {
    address(word) % PAGE_BYTES + bytes(word) as u64 > PAGE_BYTES
}
