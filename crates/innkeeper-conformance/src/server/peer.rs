//! The connection to the client: responses, notifications and the server's own requests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::message::{Outcome, RpcError};

/// The client on the other end of stdin and stdout.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// The server's requests without a response.
    open: RefCell<HashMap<String, oneshot::Sender<Outcome>>>,
    /// How often each id was requested.
    used_ids: RefCell<HashMap<String, u32>>,
}

impl Peer {
    /// Writes one message. A client that does not read any more closes stdin as well.
    fn write(message: &Value) {
        let mut stdout = std::io::stdout().lock();
        let _ = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
    }

    pub(crate) fn respond(&self, id: &Value, outcome: &Outcome) {
        Self::write(&match outcome {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(RpcError(error)) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        });
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        Self::write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request to the client and returns its outcome. The id is `name`, with a number from
    /// the second use on, because an id occurs once in a session.
    pub(crate) async fn request(&self, name: &str, method: &str, params: &Value) -> Outcome {
        let id = {
            let mut used = self.used_ids.borrow_mut();
            let count = used.entry(name.to_owned()).or_default();
            *count += 1;
            if *count == 1 { name.to_owned() } else { format!("{name}-{count}") }
        };
        let (sender, receiver) = oneshot::channel();
        self.open.borrow_mut().insert(id.clone(), sender);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Self::write(&request);
        receiver.await.unwrap_or_else(|_| Err(RpcError::invalid_params("the client has gone")))
    }

    /// Passes a response of the client to the request that it belongs to.
    pub(crate) fn accept(&self, mut response: Value) {
        let sender = response["id"].as_str().and_then(|id| self.open.borrow_mut().remove(id));
        let outcome = match response.get("error") {
            Some(error) => Err(RpcError(error.clone())),
            None => Ok(response["result"].take()),
        };
        if let Some(sender) = sender {
            // The call may have ended.
            let _ = sender.send(outcome);
        }
    }
}
