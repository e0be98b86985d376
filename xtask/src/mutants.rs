//! `mutants`: the tests of a crate against a sample of code changes, made by cargo-mutants.

mod sample;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::CargoTool;
use crate::{TaskResult, figures, output};

use table::{CrateResult, EquivalentMutants};

/// The page with the published figures.
const PAGE_PATH: &str = "docs/reports/mutants.md";
/// Mutants that no test can catch, with the reasons.
const EQUIVALENT_PATH: &str = "xtask/mutants/equivalent.tsv";
/// The crates of the sample, by the end of their names.
const CRATES: [&str; 7] = ["protocol", "toolcall", "config", "host", "agent", "cli", "gateway"];
/// The default number of mutants per crate.
const DEFAULT_SAMPLE: usize = 60;
/// The default seed, which selects the mutants.
const DEFAULT_SEED: u64 = 1;
/// Minimum of the maximum time of all tests of a crate per mutant in seconds. cargo-mutants allows
/// five times the time of the unchanged tests.
const MIN_TEST_SECONDS: u64 = 60;
/// Maximum address space of each process in bytes: a mutant of a loop may allocate without end.
const MAX_PROCESS_BYTES: u64 = 6 << 30;
/// The crates whose tests start the helper programs.
const CRATES_WITH_PROGRAMS: [&str; 4] = ["host", "agent", "cli", "gateway"];
/// The programs that the tests start.
const HELPER_PROGRAMS: &str =
    "build --locked -p innkeeper-testkit -p innkeeper-process -p innkeeper-cli --bins";
/// Exit codes of cargo-mutants after a complete run: all mutants caught, some missed, some timed
/// out.
const COMPLETE_RUN_CODES: [i32; 3] = [0, 2, 3];

#[derive(Debug, PartialEq)]
struct MutantOptions {
    sample: usize,
    seed: u64,
    crates: Vec<&'static str>,
}

/// Runs the tests of each crate against the mutants of its sample, and writes the page.
///
/// # Errors
///
/// The tests fail without a change, or a file cannot be read or written.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let options = parse_args(arguments)?;
    let tool = CargoTool::MUTANTS;
    tool.install()?;
    let commit = Program::new("git").args("rev-parse --short HEAD").output()?;
    let tree = check_out()?;
    if options.crates.iter().any(|name| CRATES_WITH_PROGRAMS.contains(name)) {
        Program::cargo(HELPER_PROGRAMS).current_dir(&tree).run()?;
    }
    let equivalent = EquivalentMutants::parse(&read(&repository_root().join(EQUIVALENT_PATH))?)?;
    for name in &options.crates {
        let package = format!("innkeeper-{name}");
        let all = list_mutants(tool, &tree, &package)?;
        let chosen = sample::choose(&all, options.sample, options.seed);
        let result = test_mutants(tool, &tree, &package, all.len(), &chosen)?;
        output::print_line(result.describe(&equivalent));
        let run = format!(
            "{}, commit {}; {} mutants, seed {}.",
            figures::describe_machine(),
            commit.trim(),
            options.sample,
            options.seed
        );
        // A crate takes an hour, so the figures of each crate are written at once and kept until
        // the next run of the crate.
        let text = format!(
            "{run}\n\n{}\n{}",
            figures::markdown_table(&table::table_rows(&result, &equivalent)),
            table::survivors(&result, &equivalent)
        );
        figures::write_to_page(PAGE_PATH, name, &text)?;
    }
    Ok(())
}

fn parse_args(arguments: &[&str]) -> TaskResult<MutantOptions> {
    let mut options =
        MutantOptions { sample: DEFAULT_SAMPLE, seed: DEFAULT_SEED, crates: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("`{argument}` needs a value"))?;
        let number = || value.parse().map_err(|_| format!("`{argument}` needs a number"));
        match *argument {
            "--sample" => options.sample = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--seed" => options.seed = number()?,
            "--crate" => {
                let known = CRATES.into_iter().find(|name| name == value);
                options.crates.push(
                    known.ok_or_else(|| {
                        format!("no crate `{value}`; known: {}", CRATES.join(", "))
                    })?,
                );
            }
            _ => return Err(format!("`mutants` takes no `{argument}`")),
        }
    }
    if options.crates.is_empty() {
        options.crates = CRATES.to_vec();
    }
    if options.sample == 0 { Err("`--sample` must be at least 1".to_owned()) } else { Ok(options) }
}

/// Checks out the current commit in a directory of its own, whose build remains for the next run.
/// cargo-mutants changes the files there, so an interrupted run leaves no change in the repository.
fn check_out() -> TaskResult<PathBuf> {
    let tree = repository_root().join("target/mutants/tree");
    if !tree.join(".git").exists() {
        let parent = repository_root().join("target/mutants");
        fs::create_dir_all(&parent).map_err(|error| describe(&parent, &error))?;
        let clone = Program::new("git").args("clone --quiet --no-checkout");
        clone.path_arg(&repository_root()).path_arg(&tree).run()?;
    }
    let commit = Program::new("git").args("rev-parse HEAD").output()?;
    let git = |line: &str| Program::new("git").args(line).current_dir(&tree);
    git("fetch --quiet origin").arg(commit.trim()).run()?;
    git("checkout --quiet --force --detach").arg(commit.trim()).run()?;
    git("clean --quiet --force -d").run()?;
    link_test_servers(&tree)?;
    Ok(tree)
}

/// Gives the tests of the checkout the installed servers and data of the repository.
fn link_test_servers(tree: &Path) -> TaskResult {
    let (installed, link) =
        (repository_root().join("target/test-servers"), tree.join("target/test-servers"));
    // Without the servers, the tests that need them say so before the first mutant.
    if link.exists() || !installed.exists() {
        return Ok(());
    }
    let target = tree.join("target");
    fs::create_dir_all(&target).map_err(|error| describe(&target, &error))?;
    Program::new("ln").arg("-s").path_arg(&installed).path_arg(&link).run()
}

/// Returns the names of all mutants of a package.
fn list_mutants(tool: CargoTool, tree: &Path, package: &str) -> TaskResult<Vec<String>> {
    let list = tool.install()?.args("--list --json --package").arg(package);
    let text = list.current_dir(tree).output()?;
    let list: Value = serde_json::from_str(&text)
        .map_err(|error| format!("the list of mutants is no JSON: {error}"))?;
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<String> =
        items.iter().filter_map(|item| Some(item["name"].as_str()?.to_owned())).collect();
    if names.is_empty() { Err(format!("`{package}` has no mutants")) } else { Ok(names) }
}

fn test_mutants(
    tool: CargoTool,
    tree: &Path,
    package: &str,
    total: usize,
    chosen: &[String],
) -> TaskResult<CrateResult> {
    let out = repository_root().join("target/mutants").join(package);
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| describe(&out, &error))?;
    }
    let results = out.join("mutants.out");
    fs::create_dir_all(&results).map_err(|error| describe(&results, &error))?;
    // cargo-mutants selects each mutant that deletes a field, whatever the expression matches. As
    // results of an earlier run they are skipped.
    let unwanted = list_mutants(tool, tree, package)?.into_iter().filter(|it| !chosen.contains(it));
    let earlier = results.join("caught.txt");
    fs::write(&earlier, unwanted.map(|name| name + "\n").collect::<String>())
        .map_err(|error| describe(&earlier, &error))?;
    let run = tool
        .install()?
        .with_memory_limit(MAX_PROCESS_BYTES)
        .args("--in-place --iterate --no-shuffle --test-tool nextest --colors never --package")
        .arg(package)
        .args("--minimum-test-timeout")
        .arg(MIN_TEST_SECONDS.to_string())
        .arg("--re")
        .arg(sample::pattern(chosen))
        .arg("--output")
        .path_arg(&out)
        .current_dir(tree)
        .env("NEXTEST_PROFILE", "mutants")
        .measure(&out)?;
    if !run.code.is_some_and(|code| COMPLETE_RUN_CODES.contains(&code)) {
        return Err(format!(
            "cargo-mutants failed for `{package}`: {}{}; see `{}`",
            run.stdout,
            run.stderr,
            relative_path(&out)
        ));
    }
    let names = |list: &str| -> TaskResult<Vec<String>> {
        let text = read(&results.join(list))?;
        Ok(text.lines().map(str::to_owned).filter(|name| chosen.contains(name)).collect())
    };
    let result = CrateResult {
        name: package.to_owned(),
        total,
        caught: names("caught.txt")?.len() + names("timeout.txt")?.len(),
        missed: names("missed.txt")?,
        unviable: names("unviable.txt")?.len(),
    };
    if result.tested() == chosen.len() {
        Ok(result)
    } else {
        Err(format!("{} of {} mutants of `{package}` have a result", result.tested(), chosen.len()))
    }
}

fn read(file: &Path) -> TaskResult<String> {
    fs::read_to_string(file).map_err(|error| describe(file, &error))
}

fn describe(file: &Path, error: &std::io::Error) -> String {
    format!("`{}`: {error}", relative_path(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_the_seed_and_the_crates_have_defaults() {
        let default = parse_args(&[]).unwrap();
        assert_eq!((default.sample, default.seed), (DEFAULT_SAMPLE, DEFAULT_SEED));
        assert_eq!(default.crates, CRATES);
        let options = parse_args(&["--sample", "3", "--crate", "host", "--seed", "9"]).unwrap();
        assert_eq!(options, MutantOptions { sample: 3, seed: 9, crates: vec!["host"] });
        for wrong in [
            &["--sample", "0"][..],
            &["--sample", "-1"],
            &["--seed"],
            &["--seed", "x"],
            &["--crate", "schema"],
            &["--more", "1"],
        ] {
            assert!(parse_args(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_list_of_equivalent_mutants_can_be_read() {
        EquivalentMutants::parse(&read(&repository_root().join(EQUIVALENT_PATH)).unwrap()).unwrap();
    }
}
