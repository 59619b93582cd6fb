"""What several checks share: the files of the tree and a look at C text without comments."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files(folders, suffixes):
    """Sorted paths below the folders, relative to the root."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            # Fixtures are what users paste, not code of ours.
            inside = path.relative_to(ROOT).parts[:3]
            if inside[:2] == ("tests", "rules") or inside == ("tests", "fuzz", "corpus"):
                continue
            if path.is_file() and path.suffix in suffixes:
                found.append(path.relative_to(ROOT))
    return found


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def without_comments(source):
    """Comments become spaces; line numbers and strings stay."""
    def blank(match):
        token = match.group(0)
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token
    return _TOKENS.sub(blank, source)


def without_comments_and_strings(source):
    def blank(match):
        token = match.group(0)
        if token.startswith("/"):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]
    return _TOKENS.sub(blank, source)


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1
