//! Web configuration file as a scraper meets it: TLS, certificates of clients, passwords and headers.

use crate::fixture::Fake;
use crate::fixture::pki::{Pki, TLS};
use crate::fixture::serve::{get, receive, send, serve_as};
use nfscope_api::fingerprint::Fingerprint;
use nfscope_serve::http::WebConfig;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::fs;
use std::io::{ErrorKind, Read};

/// Authorization header of the user `alice` with the password `open sesame`.
const PASSWORD: &str = "Authorization: Basic YWxpY2U6b3BlbiBzZXNhbWU=\r\n";

fn is_answered(answer: std::io::Result<String>) -> bool {
    answer.is_ok_and(|text| text.starts_with("HTTP/1.1 200 "))
}

#[test]
fn a_server_with_a_certificate_answers_over_tls_only() {
    let pki = Pki::new();
    for more in [
        "",
        "  min_version: TLS13\n",
        "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n  curve_preferences: [X25519]\n",
    ] {
        let (a, _server) = pki.serve(&format!("{TLS}{more}"));
        assert!(is_answered(pki.scrape(a, None)), "{more}");
        // Client that trusts another authority, and client without TLS.
        assert!(!is_answered(Pki::new().scrape(a, None)));
        let plain = receive(send(
            a,
            b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ));
        assert!(!plain.contains("HTTP/1.1 200"), "{plain}");
        assert!(is_answered(pki.scrape(a, None)));
    }
}

#[test]
fn clients_need_a_certificate_that_the_authority_signed() {
    let pki = Pki::new();
    let required =
        format!("{TLS}  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n");
    assert!(pki.web(&required).unwrap().authenticates());
    let (a, _server) = pki.serve(&required);
    assert!(is_answered(pki.scrape(a, Some("prometheus.example"))));
    assert!(!is_answered(pki.scrape(a, None)));
    let named = format!("{required}  client_allowed_sans: [prometheus.example, 192.0.2.1]\n");
    let (a, _server) = pki.serve(&named);
    assert!(is_answered(pki.scrape(a, Some("prometheus.example"))));
    assert!(is_answered(pki.scrape(a, Some("192.0.2.1"))));
    assert!(!is_answered(pki.scrape(a, Some("somebody.example"))));
    let optional =
        format!("{TLS}  client_ca_file: ca.crt\n  client_auth_type: VerifyClientCertIfGiven\n");
    assert!(!pki.web(&optional).unwrap().authenticates());
    let (a, _server) = pki.serve(&optional);
    assert!(is_answered(pki.scrape(a, None)));
    assert!(is_answered(pki.scrape(a, Some("prometheus.example"))));
}

#[test]
fn an_unverified_certificate_does_not_authenticate_a_client() {
    let pki = Pki::new();
    for (kind, without) in [("RequestClientCert", true), ("RequireAnyClientCert", false)] {
        let web = format!("{TLS}  client_auth_type: {kind}\n");
        assert!(!pki.web(&web).unwrap().authenticates(), "{kind}");
        let (a, _server) = pki.serve(&web);
        assert!(
            is_answered(pki.scrape(a, Some("somebody.example"))),
            "{kind}"
        );
        assert_eq!(is_answered(pki.scrape(a, None)), without, "{kind}");
    }
}

#[test]
fn requests_above_the_rate_limit_are_refused() {
    let pki = Pki::new();
    let (a, _server) = pki.serve("rate_limit: {interval: 1h, burst: 2}\n");
    let codes: Vec<_> = (0..3).map(|_| get(a, "/-/healthy", "")).collect();
    let answered = codes.iter().filter(|c| c.starts_with("HTTP/1.1 200 "));
    assert_eq!(answered.count(), 2, "{codes:?}");
    assert!(codes[2].starts_with("HTTP/1.1 429 ") && codes[2].contains("retry-after: 1\r\n"));
}

#[test]
fn a_tls_setting_without_effect_is_refused() {
    let pki = Pki::new();
    for (more, why) in [
        (
            "  client_auth_type: RequireAnyClientCert\n  client_ca_file: ca.crt\n",
            "verifies nothing",
        ),
        (
            "  client_auth_type: RequireAndVerifyClientCert\n",
            "needs client_ca_file",
        ),
        ("  client_auth_type: Sometimes\n", "unknown `Sometimes`"),
        ("  client_ca_file: ca.crt\n", "client_ca_file has no effect"),
        (
            "  client_allowed_sans: [x.example]\n",
            "needs client_auth_type",
        ),
        ("  min_version: TLS10\n", "`TLS10` is not supported"),
        (
            "  min_version: TLS13\n  max_version: TLS12\n",
            "above max_version",
        ),
        (
            "  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n",
            "is not supported",
        ),
        ("  curve_preferences: [CurveP521]\n", "is not supported"),
    ] {
        let e = format!("{:#}", pki.web(&format!("{TLS}{more}")).unwrap_err());
        assert!(e.contains("web.yml") && e.contains(why), "{more}: {e}");
    }
}

#[test]
fn every_page_needs_a_password_and_a_reload_replaces_it() {
    let hash = bcrypt::hash("open sesame", 4).unwrap();
    let pki = Pki::new();
    let users = format!("basic_auth_users: {{alice: '{hash}'}}\n");
    let (a, server) = pki.serve(&users);
    for path in ["/", "/metrics", "/-/healthy", "/slow", "/nothing"] {
        let answer = get(a, path, "");
        assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        assert!(answer.contains("www-authenticate: Basic realm=\"nfscope\"\r\n"));
        let wrong = "Authorization: Basic YWxpY2U6Z3Vlc3M=\r\n";
        assert!(get(a, path, wrong).starts_with("HTTP/1.1 401 "));
    }
    assert!(get(a, "/-/healthy", PASSWORD).starts_with("HTTP/1.1 200 "));
    assert!(get(a, "/metrics", PASSWORD).contains("nfscope_build_info"));
    let headers = "http_server_config:\n  headers: {X-Frame-Options: deny}\n";
    server.configure(pki.web(headers).unwrap());
    let answer = get(a, "/-/healthy", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("x-frame-options: deny\r\n"), "{answer}");
    server.configure(pki.web(TLS).unwrap());
    assert!(is_answered(pki.scrape(a, None)));
    assert!(!get(a, "/-/healthy", "").contains("HTTP/1.1 200"));
}

/// Reads until the server ends the connection, by a close or a reset.
fn ends(mut stream: std::net::TcpStream) -> String {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(e) if e.kind() != ErrorKind::ConnectionReset => panic!("{e}"),
        _ => String::from_utf8_lossy(&answer).into_owned(),
    }
}

#[test]
fn a_revoked_password_ends_its_streams() {
    let hash = |password| bcrypt::hash(password, 4).unwrap();
    let pki = Pki::new();
    let users = |hash: &str| format!("basic_auth_users: {{alice: '{hash}'}}\n");
    let (a, server) = pki.serve(&users(&hash("open sesame")));
    while get(a, "/healthz", PASSWORD).contains("attaching") {
        std::thread::yield_now();
    }
    let request = format!("GET /slow HTTP/1.1\r\nHost: localhost\r\n{PASSWORD}\r\n");
    let mut stream = send(a, request.as_bytes());
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    server.configure(pki.web(&users(&hash("another"))).unwrap());
    // Stream without an end: it would go on until the test times out.
    ends(stream);
    assert!(get(a, "/-/healthy", PASSWORD).starts_with("HTTP/1.1 401 "));
}

/// Exit status and standard error of a command that reads an agent.
fn command(args: &[&str], password: Option<&str>) -> (Option<i32>, String) {
    command_of("/nonexistent", args, password)
}

/// [`command`] of a user with this directory of settings.
fn command_of(settings: &str, args: &[&str], password: Option<&str>) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command.args(args).env_remove("NFSCOPE_PASSWORD");
    command.env("XDG_CONFIG_HOME", settings);
    command.env("SSL_CERT_FILE", "/nonexistent/authorities");
    if let Some(password) = password {
        command.env("NFSCOPE_PASSWORD", password);
    }
    let out = command.output().unwrap();
    (
        out.status.code(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

#[test]
fn commands_reach_an_agent_with_tls_and_passwords_and_name_missing_flags() {
    let pki = Pki::new();
    let file = |name: &str| pki.dir.path().join(name).to_str().unwrap().to_owned();
    for name in ["localhost", "admin.example"] {
        let (cert, key) = pki.sign(name);
        fs::write(file(&format!("{name}.crt")), cert.pem()).unwrap();
        fs::write(file(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let hash = bcrypt::hash("open sesame", 4).unwrap();
    let text = format!(
        "tls_server_config:\n  cert_file: localhost.crt\n  key_file: localhost.key\n  client_ca_file: ca.crt\n  \
         client_auth_type: RequireAndVerifyClientCert\nbasic_auth_users: {{alice: '{hash}'}}\n"
    );
    let (a, _server) = pki.serve(&text);
    let url = format!("https://localhost:{}", a.port());
    fs::write(file("password"), "open sesame\nsecond line\n").unwrap();
    let (ca, cert, key) = (
        file("ca.crt"),
        file("admin.example.crt"),
        file("admin.example.key"),
    );
    let trust = ["--ca-file", &ca];
    let own = ["--cert-file", &cert, "--key-file", &key];
    let alice = ["--user", "alice"];
    let secret = file("password");
    let by_file = ["--password-file", &secret];
    let top = ["top", "--once", "--interval", "500ms", "--url", &url];
    let says = |args: &[&[&str]], password, message: &str| {
        let (code, said) = command(&args.concat(), password);
        assert!(
            code != Some(0) && said.contains(message),
            "{args:?}: {code:?} {said}"
        );
    };
    says(&[&top], None, "/nonexistent/authorities");
    let plain = format!("http://localhost:{}", a.port());
    let plain = ["top", "--once", "--url", &plain];
    says(&[&plain], None, "it speaks TLS; give https://");
    let other = Pki::new();
    let stranger = other.dir.path().join("ca.crt");
    let stranger = ["--ca-file", stranger.to_str().unwrap()];
    says(
        &[&top, &stranger],
        None,
        "name that authority with --ca-file",
    );
    says(&[&top, &trust], None, "give --cert-file and --key-file");
    says(
        &[&top, &trust, &own],
        None,
        "it asks for a password: give --user",
    );
    says(
        &[&top, &trust, &own, &alice],
        None,
        "give --password-file or set NFSCOPE_PASSWORD",
    );
    says(
        &[&top, &trust, &own, &alice],
        Some("guess"),
        "it asks for a password",
    );
    says(
        &[&["slow", "--url", &url], &trust, &own],
        None,
        "refuses: it asks for a password",
    );
    for (by_file, password) in [(&by_file[..], None), (&[], Some("open sesame"))] {
        let args = [&top, &trust[..], &own, &alice, by_file].concat();
        let (code, said) = command(&args, password);
        assert_eq!(code, Some(0), "{said}");
    }
    let (a, _server) = serve_as(WebConfig::default(), || Ok(Box::new(Fake::new())));
    let plain = format!("https://localhost:{}", a.port());
    says(
        &[&["top", "--once", "--url", &plain], &trust],
        None,
        "give http://",
    );
}

#[test]
fn a_settings_file_supplies_flags_that_the_command_line_lacks() {
    let pki = Pki::new();
    let dir = pki.dir.path();
    let (cert, key) = pki.sign("localhost");
    fs::write(dir.join("localhost.crt"), cert.pem()).unwrap();
    fs::write(dir.join("localhost.key"), key.serialize_pem()).unwrap();
    let hash = bcrypt::hash("open sesame", 4).unwrap();
    let (a, _server) = pki.serve(&format!(
        "tls_server_config: {{cert_file: localhost.crt, key_file: localhost.key}}\nbasic_auth_users: {{alice: '{hash}'}}\n"
    ));
    let url = format!("https://localhost:{}", a.port());
    let home = dir.join("nfscope");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("password"), "open sesame\n").unwrap();
    let section = |whom: &str| {
        format!(
            "[{whom}]\nurl = \"{url}\"\nca_file = \"../ca.crt\"\nuser = \"alice\"\npassword_file = \"password\"\n"
        )
    };
    let text = section("agent") + &section("prometheus");
    fs::write(home.join("client.toml"), &text).unwrap();
    let run = |args: &[&str]| command_of(dir.to_str().unwrap(), args, None);
    let top = ["top", "--once", "--interval", "500ms"];
    assert_eq!(run(&top), (Some(0), String::new()));
    assert_eq!(run(&["check", "--url", &url]).1, "");
    // Scheme of a host without one: the settings file says that this host speaks TLS.
    let short = format!("localhost:{}", a.port());
    for short in ["localhost", &short] {
        assert_eq!(
            run(&[&top[..], &["--url", short]].concat()),
            (Some(0), String::new())
        );
    }
    let (_, said) = run(&["path", "localhost", "--duration", "1s", "--url", &short]);
    assert!(
        !said.contains("TLS") && !said.contains("password"),
        "{said}"
    );
    // Response 404: the agent accepts the password, and is no Prometheus.
    let history = [
        "baseline",
        "import",
        "--prometheus",
        &url,
        "--name",
        "n",
        "--from",
        "2026-06-01T00:00:00Z",
        "--to",
        "2026-06-01T01:00:00Z",
        "--store",
        ":memory:",
    ];
    for args in [&["fleet"][..], &history] {
        let (code, said) = run(args);
        assert!(
            code == Some(1) && said.contains("does not answer like a Prometheus: status 404"),
            "{args:?}: {said}"
        );
    }
    // Without the settings file there is no password; flags of the command line hold for every host.
    let trust = dir.join("ca.crt");
    let trust = ["--ca-file", trust.to_str().unwrap()];
    let secret = home.join("password");
    let flags = [
        "--user",
        "alice",
        "--password-file",
        secret.to_str().unwrap(),
    ];
    for asked in [&["fleet", &url][..], &["check", "--url", &url]] {
        let (code, said) = command(&[asked, &trust[..]].concat(), None);
        assert!(
            code == Some(1) && said.contains("it asks for a password"),
            "{asked:?}: {said}"
        );
        let (_, said) = command(&[asked, &trust[..], &flags].concat(), None);
        assert!(!said.contains("password"), "{asked:?}: {said}");
    }
    let (code, said) = command(&["fleet"], None);
    assert!(
        code == Some(1) && said.contains("url of [prometheus]"),
        "{said}"
    );
    fs::write(home.join("client.toml"), "[agent]\nulr = 1\n").unwrap();
    let (code, said) = run(&top);
    assert!(
        code == Some(1) && said.contains("client.toml") && said.contains("`ulr`"),
        "{said}"
    );
}

/// Self-signed certificate: most appliances have one, as `openssl req -x509` makes it.
#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_by_file_or_fingerprint() {
    let pki = Pki::new();
    let file = |name: &str| pki.dir.path().join(name).to_str().unwrap().to_owned();
    let own = |name: &str| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap();
        fs::write(file(&format!("{name}.crt")), cert.pem()).unwrap();
        fs::write(file(&format!("{name}.key")), key.serialize_pem()).unwrap();
        Fingerprint::of(cert.der()).to_string()
    };
    let (fingerprint, other) = (own("localhost"), own("elsewhere.example"));
    let top = |url: &str, more: &[&str]| {
        let top = ["top", "--once", "--interval", "500ms", "--url", url];
        command(&[&top, more].concat(), None)
    };
    let serve = |name| {
        pki.serve(&format!(
            "tls_server_config: {{cert_file: {name}.crt, key_file: {name}.key}}\n"
        ))
    };
    let (a, _server) = serve("localhost");
    let url = format!("https://localhost:{}", a.port());
    let named = file("localhost.crt");
    for good in [["--ca-file", &named], ["--fingerprint", &fingerprint]] {
        assert_eq!(top(&url, &good), (Some(0), String::new()), "{good:?}");
    }
    // Either flag implies TLS.
    let short = format!("localhost:{}", a.port());
    assert_eq!(
        top(&short, &["--fingerprint", &fingerprint]),
        (Some(0), String::new())
    );
    let refused = |url: &str, flags: &[&str], why: &str| {
        let (code, said) = top(url, flags);
        assert!(code == Some(1) && said.contains(why), "{flags:?}: {said}");
    };
    let trust = format!("trust it alone with --fingerprint {fingerprint}");
    refused(&url, &["--ca-file", &file("elsewhere.example.crt")], &trust);
    refused(&url, &["--ca-file", &file("ca.crt")], &trust);
    let changed = format!("another fingerprint, {fingerprint}");
    refused(&url, &["--fingerprint", &other], &changed);
    // Authority of a file: its certificate must have the name of the host. A fingerprint holds for any name.
    let (a, _server) = serve("elsewhere.example");
    let url = format!("https://localhost:{}", a.port());
    refused(
        &url,
        &["--ca-file", &file("elsewhere.example.crt")],
        "not valid for name",
    );
    assert_eq!(
        top(&url, &["--fingerprint", &other]),
        (Some(0), String::new())
    );
}

#[test]
fn a_url_without_a_scheme_is_completed_unless_a_password_would_go_with_it() {
    let (a, _server) = serve_as(WebConfig::default(), || Ok(Box::new(Fake::new())));
    let short = a.to_string();
    let (code, said) = command(
        &["top", "--once", "--interval", "500ms", "--url", &short],
        None,
    );
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for asked in [
        &["top", "--once", "--url", "nfs1"][..],
        &["path", "nfs1", "--url", "http://127.0.0.1:1"],
    ] {
        let (code, said) = command(&[asked, &["--user", "alice"]].concat(), Some("secret"));
        assert!(
            code == Some(1)
                && said.contains("say how the password is sent: https://nfs1 encrypts it"),
            "{said}"
        );
    }
}

#[test]
fn unreadable_settings_are_left_out_with_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("nfscope");
    fs::create_dir(&dir).unwrap();
    fs::write(
        dir.join("client.toml"),
        "[agent]\nurl = \"http://nfs1:9943\"\n",
    )
    .unwrap();
    let run = || {
        let mut top = std::process::Command::new(env!("CARGO_BIN_EXE_nfscope"));
        top.args(["check", "--url", "http://127.0.0.1:1"]);
        top.env("XDG_CONFIG_HOME", home.path());
        top
    };
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o000)).unwrap();
    let mut top = run();
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        top.uid(65534);
    }
    let said = top.output().unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("client.toml are left out: Permission denied"),
        "{said}"
    );
    assert!(said.contains("no agent at http://127.0.0.1:1"), "{said}");
}
