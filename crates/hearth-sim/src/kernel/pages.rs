//! Pages that follow their process, in the papers' variant: it is decided in the miss itself, and the CPU
//! that missed moves the page at once, as the fault handler of the paper does (Chandra et al. 1994,
//! section 4.1).

use super::{Entry, Kernel};
use hearth_hardware::{Kinds, Missed};
use hearth_policy::pages::{InMiss, Misses, Move, NodeId, PagePolicy, PlannerError, Refusal, Rule};

/// Which misses a policy looks at.
fn kinds(policy: &PagePolicy) -> Kinds {
    match policy.rule {
        Rule::Never | Rule::PostFacto => Kinds::NONE,
        Rule::Consecutive { misses, select, .. } => {
            Kinds { tlb: misses == Misses::Tlb, cache: misses == Misses::Cache || select > 0 }
        }
        Rule::Competitive { misses, .. } => {
            Kinds { tlb: misses == Misses::Tlb, cache: misses == Misses::Cache }
        }
    }
}

impl Kernel {
    /// From now on pages move as the policy says.
    pub(crate) fn migrate_pages(
        &mut self,
        policy: &PagePolicy,
        nodes: usize,
        page_bytes: u64,
    ) -> Result<(), PlannerError> {
        if policy.moves_pages() {
            self.pages = Some(InMiss::new(policy, nodes, page_bytes)?);
            self.hardware.borrow_mut().tell_misses(kinds(policy));
        }
        Ok(())
    }

    /// The task on this CPU missed in a way that the page policy looks at.
    pub(crate) fn missed(&mut self, cpu: usize, missed: Missed) {
        let (now_ns, node) = (self.ports[cpu].now_ps() / 1000, self.node_of[cpu]);
        let Some(pages) = &mut self.pages else { return };
        if pages.home(missed.page).is_none() && pages.set_home(missed.page, missed.home as NodeId).is_err() {
            return;
        }
        let Kinds { tlb, cache } = missed.kinds;
        let mut moves = None;
        for (_, kind) in [(cache, Misses::Cache), (tlb, Misses::Tlb)].into_iter().filter(|(is, _)| *is) {
            moves = moves.or(pages.miss(now_ns, missed.page, node as NodeId, kind));
        }
        if let Some(Move { page, to, .. }) = moves {
            self.move_page(cpu, page, to);
        }
    }

    fn move_page(&mut self, cpu: usize, page: u32, to: NodeId) {
        // The fault handler asks for a free page first. If there is none, that was all.
        let has_room = self.hardware.borrow().has_room(usize::from(to));
        self.charge(cpu, if has_room { Entry::PageMove } else { Entry::PageFault });
        let has_moved = self.hardware.borrow_mut().move_page(cpu, page, usize::from(to));
        let now_ns = self.ports[cpu].now_ps() / 1000;
        let Some(pages) = &mut self.pages else { return };
        // It named the page and the node itself, so it knows both.
        if !has_moved || pages.moved(now_ns, page, to).is_err() {
            pages.refused(now_ns, page, Refusal::NoMemory);
        }
    }
}
