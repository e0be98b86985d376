//! Variables that name code, or a command, for another program to run.

/// How their names begin: the dynamic loaders of Unix systems.
const PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// The others. Search paths (`PATH`, `PYTHONPATH`) and addresses (proxies, registries) are not among
/// them, nor is `ENV`, which only shells with a terminal read: configurations need them every day.
const NAMES: [&str; 24] = [
    "NODE_OPTIONS",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_SCRIPT_SHELL",
    "NPM_CONFIG_SHELL",
    "BUN_OPTIONS",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONBREAKPOINT",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "BASH_ENV",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER_PATH",
    "COR_PROFILER_PATH",
    "GCONV_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
];

/// Whether a variable of this name does that. Case does not count, as on Windows and for npm.
pub(super) fn is_loader(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_and_hooks_of_runtimes_count_and_search_paths_and_addresses_do_not() {
        for name in ["LD_PRELOAD", "ld_audit", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "BASH_ENV"]
        {
            assert!(is_loader(name), "{name}");
        }
        assert!(is_loader("npm_config_node_options"));
        for name in ["PATH", "PYTHONPATH", "HTTPS_PROXY", "LANG", "OLD_LD_PRELOAD", "ENV"] {
            assert!(!is_loader(name), "{name}");
        }
    }
}
