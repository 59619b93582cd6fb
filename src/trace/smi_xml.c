/* nvidia-smi -q -x: XML, read by expat as it stands in the text. A document that declares anything
 * of its own (an internal subset, an entity) is refused: nvidia-smi writes none, attackers do. */
#include <expat.h>
#include <string.h>

#include "base/buf.h"
#include "smi_log.h"

/* The deepest real element has 7 above it. */
enum { MOST_DEPTH = 32, MOST_TEXT = 4096 };

typedef struct document {
    tv_smi_log log;
    tv_smi_path path;
    XML_Parser parser;
    size_t begin; /* the line of the document's first one */
    size_t depth;
    bool leaf; /* no element has ended inside the one that is open */
    char text[MOST_TEXT];
    size_t n_text;
} document;

static size_t line_of(const document *d)
{
    const size_t line = (size_t)XML_GetCurrentLineNumber(d->parser);
    return d->begin + (line ? line - 1 : 0);
}

static const char *attribute(const char *const *attributes, const char *name)
{
    for (size_t i = 0; attributes && attributes[i]; i += 2)
        if (strcmp(attributes[i], name) == 0)
            return attributes[i + 1];
    return "";
}

static void XMLCALL on_start(void *user, const char *name, const char **attributes)
{
    document *d = user;
    if (++d->depth > MOST_DEPTH) {
        (void)XML_StopParser(d->parser, XML_FALSE);
        return;
    }
    if (d->leaf && d->depth > 1) /* the element around this one holds others: a heading */
        tv_smi_log_heading(&d->log, &d->path, line_of(d));
    if (strcmp(name, "nvidia_smi_log") == 0)
        tv_smi_log_begin(&d->log, line_of(d));
    else if (strcmp(name, "gpu") == 0)
        tv_smi_log_gpu(&d->log, tv_str_of(attribute(attributes, "id")), line_of(d));
    tv_smi_path_push(&d->path, tv_str_of(name));
    d->n_text = 0;
    d->leaf = true;
}

static void XMLCALL on_end(void *user, const char *name)
{
    document *d = user;
    if (d->path.n == d->depth && d->path.n)
        d->path.n--;
    d->depth--;
    const tv_str text = tv_str_trim((tv_str){d->text, d->n_text});
    if (d->leaf && d->depth > 0)
        (void)tv_smi_log_value(&d->log, &d->path, tv_str_of(name), text, line_of(d));
    d->leaf = false;
    d->n_text = 0;
}

static void XMLCALL on_text(void *user, const char *s, int n)
{
    document *d = user;
    const size_t room = MOST_TEXT - d->n_text;
    const size_t take = (size_t)n < room ? (size_t)n : room;
    memcpy(d->text + d->n_text, s, take);
    d->n_text += take;
}

static void XMLCALL on_doctype(void *user, const char *name, const char *system, const char *public,
                               int internal)
{
    (void)name;
    (void)system;
    (void)public;
    document *d = user;
    if (internal)
        (void)XML_StopParser(d->parser, XML_FALSE);
}

static int XMLCALL on_external(XML_Parser parser, const char *context, const char *base,
                               const char *system, const char *public)
{
    (void)parser;
    (void)context;
    (void)base;
    (void)system;
    (void)public;
    return XML_STATUS_ERROR;
}

static void XMLCALL on_entity(void *user, const char *name, int parameter, const char *value, int n,
                              const char *base, const char *system, const char *public,
                              const char *notation)
{
    (void)name;
    (void)parameter;
    (void)value;
    (void)n;
    (void)base;
    (void)system;
    (void)public;
    (void)notation;
    document *d = user;
    (void)XML_StopParser(d->parser, XML_FALSE);
}

static void free_parser(void *parser)
{
    XML_ParserFree(parser);
}

/* The line without what a logger put before the document. */
static tv_str from_markup(tv_str raw)
{
    static const char *const begins[] = {"<?xml", "<!DOCTYPE", "<nvidia_smi_log"};
    tv_str rest;
    for (size_t k = 0; k < sizeof begins / sizeof *begins; k++)
        if (tv_past(raw, begins[k], &rest))
            return tv_str_span(rest.p - strlen(begins[k]), raw.p + raw.n);
    return raw;
}

/* Lines i to end of the sheet as one document; what was read before it breaks stays. */
static void read_document(tv_reading *r, tv_arena *scratch, size_t i, size_t end)
{
    document *d = tv_new(scratch, document, 1);
    d->log.r = r;
    d->begin = i;
    d->parser = XML_ParserCreate("UTF-8");
    if (!d->parser)
        return;
    tv_defer(scratch, free_parser, d->parser);
    XML_SetUserData(d->parser, d);
    XML_SetElementHandler(d->parser, on_start, on_end);
    XML_SetCharacterDataHandler(d->parser, on_text);
    XML_SetStartDoctypeDeclHandler(d->parser, on_doctype);
    XML_SetEntityDeclHandler(d->parser, on_entity);
    XML_SetExternalEntityRefHandler(d->parser, on_external);
    enum XML_Status status = XML_STATUS_OK;
    for (size_t k = i; k <= end && status == XML_STATUS_OK; k++) {
        const tv_str raw = k == i ? from_markup(r->sheet->v[k].raw) : r->sheet->v[k].raw;
        status = XML_Parse(d->parser, raw.p, (int)raw.n, 0);
        if (status == XML_STATUS_OK)
            status = XML_Parse(d->parser, "\n", 1, k == end);
    }
    tv_smi_log_end(&d->log);
}

static bool holds_at(const tv_reading *r, size_t i, const char *text)
{
    return tv_holds(r->sheet->v[i].raw, text);
}

static void read(tv_reading *r)
{
    tv_arena *scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    const tv_mark blank = tv_arena_mark(scratch);
    for (size_t i = 0; i < r->sheet->n; i++) {
        if (!holds_at(r, i, "<nvidia_smi_log"))
            continue;
        size_t end = i;
        while (end + 1 < r->sheet->n && !holds_at(r, end, "</nvidia_smi_log>"))
            end++;
        read_document(r, scratch, i, end);
        tv_arena_rewind(scratch, blank);
        i = end;
    }
}

static const char *const needles[] = {"<nvidia_smi_log", NULL};

extern const tv_log_format tv_log_format_smi_xml;
const tv_log_format tv_log_format_smi_xml = {"nvidia-smi -q -x", needles, read};
