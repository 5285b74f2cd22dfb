//! Queries of URLs: the text behind the question mark.

/// A value that a query expresses. Clients write it, and an agent reads it.
pub trait QueryString: Sized {
    /// Reads a query as it came, still percent-encoded.
    ///
    /// # Errors
    /// When a parameter is wrong; the error names it and the right form.
    fn from_query(query: &str) -> Result<Self, String>;

    /// Query that [`from_query`](QueryString::from_query) reads as this value. Equal values have the same text.
    fn to_query(&self) -> String;
}

/// Query of an address without parameters: it ignores all text.
impl QueryString for () {
    fn from_query(_: &str) -> Result<(), String> {
        Ok(())
    }

    fn to_query(&self) -> String {
        String::new()
    }
}
