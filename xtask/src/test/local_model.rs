//! Installs a small language model and its server with the product's command.

use std::fs;

use crate::program::{Program, relative_path, repository_root};
use crate::{TaskResult, output};

/// Installs the model and the server into `target/test-servers` if they are missing.
///
/// The product must be built. If the installation fails, for example on an unsupported platform,
/// the task prints one line; the tests of the model print the reason and pass.
pub(super) fn install() -> TaskResult {
    let parent = repository_root().join("target/test-servers");
    fs::create_dir_all(&parent)
        .map_err(|error| format!("`{}`: {error}", relative_path(&parent)))?;
    let product = Program::new(repository_root().join("target/debug/innkeeper"));
    let fetch = product.args("model fetch --dir").path_arg(&parent.join("models"));
    if let Err(problem) = fetch.run_with_log(&parent.join("models.log")) {
        output::print_error(&format!("no local model, its tests are skipped: {problem}"));
    }
    Ok(())
}
