//! The echo server, with prepared responses so that the server is never the bottleneck.

use crate::json_scan::{find_member, members, parse_digits};

/// Numbers of listed tools, prompts and resources.
const LISTED_ITEMS: [usize; 3] = [10, 3, 3];
/// Maximum value of the `bytes` argument.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// A server with the tool `echo`, which returns its `message`, or `bytes` bytes of text.
#[derive(Debug)]
pub struct EchoServer {
    tools: String,
    prompts: String,
    resources: String,
    text: Vec<u8>,
}

impl Default for EchoServer {
    fn default() -> Self {
        Self::new()
    }
}

impl EchoServer {
    /// Prepares every response that does not depend on the request.
    pub fn new() -> Self {
        let tool = |n: usize| {
            let name = if n == 0 { "echo".to_owned() } else { format!("echo_{n}") };
            format!(
                concat!(
                    r#"{{"name":"{name}","description":"Answers with the text it was sent ({n})","#,
                    r#""inputSchema":{{"type":"object","properties":{{"#,
                    r#""message":{{"type":"string","description":"The text to send back"}},"#,
                    r#""bytes":{{"type":"integer","minimum":0,"maximum":16777216}},"#,
                    r#""labels":{{"type":"array","items":{{"type":"string"}},"maxItems":8}}}},"#,
                    r#""required":["message"],"additionalProperties":false}}}}"#
                ),
                name = name,
                n = n
            )
        };
        let prompt =
            |n: usize| format!(r#"{{"name":"prompt_{n}","arguments":[{{"name":"about"}}]}}"#);
        let resource = |n: usize| format!(r#"{{"uri":"echo://text/{n}","name":"text_{n}"}}"#);
        Self {
            tools: list_result("tools", LISTED_ITEMS[0], tool),
            prompts: list_result("prompts", LISTED_ITEMS[1], prompt),
            resources: list_result("resources", LISTED_ITEMS[2], resource),
            text: Vec::new(),
        }
    }

    /// Appends the response to one line, with its newline; a notification has no response.
    pub fn respond(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let (mut id, mut method, mut params) = (None, &b""[..], &b"{}"[..]);
        for (key, value) in members(line) {
            match key {
                b"id" => id = Some(value),
                b"method" => method = value,
                b"params" => params = value,
                _ => {}
            }
        }
        let Some(id) = id.filter(|_| !method.is_empty()) else { return };
        if method == br#""tools/call""# {
            notify_progress(params, out);
        }
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id);
        match method {
            br#""tools/call""# => self.respond_to_call(params, out),
            br#""initialize""# => initialize_result(params, out),
            br#""tools/list""# => text_result(&self.tools, out),
            br#""prompts/list""# => text_result(&self.prompts, out),
            br#""resources/list""# => text_result(&self.resources, out),
            br#""resources/templates/list""# => text_result(r#"{"resourceTemplates":[]}"#, out),
            br#""ping""# => text_result("{}", out),
            _ => out.extend_from_slice(br#","error":{"code":-32601,"message":"unknown method"}"#),
        }
        out.extend_from_slice(b"}\n");
    }

    fn respond_to_call(&mut self, params: &[u8], out: &mut Vec<u8>) {
        let arguments = find_member(params, b"arguments").unwrap_or(b"{}");
        let (mut message, mut bytes) = (&b"\"\""[..], 0);
        for (key, value) in members(arguments) {
            match key {
                b"message" => message = value,
                b"bytes" => bytes = parse_digits(value).min(MAX_TEXT_BYTES),
                _ => {}
            }
        }
        out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
        if bytes == 0 {
            out.extend_from_slice(message);
        } else {
            if self.text.len() != bytes + 2 {
                self.text =
                    serde_json::to_vec(&crate::workload::message_text(bytes)).unwrap_or_default();
            }
            out.extend_from_slice(&self.text);
        }
        out.extend_from_slice(br#"}],"isError":false}"#);
    }
}

/// Sends progress for a call of the tool `echo_1` with a progress token.
fn notify_progress(params: &[u8], out: &mut Vec<u8>) {
    let meta = find_member(params, b"_meta").unwrap_or(b"{}");
    let Some(token) = find_member(meta, b"progressToken") else { return };
    if find_member(params, b"name") == Some(br#""echo_1""#) {
        out.extend_from_slice(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#,
        );
        out.extend_from_slice(token);
        out.extend_from_slice(b",\"progress\":1}}\n");
    }
}

fn list_result(kind: &str, count: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    format!(r#"{{"{kind}":[{}]}}"#, items.join(","))
}

fn initialize_result(params: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#","result":{"protocolVersion":"#);
    out.extend_from_slice(find_member(params, b"protocolVersion").unwrap_or(br#""2025-11-25""#));
    out.extend_from_slice(
        concat!(
            r#","capabilities":{"tools":{},"prompts":{},"resources":{}},"#,
            r#""serverInfo":{"name":"echo","version":"1"}}"#
        )
        .as_bytes(),
    );
}

fn text_result(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> serde_json::Value {
        let mut out = Vec::new();
        EchoServer::new().respond(line.as_bytes(), &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_echo_tool_returns_the_message_as_sent() {
        let answer = request(
            r#"{"method":"tools/call","params":{"name":"echo","arguments":{"message":"a\"b"}},"id":"x"}"#,
        );
        assert_eq!(answer["id"], "x");
        assert_eq!(answer["result"]["content"][0]["text"], "a\"b");
    }

    #[test]
    fn the_bytes_argument_decides_the_length_of_the_text() {
        let answer = request(
            r#"{"id":1,"method":"tools/call","params":{"arguments":{"message":"","bytes":1000}}}"#,
        );
        assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 1000);
    }

    #[test]
    fn the_lists_are_valid_json() {
        assert_eq!(
            request(r#"{"id":1,"method":"tools/list"}"#)["result"]["tools"]
                .as_array()
                .unwrap()
                .len(),
            10
        );
        assert_eq!(
            request(r#"{"id":1,"method":"prompts/list"}"#)["result"]["prompts"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
        assert_eq!(request(r#"{"id":1,"method":"nope"}"#)["error"]["code"], -32601);
    }

    #[test]
    fn one_tool_sends_progress_before_its_result_if_the_call_has_a_token() {
        let lines = |name: &str| {
            let mut out = Vec::new();
            let call = format!(
                r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}","_meta":{{"progressToken":7}}}}}}"#
            );
            EchoServer::new().respond(call.as_bytes(), &mut out);
            String::from_utf8(out).unwrap().lines().count()
        };
        assert_eq!((lines("echo_1"), lines("echo")), (2, 1));
    }

    #[test]
    fn a_notification_gets_no_response() {
        let mut out = Vec::new();
        EchoServer::new()
            .respond(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, &mut out);
        assert!(out.is_empty());
    }
}
