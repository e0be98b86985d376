//! `coverage`: line coverage per module, measured by cargo-tarpaulin and coverage.py.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::CargoTool;
use crate::{TaskResult, figures, output, python, test};

/// The page with the published figures.
const PAGE_PATH: &str = "docs/reports/coverage.md";
/// Minimum line coverage of each crate and of the Python package, in percent.
const MIN_LINE_PERCENT: f64 = 80.0;
/// Crates that are not in the table.
const EXCLUDED_CRATES: &[&str] = &[
    // Only Python links to it, and the tool runs no test over it.
    "innkeeper-python",
    // The tests run it as a program without the Rust runtime, which has no counters.
    "innkeeper-supervisor",
    // They test the product, and are not shipped.
    "innkeeper-application",
    "innkeeper-conformance",
    "innkeeper-fuzz",
    "innkeeper-testkit",
];
/// Modules of the product that exist in test builds only.
const TEST_MODULES: &[&str] = &["simulation", "tests"];

/// Arguments of cargo-tarpaulin. The build has no debug information, because the tool needs none,
/// and a failed test does not stop the run.
const TARPAULIN_ARGS: &str = "--locked --workspace --exclude xtask --engine llvm --follow-exec --skip-clean \
                    --no-fail-fast --rustflags=-Cdebuginfo=0 --timeout 600 --out Json \
                    --output-dir target/coverage --target-dir target/coverage --";
/// Tests that fail under this tool only.
const SKIPPED_TESTS: &[&str] = &[
    // They look for files that nobody may leave. Instrumented servers leave their counters where they
    // start, because they do not inherit the variable with the path of these files.
    "command_line_server::each_command_takes_a_server_in_place_of_a_configuration",
    "first_minute::what_the_demo_says_to_type_works_in_that_very_folder",
    "text_output::a_home_that_is_no_absolute_path_is_ignored",
    // The tool runs the tests of a crate in one process, where others have compiled the patterns.
    "guard::tests::patterns_are_compiled_by_the_start_or_a_reload_that_needs_them_and_by_no_call",
    // The tool builds no examples.
    "examples::",
];
/// The files of the Python package, as coverage.py names them.
const PYTHON_FILES: &str = "python/innkeeper/";
/// The Python package in the table.
const PYTHON_PACKAGE: &str = "innkeeper for Python";
/// The program that supervises servers on systems without the embedded one.
const SHIM: &str = "innkeeper-shim";
/// Extension of the counter files that each process writes.
const COUNTER_EXTENSION: &str = "profraw";

/// Runs the tests with cargo-tarpaulin and those of the Python package with coverage.py, and prints the
/// table; `--write` also updates the page. `--python` measures the Python package alone.
///
/// # Errors
///
/// A test fails, a report cannot be read, or a crate or the package is below the minimum.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (write, all) = match arguments {
        [] => (false, true),
        ["--write"] => (true, true),
        ["--python"] => (false, false),
        other => {
            let known = "known: `--write`, `--python`";
            return Err(format!("unknown argument `{}`; {known}", other.join(" ")));
        }
    };
    let python = group_python_by_module(&python::coverage::measure()?);
    let mut crates = if all { measure_crates()? } else { CoverageByCrate::new() };
    crates.insert(PYTHON_PACKAGE.to_owned(), python);
    let rows = table_rows(&crates);
    output::print_line(output::format_table(&rows));
    if write {
        let run = format!("{}, commit {}.", figures::describe_machine(), commit_id()?);
        figures::write_to_page(
            PAGE_PATH,
            "figures",
            &format!("{run}\n\n{}", figures::markdown_table(&rows)),
        )?;
    }
    match crates_below_minimum(&crates).as_slice() {
        [] => Ok(()),
        below => Err(format!("below {MIN_LINE_PERCENT} %: {}", below.join(", "))),
    }
}

/// Runs the tests of the workspace with cargo-tarpaulin.
fn measure_crates() -> TaskResult<CoverageByCrate> {
    test::install_test_servers(&[])?;
    provide_shim()?;
    let tarpaulin = CargoTool::TARPAULIN.install()?.args(TARPAULIN_ARGS);
    let tarpaulin =
        SKIPPED_TESTS.iter().fold(tarpaulin, |tarpaulin, name| tarpaulin.arg("--skip").arg(name));
    let result = tarpaulin.run();
    remove_counter_files()?;
    result?;
    let file = repository_root().join("target/coverage/tarpaulin-report.json");
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    Ok(group_by_module(&report))
}

/// Builds the shim for the tests. cargo-tarpaulin builds only the programs of packages with integration
/// tests.
fn provide_shim() -> TaskResult {
    Program::cargo("build --locked -p innkeeper-process --bins").run()?;
    let root = repository_root();
    let programs = root.join("target/coverage/debug");
    let copied = fs::create_dir_all(&programs)
        .and_then(|()| fs::copy(root.join("target/debug").join(SHIM), programs.join(SHIM)));
    copied.map(drop).map_err(|error| format!("`{}`: {error}", relative_path(&programs.join(SHIM))))
}

/// Removes the counter files that servers left in the package directories.
fn remove_counter_files() -> TaskResult {
    let crates = repository_root().join("crates");
    let problem = |error| format!("`{}`: {error}", relative_path(&crates));
    let packages = fs::read_dir(&crates).map_err(problem)?.flatten().map(|entry| entry.path());
    for dir in packages.chain([repository_root()]) {
        let files = fs::read_dir(&dir).map_err(problem)?.flatten().map(|entry| entry.path());
        for file in files
            .filter(|file| file.extension().is_some_and(|extension| extension == COUNTER_EXTENSION))
        {
            fs::remove_file(&file).map_err(problem)?;
        }
    }
    Ok(())
}

fn commit_id() -> TaskResult<String> {
    let commit = Program::new("git").args("describe --always --dirty --exclude *").output()?;
    Ok(commit.trim().to_owned())
}

/// The covered lines and all lines that can be covered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LineCounts {
    covered: u64,
    total: u64,
}

impl LineCounts {
    fn percent(self) -> f64 {
        100.0 * self.covered as f64 / self.total.max(1) as f64
    }

    fn sum<'a>(lines: impl IntoIterator<Item = &'a Self>) -> Self {
        lines.into_iter().fold(Self::default(), |sum, each| Self {
            covered: sum.covered + each.covered,
            total: sum.total + each.total,
        })
    }
}

/// The coverage of each module. A module is a file in `src` with the directory of its name; a module
/// without executable lines is absent.
type CoverageByModule = BTreeMap<String, LineCounts>;

/// The coverage of each module by crate, and of the Python package.
type CoverageByCrate = BTreeMap<String, CoverageByModule>;

/// The modules in a report of coverage.py. A package inside the package counts as one module.
fn group_python_by_module(report: &Value) -> CoverageByModule {
    let mut modules = CoverageByModule::new();
    for (path, file) in report["files"].as_object().into_iter().flatten() {
        let inside = path.strip_prefix(PYTHON_FILES).unwrap_or(path);
        let module = inside.split('/').next().unwrap_or(inside);
        let module = module.strip_suffix(".py").unwrap_or(module);
        let lines = |key: &str| file["summary"][key].as_u64().unwrap_or(0);
        let lines = LineCounts { covered: lines("covered_lines"), total: lines("num_statements") };
        if lines.total > 0 {
            let counts = modules.entry(module.to_owned()).or_default();
            *counts = LineCounts::sum([&*counts, &lines]);
        }
    }
    modules
}

fn group_by_module(report: &Value) -> CoverageByCrate {
    let mut crates = CoverageByCrate::new();
    for file in report["files"].as_array().into_iter().flatten() {
        let path: Vec<&str> =
            file["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some((package, module)) = crate_and_module(&path) else { continue };
        let lines = |key: &str| file[key].as_u64().unwrap_or(0);
        let lines = LineCounts { covered: lines("covered"), total: lines("coverable") };
        if lines.total == 0 {
            continue;
        }
        let counts = crates.entry(package.to_owned()).or_default().entry(module.to_owned());
        let counts = counts.or_default();
        *counts = LineCounts::sum([&*counts, &lines]);
    }
    crates
}

/// The crate and the module of a file; none for a file that is not shipped.
fn crate_and_module<'a>(path: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let at = path.iter().rposition(|part| *part == "crates")?;
    let [package, "src", inside @ ..] = &path[at + 1..] else { return None };
    let stem = |part: &&'a str| part.strip_suffix(".rs").unwrap_or(part);
    let tests = inside.iter().map(stem).any(|part| TEST_MODULES.contains(&part));
    let shipped = !tests && !EXCLUDED_CRATES.contains(package);
    shipped.then_some((*package, inside.first().map(stem)?))
}

fn table_rows(crates: &CoverageByCrate) -> Vec<Vec<String>> {
    let row = |name: String, lines: LineCounts| {
        let share = format!("{:.1} %", lines.percent());
        vec![name, lines.covered.to_string(), lines.total.to_string(), share]
    };
    let mut rows = vec![["module", "run by tests", "lines", "share"].map(str::to_owned).to_vec()];
    for (name, modules) in crates {
        rows.push(row(format!("**{name}**"), LineCounts::sum(modules.values())));
        rows.extend(modules.iter().map(|(module, lines)| row(format!("`{module}`"), *lines)));
    }
    let all = LineCounts::sum(crates.values().flat_map(BTreeMap::values));
    rows.push(row("**all**".to_owned(), all));
    rows
}

/// The crates below the minimum coverage.
fn crates_below_minimum(crates: &CoverageByCrate) -> Vec<&str> {
    let below =
        |modules: &BTreeMap<_, _>| LineCounts::sum(modules.values()).percent() < MIN_LINE_PERCENT;
    crates.iter().filter(|(_, modules)| below(modules)).map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file_report(path: &str, covered: u64) -> Value {
        let parts: Vec<&str> = std::iter::once("/").chain(path.split('/')).collect();
        json!({"path": parts, "covered": covered, "coverable": 10})
    }

    fn coverage_of(files: &[Value]) -> CoverageByCrate {
        group_by_module(&json!({ "files": files }))
    }

    #[test]
    fn a_file_and_the_directory_of_its_name_are_one_module() {
        let crates = coverage_of(&[
            file_report("x/crates/a/src/b.rs", 4),
            file_report("x/crates/a/src/b/inner/deep.rs", 6),
            file_report("x/crates/a/src/lib.rs", 9),
        ]);
        assert_eq!(crates["a"]["b"], LineCounts { covered: 10, total: 20 });
        let rows = table_rows(&crates);
        assert_eq!(rows[1][..], ["**a**", "19", "30", "63.3 %"]);
        assert_eq!(rows[2][..], ["`b`", "10", "20", "50.0 %"]);
        assert_eq!(rows.last().unwrap()[0], "**all**");
    }

    #[test]
    fn what_tests_the_product_and_what_has_no_lines_is_not_counted() {
        let crates = coverage_of(&[
            file_report("x/crates/a/src/lib.rs", 4),
            file_report("x/crates/a/src/b/tests.rs", 9),
            file_report("x/crates/a/src/b/tests/deep.rs", 9),
            file_report("x/crates/a/src/simulation/plan.rs", 9),
            file_report("x/crates/a/tests/it/main.rs", 9),
            file_report("x/crates/innkeeper-testkit/src/lib.rs", 9),
            file_report("x/fuzz/src/lib.rs", 9),
            json!({"path": ["crates", "face", "src", "lib.rs"], "covered": 0, "coverable": 0}),
        ]);
        assert_eq!(crates.len(), 1);
        assert_eq!(crates["a"].len(), 1);
        assert_eq!(crates["a"]["lib"], LineCounts { covered: 4, total: 10 });
    }

    #[test]
    fn a_file_or_a_directory_of_the_python_package_is_one_module() {
        let summary =
            |covered: u64| json!({"summary": {"covered_lines": covered, "num_statements": 10}});
        let modules = group_python_by_module(&json!({"files": {
            "python/innkeeper/host.py": summary(7),
            "python/innkeeper/integrations/fastmcp.py": summary(4),
            "python/innkeeper/integrations/stdio.py": summary(5),
            "python/innkeeper/py.py": {"summary": {"covered_lines": 0, "num_statements": 0}},
        }}));
        assert_eq!(modules.len(), 2);
        assert_eq!(modules["host"], LineCounts { covered: 7, total: 10 });
        assert_eq!(modules["integrations"], LineCounts { covered: 9, total: 20 });
    }

    #[test]
    fn a_crate_below_the_goal_is_named_and_one_at_it_is_not() {
        let crates = coverage_of(&[
            file_report("x/crates/at/src/lib.rs", 8),
            file_report("x/crates/below/src/lib.rs", 7),
        ]);
        assert_eq!(crates_below_minimum(&crates), ["below"]);
    }
}
