//! Plans in words: what the planner did, and what holds for a task.

use hearth_command::output::shown;
use hearth_linux::{Planned, PlannerStatus, ProgramStatus};
use hearth_machine::list::show_list;
use std::time::Duration;

/// What the planner did last, in a line.
pub fn summary(planner: &PlannerStatus) -> String {
    let word = if planner.name.contains(',') { "Planners" } else { "Planner" };
    format!("{word} {}: {}\n", planner.name, state(planner))
}

fn state(planner: &PlannerStatus) -> String {
    let Some(age_s) = planner.account.age_s else {
        let why = planner.failure.clone().unwrap_or_else(|| "no step yet".into());
        return format!("{why}; without a plan");
    };
    let age = span(age_s);
    if !planner.holds {
        let why = planner.failure.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return format!("its last step was {age} ago{why}; its plan holds no longer");
    }
    format!(
        "last step {age} ago, took {} ({} for a snapshot of {} tasks); plan {} holds: {}",
        span(planner.took_s),
        span(planner.snapshot_s),
        planner.tasks,
        planner.sequence,
        content(planner)
    )
}

fn content(planner: &PlannerStatus) -> String {
    let parts: Vec<String> = planner.parts.iter().map(|cpus| show_list(cpus)).collect();
    let parts = match parts.len() {
        0 => "the machine is undivided".to_owned(),
        count => format!("{count} parts, CPUs {}", parts.join(" | ")),
    };
    let rows = match planner.rows {
        0 => String::new(),
        1 => "; one row of time".to_owned(),
        count => format!("; {count} rows of {}", span(planner.row_s)),
    };
    match planner.targets {
        0 => parts + &rows,
        count => format!("{parts}{rows}; {count} tasks and groups"),
    }
}

/// Programs that are scheduled as one, a line each.
pub fn programs(programs: &[ProgramStatus]) -> String {
    let line = |program: &ProgramStatus| {
        let what = if program.is_gang { "Gang" } else { "Set" };
        let name =
            if program.name.is_empty() { String::new() } else { format!(" ({})", shown(&program.name)) };
        let place = match (program.cpus.as_slice(), program.rows.as_slice()) {
            ([], _) => "no CPUs yet".to_owned(),
            (cpus, []) => format!("CPUs {}", show_list(cpus)),
            (cpus, rows) => format!("CPUs {} in row {}", show_list(cpus), show_list(rows)),
        };
        let tasks = if program.tasks == 1 { "1 task".to_owned() } else { format!("{} tasks", program.tasks) };
        format!("{what} {}{name}: {place}, {tasks}\n", program.id)
    };
    programs.iter().map(line).collect()
}

/// What the plan says of a task; nothing if it says nothing.
pub fn of_task(plan: &Planned) -> Option<String> {
    let home = plan.home.map(|cpu| format!("waits in the queue of CPU {cpu}"));
    let part = plan.part.map(|part| format!("runs in part {part} alone"));
    let slice = (plan.slice_permille != 1000)
        .then(|| format!("has {:.1} % of its slice", f64::from(plan.slice_permille) / 10.0));
    let share = (plan.share_permille != 1000)
        .then(|| format!("gets {:.1} % of its share", f64::from(plan.share_permille) / 10.0));
    let row = plan.row.map(|row| format!("goes first there in row {row} of time"));
    let said: Vec<String> = [home, row, part, slice, share].into_iter().flatten().collect();
    (!said.is_empty()).then(|| format!("by plan {} it {}", plan.sequence, said.join(", ")))
}

/// A time, to a thousandth of itself or a microsecond.
fn span(time_s: f64) -> String {
    let micros = Duration::from_secs_f64(time_s).as_micros() as u64;
    let unit = if micros < 10_000 { 10 } else { 1000 };
    humantime::format_duration(Duration::from_micros(micros / unit * unit)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_host::planner::Account;

    fn planner() -> PlannerStatus {
        PlannerStatus {
            name: "masks".into(),
            account: Account { steps: 9, age_s: Some(0.05), ..Account::default() },
            took_s: 0.00123,
            snapshot_s: 0.001,
            tasks: 120,
            sequence: 3,
            holds: true,
            parts: vec![vec![0, 1, 2, 3, 8], vec![4, 5]],
            ..PlannerStatus::default()
        }
    }

    #[test]
    fn the_last_step_its_age_and_what_it_took_are_told() {
        assert_eq!(
            summary(&planner()),
            "Planner masks: last step 50ms ago, took 1ms 230us (1ms for a snapshot of 120 tasks); plan 3 holds: \
             2 parts, CPUs 0-3,8 | 4-5\n"
        );
    }

    #[test]
    fn rows_their_length_and_who_is_in_which_are_told() {
        let rows = PlannerStatus { rows: 3, row_s: 0.1, targets: 9, ..planner() };
        assert!(summary(&rows).ends_with("CPUs 0-3,8 | 4-5; 3 rows of 100ms; 9 tasks and groups\n"));
        let gang = ProgramStatus {
            id: 2,
            is_gang: true,
            most_cpus: None,
            processes: vec![70],
            name: "pan\x1bel".into(),
            tasks: 1,
            cpus: vec![4, 5],
            rows: vec![0, 1],
            shared: None,
        };
        let set = ProgramStatus { id: 3, is_gang: false, rows: Vec::new(), tasks: 2, ..gang.clone() };
        let empty = ProgramStatus { cpus: Vec::new(), name: String::new(), tasks: 0, ..set.clone() };
        assert_eq!(
            programs(&[gang, set, empty]),
            "Gang 2 (pan?el): CPUs 4-5 in row 0-1, 1 task\nSet 3 (pan?el): CPUs 4-5, 2 tasks\n\
             Set 3: no CPUs yet, 0 tasks\n"
        );
    }

    #[test]
    fn a_planner_that_does_not_answer_has_no_plan_that_holds() {
        let account = Account { age_s: Some(12.0), ..Account::default() };
        let stuck = PlannerStatus { holds: false, account, ..planner() };
        assert_eq!(summary(&stuck), "Planner masks: its last step was 12s ago; its plan holds no longer\n");
        let failed = PlannerStatus { failure: Some("it panicked".into()), ..PlannerStatus::default() };
        assert_eq!(state(&failed), "it panicked; without a plan");
    }

    #[test]
    fn what_a_plan_says_of_a_task_is_one_sentence() {
        let nothing = Planned {
            sequence: 7,
            home: None,
            part: None,
            slice_permille: 1000,
            share_permille: 1000,
            row: None,
        };
        assert_eq!(of_task(&nothing), None);
        let all = Planned {
            home: Some(3),
            part: Some(1),
            slice_permille: 500,
            share_permille: 1200,
            row: Some(2),
            ..nothing
        };
        assert_eq!(
            of_task(&all).unwrap(),
            "by plan 7 it waits in the queue of CPU 3, goes first there in row 2 of time, runs in part 1 alone, has \
             50.0 % of its slice, gets 120.0 % of its share"
        );
    }
}
