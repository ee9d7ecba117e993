//! Data that a program has had for long when it is measured.

use hearth_hardware::Address;
use hearth_sim::program::Cpu;

/// No machine has smaller pages.
const PAGE_BYTES: u64 = 4 << 10;

/// Has all pages of a range given memory, by one store to each. What filling them would take besides is left out,
/// but without this a program that comes to its data in no order would fault on pages for as long as it runs.
pub(crate) fn touch_pages(cpu: &mut Cpu<'_>, base: Address, bytes: u64) {
    (base..base + bytes).step_by(PAGE_BYTES as usize).for_each(|address| cpu.write(address));
}
