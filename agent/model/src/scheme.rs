//! Bucket schemes: where the edges of a histogram's buckets are.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A bucket scheme: bucket `i` of `len` holds values up to and including its upper edge, in the family's base unit (seconds
/// or bytes). Edges are at `2^(n / 2^schema)`, from `n = first` on. Bucket 0 also holds everything below its edge, the
/// last bucket everything above the edge before it.
///
/// `schema` and `n` are those of Prometheus native histograms (of the standard schemas those from one bucket per power of
/// two on), so that no value moves between buckets on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub struct Scheme {
    /// Buckets per power of two are `2^schema`; 0 to 8.
    pub schema: i8,
    /// Native bucket index of bucket 0.
    pub first: i32,
    /// Number of buckets, the overflow bucket included.
    pub len: usize,
    /// Powers of ten are edges, too. Each divides a bucket of the schema into two. Only [`Scheme::TIME`] has this.
    pub decades: bool,
}

/// Powers of ten that divide a bucket, in seconds, and the native index of that bucket. 1 s is a power of two.
const DECADES: [(f64, i32); 4] = [(1e-4, -53), (1e-3, -39), (1e-2, -26), (0.1, -13)];

/// A scheme in a file or from another host. Files without decades are older than decades. Programs that do not know decades must not
/// misread schemes with them, so these carry a schema that no earlier version accepts.
#[derive(Serialize, Deserialize)]
struct Encoded {
    schema: i8,
    first: i32,
    len: usize,
}

/// Offset of the schema number that marks a scheme with decades.
const WITH_DECADES: i8 = 16;

/// Bounds of a scheme from another host: no duration or size has edges beyond these powers, and no scheme of nfscope more buckets.
const MOST_POWERS: i64 = 128;
const MOST_BUCKETS: usize = 4096;

impl From<Scheme> for Encoded {
    fn from(s: Scheme) -> Encoded {
        Encoded {
            schema: s.schema + if s.decades { WITH_DECADES } else { 0 },
            first: s.first,
            len: s.len,
        }
    }
}

impl TryFrom<Encoded> for Scheme {
    type Error = &'static str;

    fn try_from(s: Encoded) -> Result<Scheme, Self::Error> {
        let Encoded { schema, first, len } = s;
        if schema == Scheme::TIME.schema + WITH_DECADES {
            let known = (first, len) == (Scheme::TIME.first, Scheme::TIME.len);
            return known
                .then_some(Scheme::TIME)
                .ok_or("a bucket scheme with other decades than ours");
        }
        if !(0..=8).contains(&schema) {
            return Err("a bucket scheme between whole powers of two, or of an unknown kind");
        }
        let last = i64::from(first) + len as i64;
        let powers = -MOST_POWERS << schema..=MOST_POWERS << schema;
        let known = powers.contains(&i64::from(first)) && powers.contains(&last);
        if !(2..=MOST_BUCKETS).contains(&len) || !known {
            return Err("a bucket scheme out of all bounds");
        }
        Ok(Scheme {
            schema,
            first,
            len,
            decades: false,
        })
    }
}

impl Scheme {
    /// Durations: four buckets per power of two from 2^-20 s (0.95 µs) to 2^6 s (64 s), and edges at the powers of ten from
    /// 100 µs to 100 ms. Any quantile read from it is within 9 % of the truth (half of the step 2^(1/4), harmonic).
    pub const TIME: Scheme = Scheme {
        schema: 2,
        first: -80,
        len: 106 + DECADES.len(),
        decades: true,
    };
    /// Sizes: one bucket per power of two from 1 byte to 2^30 bytes.
    pub const SIZE: Scheme = Scheme {
        schema: 0,
        first: 0,
        len: 32,
        decades: false,
    };
    /// Small counts (component ops per COMPOUND): one bucket per power of two from 1 to 1024.
    pub const COUNT: Scheme = Scheme {
        schema: 0,
        first: 0,
        len: 12,
        decades: false,
    };

    /// Scheme without decades: the plain schema, in which earlier versions recorded durations.
    pub fn undivided(&self) -> Scheme {
        Scheme {
            len: self.len - if self.decades { DECADES.len() } else { 0 },
            decades: false,
            ..*self
        }
    }

    /// The finest scheme in which values of both can be counted; `None` if there is none.
    pub fn common(&self, other: &Scheme) -> Option<Scheme> {
        if self == other {
            return Some(*self);
        }
        (self.undivided() == other.undivided()).then(|| self.undivided())
    }

    /// Upper edge of bucket `i` in base units; infinite for the overflow bucket.
    pub fn upper(&self, i: usize) -> f64 {
        if i + 1 >= self.len {
            return f64::INFINITY;
        }
        self.edge(i)
    }

    /// Upper edge of bucket `i`, also for the overflow bucket's would-be edge.
    pub fn edge(&self, i: usize) -> f64 {
        match self.find(i) {
            (_, Some(decade)) => decade,
            (n, None) => self.power(n),
        }
    }

    /// The middle of bucket `i`; of the overflow bucket its lower edge.
    pub fn middle(&self, i: usize) -> f64 {
        let lower = match i {
            0 => 0.0,
            i => self.upper(i - 1),
        };
        match self.upper(i) {
            upper if upper.is_finite() => (lower + upper) / 2.0,
            _ => lower,
        }
    }

    /// Index of the native bucket that is or contains bucket `i`.
    pub fn native(&self, i: usize) -> i32 {
        self.find(i).0
    }

    /// The bucket of a value in base units: the first whose upper edge is not below it.
    pub fn bucket(&self, v: f64) -> usize {
        let (mut low, mut high) = (0, self.len - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if v <= self.edge(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The native index of a bucket, and the decade that is its upper edge.
    fn find(&self, i: usize) -> (i32, Option<f64>) {
        let mut n = self.first + i as i32;
        if self.decades {
            for (decade, divided) in DECADES {
                match n.cmp(&divided) {
                    Ordering::Less => break,
                    Ordering::Equal => return (n, Some(decade)),
                    Ordering::Greater => n -= 1,
                }
            }
        }
        (n, None)
    }

    /// `2^(n / 2^schema)`.
    fn power(&self, n: i32) -> f64 {
        let per = 1i32 << self.schema;
        // Split so that whole powers of two are exact.
        let (whole, part) = (n.div_euclid(per), n.rem_euclid(per));
        2f64.powi(whole) * 2f64.powf(f64::from(part) / f64::from(per))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_an_upper_edge_belongs_to_the_bucket_below_it() {
        for scheme in [Scheme::TIME, Scheme::SIZE, Scheme::COUNT] {
            for i in 0..scheme.len - 1 {
                let edge = scheme.edge(i);
                assert_eq!(scheme.bucket(edge), i);
                assert_eq!(scheme.bucket(edge * 1.000_001), i + 1);
            }
        }
    }

    #[test]
    fn edges_are_those_of_the_schema_and_the_decades() {
        let (divided, plain) = (Scheme::TIME, Scheme::TIME.undivided());
        let edges = |s: &Scheme| (0..s.len).map(|i| s.edge(i)).collect::<Vec<_>>();
        let mut expected = edges(&plain);
        expected.extend(DECADES.map(|(decade, _)| decade));
        expected.sort_by(f64::total_cmp);
        assert_eq!(edges(&divided), expected);
        for objective in [0.001, 0.01, 0.1, 1.0] {
            assert_eq!(divided.edge(divided.bucket(objective)), objective);
        }
        for (i, edge) in expected[..divided.len - 1].iter().enumerate() {
            let native = plain.first + plain.bucket(*edge) as i32;
            assert_eq!(divided.native(i), native, "{edge}");
        }
        assert_eq!(divided.native(divided.len - 1), plain.native(plain.len - 1));
    }

    #[test]
    fn only_like_schemes_have_something_in_common() {
        let (divided, plain) = (Scheme::TIME, Scheme::TIME.undivided());
        assert_eq!(divided.common(&divided), Some(divided));
        assert_eq!(divided.common(&plain), Some(plain));
        assert_eq!(plain.common(&divided), Some(plain));
        assert_eq!(divided.common(&Scheme::SIZE), None);
    }

    #[test]
    fn schemes_of_files_are_told_apart() {
        let read = serde_json::from_str::<Scheme>;
        let time = r#"{"schema":18,"first":-80,"len":110}"#;
        assert_eq!(serde_json::to_string(&Scheme::TIME).unwrap(), time);
        assert_eq!(read(time).unwrap(), Scheme::TIME);
        let before = r#"{"schema":2,"first":-80,"len":106}"#;
        assert_eq!(read(before).unwrap(), Scheme::TIME.undivided());
        assert!(read(r#"{"schema":18,"first":-80,"len":106}"#).is_err());
        assert!(read(r#"{"schema":17,"first":-80,"len":110}"#).is_err());
    }
}
