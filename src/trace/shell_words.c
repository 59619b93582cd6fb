/* What a shell would take for words, without ever being one. */
#include "shell_words.h"

#include <string.h>

typedef struct word_scan {
    tv_str s;
    size_t i;
    tv_buf b;
    bool some; /* of the word: "" is one too */
} word_scan;

static bool ends_command(char c)
{
    return c == ';' || c == '|' || c == '&' || c == '>' || c == '<';
}

/* From a quote to its end. */
static void quoted(word_scan *w, char quote)
{
    w->some = true;
    for (w->i++; w->i < w->s.n && w->s.p[w->i] != quote; w->i++) {
        char c = w->s.p[w->i];
        if (c == '\\' && quote == '"' && w->i + 1 < w->s.n && strchr("\\\"$`", w->s.p[w->i + 1]))
            c = w->s.p[++w->i];
        tv_putc(&w->b, c);
    }
    w->i += w->i < w->s.n;
}

/* One word at the place; false: the command is over. */
static bool take_word(word_scan *w, tv_arena *a, tv_str *word)
{
    while (w->i < w->s.n && (w->s.p[w->i] == ' ' || w->s.p[w->i] == '\t'))
        w->i++;
    w->b = tv_buf_in(a);
    w->some = false;
    if (w->i < w->s.n && w->s.p[w->i] == '#')
        w->i = w->s.n;
    while (w->i < w->s.n && !strchr(" \t", w->s.p[w->i]) && !ends_command(w->s.p[w->i])) {
        const char c = w->s.p[w->i];
        if (c == '"' || c == '\'') {
            quoted(w, c);
            continue;
        }
        if (c == '\\' && w->i + 1 < w->s.n)
            w->i++;
        w->some = true;
        tv_putc(&w->b, w->s.p[w->i++]);
    }
    *word = tv_buf_str(&w->b);
    return w->some;
}

void tv_shell_words(tv_arena *a, tv_str s, tv_words_of *out, tv_str *rest)
{
    word_scan w = {.s = s};
    out->n = 0;
    tv_str word;
    while (take_word(&w, a, &word))
        if (out->n < TV_SHELL_WORDS)
            out->v[out->n++] = word;
    /* what a file is written to is no command of its own */
    while (w.i < s.n && (s.p[w.i] == '>' || s.p[w.i] == '<' || s.p[w.i] == '&') &&
           !(s.p[w.i] == '&' && w.i + 1 < s.n && s.p[w.i + 1] == '&')) {
        w.i++;
        (void)take_word(&w, a, &word);
    }
    while (w.i < s.n && ends_command(s.p[w.i]))
        w.i++;
    *rest = tv_str_drop(s, w.i);
}

static bool is_alpha(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

/* "user@host:~/dir$ ", "root@a1b2:/workspace# ", "[user@host dir]$ " */
static tv_str past_prompt(tv_str s)
{
    for (size_t i = 0; i + 1 < s.n && i < 120; i++) {
        if (i && (s.p[i] == '$' || s.p[i] == '#') && s.p[i + 1] == ' ' &&
            tv_holds(tv_str_take(s, i), "@"))
            return tv_str_drop(s, i + 2);
        if (s.p[i] == ' ' && s.p[0] != '[' && s.p[0] != '(')
            break;
    }
    return s;
}

tv_str tv_shell_bare(tv_str line)
{
    static const char *const heads[] = {"$ ",   "+ ",   "RUN ",  "run: ", "% ",     "# docker",
                                        "CMD ", "PS> ", "sudo ", "time ", "nohup ", "exec "};
    tv_str s = tv_str_trim(line);
    for (size_t turn = 0; turn < 4; turn++) {
        const size_t before = s.n;
        tv_str rest;
        if (s.n && *s.p == '(' && tv_past(tv_str_take(s, 40), ") ", &rest))
            s = tv_str_span(rest.p, s.p + s.n); /* "(base) " */
        s = tv_str_trim(past_prompt(s));
        for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
            if (tv_str_starts(s, tv_str_of(heads[k])))
                s = tv_str_trim(tv_str_drop(s, heads[k][0] == '#' ? 2 : strlen(heads[k])));
        while (s.n && *s.p == '`')
            s = tv_str_drop(s, 1);
        if (s.n == before)
            break;
    }
    return s;
}

static bool continues(tv_str s)
{
    return s.n && (s.p[s.n - 1] == '\\' || (s.n > 1 && s.p[s.n - 2] == ' ' &&
                                            (s.p[s.n - 1] == '`' || s.p[s.n - 1] == '^')));
}

/* A command of more lines than this is no command. */
enum { MOST_LINES = 100 };

tv_str tv_shell_line(tv_arena *a, const tv_sheet *sheet, size_t i, size_t *last)
{
    tv_str s = tv_shell_bare(sheet->v[i].s);
    *last = i;
    if (!continues(s))
        return s;
    tv_buf b = tv_buf_in(a);
    for (;;) {
        const bool more = continues(s) && *last + 1 < sheet->n && *last - i < MOST_LINES;
        tv_put(&b, more ? tv_str_take(s, s.n - 1) : s);
        if (!more)
            return tv_buf_str(&b);
        tv_putc(&b, ' ');
        s = tv_str_trim(sheet->v[++*last].s);
        if (tv_str_starts(s, TV_S("> "))) /* a shell's second prompt */
            s = tv_str_drop(s, 2);
    }
}

tv_assignment tv_shell_assignment(tv_str word)
{
    size_t n = 0;
    while (n < word.n && (is_alpha(word.p[n]) || (n && word.p[n] >= '0' && word.p[n] <= '9')))
        n++;
    if (!n || n >= word.n || word.p[n] != '=')
        return (tv_assignment){0};
    return (tv_assignment){tv_str_take(word, n), tv_str_drop(word, n + 1)};
}

bool tv_is_known_variable(tv_str name)
{
    static const char *const heads[] = {
        "CUDA_",     "NCCL_",       "TORCH",    "PYTORCH_", "PADDLE",   "FLAGS_",
        "OMP_",      "MKL_",        "KMP_",     "MASTER_",  "NVIDIA",   "TF_",
        "XLA_",      "VLLM_",       "GLOO_",    "UCX_",     "HIP_",     "ROCR_",
        "CUBLAS",    "CUDNN",       "OPENBLAS", "NUMEXPR",  "TRAINER_", "RCCL_",
        "DEEPSPEED", "ACCELERATE_", "NVTE_",    "TRITON_",  "HSA_",     "MIOPEN_"};
    static const char *const names[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "NODE_RANK",
                                        "LD_LIBRARY_PATH",
                                        "LD_PRELOAD",
                                        "TOKENIZERS_PARALLELISM",
                                        "LOCAL_WORLD_SIZE",
                                        "GROUP_RANK",
                                        "CONDA_PREFIX",
                                        "VIRTUAL_ENV",
                                        "PYTHONPATH"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (tv_str_starts(name, tv_str_of(heads[i])))
            return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i]))
            return true;
    return false;
}
