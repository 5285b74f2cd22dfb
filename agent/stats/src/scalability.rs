//! The Universal Scalability Law, fitted to the rates of a server under several loads.
//!
//! N. J. Gunther, Guerrilla Capacity Planning (2007): with N requests in the server its rate is X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)).
//! σ is the part that is done one at a time, κ the part that requests cost each other. By Little's law N / X is the time that a request
//! spends in the server, so that the law is a polynomial of that time: R(N) = (1 + σ (N - 1) + κ N (N - 1)) / λ, fitted by weighted least
//! squares with coefficients that are not negative.

use serde::Serialize;

/// Least number of loads that determine three coefficients.
pub const MIN_LOADS: usize = 3;
/// Least ratio of the largest load to the smallest, in requests in the server.
const MIN_SPREAD: f64 = 1.5;

/// A load: the mean number of requests in the server, and the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Requests in the server on average.
    pub in_server: f64,
    /// Requests per second.
    pub rate: f64,
}

/// The law with its coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scalability {
    /// Requests per second with one request at a time.
    pub one: f64,
    /// Contention: the part that is done one at a time.
    pub contention: f64,
    /// Coherency: the cost of each pair of requests.
    pub coherency: f64,
    /// Highest rate; `None` if the loads show no limit.
    pub max_rate: Option<f64>,
    /// Requests in the server at the highest rate; `None` if the rate only approaches its limit.
    pub peak: Option<f64>,
}

impl Scalability {
    /// Rate with this number of requests in the server.
    pub fn rate(&self, in_server: f64) -> f64 {
        let n = in_server;
        self.one * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }
}

/// Fits the law. `None` for fewer than [`MIN_LOADS`] loads, or loads that are too similar.
pub fn scalability(loads: &[Load]) -> Option<Scalability> {
    let usable = |l: &&Load| l.in_server > 0.0 && l.rate > 0.0;
    let loads: Vec<&Load> = loads.iter().filter(usable).collect();
    let least = loads
        .iter()
        .map(|l| l.in_server)
        .fold(f64::INFINITY, f64::min);
    let most = loads.iter().map(|l| l.in_server).fold(0.0, f64::max);
    if loads.len() < MIN_LOADS || most < MIN_SPREAD * least {
        return None;
    }
    // Terms of R(N) with their coefficients 1/λ, σ/λ and κ/λ. Negative terms are left out. A peak beyond all loads does not count: under
    // light loads every queue grows faster than the law says.
    let falls = falls(&loads);
    let best = [[true, true], [true, false], [false, true], [false, false]]
        .into_iter()
        .filter(|[_, coherency]| falls || !coherency)
        .filter_map(|with| fit(&loads, with))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let [one, contention, coherency] = best.0;
    let (max_rate, peak) = if coherency > 0.0 && one > contention {
        let peak = ((one - contention) / coherency).sqrt();
        let time = one + contention * (peak - 1.0) + coherency * peak * (peak - 1.0);
        // A peak below one request, or a negative time, is impossible.
        match peak >= 1.0 && time > 0.0 {
            true => (Some(peak / time), Some(peak)),
            false => (None, None),
        }
    } else if contention > 0.0 {
        (Some(1.0 / contention), None)
    } else {
        (None, None)
    };
    Some(Scalability {
        one: 1.0 / one,
        contention: contention / one,
        coherency: coherency / one,
        max_rate,
        peak,
    })
}

/// True if the rate is lower under the largest load than under a smaller one.
fn falls(loads: &[&Load]) -> bool {
    let last = loads
        .iter()
        .max_by(|a, b| a.in_server.total_cmp(&b.in_server));
    last.is_some_and(|last| loads.iter().any(|l| l.rate > last.rate))
}

/// Coefficients with these terms, and the sum of squared relative residuals; `None` if one is negative.
fn fit(loads: &[&Load], [contention, coherency]: [bool; 2]) -> Option<([f64; 3], f64)> {
    let with = [true, contention, coherency];
    let terms = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
    // Normal equations of the relative residuals, with a row of the identity for each term that is left out.
    let mut matrix = [[0.0f64; 4]; 3];
    for l in loads {
        let time = l.in_server / l.rate;
        let row = terms(l.in_server).map(|t| t / time);
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] += row[i] * row[j];
            }
            matrix[i][3] += row[i];
        }
    }
    for i in 0..3 {
        if !with[i] {
            matrix.iter_mut().for_each(|row| row[i] = 0.0);
            matrix[i] = [0.0; 4];
            matrix[i][i] = 1.0;
        }
    }
    let found = solve(matrix)?;
    let sound = found[0] > 0.0 && found.iter().all(|c| c.is_finite() && *c >= 0.0);
    let residuals = loads.iter().map(|l| {
        let time: f64 = terms(l.in_server)
            .iter()
            .zip(found)
            .map(|(t, c)| t * c)
            .sum();
        (time * l.rate / l.in_server - 1.0).powi(2)
    });
    sound.then(|| (found, residuals.sum()))
}

/// Three linear equations, by elimination with the largest pivot; `None` where they have no single solution.
fn solve(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|a, b| m[*a][column].abs().total_cmp(&m[*b][column].abs()))?;
        m.swap(column, pivot);
        let scale = m[column][column];
        if scale.abs() < 1e-300 {
            return None;
        }
        let of = m[column];
        for (i, row) in m.iter_mut().enumerate() {
            if i != column {
                let factor = row[column] / scale;
                for (value, above) in row.iter_mut().zip(of) {
                    *value -= factor * above;
                }
            }
        }
    }
    Some([0, 1, 2].map(|i| m[i][3] / m[i][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(one: f64, contention: f64, coherency: f64, n: &[f64]) -> Vec<Load> {
        let law = Scalability {
            one,
            contention,
            coherency,
            max_rate: None,
            peak: None,
        };
        let load = |n: &f64| Load {
            in_server: *n,
            rate: law.rate(*n),
        };
        n.iter().map(load).collect()
    }

    #[test]
    fn the_law_is_found_in_what_follows_it() {
        let loads = law(
            995.0,
            0.02,
            0.000_5,
            &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0, 96.0],
        );
        let s = scalability(&loads).unwrap();
        assert!((s.one - 995.0).abs() < 1e-6, "{s:?}");
        assert!((s.contention - 0.02).abs() < 1e-9 && (s.coherency - 0.000_5).abs() < 1e-9);
        // The peak is the root of 0.98 / 0.0005.
        assert!((s.peak.unwrap() - 44.27).abs() < 0.01, "{s:?}");
        assert!((s.max_rate.unwrap() - s.rate(44.27)).abs() < 0.01, "{s:?}");
    }

    #[test]
    fn a_queue_has_a_limit_and_no_peak() {
        // A queue with one server of 8 ms and random arrivals has N = u / (1 - u) requests.
        let loads = [0.1, 0.3, 0.5, 0.7].map(|u| Load {
            in_server: u / (1.0 - u),
            rate: u / 8e-3,
        });
        let s = scalability(&loads).unwrap();
        assert!((s.max_rate.unwrap() / 125.0 - 1.0).abs() < 1e-6, "{s:?}");
        // The coefficient of pairs is zero but for rounding.
        assert!(s.coherency < 1e-9, "{s:?}");
    }

    #[test]
    fn what_shows_no_limit_has_none() {
        let s = scalability(&law(100.0, 0.0, 0.0, &[0.5, 1.0, 2.0, 4.0])).unwrap();
        assert!((s.one - 100.0).abs() < 1e-6);
        assert!(s.max_rate.is_none_or(|max| max > 1e6), "{s:?}");
        assert_eq!(scalability(&law(100.0, 0.1, 0.0, &[1.0, 2.0])), None);
        assert_eq!(scalability(&law(100.0, 0.1, 0.0, &[1.0, 1.1, 1.2])), None);
    }
}
