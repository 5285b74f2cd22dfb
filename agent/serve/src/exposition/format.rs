//! The formats of an exposition.

/// An exposition format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Prometheus text format 0.0.4, which all scrapers understand.
    Plain,
    /// OpenMetrics text 1.0.
    OpenMetrics,
    /// Length-delimited `io.prometheus.client.MetricFamily`: the only one that carries native histograms.
    Protobuf,
}

impl Format {
    /// All formats; the index of each is its discriminant.
    pub const ALL: [Format; 3] = [Format::Plain, Format::OpenMetrics, Format::Protobuf];

    /// `Content-Type` of a body in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}
