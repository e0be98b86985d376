//! A page of `docs/` whose figures a chore writes between two marks.

use std::fs;

use crate::Chore;
use crate::program::{Program, relative, root};

/// Replaces what stands between the two marks of this name on the page.
///
/// # Errors
///
/// The page cannot be read or written, or has no such marks.
pub(crate) fn write(page: &str, name: &str, figures: &str) -> Chore {
    let file = root().join(page);
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative(&file));
    let text = fs::read_to_string(&file).map_err(problem)?;
    let text = between(&text, name, figures)
        .ok_or_else(|| format!("`{page}` has lost its marks of `{name}`"))?;
    fs::write(&file, text).map_err(problem)
}

fn marks(name: &str) -> [String; 2] {
    [format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->")]
}

fn between(text: &str, name: &str, figures: &str) -> Option<String> {
    let [begin, end] = marks(name);
    let (head, rest) = text.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{figures}{end}{tail}"))
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
        let [begin, end] = marks("a");
        let others = "<!-- b: begin -->\nkept\n<!-- b: end -->\n";
        let page = format!("{others}a\n{begin}old\n{end}\nb\n");
        let new = between(&page, "a", "new\n").unwrap();
        assert_eq!(new, format!("{others}a\n{begin}new\n{end}\nb\n"));
        assert_eq!(between("no marks", "a", "x"), None);
    }
}
