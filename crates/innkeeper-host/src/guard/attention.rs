//! What is looked at for one server, by its settings, and what becomes of what is found.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::carried::Memory;
use super::folders::{Folders, is_file_address};
use super::of::Of;
use super::orders::{Source, orders};
use super::parameters::{Parameters, words};
use super::pieces::{Piece, Step, ends, names, parsed, pieces, spelled};
use super::unwrap::forms;
use super::{FINDINGS, Finding, FindingKind, files, metadata, shell};
use crate::config::{GuardMode, ServerConfig};
use crate::text::{hidden, hides, is_said};

/// What was found, and whether it is held back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Told {
    /// At most [`FINDINGS`], at least one.
    pub(crate) findings: Vec<Finding>,
    pub(crate) refused: bool,
}

impl Told {
    fn of(findings: Vec<Finding>, mode: GuardMode) -> Option<Self> {
        let refused = mode == GuardMode::Refuse;
        (!findings.is_empty()).then_some(Self { findings, refused })
    }
}

/// Findings of one definition, call or result, each kind and place once.
struct Findings<'p> {
    of: &'static str,
    /// What the tool declares, if that is known.
    parameters: Option<&'p Parameters>,
    found: Vec<Finding>,
}

impl<'p> Findings<'p> {
    fn new(of: &'static str, parameters: Option<&'p Parameters>) -> Self {
        Self { of, parameters, found: Vec::new() }
    }

    fn add(&mut self, kind: FindingKind, steps: &[Step<'_>], reason: &'static str) {
        if self.found.len() >= FINDINGS {
            return;
        }
        let declares = |name: &str| self.parameters.is_some_and(|known| known.declares(name));
        let finding = Finding::new(kind, self.of, steps, declares, reason);
        let known = |found: &Finding| found.kind == finding.kind && found.place == finding.place;
        if !self.found.iter().any(known) {
            self.found.push(finding);
        }
    }

    /// Whether there is room for more.
    fn flow(&self) -> ControlFlow<()> {
        if self.found.len() < FINDINGS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// What is found in the definition of a tool, prompt, resource or template.
pub(crate) fn definition(of: Of, raw: &RawValue, mode: GuardMode) -> Option<Told> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = Findings::new(of.definition(), None);
    if hides(raw) {
        findings.add(FindingKind::Hidden, &[], "has hidden characters");
    }
    let value = parsed(raw);
    let each = |piece: Piece<'_, '_>| said(piece, &mut findings);
    // Either is over when there is enough.
    let _enough = match &value {
        Some(value) => pieces(value, not_said, each),
        None => spelled(raw.get(), each),
    };
    Told::of(findings.found, mode)
}

fn not_said(steps: &[Step<'_>], name: &str, value: &Value) -> bool {
    !is_said(names(steps).next_back(), name, value)
}

/// What is found in what a server tells a model about its use.
pub(crate) fn instructions(text: &str, mode: GuardMode) -> Option<Told> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = Findings::new("instructions", None);
    if !hidden(text).is_empty() {
        findings.add(FindingKind::Hidden, &[], "has hidden characters");
    }
    let _enough = ends(text).try_for_each(|piece| said(piece, &mut findings));
    Told::of(findings.found, mode)
}

fn said(piece: Piece<'_, '_>, findings: &mut Findings<'_>) -> ControlFlow<()> {
    for form in forms(piece.text) {
        for (kind, reason) in orders(&form.plain, Source::Definition) {
            findings.add(kind, piece.steps, reason);
        }
    }
    findings.flow()
}

/// What is looked at when a tool is called, or when a prompt or resource is asked for. There is none
/// where nothing is looked at.
#[derive(Debug)]
pub(crate) struct Attention {
    of: Of,
    server: Arc<str>,
    /// How arguments are read, where they are.
    arguments: Option<Reading>,
    results: GuardMode,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Reading {
    mode: GuardMode,
    parameters: Parameters,
    folders: Option<Folders>,
}

impl Attention {
    pub(crate) fn new(
        config: &ServerConfig,
        server: &Arc<str>,
        schema: &RawValue,
        memory: &Arc<Memory>,
    ) -> Option<Self> {
        let modes = config.guard;
        let reads = modes.arguments != GuardMode::Off;
        if !reads && modes.results == GuardMode::Off {
            return None;
        }
        let reading = || Reading {
            mode: modes.arguments,
            parameters: Parameters::of(schema),
            folders: Folders::of(config),
        };
        let arguments = reads.then(reading);
        let (of, server, memory) = (Of::Tool, server.clone(), memory.clone());
        Some(Self { of, server, arguments, results: modes.results, memory })
    }

    /// For a prompt or resource, of which only the contents are looked at.
    pub(crate) fn of_contents(
        of: Of,
        config: &ServerConfig,
        server: &Arc<str>,
        memory: &Arc<Memory>,
    ) -> Option<Self> {
        let results = config.guard.results;
        let (server, memory) = (server.clone(), memory.clone());
        let looks = results != GuardMode::Off;
        looks.then_some(Self { of, server, arguments: None, results, memory })
    }

    /// What it is for.
    pub(crate) fn of(&self) -> Of {
        self.of
    }

    /// What is found in arguments before they are sent.
    pub(crate) fn arguments(&self, arguments: &Value) -> Option<Told> {
        let reading = self.arguments.as_ref()?;
        let mut findings = Findings::new("arguments", Some(&reading.parameters));
        if reading.parameters.has_undeclared(arguments) {
            findings.add(
                FindingKind::Undeclared,
                &[],
                "there is one that the tool does not declare",
            );
        }
        let each = |piece: Piece<'_, '_>| {
            self.argument(piece, reading, &mut findings);
            findings.flow()
        };
        let _enough = pieces(arguments, |_, _, _| false, each);
        Told::of(findings.found, reading.mode)
    }

    fn argument(&self, piece: Piece<'_, '_>, reading: &Reading, findings: &mut Findings<'_>) {
        let Piece { steps, text, .. } = piece;
        let says = reading.parameters.says(steps);
        if smuggles(text) {
            findings.add(FindingKind::Hidden, steps, "has hidden characters");
        }
        let folders = reading.folders.as_ref();
        if folders.is_some_and(|folders| is_path(&piece) && folders.exclude(text)) {
            let reason = "outside the folders of the server's `sandbox`";
            findings.add(FindingKind::Outside, steps, reason);
        }
        for form in forms(text) {
            if self.memory.has(&self.server, &form.exact) {
                let reason = "has a credential that another server gave";
                findings.add(FindingKind::Carried, steps, reason);
            }
            // What is only written about is no path and no address; code may use either.
            if is_prose(&piece) {
                continue;
            }
            if files::names_one(&form.exact) {
                findings.add(FindingKind::CredentialFile, steps, "names a file with credentials");
            }
            if metadata::names_one(&form.exact) {
                let reason = "names the address at which clouds give credentials";
                findings.add(FindingKind::MetadataAddress, steps, reason);
            }
            if !says && shell::has_syntax(&form.exact) {
                findings.add(FindingKind::Shell, steps, "has syntax of a shell and is no code");
            }
        }
    }

    /// What is found in a result or in contents; its credentials are remembered, up to where there is enough.
    pub(crate) fn result(&self, raw: &RawValue) -> Option<Told> {
        if self.results == GuardMode::Off {
            return None;
        }
        let mut findings = Findings::new(self.of.result(), None);
        let each = |piece: Piece<'_, '_>| self.answered(piece, &mut findings);
        let _enough = match parsed(raw) {
            Some(value) => pieces(&value, |_, _, _| false, each),
            None => spelled(raw.get(), each),
        };
        Told::of(findings.found, self.results)
    }

    /// What is found in the words of an error.
    pub(crate) fn error(&self, message: &str, data: Option<&RawValue>) -> Option<Told> {
        if self.results == GuardMode::Off {
            return None;
        }
        let mut findings = Findings::new(self.of.error(), None);
        let mut each = |piece: Piece<'_, '_>| self.answered(piece, &mut findings);
        let flow = ends(message).try_for_each(&mut each);
        if let Some(data) = data.filter(|_| flow.is_continue()) {
            let _enough = match parsed(data) {
                Some(value) => pieces(&value, |_, _, _| false, &mut each),
                None => spelled(data.get(), &mut each),
            };
        }
        Told::of(findings.found, self.results)
    }

    fn answered(&self, piece: Piece<'_, '_>, findings: &mut Findings<'_>) -> ControlFlow<()> {
        if smuggles(piece.text) {
            findings.add(FindingKind::Hidden, piece.steps, "has hidden characters");
        }
        for form in forms(piece.text) {
            for (kind, reason) in orders(&form.plain, Source::Result) {
                findings.add(kind, piece.steps, reason);
            }
            if self.memory.take(&self.server, &form.exact) {
                findings.add(FindingKind::Secret, piece.steps, "has a key, token or password");
            }
        }
        findings.flow()
    }
}

/// Whether a text hides letters, or turns the order of others: nobody writes so, while zero-width
/// characters and direction marks stand in many honest pages.
fn smuggles(text: &str) -> bool {
    let mut flag = false;
    for character in text.chars() {
        match character {
            // The flags of regions are written with tags.
            '\u{1f3f4}' => flag = true,
            '\u{e0020}'..='\u{e007e}' if !flag => return true,
            '\u{e0020}'..='\u{e007f}' => {}
            '\u{202d}' | '\u{202e}' => return true,
            _ => flag = false,
        }
    }
    false
}

/// Names of arguments that are for people to read.
const PROSE: [&str; 14] = [
    "content",
    "contents",
    "text",
    "body",
    "message",
    "description",
    "title",
    "summary",
    "comment",
    "prompt",
    "subject",
    "caption",
    "note",
    "question",
];

fn is_prose(piece: &Piece<'_, '_>) -> bool {
    PROSE.contains(&&*piece.called().to_ascii_lowercase())
}

/// The last word in the name of a path.
const PATHS: [&str; 20] = [
    "path",
    "paths",
    "pathname",
    "filepath",
    "filepaths",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "dirs",
    "dirname",
    "directory",
    "directories",
    "folder",
    "folders",
    "root",
    "roots",
    "cwd",
    "workdir",
];

/// Whether a value is a path: by its name, or since it is the address of a file.
fn is_path(piece: &Piece<'_, '_>) -> bool {
    let text = piece.text;
    if is_file_address(text) {
        return true;
    }
    let by_name = words(piece.called()).last().is_some_and(|word| PATHS.contains(&&*word));
    by_name && !piece.is_name && !text.contains("://") && !text.contains(['\n', '\0'])
}

#[cfg(test)]
mod tests;
