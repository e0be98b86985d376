//! Paths of files that have credentials, however the path is written (OWASP MCP01, MCP05).

/// Whole names of files that have credentials wherever they are.
const NAMES: [&str; 22] = [
    ".env",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".dockercfg",
    ".vault-token",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "wallet.dat",
    "login.keychain-db",
    "cookies.sqlite",
    "logins.json",
    "key4.db",
    ".bash_history",
    ".zsh_history",
];

/// Ends of paths, one part after the other.
const ENDS: [&[&str]; 18] = [
    &["etc", "shadow"],
    &["etc", "passwd"],
    &["etc", "gshadow"],
    &["etc", "sudoers"],
    &[".aws", "credentials"],
    &[".aws", "config"],
    &[".azure", "accesstokens.json"],
    &[".azure", "msal_token_cache.json"],
    &["gcloud", "application_default_credentials.json"],
    &["gcloud", "credentials.db"],
    &[".kube", "config"],
    &[".docker", "config.json"],
    &[".config", "gh", "hosts.yml"],
    &[".cargo", "credentials.toml"],
    &[".ssh", "authorized_keys"],
    &[".cursor", "mcp.json"],
    &["claude", "claude_desktop_config.json"],
    &["system32", "config", "sam"],
];

/// What a name has behind it when it is a sample or the public half.
const HARMLESS: [&str; 7] =
    [".pub", ".example", ".sample", ".template", ".dist", ".defaults", ".md"];

/// The longest path that is taken apart.
const LONGEST: usize = 4 << 10;

/// Whether a word of the text is the path of a file with credentials.
pub(super) fn names_one(text: &str) -> bool {
    let cut = |c: char| c.is_whitespace() || "\"'`,;=()<>|&$".contains(c);
    text.split(cut).filter(|word| word.len() <= LONGEST).any(is_one)
}

fn is_one(word: &str) -> bool {
    let word = word.strip_prefix('@').unwrap_or(word).to_ascii_lowercase();
    let word = word.split(['?', '#']).next().unwrap_or_default();
    let parts = parts(word);
    let Some(last) = parts.last() else { return false };
    if HARMLESS.iter().any(|end| last.ends_with(end)) {
        return false;
    }
    // `.env.production` is one, too. A name alone may be that of something else.
    let env = last.strip_prefix(".env").is_some_and(|rest| rest.starts_with('.'));
    let private = ["/environ", "/mem"].iter().any(|end| word.ends_with(end))
        && parts.first() == Some(&"proc");
    let named = NAMES.contains(last) && (last.contains('.') || parts.len() > 1);
    named || env || private || ENDS.iter().any(|end| parts.ends_with(end)) && parts.len() > 1
}

/// The parts of a path, without those that change nothing and those that are taken back.
pub(super) fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_credentials_are_known_however_their_path_is_written() {
        for text in [
            "~/.ssh/id_rsa",
            "/home/a/.ssh/../.ssh/./id_ed25519",
            "../../../../etc/shadow",
            "file:///etc/passwd",
            "C:\\Users\\a\\.aws\\credentials",
            "/app/.env",
            ".env.production",
            "cat ~/.netrc | head",
            "@/etc/passwd",
            "/proc/self/environ",
        ] {
            assert!(names_one(text), "{text}");
        }
    }

    #[test]
    fn samples_public_keys_and_other_files_are_not() {
        for text in [
            "~/.ssh/id_rsa.pub",
            ".env.example",
            "src/environment.rs",
            "/etc/hosts",
            "docs/passwd.md",
            "the password of id_rsa",
            "process.env",
            "config",
            "a".repeat(LONGEST + 1).as_str(),
        ] {
            assert!(!names_one(text), "{text}");
        }
    }
}
