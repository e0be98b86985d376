//! Tests of the variables that reach a real child process.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use innkeeper_config::{Environment, InheritedEnvironment};

use super::super::child_environment;
use super::*;

const BASIC: &str = "HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR TZ USER";

const STANDARD: &str = "ALL_PROXY CURL_CA_BUNDLE HTTPS_PROXY HTTP_PROXY LC_CTYPE LC_MESSAGES \
    LC_TIME NODE_EXTRA_CA_CERTS NO_PROXY REQUESTS_CA_BUNDLE SSL_CERT_DIR SSL_CERT_FILE \
    XDG_CACHE_HOME XDG_CONFIG_DIRS XDG_CONFIG_HOME XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR \
    XDG_STATE_HOME all_proxy http_proxy https_proxy no_proxy";

const NODE_SETTINGS: &str = "NPM_CONFIG_CAFILE npm_config_registry";

const PYTHON_SETTINGS: &str = "PIPX_HOME PIP_CERT PIP_INDEX_URL UV_INDEX_URL UV_SYSTEM_CERTS";

/// Variables that no server inherits unless it inherits all.
const OTHERS: &str = "AWS_SECRET_ACCESS_KEY GITHUB_TOKEN LD_PRELOAD NODE_OPTIONS PYTHONPATH \
    SSH_AUTH_SOCK XDG_SESSION_ID UV_PUBLISH_TOKEN UV_INDEX_A_PASSWORD PIP_CLIENT_SECRET \
    npm_config__authToken npm_config_key npm_config_node_options LCX SSL_CERT";

fn words(lists: &[&str]) -> BTreeSet<String> {
    lists.iter().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect()
}

/// Returns the names of the variables that reach a child of a shell with all variables above.
async fn inherited_names(command: &str, inherited: InheritedEnvironment) -> BTreeSet<String> {
    let all = words(&[BASIC, STANDARD, NODE_SETTINGS, PYTHON_SETTINGS, OTHERS]);
    let parent = Environment::from_pairs(all.iter().map(|name| (name, format!("v-{name}"))));
    let tag = ProcessTag::new();
    let mut launch = tag.program("/usr/bin/env", &["-0"]);
    launch.env = child_environment(&parent, inherited, command, &IndexMap::new()).unwrap();
    let (_process, mut pipes) = spawn(&launch, &shim(), None).await.unwrap();
    let output = read_output(&mut pipes).await;
    let pairs = output.split_terminator('\0').map(|pair| pair.split_once('=').unwrap());
    let pairs = pairs.filter(|(name, _)| *name != "INNKEEPER_TREE");
    let check = |(name, value): (&str, &str)| {
        assert_eq!(value, format!("v-{name}"));
        name.to_owned()
    };
    pairs.map(check).collect()
}

#[tokio::test]
async fn each_listed_variable_reaches_a_child_and_no_other() {
    let standard = InheritedEnvironment::Standard;
    for (command, settings) in [
        ("notes-server", ""),
        ("/opt/node/bin/npx", NODE_SETTINGS),
        ("uvx", PYTHON_SETTINGS),
        ("pipx", PYTHON_SETTINGS),
    ] {
        let expected = words(&[BASIC, STANDARD, settings]);
        assert_eq!(inherited_names(command, standard).await, expected, "{command}");
    }
}

#[tokio::test]
async fn a_strict_environment_has_the_basic_variables_only_and_a_complete_one_has_all() {
    for command in ["notes-server", "uvx"] {
        let strict = inherited_names(command, InheritedEnvironment::Strict).await;
        assert_eq!(strict, words(&[BASIC]));
        let complete = inherited_names(command, InheritedEnvironment::Complete).await;
        let all = words(&[BASIC, STANDARD, NODE_SETTINGS, PYTHON_SETTINGS, OTHERS]);
        assert_eq!(complete, all);
    }
}
