//! The attributes that spans of clients and of servers share.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

use innkeeper_protocol::method;
use opentelemetry::KeyValue;

/// The name and the attributes of a request, from its method and its item.
#[derive(Debug)]
pub(super) struct Operation {
    /// The span name. Contains no URI: the number of URIs is unlimited.
    pub(super) name: String,
    pub(super) method: KeyValue,
    /// The attributes of a tool or a prompt.
    pub(super) item: Vec<KeyValue>,
    /// The URI of a resource, for spans only.
    pub(super) uri: Option<KeyValue>,
}

impl Operation {
    /// An empty item has no attribute.
    pub(super) fn new(method: Cow<'static, str>, item: &str) -> Self {
        let named =
            || if item.is_empty() { method.to_string() } else { format!("{method} {item}") };
        let attribute = |key| (!item.is_empty()).then(|| KeyValue::new(key, item.to_owned()));
        let (name, item, uri) = match &*method {
            method::TOOLS_CALL => {
                let operation = KeyValue::new("gen_ai.operation.name", "execute_tool");
                let tool = attribute("gen_ai.tool.name");
                (named(), std::iter::once(operation).chain(tool).collect(), None)
            }
            method::PROMPTS_GET => {
                (named(), attribute("gen_ai.prompt.name").into_iter().collect(), None)
            }
            method::RESOURCES_READ
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE => {
                (method.to_string(), Vec::new(), attribute("mcp.resource.uri"))
            }
            _ => (method.to_string(), Vec::new(), None),
        };
        Self { name, method: KeyValue::new("mcp.method.name", method), item, uri }
    }
}

/// Returns the attributes of a JSON-RPC error.
pub(super) fn code_attributes(code: i64) -> [KeyValue; 2] {
    let code: Arc<str> = code.to_string().into();
    [KeyValue::new("error.type", code.clone()), KeyValue::new("rpc.response.status_code", code)]
}

/// The error codes that JSON-RPC and MCP define or reserve. Other codes have unlimited values.
const RESERVED_ERROR_CODES: RangeInclusive<i64> = -32768..=-32000;

/// Returns the metric attributes without values of a server that would create a new time series.
/// `code` is the code of a JSON-RPC error.
pub(super) fn metric_attributes(attributes: &[KeyValue], code: Option<i64>) -> Cow<'_, [KeyValue]> {
    if code.is_none_or(|code| RESERVED_ERROR_CODES.contains(&code)) {
        return Cow::Borrowed(attributes);
    }
    let retained =
        attributes.iter().filter(|attribute| attribute.key.as_str() != "rpc.response.status_code");
    let renamed = retained.cloned().map(|mut attribute| {
        if attribute.key.as_str() == "error.type" {
            attribute.value = "_OTHER".into();
        }
        attribute
    });
    renamed.collect::<Vec<_>>().into()
}
