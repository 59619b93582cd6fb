/* Looks a msgid up in the GNU .mo image that the build embeds: sorted table, binary search.
 * The image is our own build output, so its offsets are trusted. */
#include "message.h"

#include <string.h>

extern const unsigned char tv_zh_mo_start[];
extern const unsigned char tv_zh_mo_end[];

typedef struct mo_entry {
    uint32_t length;
    uint32_t offset;
} mo_entry;

static uint32_t word_at(const unsigned char *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static mo_entry entry_at(const unsigned char *image, uint32_t table, uint32_t i)
{
    const unsigned char *p = image + table + (size_t)i * 8;
    return (mo_entry){word_at(p), word_at(p + 4)};
}

static const char *lookup(const unsigned char *image, const char *msgid)
{
    uint32_t low = 0, high = word_at(image + 8);
    const uint32_t originals = word_at(image + 12), translations = word_at(image + 16);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const mo_entry at = entry_at(image, originals, middle);
        const int order = strcmp((const char *)image + at.offset, msgid);
        if (order == 0)
            return (const char *)image + entry_at(image, translations, middle).offset;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *tv_message(tv_lang lang, const char *msgid)
{
    if (lang == TV_EN || tv_zh_mo_end - tv_zh_mo_start < 28 || !*msgid)
        return msgid;
    const char *found = lookup(tv_zh_mo_start, msgid);
    return found && *found ? found : msgid;
}

tv_lang tv_lang_of(tv_str locale)
{
    return tv_str_starts(locale, TV_S("zh")) ? TV_ZH : TV_EN;
}

size_t tv_message_count(tv_lang lang)
{
    return lang == TV_ZH ? word_at(tv_zh_mo_start + 8) : 0;
}
