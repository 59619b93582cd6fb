/* trivet version: what runs here, for reports of mistakes. */
#include "command.h"

#include "base/json.h"
#include "base/message.h"

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    (void)args;
    if (!r->json) {
        tv_puts(r->out, "trivet " TV_VERSION "\n");
        return NULL;
    }
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "version");
    tv_json_put_str(&w, tv_str_of(TV_VERSION));
    tv_json_key(&w, "compiler");
    tv_json_put_str(&w, tv_str_of(__VERSION__));
    tv_json_end(&w, '}');
    return NULL;
}

extern const tv_command tv_command_version;
const tv_command tv_command_version = {
    .name = "version",
    .summary = N_("print the version"),
    .usage = "",
    .run = run,
};
