//! Tables of text with one width for each column.

use crate::console::one_line;

/// Beginning of `text`, with `…` in place of the rest.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        out.push('…');
    }
    out
}

/// The width of the widest cell of each column.
pub fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|i| {
        let all = rows.iter().map(|row| row[i].chars().count());
        all.max().unwrap_or(0)
    })
}

/// Rows with one width for each column but the last. No cell steers a terminal or ends its line.
pub fn columns<R: AsRef<[String]>>(rows: &[R]) -> String {
    let one_line = |row: &R| row.as_ref().iter().map(|cell| one_line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(one_line).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, w)| format!("{cell:w$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
