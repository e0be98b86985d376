//! Generated blocks in the pages of `docs/`.

use std::fs;

use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};

/// Replaces the generated block between the two markers of this name.
///
/// # Errors
///
/// The page cannot be read or written, or has no such markers.
pub(crate) fn write_to_page(page: &str, name: &str, figures: &str) -> TaskResult {
    let file = repository_root().join(page);
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&file));
    let text = fs::read_to_string(&file).map_err(problem)?;
    let text = replace_between(&text, name, figures)
        .ok_or_else(|| format!("`{page}` has no markers for `{name}`"))?;
    fs::write(&file, text).map_err(problem)
}

fn markers(name: &str) -> [String; 2] {
    [format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->")]
}

fn replace_between(text: &str, name: &str, figures: &str) -> Option<String> {
    let [start, end] = markers(name);
    let (head, rest) = text.split_once(&start)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{start}{figures}{end}{tail}"))
}

/// Describes the date and the machine; figures need both for a comparison.
pub(crate) fn describe_machine() -> String {
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

/// Formats rows as a Markdown table; the first column is left-aligned, the others are
/// right-aligned.
pub(crate) fn markdown_table(rows: &[Vec<String>]) -> String {
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
    fn only_text_between_the_markers_is_replaced() {
        let [start, end] = markers("a");
        let others = "<!-- b: begin -->\nkept\n<!-- b: end -->\n";
        let page = format!("{others}a\n{start}old\n{end}\nb\n");
        let new = replace_between(&page, "a", "new\n").unwrap();
        assert_eq!(new, format!("{others}a\n{start}new\n{end}\nb\n"));
        assert_eq!(replace_between("no marks", "a", "x"), None);
    }
}
