//! What the worker tells.

use super::report::PagesStatus;
use super::sampler::{self, Backend};
use super::worker::{Book, Worker, lock};
use hearth_host::clock::thread_cpu_time;
use hearth_policy::pages::Quota;
use std::path::Path;
use std::sync::Mutex;

impl Worker {
    pub(super) fn publish(&mut self, book: &Mutex<Book>) {
        for (pid, one) in &mut self.followed {
            let frozen_pages = self.planning.plan.frozen.get(pid).copied().unwrap_or(0);
            one.changed |= frozen_pages != one.report.frozen_pages;
            one.report.frozen_pages = frozen_pages;
        }
        let status = self.status();
        let mut book = lock(book);
        book.last_local_share = status.local_share.or(book.last_local_share);
        book.planned = self.planning.planned;
        book.status = status;
        book.processes.retain(|pid, _| self.followed.contains_key(pid));
        for (pid, one) in self.followed.iter_mut().filter(|(_, one)| one.changed) {
            one.changed = false;
            book.processes.insert(*pid, one.report.clone());
        }
    }

    pub(super) fn status(&self) -> PagesStatus {
        let stayed = self.planning.stayed;
        let failure = self.planning.failure.clone();
        PagesStatus {
            policy: self.options.policy.name.clone(),
            backend: self.sampler.as_ref().map_or(Backend::None, |sampler| sampler.backend()),
            notes: self.notes.iter().cloned().chain(failure).collect(),
            nodes: self.nodes.with_memory().to_vec(),
            tally: self.tally.clone(),
            moving_s: self.mover.took.as_secs_f64(),
            cpu_s: thread_cpu_time().as_secs_f64(),
            processes: self.followed.len() as u64,
            sampled: self.followed.values().filter(|one| one.sampled.is_some()).count() as u64,
            frozen_pages: self.followed.values().map(|one| one.report.frozen_pages).sum(),
            freezes: stayed.freezes,
            stayed_frozen: stayed.frozen,
            stayed_cost: stayed.cost,
            stayed_quota: stayed.quota,
            local_share: self.local_share(),
            planner: self.planning.account.clone(),
        }
    }

    fn local_share(&self) -> Option<f64> {
        let known = self.followed.values().filter_map(|one| {
            let bytes = one.report.movable.values().sum::<u64>() as f64;
            Some((bytes, bytes * one.report.local_share()?))
        });
        let (all, local) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (all > 0.0).then(|| local / all)
    }

    /// Why samples do not come from somewhere better, or why nothing moves.
    pub(super) fn take_notes(&mut self) {
        let policy = &self.options.policy;
        self.notes = if !policy.moves_pages() {
            let zero = matches!(policy.quota, Some(Quota::Pages(0) | Quota::Bytes(0)));
            let why = if zero { "its quota is 0" } else { "its rule is to move none" };
            vec![format!("the page policy {} moves nothing: {why}", policy.name)]
        } else if !self.nodes.differ() {
            vec!["only one node has memory: there is nowhere to move pages to".into()]
        } else {
            self.notes_on_samples()
        };
    }

    fn notes_on_samples(&self) -> Vec<String> {
        let mut notes = sampler::available(Path::new("/")).instead_of;
        notes
            .extend(self.lost.iter().map(|(backend, why)| format!("{} was given up: {why}", backend.text())));
        if self.sampler.is_none() {
            notes.push("nothing shows which pages are used, so none is moved".into());
        }
        notes
    }
}
