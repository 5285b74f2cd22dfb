//! Programs that a shell command surely starts, found without running it.

use std::iter::Peekable;
use std::str::Chars;

/// Words after which a command begins.
const BEFORE: [&str; 11] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec",
];
/// Reserved words of the shell that end a construct; they are no programs.
const WORDS: [&str; 4] = ["fi", "done", "esac", "}"];
/// Words that end the search. After them, words are no commands, or names may have another meaning.
const BEYOND: [&str; 6] = ["case", "function", "alias", "eval", ".", "source"];

/// Programs of a shell command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    /// Names in the order in which they appear, with repetitions.
    pub all: Vec<String>,
    /// True if the command fails when the first program is missing: it is the first word, and no `||` follows.
    pub first_counts: bool,
}

/// Finds the programs at the beginning of simple commands. The search ends at a construct that it does not parse: a here-document, `case`,
/// a function, a backquote, a quoted substitution, or a change of PATH.
pub(super) fn programs(text: &str) -> Programs {
    let mut reader = Reader {
        chars: text.chars().peekable(),
        all: Vec::new(),
        first: None,
        words: 0,
        begins: true,
    };
    reader.read();
    Programs {
        first_counts: reader.first == Some(true) && !text.contains("||"),
        all: reader.all,
    }
}

/// Word of a command.
#[derive(Default)]
struct Word {
    text: String,
    /// True if the word has no quotes and no substitutions.
    is_plain: bool,
    is_there: bool,
    /// True if the word contains `$(`, where a command begins.
    enters: bool,
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    all: Vec<String>,
    /// True if the first program is the first word after assignments; `None` before the first program.
    first: Option<bool>,
    /// Number of words in command position so far: names of programs, and reserved words.
    words: usize,
    /// True if a command may begin here.
    begins: bool,
}

impl Reader<'_> {
    /// Reads to the end, or to a construct that is not parsed.
    fn read(&mut self) {
        while self.step().is_some() {}
    }

    /// Reads a word and the character after it; `None` at the end, or at a construct that is not parsed.
    fn step(&mut self) -> Option<()> {
        let word = self.word()?;
        if word.enters {
            self.words += 1;
            self.begins = true;
            return (!word.text.starts_with("PATH=")).then_some(());
        }
        let next = self.chars.peek().copied();
        if next == Some('(') && word.is_there {
            return None;
        }
        let is_number = !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit());
        let redirected = is_number && matches!(next, Some('<' | '>'));
        if !redirected {
            self.take(&word)?;
        }
        let c = self.chars.next()?;
        match c {
            '\n' | ';' | '|' | '&' => self.begins = true,
            '(' if !self.begins => {
                // `name()` defines a function. Its body runs later, if at all.
                self.all.pop();
                self.first = Some(false);
                return None;
            }
            '(' if self.chars.peek() == Some(&'(') => return None,
            '(' => self.begins = true,
            ')' => self.begins = false,
            '<' | '>' => {
                let mut operator = String::from(c);
                while let Some(c) = self.chars.next_if(|c| matches!(c, '<' | '>' | '&' | '|')) {
                    operator.push(c);
                }
                if operator.starts_with("<<") || self.chars.peek() == Some(&'(') {
                    return None;
                }
                while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                self.word()?;
            }
            _ => {}
        }
        Some(())
    }

    /// Characters up to a blank, a separator or a redirection, which are not consumed.
    fn word(&mut self) -> Option<Word> {
        let mut word = Word {
            is_plain: true,
            ..Word::default()
        };
        while let Some(c) = self.chars.peek().copied() {
            if matches!(
                c,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
            ) {
                break;
            }
            if c == '#' && !word.is_there {
                while self.chars.next_if(|c| *c != '\n').is_some() {}
                break;
            }
            self.chars.next();
            match c {
                '\\' if self.chars.next_if_eq(&'\n').is_some() => continue,
                '\\' => {
                    self.chars.next();
                    word.is_plain = false;
                }
                '\'' => {
                    while self.chars.next()? != '\'' {}
                    word.is_plain = false;
                }
                '"' => {
                    self.quoted()?;
                    word.is_plain = false;
                }
                '`' => return None,
                '$' => {
                    word.is_plain = false;
                    word.enters = self.substitution()?;
                    if word.enters {
                        break;
                    }
                }
                _ => word.text.push(c),
            }
            word.is_there = true;
        }
        Some(word)
    }

    /// Skips text in double quotes; `None` if it has a command substitution.
    fn quoted(&mut self) -> Option<()> {
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '\\' => drop(self.chars.next()?),
                '`' => return None,
                '$' if self.chars.peek() == Some(&'(') => return None,
                _ => {}
            }
        }
    }

    /// Skips a substitution after `$`. Returns true if it is `$(`, where a command begins.
    fn substitution(&mut self) -> Option<bool> {
        match self.chars.peek() {
            Some('{') => {
                while self.chars.next()? != '}' {}
                Some(false)
            }
            Some('(') => {
                self.chars.next();
                if self.chars.peek() != Some(&'(') {
                    return Some(true);
                }
                let mut depth = 1;
                while depth > 0 {
                    match self.chars.next()? {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                }
                Some(false)
            }
            _ => Some(false),
        }
    }

    /// Records a word as a program if a command may begin here.
    fn take(&mut self, word: &Word) -> Option<()> {
        if !word.is_there || !self.begins {
            return Some(());
        }
        let text = word.text.as_str();
        if word.is_plain && BEYOND.contains(&text) {
            return None;
        }
        if let Some((name, _)) = text.split_once('=')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            return (name != "PATH").then_some(());
        }
        let of_shell = word.is_plain && (BEFORE.contains(&text) || WORDS.contains(&text));
        self.words += 1;
        if of_shell {
            self.begins = BEFORE.contains(&text);
            return Some(());
        }
        self.begins = false;
        // Relative paths are left out: `cd` may have changed the directory before.
        let is_sure = word.is_plain
            && text != "for"
            && !text.starts_with('-')
            && !text.contains(['*', '?', '[', '~', '{', '}'])
            && (!text.contains('/') || text.starts_with('/'));
        if self.first.is_none() {
            self.first = Some(is_sure && self.words == 1);
        }
        if is_sure {
            self.all.push(text.to_owned());
        }
        match text {
            // The rest of the text may have another search path.
            "export" => None,
            _ => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_stand_where_commands_begin() {
        for (text, expected) in [
            ("echo 8 >/proc/fs/nfsd/threads", &["echo"][..]),
            (
                "modprobe a; nsenter -t 1 -n sh -c 'exportfs -f'",
                &["modprobe", "nsenter"],
            ),
            (
                "if test a = b; then zpool status | grep -q x || zpool add y; elif ! true; then zfs z; fi",
                &["test", "zpool", "grep", "zpool", "true", "zfs"],
            ),
            (
                "test a = $(if zpool x; then echo y; else printf z; fi)",
                &["test", "zpool", "echo", "printf"],
            ),
            ("LANG=C fio --name=w # and more", &["fio"]),
            ("for d in a b; do rm $d; done", &["rm"]),
            ("\"$HOME/bin/load\" run && $X y", &[]),
            ("! { grep a & }", &["grep"]),
            // Redirections.
            ("fio a 2>&1", &["fio"]),
            ("echo no >&2; ls", &["echo", "ls"]),
            ("2>&1 fio a 3</dev/null | awk b", &["fio", "awk"]),
            ("exec 3</dev/null; ls", &["ls"]),
            ("fio a >|out b &>c; ls", &["fio", "ls"]),
            ("{ fio; } >out 2>&1", &["fio"]),
            // Arithmetic is no command.
            ("sleep $((60 * 4)); ls", &["sleep", "ls"]),
            ("sleep $(( (1 + 2) * 4 )) && ls", &["sleep", "ls"]),
            ("n=$((60 * 4)); ls", &["ls"]),
            ("sleep ${TIME:-5 s} | cat", &["sleep", "cat"]),
            ("kill $(cat pid) ls", &["kill", "cat"]),
            // Options of reserved words.
            ("time -p ls", &[]),
            ("time ls", &["ls"]),
            // Constructs that end the search.
            ("case x in 4k) a;; esac", &[]),
            ("echo a; case x in (b) c;; esac; d", &["echo"]),
            ("cat <<END\nno-program of mine\nEND\n", &["cat"]),
            ("load() { sleep 1; }; load", &[]),
            ("ls; load () { sleep 1; }; load", &["ls"]),
            ("function load { sleep 1; }\nload", &[]),
            ("echo \"$(grep \"a b\" c)\" d", &["echo"]),
            ("echo `a` b; c", &["echo"]),
            ("PATH=/opt/x/bin:$PATH load", &[]),
            ("export PATH=/opt/x/bin; load", &["export"]),
            (". ./settings; load", &[]),
            ("cd /srv && ./load", &["cd"]),
            // Continued lines, quotes and comments.
            (
                "fio --name=w \\\n  --size=1m | awk -F';' '{print $1; x}'",
                &["fio", "awk"],
            ),
            ("fio a\\ b; ls", &["fio", "ls"]),
            ("echo \"a \\\" ; b\"; ls", &["echo", "ls"]),
            ("ls # no; such\ncat", &["ls", "cat"]),
            ("(cd a; ls)", &["cd", "ls"]),
        ] {
            assert_eq!(programs(text).all, expected, "{text}");
        }
    }

    #[test]
    fn the_first_word_is_what_a_command_needs() {
        for (text, counts) in [
            ("fio --name=w", true),
            ("A=1 fio 2>&1", true),
            ("fio a | awk b", true),
            ("if fio; then ls; fi", false),
            ("fio || true", false),
            ("! fio", false),
            ("$X; fio", false),
            ("A=$(fio) ls", false),
            ("", false),
        ] {
            assert_eq!(programs(text).first_counts, counts, "{text}");
        }
    }
}
