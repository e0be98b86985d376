//! The HTTP server of the scripted model.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::body::{HttpResponse, OutgoingResponse};
use super::issued_calls::IssuedCalls;
use super::request_log::RequestLog;
use super::route;
use super::script::{BodyEnding, Script, ScriptedReply};
use crate::remote::tasks::ServerTasks;

/// Maximum size of a request body in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;

/// The state of a running scripted model, shared by its connections.
#[derive(Debug)]
pub(super) struct ServerState {
    origin: String,
    script: Script,
    remaining: Mutex<RemainingReplies>,
    issued_calls: IssuedCalls,
    log: RequestLog,
    tasks: ServerTasks,
}

/// The unused replies, and the number of used replies.
#[derive(Debug)]
struct RemainingReplies {
    replies: VecDeque<ScriptedReply>,
    used_count: usize,
}

impl ServerState {
    pub(super) async fn start(mut script: Script) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let replies = std::mem::take(&mut script.replies).into();
        let served = Arc::new(Self {
            origin,
            script,
            remaining: Mutex::new(RemainingReplies { replies, used_count: 0 }),
            issued_calls: IssuedCalls::default(),
            log: RequestLog::new(),
            tasks: ServerTasks::default(),
        });
        served.tasks.spawn(accept_connections(Arc::clone(&served), listener));
        Ok(served)
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn issued_calls(&self) -> &IssuedCalls {
        &self.issued_calls
    }

    pub(super) fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Returns the number of the request, starting at one, and the next reply, if the script has
    /// one.
    pub(super) fn next_reply(&self) -> (usize, Option<ScriptedReply>) {
        let mut remaining = self.lock_remaining();
        remaining.used_count += 1;
        let reply = remaining.replies.pop_front();
        (remaining.used_count, reply.or_else(|| self.script.repeated_reply.clone()))
    }

    pub(super) fn remaining_replies(&self) -> usize {
        self.lock_remaining().replies.len()
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
    }

    pub(super) async fn join(&self) {
        self.tasks.join().await;
    }

    fn lock_remaining(&self) -> MutexGuard<'_, RemainingReplies> {
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections until the server stops.
async fn accept_connections(served: Arc<ServerState>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small chunks leave at once; a failure of the option does no harm.
                let _ = stream.set_nodelay(true);
                served.tasks.spawn(serve_connection(Arc::clone(&served), stream));
            }
            // For example too many open descriptors; the next accept may succeed.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn serve_connection(served: Arc<ServerState>, stream: TcpStream) {
    let service = service_fn(|request| respond(&served, request));
    // A disconnect by the client or by the script is not an error.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    served: &ServerState,
    request: Request<Incoming>,
) -> Result<HttpResponse, Infallible> {
    let (head, body) = request.into_parts();
    let (text, fits) = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(body) => (body.to_bytes(), true),
        Err(_) => (bytes::Bytes::new(), false),
    };
    let number = served.log.add(&head, &text);
    let (outgoing, headers, ending) = match fits {
        true => route::route(served, &head, &text),
        false => (OutgoingResponse::json(413, "{}"), Vec::new(), BodyEnding::Complete),
    };
    if ending == BodyEnding::NeverRespond {
        return std::future::pending().await;
    }
    served.log.record_status(number, outgoing.status);
    Ok(outgoing.into_http(&headers, ending, &served.tasks))
}
