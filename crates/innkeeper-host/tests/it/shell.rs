//! A server of a few lines of shell: what it sends is exactly what a test wrote.

use serde_json::{Value, json};

const SCRIPT: &str = r#"
heard=null
while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%,*}
    case $line in
        *'"method":"initialize"'*) result=$INITIALIZED ;;
        *'"method":"tools/list"'*) result=$TOOLS ;;
        *'"method":"tools/call"'*)
            printf '%s' "$BEFORE"
            if [ "$LISTENS" = yes ]; then IFS= read -r heard; fi
            result=${RESULT%\}}
            if [ "$LISTENS" = yes ]; then result="$result,\"heard\":$heard"; fi
            result="$result}" ;;
        *'"id":'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"
            continue ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// The texts it answers with.
#[derive(Debug)]
pub(crate) struct Shell<'a> {
    /// The result of `initialize`.
    pub(crate) initialized: &'a str,
    /// The result of `tools/list`.
    pub(crate) tools: &'a str,
    /// The result of `tools/call`.
    pub(crate) result: &'a str,
    pub(crate) steps: Steps<'a>,
}

/// What it does between a call and its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps<'a> {
    /// What it sends before the answer.
    pub(crate) before_result: &'a str,
    /// Whether it then reads a line, which the result has as `heard`.
    pub(crate) listens: bool,
}

impl Default for Shell<'_> {
    fn default() -> Self {
        Self {
            initialized: concat!(
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"#,
                r#""serverInfo":{"name":"sh","version":"1"}}"#
            ),
            tools: r#"{"tools":[{"name":"any","inputSchema":{"type":"object"}}]}"#,
            result: r#"{"content":[]}"#,
            steps: Steps::default(),
        }
    }
}

impl Shell<'_> {
    /// The configuration file with this server alone.
    pub(crate) fn file(&self, name: &str) -> Value {
        let env = json!({
            "INITIALIZED": self.initialized,
            "TOOLS": self.tools,
            "RESULT": self.result,
            "BEFORE": self.steps.before_result,
            "LISTENS": if self.steps.listens { "yes" } else { "no" },
        });
        json!({"servers": {name: {"command": "sh", "args": ["-c", SCRIPT], "env": env}}})
    }
}
