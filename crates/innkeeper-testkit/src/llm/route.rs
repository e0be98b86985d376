//! The routing of requests to model lists, rejections and scripted replies.

use bytes::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, RequestTarget};
use super::body::OutgoingResponse;
use super::response::{CREATED_AT, FinishReason, ModelResponse};
use super::script::{BodyEnding, ModelReply, ReplyKind, Script};
use super::server::ServerState;

/// A response with additional headers and the ending of its body.
type RoutedResponse = (OutgoingResponse, Vec<(String, String)>, BodyEnding);

pub(super) fn route(served: &ServerState, head: &Parts, text: &Bytes) -> RoutedResponse {
    let plain = |outgoing| (outgoing, Vec::new(), BodyEnding::Complete);
    let path = head.uri.path();
    if head.method == hyper::Method::GET {
        return plain(server_info(served.script(), path));
    }
    let Some(target) =
        RequestTarget::from_path(path).filter(|_| head.method == hyper::Method::POST)
    else {
        return plain(not_found(path));
    };
    let api = target.api;
    let Ok(body) = serde_json::from_slice::<Value>(text) else {
        return plain(bad_request(api, &BadRequest::new("the body is no JSON")));
    };
    if let Err(rejection) = (api.validate)(&body, served.issued_calls()) {
        return plain(bad_request(api, &rejection));
    }
    let (number, reply) = served.next_reply();
    let Some(reply) = reply else {
        let message = format!("the script has no step for request {number}");
        return plain(error_response(api, 500, None, &message));
    };
    let outgoing = match reply.kind {
        ReplyKind::Raw { status, content_type, bytes } => {
            let streams = !content_type.starts_with("application/json");
            apply_chunking(
                served,
                OutgoingResponse { status, content_type, chunks: vec![bytes], streams },
            )
        }
        ReplyKind::Error { status, code, message } => {
            error_response(api, status, code.as_deref(), &message)
        }
        ReplyKind::Model(model_reply) => {
            model_response(served, &target, &model_reply, number, text, &body)
        }
    };
    (outgoing, reply.headers, reply.ending)
}

fn model_response(
    served: &ServerState,
    target: &RequestTarget,
    model_reply: &ModelReply,
    number: usize,
    text: &Bytes,
    body: &Value,
) -> OutgoingResponse {
    let api = target.api;
    let model = target.model.as_deref().or_else(|| body["model"].as_str()).unwrap_or_default();
    let tool_names = (api.tool_names)(body);
    let mut response =
        ModelResponse::new(model_reply, number, api.id_prefix, model, text, &tool_names);
    response.includes_usage = body["stream_options"]["include_usage"] == true;
    if response.finish_reason != FinishReason::Length
        && let (Some(unreadable), Some(call)) = (api.parse_failure, response.malformed_call())
    {
        return error_response(api, 500, None, &unreadable(call));
    }
    let streams =
        target.streams.or_else(|| body["stream"].as_bool()).unwrap_or(api.stream.is_default);
    if !streams && let Some(message) = &response.error {
        return error_response(api, 500, None, message);
    }
    served.issued_calls().record(&response);
    if !streams {
        return OutgoingResponse::json(200, response.to_json_text(&(api.response_body)(&response)));
    }
    let chunks = (api.stream.chunks)(&response).into_iter().map(Bytes::from).collect();
    let content_type = api.stream.content_type.to_owned();
    apply_chunking(served, OutgoingResponse { status: 200, content_type, chunks, streams })
}

/// Applies the chunk size of the script.
fn apply_chunking(served: &ServerState, outgoing: OutgoingResponse) -> OutgoingResponse {
    match served.script().chunk_bytes.filter(|_| outgoing.streams) {
        Some(bytes) => outgoing.rechunk(bytes),
        None => outgoing,
    }
}

fn bad_request(api: &ApiSpec, rejection: &BadRequest) -> OutgoingResponse {
    let body = (api.error_body)(400, rejection.code, rejection);
    OutgoingResponse::json(400, body.to_string())
}

fn error_response(
    api: &ApiSpec,
    status: u16,
    code: Option<&str>,
    message: &str,
) -> OutgoingResponse {
    let body = (api.error_body)(status, code, &BadRequest::new(message));
    OutgoingResponse::json(status, body.to_string())
}

fn not_found(path: &str) -> OutgoingResponse {
    let error = json!({"error": {"message": format!("there is nothing at `{path}`")}});
    OutgoingResponse::json(404, error.to_string())
}

/// The server information of llama.cpp and Ollama.
fn server_info(script: &Script, path: &str) -> OutgoingResponse {
    let names = &script.models;
    let body = match path {
        "/props" => match &script.props {
            Some(props) => props.clone(),
            None => return not_found(path),
        },
        "/api/tags" => {
            let models = names.iter().map(|name| {
                json!({
                    "name": name, "model": name, "modified_at": "2026-11-18T00:00:00Z",
                    "size": 1, "digest": "0", "details": {"format": "gguf", "family": "scripted"},
                })
            });
            json!({"models": models.collect::<Vec<_>>()})
        }
        _ if path.ends_with("/models") => {
            let models = names.iter().map(|name| json!({"id": name, "object": "model", "created": CREATED_AT, "owned_by": "scripted"}));
            json!({"object": "list", "data": models.collect::<Vec<_>>()})
        }
        _ => return not_found(path),
    };
    OutgoingResponse::json(200, body.to_string())
}
