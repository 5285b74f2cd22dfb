//! Cells of one width in each column.

/// The width of the widest cell of each column.
pub fn widths<const N: usize>(rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|i| {
        let all = rows.iter().map(|row| row[i].chars().count());
        all.max().unwrap_or(0)
    })
}

/// Rows with columns of one width each, the last one as it is.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths = widths(rows);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, w)| format!("{cell:w$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
