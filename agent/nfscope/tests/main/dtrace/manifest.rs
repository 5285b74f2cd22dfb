//! Service manifest for illumos: well formed, and with no more privileges than docs/illumos.md names.

use crate::fixture::root;
use std::fs;

#[test]
fn the_service_has_the_privileges_that_dtrace_needs_and_no_others() {
    let text = fs::read_to_string(root().join("deploy/smf/nfscope.xml")).unwrap();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let manifest = roxmltree::Document::parse_with_options(&text, options).unwrap();
    let of = |tag: &str, attribute: &str| {
        let mut all = manifest.descendants().filter(|n| n.has_tag_name(tag));
        let node = all.find(|n| n.has_attribute(attribute)).unwrap();
        node.attribute(attribute).unwrap().to_owned()
    };
    let privileges = of("method_credential", "privileges");
    assert_eq!(privileges, "basic,dtrace_kernel,dtrace_proc,dtrace_user");
    assert_eq!(of("method_credential", "limit_privileges"), privileges);
    assert_eq!(of("method_credential", "user"), "nfscope");
    let start = of("exec_method", "exec");
    let words: Vec<_> = start.split(' ').collect();
    assert_eq!(words, ["/usr/local/bin/nfscope", "agent"]);
    let page = fs::read_to_string(root().join("docs/illumos.md")).unwrap();
    for name in privileges.split(',').skip(1) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
