//! Cache-fair tasks: how fast they are, how fast they would be with a fair part of the cache, and what that
//! gives or takes.

use super::draw::{head, number};
use hearth_command::output::shown;
use hearth_host::threads::Sample;
use hearth_linux::isolation::{GroupStatus, IsolationStatus, TaskStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

/// Every cache-fair task, if there are any.
#[derive(Debug, Default, PartialEq)]
pub struct CacheFair {
    about: String,
    rows: Vec<TaskRow>,
}

#[derive(Debug, PartialEq)]
struct TaskRow {
    name: String,
    status: TaskStatus,
}

impl CacheFair {
    /// Of what the daemon tells; nothing if no task is cache-fair.
    pub fn of(status: &IsolationStatus, sample: &Sample) -> Option<Self> {
        let count = match status.tasks.len() {
            0 => return None,
            1 => "1 task".to_owned(),
            count => format!("{count} tasks"),
        };
        if status.not_measurable.is_some() {
            let about = format!("cache-fair: {count}; not measurable here (`hearth status` says why)");
            return Some(Self { about, rows: Vec::new() });
        }
        let about = format!("cache-fair: {count}{}", payers(&status.groups));
        let name = |tid| sample.threads.get(&tid).map(|thread| shown(&thread.name)).unwrap_or_default();
        let mut rows: Vec<TaskRow> =
            status.tasks.iter().map(|task| TaskRow { name: name(task.tid), status: task.clone() }).collect();
        // Whose share is changed most comes first, and who has an estimate before who has none.
        rows.sort_by_key(|row| {
            let TaskStatus { tid, share_permille, weak, .. } = row.status;
            (std::cmp::Reverse(share_permille.abs_diff(1000)), weak.is_some(), tid)
        });
        Some(Self { about, rows })
    }

    /// Lines that all of it takes, with one that keeps it apart.
    pub fn height(&self) -> u16 {
        let header = usize::from(!self.rows.is_empty());
        u16::try_from(2 + header + self.rows.len()).unwrap_or(u16::MAX)
    }

    /// Draws it, or as much as there is room for.
    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let [_, about, lower] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)]).areas(area);
        frame.render_widget(Paragraph::new(self.about.as_str()), about);
        if !self.rows.is_empty() {
            frame.render_widget(self.table(), lower);
        }
    }

    fn table(&self) -> Table<'_> {
        let header = ["task", "name", "ipc", "fair ipc", "share", "given", "confidence"];
        let widths = [7, 16, 4, 8, 7, 9, 51].map(Constraint::Length);
        Table::new(self.rows.iter().map(TaskRow::cells), widths).header(head(header.into_iter()))
    }
}

impl TaskRow {
    fn cells(&self) -> Row<'_> {
        let TaskStatus { tid, ipc, fair_ipc, share_permille, given_cycles, weak, .. } = &self.status;
        let fair_ipc = weak.is_none().then(|| format!("{fair_ipc:.2}"));
        let confidence = weak.map_or_else(|| "strong".to_owned(), |why| format!("weak: {why}"));
        Row::new([
            number(tid.to_string()),
            Cell::from(self.name.as_str()),
            number(format!("{ipc:.2}")),
            number(fair_ipc.unwrap_or_else(|| "-".to_owned())),
            number(permille(*share_permille)),
            number(format!("{:+.1} G", *given_cycles as f64 / 1e9)),
            Cell::from(confidence),
        ])
    }
}

/// Best-effort groups that have less than their share, or more.
fn payers(groups: &[GroupStatus]) -> String {
    let payers: Vec<String> = groups
        .iter()
        .filter(|group| !group.is_cache_fair && group.share_permille != 1000)
        .map(|group| {
            format!("{} has {}", shown(&group.cgroup.to_string_lossy()), permille(group.share_permille))
        })
        .collect();
    if payers.is_empty() { String::new() } else { format!("; best-effort: {}", payers.join(", ")) }
}

fn permille(share: u32) -> String {
    format!("{:.1} %", f64::from(share) / 10.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hearth_policy::isolation::Why;
    use std::collections::HashMap;
    use std::time::Instant;

    fn task(tid: i32, share_permille: u32, weak: Option<Why>) -> TaskStatus {
        let (ipc, fair_ipc, given_cycles) = (0.5, 0.625, 1_500_000_000);
        TaskStatus { tid, group: 1, ipc, fair_ipc, share_permille, given_cycles, weak }
    }

    pub fn status() -> IsolationStatus {
        let group = |name: &str, is_cache_fair, share_permille| GroupStatus {
            cgroup: name.into(),
            is_cache_fair,
            tasks: 1,
            share_permille,
            weight: None,
        };
        IsolationStatus {
            not_measurable: None,
            groups: vec![group("/web", true, 1250), group("/batch", false, 750), group("/idle", false, 1000)],
            tasks: vec![task(5, 1000, Some(Why::NoFairPoint)), task(9, 1250, None), task(11, 1000, None)],
        }
    }

    pub fn sample() -> Sample {
        Sample { at: Instant::now(), threads: HashMap::new() }
    }

    #[test]
    fn there_is_no_table_without_cache_fair_tasks() {
        let none = IsolationStatus { tasks: Vec::new(), ..status() };
        assert_eq!(CacheFair::of(&none, &sample()), None);
    }

    #[test]
    fn who_is_compensated_most_comes_first_and_who_has_no_estimate_last() {
        let shown = CacheFair::of(&status(), &sample()).unwrap();
        assert_eq!(shown.rows.iter().map(|row| row.status.tid).collect::<Vec<_>>(), [9, 11, 5]);
        assert_eq!(shown.about, "cache-fair: 3 tasks; best-effort: /batch has 75.0 %");
    }

    #[test]
    fn without_counters_there_is_a_line_and_no_figures() {
        let status = IsolationStatus { not_measurable: Some("no counters".into()), ..status() };
        let shown = CacheFair::of(&status, &sample()).unwrap();
        assert_eq!(shown.about, "cache-fair: 3 tasks; not measurable here (`hearth status` says why)");
        assert_eq!((shown.rows.len(), shown.height()), (0, 2));
    }
}
