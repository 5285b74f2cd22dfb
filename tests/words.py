#!/usr/bin/env python3
"""Checks the words of added lines: private words, comments without a noun, names without a subject, and subjects of commits.

docs/develop/words.md has the rules, and the table of words that this program reads. Lines count that were added since that page
exists, or since --base. Exit status 1 where a line breaks a rule; each is printed with its file and line.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/develop/words.md"
# First words of a comment that hide its noun.
FIRST = re.compile(
    r"(What|Who|Whom|Whose|Whether|Of|Those|One|The same)\b|As\b(?! (?:soon|long|far|if|of)\b)|So\b(?! (?:far|long)\b)"
)
PRONOUN = re.compile(r"(It|This|That|These|They) (is|are|was|were|has|have|had|does|do|may|can|will|must|would)\b")
COMMENT = {
    ".rs": re.compile(r"^\s*//[/!]?\s+(.*)"),
    ".c": re.compile(r"^\s*(?://|/\*|\*)\s+(.*)"),
    ".h": re.compile(r"^\s*(?://|/\*|\*)\s+(.*)"),
    ".js": re.compile(r"^\s*(?://|/\*|\*)\s+(.*)"),
    ".py": re.compile(r"^\s*#\s+(.*)"),
    ".sh": re.compile(r"^\s*#\s+(.*)"),
}
NAME = re.compile(r"\bpub fn (of|all|told|tell|ask|take)\s*[(<]")
LONGEST_SUBJECT = 72
# Generated files, and the page that lists the words.
LEFT_OUT = re.compile(r"^(tests/windows/|dashboards/grafana/|docs/commands\.md|docs/metrics\.md|" + re.escape(PAGE) + r"|.*/golden/)")


def git(*arguments):
    # Prefixes of paths in a diff: `added` needs a/ and b/, whatever the user's configuration says.
    prefixes = ["-c", "diff.mnemonicPrefix=false", "-c", "diff.noprefix=false"]
    return subprocess.run(["git", "-C", ROOT, *prefixes, *arguments], capture_output=True, text=True, check=False)


def words():
    """Words that are not written, each with those to write, of the first table of the page."""
    found = {}
    for line in (ROOT / PAGE).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("These words"):
            break
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("do not write", "---"):
            for word in cells[0].split(", "):
                found[word] = cells[1]
    return found


def added(diff):
    """File, line number, text and the line before it, of each added line of a unified diff. The line before is an added or an unchanged
    one, and None where the diff does not show it."""
    file, number, before = None, 0, (None, 0, "")
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line[6:] if line[4:6] == "b/" else None
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line).group(1)) - 1
        elif line.startswith("+") and file:
            number += 1
            last = before[2] if before[:2] == (file, number - 1) else None
            yield file, number, line[1:], last
            before = (file, number, line[1:])
        elif not line.startswith(("-", "\\")):
            number += 1
            before = (file, number, line[1:])


def goes_on(suffix, line):
    """True for a line of a comment with text that the next line can continue."""
    comment = COMMENT[suffix].match(line)
    return bool(comment) and not comment.group(1).startswith("# ")


def problems(diff):
    """A sentence for each rule that an added line breaks."""
    private = {word: (re.compile(rf"\b{re.escape(word)}\b", re.I), instead) for word, instead in words().items()}
    for file, number, text, last in added(diff):
        suffix = pathlib.PurePath(file).suffix
        if LEFT_OUT.match(file) or suffix not in COMMENT and suffix != ".md":
            continue
        comment = COMMENT[suffix].match(text) if suffix in COMMENT else None
        prose = text if suffix == ".md" else comment.group(1) if comment else ""
        for word, (pattern, instead) in private.items():
            if pattern.search(prose):
                yield f'{file}:{number}: "{word}": write {instead}'
        # A line after another one of a comment goes on with its sentence, but after a heading or an empty line.
        begins = comment and (number == 1 or last is not None and not goes_on(suffix, last))
        if begins and (FIRST.match(prose) or PRONOUN.match(prose)):
            yield f'{file}:{number}: a comment that begins with "{prose.split()[0]}": begin with the noun'
        if suffix == ".rs" and (name := NAME.search(text)):
            yield f"{file}:{number}: a public function named {name.group(1)} alone: name the thing that it gives"


def subjects(base):
    """A sentence for each commit since `base` whose message breaks the rules."""
    for entry in git("log", "--no-merges", "--format=%h%x1f%s%x1f%b%x1e", f"{base}..HEAD").stdout.split("\x1e"):
        commit, _, rest = entry.strip().partition("\x1f")
        subject, _, body = rest.partition("\x1f")
        if len(subject) > LONGEST_SUBJECT:
            yield f"commit {commit}: a subject of {len(subject)} characters: at most {LONGEST_SUBJECT}"
        if commit and not body.strip():
            yield f"commit {commit}: a message without a body: say why"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="commit since which lines count [default: the one that brought the page of words]")
    parser.add_argument("--diff", metavar="FILE", help="a unified diff in place of the repository's own; - is standard input")
    arguments = parser.parse_args()
    if arguments.diff:
        diff = sys.stdin.read() if arguments.diff == "-" else pathlib.Path(arguments.diff).read_text()
        wrong = list(problems(diff))
    else:
        base = arguments.base or git("log", "--diff-filter=A", "--format=%H", "--", PAGE).stdout.strip() or "HEAD"
        diff = git("diff", "--no-ext-diff", "--no-color", "--unified=1", base)
        if diff.returncode:
            sys.exit(f"git diff {base}: {diff.stderr.strip()}")
        wrong = [*problems(diff.stdout), *subjects(base)]
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
