//! The file's frame: header, chunk headers, trailer. `docs/trace-format.md` draws it.

use serde::{Deserialize, Serialize};

pub(crate) const MAGIC: [u8; 8] = *b"\x89HTRACE\n";
pub(crate) const END_MAGIC: [u8; 8] = *b"\x89HTREND\n";
pub(crate) const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"HCHK");

/// The format version that this crate writes and reads.
pub const VERSION: u32 = 1;

pub(crate) const FILE_HEADER_BYTES: usize = 16;
pub(crate) const CHUNK_HEADER_BYTES: usize = 32;
pub(crate) const END_BYTES: usize = 24;

/// A chunk is closed once it holds this many events, so that its decoded form stays near 1 MiB.
pub(crate) const CHUNK_EVENTS: usize = 1 << 17;
/// A chunk ends between blocks, so it may have more, by at most what one buffer of the recorder
/// can hold of one block.
pub(crate) const MAX_CHUNK_EVENTS: usize = CHUNK_EVENTS + (1 << 15);
pub(crate) const MAX_RAW_BYTES: usize = 4 << 20;
pub(crate) const MAX_PACKED_BYTES: usize = MAX_RAW_BYTES + (MAX_RAW_BYTES >> 7) + 1024;
pub(crate) const MAX_TRAILER_BYTES: usize = 16 << 20;
pub(crate) const MAX_THREADS: usize = 1 << 16;
/// Dense page numbers have 27 bits: 512 GiB touched.
pub(crate) const MAX_PAGES: u64 = 1 << 27;

pub(crate) struct ChunkHeader {
    pub thread: u32,
    /// The chunk's number in the whole file: its place in the coarse order of all threads.
    pub sequence: u64,
    pub events: u32,
    pub packed_bytes: u32,
    pub raw_bytes: u32,
    pub crc: u32,
}

impl ChunkHeader {
    /// The header's bytes, all but the checksum at the end.
    fn leading_bytes(&self) -> [u8; CHUNK_HEADER_BYTES - 4] {
        let mut out = [0; CHUNK_HEADER_BYTES - 4];
        out[0..4].copy_from_slice(&CHUNK_MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.thread.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..20].copy_from_slice(&self.events.to_le_bytes());
        out[20..24].copy_from_slice(&self.packed_bytes.to_le_bytes());
        out[24..28].copy_from_slice(&self.raw_bytes.to_le_bytes());
        out
    }

    /// CRC-32 over the header's other fields and the compressed payload.
    pub fn checksum(&self, packed: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&self.leading_bytes());
        crc.update(packed);
        crc.finalize()
    }

    pub fn to_bytes(&self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut out = [0; CHUNK_HEADER_BYTES];
        out[..CHUNK_HEADER_BYTES - 4].copy_from_slice(&self.leading_bytes());
        out[CHUNK_HEADER_BYTES - 4..].copy_from_slice(&self.crc.to_le_bytes());
        out
    }

    /// Parses and bounds a header, or says what is wrong with it.
    pub fn parse(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<Self, String> {
        let u32_at = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        if u32_at(0) != CHUNK_MAGIC {
            return Err("no chunk begins here".into());
        }
        let header = ChunkHeader {
            thread: u32_at(4),
            sequence: u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32,
            events: u32_at(16),
            packed_bytes: u32_at(20),
            raw_bytes: u32_at(24),
            crc: u32_at(28),
        };
        let bounded = |what, value: u32, limit: usize| {
            if value as usize > limit { Err(format!("{value} {what}, at most {limit} fit")) } else { Ok(()) }
        };
        bounded("events", header.events, MAX_CHUNK_EVENTS)?;
        bounded("compressed bytes", header.packed_bytes, MAX_PACKED_BYTES)?;
        bounded("uncompressed bytes", header.raw_bytes, MAX_RAW_BYTES)?;
        Ok(header)
    }
}

/// The last bytes of a file: where the trailer is.
pub(crate) struct End {
    pub trailer_offset: u64,
    pub trailer_bytes: u32,
    pub crc: u32,
}

impl End {
    pub fn to_bytes(&self) -> [u8; END_BYTES] {
        let mut out = [0; END_BYTES];
        out[0..8].copy_from_slice(&self.trailer_offset.to_le_bytes());
        out[8..12].copy_from_slice(&self.trailer_bytes.to_le_bytes());
        out[12..16].copy_from_slice(&self.crc.to_le_bytes());
        out[16..24].copy_from_slice(&END_MAGIC);
        out
    }

    pub fn parse(bytes: &[u8; END_BYTES]) -> Option<Self> {
        let u32_at = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        (bytes[16..24] == END_MAGIC).then(|| End {
            trailer_offset: u64::from(u32_at(0)) | u64::from(u32_at(4)) << 32,
            trailer_bytes: u32_at(8),
            crc: u32_at(12),
        })
    }
}

/// How much one thread, or the whole program, did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Events of every kind.
    pub events: u64,
    /// Code fetches: one for each block executed (two where a block crosses a page).
    pub fetches: u64,
    /// Data reads.
    pub reads: u64,
    /// Data writes.
    pub writes: u64,
    /// Instructions executed.
    pub instructions: u64,
}

impl Counts {
    /// Data references: reads and writes.
    pub fn references(&self) -> u64 {
        self.reads + self.writes
    }

    /// Adds one event.
    #[inline]
    pub fn count(&mut self, event: crate::Event) {
        self.events += 1;
        self.fetches += u64::from(event.is_fetch());
        self.writes += u64::from(event.is_write());
        self.reads += u64::from(!event.is_fetch() && !event.is_write());
        self.instructions += u64::from(event.instructions());
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.fetches += other.fetches;
        self.reads += other.reads;
        self.writes += other.writes;
        self.instructions += other.instructions;
    }
}

/// What a trace says about itself: its trailer, written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// The recorded command and its arguments.
    pub command: Vec<String>,
    /// Which recorder made the trace, with its version.
    pub recorder: String,
    /// Bytes in a page: always [`PAGE_BYTES`](crate::PAGE_BYTES).
    pub page_bytes: u64,
    /// Distinct pages touched by code or data: every page number is below this.
    pub pages: u64,
    /// Chunks in the file.
    pub chunks: u64,
    /// The sum over all threads.
    pub total: Counts,
    /// Each thread, in the order in which they began; 0 is the program's first.
    pub threads: Vec<Counts>,
    /// What a reader of results should know: the recording was cut, the program crashed ...
    pub notes: Vec<String>,
}
