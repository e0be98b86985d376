//! Tool calls that become tasks, in both forms: `--task` says what comes of them.

use serde_json::{Map, Value, json};

use super::message::{self, Answer, Request, code};
use super::server::Server;
use super::tool;

/// What may come of a task.
pub(super) const KINDS: &[&str] = &["works", "fails", "stops", "asks", "stays", "forgets"];

/// The key of the question of a modern task.
const QUESTION: &str = "colour";

/// When everything happened, as far as anybody is told.
const TIME: &str = "2026-07-28T00:00:00Z";

/// The tasks begun so far.
#[derive(Debug, Default)]
pub(super) struct Tasks(Vec<Task>);

#[derive(Debug)]
struct Task {
    id: String,
    call: Request,
    polls: usize,
    status: &'static str,
    /// What was answered to its question.
    answer: Option<Value>,
    /// The id of its question, in the legacy era.
    question: Option<Value>,
    /// Requests that wait for its result.
    waiting: Vec<Request>,
}

impl Tasks {
    fn find(&mut self, id: &str) -> Option<&mut Task> {
        self.0.iter_mut().find(|task| task.id == id)
    }
}

impl Server {
    /// What is declared of tasks, in either era.
    pub(super) fn declare_tasks(&self, capabilities: &mut Map<String, Value>) {
        if self.switches.on("--task") {
            let legacy = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities.insert("tasks".to_owned(), legacy);
            let modern = json!({"io.modelcontextprotocol/tasks": {}});
            capabilities.insert("extensions".to_owned(), modern);
        }
    }

    /// Begins a task instead of answering a call.
    pub(super) fn begin_task(&mut self, call: &Request) {
        if !call.is_modern() && call.params.get("task").is_none() {
            let answer = Answer::error(code::METHOD_NOT_FOUND, "to be called as a task");
            return self.answer_call(call, answer);
        }
        let id = format!("fx-task-{}", self.tasks.0.len() + 1);
        self.tasks.0.push(Task {
            id: id.clone(),
            call: call.clone(),
            polls: 0,
            status: "working",
            answer: None,
            question: None,
            waiting: Vec::new(),
        });
        let mut told = self.told(&id, call.is_modern());
        if call.is_modern() {
            told["resultType"] = json!("task");
        } else {
            told = json!({"task": told});
        }
        self.answer_call(call, Answer::Result(told));
    }

    /// Answers `tasks/get`, `tasks/result`, `tasks/update` and `tasks/cancel`.
    pub(super) fn task_request(&mut self, request: &Request) -> Answer {
        let id = request.param("taskId").to_owned();
        let Some(task) = self.tasks.find(&id) else { return unknown() };
        match request.method.as_str() {
            "tasks/update" => {
                task.answer = request.params.get("inputResponses").cloned();
                Answer::Result(json!({}))
            }
            "tasks/cancel" => {
                task.status = "cancelled";
                let modern = request.is_modern();
                Answer::Result(if modern { json!({}) } else { self.told(&id, false) })
            }
            "tasks/result" if task.status == "input_required" => {
                task.waiting.push(request.clone());
                self.ask_for_task(&id);
                Answer::Later
            }
            "tasks/result" => self.outcome(&id),
            _ => self.poll(&id, request.is_modern()),
        }
    }

    /// Takes the answer to a question of a legacy task; false if it is to something else.
    pub(super) fn task_answered(&mut self, response: &Value) -> bool {
        let asked = |task: &&mut Task| task.question.as_ref() == Some(&response["id"]);
        let Some(task) = self.tasks.0.iter_mut().find(asked) else { return false };
        task.status = "completed";
        task.answer = Some(response["result"].clone());
        let (id, waiting) = (task.id.clone(), std::mem::take(&mut task.waiting));
        for request in waiting {
            let answer = self.outcome(&id);
            self.respond(&request, answer);
        }
        true
    }

    fn poll(&mut self, id: &str, modern: bool) -> Answer {
        let works = self.switches.count("--task-polls");
        let kind = self.switches.text("--task").unwrap_or_default().to_owned();
        let Some(task) = self.tasks.find(id) else { return unknown() };
        task.polls += 1;
        if task.polls > works && !["completed", "cancelled"].contains(&task.status) {
            task.status = match kind.as_str() {
                "works" => "completed",
                "fails" => "failed",
                "stops" => "cancelled",
                "forgets" => {
                    self.tasks.0.retain(|task| task.id != id);
                    return unknown();
                }
                // An answered question is seen once more: nobody has to look at once.
                "asks" if task.answer.is_some() && task.status == "working" => "completed",
                "asks" if task.answer.is_some() => "working",
                "asks" => "input_required",
                _ => "pondering",
            };
        }
        let (status, shown) = (task.status, kind == "asks" && task.answer.is_some());
        let mut told = self.told(id, modern);
        if modern && (status == "input_required" || shown && status == "working") {
            let method = "elicitation/create";
            let question = json!({"method": method, "params": self.question(method)});
            told["status"] = json!("input_required");
            told["inputRequests"] = json!({QUESTION: question});
        }
        match (modern, status, self.outcome(id)) {
            (true, "completed", Answer::Result(result)) => told["result"] = result,
            (true, "failed", Answer::Error { code, message, .. }) => {
                told["error"] = json!({"code": code, "message": message});
            }
            _ => {}
        }
        Answer::Result(told)
    }

    /// What a task came to.
    fn outcome(&mut self, id: &str) -> Answer {
        let Some(task) = self.tasks.find(id) else { return unknown() };
        match (task.status, &task.answer) {
            ("completed", Some(answer)) => Answer::Result(tool::text(&answer.to_string())),
            ("completed", None) => {
                let call = task.call.clone();
                self.run_tool(&call)
            }
            _ => Answer::error(code::INTERNAL_ERROR, "the task failed as asked"),
        }
    }

    fn ask_for_task(&mut self, id: &str) {
        let (method, question) = ("elicitation/create", self.asks.next_id());
        let mut params = self.question(method);
        params["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
        let text = message::request(&question, method, &params);
        self.wire.line(text.as_bytes());
        if let Some(task) = self.tasks.find(id) {
            task.question = Some(question);
        }
    }

    fn told(&mut self, id: &str, modern: bool) -> Value {
        let status = self.tasks.find(id).map_or("failed", |task| task.status);
        let ttl = self.switches.number("--task-ttl").unwrap_or(60_000);
        let interval = self.switches.count("--task-interval");
        let (ttl_key, interval_key) =
            if modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        json!({
            "taskId": id, "status": status, "statusMessage": format!("it is {status}"),
            "createdAt": TIME, "lastUpdatedAt": TIME, ttl_key: ttl, interval_key: interval,
        })
    }
}

fn unknown() -> Answer {
    Answer::error(code::INVALID_PARAMS, "no such task")
}
