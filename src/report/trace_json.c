/* A profile as JSON: the names of the interface first, what is known besides after them. */
#include <math.h>

#include "base/message.h"
#include "trace_out.h"

static void put_num(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    tv_json_put_num(w, v);
}

static void put_findings(tv_json_out *w, tv_lang lang, const tv_diagnosis *d)
{
    tv_json_key(w, "findings");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < d->findings.n; i++) {
        const tv_finding *f = d->findings.v[i];
        tv_json_begin(w, '{');
        tv_json_key(w, "id");
        tv_json_put_str(w, tv_str_of(f->rule->id));
        tv_json_key(w, "severity");
        tv_json_put_str(w, tv_str_of(tv_severity_name(f->severity)));
        tv_json_key(w, "title");
        tv_json_put_str(w, tv_str_of(tv_message(lang, f->rule->title)));
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_skew(tv_json_out *w, const tv_trace_view *v)
{
    tv_json_key(w, "skew");
    if (!v->skew) {
        tv_json_put_null(w);
        return;
    }
    tv_json_begin(w, '{');
    put_num(w, "collectives", (double)v->collectives);
    put_num(w, "wait_share", v->wait_share);
    put_num(w, "wait_s", v->wait_s);
    put_num(w, "late_rank", v->late_rank);
    put_num(w, "late_share", v->late_share);
    tv_json_end(w, '}');
}

void tv_trace_json(const tv_request *req, tv_buf *b, const tv_trace_view *v)
{
    tv_json_out w = tv_json_write(b);
    tv_json_begin(&w, '{');
    for (const tv_note *note = v->slowest->first; note; note = note->next) {
        tv_json_key(&w, note->key);
        tv_json_note(&w, note);
    }
    const double rate = tv_noted_num(v->slowest, "gemm_flop_per_s");
    put_num(&w, "peak_flop_per_s", v->peak_flop_per_s);
    put_num(&w, "gemm_of_peak", rate / v->peak_flop_per_s);
    tv_json_key(&w, "ranks");
    tv_json_note(&w, v->ranks);
    put_skew(&w, v);
    put_findings(&w, req->lang, v->diagnosis);
    tv_json_end(&w, '}');
    tv_putc(b, '\n');
}
