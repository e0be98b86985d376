//! Tests of the part of the transcript that the screen shows.

use crossterm::event::{KeyCode, KeyModifiers};
use innkeeper_agent::agent::AgentEvent;
use serde_json::json;
use tokio::time::Instant;

use super::builders::{finished, progress, show, started};
use super::{press, rows};
use crate::chat::terminal::Theme;
use crate::chat::terminal::screen::Screen;
use crate::chat::terminal::theme::Role;

const SIZE: (u16, u16) = (40, 12);

fn first_row(screen: &mut Screen, (width, height): (u16, u16)) -> String {
    rows(screen, width, height).lines().next().unwrap().trim().to_owned()
}

/// Returns a screen with notices of two lines, scrolled up by some pages.
fn scrolled_screen(pages: usize) -> (Screen, String) {
    let mut screen = Screen::new(Theme::Plain);
    for number in 1..=60 {
        screen.transcript.notice(Role::Text, format!("notice {number} {}", "word ".repeat(10)));
    }
    rows(&mut screen, SIZE.0, SIZE.1);
    for _ in 0..pages {
        press(&mut screen, KeyCode::PageUp, KeyModifiers::NONE);
        rows(&mut screen, SIZE.0, SIZE.1);
    }
    let first = first_row(&mut screen, SIZE);
    (screen, first)
}

#[tokio::test(start_paused = true)]
async fn the_shown_lines_stay_while_text_arrives() {
    let (mut screen, first) = scrolled_screen(3);
    screen.run = None;
    for _ in 0..50 {
        show(&mut screen, &AgentEvent::Text("more text ".repeat(9)));
        assert_eq!(first_row(&mut screen, SIZE), first);
    }
    show(&mut screen, &AgentEvent::Reasoning("why".to_owned()));
    assert_eq!(first_row(&mut screen, SIZE), first);
    assert!(rows(&mut screen, SIZE.0, SIZE.1).contains("newer lines below"));
}

#[tokio::test(start_paused = true)]
async fn the_shown_lines_stay_while_calls_above_the_last_block_change() {
    let (mut screen, first) = scrolled_screen(3);
    for id in ["1", "2"] {
        show(&mut screen, &started(id, "files.copy", "{}"));
        assert_eq!(first_row(&mut screen, SIZE), first);
    }
    show(&mut screen, &progress("1", 1.0, Some("a longer message of the server")));
    assert_eq!(first_row(&mut screen, SIZE), first);
    show(&mut screen, &finished("1", &json!({}), false, "no such file", "native"));
    assert_eq!(first_row(&mut screen, SIZE), first);
}

#[tokio::test(start_paused = true)]
async fn the_first_shown_block_stays_after_a_resize() {
    let (mut screen, first) = scrolled_screen(3);
    let block = first.split(" word").next().unwrap().to_owned();
    assert!(block.starts_with("notice"), "{block}");
    for size in [(120, 12), (20, 9), (40, 12)] {
        let drawn = first_row(&mut screen, size);
        assert!(drawn.starts_with(&block), "{size:?}: {drawn}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_selected_block_is_visible_from_the_first_to_the_last() {
    let (mut screen, _) = scrolled_screen(0);
    press(&mut screen, KeyCode::Tab, KeyModifiers::NONE);
    for number in (1..60).rev() {
        press(&mut screen, KeyCode::Up, KeyModifiers::NONE);
        let drawn = rows(&mut screen, SIZE.0, SIZE.1);
        assert!(drawn.contains(&format!("> notice {number} ")), "{number}:\n{drawn}");
    }
    for number in 2..60 {
        press(&mut screen, KeyCode::Down, KeyModifiers::NONE);
        let drawn = rows(&mut screen, SIZE.0, SIZE.1);
        assert!(drawn.contains(&format!("> notice {number} ")), "{number}:\n{drawn}");
    }
}

#[tokio::test(start_paused = true)]
async fn scrolling_beyond_the_start_and_back_shows_the_end() {
    let (mut screen, _) = scrolled_screen(40);
    assert!(first_row(&mut screen, SIZE).starts_with("notice 1 "));
    press(&mut screen, KeyCode::PageDown, KeyModifiers::NONE);
    assert!(!first_row(&mut screen, SIZE).starts_with("notice 1 "));
    press(&mut screen, KeyCode::End, KeyModifiers::CONTROL);
    assert!(rows(&mut screen, SIZE.0, SIZE.1).contains("notice 60"));
    screen.on_sent("new", Instant::now());
    assert!(rows(&mut screen, SIZE.0, SIZE.1).contains("  new"));
}

#[tokio::test(start_paused = true)]
async fn a_frame_draws_only_the_shown_blocks_of_a_long_conversation() {
    let mut screen = Screen::new(Theme::Plain);
    for number in 0..20_000 {
        screen.transcript.notice(Role::Text, format!("notice {number}"));
    }
    for key in [KeyCode::Home, KeyCode::End, KeyCode::Home] {
        press(&mut screen, key, KeyModifiers::CONTROL);
        rows(&mut screen, 80, 24);
        let drawn = screen.transcript.drawn_blocks();
        assert!(drawn <= 3 * 24, "{drawn} blocks are drawn");
    }
}
