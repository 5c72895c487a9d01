//! Text in columns, as `kubectl get` prints it. Pure.

use crate::printable;

/// Spaces between columns.
const GAP: usize = 3;
/// Cells are not cut to less than this.
const CELL_MIN: usize = 8;

/// The widths of columns, for rows that come later too.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    widths: Vec<usize>,
}

impl Layout {
    /// Columns that are as wide as their longest cell. If a terminal of `width` columns is too narrow, the widest cells are cut.
    pub(crate) fn new(headers: &[String], rows: &[Vec<String>], width: Option<usize>) -> Layout {
        let longest = |index: usize| {
            let cells = rows.iter().filter_map(|row| row.get(index)).chain(headers.get(index));
            cells.map(|cell| printable::width(cell)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..headers.len()).map(longest).collect();
        let Some(width) = width else { return Layout { widths } };
        loop {
            let total = widths.iter().sum::<usize>().saturating_add(GAP * widths.len().saturating_sub(1));
            let widest = widths.iter_mut().max().filter(|widest| **widest > CELL_MIN);
            match widest {
                Some(widest) if total > width => {
                    *widest = widest
                        .saturating_sub(total.saturating_sub(width).clamp(1, (*widest / 4).max(1)))
                        .max(CELL_MIN);
                }
                _ => return Layout { widths },
            }
        }
    }

    /// One line, with its end.
    pub(crate) fn line(&self, cells: &[String], is_cut: bool) -> String {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&self.widths) {
            let cell = printable::plain(cell);
            let cell = if is_cut { printable::cut_in_the_middle(&cell, *width) } else { cell };
            let n_spaces = width.saturating_sub(printable::width(&cell)).saturating_add(GAP);
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', n_spaces));
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

/// A table with its header. Without a width nothing is cut: a program reads it.
pub(crate) fn table(headers: &[String], rows: &[Vec<String>], width: Option<usize>) -> String {
    let layout = Layout::new(headers, rows, width);
    let lines = std::iter::once(headers).chain(rows.iter().map(Vec::as_slice));
    lines.map(|cells| layout.line(cells, width.is_some())).collect()
}

/// The same, for columns in the order of their importance: on a narrow terminal the last ones are left out, down to `n_min`, before
/// cells are cut.
pub(crate) fn table_by_importance(
    headers: &[String],
    rows: &[Vec<String>],
    width: Option<usize>,
    n_min: usize,
) -> String {
    let mut n_columns = headers.len();
    let fits = |n_columns: usize| {
        let Layout { widths } = Layout::new(headers.get(..n_columns).unwrap_or(headers), rows, None);
        let total = widths.iter().sum::<usize>().saturating_add(GAP * widths.len().saturating_sub(1));
        width.is_none_or(|width| total <= width)
    };
    while n_columns > n_min && !fits(n_columns) {
        n_columns = n_columns.saturating_sub(1);
    }
    table(headers.get(..n_columns).unwrap_or(headers), rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn the_widest_cells_are_cut_on_a_narrow_terminal_and_nowhere_else() {
        let headers = row(&["NAME", "PHASE", "REASON"]);
        let long = "a-job-with-a-very-long-name-that-somebody-generated";
        let rows = [row(&[long, "Running", "two\nlines"]), row(&["b", "Pending", ""])];
        let whole = table(&headers, &rows, None);
        assert!(whole.contains(long) && whole.contains("two lines"), "{whole}");
        for width in [40, 60, 80] {
            let cut = table(&headers, &rows, Some(width));
            assert!(cut.lines().all(|line| printable::width(line) <= width), "{width}\n{cut}");
            assert!(cut.contains("a-job") && cut.contains("Running"), "{cut}");
        }
        // Less than the smallest columns is not possible, and no reason to loop.
        assert!(table(&headers, &rows, Some(5)).contains("Running"));
    }
}
