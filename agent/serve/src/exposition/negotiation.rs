//! Content negotiation of a scrape.

use crate::exposition::format::Format;

/// Format that an `Accept` header prefers.
///
/// A scraper that names no format of this agent gets the classic text: its admin learns more from that than from a 406.
pub fn negotiate(accept: Option<&str>) -> Format {
    let mut best = (0.0, Format::Plain);
    for range in accept.unwrap_or_default().split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut q, mut proto, mut encoding) = (1.0, None, None);
        for (name, value) in parts.filter_map(|p| p.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => q = value.parse::<f32>().unwrap_or(0.0),
                "proto" => proto = Some(value),
                "encoding" => encoding = Some(value),
                _ => {}
            }
        }
        let format = match media.as_str() {
            "application/vnd.google.protobuf"
                if proto == Some("io.prometheus.client.MetricFamily")
                    && encoding.is_none_or(|e| e == "delimited") =>
            {
                Format::Protobuf
            }
            "application/openmetrics-text" => Format::OpenMetrics,
            "text/plain" | "text/*" | "*/*" => Format::Plain,
            _ => continue,
        };
        // The first of equal preferences wins, because Prometheus lists its preferred format first.
        if q > best.0 {
            best = (q, format);
        }
    }
    best.1
}

/// Returns true if an `Accept-Encoding` header accepts gzip.
pub fn accepts_gzip(accept: Option<&str>) -> bool {
    let mut any = false;
    for coding in accept.unwrap_or_default().split(',') {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let q = parts.find_map(|p| p.strip_prefix("q=")?.trim().parse::<f32>().ok());
        let wanted = q.is_none_or(|q| q > 0.0);
        match name.as_str() {
            "gzip" | "x-gzip" => return wanted,
            "*" => any = wanted,
            _ => {}
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (accept, takes) in [
            ("gzip", true),
            ("deflate, gzip;q=1.0, *;q=0.5", true),
            ("GZIP", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("gzip; q=0.000", false),
            ("identity", false),
            ("", false),
            (";;,q=", false),
        ] {
            assert_eq!(accepts_gzip(Some(accept)), takes, "{accept}");
        }
        assert!(!accepts_gzip(None));
    }

    const NATIVE: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
         application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
         application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
         text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

    #[test]
    fn the_highest_q_wins() {
        for (accept, format) in [
            (NATIVE, Format::Protobuf),
            (NATIVE.split_once(",").unwrap().1, Format::OpenMetrics),
            ("text/plain;version=0.0.4;q=0.2,*/*;q=0.1", Format::Plain),
            (
                "text/plain;q=0.2, application/openmetrics-text; q=0.9",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0, text/plain;q=0.1",
                Format::Plain,
            ),
            ("*/*", Format::Plain),
            ("text/html", Format::Plain),
            ("", Format::Plain),
            ("application/vnd.google.protobuf", Format::Plain),
            (
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=text",
                Format::Plain,
            ),
            (";;,=,q=", Format::Plain),
        ] {
            assert_eq!(negotiate(Some(accept)), format, "{accept}");
        }
        assert_eq!(negotiate(None), Format::Plain);
    }
}
