//! Tool calls as tasks in both protocol eras, with the outcome from `--task`.

use serde_json::{Map, Value, json};

use super::message::{self, Request, Response, error_code};
use super::server::FixtureServer;
use super::tool;

pub(super) const TASK_OUTCOMES: &[&str] = &["works", "fails", "stops", "asks", "stays", "forgets"];

const INPUT_REQUEST_KEY: &str = "colour";

/// The timestamp of every event.
const TIMESTAMP: &str = "2026-07-28T00:00:00Z";

#[derive(Debug, Default)]
pub(super) struct TaskStore(Vec<Task>);

#[derive(Debug)]
struct Task {
    id: String,
    call: Request,
    polls: usize,
    status: &'static str,
    /// The client's response to the input request.
    input_response: Option<Value>,
    /// The id of the input request in the legacy era.
    input_request_id: Option<Value>,
    /// The requests that wait for the result.
    waiting_requests: Vec<Request>,
}

impl TaskStore {
    fn find(&mut self, id: &str) -> Option<&mut Task> {
        self.0.iter_mut().find(|task| task.id == id)
    }
}

impl FixtureServer {
    /// Adds the task capabilities of both eras.
    pub(super) fn declare_tasks(&self, capabilities: &mut Map<String, Value>) {
        if self.switches.is_set("--task") {
            let legacy = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities.insert("tasks".to_owned(), legacy);
            let modern = json!({"io.modelcontextprotocol/tasks": {}});
            capabilities.insert("extensions".to_owned(), modern);
        }
    }

    /// Creates a task instead of a call result.
    pub(super) fn create_task(&mut self, call: &Request) {
        if !call.is_modern() && call.params.get("task").is_none() {
            let response = Response::error(error_code::METHOD_NOT_FOUND, "to be called as a task");
            return self.respond_to_call(call, response);
        }
        let id = format!("fx-task-{}", self.open.tasks.0.len() + 1);
        self.open.tasks.0.push(Task {
            id: id.clone(),
            call: call.clone(),
            polls: 0,
            status: "working",
            input_response: None,
            input_request_id: None,
            waiting_requests: Vec::new(),
        });
        let mut task = self.task_object(&id, call.is_modern());
        if call.is_modern() {
            task["resultType"] = json!("task");
        } else {
            task = json!({"task": task});
        }
        self.respond_to_call(call, Response::Result(task));
    }

    /// Responds to `tasks/get`, `tasks/result`, `tasks/update` and `tasks/cancel`.
    pub(super) fn handle_task_request(&mut self, request: &Request) -> Response {
        let id = request.param("taskId").to_owned();
        let Some(task) = self.open.tasks.find(&id) else { return unknown_task() };
        match request.method.as_str() {
            "tasks/update" => {
                task.input_response = request.params.get("inputResponses").cloned();
                Response::Result(json!({}))
            }
            "tasks/cancel" => {
                task.status = "cancelled";
                let modern = request.is_modern();
                Response::Result(if modern { json!({}) } else { self.task_object(&id, false) })
            }
            "tasks/result" if task.status == "input_required" => {
                task.waiting_requests.push(request.clone());
                self.request_task_input(&id);
                Response::Deferred
            }
            "tasks/result" => self.named_task_result(&id),
            _ => self.poll_task(&id, request.is_modern()),
        }
    }

    /// Handles the response to an input request of a legacy task; returns whether the response was
    /// for a task.
    pub(super) fn on_task_response(&mut self, response: &Value) -> bool {
        let mut tasks = self.open.tasks.0.iter_mut();
        let task = tasks.find(|task| task.input_request_id.as_ref() == Some(&response["id"]));
        let Some(task) = task else { return false };
        task.status = "completed";
        task.input_response = Some(response["result"].clone());
        let id = task.id.clone();
        let waiting = std::mem::take(&mut task.waiting_requests);
        for request in waiting {
            let task_result = self.named_task_result(&id);
            self.respond(&request, task_result);
        }
        true
    }

    fn poll_task(&mut self, id: &str, modern: bool) -> Response {
        let works = self.switches.count("--task-polls");
        let kind = self.switches.value("--task").unwrap_or_default().to_owned();
        let Some(task) = self.open.tasks.find(id) else { return unknown_task() };
        task.polls += 1;
        if task.polls > works && !["completed", "cancelled"].contains(&task.status) {
            task.status = match kind.as_str() {
                "works" => "completed",
                "fails" => "failed",
                "stops" => "cancelled",
                "forgets" => {
                    self.open.tasks.0.retain(|task| task.id != id);
                    return unknown_task();
                }
                // After the input the next poll still shows the input request, because a client may
                // poll late.
                "asks" if task.input_response.is_some() && task.status == "working" => "completed",
                "asks" if task.input_response.is_some() => "working",
                "asks" => "input_required",
                _ => "pondering",
            };
        }
        let status = task.status;
        let is_shown_again = kind == "asks" && task.input_response.is_some();
        let mut object = self.task_object(id, modern);
        if !modern && self.switches.is_set("--task-notify") {
            let text = message::notification("notifications/tasks/status", &object);
            self.stdout.write_line(text.as_bytes());
        }
        if modern && (status == "input_required" || is_shown_again && status == "working") {
            let method = "elicitation/create";
            let input_request = json!({"method": method, "params": self.request_params(method)});
            object["status"] = json!("input_required");
            object["inputRequests"] = json!({INPUT_REQUEST_KEY: input_request});
        }
        match (modern, status, self.task_result(id)) {
            (true, "completed", Response::Result(result)) => object["result"] = result,
            (true, "failed", Response::Error { code, message, .. }) => {
                object["error"] = json!({"code": code, "message": message});
            }
            _ => {}
        }
        Response::Result(object)
    }

    /// The response with the outcome of a task, which names the task with `--task-notify`.
    fn named_task_result(&mut self, id: &str) -> Response {
        match self.task_result(id) {
            Response::Result(mut result) if self.switches.is_set("--task-notify") => {
                result["_meta"] = related_task(id);
                Response::Result(result)
            }
            response => response,
        }
    }

    fn task_result(&mut self, id: &str) -> Response {
        let Some(task) = self.open.tasks.find(id) else { return unknown_task() };
        match (task.status, &task.input_response) {
            ("completed", Some(input)) => Response::Result(tool::text_result(&input.to_string())),
            ("completed", None) => {
                let call = task.call.clone();
                self.run_tool(&call)
            }
            _ => Response::error(error_code::INTERNAL_ERROR, "the task failed as asked"),
        }
    }

    fn request_task_input(&mut self, id: &str) {
        let method = "elicitation/create";
        let request_id = self.open.pending.next_id();
        let mut params = self.request_params(method);
        params["_meta"] = related_task(id);
        let text = message::request(&request_id, method, &params);
        self.stdout.write_line(text.as_bytes());
        if let Some(task) = self.open.tasks.find(id) {
            task.input_request_id = Some(request_id);
        }
    }

    fn task_object(&mut self, id: &str, modern: bool) -> Value {
        let status = self.open.tasks.find(id).map_or("failed", |task| task.status);
        let ttl = self.switches.number("--task-ttl").unwrap_or(60_000);
        let interval = self.switches.count("--task-interval");
        let (ttl_key, interval_key) =
            if modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        json!({
            "taskId": id, "status": status, "statusMessage": format!("it is {status}"),
            "createdAt": TIMESTAMP, "lastUpdatedAt": TIMESTAMP, ttl_key: ttl, interval_key: interval,
        })
    }
}

fn related_task(id: &str) -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": id}})
}

fn unknown_task() -> Response {
    Response::error(error_code::INVALID_PARAMS, "no such task")
}
