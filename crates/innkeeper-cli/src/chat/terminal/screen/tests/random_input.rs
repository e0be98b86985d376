//! Random keys, pastes, events, questions and sizes: the screen never panics and stays in its area.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use innkeeper_agent::agent::AgentEvent;
use proptest::prelude::*;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use serde_json::json;
use tokio::time::Instant;

use super::builders::{
    approval_of, elicitation, finished, form_of_each_kind, progress, run_finished, sampling,
    started, url,
};
use crate::chat::completion::{CompletionValue, Completions};
use crate::chat::slash_command::SlashCommand;
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::{Action, Screen};
use crate::chat::terminal::theme::Role;

/// The cells around the area of the screen.
const MARGIN: u16 = 2;

/// What happens to the screen.
#[derive(Clone, Debug)]
enum Step {
    Key(KeyCode, KeyModifiers),
    Paste(String),
    Event(u8, String),
    Question(u8, String),
    /// Nobody waits for the answers any more.
    Withdraw,
    Resize(u16, u16),
    Theme(Theme),
    Wait(u16),
    Completions(u8, String),
    EarlierMessages(String),
    /// A log message of a server, which a longer text replaces.
    Log(String),
}

fn text() -> impl Strategy<Value = String> {
    let text = "[a-z /@{}\":,`*#|>.\\-世é\u{301}ﾞ🦀👩\u{200d}\u{fe0f}\u{202e}\u{2066}\u{1b}\u{7}\u{9b}\t\r\n]{0,60}";
    prop_oneof![
        6 => text,
        1 => Just("/attach notes://a".to_owned()),
        1 => Just(r#"{"path":"a","list":[1,{"b":"\u001b[2J"}]}"#.to_owned()),
        1 => Just("long".repeat(2_000)),
        1 => Just("line\r\n".repeat(40)),
    ]
}

fn key() -> impl Strategy<Value = Step> {
    let codes = prop_oneof![
        6 => any::<char>().prop_map(KeyCode::Char),
        8 => prop::sample::select("abcdefghijklmnopqrstuvwxyzNY/ 123=@".chars().collect::<Vec<_>>())
            .prop_map(KeyCode::Char),
        8 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace,
            KeyCode::Delete, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right,
            KeyCode::Home, KeyCode::End, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Insert,
            KeyCode::F(1), KeyCode::Null, KeyCode::Menu,
        ]),
    ];
    let modifiers = prop_oneof![
        5 => Just(KeyModifiers::NONE),
        2 => Just(KeyModifiers::CONTROL),
        1 => Just(KeyModifiers::ALT),
        1 => Just(KeyModifiers::SHIFT),
        1 => Just(KeyModifiers::CONTROL | KeyModifiers::SHIFT | KeyModifiers::ALT),
    ];
    (codes, modifiers).prop_map(|(code, modifiers)| Step::Key(code, modifiers))
}

fn size() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        4 => (1u16..=12, 1u16..=12),
        4 => (1u16..=100, 1u16..=40),
        1 => (1u16..=300, 1u16..=100),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => key(),
        2 => text().prop_map(Step::Paste),
        6 => (any::<u8>(), text()).prop_map(|(kind, text)| Step::Event(kind, text)),
        2 => (any::<u8>(), text()).prop_map(|(kind, text)| Step::Question(kind, text)),
        1 => Just(Step::Withdraw),
        2 => size().prop_map(|(width, height)| Step::Resize(width, height)),
        1 => prop::sample::select(vec![Theme::Dark, Theme::Light, Theme::Plain])
            .prop_map(Step::Theme),
        2 => (0u16..5_000).prop_map(Step::Wait),
        2 => (any::<u8>(), text()).prop_map(|(kind, text)| Step::Completions(kind, text)),
        1 => text().prop_map(Step::EarlierMessages),
        1 => text().prop_map(Step::Log),
    ]
}

fn event(kind: u8, text: &str) -> AgentEvent {
    let id = text.len().to_string();
    match kind % 13 {
        0 | 1 => AgentEvent::Text(text.to_owned()),
        2 => AgentEvent::Reasoning(text.to_owned()),
        3 => AgentEvent::ToolCallDetected { tool: text.to_owned() },
        4 => started(&id, text, text),
        5 => progress(&id, f64::MAX, Some(text)),
        6 => finished(&id, &json!({ "text": text }), true, text, "native"),
        7 => finished(&id, &json!(text), false, text, "repaired"),
        8 => AgentEvent::Planned(Vec::new()),
        9 => AgentEvent::HistorySummaryStarted { messages: usize::MAX },
        10 => AgentEvent::Retrying { delay: Duration::from_secs(u64::from(kind)) },
        11 => run_finished(&json!({ "not_sent": { "reason": text } })),
        _ => run_finished(&json!("completed")),
    }
}

/// The screen with what the program does besides.
struct Session {
    screen: Screen,
    now: Instant,
    size: (u16, u16),
    /// The receivers of the answers; a dropped receiver withdraws its question.
    answers: Vec<Box<dyn std::any::Any>>,
}

impl Session {
    fn new() -> Self {
        let screen = Screen::new(Theme::Dark);
        Self { screen, now: Instant::now(), size: (40, 12), answers: Vec::new() }
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        let action = self.screen.on_key(KeyEvent::new(code, modifiers), self.now);
        match &action {
            Some(Action::Send(text)) => self.screen.on_sent(text, self.now),
            Some(Action::Interrupt) => self.screen.on_interrupted(),
            Some(Action::Command(SlashCommand::Clear, _)) => self.screen.transcript.clear(),
            Some(Action::Command(..) | Action::Quit | Action::Complete { .. }) | None => {}
        }
        action
    }

    fn ask(&mut self, kind: u8, text: &str) {
        macro_rules! ask {
            ($question:expr) => {{
                let (question, answer) = $question;
                self.screen.on_question(question);
                self.answers.push(Box::new(answer));
            }};
        }
        match kind % 4 {
            0 => ask!(approval_of(text)),
            1 => ask!(sampling()),
            2 => ask!(elicitation(form_of_each_kind())),
            _ => ask!(elicitation(url())),
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Key(code, modifiers) => drop(self.key(code, modifiers)),
            Step::Paste(text) => self.screen.on_paste(&text),
            Step::Event(kind, text) => {
                let server = Some(text.clone());
                self.screen.on_event(&event(kind, &text), |_| server.clone(), self.now);
                if kind % 13 > 10 {
                    self.screen.status.model = text;
                }
            }
            Step::Question(kind, text) => self.ask(kind, &text),
            Step::Withdraw => {
                self.answers.clear();
                self.screen.drop_withdrawn_questions();
            }
            Step::Resize(width, height) => self.size = (width, height),
            Step::Theme(theme) => self.screen.theme = theme,
            Step::Wait(milliseconds) => self.now += Duration::from_millis(milliseconds.into()),
            Step::Completions(kind, text) => {
                let shown = self.screen.editor.text_before_cursor();
                let replaced: String = shown.chars().rev().take(usize::from(kind % 8)).collect();
                let replaced = replaced.chars().rev().collect();
                let value = |text: &str, attachment| CompletionValue {
                    attachment,
                    ..CompletionValue::new(text, text)
                };
                let attached = Some(text.clone()).filter(|_| kind % 3 == 0);
                let values = vec![value(&text, attached), value(&shown, None)];
                let completions = Completions { replaced, values };
                self.screen.on_completions(&shown, completions, kind % 2 == 0);
            }
            Step::EarlierMessages(text) => {
                self.screen.on_earlier_messages(vec![text.clone(), String::new(), text]);
            }
            Step::Log(text) => {
                self.screen.on_server_line(Role::Dim, text.clone());
                self.screen.transcript.replace_recent_notice(&text, text.repeat(2));
            }
        }
    }

    /// Draws a frame, and returns the first problem of a cell.
    fn draw(&mut self) -> Option<String> {
        let (width, height) = self.size;
        let area = Rect::new(MARGIN, MARGIN, width, height);
        let all = Rect::new(0, 0, width + 2 * MARGIN, height + 2 * MARGIN);
        let mut buffer = Buffer::filled(all, Cell::new("#"));
        for position in area.positions() {
            buffer[position].reset();
        }
        self.screen.draw(area, &mut buffer, self.now);
        all.positions().find_map(|position| {
            let symbol = buffer[position].symbol();
            let is_wrong = match area.contains(position) {
                true => symbol.contains(is_control),
                false => symbol != "#",
            };
            is_wrong.then(|| format!("{symbol:?} at {position}, size {:?}", self.size))
        })
    }
}

/// Whether a character controls the terminal or the direction of text.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Attack: terminal | random keys, pastes, events, questions and sizes, with control characters |
    /// no panic, no cell outside of the area, no control character in a cell, and Esc and Ctrl-C work
    /// | Foreign text stays text
    #[test]
    fn random_input_never_breaks_the_screen(steps in prop::collection::vec(step(), 1..60)) {
        let mut session = Session::new();
        for step in steps {
            session.apply(step);
            prop_assert_eq!(session.draw(), None);
        }
        session.screen.on_sent("last message", session.now);
        let mut is_interrupted = false;
        for _ in 0..2 * session.answers.len() + 6 {
            session.now += Duration::from_secs(5);
            prop_assert_eq!(session.draw(), None);
            session.now += Duration::from_secs(5);
            prop_assert_eq!(session.draw(), None);
            is_interrupted |=
                session.key(KeyCode::Esc, KeyModifiers::NONE) == Some(Action::Interrupt);
        }
        prop_assert!(is_interrupted, "Esc stops no run");
        session.now += Duration::from_secs(5);
        session.key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let second = session.key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        prop_assert_eq!(second, Some(Action::Quit));
        prop_assert_eq!(session.draw(), None);
    }
}
