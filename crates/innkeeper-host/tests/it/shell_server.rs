//! A server in shell code that sends exactly the given bytes.

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

/// The responses and actions of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShellServer<'a> {
    pub(crate) initialize_result: &'a str,
    pub(crate) tools_result: &'a str,
    pub(crate) call_result: &'a str,
    /// Shell code that runs before the response to a list request; an empty `$result` makes the
    /// response an error with `$code`.
    pub(crate) on_list: &'a str,
    /// Shell code that runs before the response to a call.
    pub(crate) on_call: &'a str,
}

impl Default for ShellServer<'_> {
    fn default() -> Self {
        Self {
            initialize_result: concat!(
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"#,
                r#""serverInfo":{"name":"sh","version":"1"}}"#
            ),
            tools_result: r#"{"tools":[{"name":"any","inputSchema":{"type":"object"}}]}"#,
            call_result: r#"{"content":[]}"#,
            on_list: "",
            on_call: "",
        }
    }
}

impl ShellServer<'_> {
    /// The configuration entry of this server.
    pub(crate) fn config_entry(&self) -> Value {
        let env = json!({
            "INITIALIZED": self.initialize_result,
            "TOOLS": self.tools_result,
            "RESULT": self.call_result,
            "ON_LIST": self.on_list,
            "ON_CALL": self.on_call,
        });
        json!({"command": "sh", "args": ["-c", SCRIPT], "env": env})
    }

    /// A configuration file with this server as `sh`.
    pub(crate) fn config_json(&self) -> Value {
        json!({"servers": {"sh": self.config_entry()}})
    }
}
