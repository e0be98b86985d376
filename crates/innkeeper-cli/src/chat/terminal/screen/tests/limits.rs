//! Tests of large texts and of small terminals.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use innkeeper_testkit::thread_cpu_time;
use serde_json::json;
use tokio::time::Instant;

use super::builders::{
    approval_of, ask, assert_shown, elicitation, finished, form_of_each_kind, progress, show,
    started,
};
use super::{press, rows, type_text};
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::Screen;

/// Number of frames of a measurement.
const FRAMES: u32 = 20;

/// Returns the processor time of a frame, after the first frame.
fn frame_time(screen: &mut Screen) -> Duration {
    rows(screen, 80, 24);
    let start = thread_cpu_time();
    for _ in 0..FRAMES {
        rows(screen, 80, 24);
    }
    (thread_cpu_time() - start) / FRAMES
}

fn screen_with_running_call(bytes: usize) -> Screen {
    let mut screen = Screen::new(Theme::Dark);
    screen.on_sent("Copy.", Instant::now());
    let arguments = json!({ "text": "word ".repeat(bytes / 5) }).to_string();
    show(&mut screen, &started("1", "files.copy", &arguments));
    screen
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_frame_does_not_depend_on_the_size_of_a_running_call() {
    let small = frame_time(&mut screen_with_running_call(100));
    let large = frame_time(&mut screen_with_running_call(4 << 20));
    let max = small * 3 + Duration::from_millis(1);
    assert!(large < max, "{large:?} for 4 MiB, {small:?} for 100 bytes");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_frame_does_not_depend_on_the_size_of_a_question() {
    let time_of = |bytes: usize| {
        let mut screen = Screen::new(Theme::Dark);
        let arguments = json!({ "text": "word ".repeat(bytes / 5) }).to_string();
        let (question, _answer) = approval_of(&arguments);
        ask(&mut screen, question);
        frame_time(&mut screen)
    };
    let (small, large) = (time_of(64 << 10), time_of(8 << 20));
    assert!(
        large < small * 3 + Duration::from_millis(1),
        "{large:?} for 8 MiB, {small:?} for 64 KiB"
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_frame_does_not_depend_on_the_size_of_edited_arguments() {
    let time_of = |bytes: usize| {
        let mut screen = Screen::new(Theme::Dark);
        let items = vec!["item"; bytes / 7];
        let (question, _answer) = approval_of(&json!({ "items": items }).to_string());
        ask(&mut screen, question);
        press(&mut screen, KeyCode::Char('e'), KeyModifiers::NONE);
        frame_time(&mut screen)
    };
    let (small, large) = (time_of(100), time_of(1 << 20));
    assert!(
        large < small * 3 + Duration::from_millis(1),
        "{large:?} for 1 MiB, {small:?} for 100 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn an_open_result_of_10_mb_shows_its_start_and_the_number_of_other_bytes() {
    let mut screen = screen_with_running_call(10);
    show(&mut screen, &finished("1", &json!({}), true, &"line\n".repeat(2_000_000), "native"));
    press(&mut screen, KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert_shown(&mut screen, (80, 24), "9967232 bytes more; y copies the text");
}

#[tokio::test(start_paused = true)]
async fn a_message_of_10_mb_shows_its_start_and_the_number_of_other_bytes() {
    let mut screen = Screen::new(Theme::Dark);
    screen.on_sent(&"line\n".repeat(2_000_000), Instant::now());
    assert_shown(&mut screen, (80, 24), "9967232 bytes more; y copies the text");
}

/// Attack: terminal | a server sends a progress message of 1 MB | the call has few rows | No unbounded memory
#[tokio::test(start_paused = true)]
async fn a_long_progress_message_takes_no_more_than_a_row() {
    let mut screen = screen_with_running_call(10);
    show(&mut screen, &progress("1", 3.0, Some(&"busy ".repeat(200_000))));
    let drawn = rows(&mut screen, 80, 24);
    let calls = drawn.lines().filter(|row| row.contains("busy")).count();
    assert_eq!(calls, 1, "{drawn}");
    assert!(drawn.contains("run files.copy"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn a_call_with_the_id_of_an_earlier_call_is_a_block_of_its_own() {
    let mut screen = Screen::new(Theme::Plain);
    show(&mut screen, &started("call_1", "files.copy", "{}"));
    show(&mut screen, &finished("call_1", &json!({}), true, "copied", "native"));
    show(&mut screen, &finished("call_1", &json!({}), false, "refused", "native"));
    let drawn = rows(&mut screen, 80, 24);
    assert!(drawn.contains("ok files.copy") && drawn.contains("failed files.copy"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn arguments_that_differ_only_in_spaces_are_not_shown_as_changed() {
    let mut screen = Screen::new(Theme::Plain);
    show(&mut screen, &started("1", "files.copy", r#"{ "a": 1 }"#));
    show(&mut screen, &finished("1", &json!({"a": 1}), true, "copied", "native"));
    press(&mut screen, KeyCode::Char('o'), KeyModifiers::CONTROL);
    let drawn = rows(&mut screen, 80, 24);
    assert!(!drawn.contains("sent arguments"), "{drawn}");
}

#[tokio::test(start_paused = true)]
async fn each_small_size_is_drawn_with_an_editor_and_with_a_form() {
    for (width, height) in (1..12).flat_map(|width| (1..12).map(move |height| (width, height))) {
        let mut screen = Screen::new(Theme::Dark);
        type_text(&mut screen, "wörld 世界 🦀");
        rows(&mut screen, width, height);
        let (question, _answer) = elicitation(form_of_each_kind());
        ask(&mut screen, question);
        type_text(&mut screen, "世界");
        rows(&mut screen, width, height);
    }
}

#[tokio::test(start_paused = true)]
async fn the_share_of_the_context_is_shown_only_if_it_fits() {
    let mut screen = Screen::new(Theme::Plain);
    screen.status.model = "local/small".to_owned();
    screen.status.tokens = "1234 tokens".to_owned();
    screen.status.context = "context 20 %".to_owned();
    screen.status.attachments = vec!["notes.txt".to_owned()];
    let whole = "local/small · 0/0 servers · 1234 tokens · context 20 % · attached: notes.txt";
    let columns = u16::try_from(whole.chars().count()).unwrap();
    assert!(rows(&mut screen, columns, 12).contains(whole));
    let drawn = rows(&mut screen, columns - 1, 12);
    let short = "local/small · 0/0 servers · 1234 tokens · attached: notes.txt";
    assert!(drawn.contains(short) && !drawn.contains("context"), "{drawn}");
}
