//! The result of a tool for an operator: texts, images of safe types, and the rest as JSON.

use serde_json::Value;
use serde_json::value::RawValue;

use super::html::{Html, ImageUrl, Name, html};

/// Maximum number of content blocks that are shown.
const MAX_BLOCKS: usize = 100;

/// Returns whether the tool itself reports a failure.
pub(super) fn is_error(result: &RawValue) -> bool {
    innkeeper_protocol::skim::member(result.get(), "isError") == Some("true")
}

pub(super) fn write(out: &mut Html, result: &RawValue) {
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let blocks =
        value.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    html!(out, "<h2>Result</h2>\n");
    if blocks.is_empty() {
        html!(out, "<p class=\"empty\">The result has no content.</p>");
    }
    for block in blocks.iter().take(MAX_BLOCKS) {
        write_block(out, block);
    }
    if let Some(more) = blocks.len().checked_sub(MAX_BLOCKS).filter(|more| *more > 0) {
        html!(out, "<p class=\"hint\">{} more blocks are not shown.</p>", more);
    }
    if let Some(structured) = value.get("structuredContent") {
        html!(out, "<h2>Structured content</h2>\n");
        write_json(out, structured);
    }
    html!(out, "<details><summary>Whole result</summary><pre>{}</pre></details>\n", result.get());
}

fn write_block(out: &mut Html, block: &Value) {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match (text("type"), text("text"), text("data")) {
        (Some("text"), Some(text), _) => html!(
            out,
            "<pre class=\"result\" tabindex=\"0\" role=\"region\" aria-label=\"Text\">{}</pre>\n",
            text
        ),
        (Some("image"), _, Some(data)) => {
            let kind = text("mimeType").unwrap_or_default();
            match ImageUrl::new(kind, data) {
                Some(url) => html!(
                    out,
                    "<figure><img src=\"{}\" alt=\"Image of the result\"><figcaption>{}</figcaption>\
                     </figure>\n",
                    url,
                    Name(kind)
                ),
                None => html!(
                    out,
                    "<p class=\"hint\">An image of the type <code>{}</code> with {} characters of data \
                     is not shown.</p>\n",
                    Name(kind),
                    data.len()
                ),
            }
        }
        _ => write_json(out, block),
    }
}

fn write_json(out: &mut Html, value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    html!(
        out,
        "<pre class=\"result\" tabindex=\"0\" role=\"region\" aria-label=\"JSON\">{}</pre>\n",
        text
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(result: &Value) -> String {
        let mut out = Html::new();
        write(&mut out, &serde_json::value::to_raw_value(result).unwrap());
        out.into_string()
    }

    /// Attack: remote | a tool returns a script as text, as structured content, as a resource and as
    /// the type of an image | the page shows them as text | Foreign text stays text
    #[test]
    fn a_result_is_never_markup() {
        let script = "<script>alert(1)</script><img src=x onerror=alert(1)>";
        let page = page(&json!({
            "content": [
                {"type": "text", "text": script},
                {"type": "image", "mimeType": script, "data": script},
                {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zz4="},
                {"type": "resource", "resource": {"uri": script, "text": script}},
                {"type": script},
                script,
            ],
            "structuredContent": {script: script},
            "isError": script,
        }));
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(page.matches("&lt;script&gt;").count() >= 6, "{page}");
    }

    #[test]
    fn an_image_of_a_safe_type_is_a_data_url() {
        let page = page(&json!({
            "content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}],
        }));
        assert!(page.contains("<img src=\"data:image/png;base64,iVBORw0KGgo=\""), "{page}");
    }

    #[test]
    fn blocks_above_the_maximum_are_counted() {
        let block = json!({"type": "text", "text": "x"});
        let shown = page(&json!({ "content": vec![block.clone(); MAX_BLOCKS] }));
        assert!(!shown.contains("more blocks"));
        let cut = page(&json!({ "content": vec![block; MAX_BLOCKS + 1] }));
        assert!(cut.contains("1 more blocks are not shown"));
    }
}
