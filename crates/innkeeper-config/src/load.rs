//! Loads files into a configuration: parse each, check all together, merge.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check;
use super::dependencies::{self, LocatedDraft};
use super::diagnostic::{ConfigError, Diagnostic};
use super::document::{self, ConfigDocument};
use super::files::{self, VariableScope};
use super::names;
use super::origin::ConfigOrigin;
use super::settings;
use super::source_text::{Diagnostics, SourceText};
use super::tree::{self, JsonNode};
use super::{Config, Environment, ExtraKeys, alias, unknown_keys, watch};

/// Maximum size of a configuration file, in bytes: far above real files, far below a costly size.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn load_files(paths: &[PathBuf], env: &Environment) -> Result<Config, ConfigError> {
    let load_source = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let base = path.parent().unwrap_or(Path::new(""));
        match files::read_text(path, MAX_FILE_BYTES) {
            Ok(text) => ParsedSource::from_text(&text, &name, base, env),
            Err(message) => ParsedSource::unreadable(&name, base, env, message),
        }
    };
    // The hash comes first, so that a write during the load counts as a change.
    let content = watch::content_hash(&watch::absolute_paths(paths, env));
    let config = merge(paths.iter().map(load_source).collect(), env)?;
    let origin = ConfigOrigin { files: paths.to_owned(), selected: None, content_hash: content };
    Ok(Config { origin, ..config })
}

pub(super) fn load_text(
    text: &str,
    name: &str,
    base: &Path,
    env: &Environment,
) -> Result<Config, ConfigError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        let message = files::too_large_message(MAX_FILE_BYTES);
        return merge(vec![ParsedSource::unreadable(name, base, env, message)], env);
    }
    merge(vec![ParsedSource::from_text(text, name, base, env)], env)
}

pub(super) fn load_value(
    value: &Value,
    name: &str,
    base: &Path,
    env: &Environment,
) -> Result<Config, ConfigError> {
    let mut report = Diagnostics::new(SourceText::without_text(name));
    let root = JsonNode::from_value(value, &mut report);
    merge(vec![ParsedSource::new(Some(root), report, base, env)], env)
}

/// One parsed source.
pub(super) struct ParsedSource<'e> {
    pub(super) report: Diagnostics,
    pub(super) document: ConfigDocument,
    scope: VariableScope<'e>,
}

impl<'e> ParsedSource<'e> {
    fn from_text(text: &str, name: &str, base: &Path, env: &'e Environment) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Diagnostics::new(SourceText::from_text(name, text));
        let root = tree::parse(text, &mut report);
        Self::new(root, report, base, env)
    }

    fn unreadable(name: &str, base: &Path, env: &'e Environment, message: String) -> Self {
        let mut report = Diagnostics::new(SourceText::without_text(name));
        report.error(None, "", message);
        Self::new(None, report, base, env)
    }

    fn new(
        root: Option<JsonNode>,
        mut report: Diagnostics,
        base: &Path,
        env: &'e Environment,
    ) -> Self {
        let scope = VariableScope::new(report.source().name(), base, env);
        let document =
            root.and_then(|root| document::parse_document(root, &mut report)).unwrap_or_default();
        let mut source = Self { report, document, scope };
        for entry in &mut source.document.servers {
            alias::normalise(entry, &mut source.report);
            entry.extra = unknown_keys::remove_unknown_keys(
                &mut entry.node,
                &super::schema::SERVER_SCHEMA,
                &entry.path,
                &mut source.report,
            );
        }
        source
    }
}

fn merge(
    mut parsed_sources: Vec<ParsedSource<'_>>,
    env: &Environment,
) -> Result<Config, ConfigError> {
    names::check(&mut parsed_sources);
    let host = settings::host(&mut parsed_sources);
    let mut drafts: Vec<LocatedDraft> = Vec::new();
    for (index, source) in parsed_sources.iter_mut().enumerate() {
        let entries = source.document.servers.iter().enumerate();
        for (entry_index, entry) in entries.filter(|(_, entry)| entry.has_valid_name) {
            let draft = check::server(entry, &host, &source.scope, &mut source.report);
            drafts.push(LocatedDraft { source_index: index, entry_index, draft });
        }
    }
    dependencies::check(&drafts, &mut parsed_sources);
    dependencies::check_duplicates(&drafts, &mut parsed_sources);

    let mut config = Config { host, environment: env.clone(), ..Config::default() };
    for LocatedDraft { draft, .. } in drafts {
        if draft.disabled {
            config.disabled.insert(draft.name, draft.position);
        } else if let Some(server) = draft.config {
            config.servers.insert(draft.name, server);
        }
    }
    let mut problems = Vec::new();
    let mut extra = serde_json::Map::new();
    for source in parsed_sources {
        config.sources.push(source.report.source().name().to_owned());
        extra.extend(tree::to_map(&source.document.extra));
        let mut of_file = source.report.finish();
        of_file.extend(source.scope.into_diagnostics());
        let name = config.sources.last().cloned().unwrap_or_default();
        of_file.sort_by_key(|problem| (problem.source != name, sort_key(problem)));
        problems.extend(of_file);
    }
    if problems.iter().any(Diagnostic::is_error) {
        return Err(ConfigError(problems));
    }
    Ok(Config { warnings: problems, extra: ExtraKeys::new(extra), ..config })
}

/// Returns the sort key for the problems of one file.
fn sort_key(problem: &Diagnostic) -> (u32, u32, bool) {
    // A problem without a line concerns the whole file and goes last.
    let line = if problem.line == 0 { u32::MAX } else { problem.line };
    (line, problem.column, !problem.is_error())
}
