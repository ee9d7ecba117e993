//! The columns of tasks: what each shows, and how it sorts.

use super::draw::{from, number, per_second, percent};
use super::rows::TaskRow;
use clap::ValueEnum;
use ratatui::layout::Constraint;
use ratatui::widgets::Cell;
use std::cmp::Ordering;

/// Of what [`TaskRow`] has; the first is what tasks are sorted by unless something else is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Column {
    #[default]
    Share,
    Waits,
    Switches,
    Slice,
    Moves,
    Credit,
    Cpu,
    From,
    Name,
    Task,
}

/// From left to right.
const SHOWN: [Column; 10] = [
    Column::Task,
    Column::Name,
    Column::Cpu,
    Column::From,
    Column::Moves,
    Column::Credit,
    Column::Switches,
    Column::Slice,
    Column::Share,
    Column::Waits,
];

/// What a narrow terminal does without, the first first.
const LEFT_OUT: [Column; 5] = [Column::Credit, Column::From, Column::Slice, Column::Switches, Column::Moves];

impl Column {
    /// What comes so many after it; after the last comes the first.
    pub fn after(self, count: usize) -> Self {
        let all = Self::value_variants();
        all[(self as usize + count) % all.len()]
    }

    /// What comes before it.
    pub fn before(self) -> Self {
        self.after(Self::value_variants().len() - 1)
    }

    /// As its header has it.
    pub fn name(self) -> &'static str {
        ["share", "waits", "switches", "slice", "moves", "credit", "cpu", "from", "name", "task"]
            [self as usize]
    }

    fn characters(self) -> u16 {
        match self {
            Self::Task | Self::Credit => 8,
            Self::Name => 16,
            Self::Cpu => 4,
            Self::From => 5,
            Self::Moves => 13,
            Self::Switches => 9,
            Self::Slice => 11,
            Self::Share | Self::Waits => 6,
        }
    }

    /// As a table has it.
    pub fn width(self) -> Constraint {
        Constraint::Length(self.characters())
    }

    /// What it shows of a task.
    pub fn text(self, task: &TaskRow) -> String {
        match self {
            Self::Task => task.tid.to_string(),
            Self::Name => task.name.clone(),
            Self::Cpu => task.cpu.to_string(),
            Self::From => from(task.from),
            Self::Moves => task.moves.to_string(),
            Self::Credit => task.by_credit.map(|count| count.to_string()).unwrap_or_default(),
            Self::Switches => per_second(task.switches),
            Self::Slice => task.slice_ms.map(|slice| format!("{slice:.2} ms")).unwrap_or_default(),
            Self::Share => percent(task.share),
            Self::Waits => percent(task.waiting),
        }
    }

    /// Numbers are on the right.
    pub fn cell(self, text: &str) -> Cell<'static> {
        if self == Self::Name { Cell::from(text.to_owned()) } else { number(text.to_owned()) }
    }

    /// What comes first: the most, or of names and numbers of CPUs and tasks the least.
    pub fn order(self, a: &TaskRow, b: &TaskRow) -> Ordering {
        match self {
            Self::Task => a.tid.cmp(&b.tid),
            Self::Name => a.name.cmp(&b.name),
            Self::Cpu => a.cpu.cmp(&b.cpu),
            Self::From => a.from.cmp(&b.from),
            Self::Moves => b.moves.sum().cmp(&a.moves.sum()),
            Self::Credit => b.by_credit.cmp(&a.by_credit),
            Self::Switches => b.switches.total_cmp(&a.switches),
            Self::Slice => b.slice_ms.unwrap_or(0.0).total_cmp(&a.slice_ms.unwrap_or(0.0)),
            Self::Share => b.share.total_cmp(&a.share),
            Self::Waits => b.waiting.total_cmp(&a.waiting),
        }
    }
}

/// Those that have room in a line; what tasks are sorted by is one of them.
pub fn that_fit(width: u16, sort: Column) -> Vec<Column> {
    let mut columns = SHOWN.to_vec();
    for out in LEFT_OUT.into_iter().filter(|out| *out != sort) {
        let needed: u16 = columns.iter().map(|column| column.characters() + 1).sum();
        if needed <= width + 1 {
            break;
        }
        columns.retain(|column| *column != out);
    }
    columns
}
