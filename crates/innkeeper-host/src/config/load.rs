//! From files to a configuration: take each apart, look at all of them together, then decide.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check;
use super::depend::{self, Located};
use super::document::{self, Document};
use super::files::{self, Surroundings};
use super::names;
use super::origin::Origin;
use super::problem::{ConfigError, Problem};
use super::settings;
use super::source::{Report, Source};
use super::tree::{self, Node};
use super::{Config, Environment, Kept, alias, unknown, watch};

/// How large one file may be: far above any real one, far below what would hurt.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn files(paths: &[PathBuf], env: &Environment) -> Result<Config, ConfigError> {
    let part = |path: &PathBuf| {
        let name = path.to_string_lossy();
        let base = path.parent().unwrap_or(Path::new(""));
        match files::read(path, MAX_FILE_BYTES) {
            Ok(text) => Part::of_text(&text, &name, base, env),
            Err(message) => Part::unreadable(&name, base, env, message),
        }
    };
    // First, so that what is written meanwhile counts as a change.
    let content = watch::content(&watch::places(paths, env));
    let config = merge(paths.iter().map(part).collect(), env)?;
    let origin = Origin { files: paths.to_owned(), only: None, content };
    Ok(Config { origin, ..config })
}

pub(super) fn text(
    text: &str,
    name: &str,
    base: &Path,
    env: &Environment,
) -> Result<Config, ConfigError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        let message = files::too_large(MAX_FILE_BYTES);
        return merge(vec![Part::unreadable(name, base, env, message)], env);
    }
    merge(vec![Part::of_text(text, name, base, env)], env)
}

pub(super) fn value(
    value: &Value,
    name: &str,
    base: &Path,
    env: &Environment,
) -> Result<Config, ConfigError> {
    let mut report = Report::new(Source::of_value(name));
    let root = Node::of_value(value, &mut report);
    merge(vec![Part::new(Some(root), report, base, env)], env)
}

/// One source, taken apart.
pub(super) struct Part<'e> {
    pub(super) report: Report,
    pub(super) document: Document,
    surroundings: Surroundings<'e>,
}

impl<'e> Part<'e> {
    fn of_text(text: &str, name: &str, base: &Path, env: &'e Environment) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Report::new(Source::of_text(name, text));
        let root = tree::parse(text, &mut report);
        Self::new(root, report, base, env)
    }

    fn unreadable(name: &str, base: &Path, env: &'e Environment, message: String) -> Self {
        let mut report = Report::new(Source::of_value(name));
        report.error(None, "", message);
        Self::new(None, report, base, env)
    }

    fn new(root: Option<Node>, mut report: Report, base: &Path, env: &'e Environment) -> Self {
        let surroundings = Surroundings::new(report.source().name(), base, env);
        let document = root.and_then(|root| document::cut(root, &mut report)).unwrap_or_default();
        let mut part = Self { report, document, surroundings };
        for entry in &mut part.document.servers {
            alias::normalise(entry, &mut part.report);
            entry.extra = unknown::take(
                &mut entry.node,
                &super::schema::SERVER,
                &entry.path,
                &mut part.report,
            );
        }
        part
    }
}

fn merge(mut parts: Vec<Part<'_>>, env: &Environment) -> Result<Config, ConfigError> {
    names::check(&mut parts);
    let host = settings::host(&mut parts);
    let mut drafts: Vec<Located> = Vec::new();
    for (index, part) in parts.iter_mut().enumerate() {
        let entries = part.document.servers.iter().enumerate();
        for (entry_index, entry) in entries.filter(|(_, entry)| entry.usable) {
            let draft = check::server(entry, &host, &part.surroundings, &mut part.report);
            drafts.push(Located { part: index, entry: entry_index, draft });
        }
    }
    depend::check(&drafts, &mut parts);
    depend::check_twins(&drafts, &mut parts);

    let mut config = Config { host, environment: env.clone(), ..Config::default() };
    for Located { draft, .. } in drafts {
        if draft.disabled {
            config.disabled.insert(draft.name, draft.position);
        } else if let Some(server) = draft.config {
            config.servers.insert(draft.name, server);
        }
    }
    let mut problems = Vec::new();
    let mut extra = serde_json::Map::new();
    for part in parts {
        config.sources.push(part.report.source().name().to_owned());
        extra.extend(tree::to_map(&part.document.extra));
        let mut of_file = part.report.finish();
        of_file.extend(part.surroundings.into_problems());
        let name = config.sources.last().cloned().unwrap_or_default();
        of_file.sort_by_key(|problem| (problem.source != name, place(problem)));
        problems.extend(of_file);
    }
    if problems.iter().any(Problem::is_error) {
        return Err(ConfigError(problems));
    }
    Ok(Config { warnings: problems, extra: Kept::new(extra), ..config })
}

/// The order in which problems of one file are told.
fn place(problem: &Problem) -> (u32, u32, bool) {
    // What has no line is about the file as a whole and ends the list.
    let line = if problem.line == 0 { u32::MAX } else { problem.line };
    (line, problem.column, !problem.is_error())
}
