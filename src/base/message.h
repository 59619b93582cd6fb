/* Translation: an English msgid to the request's language, from a catalogue that is built in.
 * A missing translation shows the English text. */
#ifndef TV_MESSAGE_H
#define TV_MESSAGE_H

#include "text.h"

const char *tv_message(tv_lang lang, const char *msgid);

/* "zh_CN.UTF-8" and the like are Chinese, everything else English. */
tv_lang tv_lang_of(tv_str locale);

/* Number of translations built in for a language (0 for English): for the closure tests. */
size_t tv_message_count(tv_lang lang);

#endif
