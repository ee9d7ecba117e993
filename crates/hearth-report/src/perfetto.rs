//! What ran where, as a trace for Perfetto (ui.perfetto.dev).
//!
//! A machine is a process of the trace, each of its CPUs a track below it, and each stretch of a task
//! on a CPU a slice that is named after the task. The few fields needed of Perfetto's
//! `trace_packet.proto`, `track_descriptor.proto`, `track_event.proto` and `debug_annotation.proto`
//! are named here; the same calls give the same bytes.

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
const EVENT_ANNOTATIONS: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK_UUID: u32 = 11;
const EVENT_CATEGORIES: u32 = 22;
const EVENT_NAME: u32 = 23;
const ANNOTATION_STRING: u32 = 6;
const ANNOTATION_NAME: u32 = 10;

const ORDERED_BY_RANK: u64 = 3;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;

/// All packets have one writer.
const SEQUENCE: u64 = 1;

/// A trace under construction.
#[derive(Default)]
pub struct Trace(Message);

/// A machine of the trace, from [`Trace::machine`].
#[derive(Clone, Copy, Debug)]
pub struct Machine(u64);

impl Machine {
    fn track(self, cpu: usize) -> u64 {
        (self.0 << 32) + 1 + cpu as u64
    }
}

/// A stretch of a task on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The CPU's number.
    pub cpu: usize,
    /// When it begins, in nanoseconds.
    pub start_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// What Perfetto shows.
    pub name: &'a str,
    /// What slices may be filtered by.
    pub category: &'a str,
    /// What Perfetto shows of a chosen slice: names and texts.
    pub notes: &'a [(&'a str, String)],
}

impl Trace {
    /// Adds a machine; `number` is 1 or more, and its own.
    pub fn machine(&mut self, number: u64, name: &str, cpus: impl IntoIterator<Item = usize>) -> Machine {
        let machine = Machine(number);
        let process = Message::default().number(PROCESS_PID, number).text(PROCESS_NAME, name);
        let track = Message::default()
            .number(TRACK_UUID, number << 32)
            .number(TRACK_CHILD_ORDERING, ORDERED_BY_RANK)
            .message(TRACK_PROCESS, process);
        self.0.add(TRACE_PACKET, packet(0).message(PACKET_TRACK_DESCRIPTOR, track));
        for cpu in cpus {
            let track = Message::default()
                .number(TRACK_UUID, machine.track(cpu))
                .text(TRACK_NAME, &format!("CPU {cpu}"))
                .number(TRACK_PARENT_UUID, number << 32)
                .number(TRACK_RANK, cpu as u64);
            self.0.add(TRACE_PACKET, packet(0).message(PACKET_TRACK_DESCRIPTOR, track));
        }
        machine
    }

    /// Adds a slice; those of a CPU come in order.
    pub fn slice(&mut self, machine: Machine, slice: &Slice<'_>) {
        let track = machine.track(slice.cpu);
        let mut begin = Message::default();
        for (name, text) in slice.notes {
            let note = Message::default().text(ANNOTATION_STRING, text).text(ANNOTATION_NAME, name);
            begin.add(EVENT_ANNOTATIONS, note);
        }
        let begin = begin
            .number(EVENT_TYPE, SLICE_BEGIN)
            .number(EVENT_TRACK_UUID, track)
            .text(EVENT_CATEGORIES, slice.category)
            .text(EVENT_NAME, slice.name);
        let end = Message::default().number(EVENT_TYPE, SLICE_END).number(EVENT_TRACK_UUID, track);
        self.0.add(TRACE_PACKET, packet(slice.start_ns).message(PACKET_TRACK_EVENT, begin));
        self.0.add(TRACE_PACKET, packet(slice.end_ns).message(PACKET_TRACK_EVENT, end));
    }

    /// The trace, to be written into a file.
    pub fn bytes(self) -> Vec<u8> {
        self.0.bytes()
    }
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
