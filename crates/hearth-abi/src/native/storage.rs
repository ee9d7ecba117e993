//! Storage of tasks (`BPF_MAP_TYPE_TASK_STORAGE`).

use std::cell::RefCell;

/// What is asked for: a task's value in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapValue {
    /// Which map: its address.
    pub map: usize,
    /// Bytes of a value in this map.
    pub size: u64,
    /// A value that is not there yet is made.
    pub create: bool,
}

/// The values of one task, by map.
#[derive(Default)]
pub struct TaskStorage(RefCell<Vec<(usize, Vec<u64>)>>);

impl TaskStorage {
    /// The value in a map: zeroed at first, in the same place for as long as `self` lives; null if it is
    /// not there.
    pub fn value(&self, wanted: MapValue) -> *mut u64 {
        let mut values = self.0.borrow_mut();
        if let Some((_, value)) = values.iter_mut().find(|(map, _)| *map == wanted.map) {
            return value.as_mut_ptr();
        }
        if !wanted.create {
            return std::ptr::null_mut();
        }
        let mut value = vec![0; wanted.size.div_ceil(8) as usize];
        let place = value.as_mut_ptr();
        values.push((wanted.map, value));
        place
    }

    /// The maps are gone, and the values with them.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_map_has_a_value_of_its_own_that_stays_where_it_is() {
        let storage = TaskStorage::default();
        let of = |map, create| storage.value(MapValue { map, size: 20, create });
        assert!(of(1, false).is_null());
        let first = of(1, true);
        let others: Vec<_> = (2..50).map(|map| of(map, true)).collect();
        assert!(others.iter().all(|&other| other != first && !other.is_null()));
        assert_eq!((of(1, true), of(1, false)), (first, first));
        assert!(of(99, false).is_null());
    }
}
