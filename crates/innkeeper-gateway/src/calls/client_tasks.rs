//! Tasks of clients: calls that return a task, and the requests about it.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use innkeeper_host::{Arguments, CallError, CallOptions, ResultType, TaskMode, ToolResult};
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::view::{Task, TaskStatus};
use innkeeper_protocol::{Era, method, skim};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Calls;
use super::forwarding::CallTarget;
use crate::caller::Caller;
use crate::error::{ErrorKind, RpcError};
use crate::item_names::ItemNames;
use crate::json_text::complete_result;
use crate::offering::{NamedItem, OfferedServer, Offering};
use crate::offers::Need;
use crate::quota::{Quota, Reservation};
use crate::request::{ClientRequest, Reply};
use crate::server_use::{MAX_OPEN_TASKS, OpenTask, TaskHold};
use crate::task_ids::{TaskIdPair, TaskIds, TaskReference};

/// A call that may return a task to the client.
#[derive(Debug)]
pub(super) struct TaskCall {
    mode: TaskMode,
    server: Arc<OfferedServer>,
    counted: Reservation,
    created: Arc<OnceLock<CreatedTask>>,
}

/// What the gateway knows of a task that a call has created.
#[derive(Debug)]
struct CreatedTask {
    connection: Option<u64>,
    hold: TaskHold,
}

/// The host's part of a [`TaskCall`].
#[derive(Clone, Debug)]
pub(super) struct HostTaskCall {
    mode: TaskMode,
    server: Arc<OfferedServer>,
    created: Arc<OnceLock<CreatedTask>>,
}

impl TaskCall {
    pub(super) fn for_host(&self) -> HostTaskCall {
        let mode = self.mode.clone();
        let server = self.server.clone();
        let created = self.created.clone();
        HostTaskCall { mode, server, created }
    }
}

impl HostTaskCall {
    /// Calls the tool. A call in flight keeps the server from stopping.
    pub(super) async fn call(
        self,
        tool: &str,
        arguments: Arguments,
        options: CallOptions,
    ) -> Result<ToolResult, CallError> {
        let Self { mode, server, created } = self;
        let upstream = &server.upstream;
        // A server that restarts during the call does not know the task.
        let connection = server.connection_number();
        let call_hold = options.client.hold.clone();
        let options = CallOptions { task: mode, ..options };
        let result = upstream.host.call_tool_with(tool, arguments, options).await?;
        if result.result_type() == ResultType::Task {
            let hold = server.server_use.hold(upstream.users.host_use(), call_hold);
            // The call runs once.
            let _ = created.set(CreatedTask { connection, hold });
        }
        Ok(result)
    }
}

#[derive(Debug)]
pub(super) struct ClientTasks {
    ids: TaskIds,
    quota: Arc<Quota>,
}

impl ClientTasks {
    /// `replica` is the id of this replica, if there are several.
    pub(super) fn new(replica: Option<&str>) -> Self {
        Self { ids: TaskIds::new(replica), quota: Quota::new(MAX_OPEN_TASKS) }
    }

    /// Returns how a call of a tool may return a task, or `None` for a call that returns a result:
    /// the host then waits for the task. A server of the other era has another form of tasks.
    pub(super) fn call(
        &self,
        request: &ClientRequest<'_>,
        tool: &NamedItem,
        passes_tasks: bool,
    ) -> Result<Option<TaskCall>, RpcError> {
        let caller = request.caller;
        let server = &tool.server;
        if caller.era() != server.declared.era || !server.declared.tasks.call || !passes_tasks {
            return Ok(None);
        }
        let mode = match caller.era() {
            Era::Legacy if caller.identity.revision.has_core_tasks() => {
                let Some(task) = request.raw_param("task") else { return Ok(None) };
                if !task.get().starts_with('{') {
                    return Err(RpcError::invalid_params("`params/task` must be an object"));
                }
                TaskMode::PassThrough { params: Some(task.to_owned()) }
            }
            Era::Modern if caller.identity.declares_task_extension() => {
                TaskMode::PassThrough { params: None }
            }
            Era::Legacy | Era::Modern => return Ok(None),
        };
        let counted = match self.quota.reserve(&caller.principal, 1) {
            Ok(counted) => counted,
            // A server of the modern era need not create a task, so the host waits for it.
            Err(_) if caller.era() == Era::Modern => return Ok(None),
            Err(_) => {
                let message = format!(
                    "too many unfinished tasks: at most {MAX_OPEN_TASKS} of all clients, and half of \
                     them of one; read the results of some first, or call without `task`"
                );
                return Err(RpcError::new(code::INTERNAL_ERROR, message));
            }
        };
        let server = server.clone();
        Ok(Some(TaskCall { mode, server, counted, created: Arc::default() }))
    }

    /// Returns the result of a call for the client: of a task, with an id for the client. `None` if the
    /// result is no task.
    pub(super) fn created(
        &self,
        caller: &Caller,
        tool: &str,
        call: TaskCall,
        result: &RawValue,
    ) -> Option<Reply> {
        let TaskCall { server, counted, created, .. } = call;
        // The host has dropped its part.
        let created = Arc::into_inner(created)?.into_inner()?;
        Some(self.add(caller, &server, tool, created, counted, result))
    }

    fn add(
        &self,
        caller: &Caller,
        server: &OfferedServer,
        tool: &str,
        created: CreatedTask,
        counted: Reservation,
        result: &RawValue,
    ) -> Reply {
        let internal = |message: String| RpcError::new(code::INTERNAL_ERROR, message);
        let task = Task::from_raw(result).map_err(|error| internal(error.to_string()))?;
        let CreatedTask { connection, hold } = created;
        let reference = TaskReference {
            host: server.upstream.number,
            connection: connection.unwrap_or_default(),
            server: (*server.name).to_owned(),
            tool: tool.to_owned(),
            id: task.id.clone(),
        };
        let Caller { principal, endpoint, .. } = caller;
        let sealed = self.ids.seal(&reference, principal, *endpoint);
        let of_client = sealed.ok_or_else(|| {
            internal(
                "the task cannot get an id: the tool name or the id of the server is too long"
                    .to_owned(),
            )
        })?;
        let ids = TaskIdPair { of_server: task.id, of_client };
        let mapped = ids.for_client(result);
        let of_server = ids.of_server.clone();
        let client = caller.client.as_ref().map_or_else(Weak::new, Arc::downgrade);
        let lifetime = task.ttl_ms.map(Duration::from_millis);
        let open_tasks = &server.server_use.open_tasks;
        let principal = principal.clone();
        open_tasks.add(OpenTask::new(ids, principal, client, connection, lifetime, counted, hold));
        if task.status.is_terminal() {
            open_tasks.end(&of_server);
        }
        open_tasks.remove_lost(server.connection_number());
        Ok(mapped)
    }
}

impl Calls {
    /// Returns whether the endpoint of a caller passes tasks. For a command, the host of the gateway
    /// waits for a task, like the host of the command.
    pub(crate) fn passes_tasks(&self, caller: &Caller) -> bool {
        !self.offers.endpoints.is_legacy(caller.endpoint)
    }

    pub(crate) async fn handle_task_request(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
    ) -> Reply {
        let ClientRequest { caller, method, .. } = request;
        let identity = &caller.identity;
        if !self.passes_tasks(caller) {
            return Err(RpcError::method_not_found(method));
        }
        match (caller.era(), *method) {
            (Era::Legacy, method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL)
                if identity.revision.has_core_tasks() => {}
            (Era::Modern, method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL) => {
                if !identity.declares_task_extension() {
                    return Err(RpcError::missing_extension(EXTENSION_TASKS));
                }
            }
            _ => return Err(RpcError::method_not_found(method)),
        }
        let of_client = request.string_param("taskId")?;
        let reference = self.client_tasks.ids.open(&of_client, &caller.principal, caller.endpoint);
        let reference = reference.ok_or_else(RpcError::unknown_task)?;
        // A server that never started has no task.
        let offering = self.offers.offering_for(caller, Need::Known).await?;
        let server = offering.server(&reference.server).filter(|server| {
            server.upstream.number == reference.host
                && server.declared.era == caller.era()
                && is_connected(server, &reference)
                && self.permits_task(caller, &offering, &reference)
        });
        let server = server.ok_or_else(RpcError::unknown_task)?;
        let ids = TaskIdPair { of_server: reference.id.clone(), of_client };
        let result = self.forward_task_request(request, server, &reference, &ids).await;
        let is_answered = match &result {
            Ok(_) => true,
            Err(error) => error.kind == ErrorKind::Server,
        };
        // The response may be that of a process that started in the meantime.
        if is_answered && !is_connected(server, &reference) {
            return Err(RpcError::unknown_task());
        }
        record_response(server, method, &ids, &result);
        let result =
            self.store_task_result(caller, method, &reference.tool, ids.for_client(&result?));
        Ok(complete_result(result, caller.era()))
    }

    /// Returns whether the client may use the tool of a task, which may be offered no more.
    fn permits_task(&self, caller: &Caller, offering: &Offering, task: &TaskReference) -> bool {
        let offered = offering.tool(&task.tool).filter(|tool| *tool.server.name == *task.server);
        let style = self.offers.endpoints.options(caller.endpoint).names;
        let names = offered.map_or_else(
            || ItemNames::from_offered(style, &task.server, &task.tool),
            |tool| tool.names.clone(),
        );
        self.offers.policy.permits(&caller.principal, &names)
    }

    async fn forward_task_request(
        self: &Arc<Self>,
        request: &ClientRequest<'_>,
        server: &Arc<OfferedServer>,
        reference: &TaskReference,
        ids: &TaskIdPair,
    ) -> Reply {
        let text = request.params.raw().map_or("{}", RawValue::get);
        let text = skim::remove_member(text, "_meta");
        let id = Value::from(ids.of_server.as_str()).to_string();
        let params = RawValue::from_string(skim::replace_member(&text, "taskId", &id));
        let params = params.map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let target = CallTarget {
            server,
            item: request.method,
            digest_of: None,
            task: Some(ids),
            may_repeat: false,
        };
        let method = request.method.to_owned();
        let reference = reference.clone();
        let offered = server.clone();
        let result = self
            .forward(request, target, move |options| async move {
                // The wait for the server may have started it.
                if !is_connected(&offered, &reference) {
                    return Ok(RawValue::NULL.to_owned());
                }
                let host = &offered.upstream.host;
                host.request(&offered.name, &method, Some(&params), options).await
            })
            .await;
        result.map_err(|error| RpcError::from_call_error(error, request.method))?
    }

    /// Stores the large result of a task like that of a call.
    fn store_task_result(
        &self,
        caller: &Caller,
        method: &str,
        tool: &str,
        response: Box<RawValue>,
    ) -> Box<RawValue> {
        match method {
            method::TASKS_RESULT => self.large_results.store(caller, tool, response),
            method::TASKS_GET if caller.era() == Era::Modern => {
                let result = skim::member(response.get(), "result");
                let result = result.and_then(|text| RawValue::from_string(text.to_owned()).ok());
                let Some(result) = result else { return response };
                let stored = self.large_results.store(caller, tool, result);
                let text = skim::replace_member(response.get(), "result", stored.get());
                RawValue::from_string(text).unwrap_or(response)
            }
            _ => response,
        }
    }
}

/// Returns whether the server still has the connection on which it created a task.
fn is_connected(server: &OfferedServer, reference: &TaskReference) -> bool {
    server.connection_number() == Some(reference.connection)
}

/// Records what a response tells about the end of a task.
fn record_response(server: &OfferedServer, method: &str, ids: &TaskIdPair, result: &Reply) {
    let server_use = &server.server_use;
    let id = &ids.of_server;
    match result {
        // The client has the result, and the server forgets an expired task.
        Ok(_) if method == method::TASKS_RESULT => server_use.release_task(id),
        Err(error) if error.kind == ErrorKind::Server => {
            if method == method::TASKS_RESULT || error.code == code::INVALID_PARAMS {
                server_use.release_task(id);
            }
        }
        Ok(result) => match Task::from_raw(result) {
            // `tasks/result` returns the result.
            Ok(Task { status: TaskStatus::Completed | TaskStatus::Failed, .. })
                if server.declared.era == Era::Legacy =>
            {
                server_use.open_tasks.end(id);
            }
            // The response contains the result, or the task has none.
            Ok(task) if task.status.is_terminal() => server_use.release_task(id),
            // The acknowledgement of a cancellation.
            Err(_) if method == method::TASKS_CANCEL => server_use.open_tasks.end(id),
            Ok(_) | Err(_) => {}
        },
        Err(_) => {}
    }
}
