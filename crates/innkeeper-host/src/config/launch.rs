//! How a child process is started: command, arguments, environment, directory.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::check::Checker;
use super::dotenv::{self, Variables};
use super::leak;
use super::place::{Step, key};
use super::problem::{Position, Problem};
use super::secret::{Expanded, MASK, Secret};
use super::server::TransportConfig;
use super::trail::shown;
use super::{files, raw};

/// The transport of a server that is a child process, unless an error has been told.
pub(super) fn stdio(checker: &mut Checker<'_>, typed: &mut raw::Server) -> Option<TransportConfig> {
    let command = command(checker, typed.command.take());
    let args = args(checker, typed.args.take().unwrap_or_default());
    let cwd = cwd(checker, typed.cwd.take());
    let file = env_file(checker, typed.env_file.take());
    let declared = env(checker, typed.env.take().unwrap_or_default());
    let (Some(command), Some(args), Some(cwd), Some(file), Some((declared, unset_env))) =
        (command, args, cwd, file, declared)
    else {
        return None;
    };
    let mut env: IndexMap<String, Secret> =
        file.into_iter().map(|(name, value)| (name, Secret::new(value))).collect();
    env.extend(declared);
    for name in &unset_env {
        env.shift_remove(name);
    }
    Some(TransportConfig::Stdio { command, args, env, unset_env, cwd })
}

fn command(checker: &mut Checker<'_>, typed: Option<String>) -> Option<Expanded> {
    let steps = [key("command")];
    let Some(written) = typed else {
        if !checker.has("command") {
            checker.error(&steps[..0], "a server of type `stdio` needs a `command`");
        }
        return None;
    };
    let replaced = checker.expand(&steps, &written)?;
    if replaced.value.trim().is_empty() {
        checker.error(&steps, "is empty");
        return None;
    }
    if !checker.has("args") && is_command_line(&replaced.value) {
        checker.warning(&steps, "has white space; the whole text is taken for the program's name");
        checker.report.hint("put the arguments into `args`");
    }
    Some(Expanded::new(replaced.value, written))
}

/// Whether a text is a program with its arguments. A path may well have white space in it.
fn is_command_line(command: &str) -> bool {
    let (program, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    !program.contains(['/', '\\']) && !rest.is_empty()
}

fn args(checker: &mut Checker<'_>, typed: Vec<raw::Text>) -> Option<Vec<Expanded>> {
    words(checker, "args", typed)
}

/// The words of a list that programs are started with; `None` once an error has been told.
pub(super) fn words(
    checker: &mut Checker<'_>,
    list: &'static str,
    typed: Vec<raw::Text>,
) -> Option<Vec<Expanded>> {
    let count = typed.len();
    let mut args: Vec<Expanded> = Vec::with_capacity(count);
    for (index, raw::Text(written)) in typed.into_iter().enumerate() {
        let steps = [key(list), Step::Index(index)];
        let Some(written) = written else {
            continue;
        };
        let Some(replaced) = checker.expand(&steps, &written) else {
            continue;
        };
        let before = args.last().map(Expanded::as_written);
        let shown = match leak::in_argument(&written, before, &replaced.variables) {
            Some(why) => {
                checker.warning(&steps, why);
                checker.report.hint("everybody on this machine can read arguments; use `env`");
                if replaced.variables.is_empty() { MASK.to_owned() } else { written }
            }
            None => written,
        };
        args.push(Expanded::new(replaced.value, shown));
    }
    (args.len() == count).then_some(args)
}

/// The outer option is missing where an error has been told.
#[expect(clippy::option_option, reason = "absent and refused are two things")]
fn cwd(checker: &mut Checker<'_>, typed: Option<String>) -> Option<Option<Expanded<PathBuf>>> {
    let Some(written) = typed else {
        return Some(None);
    };
    let steps = [key("cwd")];
    let replaced = checker.expand(&steps, &written)?;
    if replaced.value.is_empty() {
        checker.error(&steps, "is empty");
        return None;
    }
    let path = checker.surroundings.resolve(&replaced.value);
    Some(Some(Expanded::new(path, written)))
}

fn env_file(checker: &mut Checker<'_>, typed: Option<String>) -> Option<Variables> {
    let Some(written) = typed else {
        return Some(Variables::new());
    };
    let steps = [key("envFile")];
    let replaced = checker.expand(&steps, &written)?;
    let path = checker.surroundings.resolve(&replaced.value);
    match files::read_variables(&path) {
        Err(message) => {
            checker.error(&steps, format!("`{}`: {message}", shown(&written)));
            None
        }
        Ok((variables, bad)) => {
            let mut whole = bad.is_empty();
            for bad in bad {
                let at = Position { source: written.as_str().into(), line: bad.line, column: 1 };
                checker.report.push(Problem::error(&at, "", bad.message));
            }
            for (name, _) in variables.iter().filter(|(_, value)| value.contains('\0')) {
                whole = false;
                let message =
                    format!("`{}`: `{}` has a NUL character", shown(&written), shown(name));
                checker.error(&steps, message);
            }
            whole.then_some(variables)
        }
    }
}

type Declared = (IndexMap<String, Secret>, Vec<String>);

fn env(checker: &mut Checker<'_>, typed: IndexMap<String, raw::EnvValue>) -> Option<Declared> {
    let mut whole = true;
    let mut env = IndexMap::with_capacity(typed.len());
    let mut unset = Vec::new();
    for (name, raw::EnvValue(value)) in typed {
        let steps = [key("env"), key(&name)];
        if !dotenv::is_name(&name) {
            checker.error(&steps, "not the name of an environment variable");
            checker.report.hint("use letters, digits and `_`, not beginning with a digit");
            whole = false;
            continue;
        }
        match value {
            None => unset.push(name),
            Some(written) => match checker.expand(&steps, &written) {
                Some(replaced) => {
                    env.insert(name, Secret::new(replaced.value));
                }
                None => whole = false,
            },
        }
    }
    whole.then_some((env, unset))
}
