/* PyTorch's own warning about loader workers: how many there are, and how many cores the process
 * may use (its affinity mask). */
#include "glean.h"
#include "trace.h"

static void read(tv_reading *r)
{
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        const tv_double_read workers = tv_number_past(line, "This DataLoader will create ");
        if (!workers.ok)
            continue;
        tv_sighting *s = tv_see(r, "loader-workers", i);
        (void)tv_note_num(r->a, &s->facts, "workers", workers.v);
        const tv_double_read cpus =
            tv_number_past(line, "suggested max number of worker in current system is ");
        if (cpus.ok)
            (void)tv_note_num(r->a, &s->facts, "cpus", cpus.v);
        else
            (void)tv_note_null(r->a, &s->facts, "cpus");
    }
}

static const char *const needles[] = {"This DataLoader will create ", NULL};

extern const tv_log_format tv_log_format_loader_workers;
const tv_log_format tv_log_format_loader_workers = {"loader-workers", needles, read};
