//! Launch settings of a child process: command, arguments, environment, directory.

use std::path::PathBuf;

use indexmap::IndexMap;

use crate::checks::entry_checker::EntryChecker;
use crate::checks::secret_scan;
use crate::diagnostic::{Diagnostic, Position};
use crate::form::raw;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::server::TransportConfig;
use crate::text::key_location::{PathSegment, key_segment};
use crate::text::key_path::escape_for_message;
use crate::variables::dotenv::{self, Variables};
use crate::variables::env_file::EnvFile;
use crate::variables::files;

/// Returns the stdio transport of a server, or `None` after an error.
pub(crate) fn stdio(
    checker: &mut EntryChecker<'_>,
    typed: &mut raw::Server,
) -> Option<TransportConfig> {
    let command = command(checker, typed.command.take());
    let args = args(checker, typed.args.take().unwrap_or_default());
    let cwd = cwd(checker, typed.cwd.take());
    let file = env_file(checker, typed.env_file.take());
    let variables = env(checker, typed.env.take().unwrap_or_default());
    let (Some(command), Some(args), Some(cwd), Some(file), Some((variables, unset_env))) =
        (command, args, cwd, file, variables)
    else {
        return None;
    };
    let mut env: IndexMap<String, Secret> =
        file.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    env.extend(variables);
    for name in &unset_env {
        env.shift_remove(name);
    }
    Some(TransportConfig::Stdio { command, args, env, unset_env, cwd })
}

fn command(checker: &mut EntryChecker<'_>, typed: Option<String>) -> Option<ExpandedValue> {
    let segments = [key_segment("command")];
    let Some(source_text) = typed else {
        if !checker.has("command") {
            checker.error(&segments[..0], "server type `stdio` needs a `command`");
        }
        return None;
    };
    let replaced = checker.expand(&segments, &source_text)?;
    if replaced.value.trim().is_empty() {
        checker.error(&segments, "is empty");
        return None;
    }
    if !checker.has("args") && is_command_line(&replaced.value) {
        checker.warning(&segments, "contains whitespace; the whole string is used as program name");
        checker.report.hint("move the arguments to `args`");
    }
    Some(ExpandedValue::new(replaced.value, source_text))
}

/// Returns whether a command includes arguments. A path may contain white space.
fn is_command_line(command: &str) -> bool {
    let (program, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    !program.contains(['/', '\\']) && !rest.is_empty()
}

fn args(
    checker: &mut EntryChecker<'_>,
    typed: Vec<raw::StringElement>,
) -> Option<Vec<ExpandedValue>> {
    expand_list(checker, "args", typed)
}

/// Expands a list of arguments; returns `None` after an error.
pub(crate) fn expand_list(
    checker: &mut EntryChecker<'_>,
    list: &'static str,
    typed: Vec<raw::StringElement>,
) -> Option<Vec<ExpandedValue>> {
    let count = typed.len();
    let mut args: Vec<ExpandedValue> = Vec::with_capacity(count);
    for (index, raw::StringElement(source_text)) in typed.into_iter().enumerate() {
        let segments = [key_segment(list), PathSegment::Index(index)];
        let Some(source_text) = source_text else {
            continue;
        };
        let Some(replaced) = checker.expand(&segments, &source_text) else {
            continue;
        };
        let before = args.last().map(ExpandedValue::as_written);
        let secret =
            secret_scan::find_secret_in_argument(&source_text, before, &replaced.variables);
        if let Some(reason) = secret {
            checker.warning(&segments, reason);
            checker.report.hint("arguments are visible to all users of this machine; use `env`");
        }
        let masked = secret_scan::redact_argument(&source_text, before);
        args.push(ExpandedValue::new(replaced.value, source_text).with_masked(masked));
    }
    (args.len() == count).then_some(args)
}

/// The outer `Option` is `None` after an error.
#[expect(clippy::option_option, reason = "absent and refused are two things")]
fn cwd(
    checker: &mut EntryChecker<'_>,
    typed: Option<String>,
) -> Option<Option<ExpandedValue<PathBuf>>> {
    let Some(source_text) = typed else {
        return Some(None);
    };
    let segments = [key_segment("cwd")];
    let replaced = checker.expand(&segments, &source_text)?;
    if replaced.value.is_empty() {
        checker.error(&segments, "is empty");
        return None;
    }
    let path = checker.scope.resolve(&replaced.value);
    Some(Some(ExpandedValue::new(path, source_text)))
}

fn env_file(checker: &mut EntryChecker<'_>, typed: Option<String>) -> Option<Variables> {
    let Some(source_text) = typed else {
        return Some(Variables::new());
    };
    let segments = [key_segment("envFile")];
    let replaced = checker.expand(&segments, &source_text)?;
    let path = checker.scope.resolve(&replaced.value);
    checker.env_file = Some(EnvFile {
        server: checker.entry.name.clone(),
        written: source_text.clone(),
        path: path.clone(),
    });
    match files::read_variables(&path) {
        Err(message) => {
            checker.error(&segments, format!("`{}`: {message}", escape_for_message(&source_text)));
            None
        }
        Ok((variables, bad)) => {
            let mut complete = bad.is_empty();
            for bad in bad {
                let at =
                    Position { source: source_text.as_str().into(), line: bad.line, column: 1 };
                checker.report.push(Diagnostic::error(&at, "", bad.message));
            }
            for (name, _) in variables.iter().filter(|(_, value)| value.contains('\0')) {
                complete = false;
                let message = format!(
                    "`{}`: `{}` contains a NUL character",
                    escape_for_message(&source_text),
                    escape_for_message(name)
                );
                checker.error(&segments, message);
            }
            complete.then_some(variables)
        }
    }
}

type DeclaredEnv = (IndexMap<String, Secret>, Vec<String>);

fn env(
    checker: &mut EntryChecker<'_>,
    typed: IndexMap<String, raw::EnvValue>,
) -> Option<DeclaredEnv> {
    let mut complete = true;
    let mut env = IndexMap::with_capacity(typed.len());
    let mut unset = Vec::new();
    for (name, raw::EnvValue(value)) in typed {
        let segments = [key_segment("env"), key_segment(&name)];
        if !dotenv::is_variable_name(&name) {
            checker.error(&segments, "not a valid environment variable name");
            checker.report.hint("use letters, digits and `_`; do not start with a digit");
            complete = false;
            continue;
        }
        match value {
            None => unset.push(name),
            Some(source_text) => match checker.expand(&segments, &source_text) {
                Some(replaced) => {
                    env.insert(name, Secret::new(replaced.value));
                }
                None => complete = false,
            },
        }
    }
    complete.then_some((env, unset))
}
