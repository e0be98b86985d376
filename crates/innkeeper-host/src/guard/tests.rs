//! Properties of everything that is looked at.
