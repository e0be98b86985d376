//! Whether an address can have been made of a URI template.

/// The longest template looked at, in bytes; together with [`URI_LIMIT`] it bounds the work.
pub const TEMPLATE_LIMIT: usize = 1024;
/// The longest address looked at, in bytes: twice what browsers and servers usually take.
pub const URI_LIMIT: usize = 8 * 1024;

/// Whether `uri` can have been made of `template`, after RFC 6570 and in doubt in favour.
///
/// `{x}` stands for at least one character other than `/`, `?` and `#`; `{+x}` for at least one of
/// any; `{/x}`, `{.x}`, `{;x}`, `{?x}`, `{&x}` and `{#x}` start with their operator and may be absent
/// altogether. Several names, prefixes and `*` are allowed. A template with braces that do not pair
/// matches nothing, nor do texts over the limits.
///
/// The time grows with the length of the address times the number of the template's parts, whatever
/// they are.
pub fn uri_matches(template: &str, uri: &str) -> bool {
    if template.len() > TEMPLATE_LIMIT || uri.len() > URI_LIMIT {
        return false;
    }
    let Some(parts) = parts(template) else { return false };
    // Where in the address the parts so far can end.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for part in parts {
        ends = part.advance(&ends, uri.as_bytes());
    }
    ends[uri.len()]
}

enum Part<'a> {
    Literal(&'a [u8]),
    /// At least one byte of the allowed ones.
    Value(fn(u8) -> bool),
    /// Nothing, or the operator and any number of the allowed bytes.
    Led(u8, fn(u8) -> bool),
}

fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let open = rest.find(['{', '}']).unwrap_or(rest.len());
        let (literal, after) = rest.split_at(open);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.as_bytes()));
        }
        rest = after;
        if let Some(expression) = rest.strip_prefix('{') {
            let (inside, after) = expression.split_once('}')?;
            parts.push(Part::expression(inside)?);
            rest = after;
        } else if !rest.is_empty() {
            return None;
        }
    }
    Some(parts)
}

impl Part<'_> {
    fn expression(inside: &str) -> Option<Self> {
        let several = inside.ends_with('*') || inside.contains(',');
        let in_path: fn(u8) -> bool = if several { path } else { segment };
        let (operator, names) = match inside.as_bytes().first()? {
            operator @ (b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&') => {
                (*operator, &inside[1..])
            }
            _ => (0, inside),
        };
        if names.is_empty() || names.contains('{') {
            return None;
        }
        Some(match operator {
            0 => Self::Value(segment),
            b'+' => Self::Value(any),
            b'#' => Self::Led(b'#', any),
            b'?' | b'&' => Self::Led(operator, query),
            operator => Self::Led(operator, in_path),
        })
    }

    fn advance(&self, starts: &[bool], uri: &[u8]) -> Vec<bool> {
        let mut ends = vec![false; starts.len()];
        match self {
            Self::Literal(literal) => {
                for (start, _) in starts.iter().enumerate().filter(|(_, reached)| **reached) {
                    if uri[start..].starts_with(literal) {
                        ends[start + literal.len()] = true;
                    }
                }
            }
            Self::Value(allowed) => {
                let mut inside = false;
                for (at, byte) in uri.iter().enumerate() {
                    inside = (inside || starts[at]) && allowed(*byte);
                    ends[at + 1] = inside;
                }
            }
            Self::Led(operator, allowed) => {
                let mut inside = false;
                for (at, byte) in uri.iter().enumerate() {
                    inside = (inside && allowed(*byte)) || (starts[at] && byte == operator);
                    ends[at + 1] = inside;
                }
                for (end, start) in ends.iter_mut().zip(starts) {
                    *end |= *start;
                }
            }
        }
        ends
    }
}

fn segment(byte: u8) -> bool {
    !matches!(byte, b'/' | b'?' | b'#')
}

fn path(byte: u8) -> bool {
    !matches!(byte, b'?' | b'#')
}

fn query(byte: u8) -> bool {
    byte != b'#'
}

fn any(_: u8) -> bool {
    true
}
