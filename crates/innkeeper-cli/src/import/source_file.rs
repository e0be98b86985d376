//! Locations of the configuration files of each host.

use std::path::{Path, PathBuf};

use super::SourceHost;

/// The directories that all file locations start from.
#[derive(Clone, Debug)]
pub(crate) struct BaseDirectories {
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
}

impl BaseDirectories {
    /// Returns the path relative to the working directory or to `~`, whichever is shorter.
    pub(super) fn display_path(&self, path: &Path) -> String {
        let from_cwd = path.strip_prefix(&self.cwd).map(|inside| inside.display().to_string());
        let from_home =
            path.strip_prefix(&self.home).map(|inside| format!("~/{}", inside.display()));
        let home_is_nearer = self.home != self.cwd && self.home.starts_with(&self.cwd);
        let (first, second) =
            if home_is_nearer { (from_home, from_cwd) } else { (from_cwd, from_home) };
        first.or(second).unwrap_or_else(|_| path.display().to_string())
    }
}

/// The part of a file to read, with its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigScope {
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
    Windsurf,
    Opencode,
    Zed,
    /// A file with `mcpServers` of a program without files that innkeeper looks for.
    Other,
}

/// A program with configuration files; servers in earlier files hide servers of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceProgram {
    ClaudeCode,
    ClaudeDesktop,
    Other(SourceHost),
}

#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) host: SourceHost,
    pub(super) scope: ConfigScope,
    pub(super) path: PathBuf,
    pub(super) display_path: String,
}

impl SourceFile {
    pub(super) fn program(&self) -> SourceProgram {
        match self.scope {
            ConfigScope::ClaudeLocal | ConfigScope::ClaudeProject | ConfigScope::ClaudeUser => {
                SourceProgram::ClaudeCode
            }
            ConfigScope::ClaudeDesktop => SourceProgram::ClaudeDesktop,
            ConfigScope::Vscode
            | ConfigScope::Cursor
            | ConfigScope::Gemini
            | ConfigScope::Codex
            | ConfigScope::Windsurf
            | ConfigScope::Opencode
            | ConfigScope::Zed
            | ConfigScope::Other => SourceProgram::Other(self.host),
        }
    }
}

/// Returns the files of a host, highest precedence first.
///
/// The list contains the directories of all platforms, because only one of them exists.
pub(super) fn source_files(host: SourceHost, directories: &BaseDirectories) -> Vec<SourceFile> {
    let home = &directories.home;
    let cwd = &directories.cwd;
    let application = |rest: &str| {
        [".config", "Library/Application Support", "AppData/Roaming"]
            .map(|directory| home.join(directory).join(rest))
    };
    let mut paths: Vec<(ConfigScope, PathBuf)> = Vec::new();
    match host {
        SourceHost::Claude => {
            paths.push((ConfigScope::ClaudeLocal, home.join(".claude.json")));
            paths.push((ConfigScope::ClaudeProject, cwd.join(".mcp.json")));
            paths.push((ConfigScope::ClaudeUser, home.join(".claude.json")));
            let desktop = application("Claude/claude_desktop_config.json");
            paths.extend(desktop.map(|path| (ConfigScope::ClaudeDesktop, path)));
        }
        SourceHost::Vscode => {
            paths.push((ConfigScope::Vscode, cwd.join(".vscode/mcp.json")));
            paths.extend(application("Code/User/mcp.json").map(|path| (ConfigScope::Vscode, path)));
            paths.push((ConfigScope::Vscode, home.join(".copilot/mcp-config.json")));
        }
        SourceHost::Cursor => paths.extend(project_and_user_files(
            directories,
            ConfigScope::Cursor,
            ".cursor/mcp.json",
        )),
        SourceHost::Gemini => paths.extend(project_and_user_files(
            directories,
            ConfigScope::Gemini,
            ".gemini/settings.json",
        )),
        SourceHost::Codex => paths.extend(project_and_user_files(
            directories,
            ConfigScope::Codex,
            ".codex/config.toml",
        )),
        SourceHost::Windsurf => {
            paths.push((ConfigScope::Windsurf, home.join(".codeium/windsurf/mcp_config.json")));
        }
        SourceHost::Opencode => {
            let directories = [cwd.clone(), cwd.join(".opencode"), home.join(".config/opencode")];
            let files = directories.iter().flat_map(|directory| {
                ["opencode.json", "opencode.jsonc"].map(|file| directory.join(file))
            });
            paths.extend(files.map(|path| (ConfigScope::Opencode, path)));
        }
        SourceHost::Zed => {
            paths.push((ConfigScope::Zed, cwd.join(".zed/settings.json")));
            let user = [".config/zed/settings.json", "AppData/Roaming/Zed/settings.json"];
            paths.extend(user.map(|path| (ConfigScope::Zed, home.join(path))));
        }
    }
    paths
        .into_iter()
        .map(|(config_scope, path)| SourceFile {
            host,
            scope: config_scope,
            display_path: directories.display_path(&path),
            path,
        })
        .collect()
}

/// Returns the project file and the user file; one file if the paths are equal.
fn project_and_user_files(
    directories: &BaseDirectories,
    scope: ConfigScope,
    name: &str,
) -> Vec<(ConfigScope, PathBuf)> {
    let mut paths = vec![(scope, directories.cwd.join(name)), (scope, directories.home.join(name))];
    paths.dedup();
    paths
}
