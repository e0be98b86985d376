//! What holds for every input, through the public interface.

mod forms;
mod states;
