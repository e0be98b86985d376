//! Tests of the keys that `docs/cli.md#chat` lists, against the keys of the text area.

use crossterm::event::{KeyCode, KeyEventKind, KeyEventState, KeyModifiers};
use tokio::time::Instant;

use super::builders::{approval, ask, assert_shown};
use super::{enter, press, type_text};
use crate::chat::completion::{CompletionValue, Completions};
use crate::chat::slash_command::SlashCommand;
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::{Action, Screen};

fn screen_with(text: &str) -> Screen {
    let mut screen = Screen::new(Theme::Plain);
    type_text(&mut screen, text);
    screen
}

fn control(screen: &mut Screen, character: char) -> Option<Action> {
    press(screen, KeyCode::Char(character), KeyModifiers::CONTROL)
}

fn send(screen: &mut Screen, text: &str) {
    type_text(screen, text);
    assert_eq!(enter(screen), Some(Action::Send(text.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn enter_sends_and_alt_enter_control_j_and_shift_enter_start_a_line() {
    let mut screen = screen_with("a");
    for (code, modifiers) in [
        (KeyCode::Enter, KeyModifiers::ALT),
        (KeyCode::Enter, KeyModifiers::SHIFT),
        (KeyCode::Char('j'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(press(&mut screen, code, modifiers), None);
        type_text(&mut screen, "b");
    }
    assert_eq!(enter(&mut screen), Some(Action::Send("a\nb\nb\nb".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn control_keys_of_a_shell_edit_the_line() {
    let mut screen = screen_with("one two");
    assert_eq!(control(&mut screen, 'w'), None);
    assert_eq!(screen.editor.shown_text(), "one ");
    assert_eq!(control(&mut screen, 'a'), None);
    type_text(&mut screen, "x");
    assert_eq!(screen.editor.shown_text(), "xone ");
    assert_eq!(control(&mut screen, 'k'), None);
    assert_eq!(screen.editor.shown_text(), "x");
    type_text(&mut screen, " one notes.md ");
    assert_eq!(control(&mut screen, 'w'), None);
    assert_eq!(screen.editor.shown_text(), "x one ");
    control(&mut screen, 'a');
    control(&mut screen, 'e');
    press(&mut screen, KeyCode::Left, KeyModifiers::NONE);
    assert_eq!(control(&mut screen, 'u'), None);
    assert_eq!(screen.editor.shown_text(), " ");
    press(&mut screen, KeyCode::Char('y'), KeyModifiers::CONTROL);
    assert_eq!(screen.editor.shown_text(), "x one ");
}

#[tokio::test(start_paused = true)]
async fn control_u_and_control_w_change_only_their_line() {
    let mut screen = screen_with("first");
    control(&mut screen, 'j');
    type_text(&mut screen, "second line");
    control(&mut screen, 'u');
    assert_eq!(screen.editor.shown_text(), "first\n");
    type_text(&mut screen, "a");
    control(&mut screen, 'w');
    assert_eq!(screen.editor.shown_text(), "first\n");
}

#[tokio::test(start_paused = true)]
async fn control_c_control_x_control_o_and_control_r_are_keys_of_the_chat() {
    let mut screen = screen_with("text");
    let edit = Action::Command(SlashCommand::Edit, String::new());
    assert_eq!(control(&mut screen, 'x'), Some(edit));
    assert_eq!(control(&mut screen, 'o'), None);
    assert_eq!(control(&mut screen, 'r'), None);
    assert_shown(&mut screen, (60, 12), "search ``");
    press(&mut screen, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(screen.editor.shown_text(), "text");
    assert_eq!(control(&mut screen, 'c'), None);
    assert_eq!(screen.editor.shown_text(), "");
    assert_eq!(control(&mut screen, 'c'), Some(Action::Quit));
}

#[tokio::test(start_paused = true)]
async fn control_c_stops_a_run_and_the_second_one_leaves_also_with_a_question() {
    let mut screen = screen_with("draft");
    screen.on_sent("message", Instant::now());
    let (question, _answer) = approval();
    ask(&mut screen, question);
    assert_eq!(control(&mut screen, 'c'), Some(Action::Interrupt));
    assert_eq!(control(&mut screen, 'c'), Some(Action::Quit));
}

#[tokio::test(start_paused = true)]
async fn control_d_leaves_only_with_an_empty_editor() {
    let mut screen = screen_with("ab");
    press(&mut screen, KeyCode::Left, KeyModifiers::NONE);
    assert_eq!(control(&mut screen, 'd'), None);
    assert_eq!(screen.editor.shown_text(), "a");
    control(&mut screen, 'w');
    let quit = Action::Command(SlashCommand::Quit, String::new());
    assert_eq!(control(&mut screen, 'd'), Some(quit));
}

#[tokio::test(start_paused = true)]
async fn up_and_down_recall_messages_and_bring_the_draft_back() {
    let mut screen = Screen::new(Theme::Plain);
    for text in ["first", "second"] {
        send(&mut screen, text);
    }
    type_text(&mut screen, "draft");
    let expected = [
        (KeyCode::Up, "second"),
        (KeyCode::Up, "first"),
        (KeyCode::Up, "first"),
        (KeyCode::Down, "second"),
        (KeyCode::Down, "draft"),
        (KeyCode::Down, "draft"),
    ];
    for (code, text) in expected {
        press(&mut screen, code, KeyModifiers::NONE);
        assert_eq!(screen.editor.shown_text(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_search_finds_older_messages_and_shows_none_that_does_not_match() {
    let mut screen = Screen::new(Theme::Plain);
    for text in ["list notes", "list files", "other"] {
        send(&mut screen, text);
    }
    control(&mut screen, 'r');
    type_text(&mut screen, "list");
    assert_shown(&mut screen, (60, 12), "search `list`: list files");
    control(&mut screen, 'r');
    assert_shown(&mut screen, (60, 12), "search `list`: list notes");
    control(&mut screen, 'r');
    assert_shown(&mut screen, (60, 12), "search `list`: list notes");
    type_text(&mut screen, "z");
    assert_shown(&mut screen, (60, 12), "search `listz`: no message");
    press(&mut screen, KeyCode::Backspace, KeyModifiers::NONE);
    enter(&mut screen);
    assert_eq!(screen.editor.shown_text(), "list files");
}

#[tokio::test(start_paused = true)]
async fn the_release_of_a_key_does_nothing() {
    let mut screen = Screen::new(Theme::Plain);
    let key = crossterm::event::KeyEvent {
        code: KeyCode::Char('a'),
        modifiers: KeyModifiers::NONE,
        kind: KeyEventKind::Release,
        state: KeyEventState::NONE,
    };
    assert_eq!(screen.on_key(key, Instant::now()), None);
    assert_eq!(screen.editor.shown_text(), "");
}

#[tokio::test(start_paused = true)]
async fn lines_of_a_paste_end_with_newlines_and_tabs_stay() {
    let mut screen = Screen::new(Theme::Plain);
    screen.on_paste("a\r\nb\rc\td");
    assert_eq!(screen.editor.shown_text(), "a\nb\nc\td");
}

#[tokio::test(start_paused = true)]
async fn a_paste_ends_the_suggestions_for_the_text_before() {
    let mut screen = screen_with("/att");
    assert_shown(&mut screen, (60, 16), "attach a resource");
    screen.on_paste("ach a.txt");
    press(&mut screen, KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(screen.editor.shown_text(), "/attach a.txt");
}

#[tokio::test(start_paused = true)]
async fn a_paste_during_a_search_extends_the_search() {
    let mut screen = Screen::new(Theme::Plain);
    send(&mut screen, "list files");
    type_text(&mut screen, "draft");
    control(&mut screen, 'r');
    screen.on_paste("list");
    assert_shown(&mut screen, (60, 12), "search `list`: list files");
    press(&mut screen, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(screen.editor.shown_text(), "draft");
}

#[tokio::test(start_paused = true)]
async fn a_pasted_text_is_not_searched_for_the_words_of_other_pastes() {
    let mut screen = Screen::new(Theme::Plain);
    let second = "x".repeat(3_000);
    let first = format!("[pasted text 2: 3000 bytes]{}", "y".repeat(3_000));
    screen.on_paste(&first);
    screen.on_paste(&second);
    assert_eq!(enter(&mut screen), Some(Action::Send(format!("{first}{second}"))));
}

#[tokio::test(start_paused = true)]
async fn backspace_removes_the_whole_word_of_a_pasted_text() {
    let mut screen = screen_with("a ");
    screen.on_paste(&"x".repeat(3_000));
    press(&mut screen, KeyCode::Backspace, KeyModifiers::NONE);
    assert_eq!(screen.editor.shown_text(), "a ");
}

#[tokio::test(start_paused = true)]
async fn a_recalled_long_message_is_one_word_and_is_sent_whole() {
    let mut screen = Screen::new(Theme::Plain);
    let text = "line\n".repeat(70_000) + "end";
    screen.on_paste(&text);
    enter(&mut screen);
    press(&mut screen, KeyCode::Up, KeyModifiers::NONE);
    assert_shown(&mut screen, (60, 12), "[pasted text 1: 350003 bytes]");
    assert_eq!(enter(&mut screen), Some(Action::Send(text)));
}

#[tokio::test(start_paused = true)]
async fn many_short_pastes_leave_the_editor_small_and_are_sent_whole() {
    let mut screen = Screen::new(Theme::Plain);
    let text = "word ".repeat(400);
    for _ in 0..100 {
        screen.on_paste(&text);
    }
    assert!(screen.editor.shown_text().len() < 24 << 10);
    let Some(Action::Send(sent)) = enter(&mut screen) else { panic!("not sent") };
    assert_eq!(sent, text.repeat(100).trim());
}

/// Attack: terminal | a command contains a space of three bytes before the word that Tab completes |
/// the word is completed, and the program does not panic | Foreign text stays text
#[tokio::test(start_paused = true)]
async fn a_word_after_a_wide_space_is_completed() {
    let mut screen = screen_with("/tools\u{3000}no");
    let text = screen.editor.text_before_cursor();
    let values = vec![CompletionValue::new("notes", "")];
    screen.on_completions(&text, Completions { replaced: "no".to_owned(), values }, false);
    assert_eq!(screen.editor.shown_text(), "/tools\u{3000}notes");
}
