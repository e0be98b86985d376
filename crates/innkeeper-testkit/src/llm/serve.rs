//! Listening, and what becomes of each request.

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

use super::body::{Outgoing, Reply};
use super::memory::Memory;
use super::route;
use super::script::{Ending, Script, Step};
use super::seen::Log;
use crate::remote::tasks::Tasks;

/// Bytes a request's body may have, so that none fills the memory.
const LONGEST_BODY: usize = 256 * 1024 * 1024;

/// A running scripted model, shared by its connections.
#[derive(Debug)]
pub(super) struct Served {
    origin: String,
    script: Script,
    left: Mutex<Left>,
    memory: Memory,
    log: Log,
    tasks: Tasks,
}

/// The steps to come, and how many were used.
#[derive(Debug)]
struct Left {
    steps: VecDeque<Step>,
    used: usize,
}

impl Served {
    pub(super) async fn start(mut script: Script) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let steps = std::mem::take(&mut script.steps).into();
        let served = Arc::new(Self {
            origin,
            script,
            left: Mutex::new(Left { steps, used: 0 }),
            memory: Memory::default(),
            log: Log::new(),
            tasks: Tasks::default(),
        });
        served.tasks.spawn(accept(Arc::clone(&served), listener));
        Ok(served)
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// The next step and its number from one; the number alone where the script has run out.
    pub(super) fn next(&self) -> (usize, Option<Step>) {
        let mut left = self.left();
        left.used += 1;
        let step = left.steps.pop_front();
        (left.used, step.or_else(|| self.script.last.clone()))
    }

    pub(super) fn steps_left(&self) -> usize {
        self.left().steps.len()
    }

    pub(super) fn stop(&self) {
        self.tasks.stop();
    }

    pub(super) async fn ended(&self) {
        self.tasks.ended().await;
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves every connection until it is stopped.
async fn accept(served: Arc<Served>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small pieces are to leave at once; without that they leave all the same.
                drop(stream.set_nodelay(true));
                served.tasks.spawn(connection(Arc::clone(&served), stream));
            }
            // Out of descriptors, for one: others may become free.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn connection(served: Arc<Served>, stream: TcpStream) {
    let service = service_fn(|request| answer(&served, request));
    // A client that goes away, or that a script has broken off with, is no failure.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn answer(served: &Served, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let (head, body) = request.into_parts();
    let (text, fits) = match Limited::new(body, LONGEST_BODY).collect().await {
        Ok(body) => (body.to_bytes(), true),
        Err(_) => (bytes::Bytes::new(), false),
    };
    let number = served.log.add(&head, &text);
    let (outgoing, headers, ending) = match fits {
        true => route::answer(served, &head, &text),
        false => (Outgoing::json(413, "{}"), Vec::new(), Ending::Whole),
    };
    if ending == Ending::Hangs {
        return std::future::pending().await;
    }
    served.log.answered(number, outgoing.status);
    Ok(outgoing.reply(&headers, ending, &served.tasks))
}
