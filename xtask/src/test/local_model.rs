//! Installs a small language model and its server with the product's command.

use std::fs;

use super::{CargoTool, NEXTEST_ARGS};
use crate::program::{Program, relative_path, repository_root};
use crate::{TaskResult, output};

/// The tests of the model that take seconds. These tests have the attribute `ignore`, so that a run
/// without the model does not count them as passed.
const TESTS: &str = "test(/^live::smoke::/) | test(/^model::/) | \
     test(/^chat_terminal::newcomer::/) | test(/^local::(the_server_takes|a_grammar_that_waits)_/)";

/// The CPU features that the server requires.
const CPU_FEATURES: [&str; 4] = ["avx512f", "avx512bw", "avx512dq", "avx512vl"];

/// Returns why this machine cannot run the model; `None` if it can.
pub(super) fn problem() -> Option<String> {
    let model = repository_root().join("target/test-servers/models/smollm2-135m/model.json");
    if !model.is_file() {
        return Some("the local model is not installed".to_owned());
    }
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    missing_feature(&cpu).map(|feature| format!("the CPU has no {feature}"))
}

fn missing_feature(cpu: &str) -> Option<&'static str> {
    let has = |feature: &&str| cpu.split_whitespace().any(|flag| flag == *feature);
    CPU_FEATURES.into_iter().find(|feature| !has(feature))
}

/// Runs the tests of the model that take seconds.
///
/// # Errors
///
/// A test failed, or no test was found.
pub(super) fn run_tests() -> TaskResult {
    let nextest = CargoTool::NEXTEST.install()?.args(NEXTEST_ARGS);
    nextest.args("--run-ignored only --no-tests fail -E").arg(TESTS).run()
}

/// Installs the model and the server into `target/test-servers` if they are missing.
///
/// The product must be built. If the installation fails, for example on an unsupported platform,
/// the task prints one line, and [`run_tests`] is skipped.
pub(super) fn install() -> TaskResult {
    let parent = repository_root().join("target/test-servers");
    fs::create_dir_all(&parent)
        .map_err(|error| format!("`{}`: {error}", relative_path(&parent)))?;
    let product = Program::new(repository_root().join("target/debug/innkeeper"));
    let fetch = product.args("model fetch --dir").path_arg(&parent.join("models"));
    if let Err(problem) = fetch.run_with_log(&parent.join("models.log")) {
        output::print_error(&format!("no local model: {problem}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_without_one_of_the_features_is_named() {
        let all = "flags : fpu avx512f avx512dq avx512bw avx512vl";
        assert_eq!(missing_feature(all), None);
        assert_eq!(missing_feature(&all.replace("avx512dq", "avx512")), Some("avx512dq"));
    }
}
