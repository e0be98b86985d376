//! Loads files into a configuration: parse each, check all together, merge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

use super::check::{self, ServerDraft};
use super::dependencies::{self, LocatedDraft};
use super::diagnostic::{ConfigError, Diagnostic, Severity};
use super::document::{self, ConfigDocument};
use super::files::{self, VariableScope};
use super::invalid_server::InvalidServer;
use super::names;
use super::origin::{ConfigOrigin, LoadMode};
use super::settings;
use super::source_text::{Diagnostics, LocatedProblem, SourceText};
use super::tree::{self, JsonNode};
use super::written::WrittenServers;
use super::{Config, Environment, ExtraKeys, alias, serve, unknown_keys, watch};

/// Maximum size of a configuration file, in bytes: far above real files, far below a costly size.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn load_files(
    paths: &[PathBuf],
    env: &Environment,
    load_mode: LoadMode,
) -> Result<Config, ConfigError> {
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
    let config = merge(paths.iter().map(load_source).collect(), env, load_mode)?;
    let origin =
        ConfigOrigin { files: paths.to_owned(), load_mode, content_hash: content, ..config.origin };
    Ok(Config { origin, ..config })
}

pub(super) fn load_text(
    text: &str,
    name: &str,
    base: &Path,
    env: &Environment,
    load_mode: LoadMode,
) -> Result<Config, ConfigError> {
    let source = if text.len() as u64 > MAX_FILE_BYTES {
        ParsedSource::unreadable(name, base, env, files::too_large_message(MAX_FILE_BYTES))
    } else {
        ParsedSource::from_text(text, name, base, env)
    };
    merge(vec![source], env, load_mode)
}

pub(super) fn load_value(
    value: &Value,
    name: &str,
    base: &Path,
    env: &Environment,
    mode: LoadMode,
) -> Result<Config, ConfigError> {
    let mut report = Diagnostics::new(SourceText::without_text(name));
    let root = JsonNode::from_value(value, &mut report);
    merge(vec![ParsedSource::new(Some(root), report, base, env)], env, mode)
}

/// One parsed source.
pub(super) struct ParsedSource<'e> {
    pub(super) report: Diagnostics,
    pub(super) document: ConfigDocument,
    pub(super) scope: VariableScope<'e>,
    /// The entries of the servers as JSON, by name.
    pub(super) written: Vec<(String, String)>,
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
                &super::schema::SERVER_SCHEMA,
                &entry.path,
                &mut source.report,
            );
        }
        source.report.set_entry(None);
        source
    }
}

fn merge(
    mut parsed_sources: Vec<ParsedSource<'_>>,
    env: &Environment,
    load_mode: LoadMode,
) -> Result<Config, ConfigError> {
    let mut written = WrittenServers::default();
    parsed_sources.iter_mut().for_each(|source| written.add(source));
    names::check(&mut parsed_sources);
    let host = settings::host(&mut parsed_sources);
    let serve = serve::serve(&mut parsed_sources);
    let mut drafts: Vec<LocatedDraft> = Vec::new();
    for (index, source) in parsed_sources.iter_mut().enumerate() {
        let entries = source.document.servers.iter().enumerate();
        for (entry_index, entry) in entries.filter(|(_, entry)| entry.has_valid_name) {
            source.report.set_entry(Some(entry_index));
            let draft = check::server(entry, &host, &source.scope, &mut source.report);
            source.report.set_entry(None);
            drafts.push(LocatedDraft { source_index: index, entry_index, draft });
        }
    }
    dependencies::check(&drafts, &mut parsed_sources);
    dependencies::check_duplicates(&drafts, &mut parsed_sources);

    // With an error of a file, the servers of the file may be incomplete.
    let is_partial = load_mode == LoadMode::Partial
        && !parsed_sources.iter().any(|source| source.report.has_error(None));
    let mut invalid =
        if is_partial { invalid_servers(&drafts, &parsed_sources) } else { IndexMap::new() };
    let origin = ConfigOrigin { written, ..ConfigOrigin::default() };
    let mut config = Config { host, serve, environment: env.clone(), origin, ..Config::default() };
    for LocatedDraft { draft, .. } in drafts {
        config.origin.env_files.extend(draft.env_file);
        if draft.disabled {
            config.disabled.insert(draft.name, draft.position);
        } else if let Some(server) = draft.config
            && !invalid.contains_key(&draft.name)
        {
            config.servers.insert(draft.name, server);
        }
    }
    let mut problems = Vec::new();
    let mut extra = serde_json::Map::new();
    for ParsedSource { report, document, scope, .. } in parsed_sources {
        let name = report.source().name().to_owned();
        extra.extend(tree::to_map(&document.extra));
        let mut of_file = Vec::new();
        for LocatedProblem { entry_index, problem } in report.finish() {
            let entry = entry_index.and_then(|index| document.servers.get(index));
            match entry.and_then(|entry| invalid.get_mut(&entry.name)) {
                Some(server) => server.problems.push(problem),
                // Only disabled servers still have errors.
                None if is_partial => {
                    of_file.push(Diagnostic { severity: Severity::Warning, ..problem });
                }
                None => of_file.push(problem),
            }
        }
        of_file.extend(scope.into_diagnostics());
        of_file.sort_by_key(|problem| (problem.source != name, sort_key(problem)));
        problems.extend(of_file);
        config.sources.push(name);
    }
    for server in invalid.values_mut() {
        if server.problems.is_empty() {
            let message = "has problems beyond the maximum number of reported problems";
            server.problems.push(Diagnostic::error(&server.position, &server.key, message));
        }
        server.problems.sort_by_key(sort_key);
    }
    if problems.iter().any(Diagnostic::is_error) {
        return Err(ConfigError(problems));
    }
    Ok(Config { invalid, warnings: problems, extra: ExtraKeys::new(extra), ..config })
}

/// Returns the enabled servers whose entries have errors, without their problems.
fn invalid_servers(
    drafts: &[LocatedDraft],
    sources: &[ParsedSource<'_>],
) -> IndexMap<String, InvalidServer> {
    let mut drafts: HashMap<(usize, usize), &ServerDraft> = drafts
        .iter()
        .map(|located| ((located.source_index, located.entry_index), &located.draft))
        .collect();
    let mut invalid = IndexMap::new();
    for (source_index, source) in sources.iter().enumerate() {
        for (entry_index, entry) in source.document.servers.iter().enumerate() {
            // An entry with an invalid name has no draft.
            let draft = drafts.remove(&(source_index, entry_index));
            let is_disabled = draft.is_some_and(|draft| draft.disabled);
            if is_disabled || !source.report.has_error(Some(entry_index)) {
                continue;
            }
            let server = InvalidServer {
                key: entry.path.clone(),
                position: source.report.source().position(entry.at),
                transport: draft.and_then(|draft| draft.transport),
                required: draft.is_none_or(|draft| draft.required),
                problems: Vec::new(),
            };
            invalid.insert(entry.name.clone(), server);
        }
    }
    invalid
}

/// Returns the sort key for the problems of one file.
fn sort_key(problem: &Diagnostic) -> (u32, u32, bool) {
    // A problem without a line concerns the whole file and goes last.
    let line = if problem.line == 0 { u32::MAX } else { problem.line };
    (line, problem.column, !problem.is_error())
}
