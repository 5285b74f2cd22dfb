//! Answers for assistants: a server of the Model Context Protocol over standard input and output, which only reads.
//!
//! The protocol's own library reads and writes the messages. [`session`] answers, [`tools`] names what can be asked, [`program`] runs this
//! program for an answer, and [`documents`] are pages of the documentation.
//!
//! A line is bounded, a call is bounded in time and size, and a call that fails ends neither the others nor the session.

mod documents;
mod program;
mod session;
mod tools;

pub use session::{Server, serve};
