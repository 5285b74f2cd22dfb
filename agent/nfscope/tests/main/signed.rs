//! First page of a comparison: its sentences for the person who signs it, and claims that it must not make.

use crate::fixture::comparison;
use crate::fixture::recorder::Place;
use crate::fixture::signed::{keep, page, side};
use nfscope_baseline::compare::html;

/// First page alone, without its details.
fn front(page: &str) -> &str {
    let (_, rest) = page.split_once("<section class=\"front\"").unwrap();
    rest.split_once("</section>").unwrap().0
}

/// Text between the tags, with single spaces.
fn text(page: &str) -> String {
    let mut text = String::new();
    let mut inside = true;
    for c in page.chars() {
        match c {
            '<' => inside = false,
            '>' => {
                inside = true;
                text.push(' ');
            }
            c if inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_page_has_the_change_its_doubts_and_its_evidence() {
    let place = Place::new("signed");
    let store = place.store();
    keep(&store);
    let to = place.0.join("page.html");
    let more = [
        "--title",
        "Log device for tank",
        "--note",
        "Ticket <4711>, \"as agreed\"",
        "--primary",
        "write:mean",
    ];
    let all = page(&store, &side("hdd"), &side("ssd"), &more, &to);
    let first = front(&all);
    let said = text(first);
    for part in [
        "Log device for tank",
        "Ticket &lt;4711&gt;",
        "Saving data durably (WRITE 3) took ",
        " on average before, and takes ",
        " times as fast, at least ",
        " times with 95 % confidence.",
        "What could be wrong",
        "hdd-0, hdd-1, hdd-2",
        "by Ada Grace",
        "That nothing else changed between both sides is for the person who signs to know.",
        "nfscope baseline compare hdd-0,hdd-1,hdd-2 ssd-0,ssd-1,ssd-2 --primary write:mean --store",
        "SHA-256 before",
        "Name Date Signature Remarks",
        "WRITE 3 mean: each recording is a dot",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        !said.contains("--title") && !said.contains("page.html"),
        "{said}"
    );
    // Three dots on each side, and a diamond.
    assert_eq!(
        first.matches("<circle class=\"mark full").count(),
        6,
        "{first}"
    );
    assert_eq!(first.matches("<path class=\"mark full").count(), 2);
    // Digest of the recordings: it does not depend on the other side or the title.
    let digests = |page: &str| {
        let said = text(front(page));
        let words: Vec<String> = said.split(' ').map(str::to_owned).collect();
        let is = |w: &&String| w.len() == 64 && w.bytes().all(|b| b.is_ascii_hexdigit());
        words.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    let other = page(&store, &side("hdd"), &side("hdd-again"), &[], &to);
    let (one, two) = (digests(&all), digests(&other));
    assert_eq!((one.len(), two.len()), (2, 2));
    assert!(one[0] == two[0] && one[1] != two[1], "{one:?} {two:?}");
    // Unchanged server: no success.
    let said = text(front(&other));
    assert!(
        said.contains("No change was found.") && said.contains("which may be chance."),
        "{said}"
    );
    assert!(!said.contains("times as fast"), "{said}");
}

/// No gain is claimed where writes can be lost, and nothing is concluded from one recording a side.
#[test]
fn the_first_page_claims_no_gain_without_proof() {
    let place = Place::new("unproven");
    let store = place.store();
    keep(&store);
    let to = place.0.join("page.html");
    let lossy = page(&store, &side("hdd"), &side("async"), &[], &to);
    let said = text(front(&lossy));
    assert!(
        said.contains("The server is less safe after the change: writes that it acknowledged can be lost. No difference below counts as a gain."),
        "{said}"
    );
    assert!(said.contains("No conclusion is drawn from it."), "{said}");
    for word in [
        "as fast",
        "less time",
        "better",
        "What it is worth",
        "Saving data durably",
    ] {
        assert!(!said.contains(word), "{word}: {said}");
    }
    let one = comparison::comparison();
    let alone = html::page(&nfscope_baseline::compare::result::Comparison {
        not_judged: Some("one recording on each side has no variance".into()),
        ..one
    });
    let said = text(front(&alone));
    assert!(
        said.contains(
            "Nothing can be concluded: two recordings of an unchanged server may differ by as much."
        ),
        "{said}"
    );
    assert!(
        !said.contains("times as fast") && !said.contains(" better"),
        "{said}"
    );
    // Empty comparison: no section stands half empty.
    let said = text(front(&html::page(&comparison::empty())));
    assert!(
        said.contains("Nothing can be concluded: no quantity was measured on both sides."),
        "{said}"
    );
    for word in ["What it is worth", "SHA-256", "dot"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}
