//! What is looked at for one server, by its settings, and what becomes of what is found.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::carried::Memory;
use super::folders::Folders;
use super::orders::{Source, orders};
use super::parameters::Parameters;
use super::pieces::{Piece, ends, parsed, pieces};
use super::unwrap::forms;
use super::{FINDINGS, Finding, FindingKind, files, metadata, shell};
use crate::arguments::pointer_to;
use crate::config::{GuardMode, ServerConfig};
use crate::text::{hidden, hides};

/// Members of a definition that nobody says to a model.
const NOT_SAID: [&str; 5] = ["$schema", "$id", "$ref", "pattern", "icons"];

/// What was found, and whether it is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    of: &'p str,
    found: Vec<Finding>,
}

impl<'p> Findings<'p> {
    fn new(of: &'p str) -> Self {
        Self { of, found: Vec::new() }
    }

    fn add(&mut self, kind: FindingKind, pointer: &str, reason: &'static str) {
        let finding = Finding::new(kind, self.of, pointer, reason);
        let known = |found: &Finding| found.kind == finding.kind && found.place == finding.place;
        if self.found.len() < FINDINGS && !self.found.iter().any(known) {
            self.found.push(finding);
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= FINDINGS
    }
}

/// What is found in the definition of a tool.
pub(crate) fn definition(raw: &RawValue, mode: GuardMode) -> Option<Told> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = Findings::new("definition");
    if hides(raw) {
        findings.add(FindingKind::Hidden, "", "has hidden characters");
    }
    let value = parsed(raw);
    let texts = match &value {
        Some(value) => pieces(value, |name| NOT_SAID.contains(&name)),
        None => ends(raw.get()),
    };
    said(&texts, Source::Definition, &mut findings);
    Told::of(findings.found, mode)
}

/// What is found in what a server tells a model about its use.
pub(crate) fn instructions(text: &str, mode: GuardMode) -> Option<Told> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = Findings::new("instructions");
    if !hidden(text).is_empty() {
        findings.add(FindingKind::Hidden, "", "has hidden characters");
    }
    said(&ends(text), Source::Definition, &mut findings);
    Told::of(findings.found, mode)
}

fn said(texts: &[Piece<'_>], source: Source, findings: &mut Findings<'_>) {
    for Piece { pointer, text } in texts {
        for form in forms(text) {
            for (kind, reason) in orders(&form.plain, source) {
                findings.add(kind, pointer, reason);
            }
        }
        if findings.is_full() {
            return;
        }
    }
}

/// What is looked at when one tool is called. There is none for a server that is not looked at.
#[derive(Debug)]
pub(crate) struct Attention {
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
        let (server, memory) = (server.clone(), memory.clone());
        Some(Self { server, arguments, results: modes.results, memory })
    }

    /// What is found in arguments before they are sent.
    pub(crate) fn arguments(&self, arguments: &Value) -> Option<Told> {
        let Reading { mode, parameters, folders } = self.arguments.as_ref()?;
        let mut findings = Findings::new("arguments");
        if let Some(name) = parameters.undeclared(arguments) {
            let pointer = pointer_to(name);
            findings.add(FindingKind::Undeclared, &pointer, "the tool does not declare it");
        }
        for Piece { pointer, text } in pieces(arguments, |_| false) {
            self.argument(&pointer, text, parameters, folders.as_ref(), &mut findings);
            if findings.is_full() {
                break;
            }
        }
        Told::of(findings.found, *mode)
    }

    fn argument(
        &self,
        pointer: &str,
        text: &str,
        parameters: &Parameters,
        folders: Option<&Folders>,
        findings: &mut Findings<'_>,
    ) {
        let says = parameters.says(pointer);
        if smuggles(text) {
            findings.add(FindingKind::Hidden, pointer, "has hidden characters");
        }
        let spelled =
            folders.is_some_and(|folders| is_path(pointer, text) && folders.exclude(text));
        if spelled {
            let reason = "outside the folders of the server's `sandbox`";
            findings.add(FindingKind::Outside, pointer, reason);
        }
        for form in forms(text) {
            if self.memory.has(&self.server, &form.exact) {
                let reason = "has a credential that another server gave";
                findings.add(FindingKind::Carried, pointer, reason);
            }
            // What is only written about is no path and no address; code may use either.
            if is_prose(pointer) {
                continue;
            }
            if files::names_one(&form.exact) {
                findings.add(FindingKind::CredentialFile, pointer, "names a file with credentials");
            }
            if metadata::names_one(&form.exact) {
                let reason = "names the address at which clouds give credentials";
                findings.add(FindingKind::MetadataAddress, pointer, reason);
            }
            if !says && shell::has_syntax(&form.exact) {
                findings.add(FindingKind::Shell, pointer, "has syntax of a shell and is no code");
            }
        }
    }

    /// What is found in a result; its credentials are remembered.
    pub(crate) fn result(&self, raw: &RawValue) -> Option<Told> {
        if self.results == GuardMode::Off {
            return None;
        }
        match parsed(raw) {
            Some(value) => self.answer("result", &pieces(&value, |_| false)),
            None => self.answer("result", &ends(raw.get())),
        }
    }

    /// What is found in the words of an error.
    pub(crate) fn error(&self, message: &str, data: Option<&RawValue>) -> Option<Told> {
        if self.results == GuardMode::Off {
            return None;
        }
        let mut texts = ends(message);
        let value = data.and_then(parsed);
        texts.extend(value.iter().flat_map(|value| pieces(value, |_| false)));
        self.answer("error", &texts)
    }

    fn answer(&self, of: &str, texts: &[Piece<'_>]) -> Option<Told> {
        let mut findings = Findings::new(of);
        for Piece { pointer, text } in texts {
            if smuggles(text) {
                findings.add(FindingKind::Hidden, pointer, "has hidden characters");
            }
            for form in forms(text) {
                for (kind, reason) in orders(&form.plain, Source::Result) {
                    findings.add(kind, pointer, reason);
                }
                if self.memory.take(&self.server, &form.exact) {
                    findings.add(FindingKind::Secret, pointer, "has a key, token or password");
                }
            }
        }
        Told::of(findings.found, self.results)
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

fn is_prose(pointer: &str) -> bool {
    let last = pointer.rsplit('/').find(|step| step.parse::<usize>().is_err());
    last.is_some_and(|name| PROSE.contains(&&*name.to_ascii_lowercase()))
}

/// Whether a value is a path: by its name, or since it begins like one.
fn is_path(pointer: &str, text: &str) -> bool {
    let last = pointer.rsplit('/').find(|step| step.parse::<usize>().is_err());
    let name = last.unwrap_or_default().to_ascii_lowercase();
    // The names of arguments are read as texts, too.
    let named = ["path", "paths", "file", "filename", "dir", "directory", "folder", "root", "cwd"];
    let by_name = named.iter().any(|ending| name.ends_with(ending));
    let value = !text.eq_ignore_ascii_case(&name) && !text.contains("://");
    text.starts_with("file:///") || by_name && value && !text.contains(['\n', '\0'])
}

#[cfg(test)]
mod tests;
