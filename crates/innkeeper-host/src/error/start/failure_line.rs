//! Selects the line of a server's stderr that says why the server ended.

/// Maximum length of the line, in characters; the error stores the whole stderr tail.
const MAX_LINE_CHARS: usize = 300;

/// Prefixes of the lines in which npm reports its own failure.
const NPM_ERROR_PREFIXES: [&str; 2] = ["npm error", "npm ERR!"];

/// First words of npm error lines that describe the surroundings of a failure.
const NPM_DETAILS: [&str; 13] = [
    "code",
    "errno",
    "syscall",
    "path",
    "dest",
    "command",
    "workspace",
    "location",
    "signal",
    "cwd",
    "A complete log",
    "Lifecycle script",
    "[Error:",
];

/// Error codes that npm repeats at the start of a line.
const NPM_TAGS: [&str; 6] = ["notarget ", "enoent ", "network ", "404  ", "eacces ", "enospc "];

/// First words of lines that say nothing about a failure.
const NOISE_PREFIXES: [&str; 23] = [
    "npm warn",
    "npm WARN",
    "npm notice",
    "npm http",
    "Node.js v",
    "node:",
    "file://",
    "throw ",
    "(node:",
    "(Use `node",
    "note: run with `RUST_BACKTRACE",
    "stack backtrace:",
    "Downloading ",
    "Downloaded ",
    "Installed ",
    "Prepared ",
    "Resolved ",
    "Building ",
    "Built ",
    "Debugger ",
    "Waiting for the debugger",
    "[notice]",
    "For more information, try",
];

/// Returns the line of a stderr tail that says why the program ended, without its colors: npm's own
/// error, the message of a panic, of an exception or of an error, else the last line that is no part
/// of a stack trace. `None` if the tail contains only such parts.
pub(super) fn failure_line(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().map(without_group_margin).collect();
    let line = npm_error(&lines)
        .or_else(|| panic_message(&lines))
        .or_else(|| traceback_message(&lines))
        .or_else(|| last_error(&lines))
        .or_else(|| last_line(&lines))?;
    let line = line.strip_prefix("error: ").unwrap_or(&line).trim();
    Some(match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    })
}

/// Returns a line without the margin of Python's exception groups.
fn without_group_margin(line: &str) -> &str {
    let text = line.trim_start();
    text.strip_prefix("| ").unwrap_or(line).trim_end()
}

/// Returns npm's description of a failure of npm itself. For a failure of a program that npm ran,
/// npm reports only the surroundings, and the program's own words stand before.
fn npm_error(lines: &[&str]) -> Option<String> {
    let texts: Vec<&str> = lines.iter().filter_map(|line| npm_error_text(line)).collect();
    let texts = texts.into_iter().filter(|text| {
        let is_detail = NPM_DETAILS.iter().any(|detail| text.starts_with(detail));
        !(is_detail || is_indented(text) || text.is_empty() || *text == "404")
    });
    let texts: Vec<&str> = texts.collect();
    // npm repeats the code before each line of an explanation.
    let cause = texts.iter().copied().find(|text| text.contains("could not be found"));
    let cause = cause.or_else(|| texts.iter().copied().find(|text| is_error(text)));
    let text = cause.or_else(|| texts.first().copied())?;
    Some(NPM_TAGS.iter().find_map(|tag| text.strip_prefix(tag)).unwrap_or(text).to_owned())
}

fn npm_error_text(line: &str) -> Option<&str> {
    let text = NPM_ERROR_PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

/// Returns the message of the last Rust or Go panic.
fn panic_message(lines: &[&str]) -> Option<String> {
    let index = lines.iter().rposition(|line| {
        line.starts_with("panic: ")
            || (line.starts_with("thread '") && line.contains(" panicked at "))
    })?;
    let message = lines[index].split_once(" panicked at ").map_or(lines[index], |(_, at)| at);
    // Since Rust 1.73 the message follows the location.
    let next = lines.get(index + 1).filter(|next| message.ends_with(':') && !next.is_empty());
    Some(next.copied().unwrap_or(message).to_owned())
}

/// Returns the message of the last Python traceback: the first line behind its frames.
fn traceback_message(lines: &[&str]) -> Option<String> {
    let index = lines.iter().rposition(|line| {
        line.trim_start_matches([' ', '+']).contains("Traceback (most recent call last)")
    })?;
    let message = lines[index + 1..].iter().find(|line| !is_indented(line) && !line.is_empty())?;
    Some((*message).to_owned())
}

/// Returns the last line that a program marks as an error, with the innermost cause below it.
fn last_error(lines: &[&str]) -> Option<String> {
    let index = lines.iter().rposition(|line| !is_noise(line) && is_error(line))?;
    let error = lines[index].trim_start().trim_start_matches("× ");
    let below = &lines[index + 1..];
    if let Some(cause) = below.iter().rev().find_map(|line| cause_text(line)) {
        return Some(format!("{}: {cause}", error.trim_end_matches(':')));
    }
    let detail = below.iter().find(|line| !line.is_empty()).filter(|_| error.ends_with(':'));
    Some(detail.map_or_else(|| error.to_owned(), |detail| format!("{error} {}", detail.trim())))
}

/// Returns the text of a line with a cause, as uv and Rust programs write the line.
fn cause_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["cause: ", "Caused by: ", "╰─▶ "].iter().find_map(|prefix| line.strip_prefix(prefix))
}

/// Returns the last line that is no noise, preferably without an indentation.
fn last_line(lines: &[&str]) -> Option<String> {
    let mut said = lines.iter().rev().filter(|line| !is_noise(line));
    let last = *said.clone().next()?;
    Some(said.find(|line| !is_indented(line)).copied().unwrap_or(last).to_owned())
}

/// Returns whether a program marks a line as an error: `TypeError: x`, `error[E1]: x`,
/// `tool: error: x`, `[ERROR] x`, `2026-01-01 ERROR x`, or uv's `× x`.
fn is_error(line: &str) -> bool {
    let has_error_name = line.match_indices(": ").take(3).any(|(at, _)| {
        let name = line[..at].split('[').next().unwrap_or_default();
        name.split_whitespace().next_back().is_some_and(|word| {
            let word = word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
            ["error", "exception", "fatal", "panic"].iter().any(|end| word.ends_with(end))
        })
    });
    !is_indented(line)
        && (has_error_name
            || line.split_whitespace().take(6).any(|word| {
                let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
                ["ERROR", "FATAL", "CRITICAL"].contains(&word)
            }))
        || line.trim_start().starts_with("× ")
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

fn is_noise(line: &str) -> bool {
    let text = line.trim_start();
    let is_frame = is_indented(line) && (text.starts_with("at ") || text.starts_with("File \""));
    let has_words = text.chars().any(char::is_alphanumeric);
    !has_words
        || is_frame
        || NOISE_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
        || npm_error_text(line).is_some()
}

#[cfg(test)]
mod tests;
