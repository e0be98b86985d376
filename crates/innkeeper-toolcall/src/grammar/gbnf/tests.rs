//! Tests of grammars of small schemas, with exact text and losses.

use serde_json::{Value, json};

use super::*;
use crate::grammar::{GrammarLossKind, LIMIT_EXCEEDED, MAX_REPEATS, MAX_SCHEMA_VALUES};

fn tools(schema: Value) -> Tools {
    [Tool::new("t", "", schema)].into_iter().collect()
}

fn grammar_for(schema: Value) -> Gbnf {
    gbnf(&tools(schema), OutputShape::Call, GbnfOptions::default()).unwrap()
}

/// Rule of this name in the grammar of one property `p`.
fn property_rule(property: &Value, name: &str) -> String {
    let text = grammar_for(json!({"properties": {"p": property}, "required": ["p"]})).text;
    let start = format!("{name} ::= ");
    let rule = text.lines().find_map(|line| line.strip_prefix(&start));
    rule.unwrap_or_else(|| panic!("no `{name}` in\n{text}")).to_owned()
}

fn losses(schema: Value) -> Vec<(String, String, GrammarLossKind)> {
    grammar_for(schema)
        .losses
        .into_iter()
        .map(|loss| (loss.pointer, loss.keyword, loss.kind))
        .collect()
}

#[test]
fn a_small_schema_is_these_rules() {
    let schema = json!({"type": "object", "properties": {
        "q": {"type": "string", "maxLength": 5}, "n": {"type": "integer", "minimum": 1, "maximum": 12},
        "deep": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    }, "required": ["q"], "additionalProperties": false});
    let tools: Tools =
        [Tool::new("fs.find", "", schema), Tool::new("now", "", json!({}))].into_iter().collect();
    let Gbnf { text, losses } = gbnf(&tools, OutputShape::Call, GbnfOptions::default()).unwrap();
    assert_eq!(
        text,
        r#"root ::= call
space ::= " "?
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))
q ::= "\"q\"" ":" space "\"" char{0,5} "\""
range ::= [1-9] | [1] [0-2]
n ::= "\"n\"" ":" space range
boolean ::= "true" | "false"
ok ::= "\"ok\"" ":" space boolean
deep ::= "\"deep\"" ":" space "{" (ok)? "}"
rest ::= ("," space deep)?
rest-2 ::= ("," space n)? rest
fs-find-arguments ::= "{" (q rest-2) "}"
call-fs-find ::= "{\"name\":" space "\"fs.find\"" "," space "\"arguments\":" space fs-find-arguments "}"
now-arguments ::= "{}"
call-now ::= "{\"name\":" space "\"now\"" "," space "\"arguments\":" space now-arguments "}"
call ::= call-fs-find | call-now
"#
    );
    assert!(losses.is_empty());
}

#[test]
fn the_shapes_are_one_call_a_list_calls_in_free_text_and_a_call_from_its_trigger() {
    let root = |shape| {
        let text = gbnf(&tools(json!({})), shape, GbnfOptions::default()).unwrap().text;
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(root(OutputShape::Call), "root ::= call");
    assert_eq!(root(OutputShape::Calls), r#"root ::= "[" call ("," space call)* "]""#);
    assert_eq!(
        root(OutputShape::Triggered(ModelFamily::Qwen25Coder)),
        r#"root ::= "<tool_call>" call"#
    );
    assert_eq!(root(OutputShape::FreeText(ModelFamily::Mistral)), "root ::= prose");
    assert_eq!(gbnf(&Tools::default(), OutputShape::Call, GbnfOptions::default()), None);
}

#[test]
fn free_text_follows_the_beginning_of_the_trigger_through_every_letter() {
    let mut rules = RuleSet::new(None);
    assert_eq!(free_text::free_text_rule(&mut rules, "aab", "call"), "prose");
    assert_eq!(
        rules.render("prose"),
        "root ::= prose\n\
         prose ::=  | [a] prose-2 | [b] prose | [^ab] prose\n\
         prose-2 ::=  | [a] prose-3 | [b] prose | [^ab] prose\n\
         prose-3 ::=  | [a] prose-3 | [b] call prose | [^ab] prose\n"
    );
}

#[test]
fn values_are_held_by_kind() {
    for (schema, body) in [
        (json!({"const": "a\"\n"}), r#"("\"a\\\"\\n\"")"#),
        (
            json!({"enum": [1, "x", null, {"a": [true]}]}),
            r#"("1" | "\"x\"" | "null" | "{\"a\":[true]}")"#,
        ),
        (json!({"enum": [1, "x"], "type": "string"}), r#"("\"x\"")"#),
        (json!({"type": ["string", "null"]}), r#"(text | "null")"#),
        (json!({"type": ["integer", "number"]}), "number"),
        (json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}), r#"(boolean | "null")"#),
        (json!({"type": "string", "minLength": 2}), r#""\"" char{2,1000} "\"""#),
        (json!({"type": "array", "items": {"type": "integer"}}), r#""[" (t-item t-more*)? "]""#),
        (json!({"type": "array", "minItems": 2, "maxItems": 4}), r#""[" t-item t-more{1,3} "]""#),
        (json!({"type": "array", "maxItems": 0}), r#""["  "]""#),
        (
            json!({"prefixItems": [{"type": "integer"}, {"type": "null"}], "items": false}),
            r#""[" integer "," space "null" "]""#,
        ),
        (json!({"type": "object"}), r#""{" (other more*)? "}""#),
        (json!({"allOf": [{"type": "integer"}, {"minimum": 3, "maximum": 4}]}), "range"),
        (json!({}), "value"),
        (json!(true), "value"),
    ] {
        assert_eq!(property_rule(&schema, "p"), format!(r#""\"p\"" ":" space {body}"#), "{schema}");
    }
}

#[test]
fn ranges_hold_whole_numbers_and_others_with_open_and_closed_ends() {
    for (schema, body) in [
        (
            json!({"type": "integer", "minimum": -3, "maximum": 12}),
            r#""-" [1-3] | [0-9] | [1] [0-2]"#,
        ),
        (json!({"type": "integer", "exclusiveMinimum": 0, "maximum": 9.5}), "[1-9]"),
        (json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 9}), "[1-9]"),
        (json!({"type": "number", "minimum": 0, "maximum": 1}), r#"[0] ("." [0-9]{1,6})? | [1]"#),
        (
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            r#"[0] "." [0-9]{0,5} [1-9]"#,
        ),
        (
            json!({"type": "number", "minimum": 0.5, "maximum": 0.7}),
            r#"[0] "." [5-6] [0-9]{0,3} | [0] "." [7]"#,
        ),
        (
            json!({"type": "number", "minimum": -1, "maximum": 0}),
            r#""-" [0] "." [0-9]{0,5} [1-9] | "-" [1] | [0]"#,
        ),
    ] {
        assert_eq!(property_rule(&schema, "range"), body, "{schema}");
    }
}

#[test]
fn names_that_are_not_listed_are_distinguished_letter_by_letter() {
    let schema = json!({"type": "object", "properties": {"ab": {}, "a": {}}, "additionalProperties": {"type": "null"}});
    let text = grammar_for(json!({"properties": {"p": schema}})).text;
    for rule in [
        r#"key ::= [^"\\\x7F\x00-\x1F] key-char*"#,
        r#"key-2 ::= [b] key | [^"\\\x7F\x00-\x1Fb] key-char*"#,
        r#"key-3 ::=  | [a] key-2 | [^"\\\x7F\x00-\x1Fa] key-char*"#,
    ] {
        assert!(text.lines().any(|line| line == rule), "{rule}\n{text}");
    }
}

#[test]
fn a_schema_may_hold_itself_but_not_begin_with_itself() {
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
    let valid = grammar_for(
        json!({"properties": {"p": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}),
    );
    assert!(valid.text.contains("t-node ::= \"{\" (next)? \"}\"\n"), "{}", valid.text);
    assert!(
        valid.text.contains("next ::= \"\\\"next\\\"\" \":\" space t-node\n"),
        "{}",
        valid.text
    );
    assert!(valid.losses.is_empty());
    let circle = json!({"properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": {
        "a": {"anyOf": [{"type": "object", "properties": {"x": {"$ref": "#/$defs/b"}}}, {"$ref": "#/$defs/b"}]},
        "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]},
    }});
    assert_eq!(
        losses(circle),
        [("/$defs/a/anyOf/1".to_owned(), "$ref".to_owned(), GrammarLossKind::Dropped)]
    );
}

#[test]
fn a_tuple_that_is_longer_than_it_may_be_or_beside_other_items_is_reported() {
    let tuple = json!({"prefixItems": [{"type": "null"}]});
    let items = json!({"type": "array", "items": {"type": "boolean"}, "anyOf": [tuple]});
    assert_eq!(
        losses(json!({"properties": {"p": items}})),
        [("/properties/p/anyOf/0".to_owned(), "items".to_owned(), GrammarLossKind::Dropped)]
    );
    let long = json!({"prefixItems": [{"type": "null"}, {}], "maxItems": 1});
    assert_eq!(
        losses(json!({"properties": {"p": long}})),
        [("/properties/p".to_owned(), "maxItems".to_owned(), GrammarLossKind::Dropped)]
    );
}

#[test]
fn what_is_not_held_is_reported_with_its_place() {
    let found = losses(json!({"properties": {
        "a/b": {"type": "string", "pattern": "x", "format": "email"},
        "c": {"type": "array", "uniqueItems": true, "items": {"not": {}}},
        "d": {"type": "dict"},
        "e": {"type": "number", "minimum": 1e300},
        "f": {"$ref": "https://example.com/x"},
        "g": false,
    }, "required": ["g"], "minProperties": 1}));
    let reported: Vec<String> =
        found.iter().map(|(at, keyword, _)| format!("{at} {keyword}")).collect();
    assert_eq!(
        reported,
        [
            " minProperties",
            "/properties/a~1b pattern",
            "/properties/a~1b format",
            "/properties/c uniqueItems",
            "/properties/c/items not",
            "/properties/d type",
            "/properties/e minimum",
            "/properties/f $ref",
            "/properties/g false",
        ]
    );
}

#[test]
fn repetitions_are_held_up_to_the_limit_and_past_it_reported() {
    let text = |length| json!({"type": "string", "maxLength": length});
    assert!(property_rule(&text(MAX_REPEATS), "p").contains("char{0,1000}"));
    assert!(property_rule(&text(MAX_REPEATS + 1), "p").contains("char* "));
    assert_eq!(losses(json!({"properties": {"p": text(MAX_REPEATS)}})), []);
    let above_limit = losses(json!({"properties": {"p": text(MAX_REPEATS + 1)}}));
    assert_eq!(
        above_limit,
        [("/properties/p".to_owned(), "maxLength".to_owned(), GrammarLossKind::Dropped)]
    );
    let list = |count| json!({"properties": {"p": {"type": "array", "minItems": count}}});
    assert_eq!(losses(list(MAX_REPEATS + 1)), []);
    assert_eq!(losses(list(MAX_REPEATS + 2)).len(), 1);
}

#[test]
fn a_schema_at_the_limits_is_held_and_past_them_is_any_object() {
    let wide = |values: usize| json!({"enum": vec![json!({}); values - 2]});
    assert_eq!(losses(wide(MAX_SCHEMA_VALUES)), []);
    let above_limit = grammar_for(wide(MAX_SCHEMA_VALUES + 1));
    assert_eq!(above_limit.losses[0].keyword, LIMIT_EXCEEDED);
    assert!(
        above_limit.text.contains("t-arguments ::= \"{\" (other more*)? \"}\""),
        "{}",
        above_limit.text
    );
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({"items": inner}));
    let argument = |depth| json!({"properties": {"p": nested(depth)}});
    assert_eq!(losses(argument(crate::grammar::MAX_SCHEMA_DEPTH - 1)), []);
    assert_eq!(losses(argument(crate::grammar::MAX_SCHEMA_DEPTH))[0].1, LIMIT_EXCEEDED);
}
