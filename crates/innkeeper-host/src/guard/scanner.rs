//! Scans the traffic of one server by its guard settings.

use std::ops::ControlFlow;
use std::sync::Arc;

use innkeeper_config::{GuardMode, ServerConfig};
use serde_json::Value;
use serde_json::value::RawValue;

use super::cloud_metadata::{self, AddressSearch};
use super::fingerprints::SecretFingerprints;
use super::injection::TextSource;
use super::item_kind::ItemKind;
use super::message_scan::MessageScan;
use super::parameters::{ToolParameters, split_words};
use super::sandbox_paths::{SandboxPaths, is_file_url};
use super::text_nodes::{ScannedNode, SkippedMembers, TextNode, front_and_back, walk_text_nodes};
use super::{Finding, FindingKind, credential_files, shell};
use crate::text::{has_hidden_characters, hidden_characters, is_variation_selector};

/// The result of a scan: findings, and whether the content is withheld.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Verdict {
    /// At least one and at most [`super::MAX_FINDINGS`] findings.
    pub(crate) findings: Vec<Finding>,
    pub(crate) withheld: bool,
}

/// Scans the definition of a tool, prompt, resource or template.
pub(crate) fn scan_definition(kind: ItemKind, raw: &RawValue, mode: GuardMode) -> Option<Verdict> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = MessageScan::new(kind.definition_place(), None);
    if has_hidden_characters(raw) {
        findings.add(FindingKind::HiddenText, &[], "contains hidden characters");
    }
    // The walk stops early after the maximum number of findings.
    let _enough = walk_text_nodes(raw.get(), SkippedMembers::NotModelVisible, |node| {
        scan_definition_node(node, &mut findings)
    });
    findings.into_verdict(mode)
}

pub(crate) fn scan_instructions(text: &str, mode: GuardMode) -> Option<Verdict> {
    if mode == GuardMode::Off {
        return None;
    }
    let mut findings = MessageScan::new("instructions", None);
    if !hidden_characters(text).is_empty() {
        findings.add(FindingKind::HiddenText, &[], "contains hidden characters");
    }
    let _enough =
        front_and_back(text).try_for_each(|node| scan_definition_node(node, &mut findings));
    findings.into_verdict(mode)
}

fn scan_definition_node(node: ScannedNode<'_>, findings: &mut MessageScan<'_>) -> ControlFlow<()> {
    if let Some(node) = findings.text_node(node) {
        findings.scan_injections(node, TextSource::Definition);
    }
    findings.control_flow()
}

/// The scanner for calls of a tool or requests for a prompt or resource. There is no scanner if the
/// guard is off.
#[derive(Debug)]
pub(crate) struct Scanner {
    item_kind: ItemKind,
    server: Arc<str>,
    /// Scanner for arguments, if their mode is not off.
    arguments: Option<ArgumentScanner>,
    results: GuardMode,
    fingerprints: Arc<SecretFingerprints>,
}

#[derive(Debug)]
struct ArgumentScanner {
    mode: GuardMode,
    parameters: ToolParameters,
    sandbox_paths: Option<SandboxPaths>,
}

impl Scanner {
    pub(crate) fn new(
        config: &ServerConfig,
        server: &Arc<str>,
        schema: &RawValue,
        secret_prints: &Arc<SecretFingerprints>,
    ) -> Option<Self> {
        let modes = config.guard;
        let reads = modes.arguments != GuardMode::Off;
        if !reads && modes.results == GuardMode::Off {
            return None;
        }
        let arguments = reads.then(|| ArgumentScanner {
            mode: modes.arguments,
            parameters: ToolParameters::from_schema(schema),
            sandbox_paths: SandboxPaths::from_config(config),
        });
        let kind = ItemKind::Tool;
        let server = server.clone();
        let secret_prints = secret_prints.clone();
        Some(Self {
            item_kind: kind,
            server,
            arguments,
            results: modes.results,
            fingerprints: secret_prints,
        })
    }

    /// Creates the scanner for a prompt or resource, which scans only the contents.
    pub(crate) fn for_contents(
        kind: ItemKind,
        config: &ServerConfig,
        server: &Arc<str>,
        secret_prints: &Arc<SecretFingerprints>,
    ) -> Option<Self> {
        let results = config.guard.results;
        let server = server.clone();
        let secret_prints = secret_prints.clone();
        let looks = results != GuardMode::Off;
        looks.then_some(Self {
            item_kind: kind,
            server,
            arguments: None,
            results,
            fingerprints: secret_prints,
        })
    }

    pub(crate) fn item_kind(&self) -> ItemKind {
        self.item_kind
    }

    /// Scans arguments before they are sent.
    pub(crate) fn scan_arguments(&self, arguments: &Value) -> Option<Verdict> {
        let reading = self.arguments.as_ref()?;
        let mut findings = MessageScan::new("arguments", Some(&reading.parameters));
        if reading.parameters.has_undeclared(arguments) {
            findings.add(FindingKind::UndeclaredArgument, &[], "argument not declared by the tool");
        }
        let _enough = walk_text_nodes(&arguments.to_string(), SkippedMembers::None, |node| {
            if let Some(node) = findings.text_node(node) {
                self.scan_argument_text(node, reading, &mut findings);
            }
            findings.control_flow()
        });
        findings.into_verdict(reading.mode)
    }

    fn scan_argument_text(
        &self,
        node: TextNode<'_>,
        reading: &ArgumentScanner,
        findings: &mut MessageScan<'_>,
    ) {
        let TextNode { steps, text, .. } = node;
        let is_code = reading.parameters.is_code_or_prose(steps);
        if has_smuggled_text(text) {
            findings.add(FindingKind::HiddenText, steps, "contains hidden characters");
        }
        let sandbox_paths = reading.sandbox_paths.as_ref();
        if sandbox_paths
            .is_some_and(|sandbox_paths| is_path(&node) && sandbox_paths.is_outside(text))
        {
            let reason = "outside the directories of the server's `sandbox`";
            findings.add(FindingKind::PathOutsideSandbox, steps, reason);
        }
        for form in findings.forms(node) {
            if self.fingerprints.has_foreign_secret(&self.server, &form.exact) {
                let reason = "contains a credential from another server";
                findings.add(FindingKind::CrossServerCredential, steps, reason);
            }
            // A path or address in prose is only mentioned; code may contain either.
            if is_prose(&node) {
                continue;
            }
            if credential_files::mentions_credential_file(&form.exact) {
                findings.add(FindingKind::CredentialFile, steps, "names a credential file");
            }
            match cloud_metadata::find_metadata_address(&form.exact) {
                AddressSearch::Found => {
                    let reason = "names a cloud metadata address";
                    findings.add(FindingKind::MetadataAddress, steps, reason);
                }
                AddressSearch::NotFound => {}
                AddressSearch::Incomplete(reason) => {
                    findings.add(FindingKind::NotScanned, steps, reason);
                }
            }
            if !is_code && shell::has_syntax(&form.exact) {
                findings.add(FindingKind::ShellSyntax, steps, "contains shell syntax outside code");
            }
        }
    }

    /// Scans a result or contents and stores fingerprints of credentials, up to the maximum of
    /// findings.
    pub(crate) fn scan_result(&self, raw: &RawValue) -> Option<Verdict> {
        if self.results == GuardMode::Off {
            return None;
        }
        let mut findings = MessageScan::new(self.item_kind.result_place(), None);
        let _enough = walk_text_nodes(raw.get(), SkippedMembers::None, |node| {
            self.scan_response_node(node, &mut findings)
        });
        findings.into_verdict(self.results)
    }

    pub(crate) fn scan_error(&self, message: &str, data: Option<&RawValue>) -> Option<Verdict> {
        if self.results == GuardMode::Off {
            return None;
        }
        let mut findings = MessageScan::new(self.item_kind.error_place(), None);
        let mut each = |node: ScannedNode<'_>| self.scan_response_node(node, &mut findings);
        let flow = front_and_back(message).try_for_each(&mut each);
        if let Some(data) = data.filter(|_| flow.is_continue()) {
            let _enough = walk_text_nodes(data.get(), SkippedMembers::None, &mut each);
        }
        findings.into_verdict(self.results)
    }

    fn scan_response_node(
        &self,
        node: ScannedNode<'_>,
        findings: &mut MessageScan<'_>,
    ) -> ControlFlow<()> {
        let Some(node) = findings.text_node(node) else { return findings.control_flow() };
        if has_smuggled_text(node.text) {
            findings.add(FindingKind::HiddenText, node.steps, "contains hidden characters");
        }
        for form in findings.scan_injections(node, TextSource::Result) {
            if self.fingerprints.remember(&self.server, &form.exact) {
                findings.add(FindingKind::Secret, node.steps, "contains a key, token or password");
            }
        }
        findings.control_flow()
    }
}

/// Returns whether a text contains tag characters, several variation selectors in a row, or reverses
/// the order of letters. Ordinary text has none of them, but often has zero-width characters and
/// direction marks.
fn has_smuggled_text(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mut flag = false;
    let mut selectors = 0;
    for character in text.chars() {
        selectors = if is_variation_selector(character) { selectors + 1 } else { 0 };
        if selectors > MAX_SELECTORS {
            return true;
        }
        match character {
            // Flags of regions consist of tag characters.
            '\u{1f3f4}' => flag = true,
            '\u{e0020}'..='\u{e007e}' if !flag => return true,
            '\u{e0020}'..='\u{e007f}' => {}
            '\u{202d}' | '\u{202e}' => return true,
            _ => flag = false,
        }
    }
    false
}

/// Maximum number of variation selectors after a character of ordinary text.
const MAX_SELECTORS: usize = 2;

/// Names of arguments with text for people.
const PROSE_ARGUMENT_NAMES: [&str; 14] = [
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

fn is_prose(node: &TextNode<'_>) -> bool {
    PROSE_ARGUMENT_NAMES.contains(&&*node.name().to_ascii_lowercase())
}

/// Last words in the names of path arguments.
const PATH_NAME_ENDINGS: [&str; 20] = [
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

/// Returns whether a value is a path, by its name or as a file URL.
fn is_path(node: &TextNode<'_>) -> bool {
    let text = node.text;
    if is_file_url(text) {
        return true;
    }
    let by_name =
        split_words(node.name()).last().is_some_and(|word| PATH_NAME_ENDINGS.contains(&&*word));
    by_name && !node.is_name && !text.contains("://") && !text.contains(['\n', '\0'])
}

#[cfg(test)]
mod tests;
