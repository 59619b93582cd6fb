/* Every ceiling that the program puts on its input, with the reason for its size.
 * A limit that is reached is an answer (exit status 3), never a crash. */
#ifndef TV_LIMITS_H
#define TV_LIMITS_H

/* One request's arena. The largest real header seen (94 thousand tensors) needs 20 MiB. */
#define TV_LIMIT_ARENA_BYTES ((size_t)512 << 20)

/* Nesting of JSON. Real configurations reach 9; recursion-free readers could take more. */
#define TV_LIMIT_JSON_DEPTH 64

/* A JSON document that is kept whole. The largest real config.json is 3.1 MB of layer names. */
#define TV_LIMIT_JSON_DOC_BYTES ((size_t)64 << 20)

/* Members of one JSON object or array that is kept whole: hub indexes reach 10^5. */
#define TV_LIMIT_JSON_MEMBERS 4000000u

/* safetensors' own ceiling for a header is 100 MB. */
#define TV_LIMIT_SAFETENSORS_HEADER_BYTES 100000000u

/* GGUF: real vocabularies have 3·10^5 strings, models 10^4 tensors. */
#define TV_LIMIT_GGUF_ARRAY 16000000u
#define TV_LIMIT_GGUF_KEYS 65536u
#define TV_LIMIT_GGUF_TENSORS 1000000u
#define TV_LIMIT_GGUF_RANK 4u

/* Messages within messages: protobuf's own readers stop at 100. */
#define TV_LIMIT_WIRE_DEPTH 100

/* Tensors of one model over all of its files. */
#define TV_LIMIT_TENSORS 4000000u

/* Dimensions of a tensor: ONNX allows any, frameworks stop at 8 (GGUF at 4). */
#define TV_LIMIT_RANK 8

/* Contents of a program's tensors that are kept: shapes, axes, scales, anchor tables. */
#define TV_LIMIT_PROGRAM_CONST_ELEMENTS 4096u

/* Nodes and values of a program, over all of its bodies; the largest exports have 10^5. */
#define TV_LIMIT_PROGRAM_NODES 4000000u
#define TV_LIMIT_PROGRAM_VALUES 8000000u

/* An exported program's JSON: mostly stack traces, 1 to 2 kB a node. It is read as it lies in the
 * file; only a deflated one takes this much memory. */
#define TV_LIMIT_PT2_JSON_BYTES ((size_t)2 << 30)

/* Subgraphs within subgraphs, and calls of local functions within each other. */
#define TV_LIMIT_PROGRAM_DEPTH 32

/* Layers of a model. The deepest published decoder has 126. */
#define TV_LIMIT_LAYERS 4096u

/* Operations of one layer kind and of a whole graph. */
#define TV_LIMIT_OPS 4000000u

/* Entries of a zip archive: a checkpoint has one per storage, and TV_LIMIT_TENSORS bounds those. */
#define TV_LIMIT_ZIP_ENTRIES 4000000u

/* Objects of one pickle: a tensor takes about 30, a training state of 10^5 tensors 3·10^6. */
#define TV_LIMIT_PICKLE_NODES 16000000u

/* Different classes that a pickle may name before the rest goes unlisted: a training state with
 * its whole program names 300. */
#define TV_LIMIT_PICKLE_GLOBALS 1024u

/* How deep a pickle's objects are walked into: modules within modules reach 20. */
#define TV_LIMIT_PICKLE_DEPTH 64u

/* Shards of one model. */
#define TV_LIMIT_SHARDS 4096u

/* Cards of one job, over all nodes. */
#define TV_LIMIT_GPUS 65536u

/* Files whose size a scan of --data takes; above it, it samples. */
#define TV_LIMIT_SCAN_FILES 200000u

/* Names that a scan of --data counts: about a microsecond each, so five seconds of them. */
#define TV_LIMIT_SCAN_NAMES 5000000u

/* Columns of a table: the widest measured one has 32, spreadsheets' exports stay under 1,000. */
#define TV_LIMIT_CSV_COLUMNS 1024u

/* A table of rows, inflated: the largest measured one is 12 MB. */
#define TV_LIMIT_CSV_BYTES ((size_t)128 << 20)

/* Entries of the caching allocator that is simulated. */
#define TV_LIMIT_ALLOCATOR_BLOCKS 4000000u

/* Items of one list or map of the doctor's facts: a kernel log of a bad night has thousands of
 * events, more are counted and dropped. */
#define TV_LIMIT_NOTE_ITEMS 10000u
/* One word of the facts: kernel names of templates reach 4 KiB. */
#define TV_LIMIT_NOTE_TEXT_BYTES 4096u
/* A line that a finding cites. */
#define TV_LIMIT_EVIDENCE_BYTES 400u
/* A line of a log: a pasted single-line JSON is longer and is no log. */
#define TV_LIMIT_LINE_BYTES 65536u
/* Text that is looked at as one; a longer file is read part after part. */
#define TV_LIMIT_SHEET_BYTES ((size_t)8 << 20)
/* And its lines: a sheet of nothing but line ends would have eight times as many. */
#define TV_LIMIT_SHEET_LINES ((size_t)1 << 20)
/* What a packed file may inflate to: freely up to the first, then in this ratio to its own bytes,
 * together with what is packed within it. Traces reach 30, logs of one repeated line 200; bombs of
 * gzip 1,000 and of zstd 30,000. */
#define TV_LIMIT_INFLATE_FREE_BYTES ((uint64_t)1 << 30)
#define TV_LIMIT_INFLATE_RATIO 250u
/* Findings of one rule: more of the same say nothing new. */
#define TV_LIMIT_FINDINGS_OF_RULE 16u
#define TV_LIMIT_EVIDENCE_OF_FINDING 12u
/* Files of one folder or archive that are looked into, and folders within folders. */
#define TV_LIMIT_CAPTURED_FILES 20000u
#define TV_LIMIT_CAPTURED_DEPTH 16u
/* Sightings of one request. */
#define TV_LIMIT_SIGHTINGS 100000u

/* Packed records of a profile's timeline that are kept in memory; what is past them lies sorted in
 * a temporary file. 32 bytes a piece of device work: 14 million of them, a profile of 10 GB. */
#define TV_LIMIT_TIMELINE_BYTES ((size_t)448 << 20)
/* Different names of kernels, and how much of a name is kept: a large model launches 2,000. */
#define TV_LIMIT_TIMELINE_NAMES 65536u
#define TV_LIMIT_TIMELINE_NAME_BYTES 300u
/* Waits for the loader and written checkpoints, and steps: one of each a step. */
#define TV_LIMIT_TIMELINE_SPANS 500000u
#define TV_LIMIT_TIMELINE_STEPS 100000u
/* A time stamp that a profiler got wrong: longer than any profile. */
#define TV_LIMIT_TIMELINE_DUR_NS ((int64_t)7 * 86400 * 1000000000)

/* A database inside an archive: it must be held in memory whole. Exports of nsys reach gigabytes,
 * but those are files of their own. */
#define TV_LIMIT_DATABASE_BYTES ((size_t)256 << 20)
/* One value of a database: names of kernels reach some KiB. */
#define TV_LIMIT_DATABASE_VALUE_BYTES 1000000u

#endif
