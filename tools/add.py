"""Writes the skeleton of a new thing: add.py KIND NAME. It builds and fails the tests that ask for
what is still to be written; nothing that exists is touched but the lists in meson.build."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

COMMAND = '''/* trivet @NAME@: what it answers, and what it does not. */
#include "command.h"

#include <stddef.h>

typedef struct @ID@_options {
    bool all;
} @ID@_options;

static const tv_option rows[] = {
    {
        .name = "all",
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(@ID@_options, all),
        .help = N_("one phrase, no full stop"),
    },
};

static const tv_option_group groups[] = {
    {N_("Options"), rows, sizeof rows / sizeof *rows, 0},
};

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    const @ID@_options *o = options;
    (void)args;
    return TV_FAIL(r->a, TV_UNSUPPORTED, "@NAME@.not-written", N_("{command} is not written"),
                   tv_arg_str("command", o->all ? TV_S("@NAME@ --all") : TV_S("@NAME@")));
}

extern const tv_command tv_command_@ID@;
const tv_command tv_command_@ID@ = {
    .name = "@NAME@",
    .summary = N_("one phrase, no full stop"),
    .usage = "",
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(@ID@_options),
    .run = run,
};
'''

FAMILY = '''/* The @NAME@ family: what it reads and what it does not model. */
#include "family.h"

#include "desc/emit.h"

static unsigned claims(const tv_source *s)
{
    static const char *const types[] = {"@NAME@", NULL};
    return tv_family_in(tv_family_type(s), types) ? 90 : 0;
}

static const tv_err *make(tv_arena *a, const tv_source *s, tv_model *m)
{
    (void)s;
    (void)m;
    return TV_FAIL0(a, TV_UNSUPPORTED, "family.not-written",
                    N_("this family is not written"));
}

extern const tv_family tv_family_@ID@;
const tv_family tv_family_@ID@ = {
    .name = "@NAME@",
    .summary = N_("one phrase, no full stop"),
    .claims = claims,
    .make = make,
};
'''

FORMAT = '''/* The @NAME@ format: what is read of it, and where its description is. */
#include "gather.h"
#include "reader.h"

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_str_ends(name, TV_S(".@NAME@"));
}

static const tv_err *read_format(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_in_file(TV_FAIL0(g->a, TV_UNSUPPORTED, "@NAME@.not-written",
                               N_("this format is not written")),
                      path);
}

extern const tv_format tv_format_@ID@;
const tv_format tv_format_@ID@ = {
    .name = "@NAME@",
    .summary = N_("one phrase, no full stop"),
    .probe = probe,
    .read = read_format,
};
'''

TEST = '''/* What is promised of @NAME@. */
#include "testing.h"

static void it_holds(void **state)
{
    (void)state;
    fail_msg("@NAME@ has no test yet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
'''

FUZZ = '''/* @NAME@: any bytes end in a result or an error. */
#include "fuzzing.h"

static void check(tv_arena *a, tv_str text)
{
    (void)a;
    (void)text; /* hand it to the parser and give its error to fuzz_check */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        check(a, (tv_str){(const char *)data, size});
    }
    tv_arena_close(a);
    return 0;
}
'''

DOC = '''# trivet @NAME@

The question it answers, in a sentence; then a command line that is run by the tests.

```
$ trivet @NAME@ --help
```
'''

# kind: ([(path, text)], (build file, list))
KINDS = {
    "command": ([("src/command/@ID@_cmd.c", COMMAND), ("docs/commands/@NAME@.md", DOC),
                 ("tests/cli/@NAME@-help/cmd", "@NAME@ --help\n")],
                ("src/meson.build", "commands")),
    "family": ([("src/family/@ID@.c", FAMILY), ("tests/models/@NAME@/README.md",
                                                "What these configurations are and what is "
                                                "asked of them.\n")],
               ("src/meson.build", "families")),
    "format": ([("src/read/@ID@.c", FORMAT), ("tests/fuzz/@ID@_fuzz.c", FUZZ),
                ("tests/fuzz/corpus/@ID@/empty", "")],
               ("src/meson.build", "formats")),
    "test": ([("tests/unit/@ID@_test.c", TEST)], ("tests/unit/meson.build", "units")),
    "fuzz": ([("tests/fuzz/@ID@_fuzz.c", FUZZ), ("tests/fuzz/corpus/@ID@/empty", "")],
             ("tests/fuzz/meson.build", "targets")),
}


def add_word(build, name, word):
    """Adds 'word' at the end of a list of a build file."""
    path = ROOT / build
    text = path.read_text(encoding="utf-8")
    match = re.search(rf"^{name} = \[(.*?)(,?\s*)\]", text, re.M | re.S)
    if not match:
        sys.exit(f"{build} has no list {name}")
    lines = "\n" in match.group(2)
    comma = ("," if match.group(1).strip() else "") + ("\n  " if lines else " ")
    comma = comma.lstrip() if not match.group(1).strip() else comma
    end = match.end(1)
    tail = match.group(2) if lines else ""
    path.write_text(text[:end] + f"{comma}'{word}'" + tail + text[match.end(2):],
                    encoding="utf-8")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(f"./dev add KIND NAME; a KIND is one of: {', '.join(KINDS)}")
    kind, name = sys.argv[1:]
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        sys.exit("a NAME is lower case letters, digits and single dashes or underscores")
    ident = name.replace("-", "_")
    files, (build, words) = KINDS[kind]
    paths = [(ROOT / p.replace("@NAME@", name).replace("@ID@", ident), text) for p, text in files]
    for path, _ in paths:
        if path.exists():
            sys.exit(f"{path.relative_to(ROOT)} exists")
    for path, text in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@NAME@", name).replace("@ID@", ident), encoding="utf-8")
        if path.suffix == ".c":
            subprocess.run(["clang-format-14", "-i", str(path)], check=True)
        print(path.relative_to(ROOT))
    add_word(build, words, ident)
    print(f"{build}: {words}")


main()
