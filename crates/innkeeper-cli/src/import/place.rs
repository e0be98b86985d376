//! Where each host keeps its files, seen from a home and a working directory that are handed in.

use std::path::{Path, PathBuf};

use super::Dialect;

/// The two directories from which every file is found.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
}

impl Places {
    /// A path as a person writes it: from the working directory or from `~`, whichever is nearer.
    pub(super) fn shown(&self, path: &Path) -> String {
        let from_cwd = path.strip_prefix(&self.cwd).map(|inside| inside.display().to_string());
        let from_home =
            path.strip_prefix(&self.home).map(|inside| format!("~/{}", inside.display()));
        let home_is_nearer = self.home != self.cwd && self.home.starts_with(&self.cwd);
        let (first, second) =
            if home_is_nearer { (from_home, from_cwd) } else { (from_cwd, from_home) };
        first.or(second).unwrap_or_else(|_| path.display().to_string())
    }
}

/// Whose words a file is written in, and which part of it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `~/.claude.json`: servers of one project.
    ClaudeLocal,
    /// `.mcp.json` of a project.
    ClaudeProject,
    /// `~/.claude.json`: servers of the user.
    ClaudeUser,
    ClaudeDesktop,
    Vscode,
    Cursor,
    Gemini,
    Codex,
}

/// A program that reads files; those it reads first hide servers of the same name in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    ClaudeDesktop,
    Other(Dialect),
}

/// One file to look for.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) dialect: Dialect,
    pub(super) part: Part,
    pub(super) path: PathBuf,
    pub(super) shown: String,
}

impl File {
    pub(super) fn program(&self) -> Program {
        match self.part {
            Part::ClaudeLocal | Part::ClaudeProject | Part::ClaudeUser => Program::ClaudeCode,
            Part::ClaudeDesktop => Program::ClaudeDesktop,
            Part::Vscode | Part::Cursor | Part::Gemini | Part::Codex => {
                Program::Other(self.dialect)
            }
        }
    }
}

/// The files of a host, those that win over others first.
///
/// Directories of all platforms are looked at: only one of them exists.
pub(super) fn files(dialect: Dialect, places: &Places) -> Vec<File> {
    let (home, cwd) = (&places.home, &places.cwd);
    let application = |rest: &str| {
        [".config", "Library/Application Support", "AppData/Roaming"]
            .map(|directory| home.join(directory).join(rest))
    };
    let mut paths: Vec<(Part, PathBuf)> = Vec::new();
    match dialect {
        Dialect::Claude => {
            paths.push((Part::ClaudeLocal, home.join(".claude.json")));
            paths.push((Part::ClaudeProject, cwd.join(".mcp.json")));
            paths.push((Part::ClaudeUser, home.join(".claude.json")));
            let desktop = application("Claude/claude_desktop_config.json");
            paths.extend(desktop.map(|path| (Part::ClaudeDesktop, path)));
        }
        Dialect::Vscode => {
            paths.push((Part::Vscode, cwd.join(".vscode/mcp.json")));
            paths.extend(application("Code/User/mcp.json").map(|path| (Part::Vscode, path)));
            paths.push((Part::Vscode, home.join(".copilot/mcp-config.json")));
        }
        Dialect::Cursor => paths.extend(both(places, Part::Cursor, ".cursor/mcp.json")),
        Dialect::Gemini => paths.extend(both(places, Part::Gemini, ".gemini/settings.json")),
        Dialect::Codex => paths.extend(both(places, Part::Codex, ".codex/config.toml")),
    }
    paths
        .into_iter()
        .map(|(part, path)| File { dialect, part, shown: places.shown(&path), path })
        .collect()
}

/// The project's file and the user's, once where they are the same.
fn both(places: &Places, part: Part, name: &str) -> Vec<(Part, PathBuf)> {
    let mut paths = vec![(part, places.cwd.join(name)), (part, places.home.join(name))];
    paths.dedup();
    paths
}
