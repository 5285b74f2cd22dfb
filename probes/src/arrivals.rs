//! A connection's ring of arrivals: `bpf/nfsd/arrivals.h` compiled for this host.

/// Segments that wait unread on one connection; later ones share the last entry. `RING` of `bpf/nfsd/arrivals.h`.
pub const RING: usize = 128;

/// Arrival times of the bytes of a TCP connection. In the kernel no lock keeps one CPU from clearing the ring while another one matches:
/// fields are public so that a test can leave them as such a race does.
#[repr(C)]
#[derive(Clone)]
pub struct Arrivals {
    /// Next entry to write.
    pub head: u32,
    /// First entry that may still matter.
    pub tail: u32,
    ready_ns: [u64; RING],
    end_seq: [u32; RING],
}

unsafe extern "C" {
    fn nfscope_arrivals_size() -> u32;
    fn nfscope_arrival_note(a: *mut Arrivals, end_seq: u32, now: u64) -> bool;
    fn nfscope_arrival_match(a: *mut Arrivals, copied_seq: u32) -> u64;
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        // SAFETY: a pure function without arguments.
        let of_c = unsafe { nfscope_arrivals_size() } as usize;
        assert_eq!(of_c, size_of::<Arrivals>(), "struct arrivals has changed");
        Arrivals {
            head: 0,
            tail: 0,
            ready_ns: [0; RING],
            end_seq: [0; RING],
        }
    }
}

impl Arrivals {
    /// Notes that everything up to a TCP sequence number was ready at a time in nanoseconds. Returns false if the ring was full.
    pub fn note(&mut self, end_seq: u32, now: u64) -> bool {
        // SAFETY: the C side writes to this structure alone, which has its layout (checked when it was made).
        unsafe { nfscope_arrival_note(self, end_seq, now) }
    }

    /// Time at which the byte before a TCP sequence number was ready, in nanoseconds; `None` if that was not seen.
    pub fn matching(&mut self, copied_seq: u32) -> Option<u64> {
        // SAFETY: as above.
        let ready = unsafe { nfscope_arrival_match(self, copied_seq) };
        (ready != 0).then_some(ready)
    }
}
