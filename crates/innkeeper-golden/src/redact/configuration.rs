//! The secrets in the configuration of servers, which are known by their place.
//!
//! What stands in `env`, `headers`, `oauth.clientSecret` or as the credentials of a URL is replaced
//! whatever its length. References such as `${TOKEN}` stay, because they are no secrets.

use std::ops::Range;

use super::document::{Decoded, Document, Leaf, LeafKind, Segment, scan};
use super::edits::{Edit, apply, normalize};
use super::secrets::{MIN_SECRET_BYTES, Secrets, decode_percent, is_auth_scheme};

/// The keys of the object with all servers.
const SERVERS_KEYS: [&str; 2] = ["servers", "mcpServers"];

/// What the names of query parameters with credentials contain.
const CREDENTIAL_WORDS: [&str; 7] = ["key", "token", "secret", "pass", "pwd", "auth", "sig"];

/// A user of this size is no name but a token, as in `https://TOKEN:x-oauth-basic@host`.
const MIN_TOKEN_USER_BYTES: usize = 20;

/// A part of a path of this size with letters and digits is a token.
const MIN_TOKEN_SEGMENT_BYTES: usize = 16;

/// A literal value and its name.
struct Literal {
    range: Range<usize>,
    name: String,
    /// Whether it is a secret everywhere. Parts of a value with references are not.
    is_secret: bool,
}

/// Replaces the literal secrets of the servers by their place, and adds them to the secrets.
pub(super) fn redact_servers(text: &str, secrets: &mut Secrets) -> String {
    let document = scan(text.as_bytes(), 0);
    let mut found = Vec::new();
    for leaf in document.leaves.iter().filter(|leaf| leaf.kind != LeafKind::Key) {
        let raw = &text[leaf.raw.clone()];
        let decoded = match leaf.kind {
            LeafKind::String => Decoded::from_json(raw),
            LeafKind::Key | LeafKind::Number | LeafKind::Plain => Decoded::from_plain(raw),
        };
        let literals = server_literals(text, &document, leaf, &decoded.text);
        found.push((leaf, decoded, literals));
    }
    for (_, decoded, literals) in &found {
        for literal in literals.iter().filter(|literal| literal.is_secret) {
            let value = &decoded.text[literal.range.clone()];
            secrets.add(&literal.name, value);
            secrets.add(&literal.name, &decode_percent(value));
        }
    }
    let mut edits = Vec::new();
    for (leaf, decoded, literals) in &found {
        for Literal { range, name, .. } in literals {
            let placeholder = secrets.placeholder_for(name, &decoded.text[range.clone()]);
            let text = match leaf.kind {
                LeafKind::Number => format!("\"{placeholder}\""),
                LeafKind::Key | LeafKind::String | LeafKind::Plain => placeholder,
            };
            let [start, end] = [range.start, range.end].map(|at| decoded.raw_position(at));
            edits.push(Edit { range: leaf.raw.start + start..leaf.raw.start + end, text });
        }
    }
    apply(text, &normalize(edits))
}

fn server_literals(text: &str, document: &Document, leaf: &Leaf, value: &str) -> Vec<Literal> {
    let path: Vec<String> = document
        .path(leaf)
        .into_iter()
        .map(|segment| match segment {
            Segment::Key(key) => Decoded::from_json(&text[key.clone()]).text.into_owned(),
            Segment::Index(index) => index.to_string(),
        })
        .collect();
    let servers = path.iter().position(|key| SERVERS_KEYS.contains(&key.as_str()));
    let Some(member) = servers.and_then(|servers| path.get(servers + 2..)) else {
        return Vec::new();
    };
    match member {
        [env, key, ..] if env == "env" => literals(value, &format!("env:{key}")),
        [headers, key, ..] if headers == "headers" => literals(value, &format!("header:{key}")),
        [.., oauth, key] if oauth == "oauth" && key == "clientSecret" => {
            literals(value, "client-secret")
        }
        _ if leaf.kind == LeafKind::String => url_credentials(value),
        _ => Vec::new(),
    }
}

/// Returns what of a value is no reference. The default of a reference is a literal.
fn literals(value: &str, name: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut push = |range: Range<usize>, is_secret: bool| {
        if !value[range.clone()].split_whitespace().all(is_auth_scheme) {
            found.push(Literal { range, name: name.to_owned(), is_secret });
        }
    };
    let mut begin = 0;
    let mut at = 0;
    while let Some(start) = value[at..].find("${").map(|start| at + start) {
        at = start + 2;
        let is_escaped = value[..start].ends_with('$');
        let Some(end) = value[at..].find('}').map(|end| at + end).filter(|_| !is_escaped) else {
            continue;
        };
        push(begin..start, false);
        if let Some(default) = value[at..end].find(":-") {
            push(at + default + 2..end, true);
        }
        begin = end + 1;
        at = begin;
    }
    push(begin..value.len(), begin == 0);
    found
}

fn url_credentials(value: &str) -> Vec<Literal> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = value[at..].find("://").map(|begin| at + begin + 3) {
        let end = value[begin..]
            .find(|c: char| c.is_whitespace() || "\"'<>".contains(c))
            .map_or(value.len(), |len| begin + len);
        let authority_len = value[begin..end].find(['/', '?', '#']).unwrap_or(end - begin);
        if let Some(len) = value[begin..begin + authority_len].rfind('@') {
            push_user(value, begin..begin + len, &mut found);
        }
        let path_end = value[begin..end].find(['?', '#']).map_or(end, |len| begin + len);
        push_path(value, begin + authority_len..path_end, &mut found);
        if let Some(query) = value[begin..end].find('?').map(|query| begin + query + 1) {
            let query_end = value[query..end].find('#').map_or(end, |len| query + len);
            push_query(value, query..query_end, &mut found);
        }
        at = end;
    }
    found
}

fn push_literals(value: &str, range: &Range<usize>, is_secret: bool, found: &mut Vec<Literal>) {
    for literal in literals(&value[range.clone()], "url") {
        found.push(Literal {
            range: literal.range.start + range.start..literal.range.end + range.start,
            is_secret: literal.is_secret && is_secret,
            name: literal.name,
        });
    }
}

fn push_user(value: &str, user: Range<usize>, found: &mut Vec<Literal>) {
    let name_len = value[user.clone()].find(':').unwrap_or(user.len());
    let name = user.start..user.start + name_len;
    let is_token = name_len == user.len() || name_len >= MIN_TOKEN_USER_BYTES;
    push_literals(value, &name, is_token, found);
    if name.end < user.end {
        push_literals(value, &(name.end + 1..user.end), true, found);
    }
}

/// Some hosts put the key of a user into the path.
fn push_path(value: &str, path: Range<usize>, found: &mut Vec<Literal>) {
    let mut begin = path.start;
    for segment in value[path].split('/') {
        let is_token = segment.len() >= MIN_TOKEN_SEGMENT_BYTES
            && segment.bytes().any(|byte| byte.is_ascii_digit())
            && segment.bytes().any(|byte| byte.is_ascii_alphabetic());
        if is_token {
            push_literals(value, &(begin..begin + segment.len()), true, found);
        }
        begin += segment.len() + 1;
    }
}

fn push_query(value: &str, query: Range<usize>, found: &mut Vec<Literal>) {
    let mut begin = query.start;
    for parameter in value[query].split('&') {
        if let Some((name, content)) = parameter.split_once('=') {
            let name = decode_percent(name).to_ascii_lowercase();
            if CREDENTIAL_WORDS.iter().any(|word| name.contains(word)) {
                let end = begin + parameter.len();
                let is_secret = content.len() >= MIN_SECRET_BYTES;
                push_literals(value, &(end - content.len()..end), is_secret, found);
            }
        }
        begin += parameter.len() + 1;
    }
}
