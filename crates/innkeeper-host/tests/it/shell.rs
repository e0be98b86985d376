//! A server of a few lines of shell: what it sends is exactly what a test wrote.

use serde_json::{Value, json};

const SCRIPT: &str = r#"
while IFS= read -r line; do
    id=$${line#*\"id\":}
    id=$${id%%,*}
    code=-32601
    case $line in
        *'"method":"initialize"'*) result=$INITIALIZED ;;
        *'"method":"tools/list"'*) result=$TOOLS; eval "$ON_LIST" ;;
        *'"method":"tools/call"'*) result=$RESULT; eval "$ON_CALL" ;;
        *) result= ;;
    esac
    case $line in
        *'"id":'*) ;;
        *) continue ;;
    esac
    if [ -n "$result" ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    else
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"no"}}\n' "$id" "$code"
    fi
done
"#;

/// What it answers and does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shell<'a> {
    /// The result of `initialize`.
    pub(crate) initialized: &'a str,
    /// The result of `tools/list`.
    pub(crate) tools: &'a str,
    /// The result of `tools/call`.
    pub(crate) result: &'a str,
    /// Shell code that runs before a list is answered; an empty `$result` makes it the
    /// error of `$code`.
    pub(crate) on_list: &'a str,
    /// Shell code that runs before a call is answered.
    pub(crate) on_call: &'a str,
}

impl Default for Shell<'_> {
    fn default() -> Self {
        Self {
            initialized: concat!(
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"#,
                r#""serverInfo":{"name":"sh","version":"1"}}"#
            ),
            tools: r#"{"tools":[{"name":"any","inputSchema":{"type":"object"}}]}"#,
            result: r#"{"content":[]}"#,
            on_list: "",
            on_call: "",
        }
    }
}

impl Shell<'_> {
    /// Its entry of a configuration file.
    pub(crate) fn entry(&self) -> Value {
        let env = json!({
            "INITIALIZED": self.initialized,
            "TOOLS": self.tools,
            "RESULT": self.result,
            "ON_LIST": self.on_list,
            "ON_CALL": self.on_call,
        });
        json!({"command": "sh", "args": ["-c", SCRIPT], "env": env})
    }

    /// The configuration file with this server alone, called `sh`.
    pub(crate) fn file(&self) -> Value {
        json!({"servers": {"sh": self.entry()}})
    }
}
