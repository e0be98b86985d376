//! Tests of messages that Up and Ctrl-R find, also of earlier conversations.

use crossterm::event::{KeyCode, KeyModifiers};

use super::builders::assert_shown;
use super::{enter, press, type_text};
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::{Action, Screen};

fn up(screen: &mut Screen) -> String {
    press(screen, KeyCode::Up, KeyModifiers::NONE);
    screen.editor.shown_text()
}

fn down(screen: &mut Screen) -> String {
    press(screen, KeyCode::Down, KeyModifiers::NONE);
    screen.editor.shown_text()
}

fn send(screen: &mut Screen, text: &str) {
    type_text(screen, text);
    assert_eq!(enter(screen), Some(Action::Send(text.to_owned())));
}

fn messages(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn messages_of_earlier_conversations_are_read_when_a_key_needs_them() {
    let mut screen = Screen::new(Theme::Plain);
    send(&mut screen, "this one");
    assert!(!screen.editor.take_wish_for_earlier_messages());
    assert_eq!(up(&mut screen), "this one");
    assert!(screen.editor.take_wish_for_earlier_messages());
    // The person waits for an older message.
    assert_eq!(up(&mut screen), "this one");
    screen.on_earlier_messages(messages(&["newer", "this one", "newer", "oldest"]));
    assert_eq!(screen.editor.shown_text(), "newer");
    assert_eq!(up(&mut screen), "oldest");
    assert_eq!(up(&mut screen), "oldest");
    assert_eq!([down(&mut screen), down(&mut screen)], ["newer", "this one"]);
    assert!(!screen.editor.take_wish_for_earlier_messages(), "they are read once");
}

#[tokio::test(start_paused = true)]
async fn the_search_finds_messages_of_earlier_conversations() {
    let mut screen = Screen::new(Theme::Plain);
    send(&mut screen, "list files");
    press(&mut screen, KeyCode::Char('r'), KeyModifiers::CONTROL);
    assert!(screen.editor.take_wish_for_earlier_messages());
    type_text(&mut screen, "notes");
    assert_shown(&mut screen, (60, 12), "search `notes`: no message");
    screen.on_earlier_messages(messages(&["list notes", "add notes"]));
    assert_shown(&mut screen, (60, 12), "search `notes`: list notes");
    press(&mut screen, KeyCode::Char('r'), KeyModifiers::CONTROL);
    assert_shown(&mut screen, (60, 12), "search `notes`: add notes");
    enter(&mut screen);
    assert_eq!(screen.editor.shown_text(), "add notes");
}

#[tokio::test(start_paused = true)]
async fn earlier_messages_change_neither_the_recalled_nor_the_found_message() {
    let mut screen = Screen::new(Theme::Plain);
    send(&mut screen, "first");
    send(&mut screen, "second");
    assert_eq!(up(&mut screen), "second");
    screen.on_earlier_messages(messages(&["old"]));
    assert_eq!([up(&mut screen), up(&mut screen)], ["first", "old"]);
    let mut screen = Screen::new(Theme::Plain);
    send(&mut screen, "first");
    press(&mut screen, KeyCode::Char('r'), KeyModifiers::CONTROL);
    type_text(&mut screen, "fir");
    screen.on_earlier_messages(messages(&["older"]));
    assert_shown(&mut screen, (60, 12), "search `fir`: first");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_message_is_recalled_once() {
    let mut screen = Screen::new(Theme::Plain);
    for text in ["a", "b", "a"] {
        send(&mut screen, text);
    }
    assert_eq!([up(&mut screen), up(&mut screen), up(&mut screen)], ["a", "b", "b"]);
}
