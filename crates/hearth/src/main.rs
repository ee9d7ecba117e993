//! The `hearth` command.
fn main() {}
