//! Everything pure about a model calling a tool, without I/O, clock, threads or randomness.
//!
//! In reading order: [`Tool`] is what a model may call and [`Json`] what it says, with each number
//! as it was written. A [`Family`] is the form in which a model writes its calls; [`prompt`] puts
//! tools into words for models that know none, [`grammar`] keeps local ones to calls that fit.
//! [`Aliases`] are the names by which a provider knows the tools, and [`fit`]
//! puts their schemas into its words. An [`Interceptor`] takes a model's text piece by piece and
//! tells apart what is for the reader and what is a call, in any [`Format`]; `lexer` finds where a
//! call ends. [`ladder`] makes a [`Call`] of what was said, with each [`Repair`] told: it reads the
//! text with [`parse`], brings the arguments to the types of the schema with [`coerce`](mod@coerce)
//! and finds the tool with [`resolve`](mod@resolve). [`Toolbox`] says what still does not fit.

mod json;
mod tool;

mod alias;
mod fit;

mod family;
pub mod grammar;
pub mod prompt;
mod safe;

pub mod event;
mod format;
pub mod interceptor;
mod lexer;

pub mod call;
pub mod coerce;
pub mod parse;
pub mod repair;
pub mod resolve;
pub mod validate;

pub use alias::{Aliases, NameRules};
pub use call::{Arguments, Call, Reason, Rejected, ladder};
pub use coerce::{coerce, typed};
pub use event::{Event, Finish, Incomplete};
pub use family::Family;
pub use fit::{Change, Dialect, Fitted, Loss, fit, fit_all};
pub use format::Format;
pub use interceptor::{Interceptor, Limits, Options, State};
pub use json::Json;
pub use parse::{End, ParseError, lenient, strict};
pub use repair::Repair;
pub use resolve::{Resolved, resolve, suggest};
pub use safe::quoted;
pub use tool::{Tool, Tools};
pub use validate::{Toolbox, Unchecked, Violation};
