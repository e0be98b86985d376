//! The ids of tasks for clients: each contains the server and the id of the server, sealed.
//!
//! A client returns the id, so the gateway stores nothing for a task that has ended. An id opens only
//! for the principal and the endpoint that it was created for.

use innkeeper_protocol::request_meta::META_RELATED_TASK;
use innkeeper_protocol::skim;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::principal::Principal;
use crate::sealed_state::{MAX_STATE_BYTES, StateSealer};

/// The member of a task that contains its id.
const TASK_ID: &str = "taskId";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskReference {
    pub(crate) host: u64,
    /// The number of the connection to the server: a server that restarts may use an id again.
    pub(crate) connection: u64,
    pub(crate) server: String,
    /// The name of the tool for the client.
    pub(crate) tool: String,
    pub(crate) id: String,
}

/// Seals and opens the ids of tasks. The ids of another gateway are unknown.
#[derive(Debug)]
pub(crate) struct TaskIds(Option<StateSealer>);

impl TaskIds {
    /// `replica` is the id of this replica, if there are several.
    pub(crate) fn new(replica: Option<&str>) -> Self {
        Self(StateSealer::new(replica))
    }

    /// Returns the id for the client, or `None` if the id would be too long to be opened again, or if
    /// the system has no random numbers.
    pub(crate) fn seal(
        &self,
        reference: &TaskReference,
        principal: &Principal,
        endpoint: usize,
    ) -> Option<String> {
        let sealed = self.0.as_ref()?.seal(reference, &owner(principal, endpoint));
        sealed.filter(|id| id.len() <= MAX_STATE_BYTES)
    }

    /// Returns the task of an id; `None` for an id of another client, and for any other text.
    pub(crate) fn open(
        &self,
        id: &str,
        principal: &Principal,
        endpoint: usize,
    ) -> Option<TaskReference> {
        self.0.as_ref()?.open(id, &owner(principal, endpoint)).ok()
    }
}

fn owner(principal: &Principal, endpoint: usize) -> Vec<u8> {
    [&endpoint.to_be_bytes(), principal.id().as_bytes()].concat()
}

#[derive(Clone, Debug)]
pub(crate) struct TaskIdPair {
    pub(crate) of_server: String,
    pub(crate) of_client: String,
}

impl TaskIdPair {
    /// Returns a result or the parameters of a message of the server with the id of the client, in
    /// the task itself and in `_meta`.
    pub(crate) fn for_client(&self, message: &RawValue) -> Box<RawValue> {
        let id = Value::from(self.of_client.as_str()).to_string();
        let mut text = with_related_task(message.get(), &id);
        if skim::member(&text, TASK_ID).is_some() {
            text = skim::replace_member(&text, TASK_ID, &id);
        }
        let task = skim::member(&text, "task").filter(|task| skim::member(task, TASK_ID).is_some());
        if let Some(task) = task {
            let task = skim::replace_member(task, TASK_ID, &id);
            text = skim::replace_member(&text, "task", &task);
        }
        RawValue::from_string(text).unwrap_or_default()
    }

    /// Returns a response of the client with the id of the server in `_meta`.
    pub(crate) fn for_server(&self, response: &RawValue) -> Box<RawValue> {
        let id = Value::from(self.of_server.as_str()).to_string();
        RawValue::from_string(with_related_task(response.get(), &id)).unwrap_or_default()
    }
}

/// Replaces the id of the task that a message belongs to, if the message names a task.
fn with_related_task(message: &str, id: &str) -> String {
    let replaced = skim::member(message, "_meta").and_then(|meta| {
        let related = skim::member(meta, META_RELATED_TASK)?;
        let related = skim::replace_member(related, TASK_ID, id);
        let meta = skim::replace_member(meta, META_RELATED_TASK, &related);
        Some(skim::replace_member(message, "_meta", &meta))
    });
    replaced.unwrap_or_else(|| message.to_owned())
}

/// Returns the id of the task that a message of a server belongs to.
pub(crate) fn related_task(params: Option<&RawValue>) -> Option<String> {
    let meta = skim::member(params?.get(), "_meta")?;
    task_id(skim::member(meta, META_RELATED_TASK)?)
}

pub(crate) fn task_id(task: &str) -> Option<String> {
    skim::decode_string(skim::member(task, TASK_ID)?).map(Into::into)
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::view::MAX_TASK_ID_BYTES;

    use super::*;

    fn reference() -> TaskReference {
        let (server, tool) = ("notes".to_owned(), "notes.add".to_owned());
        TaskReference { host: 1, connection: 2, server, tool, id: "t".to_owned() }
    }

    /// Attack: remote | a client uses the task id of another principal, of its own on another endpoint,
    /// of another gateway, or one that it made up | each is unknown in the same way | Isolation
    #[test]
    fn an_id_opens_only_for_the_principal_and_the_endpoint_that_it_was_sealed_for() {
        let (ids, other_gateway) = (TaskIds::new(None), TaskIds::new(None));
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let id = ids.seal(&reference(), &ada, 0).unwrap();
        assert_eq!(ids.open(&id, &ada, 0), Some(reference()));
        assert_eq!(ids.open(&id, &bob, 0), None);
        assert_eq!(ids.open(&id, &ada, 1), None);
        assert_eq!(other_gateway.open(&id, &ada, 0), None);
        assert_eq!(ids.open("t", &ada, 0), None);
    }

    #[test]
    fn the_id_of_a_gateway_behind_a_gateway_is_short_enough_for_a_host() {
        let (ids, ada) = (TaskIds::new(None), Principal::new("ada"));
        let uuid = "786512e2-9e0d-44bd-8f29-789f320fe840".to_owned();
        let mut id = uuid;
        for _ in 0..2 {
            id = ids.seal(&TaskReference { id, ..reference() }, &ada, 0).unwrap();
        }
        assert!(id.len() <= MAX_TASK_ID_BYTES, "{}", id.len());
    }

    #[test]
    fn the_id_is_replaced_wherever_a_message_names_the_task() {
        let pair = TaskIdPair { of_server: "s".to_owned(), of_client: "c".to_owned() };
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let related = |id: &str| {
            format!(r#"{{"_meta": {{"{META_RELATED_TASK}": {{"taskId": "{id}"}}, "n": 1.0}}}}"#)
        };
        for (server, client) in [
            (
                r#"{ "taskId" : "s", "x": 1e2 }"#.to_owned(),
                r#"{ "taskId" : "c", "x": 1e2 }"#.to_owned(),
            ),
            (r#"{"task": {"taskId": "s"}}"#.to_owned(), r#"{"task": {"taskId": "c"}}"#.to_owned()),
            (related("s"), related("c")),
            (r#"{"content": []}"#.to_owned(), r#"{"content": []}"#.to_owned()),
        ] {
            assert_eq!(pair.for_client(&raw(&server)).get(), client);
        }
        assert_eq!(pair.for_server(&raw(&related("c"))).get(), related("s"));
        assert_eq!(related_task(Some(&raw(&related("s")))).as_deref(), Some("s"));
    }
}
