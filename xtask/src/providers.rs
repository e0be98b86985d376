//! `providers`: the providers' own clients talk to the scripted model, and their schemas judge
//! recorded requests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Chore;
use crate::program::{Program, relative, root};
use crate::test::{BUILD, Tool, once, venv};

const REQUIREMENTS: &str = include_str!("../providers/requirements.txt");

/// Has every client go through a conversation with five calls, whole and streamed, and compares each
/// request of theirs, each of our own, and each in `files` (a line of JSON for each), with its
/// provider's schema.
///
/// # Errors
///
/// The clients cannot be put in place, one of them ended otherwise than it should, or a request is
/// none that its provider documents.
pub(crate) fn run(files: &[&str]) -> Chore {
    if let Some(option) = files.iter().find(|file| file.starts_with('-')) {
        return Err(format!("`{option}` is not known; `providers` takes files of requests"));
    }
    Program::cargo(BUILD).run()?;
    let home = root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative(&home)))?;
    let python = home.join("providers");
    once(&python, REQUIREMENTS, |folder| venv(folder, REQUIREMENTS))?;
    let judge = Program::new(python.join("bin/python"))
        .path(&root().join("xtask/providers/judge.py"))
        .path(&root().join("target/debug/innkeeper-llm"));
    let own = own(&home.join("requests"))?;
    let judge = own.iter().fold(judge, |judge, file| judge.path(file));
    files.iter().fold(judge, |judge, file| judge.path(Path::new(file))).run()
}

/// What the tests over every wire send, kept in files.
fn own(folder: &Path) -> Chore<Vec<PathBuf>> {
    let failed = |error: std::io::Error| format!("`{}`: {error}", relative(folder));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    let line = "run --locked --workspace --features xtask/soak -E";
    let wires = "package(innkeeper-agent) & test(/^wires::/)";
    let tests = Tool::NEXTEST.provide()?.line(line).arg(wires);
    tests.variable("INNKEEPER_KEEP_REQUESTS", &folder.display().to_string()).run()?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    if files.is_empty() {
        return Err("the tests over every wire kept no request".to_owned());
    }
    Ok(files)
}
