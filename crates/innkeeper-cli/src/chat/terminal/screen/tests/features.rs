//! Snapshots of each feature, at three sizes and in both themes.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use innkeeper_agent::agent::AgentEvent;
use serde_json::json;
use tokio::time::{Instant, advance};

use super::builders::{
    approval, ask, elicitation, finished, form_of_each_kind, progress, run_finished, sampling,
    show, started, url,
};
use super::frames::Frames;
use super::{enter, press, rows, type_text};
use crate::chat::slash_command::help_text;
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::Screen;
use crate::chat::terminal::theme::Role;

const MARKDOWN: &str = "# Notes\n\nI **read** the [notes](https://notes.example) with `list_notes`:\
    \n\n- one\n- two\n  1. three\n\n> A quote.\n\n```rust\nfn main() {}\n```\n\n\
    | name | size |\n| --- | --- |\n| a | 1 |\n\nThe la";

fn screen() -> Screen {
    let mut screen = Screen::new(Theme::Dark);
    screen.status.model = "anthropic/claude".to_owned();
    (screen.status.ready_servers, screen.status.servers) = (2, 3);
    screen
}

fn key(screen: &mut Screen, code: KeyCode) {
    assert_eq!(press(screen, code, KeyModifiers::NONE), None);
}

fn control(screen: &mut Screen, character: char) {
    assert_eq!(press(screen, KeyCode::Char(character), KeyModifiers::CONTROL), None);
}

#[tokio::test(start_paused = true)]
async fn streamed_markdown_is_drawn_while_the_model_writes() {
    let mut screen = screen();
    screen.on_sent("Show me the notes.", Instant::now());
    advance(Duration::from_millis(1_300)).await;
    show(&mut screen, &AgentEvent::Text(MARKDOWN.to_owned()));
    let mut frames = Frames::default();
    frames.add("Markdown", &mut screen);
    show(&mut screen, &AgentEvent::Text("st.\n\n```sh\nls -l".to_owned()));
    frames.add("an open code block", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn reasoning_is_folded_until_it_is_opened() {
    let mut screen = screen();
    screen.on_sent("Why?", Instant::now());
    let reasoning = "The user asks why. I must find out which server knows the reason, and ask it.";
    show(&mut screen, &AgentEvent::Reasoning(reasoning.to_owned()));
    let mut frames = Frames::default();
    frames.add("folded", &mut screen);
    control(&mut screen, 'o');
    frames.add("open", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_call_shows_its_state_its_progress_and_its_failure() {
    let mut screen = screen();
    screen.on_sent("Copy.", Instant::now());
    let arguments = json!({"from": "a.txt", "to": "b.txt"});
    show(&mut screen, &started("1", "files.copy", &arguments.to_string()));
    show(&mut screen, &finished("1", &arguments, true, "copied", "native"));
    show(&mut screen, &started("2", "files.copy", &arguments.to_string()));
    show(&mut screen, &finished("2", &arguments, false, "no such file", "repaired"));
    show(
        &mut screen,
        &finished("3", &arguments, false, "not run: the user denied the call", "native"),
    );
    show(&mut screen, &started("4", "files.copy", &arguments.to_string()));
    show(&mut screen, &progress("4", 3.0, Some("copying b.txt")));
    advance(Duration::from_millis(700)).await;
    let mut frames = Frames::default();
    frames.add("finished, failed, refused, running", &mut screen);
    screen.on_interrupted();
    frames.add("interrupted", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn an_open_call_shows_server_arguments_changes_and_result() {
    let mut screen = screen();
    screen.on_sent("Copy.", Instant::now());
    show(&mut screen, &started("1", "files.copy", r#"{"from":"a.txt"}"#));
    show(&mut screen, &finished("1", &json!({"from": "z.txt"}), true, "copied\n7 bytes", "native"));
    key(&mut screen, KeyCode::Tab);
    key(&mut screen, KeyCode::Enter);
    let mut frames = Frames::default();
    frames.add("open", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn an_approval_and_the_editor_of_its_arguments_are_drawn() {
    let mut screen = screen();
    screen.on_sent("Write.", Instant::now());
    let (first, _answer) = approval();
    ask(&mut screen, first);
    let (second, _second_answer) = approval();
    ask(&mut screen, second);
    let mut frames = Frames::default();
    frames.add("approval", &mut screen);
    key(&mut screen, KeyCode::Char('e'));
    key(&mut screen, KeyCode::Backspace);
    enter(&mut screen);
    frames.add("edited arguments that are no JSON", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_request_for_the_model_and_for_an_address_are_drawn() {
    let mut frames = Frames::default();
    let mut screen = screen();
    let (question, _answer) = sampling();
    ask(&mut screen, question);
    frames.add("sampling", &mut screen);
    key(&mut screen, KeyCode::Char('n'));
    let (question, _answer) = elicitation(url());
    ask(&mut screen, question);
    frames.add("address", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_form_asks_for_each_kind_of_field() {
    let mut screen = screen();
    let (question, _answer) = elicitation(form_of_each_kind());
    ask(&mut screen, question);
    let mut frames = Frames::default();
    type_text(&mut screen, "Ada");
    frames.add("text", &mut screen);
    enter(&mut screen);
    type_text(&mut screen, "many");
    enter(&mut screen);
    frames.add("number with an invalid input", &mut screen);
    control(&mut screen, 'w');
    for (title, input) in [("boolean", "3"), ("choice", "yes"), ("several choices", "second")] {
        type_text(&mut screen, input);
        enter(&mut screen);
        frames.add(title, &mut screen);
    }
    key(&mut screen, KeyCode::BackTab);
    frames.add("back", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn waiting_messages_suggestions_and_the_search_are_drawn() {
    let mut frames = Frames::default();
    let mut screen = screen();
    screen.on_sent("first", Instant::now());
    for text in ["second", "third"] {
        type_text(&mut screen, text);
        enter(&mut screen);
    }
    frames.add("waiting messages", &mut screen);
    type_text(&mut screen, "/t");
    key(&mut screen, KeyCode::Down);
    frames.add("suggestions", &mut screen);
    key(&mut screen, KeyCode::Tab);
    control(&mut screen, 'r');
    type_text(&mut screen, "sec");
    frames.add("search", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_selected_block_and_a_scrolled_transcript_are_drawn() {
    let mut frames = Frames::default();
    let mut screen = screen();
    for number in 1..=80 {
        screen.transcript.notice(Role::Text, format!("notice {number}"));
    }
    press(&mut screen, KeyCode::PageUp, KeyModifiers::NONE);
    frames.add("scrolled", &mut screen);
    press(&mut screen, KeyCode::Home, KeyModifiers::CONTROL);
    frames.add("start", &mut screen);
    key(&mut screen, KeyCode::Tab);
    key(&mut screen, KeyCode::Up);
    frames.add("selected", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn help_notices_and_the_line_of_facts_are_drawn() {
    let mut frames = Frames::default();
    let mut screen = screen();
    screen.status.tokens = "1234 tokens".to_owned();
    screen.status.attachments = vec!["a.png".to_owned(), "notes://week".to_owned()];
    screen.transcript.notice(Role::Text, help_text());
    frames.add("help", &mut screen);
    screen.transcript.notice(Role::Error, "notes: the server ended");
    screen.transcript.notice(Role::Dim, "hint: run `innkeeper why notes`");
    screen.work = Some("restarting notes".to_owned());
    frames.add("notices and work", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_says_why() {
    let mut screen = screen();
    screen.on_sent("Hello", Instant::now());
    show(&mut screen, &run_finished(&json!({"not_sent": {"reason": "the request is too long"}})));
    screen.on_sent("Hello", Instant::now());
    show(&mut screen, &AgentEvent::Retrying { delay: Duration::from_millis(1_500) });
    show(&mut screen, &AgentEvent::Text("A part".to_owned()));
    show(&mut screen, &run_finished(&json!("truncated")));
    let mut frames = Frames::default();
    frames.add("failed and truncated", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn log_messages_leave_the_streamed_response_whole_and_their_note_is_replaced() {
    let mut screen = screen();
    screen.on_sent("Add.", Instant::now());
    show(&mut screen, &AgentEvent::Text("The model **wri".to_owned()));
    screen.on_server_line(Role::Warning, "log one warning: disk is full".to_owned());
    screen.on_server_line(Role::Error, "log one error (db): no disk".to_owned());
    let note = "log messages left out: 7 of one; /log LEVEL changes what is shown".to_owned();
    screen.on_server_line(Role::Dim, note.clone());
    let transcript = &mut screen.transcript;
    assert!(transcript.has_recent_notice(&note));
    transcript.replace_recent_notice(&note, note.replace('7', "9000"));
    assert!(!transcript.has_recent_notice(&note));
    show(&mut screen, &AgentEvent::Text("tes**.".to_owned()));
    let mut frames = Frames::default();
    frames.add("log messages", &mut screen);
    show(&mut screen, &run_finished(&json!("completed")));
    screen.on_server_line(Role::Error, "log one error: after the response".to_owned());
    frames.add("after the run", &mut screen);
    insta::assert_snapshot!(frames.text());
}

#[tokio::test(start_paused = true)]
async fn a_log_message_moves_neither_the_selection_nor_the_shown_lines() {
    let mut screen = screen();
    for number in 1..=40 {
        screen.transcript.notice(Role::Text, format!("notice {number}"));
    }
    show(&mut screen, &AgentEvent::Text("The response.".to_owned()));
    key(&mut screen, KeyCode::Tab);
    let selected = screen.transcript.copied_text();
    assert_eq!(selected.as_deref(), Some("The response."));
    screen.transcript.notice_before_response(Role::Dim, "log one error: 1".to_owned());
    assert_eq!(screen.transcript.copied_text(), selected);
    key(&mut screen, KeyCode::Esc);
    press(&mut screen, KeyCode::PageUp, KeyModifiers::NONE);
    let before = rows(&mut screen, 80, 24);
    screen.transcript.notice_before_response(Role::Dim, "log one error: 2".to_owned());
    assert_eq!(rows(&mut screen, 80, 24), before);
}
