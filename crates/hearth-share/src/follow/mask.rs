//! Following by the CPUs that a program may run on: some runtimes read their mask again and again.

use hearth_host::task::threads_of;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The mask of a program, which holds for all its threads.
pub struct Mask {
    program: Pid,
    /// The CPUs that the user gave it, in order.
    users: Vec<usize>,
    /// What was set last, or found at first.
    set: CpuSet,
    hands_off: bool,
}

impl Mask {
    /// Of a program that has just begun.
    pub fn of(program: Pid) -> rustix::io::Result<Self> {
        let set = sched_getaffinity(Some(program))?;
        let users = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
        Ok(Self { program, users, set, hands_off: false })
    }

    /// Has the program run on so many CPUs. `ahead` CPUs are those of programs that come before it, so
    /// that two programs keep apart. Who has changed the mask since has it for good.
    pub fn follow(&mut self, cpus: usize, ahead: usize) {
        let set = chosen(&self.users, cpus, ahead);
        if self.hands_off || set == self.set {
            return;
        }
        match sched_getaffinity(Some(self.program)) {
            Ok(found) if found == self.set => self.set_all(&set),
            _ => self.hands_off = true,
        }
        self.set = set;
    }

    /// A thread that begins meanwhile has its mask from one that may not have had its own: so twice.
    fn set_all(&self, set: &CpuSet) {
        for _ in 0..2 {
            for thread in threads_of(self.program.as_raw_pid()).filter_map(Pid::from_raw) {
                // It may have ended.
                let _ = sched_setaffinity(Some(thread), set);
            }
        }
    }
}

fn chosen(users: &[usize], cpus: usize, ahead: usize) -> CpuSet {
    let mut set = CpuSet::new();
    let begin = ahead % users.len().max(1);
    for cpu in users.iter().cycle().skip(begin).take(cpus.clamp(1, users.len())) {
        set.set(*cpu);
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(set: &CpuSet) -> Vec<usize> {
        (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
    }

    #[test]
    fn programs_that_share_the_machine_keep_apart() {
        let users = [0, 1, 4, 5, 8, 9];
        assert_eq!(list(&chosen(&users, 2, 0)), [0, 1]);
        assert_eq!(list(&chosen(&users, 3, 2)), [4, 5, 8]);
        assert_eq!(list(&chosen(&users, 1, 5)), [9]);
        assert_eq!(list(&chosen(&users, 2, 11)), [0, 9]);
    }

    #[test]
    fn a_mask_is_never_empty_nor_wider_than_the_users() {
        assert_eq!(list(&chosen(&[3, 7], 0, 1)), [7]);
        assert_eq!(list(&chosen(&[3, 7], 64, 1)), [3, 7]);
    }

    /// A program that does nothing, and its mask.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn start() -> Self {
            Self(std::process::Command::new("sleep").arg("1000").spawn().unwrap())
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }

        fn mask(&self) -> Vec<usize> {
            list(&sched_getaffinity(Some(self.pid())).unwrap())
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_program_has_its_cpus_and_gets_all_back() {
        let program = Sleeper::start();
        let all = program.mask();
        let mut mask = Mask::of(program.pid()).unwrap();
        mask.follow(1, 0);
        assert_eq!(program.mask(), all[..1]);
        mask.follow(1, all.len() - 1);
        assert_eq!(program.mask(), all[all.len() - 1..]);
        mask.follow(all.len(), 0);
        assert_eq!(program.mask(), all);
    }

    #[test]
    fn a_mask_that_somebody_else_has_set_stays() {
        let program = Sleeper::start();
        let all = program.mask();
        if all.len() < 2 {
            println!("skipped: every mask is that of the one CPU");
            return;
        }
        let mut mask = Mask::of(program.pid()).unwrap();
        sched_setaffinity(Some(program.pid()), &chosen(&all, 1, 1)).unwrap();
        for cpus in [1, all.len(), 1] {
            mask.follow(cpus, 0);
            assert_eq!(program.mask(), all[1..2]);
        }
    }
}
