//! Tables for a terminal or in Markdown.

/// Text under construction.
pub(super) struct Out {
    markdown: bool,
    pub text: String,
}

impl Out {
    pub fn new(markdown: bool) -> Out {
        Out {
            markdown,
            text: String::new(),
        }
    }

    /// Adds text between empty lines.
    pub fn paragraph(&mut self, text: &str) {
        self.text += &format!("\n{text}\n\n");
    }

    /// Adds a table; columns from the `numbers`-th on are aligned to the right.
    pub fn table(&mut self, head: &[&str], numbers: usize, rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let width = |n: usize| {
            let cells = rows.iter().filter_map(|row| row.get(n));
            cells
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
                .max(head[n].chars().count())
        };
        let line = |cells: &[String]| {
            let padded: Vec<String> = cells
                .iter()
                .enumerate()
                .map(|(n, cell)| match (n >= numbers, width(n)) {
                    (true, w) => format!("{cell:>w$}"),
                    (false, w) => format!("{cell:<w$}"),
                })
                .collect();
            if self.markdown {
                format!("| {} |\n", padded.join(" | "))
            } else {
                format!("{}\n", padded.join("  ").trim_end())
            }
        };
        let head_cells: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
        let mut text = line(&head_cells);
        if self.markdown {
            let rule = |n: usize| if n >= numbers { "---:" } else { "---" };
            let rules: Vec<&str> = (0..head.len()).map(rule).collect();
            text += &format!("| {} |\n", rules.join(" | "));
        }
        for row in rows {
            text += &line(row);
        }
        self.text += &text;
        self.text.push('\n');
    }
}

/// A whole number, its thousands apart.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut out = String::from(if number <= -0.5 { "-" } else { "" });
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_in_a_terminal_and_ruled_in_markdown() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "23".to_owned()],
        ];
        let show = |markdown| {
            let mut out = Out::new(markdown);
            out.table(&["x", "y"], 1, &rows);
            out.text
        };
        assert_eq!(show(false), "x     y\na     1\nbcd  23\n\n");
        assert_eq!(
            show(true),
            "| x   |  y |\n| --- | ---: |\n| a   |  1 |\n| bcd | 23 |\n\n"
        );
    }

    #[test]
    fn numbers_have_their_thousands_apart() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(-1_234_567.0), "-1,234,567");
    }
}
