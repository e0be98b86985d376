//! Package runners, and their settings that a server inherits, without secrets.

use std::ffi::OsStr;
use std::path::Path;

/// The settings of one family of package runners.
struct RunnerSettings {
    programs: &'static [&'static str],
    /// Prefixes of the variables, in upper case.
    prefixes: &'static [&'static str],
}

const RUNNERS: [RunnerSettings; 2] = [
    RunnerSettings {
        programs: &["npx", "npm", "pnpx", "pnpm", "bunx", "bun"],
        // npm ignores the case of its variables.
        prefixes: &["NPM_CONFIG_"],
    },
    RunnerSettings { programs: &["uvx", "uv", "pipx"], prefixes: &["UV_", "PIP_", "PIPX_"] },
];

const SECRET_PARTS: [&str; 8] =
    ["TOKEN", "PASSWORD", "PASSWD", "SECRET", "AUTH", "CREDENTIAL", "OTP", "USERNAME"];

/// Settings that load code into a program.
const CODE_LOADING_SETTINGS: [&str; 3] =
    ["NPM_CONFIG_NODE_OPTIONS", "NPM_CONFIG_SCRIPT_SHELL", "NPM_CONFIG_SHELL"];

/// Returns whether a command is the name of a package runner, without a path.
pub fn is_package_runner(command: &str) -> bool {
    RUNNERS.iter().any(|runner| runner.programs.contains(&command))
}

/// Returns whether `command` inherits this variable because it is a package runner and the variable
/// one of its settings. Excluded are settings whose name or value shows a secret, and settings that
/// load code.
pub(super) fn is_inherited(command: &str, name: &OsStr, value: &OsStr) -> bool {
    let program = Path::new(command).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let Some(runner) = RUNNERS.iter().find(|runner| runner.programs.contains(&program)) else {
        return false;
    };
    let Some(name) = name.to_str().map(str::to_ascii_uppercase) else { return false };
    runner.prefixes.iter().any(|prefix| name.starts_with(prefix))
        && !is_secret_name(&name)
        && !CODE_LOADING_SETTINGS.contains(&&*name)
        && value.to_str().is_some_and(|value| !has_user_information(value))
}

fn is_secret_name(name: &str) -> bool {
    // `_KEYRING_` names a program, not a key.
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("_KEY")
        || name.contains("_KEY_")
}

/// Returns whether a value has a URL with user information, which may contain a password. The
/// scheme of the URL may be absent or have a typo.
fn has_user_information(value: &str) -> bool {
    let words = value.split_whitespace();
    let mut parts = words.flat_map(|word| word.split(":/")).flat_map(|part| part.split("//"));
    parts.any(|part| {
        let authority = part.trim_start_matches('/').split('/').next().unwrap_or_default();
        authority.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inherits(command: &str, name: &str, value: &str) -> bool {
        is_inherited(command, OsStr::new(name), OsStr::new(value))
    }

    #[test]
    fn a_package_runner_inherits_its_own_settings_and_other_programs_do_not() {
        for (command, name) in [
            ("npx", "npm_config_registry"),
            ("/opt/node/bin/npx", "NPM_CONFIG_CAFILE"),
            ("uvx", "UV_INDEX_URL"),
            ("pipx", "PIP_INDEX_URL"),
            ("uv", "UV_KEYRING_PROVIDER"),
        ] {
            assert!(inherits(command, name, "https://a.example/x"), "{command} {name}");
            assert!(!inherits("node", name, "https://a.example/x"), "{name}");
        }
        assert!(!inherits("npx", "UV_INDEX_URL", "x") && !inherits("uvx", "npm_config_ca", "x"));
    }

    /// Attack: secrets | a setting of a package runner contains a token or a password, also in a
    /// URL | the runner does not inherit the setting | Secrets stay with their owner
    #[test]
    fn a_setting_with_a_secret_in_its_name_or_its_value_is_not_inherited() {
        for name in [
            "npm_config__auth",
            "npm_config_//a.example/:_authToken",
            "npm_config__password",
            "npm_config_key",
            "npm_config_key_file",
            "npm_config_otp",
            "npm_config_username",
        ] {
            assert!(!inherits("npx", name, "x"), "{name}");
        }
        for name in
            ["UV_PUBLISH_TOKEN", "UV_INDEX_A_PASSWORD", "PIP_CLIENT_SECRET", "UV_CREDENTIALS"]
        {
            assert!(!inherits("uvx", name, "x"), "{name}");
        }
        let two = "https://a.example/x https://ada:pw@b.example/x";
        for (value, expected) in [
            ("https://ada:pw@a.example/x", false),
            ("https://ada@a.example", false),
            (two, false),
            ("https://a.example/@scope", true),
            ("/home/ada/cache", true),
            ("ada:pw@a.example/x", false),
            ("//ada:pw@a.example/x", false),
            ("https:/ada:pw@a.example/x", false),
            ("a=https://ada:p?w@a.example", false),
            ("https://a.example/x ada:pw@b.example", false),
        ] {
            assert_eq!(inherits("uvx", "UV_EXTRA_INDEX_URL", value), expected, "{value}");
        }
    }

    /// Attack: secrets | a setting of a package runner names a script shell or Node.js options |
    /// the runner does not inherit the setting | Approval first
    #[test]
    fn a_setting_that_loads_code_is_not_inherited() {
        for name in ["npm_config_node_options", "NPM_CONFIG_SCRIPT_SHELL", "npm_config_shell"] {
            assert!(!inherits("npx", name, "x"), "{name}");
        }
    }
}
