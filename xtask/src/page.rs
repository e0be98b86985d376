//! A page of `docs/` whose figures a chore writes between two marks.

use std::fs;

use crate::Chore;
use crate::program::{Program, relative, root};

const MARKS: [&str; 2] = ["<!-- figures: begin -->\n", "<!-- figures: end -->"];

/// Replaces what stands between the two marks of the page.
///
/// # Errors
///
/// The page cannot be read or written, or has no marks.
pub(crate) fn write(page: &str, figures: &str) -> Chore {
    let file = root().join(page);
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative(&file));
    let text = fs::read_to_string(&file).map_err(problem)?;
    let text = between(&text, figures).ok_or_else(|| format!("`{page}` has lost its marks"))?;
    fs::write(&file, text).map_err(problem)
}

fn between(text: &str, figures: &str) -> Option<String> {
    let (head, rest) = text.split_once(MARKS[0])?;
    let (_, tail) = rest.split_once(MARKS[1])?;
    Some(format!("{head}{}{figures}{}{tail}", MARKS[0], MARKS[1]))
}

/// The day and the machine in one phrase: figures mean little without it.
pub(crate) fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lines = || cpu.lines().filter_map(|line| line.split_once(':'));
    let model =
        lines().find(|(key, _)| key.trim() == "model name").map_or("?", |(_, value)| value.trim());
    let cores = lines().filter(|(key, _)| key.trim() == "processor").count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split('-').next().unwrap_or_default();
    let date = Program::new("date").arg("+%Y-%m-%d").output().unwrap_or_default();
    format!("{}: {model}, {cores} cores, Linux {}", date.trim(), kernel.trim())
}

/// Lays cells out as a table of Markdown; the first column is flush left, the others flush right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
        if at == 0 {
            let columns: Vec<&str> = row
                .iter()
                .enumerate()
                .map(|(at, _)| if at == 0 { "---" } else { "---:" })
                .collect();
            text.push_str(&format!("| {} |\n", columns.join(" | ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("a\n{}old\n{}\nb\n", MARKS[0], MARKS[1]);
        let new = between(&page, "new\n").unwrap();
        assert_eq!(new, format!("a\n{}new\n{}\nb\n", MARKS[0], MARKS[1]));
        assert_eq!(between("no marks", "x"), None);
    }
}
