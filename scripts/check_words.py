#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_words.py [--count] [PATH...]: rejects the words of a private dialect in comments, documents and messages.

Plain technical English is a rule (CONTRIBUTING.md): a process exits, a value is reported or
unknown, a caller is "the caller". A script cannot judge a sentence, but it can find the words that such
sentences are made of. Checked are comments and string literals of C, comments, docstrings and messages of
Python and shell, and the text of documents outside of code blocks. --count prints a number per folder.

A line that needs such a word, because it quotes one, carries the mark `words-ok` in a comment.
"""
import io
import os
import re
import subprocess
import sys
import tokenize

# word or phrase: what to write instead
WORDS = {
    r"he|him|his|himself|she|her": "name the thing: the caller, the process, the reader",
    r"who|whom|whose|whoever|whosever": "which, that, of the process; outgoing and incoming thread",
    r"nobody|somebody|anybody|everybody": "no caller, another program, any process",
    r"tell|tells|told|telling|untold|foretold": "report, emit, deliver, show; unknown",
    r"beside|aside": "next to, in addition to, polled gauges",
    r"mend|mends|mended|mending": "fix, repair",
    r"asked|asks for|ask for|asking for": "requested, selected, configured",
    r"in force": "effective",
    r"(?:can|could|to|cannot) be had": "available",
    r"shut": "excluded, closed",
    r"by and by|wherefore|whereupon|thereby|therein": "plain English",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({words})" for words in WORDS) + r")\b", re.I)
ADVICE = list(WORDS.values())
OK_MARK = "words-ok"
C_PIECE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
SKIPPED = re.compile(r"^tests/(fuzz/(corpus|seeds)|golden/[a-z]+)/|^python/etwatch/_abi\.py$|^scripts/check_words\.py$|\.(svg|ipynb|png|abi)$|^LICENSE$"
                     r"|^CHANGELOG\.md$")


def blank(text):
    """The same number of lines without anything on them."""
    return "\n" * text.count("\n")


def prose_of_c(text):
    """Comments and string literals, at their lines; includes and code are blanked."""
    out, at = [], 0
    for match in C_PIECE.finditer(text):
        out.append(blank(text[at:match.start()]))
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        piece = match.group()
        out.append(blank(piece) if line.startswith("#include") or piece[0] == "'" else piece + " ")
        at = match.end()
    return "".join(out)


TEXT_TOKENS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # the last since 3.12


def prose_of_python(text):
    lines = [""] * (text.count("\n") + 2)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in TEXT_TOKENS:
                for i, part in enumerate(token.string.split("\n")):
                    lines[token.start[0] - 1 + i] += " " + part
    except (tokenize.TokenError, IndentationError):
        return text
    return "\n".join(lines)


def prose_of_shell(text):
    return "\n".join(line if re.match(r"\s*(#|say|die)", line) or "'" in line or '"' in line else "" for line in text.split("\n"))


def prose_of_document(text):
    text = FENCE.sub(lambda match: blank(match.group()), text)
    return re.sub(r"`[^`\n]*`", "`", text)


def prose(path, text):
    first = text.split("\n", 1)[0]
    if path.endswith((".c", ".h", ".js")):
        return prose_of_c(text)
    if path.endswith(".py") or first.startswith("#!") and "python" in first:
        return prose_of_python(text)
    if path.endswith((".md", ".1")):
        return prose_of_document(text)
    if path.endswith((".sh", "meson.build", ".txt", ".ini", ".toml", ".yml")) or first.startswith("#!"):
        return prose_of_shell(text)
    return ""


def findings(path, text):
    source = text.split("\n")
    for number, line in enumerate(prose(path, text).split("\n"), 1):
        for match in PATTERN.finditer(line):
            whole = source[number - 1] if number <= len(source) else ""
            if OK_MARK not in whole:
                yield number, match.group(), ADVICE[match.lastindex - 1]


def files(root, paths):
    names = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", *paths],
                           check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split("\n")
    if not any(names):  # an archive without git
        names = [os.path.relpath(os.path.join(folder, name), root) for folder, _, found in os.walk(root)
                 for name in found if "/build" not in folder and "/." not in folder]
        names = [name for name in names if not paths or any(name == path or name.startswith(path.rstrip("/") + "/") for path in paths)]
    return sorted(set(name for name in names if name and not SKIPPED.search(name)))


def main(argv):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    count = "--count" in argv
    found, per_folder = 0, {}
    for path in files(root, [word for word in argv[1:] if not word.startswith("--")]):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, word, advice in findings(path, text):
            found += 1
            folder = "/".join(path.split("/")[:2])
            per_folder[folder] = per_folder.get(folder, 0) + 1
            if not count:
                print(f"{path}:{number}: \"{word}\": {advice}")
    if count:
        for folder, number in sorted(per_folder.items(), key=lambda item: -item[1]):
            print(f"{number:6} {folder}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
