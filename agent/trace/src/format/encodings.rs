//! Check of encoded values, before the library decodes them (Encodings.md in apache/parquet-format).

/// Reads an integer of at most `bits` bits, in groups of seven bits.
fn unsigned(bytes: &mut &[u8], bits: u32) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..bits).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        if shift + 7 > bits && group >> (bits - shift) != 0 {
            return None;
        }
        value |= group << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn skip(bytes: &mut &[u8], len: u64) -> Option<()> {
    *bytes = bytes.get(usize::try_from(len).ok()?..)?;
    Some(())
}

/// Checks runs and packed groups (RLE/bit-packing hybrid) of `count` numbers of `width` bits below `end`. The sum of the numbers, which
/// of levels is the number of values that are there.
pub fn rle(mut bytes: &[u8], width: u8, count: u32, end: u32) -> Option<u32> {
    let (mut left, mut sum) = (u64::from(count), 0_u32);
    while left > 0 {
        let head = unsigned(&mut bytes, 32)?;
        let (groups, run) = (head >> 1, head >> 1);
        if head & 1 == 1 {
            let packed = bytes;
            skip(&mut bytes, groups * u64::from(width))?;
            let values = left.min(groups * 8);
            for i in 0..values {
                let value = bits(packed, i * u64::from(width), width);
                sum = sum.wrapping_add(u32::try_from(value).ok().filter(|v| *v < end)?);
            }
            left -= values;
            if groups == 0 {
                return None;
            }
        } else {
            let len = u64::from(width.div_ceil(8));
            let value = bits(bytes, 0, u8::try_from(len * 8).ok()?);
            skip(&mut bytes, len)?;
            let value = u32::try_from(value).ok().filter(|v| *v < end)?;
            // A run may go beyond the end in no file that a known writer makes.
            if run == 0 || run > left {
                return None;
            }
            sum = sum.wrapping_add(value.wrapping_mul(run as u32));
            left -= run;
        }
    }
    Some(sum)
}

/// Number of `width` bits, at most 32, from this bit on; bits beyond the end are 0.
fn bits(bytes: &[u8], from: u64, width: u8) -> u64 {
    let at = (from / 8) as usize;
    let mut word = [0; 8];
    let have = bytes.get(at..).unwrap_or_default();
    let len = have.len().min(8);
    word[..len].copy_from_slice(&have[..len]);
    (u64::from_le_bytes(word) >> (from % 8)) & ((1 << width) - 1)
}

/// True if these are packed differences of `count` integers of at most `widest` bits.
pub fn delta(mut bytes: &[u8], count: u32, widest: u8) -> bool {
    read_delta(&mut bytes, count, widest).is_some()
}

fn read_delta(bytes: &mut &[u8], count: u32, widest: u8) -> Option<()> {
    const LARGEST_BLOCK: u64 = 1 << 16;
    let (block, parts) = (unsigned(bytes, 32)?, unsigned(bytes, 32)?);
    let total = unsigned(bytes, 32)?;
    unsigned(bytes, 64)?;
    let is_block = block % 128 == 0 && (128..=LARGEST_BLOCK).contains(&block);
    if !is_block || parts == 0 || block % parts != 0 || (block / parts) % 32 != 0 {
        return None;
    }
    if total != u64::from(count) {
        return None;
    }
    let each = block / parts;
    let mut left = total.saturating_sub(1);
    while left > 0 {
        unsigned(bytes, 64)?;
        let widths = bytes.get(..usize::try_from(parts).ok()?)?;
        skip(bytes, parts)?;
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > widest {
                return None;
            }
            skip(bytes, u64::from(*width) * each / 8)?;
            left = left.saturating_sub(each);
        }
    }
    Some(())
}
