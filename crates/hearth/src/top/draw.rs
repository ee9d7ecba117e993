//! What `top` shows, on a terminal or as text.

use super::cache_fair::CacheFair;
use super::columns::{self, Column};
use super::rows::{Busy, PlaceRow, RATES, TaskRow, together};
use clap::ValueEnum;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::block;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Clear, Paragraph, Row, Table, Wrap};

/// By what the upper table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A line for each CPU
    #[default]
    Cpu,
    /// A line for each cache domain
    Cache,
    /// A line for each memory node
    Node,
    /// No such table
    None,
}

impl By {
    /// What comes after it, and after the last the first.
    pub fn next(self) -> Self {
        let all = Self::value_variants();
        all[(self as usize + 1) % all.len()]
    }

    fn name(self) -> &'static str {
        ["cpu", "cache", "node", "none"][self as usize]
    }
}

/// What is put together: the CPUs of each cache domain and of each memory node, by name.
#[derive(Debug, Default)]
pub struct Places {
    /// Cache domains, by their CPUs.
    pub caches: Vec<(String, Vec<usize>)>,
    /// Memory nodes, by their numbers.
    pub nodes: Vec<(String, Vec<usize>)>,
}

/// Everything on one screen.
#[derive(Debug, Default)]
pub struct Screen {
    /// Who schedules.
    pub head: String,
    /// Each CPU.
    pub cpus: Vec<PlaceRow>,
    /// Each task that ran.
    pub tasks: Vec<TaskRow>,
    /// Cache-fair tasks, if there are any.
    pub cache_fair: Option<CacheFair>,
    /// What CPUs can be put together to.
    pub places: Places,
    /// To what they are.
    pub by: By,
    /// The column by which tasks are sorted.
    pub sort: Column,
    /// Tasks that are shown have this in their name or number.
    pub filter: String,
    /// How many tasks are scrolled away.
    pub skip: usize,
    /// What keys do now; nothing where there are none.
    pub keys: Option<Keys>,
}

/// What keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// What the last line says.
    Choose,
    /// They are taken for the filter.
    Filter,
    /// Any of them ends the help.
    Help,
}

impl Screen {
    /// The tasks that are to be shown, in their order.
    pub fn chosen(&self) -> Vec<&TaskRow> {
        let filter = self.filter.to_lowercase();
        let is_meant = |task: &&TaskRow| {
            task.name.to_lowercase().contains(&filter) || task.tid.to_string().contains(&filter)
        };
        let mut tasks: Vec<&TaskRow> = self.tasks.iter().filter(is_meant).collect();
        // Those that are alike stay in the order of their shares.
        tasks.sort_by(|a, b| self.sort.order(a, b));
        tasks
    }

    fn places(&self) -> Vec<PlaceRow> {
        match self.by {
            By::Cpu => self.cpus.clone(),
            By::Cache => together(&self.cpus, &self.places.caches),
            By::Node => together(&self.cpus, &self.places.nodes),
            By::None => Vec::new(),
        }
    }

    /// Lines that all of it takes.
    pub fn height(&self) -> u16 {
        self.height_above(self.places().len(), self.chosen().len()).saturating_add(self.cache_fair_height())
    }

    /// Lines of all but cache-fair tasks.
    fn height_above(&self, places: usize, tasks: usize) -> u16 {
        let lines = 2 + lines_of(places) + 1 + tasks + usize::from(self.keys.is_some());
        u16::try_from(lines).unwrap_or(u16::MAX)
    }

    fn cache_fair_height(&self) -> u16 {
        self.cache_fair.as_ref().map_or(0, CacheFair::height)
    }

    /// Draws it into a frame of any size.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let (places, tasks) = (self.places(), self.chosen());
        let line = u16::from(self.keys.is_some());
        let [area, foot] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(line)]).areas(frame.area());
        // With many cache-fair tasks, at least two thirds are left for the rest; with few tasks, what these leave.
        let rest = self.height_above(places.len(), tasks.len());
        let fair = self.cache_fair_height().min((area.height / 3).max(area.height.saturating_sub(rest)));
        let [area, lowest] = Layout::vertical([Constraint::Min(0), Constraint::Length(fair)]).areas(area);
        // With many CPUs, at least half of the screen is left for tasks.
        let all = lines_of(places.len()) as u16;
        let upper = all.min(area.height / 2).max(all.min(area.height.saturating_sub(tasks.len() as u16 + 4)));
        let [head, upper, lower] =
            Layout::vertical([Constraint::Length(2), Constraint::Length(upper), Constraint::Min(0)])
                .areas(area);
        frame.render_widget(Paragraph::new(self.head.as_str()), head);
        frame.render_widget(place_table(&places, self.by.name(), upper.width), upper);
        frame.render_widget(self.task_table(&tasks, lower.width), lower);
        if let Some(cache_fair) = &self.cache_fair {
            cache_fair.draw(frame, lowest);
        }
        if let Some(keys) = self.keys {
            frame.render_widget(self.foot(keys), foot);
            if keys == Keys::Help {
                help(frame);
            }
        }
    }

    fn task_table(&self, tasks: &[&TaskRow], width: u16) -> Table<'static> {
        let columns = columns::that_fit(width, self.sort);
        let header = columns.iter().map(|column| {
            let sorted = if *column == self.sort { Modifier::REVERSED } else { Modifier::empty() };
            column.cell(column.name()).style(Style::new().add_modifier(sorted))
        });
        let header = Row::new(header.collect::<Vec<_>>()).style(BOLD);
        let rows = tasks.iter().skip(self.skip).map(|task| {
            Row::new(columns.iter().map(|column| column.cell(&column.text(task))).collect::<Vec<_>>())
        });
        Table::new(rows.collect::<Vec<_>>(), columns.iter().map(|column| column.width())).header(header)
    }

    fn foot(&self, keys: Keys) -> Line<'static> {
        if keys == Keys::Filter {
            return Line::from(format!(
                "name or number: {}_   Enter keeps it, Esc shows all tasks",
                self.filter
            ));
        }
        let filter = if self.filter.is_empty() { String::new() } else { format!(": {}", self.filter) };
        let keys = [
            ("q", "end".to_owned()),
            ("c", format!("by: {}", self.by.name())),
            ("s S", format!("sort: {}", self.sort.name())),
            ("/", format!("filter{filter}")),
            ("\u{2191}\u{2193}", "scroll".to_owned()),
            ("?", "help".to_owned()),
        ];
        let said =
            |(key, does): (&'static str, String)| [Span::styled(key, BOLD), Span::from(format!(" {does}  "))];
        Line::from_iter(keys.into_iter().flat_map(said))
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Lines of a table with so many places: none if it is empty.
fn lines_of(places: usize) -> usize {
    if places == 0 { 0 } else { places + 2 }
}

/// Characters of a bar.
const BAR: usize = 10;

/// A line for each CPU, cache or node: as many rates as there is room for.
fn place_table(places: &[PlaceRow], by: &'static str, width: u16) -> Table<'static> {
    const RATE: u16 = 7;
    let is_known = |has: fn(&PlaceRow) -> bool| places.iter().any(has);
    let name = places.iter().map(|row| row.name.len() as u16).max().unwrap_or(0).clamp(5, 16);
    // A host of its own has none; on others it is what matters most.
    let is_stolen = is_known(|row| row.busy.is_some_and(|busy| busy.stolen > 0.0));
    let (stolen, runs) = (if is_stolen { 7 } else { 0 }, if width < 100 { 20 } else { 24 });
    let others = name + 1 + BAR as u16 + 1 + 5 + 1 + stolen + runs + 1 + 6 + 1 + 5;
    // Only Hearth counts these.
    let most = if is_known(|row| row.rates.is_some()) { RATES.len() } else { 0 };
    let rates = most.min(usize::from(width.saturating_sub(others) / (RATE + 1)));
    let steal = is_stolen.then_some("steal");
    let header = [by, "busy", ""].into_iter().chain(steal).chain(["runs", "share", "from"]).chain(RATES);
    let header = header.take(6 + usize::from(is_stolen) + rates);
    let rows = places.iter().map(|row| {
        let task = row.runs.as_ref();
        let busy = row.busy.map(|busy| percent(busy.busy)).unwrap_or_default();
        let stolen = is_stolen.then(|| number(row.busy.map(|busy| percent(busy.stolen)).unwrap_or_default()));
        let cells = [number(row.name.clone()), bar(row.busy), number(busy)].into_iter().chain(stolen);
        let of_task = [
            Cell::from(task.map(|task| format!("{} {}", task.tid, task.name)).unwrap_or_default()),
            number(task.map(|task| percent(task.share)).unwrap_or_default()),
            number(from(task.and_then(|task| task.from))),
        ];
        let rate = |index: usize| number(row.rates.map(|rates| per_second(rates[index])).unwrap_or_default());
        Row::new(cells.chain(of_task).chain((0..rates).map(rate)).collect::<Vec<_>>())
    });
    let widths = [name, BAR as u16, 5].into_iter().chain(is_stolen.then_some(6)).chain([runs, 6, 5]);
    let widths = widths.chain(std::iter::repeat_n(RATE, rates)).map(Constraint::Length);
    Table::new(rows.collect::<Vec<_>>(), widths).header(head(header))
}

/// How much of the time a place was in use, in eighths of a character.
fn bar(busy: Option<Busy>) -> Cell<'static> {
    const EIGHTHS: [&str; 8] = [
        "",
        block::ONE_EIGHTH,
        block::ONE_QUARTER,
        block::THREE_EIGHTHS,
        block::HALF,
        block::FIVE_EIGHTHS,
        block::THREE_QUARTERS,
        block::SEVEN_EIGHTHS,
    ];
    let Some(Busy { busy, .. }) = busy else { return Cell::default() };
    let eighths = (busy.clamp(0.0, 1.0) * 8.0 * BAR as f64).round() as usize;
    let text = block::FULL.repeat(eighths / 8) + EIGHTHS[eighths % 8];
    let color = if busy < 0.5 {
        Color::Green
    } else if busy < 0.9 {
        Color::Yellow
    } else {
        Color::Red
    };
    Cell::from(text).style(Style::new().fg(color))
}

fn help(frame: &mut Frame<'_>) {
    // Lines as long as the terminal is wide.
    let paragraphs = super::EXAMPLES.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    let text = paragraphs.chain(["Any key goes back.".to_owned()]).collect::<Vec<_>>().join("\n\n");
    let area: Rect = frame.area();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
}

pub(super) fn head<'a>(names: impl Iterator<Item = &'a str>) -> Row<'a> {
    let words = ["busy", "runs", "name", "confidence"];
    let cell = |name: &'a str| if words.contains(&name) { Cell::from(name) } else { number(name.to_owned()) };
    Row::new(names.map(cell)).style(BOLD)
}

pub(super) fn number<'a>(text: String) -> Cell<'a> {
    Cell::from(Line::from(text).right_aligned())
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub(super) fn from(cpu: Option<usize>) -> String {
    cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string())
}

/// A rate in at most seven characters.
pub(super) fn per_second(rate: f64) -> String {
    match rate {
        ..9999.5 => format!("{rate:.0}/s"),
        ..999_500.0 => format!("{:.0}k/s", rate / 1e3),
        _ => format!("{:.1}M/s", rate / 1e6),
    }
}
