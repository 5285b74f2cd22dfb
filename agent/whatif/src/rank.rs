//! Ranks the changes that an admin can make.

use crate::calibrate::variants;
use crate::change::{Change, Part};
use crate::measured::Measured;
use crate::predict::{LENGTH, Prediction, with};
use crate::refusal::Refusal;
use nfscope_model::Window;
use serde::Serialize;

/// Seconds per request of a device that is fast today.
const FAST_DEVICE: f64 = 100e-6;
/// A device is worth replacing if it takes more than this many times [`FAST_DEVICE`].
const MUCH_FASTER: f64 = 2.0;
/// Least part of a request's time in the server that a device must have to be worth replacing.
const MIN_PART: f64 = 0.05;
/// Largest number of nfsd threads that is recommended.
const MAX_THREADS: usize = 1024;
/// Least factor between the gains of two steps of the search for threads or clients: a smaller factor ends the search.
const ENOUGH: f64 = 1.05;
/// Least gain of a change that is recommended.
pub const MIN_GAIN: f64 = 1.1;

/// A change and its gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plausible {
    /// Factor of requests per second after the change, or of time in the server before it, whichever is larger.
    pub gain: f64,
    /// Low end of the gain's interval.
    pub gain_low: f64,
    /// High end of the gain's interval.
    pub gain_high: f64,
    /// True if the gain is in requests per second, false if it is in time in the server.
    pub is_rate: bool,
    /// Prediction of the change.
    pub prediction: Prediction,
}

/// Changes that an admin can make, the most valuable one first, including those that gain nothing. Among numbers of threads it lists the
/// smallest that gains nearly as much as any.
///
/// Ranking takes some dozens of simulations of some milliseconds each.
///
/// # Errors
/// When the window is not enough for a prediction; the refusal says why.
pub fn plausible(w: &Window) -> Result<Vec<Plausible>, Refusal> {
    let m = Measured::of(w)?;
    let variants = variants(&m, LENGTH)?;
    let predict = |change: Change| with(&m, &variants, &change);
    let mut all = Vec::new();
    let threads = m.threads();
    let mut best: Option<Plausible> = None;
    for times in [2, 4, 8, 16] {
        if threads * times > MAX_THREADS {
            break;
        }
        let change = Change {
            threads: Some((threads * times) as u32),
            ..Change::default()
        };
        let p = gain(predict(change)?);
        match &best {
            Some(b) if p.gain < b.gain * ENOUGH => break,
            _ => best = Some(p),
        }
    }
    all.extend(best);
    let part = |seconds: f64| seconds / m.residence.max(1e-12) * threads_factor(&m);
    // btrfs has no log device that could be faster than its disks.
    let own_log = m.log.as_ref().filter(|l| l.fs != "btrfs");
    let log = own_log.and_then(|l| l.device.as_ref());
    if log.is_some_and(|d| d.1 > MUCH_FASTER * FAST_DEVICE)
        && part(m.per_request(|k| k.log)) > MIN_PART
    {
        let change = Change {
            log_seconds: Some(FAST_DEVICE),
            ..Change::default()
        };
        all.push(gain(predict(change)?));
    }
    let slow = m
        .disk
        .as_ref()
        .is_some_and(|d| d.service.mean() > MUCH_FASTER * FAST_DEVICE);
    let inside = m.log.as_ref().filter(|l| l.inside);
    let on_disks = m.per_request(|k| k.disk + inside.map_or(0.0, |_| k.log));
    if slow && part(on_disks) > MIN_PART {
        let change = Change {
            disk_seconds: Some(FAST_DEVICE),
            ..Change::default()
        };
        match predict(change) {
            Ok(prediction) => all.push(gain(prediction)),
            // The disk that has the log is not known, so a change of disks is not predicted. Other changes are.
            Err(Refusal::SharedDisks(_)) => {}
            Err(e) => return Err(e),
        }
    }
    let cpus = Change {
        cpus: Some(m.cpus as u32 * 2),
        ..Change::default()
    };
    all.push(gain(predict(cpus)?));
    all.sort_by(|a, b| b.gain_low.total_cmp(&a.gain_low));
    Ok(all)
}

/// Predicts the server with more and more clients, until more of them bring no more requests.
///
/// # Errors
/// When the window is not enough for a prediction; the refusal says why.
pub fn fullest(w: &Window) -> Result<Prediction, Refusal> {
    let m = Measured::of(w)?;
    let variants = variants(&m, LENGTH)?;
    let mut best: Option<Prediction> = None;
    for times in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        let change = Change {
            clients_factor: Some(times),
            ..Change::default()
        };
        let p = with(&m, &variants, &change)?;
        match &best {
            Some(b) if p.rate.after < b.rate.after * ENOUGH => break,
            _ => best = Some(p),
        }
    }
    best.ok_or(Refusal::NoChange)
}

/// Factor by which time in a thread counts: each second that a request holds a thread also delays the requests that wait for a thread.
fn threads_factor(m: &Measured) -> f64 {
    m.residence / (m.residence - m.queue).max(1e-12)
}

fn gain(p: Prediction) -> Plausible {
    let rate = p.rate;
    let stay = p.residence;
    let by_rate = rate.after / rate.before;
    let by_stay = stay.before / stay.after;
    let is_rate = by_rate >= MIN_GAIN || by_rate >= by_stay;
    let (gain, gain_low, gain_high) = match is_rate {
        true => (by_rate, rate.low / rate.before, rate.high / rate.before),
        false => (by_stay, stay.before / stay.high, stay.before / stay.low),
    };
    Plausible {
        gain,
        gain_low,
        gain_high,
        is_rate,
        prediction: p,
    }
}

impl Plausible {
    /// The only part of the server that the change is about.
    pub fn part(&self) -> Option<Part> {
        self.prediction.change.part()
    }

    /// Sentence about the change, for example "16 threads: 1.9 to 2.3 times as many requests".
    pub fn sentence(&self) -> String {
        let mut change = self.prediction.change.words();
        let pools = &self.prediction.threads_by_pool;
        if let ([first, .., last], true) = (pools.as_slice(), pools.len() > 1) {
            change += &match first == last {
                true => format!(" ({first} in each of {} pools)", pools.len()),
                false => format!(" ({last} or {first} in each of {} pools)", pools.len()),
            };
        }
        if self.gain < MIN_GAIN {
            return format!("{change}: no gain");
        }
        let times = match self.gain_high < 9.5 {
            true => format!("{:.1} to {:.1}", self.gain_low, self.gain_high),
            false => format!("{:.0} to {:.0}", self.gain_low, self.gain_high),
        };
        match self.is_rate {
            true => format!("{change}: {times} times as many requests"),
            false => format!("{change}: requests stay {times} times shorter in the server"),
        }
    }
}
