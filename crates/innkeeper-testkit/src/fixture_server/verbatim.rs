//! Results that contain received bytes, for values that a JSON tree cannot represent without loss.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::server::FixtureServer;

/// A tool call with the bytes of its arguments.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Arguments that ask for a result with the JSON in a string.
#[derive(Deserialize)]
struct WantedResult {
    result: String,
}

impl FixtureServer {
    /// Responds to a tool call with the bytes of its arguments; returns whether the line was a call.
    pub(super) fn echo_verbatim(&mut self, line: &[u8]) -> bool {
        let Ok(call) = serde_json::from_slice::<Call<'_>>(line) else { return false };
        if call.method != "tools/call" {
            return false;
        }
        let arguments = call.params.arguments.get();
        let wanted = serde_json::from_str(arguments);
        let result = wanted.map_or_else(|_| arguments.into(), |WantedResult { result }| result);
        let id = call.id;
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"resultType\":\"complete\",\
             \"sent\":{result}}}}}"
        );
        self.stdout.write_response(text.as_bytes());
        true
    }
}
