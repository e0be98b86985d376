//! Matching of URIs against URI templates.

/// Maximum length of a template in bytes. Together with [`MAX_URI_BYTES`] it limits the work of one
/// match.
pub const MAX_TEMPLATE_BYTES: usize = 1024;
/// Maximum length of a URI in bytes: twice the usual limit of browsers and servers.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// Whether `template` can expand to `uri` (RFC 6570). In ambiguous cases the result is `true`.
///
/// `{x}` matches at least one character other than `/`, `?` and `#`; `{+x}` matches at least one
/// character of any kind; `{/x}`, `{.x}`, `{;x}`, `{?x}`, `{&x}` and `{#x}` start with their
/// operator and may be absent. Several names, prefixes and `*` are allowed. A template with
/// unbalanced braces matches nothing, and neither does a template or a URI over the limit.
///
/// The time is proportional to the length of the URI times the number of segments of the template,
/// for every template.
pub fn uri_matches(template: &str, uri: &str) -> bool {
    if template.len() > MAX_TEMPLATE_BYTES || uri.len() > MAX_URI_BYTES {
        return false;
    }
    let Some(segments) = parse_template(template) else { return false };
    // The positions in the URI at which a match of the previous segments can end.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for segment in segments {
        ends = segment.match_ends(&ends, uri.as_bytes());
    }
    ends[uri.len()]
}

enum Segment<'a> {
    Literal(&'a [u8]),
    /// At least one allowed byte.
    Value(fn(u8) -> bool),
    /// Nothing, or the operator and any number of allowed bytes.
    Prefixed(u8, fn(u8) -> bool),
}

fn parse_template(template: &str) -> Option<Vec<Segment<'_>>> {
    let mut segments = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let open = rest.find(['{', '}']).unwrap_or(rest.len());
        let (literal, after) = rest.split_at(open);
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal.as_bytes()));
        }
        rest = after;
        if let Some(expression) = rest.strip_prefix('{') {
            let (inside, after) = expression.split_once('}')?;
            segments.push(Segment::parse_expression(inside)?);
            rest = after;
        } else if !rest.is_empty() {
            return None;
        }
    }
    Some(segments)
}

impl Segment<'_> {
    fn parse_expression(inside: &str) -> Option<Self> {
        let several = inside.ends_with('*') || inside.contains(',');
        let in_path: fn(u8) -> bool = if several { is_path_byte } else { is_segment_byte };
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
            0 => Self::Value(is_segment_byte),
            b'+' => Self::Value(is_any_byte),
            b'#' => Self::Prefixed(b'#', is_any_byte),
            b'?' | b'&' => Self::Prefixed(operator, is_query_byte),
            operator => Self::Prefixed(operator, in_path),
        })
    }

    fn match_ends(&self, starts: &[bool], uri: &[u8]) -> Vec<bool> {
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
            Self::Prefixed(operator, allowed) => {
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

fn is_segment_byte(byte: u8) -> bool {
    !matches!(byte, b'/' | b'?' | b'#')
}

fn is_path_byte(byte: u8) -> bool {
    !matches!(byte, b'?' | b'#')
}

fn is_query_byte(byte: u8) -> bool {
    byte != b'#'
}

fn is_any_byte(_: u8) -> bool {
    true
}
