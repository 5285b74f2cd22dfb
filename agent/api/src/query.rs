//! Queries of URLs: what stands behind the question mark.

/// Something that a query can say. Clients write it, and an agent reads it.
pub trait QueryString: Sized {
    /// Reads a query as it came, still percent-encoded.
    ///
    /// # Errors
    /// Names the parameter that is wrong, and says what is right.
    fn from_query(query: &str) -> Result<Self, String>;

    /// The query that [`from_query`](QueryString::from_query) reads as this. Equal values have the same text.
    fn to_query(&self) -> String;
}

/// An address without parameters, which passes over whatever stands there.
impl QueryString for () {
    fn from_query(_: &str) -> Result<(), String> {
        Ok(())
    }

    fn to_query(&self) -> String {
        String::new()
    }
}
