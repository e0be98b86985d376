//! `coverage`: which lines of the product the tests run, by cargo-tarpaulin, a row per room.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::program::{Program, relative, root};
use crate::test::Tool;
use crate::{Chore, page, say, test};

/// Where the figures are written for people.
const PAGE: &str = "docs/coverage.md";
/// The share of lines that the tests of each crate must run, in percent.
const GOAL: f64 = 80.0;
/// Crates that are no part of what is shipped: they test it.
const NOT_SHIPPED: &[&str] = &["innkeeper-conformance", "innkeeper-fuzz", "innkeeper-testkit"];
/// Rooms of the product that are compiled for tests only.
const TESTS_ONLY: &[&str] = &["simulation", "tests"];

/// How the tool is called. It needs no information for debuggers, so none is built; and one test that
/// fails does not hide the next.
const LINE: &str = "--locked --workspace --exclude xtask --engine llvm --follow-exec --skip-clean \
                    --no-fail-fast --rustflags=-Cdebuginfo=0 --timeout 600 --out Json \
                    --output-dir target/coverage --target-dir target/coverage";
/// How the files of counts end that each process writes.
const COUNTS: &str = "profraw";

/// Runs the tests under the tool and prints the table; `--write` puts it into the page, too.
///
/// # Errors
///
/// A test fails, the report cannot be read, or a crate is below the goal.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let write = match arguments {
        [] => false,
        ["--write"] => true,
        other => return Err(format!("`{}` is not known; there is `--write`", other.join(" "))),
    };
    test::servers(&[])?;
    let ran = Tool::TARPAULIN.provide()?.line(LINE).run();
    sweep()?;
    ran?;
    let file = root().join("target/coverage/tarpaulin-report.json");
    let text =
        fs::read_to_string(&file).map_err(|error| format!("`{}`: {error}", relative(&file)))?;
    let report: Value =
        serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", relative(&file)))?;
    let crates = by_room(&report);
    let rows = rows(&crates);
    say::line(say::table(&rows));
    if write {
        let run = format!("{}, commit {}.", page::machine(), commit()?);
        page::write(PAGE, "figures", &format!("{run}\n\n{}", page::table(&rows)))?;
    }
    match below(&crates).as_slice() {
        [] => Ok(()),
        below => Err(format!("below {GOAL} %: {}", below.join(", "))),
    }
}

/// Removes what processes have left in the folders of their packages that were not told where to
/// write: servers, which do not inherit the variable that says so.
fn sweep() -> Chore {
    let crates = root().join("crates");
    let problem = |error| format!("`{}`: {error}", relative(&crates));
    let packages = fs::read_dir(&crates).map_err(problem)?.flatten().map(|entry| entry.path());
    for folder in packages.chain([root()]) {
        let left = fs::read_dir(&folder).map_err(problem)?.flatten().map(|entry| entry.path());
        for file in left.filter(|file| file.extension().is_some_and(|end| end == COUNTS)) {
            fs::remove_file(&file).map_err(problem)?;
        }
    }
    Ok(())
}

fn commit() -> Chore<String> {
    let commit = Program::new("git").line("describe --always --dirty --exclude *").output()?;
    Ok(commit.trim().to_owned())
}

/// Lines that the tests run, and all that could be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    covered: u64,
    all: u64,
}

impl Lines {
    fn share(self) -> f64 {
        100.0 * self.covered as f64 / self.all.max(1) as f64
    }

    fn sum<'a>(lines: impl IntoIterator<Item = &'a Self>) -> Self {
        lines.into_iter().fold(Self::default(), |sum, each| Self {
            covered: sum.covered + each.covered,
            all: sum.all + each.all,
        })
    }
}

/// The rooms of each crate: a file in `src` and the folder of its name are one. What has no line that
/// runs, as a list of modules, is not there.
type Crates = BTreeMap<String, BTreeMap<String, Lines>>;

fn by_room(report: &Value) -> Crates {
    let mut crates = Crates::new();
    for file in report["files"].as_array().into_iter().flatten() {
        let path: Vec<&str> =
            file["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some((package, room)) = place(&path) else { continue };
        let lines = |key: &str| file[key].as_u64().unwrap_or(0);
        let lines = Lines { covered: lines("covered"), all: lines("coverable") };
        if lines.all == 0 {
            continue;
        }
        let room = crates.entry(package.to_owned()).or_default().entry(room.to_owned());
        let room = room.or_default();
        *room = Lines::sum([&*room, &lines]);
    }
    crates
}

/// The crate and the room of a file; none if it is not shipped.
fn place<'a>(path: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let at = path.iter().rposition(|part| *part == "crates")?;
    let [package, "src", inside @ ..] = &path[at + 1..] else { return None };
    let stem = |part: &&'a str| part.strip_suffix(".rs").unwrap_or(part);
    let tests = inside.iter().map(stem).any(|part| TESTS_ONLY.contains(&part));
    let shipped = !tests && !NOT_SHIPPED.contains(package);
    shipped.then_some((*package, inside.first().map(stem)?))
}

fn rows(crates: &Crates) -> Vec<Vec<String>> {
    let row = |name: String, lines: Lines| {
        let share = format!("{:.1} %", lines.share());
        vec![name, lines.covered.to_string(), lines.all.to_string(), share]
    };
    let mut rows = vec![["room", "run by tests", "lines", "share"].map(str::to_owned).to_vec()];
    for (name, rooms) in crates {
        rows.push(row(format!("**{name}**"), Lines::sum(rooms.values())));
        rows.extend(rooms.iter().map(|(room, lines)| row(format!("`{room}`"), *lines)));
    }
    let all = Lines::sum(crates.values().flat_map(BTreeMap::values));
    rows.push(row("**all**".to_owned(), all));
    rows
}

/// The crates whose tests run too few of their lines.
fn below(crates: &Crates) -> Vec<&str> {
    let below = |rooms: &BTreeMap<_, _>| Lines::sum(rooms.values()).share() < GOAL;
    crates.iter().filter(|(_, rooms)| below(rooms)).map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(path: &str, covered: u64) -> Value {
        let parts: Vec<&str> = std::iter::once("/").chain(path.split('/')).collect();
        json!({"path": parts, "covered": covered, "coverable": 10})
    }

    fn told(files: &[Value]) -> Crates {
        by_room(&json!({ "files": files }))
    }

    #[test]
    fn a_file_and_the_folder_of_its_name_are_one_room() {
        let crates = told(&[
            file("x/crates/a/src/b.rs", 4),
            file("x/crates/a/src/b/inner/deep.rs", 6),
            file("x/crates/a/src/lib.rs", 9),
        ]);
        assert_eq!(crates["a"]["b"], Lines { covered: 10, all: 20 });
        let rows = rows(&crates);
        assert_eq!(rows[1][..], ["**a**", "19", "30", "63.3 %"]);
        assert_eq!(rows[2][..], ["`b`", "10", "20", "50.0 %"]);
        assert_eq!(rows.last().unwrap()[0], "**all**");
    }

    #[test]
    fn what_tests_the_product_and_what_has_no_lines_is_not_counted() {
        let crates = told(&[
            file("x/crates/a/src/lib.rs", 4),
            file("x/crates/a/src/b/tests.rs", 9),
            file("x/crates/a/src/b/tests/deep.rs", 9),
            file("x/crates/a/src/simulation/plan.rs", 9),
            file("x/crates/a/tests/it/main.rs", 9),
            file("x/crates/innkeeper-testkit/src/lib.rs", 9),
            file("x/fuzz/src/lib.rs", 9),
            json!({"path": ["crates", "face", "src", "lib.rs"], "covered": 0, "coverable": 0}),
        ]);
        assert_eq!(crates.len(), 1);
        assert_eq!(crates["a"].len(), 1);
        assert_eq!(crates["a"]["lib"], Lines { covered: 4, all: 10 });
    }

    #[test]
    fn a_crate_below_the_goal_is_named_and_one_at_it_is_not() {
        let crates =
            told(&[file("x/crates/at/src/lib.rs", 8), file("x/crates/below/src/lib.rs", 7)]);
        assert_eq!(below(&crates), ["below"]);
    }
}
