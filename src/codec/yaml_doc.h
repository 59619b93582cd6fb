/* YAML as a document of the JSON kind: mappings, sequences and scalars, with anchors and aliases.
 * libyaml scans; nothing is kept of tags, styles and comments. */
#ifndef TV_YAML_DOC_H
#define TV_YAML_DOC_H

#include "base/json.h"

/* The first document of the text. Plain scalars are null, true, false or a number where they
 * read so, else text. An alias shares the members of its anchor. A key that stands
 * twice is an error, as in JSON. */
const tv_err *tv_yaml_parse(tv_arena *a, tv_str file, tv_str text, const tv_json **doc) TV_CHECKED;

#endif
