//! Queries of URLs: the text behind the question mark.

/// A value that the query of a URL encodes. Clients write the query, and the agent parses it.
pub trait QueryString: Sized {
    /// Parses a query that is still percent-encoded.
    ///
    /// # Errors
    /// When a parameter is wrong; the error names it and the right form.
    fn from_query(query: &str) -> Result<Self, String>;

    /// Encodes this value so that [`from_query`](QueryString::from_query) returns it. Equal values have the same text.
    fn to_query(&self) -> String;
}

/// Query of an endpoint without parameters: any text is accepted and ignored.
impl QueryString for () {
    fn from_query(_: &str) -> Result<(), String> {
        Ok(())
    }

    fn to_query(&self) -> String {
        String::new()
    }
}
