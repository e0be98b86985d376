//! Requests of servers, answered by the application's Python callback on its event loop.

use std::sync::{Arc, Mutex, PoisonError};

use innkeeper::callback::{CallbackError, CallbackFuture, CallbackResult};
use innkeeper::event::CallReference;
use innkeeper::{Callback, ServerRequest};
use innkeeper_protocol::envelope::code;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::oneshot;

use crate::json::{Tape, parameter_json};
use crate::loop_queue::{Message, Messages};
use crate::operation::MakeObject;

/// The application's callback: the Python function that starts an answer, and the queue of the loop on
/// which it runs.
pub(crate) struct PythonCallback {
    /// `respond(request, reply)` of the Python package; returns the task that answers, or `None`.
    respond: Arc<Py<PyAny>>,
    messages: Arc<Messages>,
}

impl PythonCallback {
    pub(crate) fn new(respond: Py<PyAny>, messages: Arc<Messages>) -> Self {
        Self { respond: Arc::new(respond), messages }
    }
}

impl Callback for PythonCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let id = self.messages.next_id();
        let messages = self.messages.clone();
        let (reply, answer) = oneshot::channel();
        let make_request = Box::new(move |py: Python<'_>| request_dict(py, &request));
        let call = ServerCall::new(id, make_request, reply, self.respond.clone());
        messages.push(Message::Ask(call));
        let withdrawal = Withdrawal::new(id, messages);
        Box::pin(async move {
            let _withdrawal = withdrawal;
            answer.await.unwrap_or_else(|_| {
                Err(CallbackError::new(code::INTERNAL_ERROR, "the application gave no answer"))
            })
        })
    }
}

/// Cancels the task that answers when the host drops the request, for example because the server
/// cancelled it. After an answer there is no task.
pub(crate) struct Withdrawal {
    request: u64,
    messages: Arc<Messages>,
}

impl Withdrawal {
    pub(crate) fn new(request: u64, messages: Arc<Messages>) -> Self {
        Self { request, messages }
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.messages.push(Message::Withdraw { request: self.request });
    }
}

/// A question on its way to the application's loop: a request of a server, or a request to a model.
pub(crate) struct ServerCall {
    id: u64,
    make_request: MakeObject,
    reply: oneshot::Sender<CallbackResult>,
    respond: Arc<Py<PyAny>>,
}

impl ServerCall {
    pub(crate) fn new(
        id: u64,
        make_request: MakeObject,
        reply: oneshot::Sender<CallbackResult>,
        respond: Arc<Py<PyAny>>,
    ) -> Self {
        Self { id, make_request, reply, respond }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Answers that there is no loop for the callback any more.
    pub(crate) fn refuse(self) {
        let message = "the event loop of the application's callback is closed";
        // The host may have dropped the request.
        self.reply.send(Err(CallbackError::new(code::INTERNAL_ERROR, message))).ok();
    }

    /// Starts the answer on this thread, which is the loop's. Returns the task, or `None`.
    pub(crate) fn ask(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let request = (self.make_request)(py)?;
        let reply = Reply { pid: std::process::id(), sender: Mutex::new(Some(self.reply)) };
        self.respond.call1(py, (request, reply))
    }
}

/// Returns a request of a server as a dict.
fn request_dict(py: Python<'_>, request: &ServerRequest) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    dict.set_item("server", &*request.server)?;
    dict.set_item("method", &*request.method)?;
    let params = match &request.params {
        Some(params) => Tape::new(params.clone()).into_python(py)?,
        None => py.None(),
    };
    dict.set_item("params", params)?;
    dict.set_item("key", request.key.as_deref())?;
    let call = match &request.call {
        CallReference::Call { id, method, item } => {
            let call = PyDict::new(py);
            call.set_item("id", id)?;
            call.set_item("method", method)?;
            call.set_item("item", &**item)?;
            Some(call)
        }
        CallReference::Unknown => None,
    };
    dict.set_item("call", call)?;
    Ok(dict.into_any().unbind())
}

/// Where the application's answer goes.
#[pyclass(frozen, module = "innkeeper._core")]
pub(crate) struct Reply {
    pid: u32,
    sender: Mutex<Option<oneshot::Sender<CallbackResult>>>,
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // The server waits in the parent; to drop the sender would use locks of its threads.
            std::mem::forget(self.sender.get_mut().map(Option::take));
        }
    }
}

impl Reply {
    fn send(&self, result: CallbackResult) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The host may have dropped the request.
            sender.send(result).ok();
        }
    }
}

#[pymethods]
impl Reply {
    /// Sends a result: a JSON object.
    fn result(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        self.send(Ok(parameter_json(result, "the result")?));
        Ok(())
    }

    /// Sends a JSON-RPC error.
    fn error(&self, code: i64, message: String) {
        self.send(Err(CallbackError::new(code, message)));
    }
}
