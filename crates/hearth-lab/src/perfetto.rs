//! What ran where, as a trace for Perfetto (ui.perfetto.dev).
//!
//! Each run is a process, each of its CPUs a track below it, and each stretch of a task on a CPU a
//! slice that is named after the task, with the application as its category. The few fields needed
//! of Perfetto's `trace_packet.proto`, `track_descriptor.proto` and `track_event.proto` are named
//! here; the same comparison gives the same bytes.

use crate::Run;
use crate::report::{Comparison, format};
use hearth_sim::measure::Stretch;
use micropb::{PbEncoder, Tag, WIRE_TYPE_LEN, WIRE_TYPE_VARINT};

const TRACE_PACKET: u32 = 1;
const PACKET_TIMESTAMP: u32 = 8;
const PACKET_SEQUENCE_ID: u32 = 10;
const PACKET_TRACK_EVENT: u32 = 11;
const PACKET_TRACK_DESCRIPTOR: u32 = 60;
const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PROCESS: u32 = 3;
const TRACK_PARENT_UUID: u32 = 5;
const TRACK_CHILD_ORDERING: u32 = 11;
const TRACK_RANK: u32 = 12;
const PROCESS_PID: u32 = 1;
const PROCESS_NAME: u32 = 6;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK_UUID: u32 = 11;
const EVENT_CATEGORIES: u32 = 22;
const EVENT_NAME: u32 = 23;

const ORDERED_BY_RANK: u64 = 3;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// All packets have one writer.
const SEQUENCE: u64 = 1;

/// The trace of every run whose timeline was kept.
pub fn trace(comparison: &Comparison) -> Vec<u8> {
    let runs = comparison.policies.iter().flat_map(|policy| &policy.runs);
    let kept = runs.filter(|run| !run.result.timeline.is_empty());
    let mut trace = Message::default();
    for (index, run) in kept.enumerate() {
        add_run(&mut trace, index as u64 + 1, run);
    }
    trace.bytes()
}

/// A run as the process `pid`.
fn add_run(trace: &mut Message, pid: u64, run: &Run) {
    let cpu_track = |cpu: usize| (pid << 32) + 1 + cpu as u64;
    let name = format!("{} under {}, seed {}", run.workload, run.policy, run.seed);
    let process = Message::default().number(PROCESS_PID, pid).text(PROCESS_NAME, &name);
    let track = Message::default()
        .number(TRACK_UUID, pid << 32)
        .number(TRACK_CHILD_ORDERING, ORDERED_BY_RANK)
        .message(TRACK_PROCESS, process);
    trace.add(TRACE_PACKET, packet(0).message(PACKET_TRACK_DESCRIPTOR, track));
    for cpu in 0..run.result.cpus {
        let track = Message::default()
            .number(TRACK_UUID, cpu_track(cpu))
            .text(TRACK_NAME, &format!("CPU {cpu}"))
            .number(TRACK_PARENT_UUID, pid << 32)
            .number(TRACK_RANK, cpu as u64);
        trace.add(TRACE_PACKET, packet(0).message(PACKET_TRACK_DESCRIPTOR, track));
    }
    let mut stretches: Vec<&Stretch> = run.result.timeline.iter().collect();
    stretches.sort_by_key(|stretch| (stretch.start_ns, stretch.cpu));
    for stretch in stretches {
        add_slice(trace, cpu_track(stretch.cpu), stretch, run);
    }
}

fn add_slice(trace: &mut Message, track: u64, stretch: &Stretch, run: &Run) {
    let Some(task) = run.result.tasks.get(stretch.task) else { return };
    let application = run.result.applications.get(task.application);
    let application = application.map_or("", |application| &application.name);
    let begin = Message::default()
        .number(EVENT_TYPE, SLICE_BEGIN)
        .number(EVENT_TRACK_UUID, track)
        .text(EVENT_CATEGORIES, application)
        .text(EVENT_NAME, &format::task(application, &task.name));
    let end = Message::default().number(EVENT_TYPE, SLICE_END).number(EVENT_TRACK_UUID, track);
    trace.add(TRACE_PACKET, packet(stretch.start_ns).message(PACKET_TRACK_EVENT, begin));
    trace.add(TRACE_PACKET, packet(stretch.end_ns).message(PACKET_TRACK_EVENT, end));
}

fn packet(at_ns: u64) -> Message {
    Message::default().number(PACKET_TIMESTAMP, at_ns).number(PACKET_SEQUENCE_ID, SEQUENCE)
}

/// A protobuf message under construction.
struct Message {
    encoder: PbEncoder<Vec<u8>>,
}

impl Default for Message {
    fn default() -> Self {
        Self { encoder: PbEncoder::new(Vec::new()) }
    }
}

impl Message {
    fn bytes(self) -> Vec<u8> {
        self.encoder.into_writer()
    }

    fn number(mut self, field: u32, value: u64) -> Self {
        let Ok(()) = self.encoder.encode_tag(Tag::from_parts(field, WIRE_TYPE_VARINT));
        let Ok(()) = self.encoder.encode_varint64(value);
        self
    }

    fn text(mut self, field: u32, value: &str) -> Self {
        let Ok(()) = self.encoder.encode_tag(Tag::from_parts(field, WIRE_TYPE_LEN));
        let Ok(()) = self.encoder.encode_string(value);
        self
    }

    fn message(mut self, field: u32, value: Message) -> Self {
        self.add(field, value);
        self
    }

    fn add(&mut self, field: u32, value: Message) {
        let Ok(()) = self.encoder.encode_tag(Tag::from_parts(field, WIRE_TYPE_LEN));
        let Ok(()) = self.encoder.encode_bytes(&value.bytes());
    }
}
