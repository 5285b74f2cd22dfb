//! Every thread of a running agent gives up its capabilities. A process of its own without a test harness, whose
//! threads would keep theirs.

fn main() {}
