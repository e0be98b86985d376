//! `properties`: the property tests with fresh seeds. The tests of CI use one fixed seed.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::repository::Repository;
use crate::test::CargoTool;
use crate::{TaskResult, output};

/// Default number of seeds.
const DEFAULT_ROUNDS: u64 = 10;

/// Runs all property tests, once for each seed. A failing case is stored in `proptest-regressions/`
/// next to its test, and runs first from then on.
///
/// # Errors
///
/// A test failed; the seed is printed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let number = |text: &str| text.parse().map_err(|_| format!("invalid number `{text}`"));
    let (rounds, first) = match arguments {
        [] => (DEFAULT_ROUNDS, seed_of_now()),
        ["--rounds", rounds] => (number(rounds)?, seed_of_now()),
        ["--seed", seed] => (1, number(seed)?),
        [other, ..] => return Err(format!("`properties` takes no `{other}`")),
    };
    let filter = filter(&Repository::load()?);
    for seed in first..first.saturating_add(rounds) {
        output::print_line(format_args!("seed {seed}"));
        let tool = CargoTool::NEXTEST.install()?;
        let run = tool.args("run --locked --workspace --profile ci -E").arg(&filter);
        run.env("PROPTEST_RNG_SEED", &seed.to_string()).run().map_err(|error| {
            format!("{error}; again with `cargo xtask properties --seed {seed}`")
        })?;
    }
    Ok(())
}

fn seed_of_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

/// Returns the filter for the runner that selects the property tests by their names.
fn filter(repository: &Repository) -> String {
    let sources = repository.sources().map(|(_, source)| source.code.as_str());
    let names: Vec<_> = sources.flat_map(property_tests).collect();
    let each: Vec<_> = names.iter().map(|name| format!("test(/(^|::){name}$/)")).collect();
    each.join(" | ")
}

/// The names of the tests in the `proptest!` blocks of a file.
fn property_tests(code: &str) -> Vec<&str> {
    let blocks = code.split("\nproptest! {").skip(1).chain(code.split("\n    proptest! {").skip(1));
    let mut names = Vec::new();
    for block in blocks {
        let end = block.find("\n}").unwrap_or(block.len());
        for line in block[..end].lines() {
            let name =
                line.trim_start().strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            names.extend(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_of_a_block_are_found_and_no_others() {
        let code = "fn helper() {}\nproptest! {\n    #[test]\n    fn a(x in y()) {\n    }\n\n    #[test]\n    fn b(\n        x in y(),\n    ) {}\n}\n\n#[test]\nfn c() {}\n";
        assert_eq!(property_tests(code), ["a", "b"]);
        let nested =
            "mod tests {\n    proptest! {\n        #[test]\n        fn d(x in y()) {}\n    }\n}\n";
        assert_eq!(property_tests(nested), ["d"]);
    }
}
