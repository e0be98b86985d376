//! Checks that tables and reasons name what exists: commands, numbers of reports, fuzz targets,
//! development tasks.

use std::collections::BTreeSet;

use super::Violation;
use crate::USAGE;
use crate::repository::Repository;

/// The enums whose variants are the commands of `innkeeper`.
const COMMAND_ENUMS: &[(&str, &str)] = &[
    ("crates/innkeeper-cli/src/cli.rs", "pub(crate) enum Command {"),
    ("crates/innkeeper-cli/src/cli/commands.rs", "pub(crate) enum HostCommand {"),
];

/// The page with a table of all commands.
const COMMAND_PAGE: &str = "docs/cli.md";

/// The page whose claims repeat numbers of reports.
const CLAIMS_PAGE: &str = "README.md";

const TESTING_PAGE: &str = "docs/testing.md";
const FUZZ_TARGETS: &str = "fuzz/fuzz_targets/";

/// Checks that the table of commands names every command.
pub(super) fn check_command_table(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let rows = table_rows(repository.text(COMMAND_PAGE).unwrap_or_default(), "| command |");
    for (path, heading) in COMMAND_ENUMS {
        let commands = variants(repository.text(path).unwrap_or_default(), heading);
        if commands.is_empty() {
            violations.push(Violation::new(path, 0, format!("has no `{heading}`")));
        }
        for command in commands.iter().filter(|command| !names_command(&rows, command)) {
            let message = format!("its table of commands lacks `{command}`");
            violations.push(Violation::new(COMMAND_PAGE, 0, message));
        }
    }
    violations
}

/// Checks that each number of a claim is in the report of its row.
pub(super) fn check_claims(repository: &Repository) -> Vec<Violation> {
    let rows = table_rows(repository.text(CLAIMS_PAGE).unwrap_or_default(), "| claim |");
    if rows.is_empty() {
        return vec![Violation::new(CLAIMS_PAGE, 0, "has no table of claims")];
    }
    let mut violations = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, measured, report] = cells[..] else {
            violations.push(Violation::new(CLAIMS_PAGE, 0, format!("not three cells: {row}")));
            continue;
        };
        let path = report.split_once("](").and_then(|(_, rest)| rest.split(')').next());
        let Some(text) = path.and_then(|path| repository.text(path)) else {
            violations.push(Violation::new(CLAIMS_PAGE, 0, format!("no report: {row}")));
            continue;
        };
        let reported: BTreeSet<&str> = numbers(text).collect();
        violations.extend(numbers(measured).filter(|number| !reported.contains(number)).map(
            |number| {
                let message = format!("claims {number}, which{report}does not have");
                Violation::new(CLAIMS_PAGE, 0, message)
            },
        ));
    }
    violations
}

/// Returns the numbers of a text, with the points and commas inside of them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit() && !".,".contains(letter));
    parts.map(|part| part.trim_matches(['.', ','])).filter(|part| !part.is_empty())
}

/// Checks that the table of fuzz targets has every target and no other.
pub(super) fn check_fuzz_table(repository: &Repository) -> Vec<Violation> {
    let targets: BTreeSet<&str> = repository
        .texts()
        .filter_map(|(path, _)| path.strip_prefix(FUZZ_TARGETS)?.strip_suffix(".rs"))
        .collect();
    let rows = table_rows(repository.text(TESTING_PAGE).unwrap_or_default(), "| target |");
    let listed: BTreeSet<&str> = rows.iter().filter_map(|row| row.split('`').nth(1)).collect();
    let differences = targets.symmetric_difference(&listed);
    differences
        .map(|name| {
            let message = format!("the table and `{FUZZ_TARGETS}` differ in `{name}`");
            Violation::new(TESTING_PAGE, 0, message)
        })
        .collect()
}

/// Checks that the reason of an ignored test names no task that does not exist.
pub(super) fn check_ignore_reasons(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (path, text) in repository.texts().filter(|(path, _)| path.ends_with(".rs")) {
        for (at, line) in text.lines().enumerate() {
            let Some(reason) = line.trim().strip_prefix("#[ignore = ") else { continue };
            for rest in reason.split("`cargo xtask ").skip(1) {
                let task = rest.split(['`', ' ']).next().unwrap_or_default();
                if !USAGE.contains(&format!("\n  {task}")) {
                    let message = format!("no task is called `{task}`");
                    violations.push(Violation::new(path, at + 1, message));
                }
            }
        }
    }
    violations
}

/// The rows below the first table heading that starts with `heading`.
fn table_rows<'t>(page: &'t str, heading: &str) -> Vec<&'t str> {
    let lines = page.lines().skip_while(|line| !line.starts_with(heading));
    lines.skip(2).take_while(|line| line.starts_with('|')).collect()
}

/// Whether the first cell of a row names the command in back-ticks, alone or with arguments.
fn names_command(rows: &[&str], command: &str) -> bool {
    rows.iter().any(|row| {
        let cell = row.trim_start_matches('|').split(" | ").next().unwrap_or_default();
        let literals = cell.split('`').skip(1).step_by(2);
        literals
            .map(|text| text.trim_start_matches("innkeeper "))
            .any(|text| text.split([' ', '|']).next() == Some(command))
    })
}

/// The variants of an enum as the parser of the command line names them.
fn variants(source: &str, heading: &str) -> Vec<String> {
    let body = source.lines().skip_while(|line| *line != heading).skip(1);
    let mut is_skipped = false;
    let mut names = Vec::new();
    for line in body.take_while(|line| *line != "}") {
        let line = line.trim();
        if line.starts_with("#[command(skip)]") || line.starts_with("#[command(flatten)]") {
            is_skipped = true;
        } else if line.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            let name = line.split(['(', ',', ' ']).next().unwrap_or_default();
            if !std::mem::take(&mut is_skipped) {
                names.push(to_kebab_case(name));
            }
        }
    }
    names
}

fn to_kebab_case(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn a_command_without_a_row_is_caught() {
        let source = "pub(crate) enum Command {\n    #[command(flatten)]\n    Host(HostCommand),\n    LogStats(A),\n    #[command(skip)]\n    Server(B),\n}\n";
        let host = "pub(crate) enum HostCommand {\n    Tools(A),\n    Serve(B),\n}\n";
        let page = "| command | purpose |\n| --- | --- |\n| [`tools`](#t) | serve |\n| `innkeeper log-stats FILE` | |\n";
        let files =
            [(COMMAND_ENUMS[0].0, source), (COMMAND_ENUMS[1].0, host), (COMMAND_PAGE, page)];
        assert_eq!(
            violations(check_command_table, &files),
            ["docs/cli.md: its table of commands lacks `serve`"]
        );
    }

    #[test]
    fn a_claim_whose_number_is_not_in_its_report_is_caught() {
        let claims = "| claim | measured | report |\n| --- | --- | --- |\n\
                      | fast | 1,000 calls in 2.5 s. | [speed](docs/speed.md) |\n";
        let report = |text| [(CLAIMS_PAGE, claims), ("docs/speed.md", text)];
        assert_eq!(violations(check_claims, &report("| 1,000 | 2.5 |")), [""; 0]);
        assert_eq!(
            violations(check_claims, &report("| 1,000 | 12.5 |")),
            ["README.md: claims 2.5, which [speed](docs/speed.md) does not have"]
        );
        assert_eq!(violations(check_claims, &[(CLAIMS_PAGE, claims)]).len(), 1);
        assert_eq!(violations(check_claims, &[(CLAIMS_PAGE, "# A")]).len(), 1);
    }

    #[test]
    fn a_fuzz_target_without_a_row_and_a_row_without_a_target_are_caught() {
        let page = "| target | input |\n| --- | --- |\n| `a` | x |\n| `b` | y |\n";
        let files =
            [(TESTING_PAGE, page), ("fuzz/fuzz_targets/a.rs", ""), ("fuzz/fuzz_targets/c.rs", "")];
        assert_eq!(violations(check_fuzz_table, &files).len(), 2);
    }

    #[test]
    fn a_reason_that_names_no_task_is_caught() {
        let file = |task: &str| format!("#[ignore = \"minutes: `cargo xtask {task}` runs it\"]\n");
        assert_eq!(violations(check_ignore_reasons, &[("a.rs", &file("soak"))]).len(), 0);
        assert_eq!(violations(check_ignore_reasons, &[("a.rs", &file("generations"))]).len(), 1);
    }
}
