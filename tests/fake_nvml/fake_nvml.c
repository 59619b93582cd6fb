/* A libnvidia-ml.so.1 of our own for the tests. What it answers stands in the file that the
 * environment names (TRIVET_FAKE_NVML): lines "name value" for the whole library, or
 * "GPU.name value" for one card; "!STATUS" in the place of a value is an error. What no line names
 * is not supported. Which functions exist at all is decided when it is built: FAKE_OLD leaves out
 * everything that came after NVML 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { ok = 0, invalid = 2, not_supported = 3, too_small = 7, most_gpus = 8 };

typedef struct card *handle;
struct card {
    int unused;
};

static struct card cards[most_gpus];

/* The word behind "key " in the file; NULL: none. */
static const char *value_of(const char *key)
{
    static char line[512];
    const char *path = getenv("TRIVET_FAKE_NVML");
    FILE *f = path ? fopen(path, "r") : NULL;
    const size_t n = strlen(key);
    const char *found = NULL;
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            found = line + n + 1;
    }
    if (f)
        (void)fclose(f);
    return found;
}

static const char *of_card(handle card, const char *name)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%d.%s", (int)(card - cards), name);
    return value_of(key);
}

/* The status that a value stands for; 0: it is a value. */
static int status_of(const char *value)
{
    if (!value || *value != '!')
        return value ? ok : not_supported;
    int status = 0;
    for (const char *p = value + 1; *p >= '0' && *p <= '9' && status < 10000; p++)
        status = 10 * status + (*p - '0');
    return status;
}

static int text(const char *value, char *to, unsigned length)
{
    const int status = status_of(value);
    if (status)
        return status;
    if (strlen(value) >= length)
        return too_small;
    (void)snprintf(to, length, "%s", value);
    return ok;
}

static int count(const char *value, unsigned *to)
{
    const int status = status_of(value);
    if (!status)
        *to = (unsigned)strtoul(value, NULL, 0);
    return status;
}

/* The k-th of several numbers. */
static unsigned long long nth(const char *value, unsigned k)
{
    char *end = NULL;
    unsigned long long v = 0;
    for (unsigned i = 0; i <= k; i++) {
        v = strtoull(value, &end, 0);
        value = end;
    }
    return v;
}

#define TEXT(function, name)                                                                       \
    EXPORT int function(handle card, char *to, unsigned length);                                   \
    int function(handle card, char *to, unsigned length)                                           \
    {                                                                                              \
        return text(of_card(card, name), to, length);                                              \
    }
#define COUNT(function, name)                                                                      \
    EXPORT int function(handle card, unsigned *to);                                                \
    int function(handle card, unsigned *to)                                                        \
    {                                                                                              \
        return count(of_card(card, name), to);                                                     \
    }
#define PAIR(function, name)                                                                       \
    EXPORT int function(handle card, unsigned *x, unsigned *y);                                    \
    int function(handle card, unsigned *x, unsigned *y)                                            \
    {                                                                                              \
        const char *value = of_card(card, name);                                                   \
        const int status = status_of(value);                                                       \
        if (status)                                                                                \
            return status;                                                                         \
        *x = (unsigned)nth(value, 0);                                                              \
        *y = (unsigned)nth(value, 1);                                                              \
        return ok;                                                                                 \
    }
#define COUNT_OF(function, name)                                                                   \
    EXPORT int function(handle card, unsigned kind, unsigned *to);                                 \
    int function(handle card, unsigned kind, unsigned *to)                                         \
    {                                                                                              \
        char key[96];                                                                              \
        (void)snprintf(key, sizeof key, "%s.%u", name, kind);                                      \
        return count(of_card(card, key), to);                                                      \
    }

/* ---- the library ---- */

EXPORT int nvmlInit(void);
int nvmlInit(void)
{
    const char *value = value_of("init");
    return value ? status_of(value) : ok;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return ok;
}

EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned length);
int nvmlSystemGetDriverVersion(char *to, unsigned length)
{
    return text(value_of("driver"), to, length);
}

EXPORT int nvmlSystemGetNVMLVersion(char *to, unsigned length);
int nvmlSystemGetNVMLVersion(char *to, unsigned length)
{
    return text(value_of("nvml"), to, length);
}

EXPORT int nvmlDeviceGetCount(unsigned *to);
int nvmlDeviceGetCount(unsigned *to)
{
    return count(value_of("count"), to);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, handle *to);
int nvmlDeviceGetHandleByIndex(unsigned index, handle *to)
{
    if (index >= most_gpus)
        return invalid;
    *to = &cards[index];
    const char *value = of_card(*to, "handle");
    return value ? status_of(value) : ok;
}

EXPORT int nvmlSystemGetProcessName(unsigned pid, char *to, unsigned length);
int nvmlSystemGetProcessName(unsigned pid, char *to, unsigned length)
{
    char key[64];
    (void)snprintf(key, sizeof key, "process.%u", pid);
    return text(value_of(key), to, length);
}

/* ---- cards ---- */

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
COUNT(nvmlDeviceGetDisplayActive, "display")
COUNT(nvmlDeviceGetPersistenceMode, "persistence")
COUNT(nvmlDeviceGetComputeMode, "compute_mode")
COUNT(nvmlDeviceGetFanSpeed, "fan")
COUNT(nvmlDeviceGetPerformanceState, "pstate")
COUNT(nvmlDeviceGetPowerUsage, "power_mw")
COUNT(nvmlDeviceGetPowerManagementLimit, "limit_mw")
COUNT(nvmlDeviceGetPowerManagementDefaultLimit, "default_mw")
COUNT(nvmlDeviceGetCurrPcieLinkGeneration, "gen")
COUNT(nvmlDeviceGetMaxPcieLinkGeneration, "gen_max")
COUNT(nvmlDeviceGetCurrPcieLinkWidth, "width")
COUNT(nvmlDeviceGetMaxPcieLinkWidth, "width_max")
PAIR(nvmlDeviceGetEccMode, "ecc")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "constraints_mw")
COUNT_OF(nvmlDeviceGetTemperature, "temp")
COUNT_OF(nvmlDeviceGetTemperatureThreshold, "threshold")
COUNT_OF(nvmlDeviceGetClockInfo, "clock")
COUNT_OF(nvmlDeviceGetMaxClockInfo, "clock_max")

EXPORT int nvmlDeviceGetPciInfo(handle card, void *to);
int nvmlDeviceGetPciInfo(handle card, void *to)
{
    const char *value = of_card(card, "bus");
    const int status = status_of(value);
    if (!status)
        (void)snprintf(to, 16, "%s", value);
    return status;
}

EXPORT int nvmlDeviceGetMemoryInfo(handle card, unsigned long long to[3]);
int nvmlDeviceGetMemoryInfo(handle card, unsigned long long to[3])
{
    const char *value = of_card(card, "memory"); /* total, free, used */
    const int status = status_of(value);
    for (unsigned k = 0; !status && k < 3; k++)
        to[k] = nth(value, k);
    return status;
}

EXPORT int nvmlDeviceGetUtilizationRates(handle card, unsigned to[2]);
int nvmlDeviceGetUtilizationRates(handle card, unsigned to[2])
{
    const char *value = of_card(card, "util");
    const int status = status_of(value);
    for (unsigned k = 0; !status && k < 2; k++)
        to[k] = (unsigned)nth(value, k);
    return status;
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(handle card, unsigned long long *to);
int nvmlDeviceGetCurrentClocksThrottleReasons(handle card, unsigned long long *to)
{
    const char *value = of_card(card, "reasons");
    const int status = status_of(value);
    if (!status)
        *to = nth(value, 0);
    return status;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(handle card, unsigned *n, void *to);
int nvmlDeviceGetComputeRunningProcesses(handle card, unsigned *n, void *to)
{
    struct {
        unsigned pid;
        unsigned long long used;
    } *v = to;
    const char *value = of_card(card, "compute"); /* pid and bytes, pair after pair */
    const int status = status_of(value);
    if (status)
        return status;
    unsigned got = 0;
    for (; got < *n && nth(value, 2 * got); got++) {
        v[got].pid = (unsigned)nth(value, 2 * got);
        v[got].used = nth(value, 2 * got + 1);
    }
    *n = got;
    return ok;
}

#ifndef FAKE_OLD
/* ---- what came later ---- */

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return nvmlInit();
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *to);
int nvmlSystemGetCudaDriverVersion(int *to)
{
    const char *value = value_of("cuda");
    const int status = status_of(value);
    if (!status)
        *to = (int)nth(value, 0);
    return status;
}

COUNT(nvmlDeviceGetEnforcedPowerLimit, "enforced_mw")
PAIR(nvmlDeviceGetMigMode, "mig")
COUNT(nvmlDeviceGetMaxMigDeviceCount, "mig_most")
COUNT(nvmlDeviceGetPcieReplayCounter, "replays")
COUNT_OF(nvmlDeviceGetNvLinkState, "link")
COUNT_OF(nvmlDeviceGetNvLinkRemoteDeviceType, "link_type")

EXPORT int nvmlDeviceGetPciInfo_v3(handle card, void *to);
int nvmlDeviceGetPciInfo_v3(handle card, void *to)
{
    const char *value = of_card(card, "bus");
    const int status = status_of(value);
    if (!status) {
        (void)snprintf(to, 16, "%s", value);
        (void)snprintf((char *)to + 36, 32, "0000%s", value);
    }
    return status;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(handle card, unsigned link, void *to);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(handle card, unsigned link, void *to)
{
    char key[64];
    (void)snprintf(key, sizeof key, "link_end.%u", link);
    const char *value = of_card(card, key);
    const int status = status_of(value);
    if (!status)
        (void)snprintf((char *)to + 36, 32, "0000%s", value);
    return status;
}

EXPORT int nvmlDeviceGetNvLinkErrorCounter(handle card, unsigned link, unsigned kind,
                                           unsigned long long *to);
int nvmlDeviceGetNvLinkErrorCounter(handle card, unsigned link, unsigned kind,
                                    unsigned long long *to)
{
    char key[64];
    (void)snprintf(key, sizeof key, "link_errors.%u", link);
    const char *value = of_card(card, key);
    const int status = status_of(value);
    if (!status)
        *to = nth(value, kind);
    return status;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(handle card, void *to);
int nvmlDeviceGetMemoryInfo_v2(handle card, void *to)
{
    struct {
        unsigned version;
        unsigned long long total, reserved, free, used;
    } *m = to;
    unsigned long long v[3] = {0};
    if (m->version != (sizeof *m | 2u << 24))
        return 25; /* the version does not match */
    const int status = nvmlDeviceGetMemoryInfo(card, v);
    m->total = v[0];
    m->free = v[1];
    m->used = v[2];
    m->reserved = v[0] - v[1] - v[2];
    return status;
}

EXPORT int nvmlDeviceGetMemoryErrorCounter(handle card, unsigned type, unsigned counter,
                                           unsigned location, unsigned long long *to);
int nvmlDeviceGetMemoryErrorCounter(handle card, unsigned type, unsigned counter, unsigned location,
                                    unsigned long long *to)
{
    char key[64];
    (void)snprintf(key, sizeof key, "errors.%u.%u.%u", type, counter, location);
    const char *value = of_card(card, key);
    const int status = status_of(value);
    if (!status)
        *to = nth(value, 0);
    return status;
}

EXPORT int nvmlDeviceGetRemappedRows(handle card, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(handle card, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    const char *value = of_card(card, "remapped");
    const int status = status_of(value);
    if (status)
        return status;
    *corrected = (unsigned)nth(value, 0);
    *uncorrected = (unsigned)nth(value, 1);
    *pending = (unsigned)nth(value, 2);
    *failed = (unsigned)nth(value, 3);
    return ok;
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(handle x, handle y, unsigned *to);
int nvmlDeviceGetTopologyCommonAncestor(handle x, handle y, unsigned *to)
{
    (void)y;
    return count(of_card(x, "ancestor"), to);
}

EXPORT int nvmlDeviceGetP2PStatus(handle x, handle y, unsigned capability, unsigned *to);
int nvmlDeviceGetP2PStatus(handle x, handle y, unsigned capability, unsigned *to)
{
    (void)y;
    char key[64];
    (void)snprintf(key, sizeof key, "p2p.%u", capability);
    return count(of_card(x, key), to);
}

EXPORT int nvmlDeviceGetCpuAffinity(handle card, unsigned n, unsigned long *to);
int nvmlDeviceGetCpuAffinity(handle card, unsigned n, unsigned long *to)
{
    const char *value = of_card(card, "cpus");
    const int status = status_of(value);
    if (!status && n)
        to[0] = (unsigned long)nth(value, 0);
    return status;
}

EXPORT int nvmlDeviceGetFieldValues(handle card, int n, void *to);
int nvmlDeviceGetFieldValues(handle card, int n, void *to)
{
    struct field {
        unsigned id, scope;
        long long time, latency;
        unsigned type;
        int status;
        union {
            unsigned count;
            int number;
            unsigned long long wide;
        } v;
    } *v = to;
    for (int i = 0; i < n; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "field.%u", v[i].id);
        const char *value = of_card(card, key);
        v[i].status = status_of(value);
        v[i].type = 1;
        v[i].v.wide = 0;
        if (!v[i].status && *value == '-')
            v[i].v.number = -(int)nth(value + 1, 0);
        else if (!v[i].status)
            v[i].v.count = (unsigned)nth(value, 0);
    }
    return ok;
}
#endif
