//! Waits in a queue with random arrivals and several servers.

/// Mean wait in service times in a queue with this number of servers, random arrivals and random service times (M/M/c), at this utilization
/// from 0 to below 1. Erlang's B by its recursion, then C (A. K. Erlang, 1917).
pub fn waiting(servers: f64, utilization: f64) -> f64 {
    let c = servers.round().clamp(1.0, 4096.0);
    let offered = c * utilization;
    let mut b = 1.0;
    for n in 1..=c as u32 {
        b = offered * b / (f64::from(n) + offered * b);
    }
    let waits = b / (1.0 - utilization * (1.0 - b));
    waits / (c * (1.0 - utilization))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_and_two_as_in_any_textbook() {
        for u in [0.1, 0.5, 0.9, 0.99] {
            assert!((waiting(1.0, u) - u / (1.0 - u)).abs() < 1e-9);
            assert!((waiting(2.0, u) - u * u / (1.0 - u * u)).abs() < 1e-9);
        }
        assert!(waiting(8.0, 0.5) < 0.02 && waiting(8.0, 0.999) > 100.0);
    }
}
