#!/usr/bin/python3
"""Follows the pages for users on a host that has nfscope installed, and stops at the first command that does not do as written:
docs.py [FOLDER]

FOLDER has README.md and the pages (default: /usr/share/doc/nfscope). Commands are those of code blocks, and of pages whose steps are
sentences those between backquotes. Where no agent answers, `nfscope demo` takes its place: then commands that need a server's
kernel are left out. Durations are shortened. Commands of other programs are left out and counted, and so are those that name other
hosts, or recordings that no earlier command of the page made. The host must be a clean one: recordings are removed.
"""

import glob
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

folder = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/doc/nfscope"
PAGES = ["README.md", "start.md", "doctor.md", "page.md", "breakdown.md", "what-if.md", "baselines.md"]
AGENT = "http://127.0.0.1:9943"
# Hosts, networks and files that a page invents.
ELSEWHERE = re.compile(r"nfs\d|prometheus:|ca\.crt|--url|--by disks|nfscope experiment (record|analyse)")
# Commands that need the kernel of an NFS server, or its own history.
OF_A_SERVER = re.compile(r"nfscope (agent|stuck|attach|detach|slow)\b|--at |--file |--paths|by file")
# Commands that run until they are stopped.
ENDLESS = re.compile(r"nfscope (top|slow|agent|demo)\b|baseline open")
# Codes other than 0 that a command's page explains.
CODES = {"check": {1, 3}, "doctor": {1, 3}, "stuck": {2}, "baseline compare": {3, 5}, "baseline changes": {3}}
SECONDS = 240
STORE = "/var/lib/nfscope/baselines.db"


def commands(page):
    """Commands of a page in its order, with the number of their line."""
    language, continued = None, None
    with open(f"{folder}/{page}", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            language = None if language is not None else line.strip()[3:]
            continued = None
            continue
        if language in ("sh", "console"):
            if continued:
                line, continued = continued + " " + line.strip(), None
            elif language == "console" and not re.match(r"[$#] ", line):
                continue
            text = re.sub(r"^[$#] ", "", line).split(" #")[0].strip()
            if text.endswith("\\"):
                continued = text[:-1].strip()
            elif text:
                yield number, text
        elif language is None and page == "start.md":
            for text in re.findall(r"`(nfscope [^`]*)`", line):
                yield number, text


def shortened(command):
    command = re.sub(r"^sudo ", "", command)
    command = re.sub(r"^cargo run --release -p nfscope -- ", "nfscope ", command)
    # Three seconds have three windows; a comparison of so little says that it is too little, which is an answer.
    command = re.sub(r"--duration \S+", "--duration 4s", command)
    command = re.sub(r"--every \S+", "--every 0s", command)
    if re.search(r"nfscope baseline record\b", command):
        command = re.sub(r" --until-ci \S+", "", re.sub(r" --metric \S+", "", command))
        if "--duration" not in command:
            command += " --duration 4s"
    if re.search(r"nfscope (what-if|diagnose)( --|$)", command) and "--duration" not in command:
        command += " --duration 5s"
    return command


def recordings(command):
    """Names of recordings that a command reads, those that it makes, and those that it removes."""
    words = shlex.split(command)[1:]
    verb = " ".join(words[:2]) if words[0] == "baseline" else words[0]
    if verb not in ("baseline record", "baseline open", "baseline compare", "baseline changes", "baseline show", "baseline export",
                    "baseline rm", "capacity", "what-if"):
        return set(), set(), set()
    names, takes_value = [], False
    for word in words[2 if words[0] == "baseline" else 1:]:
        if not takes_value and not word.startswith("--"):
            names += word.split(",")
        takes_value = word.startswith("--") and word not in ("--json",)
    if verb == "baseline record":
        repeat = re.search(r"--repeat (\d+)", command)
        return set(), {f"{names[0]}-{n + 1}" for n in range(int(repeat[1]))} if repeat else {names[0]}, set()
    if verb == "baseline export":
        names = names[:1]
    return set(names), set(), set(names) if verb == "baseline rm" else set()


def answers(path="/-/ready"):
    try:
        with urllib.request.urlopen(AGENT + path, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def run(command):
    """Code, output and errors. A command that never ends is stopped when it has printed something, and has no code."""
    endless = ENDLESS.search(command)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(shlex.split(command), stdout=out, stderr=errors, stdin=subprocess.DEVNULL) as process:
            began = time.monotonic()
            while process.poll() is None and time.monotonic() - began < SECONDS:
                if endless and os.fstat(out.fileno()).st_size + os.fstat(errors.fileno()).st_size > 0:
                    break
                time.sleep(0.1)
            ends = process.poll() is not None
            if not ends:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    endless = None
            code = process.wait()
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read())
    return (code if ends else None if endless else "stopped"), *texts


def forget():
    """Removes all recordings."""
    for file in glob.glob(f"{STORE}*"):
        os.remove(file)


def main():
    demo = None
    if os.path.exists(STORE):
        sys.exit(f"docs: {STORE} is there: this host is no clean one, and its recordings would be removed")
    if not answers():
        demo = subprocess.Popen(["nfscope", "demo"], stdout=subprocess.DEVNULL)
    done, left_out = 0, []
    try:
        began = time.monotonic()
        while demo and not answers():
            if demo.poll() is not None or time.monotonic() - began > SECONDS:
                print(f"docs: nfscope demo does not answer (exit code {demo.poll()})")
                return 1
            time.sleep(0.2)
        for page in PAGES:
            made = set()
            forget()
            os.chdir(tempfile.mkdtemp(prefix="docs-"))
            for number, written in commands(page):
                command = shortened(written)
                where = f"{page}:{number}: {written}"
                if not command.startswith("nfscope ") or ELSEWHERE.search(command) or (demo and OF_A_SERVER.search(command)):
                    left_out.append(where)
                    continue
                reads, makes, removes = recordings(command)
                if not reads <= made:
                    left_out.append(where)
                    continue
                code, out, errors = run(command)
                kind = next((k for k in CODES if command.startswith(f"nfscope {k}")), None)
                fine = code in ({0, None} | CODES.get(kind, set())) and "error:" not in errors and (out or errors or makes)
                print(f"docs: {where} ... {'ok' if fine else f'FAILED (exit code {code})'}", flush=True)
                if not fine:
                    print(f"ran: {command}\n{out[-3000:]}\n{errors[-3000:]}")
                    return 1
                made = made - removes | makes
                done += 1
    finally:
        forget()
        if demo:
            demo.send_signal(signal.SIGTERM)
            demo.wait()
    print("docs: left out, because they are of other hosts, other programs or a server's kernel:")
    for where in left_out:
        print(f"  {where}")
    print(f"docs: {done} commands do as written, {len(left_out)} left out")
    return 0 if done > 15 else 1


if __name__ == "__main__":
    sys.exit(main())
