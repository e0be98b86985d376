//! Tests of text normalization.

use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;

const SAMPLE: &str = "please water the plants on the balcony";

fn reveals_sample(text: &str) -> bool {
    normalized_forms(text).iter().any(|form| form.plain.contains(SAMPLE))
}

/// Attack: data | a text as Base64, percent encoding, tag characters, look-alike letters or with
/// invisible characters | the guard reads the decoded text | Complete checks
#[test]
fn each_encoding_is_decoded_and_one_inside_another() {
    let tags: String =
        SAMPLE.chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
    let percent = SAMPLE.replace(' ', "%20");
    let base64 = STANDARD.encode(SAMPLE);
    let long = STANDARD.encode(format!("{}. {SAMPLE}", "x ".repeat(80)));
    let lines: Vec<&str> =
        long.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    for text in [
        "PLEASE  **Water**\tthe\u{a0}plants on the balcony".to_owned(),
        "ple\u{200b}ase wat\u{200d}er the plants on the balcony".to_owned(),
        "рlеаsе wаtеr thе рlаnts оn thе bаlсоny".to_owned(),
        "\u{ff50}lease water the plants on the balcony".to_owned(),
        tags,
        percent,
        base64.clone(),
        format!("data={base64}"),
        lines.join("\n"),
        URL_SAFE_NO_PAD.encode(SAMPLE),
        STANDARD.encode(format!("see {base64} there")),
    ] {
        assert!(reveals_sample(&text), "{text}");
    }
}

#[test]
fn as_many_encodings_are_decoded_as_the_limit_and_no_more() {
    let wrapped = |times| (0..times).fold(SAMPLE.to_owned(), |text, _| STANDARD.encode(text));
    assert!(reveals_sample(&wrapped(MAX_ENCODING_DEPTH)));
    assert!(!reveals_sample(&wrapped(MAX_ENCODING_DEPTH + 1)));
    let with_runs = |before: usize| {
        let other = STANDARD.encode("nothing to see in this one here");
        format!("{}{}", format!("{other} ").repeat(before), STANDARD.encode(SAMPLE))
    };
    assert!(reveals_sample(&with_runs(MAX_RUNS - 1)));
    assert!(!reveals_sample(&with_runs(MAX_RUNS)));
}

/// Attack: data | a sentence in any line of Base64 that is wrapped like a mail | the guard reads
/// the sentence | Complete checks
#[test]
fn an_injection_in_any_line_of_wrapped_base64_is_read() {
    for filler in [20 * 57, 0, 29 * 57] {
        let padded = format!("{}. {SAMPLE}.", "y ".repeat(filler / 2));
        let text = format!("{padded}{}", " z".repeat((30 * 57 - padded.len().min(30 * 57)) / 2));
        let long = STANDARD.encode(text);
        let lines: Vec<&str> =
            long.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        assert!(lines.len() >= 30);
        assert!(reveals_sample(&lines.join("\n")), "{filler}");
        assert!(reveals_sample(&format!("here:\n{}\nthere", lines.join("\r\n"))), "{filler}");
    }
    let encoded = STANDARD.encode(format!("{SAMPLE} {SAMPLE}"));
    assert!(
        reveals_sample(&format!("{}\n{encoded}\nend of it", "0".repeat(61))),
        "other lines before"
    );
}

/// Attack: data | ligatures that expand to 18 letters each | the decoded text grows up to its limit
/// | No unbounded memory
#[test]
fn letters_that_stand_for_many_make_a_text_longer_up_to_the_limit_and_no_further() {
    // Each ligature has three bytes and expands to eighteen letters.
    let ligatures = |count: usize| "\u{fdfa}".repeat(count);
    let plain = |text: &str| NormalizedText::new(text).plain;
    let is_found =
        |count: usize| plain(&format!("{} {SAMPLE}", ligatures(count))).ends_with(SAMPLE);
    assert!(is_found(MAX_GROWTH_BYTES / 18));
    assert!(!is_found(MAX_GROWTH_BYTES / 10));
    let text = ligatures(16 << 10);
    assert!((text.len()..=text.len() + MAX_GROWTH_BYTES + 4).contains(&plain(&text).len()));
}

#[test]
fn a_run_that_is_binary_for_more_than_a_tenth_is_no_text() {
    let decodes = |control: usize| {
        let text = format!("{}{}", "\u{1}".repeat(control), "x".repeat(100 - control));
        decode_base64(&STANDARD.encode(text)).is_some()
    };
    assert!(decodes(0) && decodes(10));
    assert!(!decodes(11));
}

#[test]
fn a_run_at_the_longest_is_decoded_and_one_past_it_is_not() {
    let encoded = |extra: usize| {
        let rest = "x".repeat(MAX_RUN_BYTES / 4 * 3 - SAMPLE.len() + extra);
        STANDARD.encode(format!("{SAMPLE}{rest}"))
    };
    assert_eq!(encoded(0).len(), MAX_RUN_BYTES);
    assert!(reveals_sample(&encoded(0)));
    assert!(!reveals_sample(&encoded(3)));
}

#[test]
fn what_only_looks_encoded_is_left() {
    for text in ["100% of 50%", "0123456789abcdef0123456789abcdef", "/usr/local/lib/some/path/x"] {
        assert_eq!(normalized_forms(text).len(), 1, "{text}");
    }
}

#[test]
fn wrapped_base64_is_read_as_a_whole_and_line_by_line_and_each_run_once() {
    let [first, second] = ["QUJD", "REVG"].map(|group| group.repeat(19));
    let runs = base64_runs(&format!("{first}\n{second}\nR0hJ"));
    for run in [&first, &second, &format!("{first}{second}")] {
        assert_eq!(runs.iter().filter(|found| *found == run).count(), 1, "{run}: {runs:?}");
    }
    let single = base64_runs(&first);
    assert_eq!(single, [first]);
}

#[test]
fn a_hidden_character_has_no_visible_form_and_a_tag_character_has_that_of_its_letter() {
    for (character, visible) in [
        ('a', Some('a')),
        ('\n', Some('\n')),
        ('\r', Some('\r')),
        ('\u{200b}', None),
        ('\u{1b}', None),
        ('\u{e001f}', None),
        ('\u{e0020}', Some(' ')),
        ('\u{e0041}', Some('A')),
        ('\u{e007e}', Some('~')),
        ('\u{e007f}', None),
    ] {
        assert_eq!(visible_char(character), visible, "{character:?}");
    }
}
