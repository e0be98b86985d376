//! `providers`: the providers' own clients talk to the scripted model, and their schemas judge
//! recorded requests.

use std::fs;
use std::path::Path;

use crate::Chore;
use crate::program::{Program, relative, root};
use crate::test::{BUILD, once, venv};

const REQUIREMENTS: &str = include_str!("../providers/requirements.txt");

/// Has every client go through a conversation with five calls, whole and streamed, and compares each
/// request of theirs, and each in `files` (a line of JSON for each), with its provider's schema.
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
    files.iter().fold(judge, |judge, file| judge.path(Path::new(file))).run()
}
