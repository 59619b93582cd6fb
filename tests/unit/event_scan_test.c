/* Trace events, whole, cut, damaged and in any layout; each text is also read with a window that
 * meets its end at every place, since a stream hands over pieces. */
#include "testing.h"

#include "trace/event_scan.h"

typedef struct scan_case {
    const char *text;
    const char *names; /* of the events, with a blank between */
    unsigned members;
    unsigned damaged; /* at least */
    bool cut;
} scan_case;

#define X(name) "{\"ph\": \"X\", \"cat\": \"k\", \"name\": \"" name "\", \"ts\": 1, \"dur\": 2}"

static const scan_case cases[] = {
    {"{\"schemaVersion\": 1, \"traceEvents\": [" X("a") "," X("b") "], \"traceName\": \"x\"}",
     "a b", 2, 0, false},
    {"[" X("a") ",\n" X("b") "\n]\n", "a b", 0, 0, false},
    /* blanks, commas where none belong, empty lists */
    {"  {\n \"traceEvents\" : [\n\n , " X("a") " ,, " X("b") ", ] }", "a b", 0, 0, false},
    {"{\"traceEvents\": []}", "", 0, 0, false},
    {"\xef\xbb\xbf{\"traceEvents\": [" X("a") "]}", "a", 0, 0, false},
    /* no end */
    {"{\"traceEvents\": [" X("a") ", {\"ph\": \"X\", \"na", "a", 0, 0, true},
    {"{\"traceEvents\": [" X("a"), "a", 0, 0, true},
    {"[" X("a") ",", "a", 0, 0, true},
    /* args in front of the name, nested, with brackets and escapes in texts */
    {"[{\"args\": {\"grid\": [1, [2], {\"x\": \"]}\\\"\"}]}, \"ph\": \"X\", \"name\": \"a\"}," X(
         "b") "]",
     "a b", 0, 0, false},
    /* quotes without back-slash inside a name */
    {"[{\"ph\": \"X\", \"name\": \"say \"hi\" now\", \"ts\": 1}," X("b") "]", "say \"hi\" now b", 0,
     1, false},
    /* a text that its line does not end */
    {"[{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"args\": {\"s\": \"no end\n, \"t\": 1}},\n" X(
         "b") "]",
     "a b", 0, 1, false},
    /* a path of Windows: a back-slash before the closing quote */
    {"[{\"ph\": \"X\", \"name\": \"a\", \"args\": {\"f\": \"C:\\dir\\\"}},\n" X("b") ",\n" X(
         "c") "]",
     "a b c", 0, 1, false},
    /* garbage between events */
    {"[" X("a") ", nonsense 7, " X("b") "]", "a b", 0, 1, false},
    {"[" X("a") ", {\"ph\": \"X\", \"name\" 7}, " X("b") "]", "a b", 0, 1, false},
    {"[{\"ph\": \"X\", \"name\": \"a\", \"dur\": NaN, \"args\": {\"o\": nan}}]", "a", 0, 0, false},
};

static tv_event_scan *scan_of(tv_arena *a, tv_str text)
{
    tv_stream *stream;
    assert_ok(a, tv_stream_over(a, TV_S("test"),
                                (tv_bytes_view){(const unsigned char *)text.p, text.n}, &stream));
    return tv_event_scan_open(a, stream);
}

static void check_case(const scan_case *c)
{
    tv_arena *a = test_arena();
    tv_event_scan *s = scan_of(a, tv_str_of(c->text));
    tv_buf names = tv_buf_in(a);
    unsigned members = 0;
    for (tv_scanned now = {0};;) {
        assert_ok(a, tv_event_scan_next(s, &now));
        if (now.what == TV_SCAN_END)
            break;
        members += now.what == TV_SCAN_MEMBER;
        if (now.what != TV_SCAN_EVENT)
            continue;
        if (names.n)
            tv_putc(&names, ' ');
        tv_put(&names, now.event.name);
    }
    if (!tv_str_is(tv_buf_str(&names), c->names))
        fail_msg("%s: got \"%.*s\", want \"%s\"", c->text, TV_FMT(tv_buf_str(&names)), c->names);
    assert_int_equal(members, c->members);
    assert_true(tv_event_scan_damaged(s) >= c->damaged);
    if (!c->damaged)
        assert_int_equal(tv_event_scan_damaged(s), 0);
    assert_int_equal(tv_event_scan_is_cut(s), c->cut);
    tv_arena_close(a);
}

static void reads_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* What lies before the cut is read, whatever the place. */
static void reads_up_to_the_cut(void **state)
{
    (void)state;
    const tv_str text = TV_S("{\"schemaVersion\": 1, \"traceEvents\": [" X("a") ", " X("b") "]}");
    tv_arena *a = test_arena();
    size_t most = 0;
    for (size_t n = 0; n <= text.n; n++) {
        tv_event_scan *s = scan_of(a, tv_str_take(text, n));
        size_t events = 0;
        for (tv_scanned now = {0};;) {
            assert_ok(a, tv_event_scan_next(s, &now));
            if (now.what == TV_SCAN_END)
                break;
            events += now.what == TV_SCAN_EVENT;
        }
        assert_true(events >= most);
        most = events;
        if (n > 0 && n < text.n)
            assert_true(tv_event_scan_is_cut(s));
    }
    assert_int_equal(most, 2);
    tv_arena_close(a);
}

/* Events over the borders of the window: 4 MB of them, args of growing size. */
static void reads_past_the_window(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "{\"traceEvents\": [\n");
    size_t written = 0;
    while (b.n < (size_t)4 << 20) {
        tv_puts(&b, written ? ",\n" : "");
        tv_puts(&b, "{\"ph\": \"X\", \"name\": \"k\", \"ts\": ");
        tv_put_u64(&b, written);
        tv_puts(&b, ".125, \"args\": {\"x\": \"");
        tv_put_repeat(&b, TV_S("]}\\\""), written % 97);
        tv_puts(&b, "\"}}");
        written++;
    }
    tv_puts(&b, "\n]}");
    tv_event_scan *s = scan_of(a, tv_buf_str(&b));
    size_t n = 0;
    for (tv_scanned now = {0};; n++) {
        assert_ok(a, tv_event_scan_next(s, &now));
        if (now.what == TV_SCAN_END)
            break;
        assert_int_equal(now.event.ts_ns, (int64_t)n * 1000 + 125);
        assert_true(now.event.ts_fraction);
    }
    assert_int_equal(n, written);
    assert_int_equal(tv_event_scan_damaged(s), 0);
    assert_false(tv_event_scan_is_cut(s));
    tv_arena_close(a);
}

/* An event larger than the window is passed over, the next one is read. */
static void passes_over_the_oversized(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "[" X("a") ", {\"ph\": \"X\", \"name\": \"big\", \"args\": {\"s\": \"");
    tv_put_repeat(&b, TV_S("[{"), (size_t)3 << 19);
    tv_puts(&b, "\"}}, " X("b") "]");
    tv_event_scan *s = scan_of(a, tv_buf_str(&b));
    tv_scanned now = {0};
    assert_ok(a, tv_event_scan_next(s, &now));
    assert_str(now.event.name, "a");
    assert_ok(a, tv_event_scan_next(s, &now));
    assert_int_equal(now.what, TV_SCAN_EVENT);
    assert_str(now.event.name, "b");
    assert_int_equal(tv_event_scan_damaged(s), 1);
    tv_arena_close(a);
}

typedef struct time_case {
    const char *text;
    bool ok;
    long long ns;
} time_case;

static void reads_microseconds(void **state)
{
    (void)state;
    static const time_case times[] = {
        {"0", true, 0},
        {"1665536373729077", true, 1665536373729077000},
        {"4203669603454.206", true, 4203669603454206},
        {"0.0004", true, 0},
        {"0.0005", true, 1},
        {"1.5", true, 1500},
        {"-3.25", true, -3250},
        {"1e3", true, 1000000},
        {"1.7E15", true, 1700000000000000000},
        {"99999999999999999999", false, 0},
        {"nan", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t ns = 0;
        bool fraction;
        const bool ok = tv_read_stamp(tv_str_of(times[i].text), &ns, &fraction);
        assert_int_equal(ok, times[i].ok);
        if (ok)
            assert_int_equal(ns, times[i].ns);
    }
}

static void tells_trace_events(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        bool is;
    } heads[] = {
        {"{\"traceEvents\": [", true},
        {"\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [", true},
        {"{\"schemaVersion\": 1, \"distributedInfo\": {", true},
        {"[\n{\"name\": \"a\", \"ph\": \"X\"", true},
        {"{\"schemaVersion\": 2, \"mediaType\": \"application/vnd.docker\"", false},
        {"{\"model_type\": \"llama\"}", false},
        {"[[1, 2, 3, 4]", false},
        {"[1, 2]", false},
        {"traceEvents", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(tv_event_scan_is(tv_str_of(heads[i].head)), heads[i].is);
}

static void reads_args(void **state)
{
    (void)state;
    const tv_str args = TV_S("{ \"stream\": -1,\"device\":0 , \"Collective name\": \"all\\\"r\", "
                             "\"grid\": [1, [2]], \"last\": \"x\"}");
    static const char *const want[] = {"stream",   "-1",   "device",   "0",    "Collective name",
                                       "all\\\"r", "grid", "[1, [2]]", "last", "x"};
    char padded[256] = {0};
    memcpy(padded, args.p, args.n);
    tv_arg_scan s = tv_args_of((tv_str){padded, args.n});
    tv_str key, value;
    size_t n = 0;
    for (; tv_args_next(&s, &key, &value); n += 2) {
        assert_true(n < sizeof want / sizeof *want);
        assert_str(key, want[n]);
        assert_str(value, want[n + 1]);
    }
    assert_int_equal(n, sizeof want / sizeof *want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_layouts),
        cmocka_unit_test(reads_up_to_the_cut),
        cmocka_unit_test(reads_past_the_window),
        cmocka_unit_test(passes_over_the_oversized),
        cmocka_unit_test(reads_microseconds),
        cmocka_unit_test(tells_trace_events),
        cmocka_unit_test(reads_args),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
