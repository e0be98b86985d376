//! Environment variables that load code or commands into programs.

/// Name prefixes of the dynamic loaders of Unix systems.
const LOADER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// Other variables that load code. Search paths (`PATH`, `PYTHONPATH`) and addresses (proxies,
/// registries) are excluded, as is `ENV`, which only interactive shells read: configurations often
/// need them.
const LOADER_NAMES: [&str; 24] = [
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

/// Returns whether a variable of this name loads code. Case is ignored, as on Windows and in npm.
pub(super) fn is_code_loading(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    LOADER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || LOADER_NAMES.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_and_hooks_of_runtimes_count_and_search_paths_and_addresses_do_not() {
        for name in ["LD_PRELOAD", "ld_audit", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "BASH_ENV"]
        {
            assert!(is_code_loading(name), "{name}");
        }
        assert!(is_code_loading("npm_config_node_options"));
        for name in ["PATH", "PYTHONPATH", "HTTPS_PROXY", "LANG", "OLD_LD_PRELOAD", "ENV"] {
            assert!(!is_code_loading(name), "{name}");
        }
    }
}
