//! Tests of drawn Markdown.

use proptest::prelude::*;

use super::*;

fn draw(source: &str, width: usize) -> Vec<String> {
    let mut text = MarkdownText::new(source);
    drawn(&mut text, width)
}

fn drawn(text: &mut MarkdownText, width: usize) -> Vec<String> {
    let lines = text.lines(width, Theme::Plain);
    let lines = (0..lines.len()).filter_map(|index| lines.get(index));
    lines.map(|line| line.to_string().trim_end().to_owned()).collect()
}

/// Draws a text after each of its chunks.
fn draw_chunks(source: &str, size: usize, width: usize) -> Vec<String> {
    let mut text = MarkdownText::default();
    let mut lines = Vec::new();
    let characters: Vec<char> = source.chars().collect();
    for chunk in characters.chunks(size) {
        text.push(&chunk.iter().collect::<String>());
        lines = drawn(&mut text, width);
    }
    lines
}

const SAMPLE: &str = "# Title\n\nOne *two* **three** `code` [four](https://a.example/).\n\n\
    - first\n- second with\n  more text\n  1. nested\n\n\
    > a quote\n> goes on\n\n\
    ```rust\nfn main() {\n\n    print();\n}\n```\n\n\
    | a | b |\n|---|---|\n| 1 | two |\n\nThe end.";

#[test]
fn each_kind_of_block_has_its_form() {
    let lines = draw(SAMPLE, 40);
    assert_eq!(
        lines,
        [
            "# Title",
            "",
            "One two three `code` four",
            "(https://a.example/).",
            "",
            "- first",
            "- second with more text",
            "  1. nested",
            "",
            "│ a quote goes on",
            "",
            "    fn main() {",
            "",
            "        print();",
            "    }",
            "",
            "a │ b",
            "──┼────",
            "1 │ two",
            "",
            "The end.",
        ]
    );
}

#[test]
fn a_line_break_inside_html_begins_a_line() {
    assert_eq!(draw("See <!-- one\ntwo --> it.", 40), ["See <!-- one", "two --> it."]);
}

#[test]
fn a_list_item_without_text_has_its_marker() {
    assert_eq!(draw("- first\n-\n- third", 40), ["- first", "-", "- third"]);
    assert_eq!(draw("1. first\n2.\n3. third", 40), ["1. first", "2.", "3. third"]);
}

#[test]
fn a_table_that_does_not_fit_is_a_list_of_its_rows() {
    let table = "| name | value |\n|---|---|\n| alpha | one two three |\n| beta | four |\n";
    assert_eq!(
        draw(table, 16),
        ["name: alpha", "value: one two", "three", "", "name: beta", "value: four"]
    );
}

#[test]
fn a_text_that_arrives_in_chunks_is_drawn_like_the_whole_text() {
    for size in [1, 3, 7] {
        assert_eq!(draw_chunks(SAMPLE, size, 40), draw(SAMPLE, 40), "{size}");
    }
}

#[test]
fn a_long_block_is_drawn_in_parts_and_no_line_is_lost() {
    let code: String = (0..2_000).map(|number| format!("let x{number} = 1;\n")).collect();
    let source = format!("Before.\n\n```\n{code}```\n\nAfter.");
    let lines = draw_chunks(&source, 4_000, 40);
    assert_eq!(lines.len(), 2_000 + 4);
    assert_eq!(lines[2], "    let x0 = 1;");
    assert_eq!(lines[2_001], "    let x1999 = 1;");
    assert_eq!(lines[2_003], "After.");
    let words = "word ".repeat(10_000);
    let shown = draw(&words, 60).join(" ");
    assert_eq!(shown.matches("word").count(), 10_000);
}

/// Attack: terminal | the model writes terminal sequences in Markdown | the sequences are escaped
/// | Foreign text stays text
#[test]
fn sequences_for_the_terminal_are_escaped_in_every_kind_of_block() {
    let evil = "\u{1b}[2J";
    let source = format!(
        "# {evil}\n\n{evil} `{evil}` [{evil}](http://{evil})\n\n```{evil}\n{evil}\n```\n\n\
         |{evil}|\n|-|\n|{evil}|\n\n<{evil}>\n\n> {evil}\n\n- {evil}\n\n![{evil}](x)"
    );
    assert!(!draw(&source, 60).concat().contains('\u{1b}'));
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_width(
        source in "([-#>*`|~ 1.\\[\\]()a-z世<&\n]{0,12}\n?){0,12}",
        width in 2usize..40,
        size in 1usize..9,
    ) {
        let mut text = MarkdownText::default();
        for chunk in source.chars().collect::<Vec<_>>().chunks(size) {
            text.push(&chunk.iter().collect::<String>());
            let lines = text.lines(width, Theme::Dark);
            for line in (0..lines.len()).filter_map(|index| lines.get(index)) {
                prop_assert!(line.width() <= width, "{line:?}");
            }
        }
        prop_assert_eq!(text.source(), source);
    }
}
