//! What runs beside what, told for as long as somebody asks.

use super::{Options, Session, Told, bpf};
use crate::counters::{Counters, SAMPLE_NS};
use crate::error::ObserveError;
use crate::layout::Words;
use hearth_policy::Snapshot;
use hearth_policy::isolation::side_by_side::{IDLE, Stretch};
use hearth_policy::isolation::{Counting, Runs};
use hearth_policy::snapshot::Run;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// A CPU that is not idle has told of what it did before, a sample and a late one ago.
const TOLD_AFTER_NS: u64 = 4 * SAMPLE_NS;

/// Counts from [`Self::begin`] on, until it is dropped.
pub struct Follow {
    told: Arc<Mutex<Told>>,
    ring: RingBuffer<'static>,
    cpus: MapHandle,
    runs: Runs,
    _links: Vec<Link>,
    _counters: Counters,
    /// The kernel forgets counters when the maps that they were put into are closed.
    _maps: Vec<MapHandle>,
}

impl Follow {
    /// Begins to count.
    ///
    /// # Errors
    /// Those of [`super::neighbours`].
    pub fn begin(options: &Options) -> Result<Self, ObserveError> {
        let mut room = MaybeUninit::uninit();
        let session = Session::load(&mut room, options)?;
        let maps = &session.skeleton.maps;
        let told = Arc::new(Mutex::new(Told::default()));
        let (sink, mut ring) = (Arc::clone(&told), RingBufferBuilder::new());
        ring.add(&maps.stretches, move |bytes| lock(&sink).add(bytes)).map_err(bpf)?;
        let ring = ring.build().map_err(bpf)?;
        let own = |map: &dyn MapCore| MapHandle::from_map_id(map.info().map_err(bpf)?.info.id).map_err(bpf);
        let kept = [&maps.cycles, &maps.instructions, &maps.misses];
        let kept = kept.map(|map| MapHandle::try_from(map).map_err(bpf));
        Ok(Self {
            told,
            ring,
            cpus: own(&maps.cpus)?,
            runs: Runs::new(session.domains.clone()),
            _links: session.attach(options)?,
            _maps: kept.into_iter().collect::<Result<_, _>>()?,
            _counters: session.counters,
        })
    }

    /// CPUs that are idle, since when, up to now.
    fn idle(&self, now_ns: u64) -> Result<Vec<Stretch>, ObserveError> {
        let cpus = self.cpus.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf)?;
        let idle = |(cpu, bytes): (usize, &Vec<u8>)| idle_stretch(cpu, bytes, now_ns);
        Ok(cpus.iter().flatten().enumerate().filter_map(idle).collect())
    }

    fn take(&mut self, now_ns: u64) -> Result<Vec<Run>, ObserveError> {
        // First who is idle: whoever is no more by then tells of it himself.
        let mut idle = self.idle(now_ns)?;
        self.ring.consume().map_err(bpf)?;
        let told = std::mem::take(&mut lock(&self.told).stretches);
        let ended: BTreeSet<(usize, u64)> = told.iter().map(|one| (one.cpu, one.start_ns)).collect();
        idle.retain(|one| !ended.contains(&(one.cpu, one.start_ns)));
        Ok(self.runs.take(&told, &idle, now_ns.saturating_sub(TOLD_AFTER_NS)))
    }
}

impl Counting for Follow {
    fn runs(&mut self, snapshot: &Snapshot) -> Result<Vec<Run>, String> {
        let groups: std::collections::BTreeMap<i32, u64> =
            snapshot.tasks.iter().map(|task| (task.tid, task.group)).collect();
        let mut runs = self.take(snapshot.at_ns).map_err(|error| error.to_string())?;
        runs.retain_mut(|run| {
            let group = groups.get(&run.tid);
            run.group = group.copied().unwrap_or_default();
            group.is_some()
        });
        self.runs.keep_only(|tid| groups.contains_key(&tid));
        Ok(runs)
    }
}

fn lock(told: &Mutex<Told>) -> std::sync::MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first words of `struct neighbours_cpu`, if the CPU is idle and that is counted.
fn idle_stretch(cpu: usize, bytes: &[u8], now_ns: u64) -> Option<Stretch> {
    let words = &mut Words(bytes.get(..3 * 8)?);
    let (who, counted, start_ns) = (words.next() as u32, words.next() != 0, words.next());
    let is_idle = who == IDLE && counted && start_ns > 0;
    is_idle.then(|| Stretch { cpu, who, start_ns, ns: now_ns.saturating_sub(start_ns), ..Stretch::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(slot: u32, counted: u64, start_ns: u64) -> Vec<u8> {
        [&slot.to_ne_bytes()[..], &7u32.to_ne_bytes(), &counted.to_ne_bytes(), &start_ns.to_ne_bytes()]
            .concat()
    }

    #[test]
    fn who_is_idle_is_so_until_now() {
        let wanted = Stretch { cpu: 3, who: IDLE, start_ns: 100, ns: 50, ..Stretch::default() };
        assert_eq!(idle_stretch(3, &cpu(IDLE, 1, 100), 150), Some(wanted));
        for other in [cpu(5, 1, 100), cpu(IDLE, 0, 100), cpu(IDLE, 1, 0), vec![0xff; 9]] {
            assert_eq!(idle_stretch(3, &other, 150), None);
        }
    }
}
