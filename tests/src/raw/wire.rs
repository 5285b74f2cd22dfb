//! Connection that counts its calls.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::rpc::{Auth, Call, Connection, Reply};
use super::sent::Sent;

/// The connection in use, and counts of its calls.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub connection: Option<Connection>,
    pub sent: Sent,
    /// User ID of the calls; 0 is root.
    pub user: u32,
    /// Time before each reply is read.
    pub stall: Duration,
    /// Time that replies took, all together.
    pub waited: Duration,
}

impl Wire {
    pub fn connection(&mut self) -> Result<&mut Connection> {
        match self.connection.as_mut() {
            Some(connection) => Ok(connection),
            None => bail!("no connection"),
        }
    }

    /// Sends a call and counts it as a call only; the caller adds procedure and operations.
    pub fn exchange(&mut self, what: &str, call: &Call) -> Result<Reply> {
        self.sent.calls += 1;
        let stall = self.stall;
        let begin = Instant::now();
        let mut call = call.clone();
        if self.user != 0 {
            call.auth = Auth::User(self.user);
        }
        let connection = self.connection()?;
        connection.send(&call)?;
        std::thread::sleep(stall);
        let reply = connection.receive()?;
        self.waited += begin.elapsed();
        self.note(what, &reply);
        Ok(reply)
    }

    pub fn note(&mut self, what: &str, reply: &Reply) {
        let status = match reply {
            Reply::Success(body) => match body.get(..4).and_then(|b| b.try_into().ok()) {
                Some(status) => u32::from_be_bytes(status).to_string(),
                None => "void".to_owned(),
            },
            Reply::Refused(why) | Reply::Denied(why) => (*why).to_owned(),
        };
        self.sent.replies.push((what.to_owned(), status));
    }
}
