/* Extensions and marks of the formats that training data comes in. Marks as the formats' own
 * documents give them; a text has none and is told by being printable. */
#include "file_kind.h"

#include "base/text.h"

#include <string.h>

typedef struct extension {
    const char *word;
    tv_codec_kind kind;
} extension;

static const extension extensions[] = {
    {"jpg", TV_CODEC_JPEG},        {"jpeg", TV_CODEC_JPEG},        {"jpe", TV_CODEC_JPEG},
    {"jfif", TV_CODEC_JPEG},       {"png", TV_CODEC_PNG},          {"webp", TV_CODEC_WEBP},
    {"tif", TV_CODEC_TIFF},        {"tiff", TV_CODEC_TIFF},        {"mp4", TV_CODEC_VIDEO},
    {"m4v", TV_CODEC_VIDEO},       {"mkv", TV_CODEC_VIDEO},        {"webm", TV_CODEC_VIDEO},
    {"avi", TV_CODEC_VIDEO},       {"mov", TV_CODEC_VIDEO},        {"mpg", TV_CODEC_VIDEO},
    {"mpeg", TV_CODEC_VIDEO},      {"wav", TV_CODEC_AUDIO},        {"flac", TV_CODEC_AUDIO},
    {"mp3", TV_CODEC_AUDIO},       {"ogg", TV_CODEC_AUDIO},        {"opus", TV_CODEC_AUDIO},
    {"m4a", TV_CODEC_AUDIO},       {"sph", TV_CODEC_AUDIO},        {"txt", TV_CODEC_TEXT},
    {"json", TV_CODEC_TEXT},       {"jsonl", TV_CODEC_TEXT},       {"csv", TV_CODEC_TEXT},
    {"tsv", TV_CODEC_TEXT},        {"xml", TV_CODEC_TEXT},         {"md", TV_CODEC_TEXT},
    {"yaml", TV_CODEC_TEXT},       {"yml", TV_CODEC_TEXT},         {"npy", TV_CODEC_ARRAY},
    {"npz", TV_CODEC_ARRAY},       {"bin", TV_CODEC_ARRAY},        {"pt", TV_CODEC_ARRAY},
    {"pth", TV_CODEC_ARRAY},       {"pkl", TV_CODEC_ARRAY},        {"tar", TV_CODEC_RECORD},
    {"tfrecord", TV_CODEC_RECORD}, {"tfrecords", TV_CODEC_RECORD}, {"rec", TV_CODEC_RECORD},
    {"lmdb", TV_CODEC_RECORD},     {"mdb", TV_CODEC_RECORD},       {"parquet", TV_CODEC_RECORD},
    {"arrow", TV_CODEC_RECORD},    {"feather", TV_CODEC_RECORD},   {"h5", TV_CODEC_RECORD},
    {"hdf5", TV_CODEC_RECORD},     {"beton", TV_CODEC_RECORD},     {"mds", TV_CODEC_RECORD},
    {"dcm", TV_CODEC_DICOM},       {"dicom", TV_CODEC_DICOM},
};

tv_codec_kind tv_kind_by_name(tv_str name)
{
    size_t dot = name.n;
    while (dot && name.p[dot - 1] != '.')
        dot--;
    if (dot < 2) /* none, or a hidden name */
        return TV_CODEC_OTHER;
    const tv_str word = tv_str_drop(name, dot);
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (tv_str_eq_nocase(word, tv_str_of(extensions[i].word)))
            return extensions[i].kind;
    /* "train.tfrecord-00001-of-00100" */
    return tv_str_has(name, TV_S(".tfrecord-")) ? TV_CODEC_RECORD : TV_CODEC_OTHER;
}

typedef struct mark {
    size_t at;
    const char *bytes;
    size_t n;
    tv_codec_kind kind;
} mark;

#define MARK(at, text, kind)                                                                       \
    {                                                                                              \
        at, text, sizeof(text) - 1, kind                                                           \
    }

static const mark marks[] = {
    MARK(0, "\xFF\xD8\xFF", TV_CODEC_JPEG),
    MARK(0, "\x89PNG\r\n\x1A\n", TV_CODEC_PNG),
    MARK(8, "WEBP", TV_CODEC_WEBP),
    MARK(0, "II*\0", TV_CODEC_TIFF),
    MARK(0, "MM\0*", TV_CODEC_TIFF),
    MARK(4, "ftyp", TV_CODEC_VIDEO),
    MARK(0, "\x1A\x45\xDF\xA3", TV_CODEC_VIDEO),
    MARK(8, "AVI ", TV_CODEC_VIDEO),
    MARK(8, "WAVE", TV_CODEC_AUDIO),
    MARK(0, "fLaC", TV_CODEC_AUDIO),
    MARK(0, "OggS", TV_CODEC_AUDIO),
    MARK(0, "ID3", TV_CODEC_AUDIO),
    MARK(0, "NIST_1A", TV_CODEC_AUDIO),
    MARK(0, "\x93NUMPY", TV_CODEC_ARRAY),
    MARK(0, "PK\x03\x04", TV_CODEC_ARRAY), /* npz, and what torch.save writes */
    MARK(0, "PAR1", TV_CODEC_RECORD),
    MARK(0, "ARROW1", TV_CODEC_RECORD),
    MARK(0, "\x89HDF\r\n\x1A\n", TV_CODEC_RECORD),
    MARK(16, "\xDE\xC0\xEF\xBE", TV_CODEC_RECORD), /* LMDB's meta page */
    MARK(257, "ustar", TV_CODEC_RECORD),
    MARK(128, "DICM", TV_CODEC_DICOM),
};

/* No byte below space but tab and line ends, and none that UTF-8 never uses. */
static bool is_text(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 0x20 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] >= 0xF8)
            return false;
    return n > 0;
}

tv_codec_kind tv_kind_by_bytes(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const mark *m = &marks[i];
        if (n >= m->at && n - m->at >= m->n && memcmp(p + m->at, m->bytes, m->n) == 0)
            return m->kind;
    }
    return is_text(p, n) ? TV_CODEC_TEXT : TV_CODEC_OTHER;
}

const char *tv_kind_name(tv_codec_kind kind)
{
    switch (kind) {
    case TV_CODEC_JPEG:
        return "JPEG";
    case TV_CODEC_PNG:
        return "PNG";
    case TV_CODEC_WEBP:
        return "WebP";
    case TV_CODEC_TIFF:
        return "TIFF";
    case TV_CODEC_VIDEO:
        return N_("video");
    case TV_CODEC_AUDIO:
        return N_("audio");
    case TV_CODEC_TEXT:
        return N_("text");
    case TV_CODEC_ARRAY:
        return N_("arrays");
    case TV_CODEC_RECORD:
        return N_("record files");
    case TV_CODEC_DICOM:
        return "DICOM";
    case TV_CODEC_OTHER:
    case TV_CODEC_COUNT:
        break;
    }
    return N_("other files");
}

bool tv_kind_is_single(tv_codec_kind kind)
{
    return kind == TV_CODEC_JPEG || kind == TV_CODEC_PNG || kind == TV_CODEC_WEBP ||
           kind == TV_CODEC_TIFF || kind == TV_CODEC_VIDEO || kind == TV_CODEC_AUDIO ||
           kind == TV_CODEC_DICOM;
}
