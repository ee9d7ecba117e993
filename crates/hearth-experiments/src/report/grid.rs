//! A table on a page: a heading for each column, a name for each row.

use maud::{Markup, Render, html};

/// The table; `corner` heads the names of its rows.
pub(super) fn grid<Name, Cells>(
    corner: &str,
    columns: impl IntoIterator<Item = impl Render>,
    rows: impl IntoIterator<Item = (Name, Cells)>,
) -> Markup
where
    Name: Render,
    Cells: IntoIterator<Item: Render>,
{
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { (corner) }
                        @for column in columns { th scope="col" { (column) } }
                    }
                }
                tbody {
                    @for (name, cells) in rows {
                        tr {
                            th scope="row" { (name) }
                            @for cell in cells { td { (cell) } }
                        }
                    }
                }
            }
        }
    }
}
