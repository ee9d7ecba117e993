//! Tables on a terminal, all in one style.

use crate::output;
use comfy_table::{Attribute, Cell, CellAlignment, LineStyle, Table, TableStyle};

/// Lines above, below, and under the header.
const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Where the terminal's width is not known.
const PIPE_WIDTH: u16 = 120;

/// A table with a header, whose first `words` columns are words and the others numbers; coloured
/// only on a terminal.
pub fn table(header: &[&str], words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    if !output::to_terminal() {
        table.force_no_tty().set_width(PIPE_WIDTH);
    }
    let aligned = |(index, text): (usize, &&str)| {
        let cell = Cell::new(text).add_attribute(Attribute::Bold);
        if index < words { cell } else { cell.set_alignment(CellAlignment::Right) }
    };
    table.set_header(header.iter().enumerate().map(aligned));
    table
}

/// A number, or other text that stands on the right.
pub fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
