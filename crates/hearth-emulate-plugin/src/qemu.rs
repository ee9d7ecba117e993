//! What is asked of QEMU: the plugin interface, and a few functions beside it.

use crate::arguments::Refusal;
use qemu_plugin_sys::{GArray, GByteArray, qemu_plugin_reg_descriptor, qemu_plugin_register};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// QEMU's flag that code may run beside other CPUs (`CF_PARALLEL`).
const PARALLEL: u32 = 1 << 15;
/// QEMU's clock that guests see (`QEMU_CLOCK_VIRTUAL`).
const VIRTUAL_CLOCK: c_int = 1;

// GLib comes with QEMU.
unsafe extern "C" {
    fn g_byte_array_new() -> *mut GByteArray;
    fn g_byte_array_set_size(array: *mut GByteArray, length: c_uint) -> *mut GByteArray;
    fn g_array_free(array: *mut GArray, free_segment: c_int) -> *mut c_char;
}

/// Functions of QEMU that are not of its plugin interface.
pub(crate) struct Beside {
    get_cpu: unsafe extern "C" fn(c_int) -> *mut c_void,
    set_flags: unsafe extern "C" fn(*mut c_void, u32),
    memory_offset: unsafe extern "C" fn(*mut c_void) -> u64,
    clock_ns: unsafe extern "C" fn(c_int) -> i64,
    write_memory: unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize, bool) -> c_int,
}

/// The address of a function or variable of the program that has loaded this.
pub(crate) fn symbol(name: &'static CStr) -> Result<*mut c_void, Refusal> {
    // SAFETY: both arguments are as `dlsym` wants them.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let name = || name.to_str().unwrap_or_default();
    (!address.is_null()).then_some(address).ok_or_else(|| Refusal::NoSymbol(name()))
}

impl Beside {
    /// Finds them in the program that has loaded this.
    pub(crate) fn find() -> Result<Self, Refusal> {
        // SAFETY: these are their types in QEMU 10.0, whose plugin interface has been asked for.
        unsafe {
            Ok(Self {
                get_cpu: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> *mut c_void>(
                    symbol(c"qemu_get_cpu")?,
                ),
                set_flags: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, u32)>(
                    symbol(c"tcg_cflags_set")?,
                ),
                memory_offset: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> u64>(
                    symbol(c"qemu_ram_addr_from_host")?,
                ),
                clock_ns: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> i64>(symbol(
                    c"qemu_clock_get_ns",
                )?),
                write_memory: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize, bool) -> c_int,
                >(symbol(c"cpu_memory_rw_debug")?),
            })
        }
    }

    /// Makes QEMU tell callbacks which CPU they are for. With all CPUs on one thread it otherwise takes each block
    /// of code to be for the CPU that it was first translated for.
    pub(crate) fn tell_cpus_apart(&self, cpu: usize) {
        // SAFETY: QEMU has a CPU of this number, and is about to start it on this thread.
        unsafe { (self.set_flags)((self.get_cpu)(cpu as c_int), PARALLEL) }
    }

    /// How many bytes of the guest's memory come before a place in it, for memory that is all of one sort.
    pub(crate) fn memory_offset(&self, host: *mut c_void) -> u64 {
        // SAFETY: QEMU takes any address, and says so if it is not of the guest's memory.
        unsafe { (self.memory_offset)(host) }
    }

    /// The guest's clock. Only outside of the guest's code.
    pub(crate) fn clock_ns(&self) -> u64 {
        // SAFETY: the clock exists as long as QEMU runs.
        u64::try_from(unsafe { (self.clock_ns)(VIRTUAL_CLOCK) }).unwrap_or(0)
    }

    /// Writes into the memory of the task that runs on a CPU; `false` if none is there.
    pub(crate) fn write_memory(&self, cpu: usize, address: u64, bytes: &mut [u8]) -> bool {
        let start = bytes.as_mut_ptr().cast();
        // SAFETY: the CPU is the one that this thread runs, and the buffer is as long as is said.
        unsafe { (self.write_memory)((self.get_cpu)(cpu as c_int), address, start, bytes.len(), true) == 0 }
    }
}

/// Registers of a CPU that carry arguments.
pub(crate) struct Registers {
    rax: *mut qemu_plugin_register,
    rdi: *mut qemu_plugin_register,
    rsi: *mut qemu_plugin_register,
    buffer: *mut GByteArray,
}

impl Registers {
    /// Those of the CPU that this thread is about to start.
    pub(crate) fn find() -> Self {
        // SAFETY: QEMU hands over an array of descriptors, to be freed without what they point to.
        unsafe {
            let all = qemu_plugin_sys::qemu_plugin_get_registers();
            let first = (*all).data.cast::<qemu_plugin_reg_descriptor>();
            let described = std::slice::from_raw_parts(first, (*all).len as usize);
            let named = |name: &CStr| {
                let found = described.iter().find(|register| CStr::from_ptr(register.name) == name);
                found.map_or(std::ptr::null_mut(), |register| register.handle)
            };
            let (rax, rdi, rsi) = (named(c"rax"), named(c"rdi"), named(c"rsi"));
            g_array_free(all, 1);
            Self { rax, rdi, rsi, buffer: g_byte_array_new() }
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the array is this one's own, and nobody changes it while its bytes are looked at.
        unsafe {
            let array = &*self.buffer;
            if array.data.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(array.data, array.len as usize)
            }
        }
    }

    /// A register of the CPU that calls; 0 if QEMU does not have it.
    fn read(&self, register: *mut qemu_plugin_register) -> u64 {
        if register.is_null() {
            return 0;
        }
        // SAFETY: the register is one that QEMU named, the array is this one's own.
        unsafe {
            g_byte_array_set_size(self.buffer, 0);
            qemu_plugin_sys::qemu_plugin_read_register(register, self.buffer);
        }
        self.bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The operation and arguments of a call.
    pub(crate) fn call(&self) -> (u64, u64, u64) {
        (self.read(self.rax), self.read(self.rdi), self.read(self.rsi))
    }

    /// The first two arguments of a function that is about to begin.
    pub(crate) fn arguments(&self) -> (u64, u64) {
        (self.read(self.rdi), self.read(self.rsi))
    }

    /// Memory of the guest, as the CPU that calls sees it. Nothing if it is not there.
    pub(crate) fn memory(&self, address: u64, length: usize) -> &[u8] {
        // SAFETY: the array is this one's own.
        let is_read = unsafe {
            g_byte_array_set_size(self.buffer, 0);
            qemu_plugin_sys::qemu_plugin_read_memory_vaddr(address, self.buffer, length)
        };
        if is_read { self.bytes() } else { &[] }
    }

    /// A word of 32 bits of the guest's memory; 0 if it is not there.
    pub(crate) fn word(&self, address: u64) -> u32 {
        self.memory(address, 4).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Text of the guest's memory up to a zero, or this long.
    pub(crate) fn text(&self, address: u64, most: usize) -> String {
        let bytes = self.memory(address, most);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}
