//! The server that an agent takes for its model.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum size of a request in bytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The end of a connection without a response, or in the middle of one.
#[derive(Debug, thiserror::Error)]
#[error("the connection was lost")]
pub(super) struct ConnectionLost;

/// The body of a response. After an error the connection ends.
pub(super) type ModelBody = UnsyncBoxBody<Bytes, ConnectionLost>;

/// A response, or the end of the connection.
pub(super) type ModelAnswer = Result<Response<ModelBody>, ConnectionLost>;

#[derive(Debug)]
pub(super) struct ModelRequest {
    pub(super) method: hyper::Method,
    /// The name of the provider whose base URL the agent used.
    pub(super) provider: String,
    /// The path at the provider, with the query.
    pub(super) path_and_query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What answers the requests of the agent.
pub(super) trait ModelSide: Send + Sync + 'static {
    fn respond(self: Arc<Self>, request: ModelRequest) -> BoxFuture<'static, ModelAnswer>;
}

/// A server on this machine. Its URLs have a random part, so that other users cannot use it.
#[derive(Debug)]
pub(super) struct ModelServer {
    listener: TcpListener,
    port: u16,
    token: String,
}

impl ModelServer {
    /// Listens on a free port.
    pub(super) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        // The keys of the hash are random numbers of the system.
        let numbers = [(); 2].map(|()| RandomState::new().build_hasher().finish());
        let token = numbers.map(|number| format!("{number:016x}")).concat();
        Ok(Self { listener, port, token })
    }

    /// Returns the base URL that stands for that of a provider, which has this path.
    pub(super) fn base_url(&self, provider: &str, path: &str) -> String {
        let path = path.trim_end_matches('/');
        format!("http://127.0.0.1:{}/{}/{provider}{path}", self.port, self.token)
    }

    /// Serves until the future is dropped.
    pub(super) async fn serve<S: ModelSide>(self, side: Arc<S>) -> Infallible {
        let token: Arc<str> = self.token.into();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, token.clone(), side.clone()));
                    }
                    // For example too many open files; the next accept may succeed.
                    Err(_) => tokio::task::yield_now().await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

async fn serve_connection<S: ModelSide>(stream: TcpStream, token: Arc<str>, side: Arc<S>) {
    // Small chunks leave at once; a failure of the option does no harm.
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request| respond(request, token.clone(), side.clone()));
    // The agent may close the connection at any time.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

async fn respond<S: ModelSide>(
    request: Request<Incoming>,
    token: Arc<str>,
    side: Arc<S>,
) -> ModelAnswer {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let rest = target.strip_prefix('/').and_then(|rest| rest.strip_prefix(&*token));
    let rest = rest.and_then(|rest| rest.strip_prefix('/'));
    let Some((provider, _)) = rest.map(|rest| rest.split_once('/').unwrap_or((rest, ""))) else {
        return Ok(error_response(StatusCode::NOT_FOUND, "this server is for another program"));
    };
    let path_and_query = rest.and_then(|rest| rest.strip_prefix(provider)).unwrap_or_default();
    let provider = provider.to_owned();
    let path_and_query = path_and_query.to_owned();
    let body = match Limited::new(body, MAX_REQUEST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            let text = format!("the request is longer than {} MiB", MAX_REQUEST_BYTES >> 20);
            return Ok(error_response(StatusCode::PAYLOAD_TOO_LARGE, &text));
        }
    };
    let method = head.method;
    let headers = head.headers;
    side.respond(ModelRequest { method, provider, path_and_query, headers, body }).await
}

/// Returns an error in a form that the libraries of all providers show.
pub(super) fn error_response(status: StatusCode, message: &str) -> Response<ModelBody> {
    let body = json!({"type": "error", "error": {"type": "innkeeper", "message": message}});
    let body = Full::new(Bytes::from(body.to_string()));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn body_of(chunks: BoxStream<'static, Result<Bytes, ConnectionLost>>) -> ModelBody {
    StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))).boxed_unsync()
}
