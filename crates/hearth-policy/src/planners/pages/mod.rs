//! Has pages follow their processes to other memory nodes, as a page policy says.
//!
//! ```text
//! snapshot   page 7 of process 4242: at node 0, used 900 times     process 4242: ran on node 1
//!            ------------------------------------------------------------------------------------
//! plan       move it to node 1, if the policy lets it: not frozen, worth its cost, within the quota
//! ```
//!
//! Nobody sees which task used a page: a page's uses count as of the nodes where its process ran, by its CPU
//! time there. A page of a process that ran on several nodes is so used from its own node, too, and freezes.
//!
//! What is known of a page is kept while its process is watched, or while any page of it is frozen or on its
//! way, so that a page does not go to and fro whenever somebody looks.

mod numbers;

use super::Planner;
use crate::pages::{Core, MAX_NODES, NodeId, PagePolicy, Quota, Sample};
use crate::plan::{PageMove, PagePlan, Plan, Stayed};
use crate::snapshot::{Memory, Moved, Process, Snapshot};
use numbers::Numbers;

/// How long to let programs run between two looks.
const LOOK_AFTER_NS: u64 = 1_000_000_000;

/// See the module. It moves nothing on a machine of one node, or of more than [`MAX_NODES`].
pub struct Pages {
    policy: PagePolicy,
    known: Option<Known>,
}

impl Pages {
    /// Follows this policy.
    pub fn new(policy: &PagePolicy) -> Self {
        Self { policy: policy.clone(), known: None }
    }

    /// What is known of this machine's pages; all begins anew when nodes come or go.
    fn known(&mut self, memory: &Memory) -> Option<&mut Known> {
        let is_same = |known: &Known| known.nodes == memory.nodes && known.page_bytes == memory.page_bytes;
        if !self.known.as_ref().is_some_and(is_same) {
            self.known = Known::new(&self.policy, memory);
        }
        self.known.as_mut()
    }
}

impl Planner for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn plan(&mut self, snapshot: &Snapshot, plan: &mut Plan) {
        let memory = &snapshot.memory;
        if !self.policy.moves_pages() || !(2..=MAX_NODES).contains(&memory.nodes.len()) {
            return;
        }
        let bytes_per_second = self.policy.quota.map(|quota| match quota {
            Quota::Pages(pages) => pages.saturating_mul(memory.page_bytes),
            Quota::Bytes(bytes) => bytes,
        });
        if let Some(known) = self.known(memory) {
            plan.pages = PagePlan {
                look_after_ns: Some(LOOK_AFTER_NS),
                bytes_per_second,
                ..known.plan(snapshot.at_ns, memory)
            };
        }
    }
}

/// What is known of a machine's pages.
struct Known {
    nodes: Vec<usize>,
    page_bytes: u64,
    core: Core,
    numbers: Numbers,
    /// Kept from step to step for their room.
    samples: Vec<Sample>,
    moves: Vec<crate::pages::Move>,
}

impl Known {
    fn new(policy: &PagePolicy, memory: &Memory) -> Option<Self> {
        Some(Self {
            core: Core::new(policy, memory.nodes.len(), memory.page_bytes).ok()?,
            nodes: memory.nodes.clone(),
            page_bytes: memory.page_bytes,
            numbers: Numbers::default(),
            samples: Vec::new(),
            moves: Vec::new(),
        })
    }

    fn plan(&mut self, at_ns: u64, memory: &Memory) -> PagePlan {
        let before = self.stayed();
        self.forget_ended(memory);
        memory.moves.iter().for_each(|moved| self.learn(moved));
        self.samples.clear();
        for (&id, process) in &memory.processes {
            self.sample(at_ns, id, process);
        }
        self.core.step(at_ns, &self.samples, &mut self.moves);
        let moves = self.moves.iter().map(|found| {
            let page = self.numbers.page(found.page);
            PageMove { process: page.process, page: page.place, to: self.nodes[usize::from(found.to)] }
        });
        let mut plan = PagePlan { moves: moves.collect(), ..PagePlan::default() };
        self.forget_idle(at_ns, memory, &mut plan);
        plan.stayed = self.stayed().since(before);
        plan
    }

    /// A node's number for the core.
    fn node(&self, node: usize) -> Option<NodeId> {
        self.nodes.binary_search(&node).ok().and_then(|place| NodeId::try_from(place).ok())
    }

    fn forget(&mut self, process: i32, mut keep: impl FnMut(&Core, u32) -> bool) {
        let core = &mut self.core;
        self.numbers.forget(process, |number| {
            let kept = keep(core, number);
            if !kept {
                core.forget(number);
            }
            kept
        });
    }

    fn forget_ended(&mut self, memory: &Memory) {
        let is_gone = |(id, began): (i32, u64)| {
            let is_there = memory.processes.get(&id).is_some_and(|process| process.began == began);
            (!is_there).then_some(id)
        };
        let gone: Vec<i32> = self.numbers.processes().filter_map(is_gone).collect();
        gone.into_iter().for_each(|id| self.forget(id, |_, _| false));
    }

    /// Takes in what came of a move.
    fn learn(&mut self, moved: &Moved) {
        let Some(number) = self.numbers.find(moved.process, moved.address) else { return };
        match moved.end.map(|node| self.node(node)) {
            Ok(Some(node)) => {
                // The node is one of those that the core was made for.
                let _ = self.core.moved(moved.at_ns, number, node);
            }
            // On a node without memory there is no page.
            Ok(None) => self.forget(moved.process, |_, other| other != number),
            Err(why) => self.core.refused(moved.at_ns, number, why),
        }
    }

    /// The uses of a process's pages, each by the nodes where the process ran.
    fn sample(&mut self, at_ns: u64, id: i32, process: &Process) {
        let ran: Vec<(NodeId, u32)> =
            process.ran_permille.iter().filter_map(|&(node, part)| Some((self.node(node)?, part))).collect();
        if ran.is_empty() {
            return;
        }
        if self.numbers.room() < process.pages.len() {
            self.forget(id, |core, number| core.is_frozen(at_ns, number) || core.is_asked(number));
        }
        for (place, page) in process.pages.iter().enumerate() {
            let Some(home) = self.node(page.home) else { continue };
            let Some(number) = self.numbers.number((id, process.began), page.address, place) else { break };
            if self.core.home(number) != Some(home) || self.core.order(number) != page.order {
                // The node is one of those that the core was made for.
                let _ = self.core.set_home(number, home);
                self.core.set_order(number, page.order);
            }
            let sample = |&(node, permille): &(NodeId, u32)| {
                let accesses = u64::from(page.accesses) * u64::from(permille) / 1000;
                Sample { page: number, node, accesses: u32::try_from(accesses).unwrap_or(u32::MAX) }
            };
            // Uses from the page's own node come last: nobody knows the order, and they speak for staying.
            self.samples.extend(ran.iter().filter(|(node, _)| *node != home).map(sample));
            self.samples.extend(ran.iter().filter(|(node, _)| *node == home).map(sample));
        }
    }

    /// Counts what is frozen, and forgets processes that nobody watches and nothing is left to know of.
    fn forget_idle(&mut self, at_ns: u64, memory: &Memory, plan: &mut PagePlan) {
        let mut idle = Vec::new();
        for (id, _) in self.numbers.processes() {
            let frozen = |number: u32| match self.core.is_frozen(at_ns, number) {
                true => 1 << self.core.order(number),
                false => 0,
            };
            let frozen: u64 = self.numbers.of(id).map(frozen).sum();
            let is_watched = memory.processes.get(&id).is_some_and(|process| process.is_watched);
            if frozen > 0 {
                plan.frozen.insert(id, frozen);
            } else if !is_watched && !self.numbers.of(id).any(|number| self.core.is_asked(number)) {
                idle.push(id);
            }
        }
        idle.into_iter().for_each(|id| self.forget(id, |_, _| false));
    }

    fn stayed(&self) -> Stayed {
        let counters = self.core.counters();
        Stayed {
            freezes: counters.freezes,
            frozen: counters.refused_frozen,
            cost: counters.refused_cost,
            quota: counters.refused_quota,
        }
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
