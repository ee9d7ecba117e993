//! Damaged files give errors that tell what to do; nothing panics.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use hearth_trace::{Access, Trace, TraceError, TraceWriter};
use proptest::prelude::*;

fn sample(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("sample.trace");
    let mut writer = TraceWriter::create(&path, 3).unwrap();
    let blocks = [writer.define_block(0x1ff8, 24, 5), writer.define_block(0x8000, 10, 3)];
    for i in 0..3000u64 {
        let access = |write, address| Access { instruction: 1, write, address, log2_bytes: 3 };
        let accesses = [access(false, 0x7f00_0000 + 24 * i), access(true, 0x5000 + i * i % 0x3000)];
        writer.execute((i % 2) as u32, blocks[(i % 3 == 0) as usize], &accesses).unwrap();
    }
    writer.finish(&["sample".into()], "tests", &[]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

/// Opens and reads everything.
fn read_all(path: &Path) -> Result<(), TraceError> {
    Trace::open(path)?.verify()
}

fn error_of(bytes: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.trace");
    std::fs::write(&path, bytes).unwrap();
    read_all(&path).err().map(|error| error.to_string())
}

#[test]
fn a_trace_cut_short_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bytes) = sample(folder.path());
    assert_eq!(error_of(&bytes), None);
    let lengths = (0..64).chain((64..bytes.len()).step_by(17)).chain(bytes.len() - 32..bytes.len());
    for length in lengths {
        let message = error_of(&bytes[..length]).unwrap_or_else(|| panic!("{length} bytes were accepted"));
        assert!(message.contains("damaged.trace: byte ") && message.contains("record"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_changed_byte_is_found(at in any::<prop::sample::Index>(), flip in 1..=255u8) {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut bytes) = sample(folder.path());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(read_all(&path).is_err(), "byte {} may be anything", at);
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(error_of(&bytes).is_some());
        prop_assert!(error_of(&[b"\x89HTRACE\n\x01\0\0\0\0\x10\0\0", bytes.as_slice()].concat()).is_some());
    }
}

#[test]
fn each_kind_of_damage_is_named_with_its_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (_, bytes) = sample(folder.path());
    let changed = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        error_of(&bytes).unwrap()
    };
    let magic = changed(1, b'h');
    assert!(magic.contains("byte 0: not a Hearth trace") && magic.contains("hearth record -o"), "{magic}");
    assert!(!magic.contains("record -o damaged") && !magic.contains("damaged.trace --"), "{magic}");
    let version = changed(8, 7);
    assert!(
        version.contains("byte 8: trace format version 7, but this program reads version 1"),
        "{version}"
    );
    let page = changed(13, 0x20);
    assert!(page.contains("byte 12: corrupt: pages of 8192 bytes"), "{page}");
    let chunk = changed(60, !bytes[60]);
    assert!(
        chunk.contains("byte 16 (chunk 0): corrupt: its checksum")
            && chunk.contains("record the program again"),
        "{chunk}"
    );
    let count = changed(16 + 19, 0xff);
    assert!(count.contains("(chunk 0)") && count.contains("events, at most"), "{count}");
    let sequence = changed(16 + 8, 9);
    assert!(sequence.contains("chunk 9 is in the place of chunk 0"), "{sequence}");
    let trailer = changed(bytes.len() - 40, b'~');
    assert!(trailer.contains("trailer's checksum"), "{trailer}");
    assert!(error_of(&bytes[..bytes.len() - 1]).unwrap().contains("trailer is missing"));
}

#[test]
fn a_missing_file_is_named() {
    let message = Trace::open("/no/such.trace").unwrap_err().to_string();
    assert!(message.contains("/no/such.trace: cannot open it"), "{message}");
}
