//! What QEMU calls, and what it is asked to call: the only code that runs within the guest's.
//!
//! QEMU runs all CPUs of the guest on one thread, and calls back on it, one call at a time. The plugin's state is
//! made before the first call, and lives as long as QEMU does.

use crate::instructions::{LONGEST, is_call, is_pause, may_change_translations};
use crate::model::{Cpu, Mode, Stretch};
use crate::plugin::{Plugin, say};
use crate::timing::Timing;
use hearth_hardware::Access;
use qemu_plugin_sys::*;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::{self, ThreadId};

static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());
static THREAD: std::sync::OnceLock<ThreadId> = std::sync::OnceLock::new();

/// The CPUs of the region that is counted. QEMU calls of code that was translated for a region within that only.
static CPUS: AtomicPtr<Cpu> = AtomicPtr::new(std::ptr::null_mut());

/// The CPU that executes, of the region that is counted.
#[inline(always)]
fn executing<'a>(cpu: c_uint) -> &'a mut Cpu {
    // SAFETY: the machine has as many CPUs as the guest; nobody else has a reference to them while QEMU calls.
    unsafe { &mut *CPUS.load(Ordering::Relaxed).add(cpu as usize) }
}

/// A region begins, and its code is about to be translated.
pub(crate) fn execute_on(cpus: &mut [Cpu]) {
    CPUS.store(cpus.as_mut_ptr(), Ordering::Relaxed);
}

#[inline(always)]
fn plugin<'a>() -> &'a mut Plugin {
    // SAFETY: it is set before the first callback is registered, and callbacks follow each other on one thread.
    unsafe { &mut *PLUGIN.load(Ordering::Relaxed) }
}

/// Keeps the plugin's state, and has QEMU call back.
pub(crate) fn install(id: qemu_plugin_id_t, plugin: Plugin) {
    PLUGIN.store(Box::into_raw(Box::new(plugin)), Ordering::Relaxed);
    // SAFETY: the callback is of the type that QEMU calls.
    unsafe { qemu_plugin_register_vcpu_init_cb(id, Some(on_cpu)) };
    register(id);
}

fn register(id: qemu_plugin_id_t) {
    // SAFETY: the callbacks are of the types that QEMU calls.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translation));
        qemu_plugin_register_atexit_cb(id, Some(on_exit), std::ptr::null_mut());
    }
}

/// Has QEMU forget all callbacks and all that it has translated, as soon as no code of the guest runs.
pub(crate) fn translate_anew(id: qemu_plugin_id_t) {
    // SAFETY: the callback is of the type that QEMU calls.
    unsafe { qemu_plugin_reset(id, Some(on_reset)) };
}

unsafe extern "C" fn on_reset(id: qemu_plugin_id_t) {
    plugin().is_translated_anew();
    register(id);
}

unsafe extern "C" fn on_exit(_id: qemu_plugin_id_t, _: *mut c_void) {
    plugin().exit();
}

unsafe extern "C" fn on_cpu(_id: qemu_plugin_id_t, cpu: c_uint) {
    let this = thread::current().id();
    if *THREAD.get_or_init(|| this) != this {
        give_up(
            "the CPUs of the guest run on threads of their own; start QEMU with -accel tcg,thread=single",
        );
    }
    if let Err(refusal) = plugin().add_cpu(cpu as usize, own_ticks) {
        give_up(&refusal.to_string());
    }
}

fn give_up(reason: &str) -> ! {
    say(reason);
    // SAFETY: ends the process without running what other threads may be in.
    unsafe { libc::_exit(1) }
}

/// What a time-stamp counter of the guest has.
fn own_ticks() -> i64 {
    plugin().own_ns() as i64
}

unsafe extern "C" fn on_call(cpu: c_uint, _: *mut c_void) {
    plugin().call(cpu as usize);
}

unsafe extern "C" fn on_switch(cpu: c_uint, _: *mut c_void) {
    plugin().switch(cpu as usize);
}

unsafe extern "C" fn on_change_of_translations(cpu: c_uint, _: *mut c_void) {
    if let Some(model) = &mut plugin().model {
        model.forget_translations(cpu as usize);
    }
}

unsafe extern "C" fn on_pause(cpu: c_uint, _: *mut c_void) {
    if let Some(model) = &mut plugin().model {
        model.pause(cpu as usize);
    }
}

unsafe extern "C" fn on_stretch(cpu: c_uint, packed: *mut c_void) {
    if !executing(cpu).execute(Stretch::unpacked(packed as u64)) {
        on_other_stretch(cpu, packed);
    }
}

unsafe extern "C" fn on_timed_stretch(cpu: c_uint, packed: *mut c_void) {
    let executing = executing(cpu);
    if !executing.execute(Stretch::unpacked(packed as u64)) {
        return on_other_timed_stretch(cpu, packed);
    }
    if executing.pass() {
        on_due(cpu);
    }
}

#[inline(never)]
extern "C" fn on_other_stretch(cpu: c_uint, packed: *mut c_void) {
    plugin().execute(cpu as usize, Stretch::unpacked(packed as u64));
}

#[inline(never)]
extern "C" fn on_other_timed_stretch(cpu: c_uint, packed: *mut c_void) {
    plugin().execute(cpu as usize, Stretch::unpacked(packed as u64));
    if executing(cpu).pass() {
        on_due(cpu);
    }
}

#[inline(never)]
extern "C" fn on_due(cpu: c_uint) {
    plugin().look(cpu as usize);
}

unsafe extern "C" fn on_interval(cpu: c_uint, _: *mut c_void) {
    if let Some(timing) = &mut plugin().timing {
        timing.look_outside(cpu as usize);
    }
}

unsafe extern "C" fn on_load(cpu: c_uint, info: qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    let executing = executing(cpu);
    match executing.only_line(address, info) {
        Some(line) if executing.recent(line, Access::Read) => {}
        Some(line) => on_older_load(cpu, line),
        None => on_other_load(cpu, info, address),
    }
}

unsafe extern "C" fn on_store(cpu: c_uint, info: qemu_plugin_meminfo_t, address: u64, _: *mut c_void) {
    let executing = executing(cpu);
    match executing.only_line(address, info) {
        Some(line) if executing.recent(line, Access::Write) => {}
        Some(line) => on_older_store(cpu, line),
        None => on_other_store(cpu, info, address),
    }
}

#[inline(never)]
extern "C" fn on_older_load(cpu: c_uint, line: u32) {
    if !executing(cpu).hit(line, Access::Read) {
        on_miss(cpu, line, Access::Read);
    }
}

#[inline(never)]
extern "C" fn on_older_store(cpu: c_uint, line: u32) {
    if !executing(cpu).hit(line, Access::Write) {
        on_miss(cpu, line, Access::Write);
    }
}

#[inline(never)]
fn on_miss(cpu: c_uint, line: u32, access: Access) {
    if let Some(model) = &mut plugin().model {
        model.miss(cpu as usize, line, access);
    }
}

#[inline(never)]
extern "C" fn on_other_load(cpu: c_uint, info: qemu_plugin_meminfo_t, address: u64) {
    on_data(cpu, info, address, Access::Read);
}

#[inline(never)]
extern "C" fn on_other_store(cpu: c_uint, info: qemu_plugin_meminfo_t, address: u64) {
    on_data(cpu, info, address, Access::Write);
}

fn on_data(cpu: c_uint, info: qemu_plugin_meminfo_t, address: u64, access: Access) {
    let Some(model) = &mut plugin().model else { return };
    // SAFETY: QEMU has made this reference, and says what it was.
    let bytes = model.length(cpu as usize, info, || 1 << unsafe { qemu_plugin_mem_size_shift(info) });
    model.data(cpu as usize, address, bytes, access, |address| physical(info, address));
}

/// The physical address of a reference, if it is to memory.
#[cold]
fn physical(info: qemu_plugin_meminfo_t, address: u64) -> Option<u64> {
    // SAFETY: QEMU has made this reference; what it hands out is good until the next one.
    unsafe {
        let place = qemu_plugin_get_hwaddr(info, address);
        (!place.is_null() && !qemu_plugin_hwaddr_is_io(place)).then(|| qemu_plugin_hwaddr_phys_addr(place))
    }
}

/// An instruction of a block that is being translated.
struct Instruction {
    handle: *mut qemu_plugin_insn,
    address: u64,
    code: [u8; LONGEST],
    length: usize,
}

impl Instruction {
    fn of(block: *mut qemu_plugin_tb, index: usize) -> Self {
        let mut code = [0; LONGEST];
        // SAFETY: the block has an instruction of this index, and the buffer is as long as is said.
        unsafe {
            let handle = qemu_plugin_tb_get_insn(block, index);
            let length = qemu_plugin_insn_data(handle, code.as_mut_ptr().cast(), code.len());
            Self { handle, address: qemu_plugin_insn_vaddr(handle), code, length }
        }
    }

    /// Where the host has it.
    fn place(&self) -> *mut c_void {
        // SAFETY: the instruction is of the block that is being translated.
        unsafe { qemu_plugin_insn_haddr(self.handle) }
    }

    fn call_before(
        &self,
        callback: unsafe extern "C" fn(c_uint, *mut c_void),
        flags: qemu_plugin_cb_flags,
        passed: u64,
    ) {
        // SAFETY: the instruction is of the block that is being translated; the callback takes what is passed.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_cb(self.handle, Some(callback), flags, passed as *mut c_void);
        }
    }

    fn call_after_references(&self) {
        let without = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
        let none = std::ptr::null_mut();
        let (loads, stores) = (qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_R, qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_W);
        // SAFETY: the instruction is of the block that is being translated.
        unsafe {
            qemu_plugin_register_vcpu_mem_cb(self.handle, Some(on_load), without, loads, none);
            qemu_plugin_register_vcpu_mem_cb(self.handle, Some(on_store), without, stores, none);
        }
    }
}

unsafe extern "C" fn on_translation(_id: qemu_plugin_id_t, block: *mut qemu_plugin_tb) {
    let plugin = plugin();
    // SAFETY: QEMU is translating this block.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    let instructions: Vec<Instruction> = (0..count).map(|index| Instruction::of(block, index)).collect();
    if plugin.model.is_some() {
        count_block(plugin, &instructions);
    } else if let Some(timing) = &plugin.timing {
        time_block(timing, block, count as u64);
    }
    let with = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_R_REGS;
    for instruction in &instructions {
        if is_call(&instruction.code[..instruction.length]) {
            instruction.call_before(on_call, with, 0);
        }
        if plugin.symbols.is_some_and(|symbols| symbols.switch_to == instruction.address) {
            instruction.call_before(on_switch, with, 0);
        }
    }
}

/// Has everything counted that a block does.
fn count_block(plugin: &Plugin, instructions: &[Instruction]) {
    let without = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
    let callback = if plugin.timing.is_some() { on_timed_stretch } else { on_stretch };
    for (first, stretch) in stretches(plugin, instructions) {
        instructions[first].call_before(callback, without, stretch.packed());
    }
    for instruction in instructions {
        instruction.call_after_references();
        let code = &instruction.code[..instruction.length];
        if may_change_translations(code) {
            instruction.call_before(on_change_of_translations, without, 0);
        }
        if is_pause(code) {
            instruction.call_before(on_pause, without, 0);
        }
    }
}

/// Has the time counted that a block takes outside of regions.
fn time_block(timing: &Timing, block: *mut qemu_plugin_tb, instructions: u64) {
    let (counter, most) = timing.outside();
    let add = qemu_plugin_op::QEMU_PLUGIN_INLINE_ADD_U64;
    let (none, without) = (std::ptr::null_mut(), qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS);
    let reached = qemu_plugin_cond::QEMU_PLUGIN_COND_GE;
    // SAFETY: QEMU is translating this block, and the counter has a word for each CPU.
    unsafe {
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(block, add, counter, instructions);
        qemu_plugin_register_vcpu_tb_exec_cond_cb(
            block,
            Some(on_interval),
            without,
            reached,
            counter,
            most,
            none,
        );
    }
}

/// The stretches of a block, each with the index of its first instruction. An instruction that spans two lines is
/// of the first, and the second is fetched with it.
fn stretches(plugin: &Plugin, instructions: &[Instruction]) -> Vec<(usize, Stretch)> {
    let line_bytes = plugin.line_bytes();
    let mut lines: Vec<(usize, u64, Option<u32>, u32)> = Vec::new();
    for (index, instruction) in instructions.iter().enumerate() {
        let (begin, end) = (instruction.address, instruction.address + instruction.length.max(1) as u64 - 1);
        let first = begin / line_bytes;
        if lines.last().is_none_or(|last| last.1 != first) {
            lines.push((index, first, plugin.line_of_code(instruction.place()), 0));
        }
        if let Some(last) = lines.last_mut() {
            last.3 += 1;
        }
        if end / line_bytes != first {
            let next_page = end >> 12 != begin >> 12;
            let line = lines.last().and_then(|last| last.2).filter(|_| !next_page).map(|line| line + 1);
            lines.push((index, end / line_bytes, line, 0));
        }
    }
    let mode = Mode::of(instructions.first().map_or(0, |first| first.address));
    lines.into_iter().map(|(index, _, line, count)| (index, Stretch::new(line, count, mode))).collect()
}
