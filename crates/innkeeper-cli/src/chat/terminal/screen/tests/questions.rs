//! Tests of questions: keys that were not meant as answers, and questions that do not fit.

use crossterm::event::{KeyCode, KeyModifiers};
use innkeeper_agent::safety::DecisionScope;
use serde_json::json;
use tokio::time::{Instant, advance};

use super::builders::{
    QUESTION_DELAY, approval, approval_of, ask, assert_shown, elicitation, form,
};
use super::{enter, press, rows, type_text};
use crate::chat::question::{ApprovalAnswer, Question};
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::Screen;

/// Attack: terminal | a call needs an approval while the user types a message | no typed letter
/// answers the question, and the message stays | Approval first
#[tokio::test(start_paused = true)]
async fn letters_of_a_message_do_not_answer_a_question_that_appears() {
    let mut screen = Screen::new(Theme::Plain);
    screen.on_sent("Write.", Instant::now());
    type_text(&mut screen, "list ");
    let (question, mut answer) = approval();
    screen.on_question(question);
    rows(&mut screen, 80, 24);
    type_text(&mut screen, "yes");
    rows(&mut screen, 80, 24);
    assert!(answer.try_recv().is_err(), "a letter answered the question");
    assert_eq!(screen.editor.shown_text(), "list yes");
    assert_shown(&mut screen, (80, 24), "a question waits");
    advance(QUESTION_DELAY).await;
    // The question appears now; nobody can have read the question.
    rows(&mut screen, 80, 24);
    type_text(&mut screen, "s");
    assert!(answer.try_recv().is_err(), "a letter answered a question that nobody read");
    advance(QUESTION_DELAY).await;
    assert_shown(&mut screen, (80, 24), "y once");
    type_text(&mut screen, "n");
    assert!(answer.try_recv().is_ok());
    assert_eq!(screen.editor.shown_text(), "list yes");
}

/// Attack: terminal | the arguments of a call are too long for the screen | the question says that
/// it shows only a part | Approval first
#[tokio::test(start_paused = true)]
async fn an_approval_says_that_it_shows_only_a_part_of_the_arguments() {
    let mut screen = Screen::new(Theme::Plain);
    let arguments = json!({ "text": "x".repeat(1 << 20), "delete": true }).to_string();
    let (question, _answer) = approval_of(&arguments);
    ask(&mut screen, question);
    assert_shown(&mut screen, (80, 24), "more lines: PageDown");
    for _ in 0..200 {
        press(&mut screen, KeyCode::PageDown, KeyModifiers::NONE);
        rows(&mut screen, 80, 24);
    }
    assert_shown(&mut screen, (80, 24), &format!("of {} bytes", arguments.len()));
}

/// Attack: terminal | the arguments of a call are longer than the screen, with what matters at their
/// end | no key allows the call before its last line was on the screen | Approval first
#[tokio::test(start_paused = true)]
async fn a_question_is_allowed_only_after_its_last_line_was_shown() {
    let mut screen = Screen::new(Theme::Plain);
    let lines: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
    let (question, mut answer) = approval_of(&json!({ "lines": lines }).to_string());
    ask(&mut screen, question);
    type_text(&mut screen, "ytsa");
    assert_shown(&mut screen, (80, 24), "read the question to its end first");
    assert!(answer.try_recv().is_err(), "the question is answered");
    for _ in 0..60 {
        press(&mut screen, KeyCode::PageDown, KeyModifiers::NONE);
        rows(&mut screen, 80, 24);
    }
    assert!(!rows(&mut screen, 80, 24).contains("to its end first"));
    type_text(&mut screen, "y");
    assert_eq!(answer.try_recv().unwrap(), ApprovalAnswer::Allow(DecisionScope::Call));
}

/// Attack: terminal | a tool describes itself with hundreds of lines | the arguments of the call are
/// shown first | Approval first
#[tokio::test(start_paused = true)]
async fn a_long_description_does_not_hide_the_arguments() {
    let mut screen = Screen::new(Theme::Plain);
    let (mut question, _answer) = approval();
    if let Question::Approval(approval, _) = &mut question {
        approval.description = Some("harmless\n".repeat(400));
    }
    ask(&mut screen, question);
    assert_shown(&mut screen, (80, 24), "\"path\": \"a\"");
}

#[tokio::test(start_paused = true)]
async fn the_current_field_of_a_long_form_is_visible() {
    let mut screen = Screen::new(Theme::Plain);
    let fields = (1..=40).map(|n| (format!("field{n}"), json!({ "type": "string" })));
    let (question, _answer) = elicitation(form(&json!(fields.collect::<serde_json::Map<_, _>>())));
    ask(&mut screen, question);
    for number in 1..=40 {
        assert_shown(&mut screen, (60, 16), &format!("> field{number}"));
        type_text(&mut screen, "a");
        enter(&mut screen);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interruption_keeps_the_draft_beside_the_waiting_messages() {
    let mut screen = Screen::new(Theme::Plain);
    screen.on_sent("first", Instant::now());
    type_text(&mut screen, "second");
    enter(&mut screen);
    type_text(&mut screen, "draft");
    screen.on_interrupted();
    assert_eq!(screen.editor.text(), "second\ndraft");
}

#[tokio::test(start_paused = true)]
async fn a_question_keeps_the_draft_and_what_is_pasted_meanwhile() {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, "draft ");
    let (question, _answer) = approval();
    ask(&mut screen, question);
    screen.on_paste("pasted");
    press(&mut screen, KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.editor.shown_text(), "draft pasted");
}

#[tokio::test(start_paused = true)]
async fn a_denial_takes_a_reason_for_the_model_and_escape_returns_to_the_question() {
    let mut screen = Screen::new(Theme::Plain);
    let (question, mut answer) = approval();
    ask(&mut screen, question);
    assert_shown(&mut screen, (100, 20), "r no, reason");
    type_text(&mut screen, "rno");
    assert_shown(&mut screen, (80, 20), "\n  no\n");
    assert_shown(&mut screen, (80, 20), "\"path\": \"a\"");
    assert_shown(&mut screen, (80, 20), "Enter deny with this reason · Esc back");
    press(&mut screen, KeyCode::Esc, KeyModifiers::NONE);
    assert_shown(&mut screen, (80, 20), "y once");
    assert!(answer.try_recv().is_err(), "Esc answered the question");
    type_text(&mut screen, "ruse the file b");
    enter(&mut screen);
    let reason = Some("use the file b".to_owned());
    assert_eq!(answer.try_recv().unwrap(), ApprovalAnswer::Deny(DecisionScope::Call, reason));
    assert_shown(&mut screen, (80, 20), "files.write: denied: use the file b");
}

#[tokio::test(start_paused = true)]
async fn an_empty_reason_denies_the_call_without_a_reason() {
    let mut screen = Screen::new(Theme::Plain);
    let (question, mut answer) = approval();
    ask(&mut screen, question);
    type_text(&mut screen, "r ");
    enter(&mut screen);
    assert_eq!(answer.try_recv().unwrap(), ApprovalAnswer::Deny(DecisionScope::Call, None));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_have_no_permanent_rule_does_not_offer_one_and_says_why() {
    let mut screen = Screen::new(Theme::Plain);
    let (mut question, mut answer) = approval();
    if let Question::Approval(approval, _) = &mut question {
        approval.permanent_obstacle = Some("the tool belongs to no server");
    }
    ask(&mut screen, question);
    assert!(!rows(&mut screen, 80, 20).contains("always this tool"));
    type_text(&mut screen, "a");
    assert_shown(&mut screen, (80, 20), "the tool belongs to no server");
    assert!(answer.try_recv().is_err(), "the question is answered");
    type_text(&mut screen, "y");
    assert_eq!(answer.try_recv().unwrap(), ApprovalAnswer::Allow(DecisionScope::Call));
}
