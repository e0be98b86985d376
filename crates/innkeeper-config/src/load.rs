//! Loads files into a configuration: parse each, check all together, merge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value;

use crate::checks::dependencies::{self, LocatedDraft};
use crate::checks::host;
use crate::checks::parsed_source::ParsedSource;
use crate::checks::server::{self, ServerDraft};
use crate::content_hash::{absolute_paths, content_hash};
use crate::diagnostic::{ConfigError, Diagnostic, Severity};
use crate::variables::files::{self, MAX_FILE_BYTES};

use crate::checks::names;
use crate::checks::serve;
use crate::config::Config;
use crate::form::written::WrittenServers;
use crate::invalid_server::InvalidServer;
use crate::origin::{ConfigOrigin, LoadMode};
use crate::settings::extra_keys::ExtraKeys;
use crate::text::source_text::{Diagnostics, LocatedProblem, SourceText};
use crate::text::tree::{self, JsonNode};
use crate::variables::environment::Environment;

impl Config {
    /// Reads one file against the environment of this process. A file has at most
    /// [`MAX_FILE_BYTES`].
    ///
    /// Only this convenience function reads the process environment; [`Config::load`] takes an
    /// [`Environment`].
    ///
    /// # Errors
    ///
    /// Returns every problem of the file if at least one problem is an error.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use innkeeper_config::Config;
    ///
    /// let config = Config::from_file("mcp.json")?;
    /// for warning in &config.warnings {
    ///     println!("{warning}");
    /// }
    /// # Ok::<(), innkeeper_config::ConfigError>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::load(&[path.as_ref().to_owned()], &Environment::from_process())
    }

    /// Reads files and merges them; a server name may occur in only one file.
    ///
    /// A `.env` file beside a configuration file supplies variables that `env` does not have.
    ///
    /// # Errors
    ///
    /// Returns every problem of every file if at least one problem is an error.
    pub fn load(sources: &[PathBuf], env: &Environment) -> Result<Self, ConfigError> {
        load_files(sources, env, LoadMode::Complete)
    }

    /// Reads files as [`Config::load`] does, and sets aside each server whose entry has an error, so
    /// that the other servers can start.
    ///
    /// [`Config::invalid`] contains the servers that were set aside, with their problems. A host
    /// lists these servers as unavailable; the servers that depend on them do not start. The errors
    /// of a disabled server are warnings.
    ///
    /// # Errors
    ///
    /// Returns every problem of every file if at least one error is not an error of one server:
    /// text that is not JSON, a duplicate server name, an error in `host`, or a cycle of
    /// dependencies.
    pub fn load_partial(sources: &[PathBuf], env: &Environment) -> Result<Self, ConfigError> {
        load_files(sources, env, LoadMode::Partial)
    }

    /// Reads a string as a file named `source_name` in `base_dir`.
    ///
    /// # Errors
    ///
    /// Returns every problem of the string if at least one problem is an error.
    pub fn from_text(
        text: &str,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load_text(text, source_name, base_dir, env, LoadMode::Complete)
    }

    /// Reads a JSON value that the application built; problems have no line numbers.
    ///
    /// `source_name` names the value in problems, `base_dir` is the base of relative paths, and
    /// `env` supplies the variables.
    ///
    /// # Errors
    ///
    /// Returns every problem of the value if at least one problem is an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use innkeeper_config::{Config, Environment};
    /// use serde_json::json;
    ///
    /// let value = json!({"mcpServers": {"files": {"command": "serve", "args": ["${DATA}"]}}});
    /// let environment = Environment::from_pairs([("DATA", "documents")]);
    /// let config = Config::from_value(&value, "settings", Path::new("."), &environment)?;
    /// assert!(config.servers.contains_key("files"));
    /// # Ok::<(), innkeeper_config::ConfigError>(())
    /// ```
    pub fn from_value(
        value: &serde_json::Value,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load_value(value, source_name, base_dir, env, LoadMode::Complete)
    }

    /// Works like [`Config::from_value`], and sets a server with errors aside
    /// ([`Config::invalid`]), as [`Config::load_partial`] does.
    ///
    /// # Errors
    ///
    /// See [`Config::load_partial`].
    pub fn from_value_partial(
        value: &serde_json::Value,
        source_name: &str,
        base_dir: &Path,
        env: &Environment,
    ) -> Result<Self, ConfigError> {
        load_value(value, source_name, base_dir, env, LoadMode::Partial)
    }
}

pub(crate) fn load_files(
    paths: &[PathBuf],
    env: &Environment,
    load_mode: LoadMode,
) -> Result<Config, ConfigError> {
    // The hash comes first, so that a write during the load counts as a change.
    let content = content_hash(&absolute_paths(paths, env));
    let config = merge(
        paths
            .iter()
            .map(|path| {
                let name = path.to_string_lossy();
                let base = path.parent().unwrap_or(Path::new(""));
                match files::read_text(path, MAX_FILE_BYTES) {
                    Ok(text) => ParsedSource::from_text(&text, &name, base, env),
                    Err(message) => ParsedSource::unreadable(&name, base, env, message),
                }
            })
            .collect(),
        env,
        load_mode,
    )?;
    let origin =
        ConfigOrigin { files: paths.to_owned(), load_mode, content_hash: content, ..config.origin };
    Ok(Config { origin, ..config })
}

pub(crate) fn load_text(
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

pub(crate) fn load_value(
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

fn merge(
    mut parsed_sources: Vec<ParsedSource<'_>>,
    env: &Environment,
    load_mode: LoadMode,
) -> Result<Config, ConfigError> {
    let mut written = WrittenServers::default();
    for source in &mut parsed_sources {
        written.add(std::mem::take(&mut source.written));
    }
    names::check(&mut parsed_sources);
    let host = host::host(&mut parsed_sources);
    let serve = serve::serve(&mut parsed_sources);
    let mut drafts: Vec<LocatedDraft> = Vec::new();
    for (index, source) in parsed_sources.iter_mut().enumerate() {
        let entries = source.document.servers.iter().enumerate();
        for (entry_index, entry) in entries.filter(|(_, entry)| entry.has_valid_name) {
            source.report.set_entry(Some(entry_index));
            let draft = server::server(entry, &host, &source.scope, &mut source.report);
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

fn sort_key(problem: &Diagnostic) -> (u32, u32, bool) {
    // A problem without a line concerns the whole file and goes last.
    let line = if problem.line == 0 { u32::MAX } else { problem.line };
    (line, problem.column, !problem.is_error())
}
