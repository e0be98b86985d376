//! Detects paths of credential files in all notations (OWASP MCP01, MCP05).

const CREDENTIAL_FILE_NAMES: [&str; 22] = [
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

/// Endings of credential paths, by path component.
const CREDENTIAL_PATH_ENDINGS: [&[&str]; 18] = [
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

/// Suffixes of samples and public keys, which are not secret.
const HARMLESS_SUFFIXES: [&str; 7] =
    [".pub", ".example", ".sample", ".template", ".dist", ".defaults", ".md"];

/// Returns whether a word of the text is the path of a credential file.
pub(super) fn mentions_credential_file(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || "\"'`,;=()<>|&$".contains(c)).any(is_credential_file)
}

fn is_credential_file(path: &str) -> bool {
    let path = path.strip_prefix('@').unwrap_or(path).to_ascii_lowercase();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let components = path_components(path);
    let Some(last) = components.last() else { return false };
    if HARMLESS_SUFFIXES.iter().any(|suffix| last.ends_with(suffix)) {
        return false;
    }
    // `.env.production` counts too. A bare name may have another meaning.
    let env = last.strip_prefix(".env").is_some_and(|rest| rest.starts_with('.'));
    let private = ["/environ", "/mem"].iter().any(|suffix| path.ends_with(suffix))
        && components.first() == Some(&"proc");
    let is_known_file =
        CREDENTIAL_FILE_NAMES.contains(last) && (last.contains('.') || components.len() > 1);
    is_known_file
        || env
        || private
        || CREDENTIAL_PATH_ENDINGS.iter().any(|ending| components.ends_with(ending))
}

/// Returns the components of a path, without `.` and without components that `..` removes.
pub(super) fn path_components(path: &str) -> Vec<&str> {
    let mut components = Vec::new();
    for component in path.split(['/', '\\']) {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            other => components.push(other),
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: data | the path of a credential file with `..`, as a URL, with back-slashes or
    /// inside a command | the guard recognizes the file | Complete checks
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
            &format!("/a{}/etc/shadow", "/x/..".repeat(2_000)),
        ] {
            assert!(mentions_credential_file(text), "{text}");
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
        ] {
            assert!(!mentions_credential_file(text), "{text}");
        }
    }
}
