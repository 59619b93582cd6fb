/* What is taken out of a record, and what must stay: names, addresses and secrets in the forms in
 * which logs hold them, beside forms that only look like them. */
#include "testing.h"

#include "probe/redact.h"

typedef struct redact_case {
    const char *text;
    const char *want;
} redact_case;

static const redact_case cases[] = {
    /* addresses */
    {"peer 10.1.2.3:29500 up", "peer ip-1:29500 up"},
    {"10.1.2.3 and 10.1.2.4 and 10.1.2.3", "ip-1 and ip-2 and ip-1"},
    {"\xe4\xb8\xbb\xe6\x9c\xba"
     "10.0.0.5\xe5\xb7\xb2\xe6\x96\xad\xe5\xbc\x80",
     "\xe4\xb8\xbb\xe6\x9c\xbaip-1\xe5\xb7\xb2\xe6\x96\xad\xe5\xbc\x80"},
    {"listens on 127.0.0.1:8000, 0.0.0.0", "listens on 127.0.0.1:8000, 0.0.0.0"},
    {"driver 550.54.15, NCCL 2.21.5, 1.2.3.4.5", "driver 550.54.15, NCCL 2.21.5, 1.2.3.4.5"},
    {"inet6 fe80::a0ce:c8ff:fe12:3456/64", "inet6 ip-1/64"},
    {"2001:db8:0:0:0:0:0:17 is up", "ip-1 is up"},
    {"at::native::add and c10::cuda::free", "at::native::add and c10::cuda::free"},
    {"link/ether aa:bb:cc:dd:ee:ff brd", "link/ether mac-1 brd"},
    {"AA-BB-CC-DD-EE-FF", "mac-1"},
    {"/sys/class/net/enx001122334455/mtu:1500", "/sys/class/net/enxmac-1/mtu:1500"},
    {"node_guid b8:ce:f6:03:00:ab:cd:ef", "node_guid mac-1"},
    {"at 12:34:56 on 2026-12-01", "at 12:34:56 on 2026-12-01"},
    /* places on the bus stay */
    {"NVRM: Xid (PCI:0000:41:00): 79", "NVRM: Xid (PCI:0000:41:00): 79"},
    {"<gpu id=\"00000000:C1:00.0\">", "<gpu id=\"00000000:C1:00.0\">"},
    {"0000:41:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b5]",
     "0000:41:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:20b5]"},
    {"mlx5_0:1/IB eth0 nvme0n1 GPU3 NIC0", "mlx5_0:1/IB eth0 nvme0n1 GPU3 NIC0"},
    /* identifiers */
    {"GPU-8f3c1a2b-0d4e-4f5a-9b6c-7d8e9f0a1b2c x", "GPU-uuid-1 x"},
    {"MIG-8f3c1a2b-0d4e-4f5a-9b6c-7d8e9f0a1b2c", "MIG-uuid-1"},
    {"root=UUID=8f3c1a2b-0d4e-4f5a-9b6c-7d8e9f0a1b2c ro", "root=UUID=uuid-1 ro"},
    {"<serial>1563221004567</serial>", "<serial>serial-1</serial>"},
    {"<serial>N/A</serial>", "<serial>N/A</serial>"},
    {"    Serial Number                         : 1563221004567",
     "    Serial Number                         : serial-1"},
    {"    Serial Number                         : N/A",
     "    Serial Number                         : N/A"},
    {"usb 1-1: SerialNumber: 4C530001", "usb 1-1: SerialNumber: serial-1"},
    {"NVRM: GPU Board Serial Number: 1563221004567", "NVRM: GPU Board Serial Number: serial-1"},
    /* people and hosts */
    {"File \"/home/alice/secret/train.py\", line 3", "File \"/home/user-1/path-1.py\", line 3"},
    {"/home/alice/a.py /home/alice/b.py /home/bob/a.py",
     "/home/user-1/path-1.py /home/user-1/path-2.py /home/user-2/path-1.py"},
    {"/home/\xe5\xbc\xa0\xe4\xb8\x89/\xe6\x95\xb0\xe6\x8d\xae/x.csv", "/home/user-1/path-1.csv"},
    {"C:\\Users\\Alice\\proj\\x.py", "C:\\Users\\user-1\\path-1.py"},
    {"alice@node17.lab.example.com", "user-1@host-1"},
    {"(root@buildhost) (gcc 12)", "(root@host-1) (gcc 12)"},
    {"serial@7e201000 clock@ffff0000", "serial@7e201000 clock@ffff0000"},
    {"May 18 19:02:39 node17 kernel: NVRM: x", "May 18 19:02:39 host-1 kernel: NVRM: x"},
    {"2026-05-18T19:02:39+02:00 node17 kernel: x", "2026-05-18T19:02:39+02:00 host-1 kernel: x"},
    {"connect to storage.corp.internal", "connect to host-1"},
    {"see https://docs.nvidia.com/deploy", "see https://docs.nvidia.com/deploy"},
    {"libnvidia-ml.so.1 torch.nn.functional kernel.numa_balancing",
     "libnvidia-ml.so.1 torch.nn.functional kernel.numa_balancing"},
    {"<process_name>/data/team/venv/bin/train</process_name>",
     "<process_name>process-1</process_name>"},
    {"<process_name>python3</process_name>", "<process_name>python3</process_name>"},
    /* paths */
    {"open /data/team/x.bin failed", "open /path-1.bin failed"},
    {"/usr/lib/libc.so.6 /proc/meminfo /dev/shm", "/usr/lib/libc.so.6 /proc/meminfo /dev/shm"},
    {"</gpu></nvidia_smi_log>", "</gpu></nvidia_smi_log>"},
    {"12.5 GB/s, 3/4, I/O, N/A and /", "12.5 GB/s, 3/4, I/O, N/A and /"},
    /* secrets */
    {"HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUv", "HF_TOKEN=secret-1"},
    {"password: hunter2!", "password: secret-1"},
    {"key sk-proj-abcdefghijklmnopqrst", "key secret-1"},
    {"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "/path-1"},
    {"commit 0123456789abcdef0123456789abcdef01234567", "commit id-1"},
    {"_ZN3c104cuda20CUDACachingAllocator9AllocatorE",
     "_ZN3c104cuda20CUDACachingAllocator9AllocatorE"},
    {"", ""},
};

static tv_str redacted(tv_arena *a, const char *text)
{
    const tv_redact_names names = {0};
    tv_document document = {TV_S("x"), tv_str_of(text)};
    const tv_documents all = {&document, 1, 1};
    tv_documents clean = {0};
    tv_redact(a, &names, &all, &clean);
    return clean.v[0].text;
}

static void test_forms(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tv_str got = redacted(a, cases[i].text);
        wrong += !tv_str_is(got, cases[i].want);
        if (!tv_str_is(got, cases[i].want))
            print_error("\"%s\": got \"%.*s\", want \"%s\"\n", cases[i].text, TV_FMT(got),
                        cases[i].want);
    }
    tv_arena_close(a);
    assert_int_equal(wrong, 0);
}

/* The same name in two documents is the same stand-in; names that are known are found anywhere. */
static void test_documents(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_document v[] = {
        {TV_S("a"), TV_S("GPU-8f3c1a2b-0d4e-4f5a-9b6c-7d8e9f0a1b2c on trainbox, trainboxes")},
        {TV_S("b"), TV_S("trainbox: GPU-11112222-0d4e-4f5a-9b6c-7d8e9f0a1b2c, alice's "
                         "GPU-8f3c1a2b-0d4e-4f5a-9b6c-7d8e9f0a1b2c")},
    };
    const tv_documents all = {v, 2, 2};
    tv_documents clean = {0};
    const tv_redact_names names = {.host = TV_S("trainbox.lab"), .user = TV_S("alice")};
    tv_redact(a, &names, &all, &clean);
    assert_str(clean.v[0].text, "GPU-uuid-1 on host-1, trainboxes");
    assert_str(clean.v[1].text, "host-1: GPU-uuid-2, user-1's GPU-uuid-1");
    tv_arena_close(a);
}

/* Any bytes at all: nothing is read past the end. */
static void test_junk(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    uint32_t x = 12345;
    static const char alphabet[] = "a1:/@.-\\ \n<=\"homeUsersGPUserial\xe5\xbc\xa0\xff";
    for (unsigned round = 0; round < 2000; round++) {
        char text[64];
        const size_t n = round % 63;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            text[i] = alphabet[(x >> 16) % (sizeof alphabet - 1)];
        }
        text[n] = 0;
        (void)redacted(a, text);
    }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_junk),
    };
    return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
