//! One source of a configuration, with its problems.

use std::path::Path;

use crate::form::document::{self, ConfigDocument};
use crate::form::written::WrittenServers;
use crate::form::{alias, schema, unknown_keys};
use crate::text::source_text::{Diagnostics, SourceText};
use crate::text::tree::{self, JsonNode};
use crate::variables::environment::Environment;
use crate::variables::scope::VariableScope;

pub(crate) struct ParsedSource<'e> {
    pub(crate) report: Diagnostics,
    pub(crate) document: ConfigDocument,
    pub(crate) scope: VariableScope<'e>,
    /// The entries of the servers as JSON, by name.
    pub(crate) written: Vec<(String, String)>,
}

impl<'e> ParsedSource<'e> {
    pub(crate) fn from_text(text: &str, name: &str, base: &Path, env: &'e Environment) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Diagnostics::new(SourceText::from_text(name, text));
        let root = tree::parse(text, &mut report);
        Self::new(root, report, base, env)
    }

    pub(crate) fn unreadable(
        name: &str,
        base: &Path,
        env: &'e Environment,
        message: String,
    ) -> Self {
        let mut report = Diagnostics::new(SourceText::without_text(name));
        report.error(None, "", message);
        Self::new(None, report, base, env)
    }

    pub(crate) fn new(
        root: Option<JsonNode>,
        mut report: Diagnostics,
        base: &Path,
        env: &'e Environment,
    ) -> Self {
        let scope = VariableScope::new(report.source().name(), base, env);
        let document =
            root.and_then(|root| document::parse_document(root, &mut report)).unwrap_or_default();
        let entries = document.servers.iter();
        let written =
            entries.map(|entry| WrittenServers::entry(&entry.name, &entry.node)).collect();
        let mut source = Self { report, document, scope, written };
        let paths: Vec<&str> =
            source.document.servers.iter().map(|entry| entry.path.as_str()).collect();
        source.report.assign_to_entries(&paths);
        for (index, entry) in source.document.servers.iter_mut().enumerate() {
            source.report.set_entry(Some(index));
            alias::normalise(entry, &mut source.report);
            entry.extra = unknown_keys::remove_unknown_keys(
                &mut entry.node,
                &schema::SERVER_SCHEMA,
                &entry.path,
                &mut source.report,
            );
        }
        source.report.set_entry(None);
        source
    }
}
