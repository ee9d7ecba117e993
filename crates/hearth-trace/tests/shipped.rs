//! The traces that ship with Hearth are sound.

#![allow(clippy::unwrap_used)]

use hearth_trace::{PAGE_BYTES, Trace};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces");

#[test]
fn the_shipped_trace_is_a_whole_run_of_sort() {
    let path = format!("{TRACES}/sort-sources.trace");
    assert!(std::fs::metadata(&path).unwrap().len() <= 1 << 20);
    let trace = Trace::open(path).unwrap();
    let info = trace.info();
    assert_eq!(info.command, ["sort", "--parallel=1", "sources.txt"]);
    assert_eq!((info.threads.len(), info.notes.len()), (1, 0));
    assert_eq!((info.total.references(), info.total.instructions), (3_458_561, 7_909_999));
    trace.verify().unwrap();
    let mut touched = vec![false; info.pages as usize];
    let mut reader = trace.thread(0).unwrap();
    let mut chunk = Vec::new();
    while reader.next_chunk(&mut chunk).unwrap() {
        chunk.iter().for_each(|event| touched[(event.address() / PAGE_BYTES) as usize] = true);
    }
    assert!(touched.iter().all(|page| *page), "every page number is in use");
}
