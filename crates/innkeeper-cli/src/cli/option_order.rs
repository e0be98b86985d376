//! Moves the options that select servers behind the command.

use std::ffi::OsString;

/// Global options with a value, which may be the next argument.
const OPTIONS_WITH_VALUE: [&str; 8] = [
    "--config",
    "--stdio",
    "--url",
    "--header",
    "--env",
    "--log-level",
    "--log-format",
    "--timeout",
];

/// Options that are repeated or exclude each other.
const MOVED_OPTIONS: [&str; 5] = ["--config", "--stdio", "--url", "--header", "--env"];

/// Moves each option that selects servers from before the command to a place after the command.
///
/// Reason: clap lets a repeated option after the command replace the same option before the
/// command, and compares two options only if both are on the same side; a file given before the
/// command would be ignored without an error.
pub(super) fn move_server_options_after_command(
    line: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut args = line.into_iter();
    let mut ordered: Vec<OsString> = args.next().into_iter().collect();
    let mut moved = Vec::new();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        let is_option = text.starts_with('-');
        let option = text.split_once('=').map_or(&*text, |(option, _)| option);
        let into = if MOVED_OPTIONS.contains(&option) { &mut moved } else { &mut ordered };
        let takes_next = OPTIONS_WITH_VALUE.contains(&&*text);
        into.push(arg);
        if takes_next {
            into.extend(args.next());
        } else if !is_option {
            break;
        }
    }
    ordered.append(&mut moved);
    ordered.extend(args);
    ordered
}

/// Replaces `--stdio` without a command in a line of `serve` by the flag of `serve`. The option with
/// the same name selects a server, and requires its command line.
pub(super) fn replace_stdio_of_serve(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let args: Vec<OsString> = line.into_iter().collect();
    // The rest is the command line of another program.
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    if !args[..end].iter().any(|arg| arg == "serve") {
        return args;
    }
    let replaced = args.iter().enumerate().map(|(index, arg)| {
        let next = args.get(index + 1).map(|next| next.to_string_lossy());
        let has_command = next.is_some_and(|next| !next.starts_with('-') && next != "serve");
        if index < end && arg == "--stdio" && !has_command {
            OsString::from(SERVE_ON_STDIO)
        } else {
            arg.clone()
        }
    });
    replaced.collect()
}

/// The flag of `serve` for one client on stdin and stdout.
const SERVE_ON_STDIO: &str = "--on-stdio";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_has_a_flag_with_the_name_of_an_option() {
        let replaced = |line: &str| {
            let args = replace_stdio_of_serve(line.split(' ').map(OsString::from));
            args.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(replaced("i serve --stdio"), "i serve --on-stdio");
        assert_eq!(replaced("i serve --stdio --names flat"), "i serve --on-stdio --names flat");
        let others = ["i serve --stdio npx", "i call --stdio", "i --stdio npx serve"];
        for kept in others.into_iter().chain(["i record f -- i serve --stdio"]) {
            assert_eq!(replaced(kept), kept);
        }
    }

    fn reorder(line: &str) -> String {
        let args = move_server_options_after_command(line.split(' ').map(OsString::from));
        let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        args.join(" ")
    }

    #[test]
    fn config_files_before_the_command_come_before_those_after_it() {
        assert_eq!(
            reorder("i --json --config a --timeout 5 --config=b call --config c x --config d"),
            "i --json --timeout 5 call --config a --config=b --config c x --config d"
        );
    }

    #[test]
    fn all_options_that_select_servers_are_moved_with_their_values() {
        assert_eq!(
            reorder("i --stdio tools --env A=1 --json --url=u --header h call x"),
            "i --json call --stdio tools --env A=1 --url=u --header h x"
        );
    }

    #[test]
    fn arguments_after_the_command_stay_where_they_are() {
        for line in ["i call x --config", "i", "i --json", "i --log-level call tools"] {
            assert_eq!(reorder(line), line);
        }
    }
}
