//! A recorded run as text and as JSON.

use innkeeper_agent::golden::Acceptance;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::super::samples::sample;
use super::*;
use crate::output::capture::captured_output;

fn inspected(golden: &Golden, json: bool) -> String {
    let (mut output, out, _) = captured_output(json, false);
    let run = RunView::from_golden(golden).unwrap();
    let inspection = Inspection::new(golden, &run, &[]);
    if json {
        output.print_json(&inspection).unwrap();
    } else {
        text::print(&inspection, &mut output).unwrap();
    }
    out.text()
}

#[test]
fn a_person_sees_each_step_and_each_failure() {
    let mut golden = sample();
    golden.program = "innkeeper 1.2.3".to_owned();
    golden.accepted.push(Acceptance {
        who: "ada".to_owned(),
        when: "2026-11-01T00:00:00Z".to_owned(),
        why: "the new text is shorter".to_owned(),
    });
    insta::assert_snapshot!(inspected(&golden, false));
}

#[test]
fn the_json_has_the_same_facts() {
    let value: Value = serde_json::from_str(&inspected(&sample(), true)).unwrap();
    assert_eq!(value["iterations"][0]["errors"][0], "server `mail`: no such program");
    assert_eq!(value["iterations"][1]["requests"][0]["failure"], "status 429");
    assert_eq!(value["iterations"][1]["calls"][1]["recovery_action"], "other_tool");
    assert_eq!(value["iterations"][2]["requests"][2]["status"], Value::Null);
    assert_eq!(value["iterations"][3]["requests"][0]["tokens"]["total_tokens"], 34);
    assert_eq!(value["totals"]["failed_calls"], 2);
    assert_eq!(value["totals"]["failed_requests"], 4);
    assert_eq!(value["result"]["success"], true);
}

#[test]
fn a_question_of_a_server_is_shown_with_its_answer() {
    let mut golden = sample();
    golden.questions.push(QuestionRecord {
        server: "mail".to_owned(),
        method: "elicitation/create".to_owned(),
        params: to_raw_value(&json!({"message": "Send it?"})).unwrap(),
        answer: Some(to_raw_value(&json!({"action": "accept"})).unwrap()),
        call: Some(0),
    });
    let text = inspected(&golden, false);
    let question = "question  elicitation/create of mail: {\"message\":\"Send it?\"}\n";
    assert!(text.contains(question), "{text}");
    assert!(text.contains("answer    {\"action\":\"accept\"}\n"), "{text}");
}

/// Attack: terminal | a recorded text contains escape codes | they are escaped |
/// Foreign text stays text
#[test]
fn recorded_text_cannot_control_the_terminal() {
    let mut golden = sample();
    golden.test_name = "a\u{1b}[2Jb".to_owned();
    golden.input.user_prompt = "c\nFAILED\u{9b}d".to_owned();
    let text = inspected(&golden, false);
    assert!(text.contains("a\\u{1b}[2Jb (recorded"), "{text}");
    assert!(text.contains("user      c\\nFAILED\\u{9b}d\n"), "{text}");
}
