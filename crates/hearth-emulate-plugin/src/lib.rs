//! The plugin of QEMU that keeps the caches under a guest, and counts who serves its references.
//!
//! ```text
//! -plugin libhearth_emulate_plugin.so,machine=FILE.toml,out=FILE.json[,node_mib=A:B:...][,seed=N]
//!         [,mode=counts|timed][,quantum=CYCLES][,begin=FILE][,clock=FILE]
//! ```
//! QEMU calls back before code is executed and after each load and store (`callbacks`). Addresses become lines of
//! memory (`translations`, `layout`), lines go to the caches of `hearth-hardware` (`model`), and what they count goes to
//! the task that ran (`tasks`). Programs of the guest say what is to be counted (`plugin`). In timed mode what it all
//! costs drives the guest's clock (`timing`, `clock`, `time`). Nothing that the guest does follows the host's
//! time (`turns`).

mod arguments;
mod callbacks;
mod clock;
mod instructions;
mod layout;
mod lengths;
mod model;
mod plugin;
mod qemu;
mod tasks;
mod time;
mod timing;
mod translations;
mod turns;

use arguments::{Arguments, Refusal};
use plugin::Plugin;
use qemu_plugin_sys::{qemu_info_t, qemu_plugin_id_t};
use std::ffi::{CStr, c_char, c_int};

const INTERFACE: c_int = 4;

/// Which version of QEMU's plugin interface this was made for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = INTERFACE;

/// What QEMU calls first. Anything but 0 ends QEMU, and the reason has been said.
///
/// # Safety
/// Only QEMU calls it, with what its plugin interface says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu_plugin_id_t,
    info: *const qemu_info_t,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes as many arguments as it says.
    let word = |index: usize| unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy().into_owned();
    let words: Vec<String> = (0..count as usize).map(word).collect();
    // SAFETY: QEMU passes what it says of itself.
    match start(id, unsafe { &*info }, &words) {
        Ok(()) => 0,
        Err(refusal) => {
            plugin::say(&refusal.to_string());
            -1
        }
    }
}

fn start(id: qemu_plugin_id_t, info: &qemu_info_t, words: &[String]) -> Result<(), Refusal> {
    // SAFETY: QEMU names its target, and has CPUs if it emulates a system.
    let (target, cpus) = unsafe {
        (CStr::from_ptr(info.target_name).to_string_lossy(), info.__bindgen_anon_1.system.max_vcpus)
    };
    if info.version.cur != INTERFACE {
        return Err(Refusal::Interface(info.version.cur));
    }
    if !info.system_emulation || target != "x86_64" {
        return Err(Refusal::Target(target.into_owned()));
    }
    let plugin = Plugin::new(id, Arguments::parse(words)?, cpus as usize)?;
    callbacks::install(id, plugin);
    Ok(())
}
