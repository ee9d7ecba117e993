//! How a sequential program of the second paper begins: it is executed and reads its input, and only then sets its
//! data up. So it begins on the node that has the disks, if only one has, and its memory comes from where it runs
//! as it sets it up.

use hearth_sim::memory::Array;
use hearth_sim::program::Cpu;

/// Bytes of a program's file that are read before it can begin (estimate).
const PROGRAM_BYTES: u64 = 128 << 10;
/// Bytes that one request to the disk reads: the kernel reads ahead (estimate).
const REQUEST_BYTES: u64 = 64 << 10;
/// Cycles to make numbers of a byte of input: what formatted input of C took (estimate).
const CYCLES_PER_BYTE: u64 = 20;

/// The program is executed, and reads so many bytes of input.
pub fn execute(cpu: &mut Cpu<'_>, input_bytes: u64) {
    for bytes in [PROGRAM_BYTES, input_bytes] {
        let mut left = bytes;
        while left > 0 {
            let request = left.min(REQUEST_BYTES);
            cpu.io(request);
            left -= request;
        }
    }
    cpu.compute(input_bytes * CYCLES_PER_BYTE);
}

/// Sets an array up: a store to each of its words.
pub fn set_up<T: Copy>(cpu: &mut Cpu<'_>, array: &Array<T>) {
    cpu.write_span(array.address(0), (array.len() * size_of::<T>()) as u64);
}
