//! What is written is what is read: events, threads, counts, order.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;

use hearth_trace::{Access, Counts, Event, Executions, Kind, PAGE_BYTES, Trace, TraceInfo, TraceWriter};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Block {
    address: u64,
    bytes: u32,
    instructions: u32,
}

/// A program: its blocks, and which of them each step executes, in which thread.
#[derive(Clone, Debug)]
struct Program {
    blocks: Vec<Block>,
    steps: Vec<(u32, u32, Vec<Access>)>,
}

fn write(program: &Program, path: &Path) -> TraceInfo {
    let mut writer = TraceWriter::create(path, 1).unwrap();
    for block in &program.blocks {
        writer.define_block(block.address, block.bytes, block.instructions);
    }
    for (thread, block, accesses) in &program.steps {
        writer.execute(*thread, *block, accesses).unwrap();
    }
    writer.finish(&["test".into()], "tests", &[]).unwrap()
}

/// The pieces of a reference, one for each page that it touches.
fn pieces(address: u64, bytes: u64) -> Vec<(u64, u64)> {
    let room = PAGE_BYTES - address % PAGE_BYTES;
    match bytes > room {
        true => vec![(address, room), (address + room, bytes - room)],
        false => vec![(address, bytes)],
    }
}

/// What a thread does, naively: kind, virtual address, bytes; and its instructions.
fn expected(program: &Program, thread: u32) -> (Vec<(Kind, u64, u64)>, u64) {
    let (mut events, mut instructions) = (Vec::new(), 0);
    for (_, block, accesses) in program.steps.iter().filter(|step| step.0 == thread) {
        let block = &program.blocks[*block as usize];
        instructions += u64::from(block.instructions);
        let fetches = pieces(block.address, block.bytes.into());
        events.extend(fetches.into_iter().map(|(address, bytes)| (Kind::Fetch, address, bytes)));
        for access in accesses {
            let kind = if access.write { Kind::Write } else { Kind::Read };
            let parts = pieces(access.address, 1 << access.log2_bytes);
            events.extend(parts.into_iter().map(|(address, bytes)| (kind, address, bytes)));
        }
    }
    (events, instructions)
}

fn read(trace: &Trace, thread: u32) -> Vec<Event> {
    let mut reader = trace.thread(thread).unwrap();
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    while reader.next_chunk(&mut chunk).unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

/// Reads block by block, and checks that what a block says of itself is what its events come to.
fn read_executions(trace: &Trace, thread: u32) -> Vec<Event> {
    let mut reader = trace.thread(thread).unwrap();
    let (mut all, mut chunk) = (Vec::new(), Executions::default());
    while reader.next_executions(&mut chunk).unwrap().is_some() {
        let mut of_chunk = Counts::default();
        for execution in chunk.iter() {
            let (mut counts, mut computed) = (Counts::default(), 0);
            for event in execution.events() {
                counts.count(event);
                computed += event.instructions().saturating_sub(u32::from(!event.is_fetch()));
                all.push(event);
            }
            assert_eq!(execution.len(), counts.events);
            assert_eq!((execution.reads(), execution.writes()), (counts.reads, counts.writes));
            assert_eq!(execution.computed(), u64::from(computed));
            assert!(execution.fetches().iter().all(|event| event.is_fetch()));
            assert!(
                execution.references().all(|reference| reference.is_write() == reference.event().is_write())
            );
            of_chunk += counts;
        }
        assert_eq!(of_chunk, chunk.counts());
    }
    all
}

/// Checks a program's trace against the naive list, up to the renumbering of pages.
fn check(program: &Program) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let info = write(program, &path);
    let trace = Trace::open(&path).unwrap();
    assert_eq!(*trace.info(), info);
    trace.verify().unwrap();
    let (mut dense, mut original) = (HashMap::new(), HashMap::new());
    let mut total = Counts::default();
    for thread in 0..info.threads.len() as u32 {
        let events = read(&trace, thread);
        let (expected, instructions) = expected(program, thread);
        let mut counts = Counts::default();
        assert_eq!(events.len(), expected.len());
        assert_eq!(events, read_executions(&trace, thread));
        for (event, (kind, address, bytes)) in events.iter().zip(expected) {
            assert_eq!((event.kind(), u64::from(event.bytes())), (kind, bytes));
            assert_eq!(event.address() % PAGE_BYTES, address % PAGE_BYTES);
            let page = address / PAGE_BYTES;
            assert_eq!(*dense.entry(page).or_insert(event.page()), event.page());
            assert_eq!(*original.entry(event.page()).or_insert(page), page);
            assert!(u64::from(event.page()) < info.pages);
            counts.count(*event);
        }
        assert_eq!(counts, info.threads[thread as usize]);
        assert_eq!(counts.instructions, instructions);
        total += counts;
    }
    assert_eq!(total, info.total);
    assert_eq!(original.len() as u64, info.pages);
}

fn address() -> impl Strategy<Value = u64> {
    let near_page_end = (0..40u64, 4080..4096u64).prop_map(|(page, offset)| page * PAGE_BYTES + offset);
    prop_oneof![0..1u64 << 47, 0x7fff_0000..0x7fff_8000u64, near_page_end]
}

fn access() -> impl Strategy<Value = Access> {
    (any::<bool>(), address(), 0..6u32).prop_map(|(write, address, log2_bytes)| Access {
        instruction: 0,
        write,
        address,
        log2_bytes,
    })
}

/// A step's references, their instructions in order.
fn accesses(instructions: u32) -> impl Strategy<Value = Vec<Access>> {
    prop::collection::vec((access(), 0..instructions), 0..6).prop_map(|made| {
        let mut order: Vec<u32> = made.iter().map(|(_, instruction)| *instruction).collect();
        order.sort_unstable();
        made.into_iter()
            .zip(order)
            .map(|((access, _), instruction)| Access { instruction, ..access })
            .collect()
    })
}

fn program() -> impl Strategy<Value = Program> {
    let block = (address(), 1..200u32, 1..40u32).prop_map(|(address, bytes, instructions)| Block {
        address,
        bytes,
        instructions,
    });
    prop::collection::vec(block, 1..8).prop_flat_map(|blocks| {
        let fewest = blocks.iter().map(|block| block.instructions).min().unwrap();
        let step = (0..3u32, 0..blocks.len() as u32, accesses(fewest));
        prop::collection::vec(step, 0..200).prop_map(move |steps| Program { blocks: blocks.clone(), steps })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_program_is_read_as_it_was_written(program in program()) {
        check(&program);
    }
}

fn reads(addresses: impl Iterator<Item = u64>) -> Vec<Access> {
    addresses.map(|address| Access { instruction: 0, write: false, address, log2_bytes: 3 }).collect()
}

#[test]
fn pages_are_numbered_in_the_order_in_which_a_program_touches_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let blocks = vec![Block { address: 0x40_0000, bytes: 8, instructions: 2 }];
    let touched = [0x7000_0000u64, 0x1000, 0x7000_0008, 0x40_0100, 0x2000];
    write(&Program { blocks, steps: vec![(0, 0, reads(touched.into_iter()))] }, &path);
    let pages: Vec<u32> = read(&Trace::open(&path).unwrap(), 0).iter().map(|event| event.page()).collect();
    assert_eq!(pages, [0, 1, 2, 1, 0, 3]);
}

#[test]
fn instructions_lie_between_the_references_that_surround_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let access = |instruction, address| Access { instruction, write: true, address, log2_bytes: 2 };
    let blocks = vec![Block { address: 0, bytes: 40, instructions: 10 }];
    let steps = vec![(0, 0, vec![access(3, 64), access(3, 68), access(9, 72)]), (0, 0, vec![])];
    write(&Program { blocks, steps }, &path);
    let events = read(&Trace::open(&path).unwrap(), 0);
    let instructions: Vec<u32> = events.iter().map(|event| event.instructions()).collect();
    assert_eq!(instructions, [3, 0, 6, 1, 10]);
}

#[test]
fn a_block_may_make_more_references_than_a_shape_holds() {
    let blocks = vec![Block { address: 0x1000, bytes: 8, instructions: 1 }];
    let many = |count: u64, start: u64| reads((0..count).map(|i| start + 8 * i));
    let steps = [1023, 1024, 1025, 2048, 2500, 20_000, 1024];
    let steps = steps.iter().enumerate().map(|(i, count)| (0, 0, many(*count, 4 * i as u64))).collect();
    check(&Program { blocks, steps });
}

#[test]
fn more_shapes_than_a_dictionary_holds_start_a_new_one() {
    let blocks: Vec<_> =
        (0..150_000).map(|i| Block { address: 16 * i, bytes: 16, instructions: 4 }).collect();
    let step = |block: u32| (0, block, reads((0..3).map(|i| 8 * u64::from(block + i))));
    let steps = (0..150_000).chain(140_000..150_000).chain(0..10).map(step).collect();
    check(&Program { blocks, steps });
}

#[test]
fn threads_stay_apart_and_their_chunks_are_in_the_order_of_completion() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let mut writer = TraceWriter::create(&path, 1).unwrap();
    let block = writer.define_block(0x1000, 8, 2);
    for i in 0..400_000 {
        let thread = if i < 200_000 { 0 } else { 1 };
        writer.execute(thread, block, &reads([(u64::from(thread) << 32) + 8 * i].into_iter())).unwrap();
    }
    let info = writer.finish(&[], "tests", &[]).unwrap();
    assert_eq!(info.threads.iter().map(Counts::references).collect::<Vec<_>>(), [200_000, 200_000]);
    let trace = Trace::open(&path).unwrap();
    let mut chunk = Vec::new();
    let mut sequence_of = |thread| {
        let mut reader = trace.thread(thread).unwrap();
        std::iter::from_fn(|| reader.next_chunk_in_order(&mut chunk).unwrap()).collect::<Vec<_>>()
    };
    // The last chunk of each thread is written at the end.
    assert_eq!((sequence_of(0), sequence_of(1)), (vec![0, 1, 2, 6], vec![3, 4, 5, 7]));
    assert!(trace.thread(2).unwrap_err().to_string().contains("threads are 0 to 1"));
}

#[test]
fn a_reader_can_start_again_and_a_small_trace_can_be_shared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    let blocks = vec![Block { address: 0x1000, bytes: 8, instructions: 2 }];
    let steps = (0..300_000).map(|i| (0, 0, reads([8 * i].into_iter()))).collect();
    let info = write(&Program { blocks, steps }, &path);
    let trace = Trace::open(&path).unwrap();
    let whole = trace.load_thread(0, info.total.events).unwrap();
    assert!(trace.load_thread(0, info.total.events - 1).unwrap_err().to_string().contains("stream it"));
    let mut reader = trace.thread(0).unwrap();
    let mut chunk = Vec::new();
    reader.next_chunk(&mut chunk).unwrap();
    reader.next_chunk(&mut chunk).unwrap();
    reader.rewind();
    let mut again = Vec::new();
    while reader.next_chunk(&mut chunk).unwrap() {
        again.extend_from_slice(&chunk);
    }
    assert_eq!(again, *whole);
}

#[test]
fn an_unfinished_trace_leaves_nothing_and_spares_the_file_that_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    std::fs::write(&path, "old").unwrap();
    let mut writer = TraceWriter::create(&path, 1).unwrap();
    let block = writer.define_block(0, 8, 2);
    writer.execute(0, block, &[]).unwrap();
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
