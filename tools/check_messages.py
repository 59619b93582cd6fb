"""Holds the translations complete: every English text of the sources stands in po/zh_CN.po with
the same {arguments}, and nothing stands there that the sources do not say.

check_messages.py [--new] [--tolerate]
--new prints entries for what is missing, ready to translate; with --tolerate what is missing or
stale is only counted."""
import re
import sys

from sources import files, line_of, text, without_comments

PO = "po/zh_CN.po"
LITERAL = r'"(?:\\.|[^"\\\n])*"'
MARKED = re.compile(r"\bN_\(\s*((?:" + LITERAL + r"\s*)+)\)")
# Macros whose msgid stands at a known place among the arguments.
MSGID_AT = {"TV_TEXT": 2, "TV_TEXT0": 1, "TV_FAIL": 3, "TV_FAIL0": 3}
CALL = re.compile(r"\b(TV_TEXT0|TV_TEXT|TV_FAIL0|TV_FAIL)\(")
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r"}
ARGUMENT = re.compile(r"\{[a-z_0-9]+\}")


def joined(literals):
    out = []
    for literal in re.findall(LITERAL, literals):
        out.append(re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), literal[1:-1]))
    return "".join(out)


def argument(source, start, index):
    """The index-th argument of a call whose parenthesis opens before start."""
    depth, at, begin = 0, 0, start
    i = start
    while i < len(source):
        c = source[i]
        if c == '"':
            i = re.compile(LITERAL).match(source, i).end()
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return source[begin:i].strip() if at == index else ""
            depth -= 1
        elif c == "," and depth == 0:
            if at == index:
                return source[begin:i].strip()
            at, begin = at + 1, i + 1
        i += 1
    return ""


def sources_say():
    """{msgid: first place}, and the calls whose msgid is a bare literal."""
    said, bare = {}, []
    for path in files(["src", "cli"], {".c", ".h"}):
        source = without_comments(text(path))
        for match in MARKED.finditer(source):
            said.setdefault(joined(match.group(1)), f"{path}:{line_of(source, match.start())}")
        for match in CALL.finditer(source):
            given = argument(source, match.end(), MSGID_AT[match.group(1)])
            # A pattern of placeholders alone is the same in every language.
            if given.startswith('"') and re.search("[a-z]{3}", ARGUMENT.sub("", given), re.I):
                bare.append(f"{path}:{line_of(source, match.start())}: {match.group(1)}: "
                            'the English text is written N_("...")')
    return said, bare


def read_po():
    entries, key, value, into = {}, "", "", None
    for line in text(PO).splitlines() + ["msgid \"\""]:
        if line.startswith("msgid "):
            if into == "str":
                entries[key] = value
            key, value, into = joined(line[6:]), "", "id"
        elif line.startswith("msgstr "):
            value, into = joined(line[7:]), "str"
        elif line.startswith('"'):
            if into == "id":
                key += joined(line)
            else:
                value += joined(line)
    entries.pop("", None)
    return entries


def quoted(s):
    for plain, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        s = s.replace(plain, escape)
    return f'"{s}"'


def main():
    said, wrong = sources_say()
    entries = read_po()
    missing = [(place, msgid) for msgid, place in said.items() if not entries.get(msgid)]
    if "--new" in sys.argv:
        for place, msgid in missing:
            print(f"#: {place}\nmsgid {quoted(msgid)}\nmsgstr \"\"\n")
        return
    if "--tolerate" in sys.argv:
        print(f"{len(missing)} texts are not translated yet")
        missing = []
    wrong += [f"{place}: not translated: {quoted(msgid)}" for place, msgid in missing]
    stale = [msgid for msgid in entries if msgid not in said]
    if "--tolerate" in sys.argv:
        print(f"{len(stale)} translations are of texts that nobody says any more")
        for msgid in stale:
            del entries[msgid]
    for msgid, translation in entries.items():
        if msgid not in said:
            wrong.append(f"{PO}: nobody says {quoted(msgid)}")
        elif sorted(ARGUMENT.findall(msgid)) != sorted(ARGUMENT.findall(translation)):
            wrong.append(f"{PO}: other arguments in the translation of {quoted(msgid)}")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
