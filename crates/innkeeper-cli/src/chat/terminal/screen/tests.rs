//! Tests of the screen: keys and events against the drawn rows.

mod builders;
mod completion;
mod editor_keys;
mod features;
mod frames;
mod history;
mod limits;
mod questions;
mod random_input;
mod scrolling;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use innkeeper_agent::ToolAnnotations;
use innkeeper_agent::safety::DecisionScope;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::sync::oneshot;

use super::*;
use crate::chat::question::{ApprovalAnswer, ApprovalQuestion};
use builders::{approval, ask};

fn rows(screen: &mut Screen, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    screen.draw(area, &mut buffer, Instant::now());
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    let rows: Vec<String> = (0..height).map(|y| row(y).trim_end().to_owned()).collect();
    rows.join("\n")
}

fn press(screen: &mut Screen, code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
    screen.on_key(KeyEvent::new(code, modifiers), Instant::now())
}

fn type_text(screen: &mut Screen, text: &str) {
    for character in text.chars() {
        assert_eq!(press(screen, KeyCode::Char(character), KeyModifiers::NONE), None);
    }
}

fn enter(screen: &mut Screen) -> Option<Action> {
    press(screen, KeyCode::Enter, KeyModifiers::NONE)
}

#[tokio::test(start_paused = true)]
async fn a_typed_message_is_sent_and_its_response_is_drawn() {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, "Hello");
    assert_eq!(enter(&mut screen), Some(Action::Send("Hello".to_owned())));
    screen.on_sent("Hello", Instant::now());
    screen.on_event(&AgentEvent::Text("**Hi** there.".to_owned()), |_| None, Instant::now());
    let drawn = rows(&mut screen, 40, 12);
    assert!(drawn.contains("  Hello\n\n  Hi there.\n"), "{drawn}");
    assert!(drawn.contains("the model writes"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn escape_stops_a_run_and_a_second_control_c_leaves() {
    let mut screen = Screen::new(Theme::Plain);
    screen.on_sent("Hello", Instant::now());
    assert_eq!(press(&mut screen, KeyCode::Esc, KeyModifiers::NONE), Some(Action::Interrupt));
    screen.on_interrupted();
    assert!(rows(&mut screen, 40, 12).contains("interrupted"));
    assert_eq!(press(&mut screen, KeyCode::Char('c'), KeyModifiers::CONTROL), None);
    assert!(rows(&mut screen, 40, 12).contains("press Ctrl-C again to leave"));
    let second = press(&mut screen, KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(second, Some(Action::Quit));
}

#[tokio::test(start_paused = true)]
async fn an_approval_shows_the_call_and_takes_the_answer_of_a_key() {
    for (key, answer) in [
        ('y', ApprovalAnswer::Allow(DecisionScope::Call)),
        ('t', ApprovalAnswer::Allow(DecisionScope::Tool)),
        ('s', ApprovalAnswer::Allow(DecisionScope::Server)),
        ('a', ApprovalAnswer::AllowAlways),
        ('n', ApprovalAnswer::Deny(DecisionScope::Call, None)),
        ('N', ApprovalAnswer::Deny(DecisionScope::Tool, None)),
    ] {
        let mut screen = Screen::new(Theme::Plain);
        let (question, mut receiver) = approval();
        ask(&mut screen, question);
        let drawn = rows(&mut screen, 80, 20);
        for text in ["Run files.write on files?", "Writes a file.", "\"path\": \"a\"", "not pinned"]
        {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        press(&mut screen, KeyCode::Char(key), KeyModifiers::NONE);
        assert_eq!(receiver.try_recv().unwrap(), answer);
    }
}

#[tokio::test(start_paused = true)]
async fn the_arguments_of_a_call_can_be_changed_before_it_runs() {
    let mut screen = Screen::new(Theme::Plain);
    let (question, mut receiver) = approval();
    ask(&mut screen, question);
    press(&mut screen, KeyCode::Char('e'), KeyModifiers::NONE);
    press(&mut screen, KeyCode::Backspace, KeyModifiers::NONE);
    enter(&mut screen);
    assert!(rows(&mut screen, 60, 20).contains("no JSON object"));
    type_text(&mut screen, "}");
    enter(&mut screen);
    let answer = receiver.try_recv().unwrap();
    let ApprovalAnswer::AllowWith(arguments) = answer else { panic!("{answer:?}") };
    let arguments: serde_json::Value = serde_json::from_str(&arguments).unwrap();
    assert_eq!(arguments, serde_json::json!({"path": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_disappears_and_the_next_one_is_shown() {
    let mut screen = Screen::new(Theme::Plain);
    let ((first, receiver), (second, _open)) = (approval(), approval());
    ask(&mut screen, first);
    ask(&mut screen, second);
    assert!(rows(&mut screen, 80, 20).contains("1 more question"));
    drop(receiver);
    screen.drop_withdrawn_questions();
    let drawn = rows(&mut screen, 80, 20);
    assert!(drawn.contains("a question was withdrawn") && drawn.contains("Run files.write"));
    assert!(!drawn.contains("more question"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_run_waits_for_its_end() {
    let mut screen = Screen::new(Theme::Plain);
    screen.on_sent("first", Instant::now());
    type_text(&mut screen, "second");
    assert_eq!(enter(&mut screen), None);
    assert!(rows(&mut screen, 80, 12).contains("1 message waits"));
    assert_eq!(screen.take_queued().as_deref(), Some("second"));
}

#[tokio::test(start_paused = true)]
async fn a_command_is_completed_and_an_unknown_command_is_named() {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, "/serv");
    assert!(rows(&mut screen, 60, 16).contains("/servers  list the servers"));
    press(&mut screen, KeyCode::Tab, KeyModifiers::NONE);
    let servers = Action::Command(SlashCommand::Servers, String::new());
    assert_eq!(enter(&mut screen), Some(servers));
    type_text(&mut screen, "/nothing");
    assert_eq!(enter(&mut screen), None);
    assert!(rows(&mut screen, 60, 16).contains("no command /nothing"));
}

#[tokio::test(start_paused = true)]
async fn a_long_paste_is_one_word_and_is_sent_whole() {
    let mut screen = Screen::new(Theme::Plain);
    let text = "line of text\n".repeat(80_000);
    screen.on_paste(&text);
    type_text(&mut screen, " end");
    assert!(rows(&mut screen, 80, 16).contains("[pasted text 1: 1040000 bytes] end"));
    let Some(Action::Send(sent)) = enter(&mut screen) else { panic!("not sent") };
    assert_eq!(sent, format!("{text} end").trim());
}

/// Attack: terminal | a server and a model write terminal sequences | the screen shows them as text
/// | Foreign text stays text
#[tokio::test(start_paused = true)]
async fn sequences_for_the_terminal_never_reach_a_cell() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}";
    let mut screen = Screen::new(Theme::Dark);
    screen.on_sent(evil, Instant::now());
    let (sender, _receiver) = oneshot::channel();
    let call = AgentEvent::ToolCallStarted {
        id: "1".to_owned(),
        tool: evil.to_owned(),
        arguments: Arc::from(evil),
    };
    for event in [AgentEvent::Text(evil.to_owned()), AgentEvent::Reasoning(evil.to_owned()), call] {
        screen.on_event(&event, |_| Some(evil.to_owned()), Instant::now());
    }
    screen.on_question(Question::Approval(
        ApprovalQuestion {
            tool: evil.to_owned(),
            server: Some(evil.to_owned()),
            arguments: evil.to_owned(),
            description: Some(evil.to_owned()),
            annotations: ToolAnnotations::default(),
            is_pinned: true,
            permanent_obstacle: None,
        },
        sender,
    ));
    screen.status.model = evil.to_owned();
    screen.transcript.toggle_all_details();
    for (width, height) in [(40, 12), (80, 24), (200, 60)] {
        let drawn = rows(&mut screen, width, height);
        let is_bad = |c: char| c != '\n' && innkeeper_host::is_deceptive_char(c);
        assert!(!drawn.contains(is_bad), "{drawn}");
    }
}
