//! Tests of a program that answers questions over stdin.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

use innkeeper_testkit::{Journal, ScriptedReply, fixture};
use serde_json::{Value, json};

use super::{ChatEnv, json_events, two_servers_with_forms};

/// A chat whose questions the test answers.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    events: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(env: &ChatEnv, args: &[&str]) -> Self {
        let mut child = env.spawn(&[&["--json", "--respond"], args].concat());
        let stdin = child.stdin.take();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, events }
    }

    fn write(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn send(&mut self, object: &Value) {
        self.write(&object.to_string());
    }

    fn respond(&mut self, id: u64, members: Value) {
        let mut object = members;
        object["type"] = "response".into();
        object["id"] = id.into();
        self.send(&object);
    }

    /// Returns the next event with this name.
    #[track_caller]
    fn wait(&mut self, name: &str) -> Value {
        for line in &mut self.events {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == name {
                return event;
            }
            // A run ends if the test expects nothing else.
            assert!(event["event"] != "finished", "no {name} before {event}");
        }
        panic!("no {name} before the end of the output");
    }

    /// Closes stdin and waits for the end.
    #[track_caller]
    fn close(mut self) {
        let _ = self.stdin.take();
        for line in &mut self.events {
            line.unwrap();
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

fn call(a: u8) -> ScriptedReply {
    ScriptedReply::tool_call("one.add", json!({"a": a, "b": 3}))
}

fn journal(env: &ChatEnv) -> Journal {
    Journal::read(&env.path().join("journal"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_allows_changes_and_denies_calls_by_the_id_of_the_question() {
    let replies = [call(1), call(2), call(3), call(4), ScriptedReply::text("Done.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let mut program = Program::start(&env, &[]);
    program.send(&json!({"type": "message", "text": "Add\nmuch."}));
    let question = program.wait("question");
    let expected = json!({
        "event": "question", "kind": "approval", "server": "one", "text": "one.add", "id": 1,
        "arguments": "{\"a\":1,\"b\":3}", "description": question["description"],
        "readOnly": false, "destructive": true, "openWorld": true, "pinned": false, "canAllowAlways": true,
    });
    assert_eq!(question, expected);
    assert!(question["description"].is_string());
    program.respond(1, json!({"decision": "allow"}));
    assert_eq!(program.wait("question")["id"], 2);
    program.respond(2, json!({"decision": "allow", "arguments": {"a": 20, "b": 0}}));
    assert_eq!(program.wait("question")["id"], 3);
    program.respond(3, json!({"decision": "deny", "reason": "three is odd"}));
    assert_eq!(program.wait("question")["id"], 4);
    program.respond(4, json!({"decision": "deny", "scope": "tool"}));
    assert_eq!(program.wait("finished")["text"], "Done.");
    program.close();
    let calls = journal(&env);
    let calls: Vec<&Value> =
        calls.params("tools/call").iter().map(|params| &params["arguments"]).collect();
    assert_eq!(calls, [&json!({"a": 1, "b": 3}), &json!({"a": 20, "b": 0})]);
    let requests = env.llm.requests();
    assert_eq!(requests[0].body["messages"][0]["content"][0]["text"], "Add\nmuch.");
    assert!(requests[3].body.to_string().contains("the user denied the call: three is odd"));
}

/// Attack: data | a program sends objects that are no response to an open question | each one has an
/// event that names the problem, and the question stays open | Approval first
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_object_is_named_and_the_question_stays_open() {
    let env = ChatEnv::new(fixture("one"), [call(1), ScriptedReply::text("Done.")]).await;
    let mut program = Program::start(&env, &[]);
    program.respond(1, json!({"decision": "allow"}));
    assert_eq!(program.wait("error"), json!({"event": "error", "id": 1, "text": "no question 1"}));
    program.write("Add.");
    program.wait("question");
    for (line, id, problem) in [
        (r#"{"type":"response","id":9,"decision":"allow"}"#, json!(9), "no question 9"),
        (r#"{"type":"response","id":1,"decision":"yes"}"#, json!(1), "unknown variant `yes`"),
        (r#"{"type":"response","decision":"allow"}"#, json!(null), "has no `id`"),
        (r#"{"type":"response","id":1,"decision":"#, json!(null), "no JSON object"),
        (r#"{"decision":"allow","id":1}"#, json!(1), "has no `type`"),
    ] {
        program.write(line);
        let event = program.wait("error");
        let text = event["text"].as_str().unwrap();
        assert!(event["id"] == id && text.contains(problem), "{line}: {event}");
    }
    assert_eq!(journal(&env).count("tools/call"), 0);
    program.respond(1, json!({"decision": "allow"}));
    program.wait("finished");
    assert_eq!(journal(&env).count("tools/call"), 1);
    program.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_answers_two_forms_at_once_and_a_sampling_request() {
    let (servers, calls) = two_servers_with_forms();
    let env = ChatEnv::with_servers(servers, [calls, ScriptedReply::text("Done.")]).await;
    let mut program = Program::start(&env, &["--approve", "all"]);
    program.write("Add.");
    let question = program.wait("question");
    assert_eq!((&question["kind"], &question["id"]), (&json!("elicitation"), &json!(1)));
    let field = &question["fields"][0];
    assert_eq!((&field["name"], &field["type"]), (&json!("colour"), &json!("string")));
    assert_eq!(program.wait("question")["id"], 2);
    program.respond(2, json!({"action": "accept", "content": {"colour": 7}}));
    assert!(program.wait("error")["text"].as_str().unwrap().contains("field `colour`"));
    program.respond(2, json!({"action": "accept", "content": {"colour": "red"}}));
    program.respond(1, json!({"action": "decline"}));
    program.wait("finished");
    program.close();
    let results = journal(&env);
    let results: Vec<&Value> = results.responses().iter().map(|it| &it["result"]).collect();
    let accepted = json!({"action": "accept", "content": {"colour": "red"}});
    let declined = json!({"action": "decline"});
    assert!(results == [&accepted, &declined] || results == [&declined, &accepted], "{results:?}");

    let replies = [call(1), ScriptedReply::text("Blue."), ScriptedReply::text("Done.")];
    let env = ChatEnv::new(fixture("one").switch("--ask-sampling"), replies).await;
    let mut program = Program::start(&env, &[]);
    program.write("Add.");
    program.wait("question");
    program.respond(1, json!({"decision": "allow"}));
    let question = program.wait("question");
    assert_eq!((&question["kind"], &question["id"]), (&json!("sampling"), &json!(2)));
    assert!(question["messages"][0]["text"].is_string() && question["maxTokens"].is_u64());
    program.respond(2, json!({"decision": "allow"}));
    program.wait("finished");
    program.close();
    let results = journal(&env);
    assert_eq!(results.responses()[0]["result"]["content"]["text"], "Blue.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_question_has_an_event_and_its_response_an_error() {
    let server = fixture("one").switch("--ask-elicit").with("--era", "modern");
    let server = server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 0.5);
    let env = ChatEnv::new(server, [call(1), ScriptedReply::text("Done.")]).await;
    let mut program = Program::start(&env, &["--approve", "all"]);
    program.write("Add.");
    program.wait("question");
    let withdrawn = program.wait("question_withdrawn");
    assert_eq!(withdrawn, json!({"event": "question_withdrawn", "id": 1}));
    program.wait("finished");
    program.respond(1, json!({"action": "decline"}));
    let error = program.wait("error");
    assert_eq!(error["text"], "question 1 is answered or was withdrawn");
    program.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_during_a_run_wait_for_its_end_and_too_many_are_named() {
    let replies = [call(1), ScriptedReply::text("Done."), ScriptedReply::text("Again.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let mut program = Program::start(&env, &[]);
    program.write("Add.");
    program.wait("question");
    for _ in 0..63 {
        program.write("");
    }
    program.write("again");
    program.write("one too many");
    let lost = program.wait("error");
    assert_eq!(lost["text"], "the message is lost: 64 messages wait");
    program.respond(1, json!({"decision": "deny"}));
    assert_eq!(program.wait("finished")["text"], "Done.");
    assert_eq!(program.wait("finished")["text"], "Again.");
    program.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_stdin_denies_open_and_later_questions() {
    let replies = [call(1), call(2), ScriptedReply::text("Done.")];
    let env = ChatEnv::new(fixture("one"), replies).await;
    let mut program = Program::start(&env, &[]);
    program.write("Add.");
    assert_eq!(program.wait("question")["id"], 1);
    let _ = program.stdin.take();
    assert_eq!(program.wait("call_finished")["result"], "not run: nobody can approve the call");
    let later = program.wait("question");
    assert_eq!(later.get("id"), None, "{later}");
    assert_eq!(program.wait("finished")["text"], "Done.");
    program.close();
    assert_eq!(journal(&env).count("tools/call"), 0);
}

#[tokio::test]
async fn without_the_option_a_response_answers_nothing_and_a_message_is_sent() {
    let env = ChatEnv::new(fixture("one"), [call(1), ScriptedReply::text("Done.")]).await;
    let lines = "{\"type\":\"message\",\"text\":\"/tools\"}\n\
        {\"type\":\"response\",\"id\":1,\"decision\":\"allow\"}\n";
    let output = env.run(&["--json"], lines).await;
    let events = json_events(&output);
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["question", "call_finished", "text", "finished", "error"]);
    assert_eq!(events[4]["text"], "no question 1");
    assert_eq!(journal(&env).count("tools/call"), 0);
    let first = &env.llm.requests()[0].body["messages"][0]["content"][0]["text"];
    assert_eq!(first, "/tools");
    let refused = env.run(&["--respond"], "").await;
    assert_eq!(refused.status.code(), Some(2));
}
