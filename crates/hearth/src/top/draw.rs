//! What `top` shows, on a terminal or as text.

use super::cache_fair::CacheFair;
use super::rows::{CpuRow, RATES, TaskRow};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

/// Everything on one screen.
#[derive(Debug, Default)]
pub struct Screen {
    /// Who schedules.
    pub head: String,
    /// Each CPU.
    pub cpus: Vec<CpuRow>,
    /// Each task that ran.
    pub tasks: Vec<TaskRow>,
    /// Cache-fair tasks, if there are any.
    pub cache_fair: Option<CacheFair>,
    /// How many tasks are scrolled away.
    pub skip: usize,
    /// Whether CPUs are shown.
    pub show_cpus: bool,
}

impl Screen {
    /// Lines that all of it takes.
    pub fn height(&self) -> u16 {
        let cpus = if self.show_cpus { self.cpus.len() + 2 } else { 0 };
        let above = u16::try_from(2 + cpus + 1 + self.tasks.len()).unwrap_or(u16::MAX);
        above.saturating_add(self.cache_fair_height())
    }

    fn cache_fair_height(&self) -> u16 {
        self.cache_fair.as_ref().map_or(0, CacheFair::height)
    }

    /// Draws it into a frame of any size.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        // With many cache-fair tasks, at least two thirds are left for the rest; with few tasks, what these leave.
        let rest = self.height() - self.cache_fair_height();
        let fair = self.cache_fair_height().min((area.height / 3).max(area.height.saturating_sub(rest)));
        let [area, lowest] = Layout::vertical([Constraint::Min(0), Constraint::Length(fair)]).areas(area);
        // With many CPUs, at least half of the screen is left for tasks.
        let all = if self.show_cpus { self.cpus.len() as u16 + 2 } else { 0 };
        let cpus =
            all.min(area.height / 2).max(all.min(area.height.saturating_sub(self.tasks.len() as u16 + 4)));
        let [head, upper, lower] =
            Layout::vertical([Constraint::Length(2), Constraint::Length(cpus), Constraint::Min(0)])
                .areas(area);
        frame.render_widget(Paragraph::new(Line::from(self.head.as_str())), head);
        if cpus > 0 {
            frame.render_widget(self.cpu_table(), upper);
        }
        frame.render_widget(self.task_table(), lower);
        if let Some(cache_fair) = &self.cache_fair {
            cache_fair.draw(frame, lowest);
        }
    }

    fn cpu_table(&self) -> Table<'_> {
        // Only Hearth counts these.
        let rates = if self.cpus.iter().any(|row| row.rates.is_some()) { RATES.len() } else { 0 };
        let header = ["cpu", "runs", "share", "from"].into_iter().chain(RATES).take(4 + rates);
        let rows = self.cpus.iter().map(|row| {
            let task = row.runs.as_ref();
            let mut cells = vec![
                number(row.cpu.to_string()),
                Cell::from(task.map(|task| format!("{} {}", task.tid, task.name)).unwrap_or_default()),
                number(task.map(|task| percent(task.share)).unwrap_or_default()),
                number(from(task.and_then(|task| task.from))),
            ];
            let rate = |index: usize| row.rates.map(|rates| format!("{:.0}/s", rates[index]));
            cells.extend((0..rates).map(|index| number(rate(index).unwrap_or_default())));
            Row::new(cells)
        });
        let widths =
            [4, 24, 6, 5].into_iter().chain([8; RATES.len()]).take(4 + rates).map(Constraint::Length);
        Table::new(rows, widths).header(head(header))
    }

    fn task_table(&self) -> Table<'_> {
        let header =
            ["task", "name", "cpu", "from", "moves", "credit", "switches", "slice", "share", "waits"];
        let rows = self.tasks.iter().skip(self.skip).map(|task| {
            Row::new([
                number(task.tid.to_string()),
                Cell::from(task.name.as_str()),
                number(task.cpu.to_string()),
                number(from(task.from)),
                number(task.moves.to_string()),
                number(task.by_credit.map(|count| count.to_string()).unwrap_or_default()),
                number(format!("{:.0}/s", task.switches)),
                number(task.slice_ms.map(|slice| format!("{slice:.2} ms")).unwrap_or_default()),
                number(percent(task.share)),
                number(percent(task.waiting)),
            ])
        });
        let widths = [8, 16, 4, 5, 13, 8, 9, 11, 7, 7].map(Constraint::Length);
        Table::new(rows, widths).header(head(header.into_iter()))
    }
}

pub(super) fn head<'a>(names: impl Iterator<Item = &'a str>) -> Row<'a> {
    let words = ["runs", "name", "confidence"];
    let cell = |name: &'a str| if words.contains(&name) { Cell::from(name) } else { number(name.to_owned()) };
    Row::new(names.map(cell)).style(Style::new().add_modifier(Modifier::BOLD))
}

pub(super) fn number<'a>(text: String) -> Cell<'a> {
    Cell::from(Line::from(text).right_aligned())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn from(cpu: Option<usize>) -> String {
    cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string())
}
