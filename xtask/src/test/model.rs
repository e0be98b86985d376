//! A small language model and its server in `target/test-servers`, put there by the product's own command.

use std::fs;

use crate::program::{Program, relative, root};
use crate::{Chore, say};

/// Puts them in place unless they are there; the product has been built. Where they cannot be had,
/// as on a platform they are not built for, one line says so: the tests that need them say it too,
/// and pass.
pub(super) fn provide() -> Chore {
    let parent = root().join("target/test-servers");
    fs::create_dir_all(&parent).map_err(|error| format!("`{}`: {error}", relative(&parent)))?;
    let product = Program::new(root().join("target/debug/innkeeper"));
    let fetch = product.line("model fetch --dir").path(&parent.join("models"));
    if let Err(problem) = fetch.run_into(&parent.join("models.log")) {
        say::problem(&format!("no local model, its tests are skipped: {problem}"));
    }
    Ok(())
}
