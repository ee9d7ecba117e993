//! CPUs end their turns when the guest has them do so, and at no time of the host's.
//!
//! QEMU's read-copy-update would end one whenever something in QEMU is to be freed, as it is after a state was read and
//! when code is translated anew.

use crate::arguments::Refusal;
use crate::qemu::symbol;
use std::ffi::c_void;

/// QEMU's, in a list of its kind.
#[repr(C)]
struct Notifier {
    notify: Option<unsafe extern "C" fn(*mut Notifier, *mut c_void)>,
    next: *mut Notifier,
    previous: *mut *mut Notifier,
}

type Change = unsafe extern "C" fn(*mut Notifier);

/// Has QEMU free memory after a CPU's turn has ended, whenever that is. Only on the thread that runs CPUs, which never
/// ends.
///
/// # Errors
/// A QEMU without these functions.
pub(crate) fn let_cpus_finish() -> Result<(), Refusal> {
    let mut first = Notifier { notify: None, next: std::ptr::null_mut(), previous: std::ptr::null_mut() };
    let first = &raw mut first;
    // SAFETY: these are the functions' types in QEMU 10.0, whose plugin interface has been asked for. QEMU puts `first`
    // before the notifiers that this thread has, and takes each out of the list again.
    unsafe {
        let add = std::mem::transmute::<*mut c_void, Change>(symbol(c"rcu_add_force_rcu_notifier")?);
        let remove = std::mem::transmute::<*mut c_void, Change>(symbol(c"rcu_remove_force_rcu_notifier")?);
        add(first);
        while !(*first).next.is_null() {
            remove((*first).next);
        }
        remove(first);
    }
    Ok(())
}
