//! Tests of what is found in whole messages.
