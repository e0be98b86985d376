//! Tests of suggestions: names behind `@`, values that a person asks for, and what Enter takes.

use crossterm::event::{KeyCode, KeyModifiers};

use super::builders::assert_shown;
use super::frames::Frames;
use super::{enter, press, rows, type_text};
use crate::chat::completion::{CompletionValue, Completions};
use crate::chat::slash_command::SlashCommand;
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::{Action, Screen};

/// Types keys; returns the last action.
fn type_keys(screen: &mut Screen, text: &str) -> Option<Action> {
    let press_key = |character| press(screen, KeyCode::Char(character), KeyModifiers::NONE);
    text.chars().map(press_key).last().flatten()
}

fn key(screen: &mut Screen, code: KeyCode) -> Option<Action> {
    press(screen, code, KeyModifiers::NONE)
}

fn automatic(text: &str) -> Option<Action> {
    Some(Action::Complete { text: text.to_owned(), is_automatic: true })
}

fn mention(text: &str, purpose: &str) -> CompletionValue {
    match text.ends_with('/') {
        true => CompletionValue {
            label: text.to_owned(),
            ..CompletionValue::new(format!("@{text}"), purpose)
        },
        false => CompletionValue {
            label: text.to_owned(),
            attachment: Some(text.to_owned()),
            ..CompletionValue::new(format!("{text} "), purpose)
        },
    }
}

/// Returns a screen with the names for a message that ends with `@no`.
fn screen_with_names() -> Screen {
    let mut screen = Screen::new(Theme::Plain);
    assert_eq!(type_keys(&mut screen, "Read @no"), automatic("Read @no"));
    let values = vec![
        mention("notes://week", "The notes of the week"),
        mention("notes/", "directory"),
        mention("notes.md", "file"),
    ];
    let completions = Completions { replaced: "@no".to_owned(), values };
    assert_eq!(screen.on_completions("Read @no", completions, true), None);
    screen
}

fn attach(name: &str) -> Option<Action> {
    Some(Action::Command(SlashCommand::Attach, name.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn a_name_behind_an_at_sign_attaches_the_file_and_stays_in_the_text() {
    let mut screen = screen_with_names();
    let mut frames = Frames::default();
    frames.add("names", &mut screen);
    key(&mut screen, KeyCode::Up);
    frames.add("selected file", &mut screen);
    insta::assert_snapshot!(frames.text());
    assert_eq!(enter(&mut screen), attach("notes.md"));
    assert_eq!(screen.editor.shown_text(), "Read notes.md ");
    assert_eq!(type_keys(&mut screen, "again"), None);
    assert_eq!(enter(&mut screen), Some(Action::Send("Read notes.md again".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_directory_behind_an_at_sign_is_opened_and_attaches_nothing() {
    let mut screen = screen_with_names();
    key(&mut screen, KeyCode::Down);
    key(&mut screen, KeyCode::Down);
    assert_eq!(key(&mut screen, KeyCode::Tab), automatic("Read @notes/"));
    assert_eq!(screen.editor.shown_text(), "Read @notes/");
}

#[tokio::test(start_paused = true)]
async fn an_at_sign_inside_a_word_or_in_a_command_suggests_nothing() {
    for text in ["a@b", "/save @a", "@ a"] {
        let mut screen = Screen::new(Theme::Plain);
        assert_eq!(type_keys(&mut screen, text), None, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_in_the_middle_of_a_message_is_completed_at_the_cursor() {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, "Read  twice");
    (0..6).for_each(|_| drop(key(&mut screen, KeyCode::Left)));
    assert_eq!(type_keys(&mut screen, "@no"), automatic("Read @no"));
    let completions =
        Completions { replaced: "@no".to_owned(), values: vec![mention("notes.md", "file")] };
    screen.on_completions("Read @no", completions, true);
    assert_eq!(key(&mut screen, KeyCode::Tab), attach("notes.md"));
    assert_eq!(screen.editor.shown_text(), "Read notes.md  twice");
}

#[tokio::test(start_paused = true)]
async fn names_for_a_text_that_changed_are_not_shown() {
    let mut screen = screen_with_names();
    assert_eq!(type_keys(&mut screen, "t"), automatic("Read @not"));
    let values = vec![mention("nowhere", "file")];
    screen.on_completions("Read @no", Completions { replaced: "@no".to_owned(), values }, true);
    let drawn = rows(&mut screen, 80, 24);
    assert!(!drawn.contains("nowhere") && !drawn.contains("notes.md"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn enter_takes_a_suggestion_only_if_an_arrow_key_selected_it() {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, "/t");
    assert_shown(&mut screen, (80, 16), "/tokens");
    assert_eq!(enter(&mut screen), None);
    assert_shown(&mut screen, (80, 16), "no command /t");
    assert_eq!(screen.editor.shown_text(), "/t");
    key(&mut screen, KeyCode::Backspace);
    type_text(&mut screen, "t");
    key(&mut screen, KeyCode::Down);
    key(&mut screen, KeyCode::Down);
    assert_eq!(enter(&mut screen), None);
    assert_eq!(screen.editor.shown_text(), "/tokens");
    assert_eq!(enter(&mut screen), Some(Action::Command(SlashCommand::Tokens, String::new())));
    let mut screen = screen_with_names();
    assert_eq!(enter(&mut screen), Some(Action::Send("Read @no".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn tab_takes_the_first_suggestion_and_escape_takes_none() {
    let mut screen = screen_with_names();
    assert_eq!(key(&mut screen, KeyCode::Esc), None);
    assert_eq!(screen.editor.shown_text(), "Read @no");
    let asked = Action::Complete { text: "Read @no".to_owned(), is_automatic: false };
    assert_eq!(key(&mut screen, KeyCode::Tab), Some(asked));
    let mut screen = screen_with_names();
    assert_eq!(key(&mut screen, KeyCode::Tab), attach("notes://week"));
    assert_eq!(screen.editor.shown_text(), "Read notes://week ");
}

#[tokio::test(start_paused = true)]
async fn one_value_is_inserted_at_once_only_if_a_person_asked_for_values() {
    let mut screen = Screen::new(Theme::Plain);
    type_keys(&mut screen, "/attach git://in");
    let asked = Action::Complete { text: "/attach git://in".to_owned(), is_automatic: false };
    assert_eq!(key(&mut screen, KeyCode::Tab), Some(asked));
    let values = vec![CompletionValue::new("git://innkeeper/", "repo of git://{repo}/{+path}")];
    let completions = Completions { replaced: "git://in".to_owned(), values };
    screen.on_completions("/attach git://in", completions.clone(), true);
    assert_eq!(screen.editor.shown_text(), "/attach git://in");
    screen.on_completions("/attach git://in", completions, false);
    assert_eq!(screen.editor.shown_text(), "/attach git://innkeeper/");
    screen.on_completions("/attach git://innkeeper/", Completions::default(), false);
    assert_shown(&mut screen, (80, 16), "no value completes the text");
}
