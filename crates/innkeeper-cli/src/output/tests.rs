//! Tests of the output streams.

use super::*;

#[test]
fn data_goes_to_stdout_and_diagnostics_to_stderr() {
    let (mut output, out, err) = capture::captured_output(false, false);
    output.print_data("data").unwrap();
    output.status("talk").unwrap();
    output.labelled_status(Style::Note, "note", "more talk").unwrap();
    assert_eq!(out.text(), "data\n");
    assert_eq!(err.text(), "talk\nnote: more talk\n");
}

#[test]
fn colours_appear_only_where_the_stream_takes_them() {
    let (mut output, _, err) = capture::captured_output(false, true);
    output.labelled_status(Style::Error, "error", "broken").unwrap();
    assert_eq!(err.text(), "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: broken\n");
}

/// Attack: terminal | a message contains escape codes and a forged line | the codes and the line
/// end are escaped | Foreign text stays text
#[test]
fn escape_codes_in_diagnostics_are_shown_and_not_obeyed() {
    let (mut output, _, err) = capture::captured_output(false, true);
    output.status("\u{1b}[2Jgone\nforged line").unwrap();
    assert_eq!(err.text(), "\\u{1b}[2Jgone\\nforged line\n");
}

/// Attack: terminal | the text of a server clears the screen | a terminal gets escapes; a pipe gets
/// the exact bytes | Foreign text stays text
#[test]
fn text_of_a_server_is_exact_for_a_program_and_harmless_on_a_terminal() {
    let text = "a\n\u{1b}[2Jb";
    let (mut output, out, _) = capture::captured_output(false, false);
    output.print_untrusted(text).unwrap();
    assert_eq!(out.text(), "a\n\u{1b}[2Jb\n");
    let (mut output, out, _) = capture::captured_output(false, true);
    output.print_untrusted(text).unwrap();
    assert_eq!(out.text(), "a\n\\u{1b}[2Jb\n");
}

#[test]
fn a_table_goes_to_stdout_with_its_headings_set_off() {
    let mut table = Table::new(["NAME", "STATE"]);
    table.add_row(["files", "ready"]);
    let (mut output, out, _) = capture::captured_output(false, true);
    output.print_table(&table).unwrap();
    assert_eq!(out.text(), "\u{1b}[1mNAME   \u{1b}[0m\u{1b}[1mSTATE\u{1b}[0m\nfiles  ready\n");
}

#[test]
fn a_value_for_a_program_is_one_line_of_json() {
    let (mut output, out, _) = capture::captured_output(true, false);
    output.print_json(&serde_json::json!({"a": [1, 2]})).unwrap();
    assert_eq!(out.text(), "{\"a\":[1,2]}\n");
}

#[test]
fn indented_json_is_exact_for_a_program_and_harmless_on_a_terminal() {
    let value = serde_json::json!({"a": "\u{9b}2J\u{202e}"});
    let (mut output, out, _) = capture::captured_output(false, false);
    output.print_indented_json(&value).unwrap();
    assert_eq!(out.text(), "{\n  \"a\": \"\u{9b}2J\u{202e}\"\n}\n");
    let (mut output, out, _) = capture::captured_output(false, true);
    output.print_indented_json(&value).unwrap();
    assert_eq!(out.text(), "{\n  \"a\": \"\\u009b2J\\u202e\"\n}\n");
}

/// Counts the allocated bytes of the process. The test runner gives each test its own process.
#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// Returns an output that writes to nothing through a writer thread.
fn discarding_output(is_terminal: bool) -> Output {
    let (mut output, _, _) = capture::captured_output(false, is_terminal);
    let (writer, _canceller) = WriterThread::start(io::sink()).unwrap();
    output.out.writer = Box::new(writer);
    output
}

/// Attack: terminal | 1 MiB of JSON with as many values as possible | printing takes at most eight
/// times the bytes | No unbounded memory
#[test]
fn json_of_any_shape_is_printed_in_at_most_eight_times_its_memory() {
    const BYTES: usize = 1 << 20;
    const MAX_FACTOR: usize = 8;
    let many = |item: &str| vec![item; BYTES / (item.len() + 1)].join(",");
    for json in [
        format!("[{}]", many("[]")),
        format!("{}{}{}", "[".repeat(120), many("1"), "]".repeat(120)),
        format!("{{{}}}", many(r#""":0"#)),
        format!(r#"["{}"]"#, "a".repeat(BYTES)),
        format!(r#"["{}"]"#, r"\u00e4".repeat(BYTES / 6)),
    ] {
        let bytes = json.len();
        let raw = serde_json::value::RawValue::from_string(json).unwrap();
        let before = ALLOCATOR.current_usage() - bytes;
        for is_terminal in [false, true] {
            ALLOCATOR.reset_peak_usage();
            let mut output = discarding_output(is_terminal);
            output.print_json(&raw).unwrap();
            let peak = ALLOCATOR.peak_usage() - before;
            let start = &raw.get()[..8];
            assert!(peak <= MAX_FACTOR * bytes, "{start} {is_terminal}: {peak} for {bytes}");
            if !is_terminal {
                assert!(peak <= bytes + 4 * BLOCK_BYTES, "{start}: streamed, {peak} for {bytes}");
            }
        }
    }
}
