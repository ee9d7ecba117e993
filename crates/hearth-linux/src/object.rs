//! The schedulers' objects in the kernel: Hearth's own (`bpf/hearth.bpf.c`), and the papers' (`bpf/papers.bpf.c`). They
//! differ in where their globals lie, so each has a skeleton; all else that hosts do with them is here once.

use crate::Error;
use hearth_abi::{self as seam, CpuStats, Ended, FALSE_WAITS, FalseWait, Fragment};
use hearth_policy::Policy;
use libbpf_rs::MapCore;
use std::os::fd::BorrowedFd;

/// What is set before an object is loaded.
pub(crate) struct Setup {
    pub(crate) policy: seam::Policy,
    pub(crate) topology: seam::Topology,
    pub(crate) shape: seam::Shape,
    pub(crate) watchdog_ms: u32,
    pub(crate) stalls: bool,
    /// More flags of sched_ext's.
    pub(crate) flags: u64,
    /// Whether it has to be told of each task that stops.
    pub(crate) is_told_of_stops: bool,
    /// Whether tasks declare data in words of theirs.
    pub(crate) heeds_words: bool,
}

/// An object that is loaded, and schedules until it is dropped.
pub(crate) trait Object {
    /// The map of what is remembered of tasks.
    fn tasks(&self) -> &dyn MapCore;
    /// The ring of decisions.
    fn decisions(&self) -> &dyn MapCore;
    /// The memory in which its globals lie, and what lies where.
    fn data(&self) -> (BorrowedFd<'_>, Layout);
    /// The programs `hearth_register` and `hearth_switched`.
    fn words(&self) -> [BorrowedFd<'_>; 2];
    /// Where its globals are, for as long as it lives.
    fn globals(&self) -> &Globals;
}

/// Pointers to what hosts read and write of an object's globals, while the kernel does, too.
pub(crate) struct Globals {
    /// One for each of `MAX_CPUS`.
    pub(crate) stats: *const CpuStats,
    pub(crate) tracing: *mut u32,
    pub(crate) traced_pid: *mut i32,
    pub(crate) decisions_lost: *const u64,
    /// `MAX_FRAGMENTS` of them.
    pub(crate) fragments: *const Fragment,
    /// A `bool` of C's.
    pub(crate) fragments_are_used: *const u8,
    pub(crate) fragments_refused: *const u64,
    pub(crate) ended: *const Ended,
    /// The kernel's account: `DUMP_BYTES`.
    pub(crate) dump: *const u8,
    pub(crate) false_waits: *const [FalseWait; FALSE_WAITS],
}

/// Where in an object's memory lies what plans are published by, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) published: usize,
    pub(crate) shapes: usize,
    pub(crate) plans: usize,
    pub(crate) cells: usize,
}

/// Loads the object that has a policy.
pub(crate) fn load(policy: &Policy, setup: &Setup) -> Result<Box<dyn Object>, Error> {
    if policy.steady { hearth::load(setup) } else { papers::load(setup) }
}

macro_rules! object {
    ($name:ident, $skeleton:literal, $Builder:ident, $Open:ident, $Skel:ident) => {
        pub(crate) mod $name {
            use super::{Globals, Layout, Setup};
            use crate::Error;
            use bpf::types::{bss, rodata};
            use bytemuck::bytes_of;
            use libbpf_rs::skel::{OpenSkel, SkelBuilder};
            use libbpf_rs::{Link, MapCore, OpenObject};
            use std::mem::{MaybeUninit, offset_of};
            use std::os::fd::{AsFd, BorrowedFd};
            use std::ptr;

            #[allow(warnings, clippy::all)]
            mod bpf {
                include!(concat!(env!("OUT_DIR"), $skeleton));
            }

            const LAYOUT: Layout = Layout {
                size: size_of::<bss>(),
                published: offset_of!(bss, published),
                shapes: offset_of!(bss, shapes),
                plans: offset_of!(bss, plans),
                cells: offset_of!(bss, cell_ctxs),
            };

            struct Object {
                // Dropped first: detaches.
                _link: Link,
                globals: Globals,
                skeleton: bpf::$Skel<'static>,
            }

            impl super::Object for Object {
                fn tasks(&self) -> &dyn MapCore {
                    &self.skeleton.maps.task_ctxs
                }

                fn decisions(&self) -> &dyn MapCore {
                    &self.skeleton.maps.decisions
                }

                fn data(&self) -> (BorrowedFd<'_>, Layout) {
                    (self.skeleton.maps.bss.as_fd(), LAYOUT)
                }

                fn words(&self) -> [BorrowedFd<'_>; 2] {
                    let programs = &self.skeleton.progs;
                    [programs.hearth_register.as_fd(), programs.hearth_switched.as_fd()]
                }

                fn globals(&self) -> &Globals {
                    &self.globals
                }
            }

            pub(super) fn load(setup: &Setup) -> Result<Box<dyn super::Object>, Error> {
                let refused = |step| move |source| Error::refused(step, source);
                // Lives as long as the process: the skeleton borrows from it.
                let object: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
                let mut open = bpf::$Builder::default().open(object).map_err(refused("open"))?;
                configure(&mut open, setup)?;
                let mut skeleton = open.load().map_err(refused("load"))?;
                let data = skeleton.maps.bss_data.as_deref_mut();
                let data: *mut bss = data.ok_or(Error::Incomplete { section: "data" })?;
                let link = skeleton.maps.hearth_ops.attach_struct_ops().map_err(refused("attach"))?;
                // SAFETY: fields of the mapping, which lives as long as the skeleton; the types are the same, as
                // the build has compared.
                let globals = unsafe {
                    Globals {
                        stats: (&raw const (*data).stats).cast(),
                        tracing: &raw mut (*data).tracing,
                        traced_pid: &raw mut (*data).traced_pid,
                        decisions_lost: &raw const (*data).decisions_lost,
                        fragments: (&raw const (*data).fragments).cast(),
                        fragments_are_used: (&raw const (*data).fragments_are_used).cast(),
                        fragments_refused: &raw const (*data).fragments_refused,
                        ended: (&raw const (*data).exited).cast(),
                        dump: (&raw const (*data).exit_dump).cast(),
                        false_waits: (&raw const (*data).false_waits.last).cast(),
                    }
                };
                Ok(Box::new(Object { _link: link, globals, skeleton }))
            }

            /// Writes what the scheduler reads as constants, the shape of the machine undivided, and its operations.
            fn configure(open: &mut bpf::$Open<'_>, setup: &Setup) -> Result<(), Error> {
                let constants = open.maps.rodata.initial_value_mut().unwrap_or_default();
                let mut put = |offset: usize, value: &[u8]| write(constants, offset, value, "read-only data");
                put(offset_of!(rodata, policy), bytes_of(&setup.policy))?;
                put(offset_of!(rodata, topology), bytes_of(&setup.topology))?;
                put(offset_of!(rodata, watchdog_ms), &setup.watchdog_ms.to_ne_bytes())?;
                put(offset_of!(rodata, stalls), &[u8::from(setup.stalls)])?;
                let data = open.maps.bss.initial_value_mut().unwrap_or_default();
                write(data, LAYOUT.shapes, bytes_of(&setup.shape), "data")?;
                // SAFETY: the pointer is to the operations of this very object, which nothing else uses yet.
                let operations = unsafe { &mut *open.struct_ops.hearth_ops };
                operations.timeout_ms = setup.watchdog_ms;
                operations.flags |= setup.flags;
                if !setup.is_told_of_stops {
                    operations.stopping = ptr::null_mut();
                }
                open.progs.hearth_register.set_autoload(setup.heeds_words);
                open.progs.hearth_switched.set_autoload(setup.heeds_words);
                Ok(())
            }

            fn write(to: &mut [u8], offset: usize, value: &[u8], section: &'static str) -> Result<(), Error> {
                let place = to.get_mut(offset..offset + value.len());
                place.map(|place| place.copy_from_slice(value)).ok_or(Error::Incomplete { section })
            }

            #[cfg(test)]
            mod tests {
                use super::*;
                use hearth_abi as seam;
                use hearth_policy::Policy;

                #[test]
                fn the_constants_are_those_of_the_policy_and_the_machine() {
                    let mut object = MaybeUninit::uninit();
                    let mut open = bpf::$Builder::default().open(&mut object).unwrap();
                    let domains = [vec![0, 1], vec![2, 3]];
                    let setup = Setup {
                        policy: seam::Policy::new(&Policy::affinity(3, 2), 4_000_000),
                        topology: seam::Topology::new(4, &domains, |cpu| cpu / 2).unwrap(),
                        shape: seam::Shape::undivided(&domains),
                        watchdog_ms: 2_000,
                        stalls: true,
                        flags: 0,
                        is_told_of_stops: false,
                        heeds_words: false,
                    };
                    configure(&mut open, &setup).unwrap();
                    let constants = open.maps.rodata_data.as_deref().unwrap();
                    assert_eq!(constants.policy.tick_ns, setup.policy.tick_ns);
                    assert_eq!(constants.policy.processor_ns, setup.policy.processor_ns);
                    let domains = constants.topology.domain_of[..4].to_vec();
                    assert_eq!((constants.topology.nr_cpus, domains), (4, vec![0, 0, 1, 1]));
                    assert_eq!((constants.watchdog_ms, constants.stalls), (2_000, true));
                    assert_eq!(
                        open.maps.bss_data.as_deref().unwrap().shapes[0].nr_cells,
                        setup.shape.nr_cells
                    );
                }
            }
        }
    };
}

object!(hearth, "/hearth.skel.rs", HearthSkelBuilder, OpenHearthSkel, HearthSkel);
object!(papers, "/papers.skel.rs", PapersSkelBuilder, OpenPapersSkel, PapersSkel);
