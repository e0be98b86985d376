//! Type names of programming languages and old drafts.

/// The name of a value of any type, from draft 3.
pub const ANY_TYPE: &str = "any";

/// Returns the name in JSON Schema for a type name of any language or spelling, [`ANY_TYPE`] for a
/// name that restricts nothing, or `None` for a name without a single meaning.
pub fn standard_type_name(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "null" | "none" | "nonetype" => "null",
        "bool" | "boolean" => "boolean",
        "int" | "integer" | "long" | "short" | "byte" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "string" | "str" | "char" => "string",
        "array" | "list" | "arraylist" | "tuple" | "set" => "array",
        "object" | "dict" | "map" | "hashmap" => "object",
        ANY_TYPE | "" => ANY_TYPE,
        _ => return None,
    })
}
