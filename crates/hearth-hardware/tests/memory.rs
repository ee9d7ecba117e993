//! Memory that is used by physical lines: who serves them, and what is refused.

#![allow(missing_docs, clippy::unwrap_used)]

use hearth_hardware::{Access, Counters, Memory};
use hearth_machine::Machine;

const MIB: u64 = 1 << 20;

fn server() -> Machine {
    Machine::load("server-2s").unwrap()
}

fn touch(memory: &mut Memory, cpu: usize, line: u32, access: Access) -> Counters {
    let before = memory.ports()[cpu].counters();
    memory.reference(cpu, line, access);
    memory.ports()[cpu].counters() - before
}

fn refused(node_bytes: &[u64]) -> String {
    Memory::new(&server(), node_bytes).err().unwrap().to_string()
}

#[test]
fn each_node_has_a_stretch_of_lines() {
    let mut memory = Memory::new(&server(), &[MIB, 2 * MIB]).unwrap();
    let lines = |bytes: u64| (bytes / server().line_bytes) as u32;
    assert_eq!(memory.lines(), lines(3 * MIB));
    assert_eq!(touch(&mut memory, 0, lines(MIB) - 1, Access::Read).memory_local, 1);
    assert_eq!(touch(&mut memory, 0, lines(MIB), Access::Read).memory_remote, 1);
    let far = server().cpus() - 1;
    assert_eq!(touch(&mut memory, far, lines(3 * MIB) - 1, Access::Read).memory_local, 1);
}

#[test]
fn a_port_has_what_its_first_level_has_and_nothing_else() {
    let mut memory = Memory::new(&server(), &[MIB]).unwrap();
    let port = memory.ports()[0].clone();
    assert!(!port.read_line(7) && !port.write_line(7) && !port.fetch_line(7));
    assert_eq!(port.counters(), Counters::default(), "a reference that is not served is not counted");
    memory.reference(0, 7, Access::Write);
    assert!(port.read_line(7) && port.write_line(7) && !port.fetch_line(7));
    assert_eq!(touch(&mut memory, 1, 7, Access::Read).llc_hits, 1);
    assert!(port.read_line(7) && !port.write_line(7), "another CPU has it, too");
}

#[test]
fn memory_that_cannot_be_simulated_is_refused() {
    assert!(refused(&[MIB, MIB, MIB]).contains("memory of 3 nodes, and the machine has 2"));
    assert!(refused(&[MIB + 64]).contains("whole pages"));
    assert!(refused(&[64 << 30]).contains("less than"));
}

#[test]
fn eight_gib_are_no_trouble() {
    let mut memory = Memory::new(&server(), &[4 << 30, 4 << 30]).unwrap();
    let last = memory.lines() - 1;
    assert_eq!(touch(&mut memory, 0, last, Access::Read).memory_remote, 1);
}
