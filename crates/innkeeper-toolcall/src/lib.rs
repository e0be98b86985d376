//! Tool calls in model text, without I/O, clock, threads or randomness.
//!
//! In reading order: [`Tool`] is an offered tool, and [`Json`] a lossless value. A [`ModelFamily`]
//! is the form in which a model writes its calls. [`prompt`] describes tools for models without
//! native tool calls, and [`grammar`] restricts local models to valid calls. [`Aliases`] are the
//! names of the tools at a provider, and [`lower_schema`] translates their schemas for the
//! provider.
//!
//! A [`ToolCallParser`] receives a model's text in chunks and separates visible text from calls, in
//! any [`Format`]; the module `lexer` finds the end of a call. [`resolve_call`] converts a raw call
//! into a [`ResolvedCall`] and reports every [`Repair`]: [`parse`] reads the text,
//! [`coerce`](mod@coerce) converts the arguments to the types of the schema, and
//! [`resolve`](mod@resolve) finds the tool. [`ToolValidator`] reports the remaining schema
//! violations. A [`ToolIndex`] finds tools for a query; [`search_tools`] describes the tools with which
//! a model searches.

mod json;
mod tool;

mod alias;
mod schema_lowering;

pub mod grammar;
mod model_family;
pub mod prompt;
mod sanitize;

pub mod event;
mod format;
mod lexer;
pub mod stream_parser;

pub mod call;
pub mod coerce;
pub mod parse;
pub mod repair;
pub mod resolve;
pub mod validate;

mod tool_search;

pub mod search_tools;

pub use alias::{Aliases, NameRules};
pub use call::{RawArguments, RejectReason, RejectedCall, ResolvedCall, resolve_call};
pub use coerce::{coerce, coerce_text};
pub use event::{IncompleteReason, ParseEvent, TextEnd};
pub use format::Format;
pub use json::Json;
pub use model_family::ModelFamily;
pub use parse::{Completeness, ParseError, parse_lenient, parse_strict};
pub use repair::Repair;
pub use resolve::{ToolMatch, resolve, suggest, suggest_names};
pub use sanitize::{first_sentence, is_blank, quote_for_prompt, to_json_line};
pub use schema_lowering::{
    Dialect, EnumTextLimit, LoweredSchema, SchemaLoss, SchemaLossKind, StrictLimits, ToolLimits,
    lower_schema, lower_schemas,
};
pub use stream_parser::{CallSearch, ParserLimits, ParserOptions, ParserState, ToolCallParser};
pub use tool::{Tool, Tools};
pub use tool_search::{MAX_SEARCH_RESULTS, ToolIndex};
pub use validate::{NotValidated, ToolValidator, Violation};
