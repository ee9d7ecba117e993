//! The memory of simulated programs: arrays whose every access is a reference.

use crate::program::Cpu;
use hearth_hardware::{Address, Hardware, Placement, Segment};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Hands out simulated memory. Clones name the same machine.
#[derive(Clone)]
pub struct Memory {
    hardware: Rc<RefCell<Hardware>>,
}

/// A piece of program text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// First byte.
    pub base: Address,
    /// Length; one instruction is four bytes.
    pub bytes: u64,
}

impl Code {
    /// The part from `offset`, `bytes` long. Wraps within this piece, so any offset is good.
    pub fn part(&self, offset: u64, bytes: u64) -> Code {
        let bytes = bytes.min(self.bytes);
        Code { base: self.base + offset % (self.bytes - bytes + 1), bytes }
    }
}

impl Memory {
    /// The memory of `hardware`.
    pub fn new(hardware: Rc<RefCell<Hardware>>) -> Self {
        Self { hardware }
    }

    /// Sets aside addresses.
    pub fn segment(&self, bytes: u64, placement: Placement) -> Segment {
        self.hardware.borrow_mut().segment(bytes, placement)
    }

    /// Sets aside program text.
    pub fn code(&self, bytes: u64) -> Code {
        let segment = self.segment(bytes, Placement::FirstTouch);
        Code { base: segment.base, bytes }
    }

    /// An array of `len` elements in fresh pages, each `T::default()`. Filling it from outside a program
    /// ([`Array::poke`]) makes no references.
    pub fn array<T: Copy + Default>(&self, len: usize, placement: Placement) -> Array<T> {
        let segment = self.segment((len * size_of::<T>()) as u64, placement);
        Array { base: segment.base, elements: (0..len).map(|_| Cell::new(T::default())).collect() }
    }

    /// Bytes of a cache line of the machine.
    pub fn line_bytes(&self) -> u64 {
        self.hardware.borrow().line_bytes()
    }

    pub(crate) fn hardware(&self) -> &Rc<RefCell<Hardware>> {
        &self.hardware
    }
}

/// An array that lies in simulated memory. Clones name the same array: threads share it by cloning.
pub struct Array<T> {
    base: Address,
    elements: Rc<[Cell<T>]>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self { base: self.base, elements: Rc::clone(&self.elements) }
    }
}

impl<T: Copy> Array<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The address of an element.
    #[inline(always)]
    pub fn address(&self, index: usize) -> Address {
        self.base + (index * size_of::<T>()) as Address
    }

    /// Loads an element: one reference for each eight bytes of it.
    #[inline(always)]
    pub fn get(&self, cpu: &mut Cpu<'_>, index: usize) -> T {
        let value = self.elements[index].get();
        cpu.read(self.address(index));
        if size_of::<T>() > 8 {
            cpu.read_span(self.address(index) + 8, size_of::<T>() as u64 - 8);
        }
        value
    }

    /// Stores an element: one reference for each eight bytes of it. The value is there for others
    /// when the call returns.
    #[inline(always)]
    pub fn set(&self, cpu: &mut Cpu<'_>, index: usize, value: T) {
        cpu.write(self.address(index));
        if size_of::<T>() > 8 {
            cpu.write_span(self.address(index) + 8, size_of::<T>() as u64 - 8);
        }
        self.elements[index].set(value);
    }

    /// An element's value without a reference: for setting up and checking.
    #[inline(always)]
    pub fn peek(&self, index: usize) -> T {
        self.elements[index].get()
    }

    /// Sets an element without a reference: for setting up.
    #[inline(always)]
    pub fn poke(&self, index: usize, value: T) {
        self.elements[index].set(value);
    }
}

impl Array<u64> {
    /// Changes an element with nothing in between, as an atomic instruction does: one store. Returns what it was.
    pub fn update(&self, cpu: &mut Cpu<'_>, index: usize, change: impl FnOnce(u64) -> u64) -> u64 {
        cpu.synchronize();
        let before = self.peek(index);
        self.poke(index, change(before));
        cpu.write(self.address(index));
        before
    }
}
