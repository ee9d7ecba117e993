//! The way to the planner and back: what it is told, what it plans, and what that takes.

use hearth_host::planner::Account;
use hearth_policy::snapshot::{Memory, Moved, Page, Process};
use hearth_policy::{Controller, PageMove, PagePlan, Snapshot, Stayed};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A planner, and the plan that holds.
pub(super) struct Planning {
    controller: Controller,
    /// What is told next; its room is used again.
    snapshot: Snapshot,
    pub(super) plan: PagePlan,
    pub(super) account: Account,
    /// What was decided against, in all.
    pub(super) stayed: Stayed,
    /// Why there is no plan.
    pub(super) failure: Option<String>,
    /// When the last plan was made.
    pub(super) planned: Option<Instant>,
    has_panicked: bool,
}

impl Planning {
    /// Nothing is planned yet.
    pub(super) fn new(controller: Controller) -> Self {
        Self {
            controller,
            snapshot: Snapshot::default(),
            plan: PagePlan::default(),
            account: Account::default(),
            stayed: Stayed::default(),
            failure: None,
            planned: None,
            has_panicked: false,
        }
    }

    /// Whether the plan asks which pages are used.
    pub(super) fn asks(&self) -> bool {
        self.plan.look_after_ns.is_some()
    }

    /// A move has ended. The planner learns of it with the next snapshot.
    pub(super) fn ended(&mut self, moved: Moved) {
        self.snapshot.memory.moves.push(moved);
    }

    /// Has it plan by what is known of memory. A planner that fails has pages stay.
    pub(super) fn step(
        &mut self,
        at_ns: u64,
        nodes: Vec<usize>,
        page_bytes: u64,
        processes: BTreeMap<i32, Process>,
    ) {
        let moves = std::mem::take(&mut self.snapshot.memory.moves);
        self.snapshot.at_ns = at_ns;
        self.snapshot.memory = Memory { nodes, page_bytes, processes, moves };
        match self.plan_of_snapshot() {
            Ok(plan) => {
                self.account.steps += 1;
                self.account.published += u64::from(!plan.moves.is_empty());
                self.stayed.add(plan.stayed);
                (self.plan, self.failure, self.planned) = (plan, None, Some(Instant::now()));
            }
            Err(why) => {
                self.account.refused += 1;
                let look_after_ns = self.plan.look_after_ns;
                self.plan = PagePlan { look_after_ns, ..PagePlan::default() };
                self.failure = Some(why);
            }
        }
        self.snapshot.memory.moves.clear();
    }

    fn plan_of_snapshot(&mut self) -> Result<PagePlan, String> {
        if self.has_panicked {
            return Err(self.failure.take().unwrap_or_default());
        }
        let step = AssertUnwindSafe(|| self.controller.step(&self.snapshot));
        match catch_unwind(step) {
            Ok(plan) => plan.map(|plan| plan.pages).map_err(|error| error.to_string()),
            Err(_) => {
                self.has_panicked = true;
                Err("the planner of pages panicked; no page moves any more".into())
            }
        }
    }

    /// A page of the last snapshot.
    pub(super) fn page(&self, found: &PageMove) -> Option<Page> {
        self.snapshot.memory.processes.get(&found.process)?.pages.get(found.page).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_policy::{Plan, Planner};

    /// Moves the first page of process 1; a page that is not there; panics; and so on.
    struct Scripted(u32);

    impl Planner for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }

        fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
            self.0 += 1;
            assert!(self.0 < 4, "as the test wants it");
            assert_eq!(snapshot.memory.moves.len(), usize::from(self.0 == 2));
            plan.pages.look_after_ns = Some(1);
            plan.pages.moves = vec![PageMove { process: 1, page: (self.0 == 2).into(), to: 0 }];
            plan.pages.stayed.cost = 5;
        }
    }

    fn step(planning: &mut Planning) {
        let page = Page { address: 4096, ..Page::default() };
        let process = Process { pages: vec![page], ..Process::default() };
        planning.step(0, vec![0, 1], 4096, [(1, process)].into());
    }

    #[test]
    fn a_plan_holds_until_the_next_and_none_after_a_wrong_one() {
        let mut planning = Planning::new(Controller::new(vec![Box::new(Scripted(0))]));
        assert!(!planning.asks());
        step(&mut planning);
        assert_eq!(planning.page(&planning.plan.moves[0]).map(|page| page.address), Some(4096));
        planning.ended(Moved { process: 1, address: 4096, at_ns: 0, end: Ok(0) });
        step(&mut planning);
        assert_eq!(planning.plan.moves, []);
        assert!(planning.asks() && planning.failure.as_ref().is_some_and(|why| why.contains("page 1 of")));
        step(&mut planning);
        assert_eq!((planning.plan.moves.len(), planning.failure.as_ref()), (1, None));
        assert_eq!((planning.account.steps, planning.account.published, planning.account.refused), (2, 2, 1));
        assert_eq!(planning.stayed.cost, 10);
    }

    #[test]
    fn a_planner_that_panics_has_pages_stay_from_then_on() {
        let mut planning = Planning::new(Controller::new(vec![Box::new(Scripted(3))]));
        for refused in 1..4 {
            step(&mut planning);
            assert_eq!((planning.plan.moves.len(), planning.account.refused), (0, refused));
            assert!(planning.failure.as_ref().is_some_and(|why| why.contains("panicked")));
        }
    }
}
