"""Writes small zip archives, and what Python's own zipfile finds in them.

    archive_files.py OUT [STAMP]   OUT/*.zip and OUT/zips.jsonl: for each good archive its entries
                                   (name, sizes, method, where the data begins, a checksum of it),
                                   for each broken one the error's id
    archive_files.py --corpus DIR  the archives alone, as starting points for the fuzzer"""

import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib

WHEN = (2020, 1, 1, 0, 0, 0)


def info(name, method=zipfile.ZIP_STORED, extra=b""):
    x = zipfile.ZipInfo(name, WHEN)
    x.compress_type = method
    x.extra = extra
    return x


def pack(entries, comment=b"", zip64=False):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as z:
        z.comment = comment
        for name, data, method, extra in entries:
            with z.open(info(name, method, extra), "w", force_zip64=zip64) as f:
                f.write(data)
    return raw.getvalue()


def streamed(entries):
    """Written to a pipe: sizes stand behind the data, the local headers hold zeros."""
    class Pipe(io.RawIOBase):
        def __init__(self):
            self.data = bytearray()

        def writable(self):
            return True

        def write(self, b):
            self.data += b
            return len(b)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as z:
        for name, data, method, extra in entries:
            with z.open(info(name, method, extra), "w") as f:
                f.write(data)
    return bytes(pipe.data)


def end64(entries, n_fill=True):
    """The same archive with everything in Zip64 records: central extra fields, record, locator."""
    body, central = bytearray(), bytearray()
    for name, data in entries:
        raw, at = name.encode(), len(body)
        body += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0x800, 0, 0, 33, zlib.crc32(data),
                            0xFFFFFFFF, 0xFFFFFFFF, len(raw), 20)
        body += raw + struct.pack("<HHQQ", 1, 16, len(data), len(data)) + data
        central += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0x800, 0, 0, 33,
                               zlib.crc32(data), 0xFFFFFFFF, 0xFFFFFFFF, len(raw), 28, 0, 0, 0, 0,
                               0xFFFFFFFF)
        central += raw + struct.pack("<HHQQQ", 1, 24, len(data), len(data), at)
    begin = len(body)
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, len(entries), len(entries),
                         len(central), begin)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, begin + len(central), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return bytes(body + central + record + locator + end)


TEXT = b"the same words again and again, " * 40
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
ENTRIES = [("a/data.pkl", b"\x80\x02}q\x00.", STORED, b""), ("a/version", b"3\n", STORED, b""),
           ("a/data/0", bytes(range(200)), STORED, b"FB\x0c\0ZZZZZZZZZZZZ"),
           ("a/code/x.py", TEXT, DEFLATED, b""), ("a/empty", b"", STORED, b""),
           ("a/nothing", b"", DEFLATED, b""), ("a/\u00e9\u4e2d", b"name", STORED, b"")]


def good():
    yield "plain", pack(ENTRIES)
    yield "none", pack([])
    yield "comment", pack(ENTRIES[:2], b"PK\1\2 and more words " * 20)
    yield "streamed", streamed(ENTRIES)
    yield "zip64-local", pack(ENTRIES, zip64=True)
    yield "zip64", end64([(name, data) for name, data, _, _ in ENTRIES])
    yield "prepended", b"#!/bin/sh\nexit 1\n" + pack(ENTRIES[:4])
    yield "many", pack([(f"m/data/{i}", bytes([i % 251]), STORED, b"") for i in range(3000)])


def cut_central(raw, field, form, value, which=0):
    at = -1
    for _ in range(which + 1):
        at = raw.index(b"PK\1\2", at + 1)
    out = bytearray(raw)
    struct.pack_into("<" + form, out, at + field, value)
    return bytes(out)


def in_end(raw, field, form, value):
    out = bytearray(raw)
    struct.pack_into("<" + form, out, raw.rindex(b"PK\5\6") + field, value)
    return bytes(out)


def bad():
    raw = pack(ENTRIES)
    yield "three", b"PK\3", "zip.no-end"
    yield "cut", raw[:-1], "zip.no-end"
    yield "half", raw[:len(raw) // 2], "zip.no-end"
    yield "trailing", raw + b"x", "zip.no-end"
    yield "size", in_end(raw, 12, "I", len(raw)), "zip.directory"
    yield "offset", in_end(raw, 16, "I", len(raw)), "zip.directory"
    yield "count", in_end(raw, 10, "H", 5000), "zip.directory"
    yield "count-more", in_end(raw, 10, "H", len(ENTRIES) + 1), "zip.entry"
    yield "name", cut_central(raw, 28, "H", 60000), "zip.entry"
    yield "mark", raw.replace(b"PK\1\2", b"PK\1\3", 1), "zip.entry"
    yield "outside", cut_central(raw, 42, "I", len(raw)), "zip.outside"
    yield "too-long", cut_central(raw, 20, "I", len(raw)), "zip.outside"
    yield "no-extra", cut_central(raw, 20, "I", 0xFFFFFFFF), "zip.entry64"
    yield "twice", pack([("a", b"1", STORED, b""), ("b", b"2", STORED, b"")]).replace(b"b", b"a"), \
        "zip.twice"
    wide = end64([("one", b"1")])
    yield "record", wide.replace(b"PK\6\6", b"PK\6\5"), "zip.directory"
    yield "count64", wide.replace(struct.pack("<QQ", 1, 1), struct.pack("<QQ", 1 << 60, 1 << 60)), \
        "zip.directory"
    yield "local", raw.replace(b"PK\3\4", b"PK\3\5"), "zip.local"
    yield "length", cut_central(raw, 24, "I", 5, 0), "zip.local"
    yield "bomb", cut_central(raw, 24, "I", 1 << 27, 3), "zip.data"
    yield "short", cut_central(raw, 24, "I", len(TEXT) - 1, 3), "zip.data"
    yield "damaged", raw.replace(zlib.compress(TEXT)[2:6], b"\xff\xff\xff\xff"), "zip.data"
    yield "checksum", cut_central(raw, 16, "I", 1, 3), "zip.data"
    yield "method", cut_central(raw, 10, "H", 12, 3), "zip.method"
    yield "locked", cut_central(raw, 8, "H", 1, 2), "zip.method"
    yield "large", cut_central(cut_central(raw, 24, "I", 1 << 30), 20, "I", 20), "zip.too-large"


def entries(path):
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as z:
        for x in z.infolist():
            name, extra = struct.unpack_from("<HH", raw, x.header_offset + 26)
            yield {"name": x.filename, "bytes": x.file_size, "packed": x.compress_size,
                   "method": x.compress_type, "data": x.header_offset + 30 + name + extra,
                   "crc": zlib.crc32(z.read(x))}


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, raw in good():
        path = out / f"{name}.zip"
        path.write_bytes(raw)
        rows.append({"path": path.name, "entries": list(entries(path))})
    for name, raw, error in bad():
        (out / f"bad-{name}.zip").write_bytes(raw)
        rows.append({"path": f"bad-{name}.zip", "id": error})
    (out / "zips.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def corpus(out, largest=4096):
    out.mkdir(parents=True, exist_ok=True)
    for name, raw, *_ in [*good(), *bad()]:
        if len(raw) <= largest:
            (out / name).write_bytes(raw)


if __name__ == "__main__":
    if sys.argv[1] == "--corpus":
        corpus(pathlib.Path(sys.argv[2]))
        sys.exit()
    main(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).touch()
