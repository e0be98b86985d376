//! Text of a file to a tree whose nodes have positions.

pub(crate) mod key_location;
pub(crate) mod key_path;
pub(crate) mod source_text;
pub(crate) mod tree;
