/* Errors of installation and start that name their cause themselves: one rule each. */
#include <string.h>

#include "environment_judges.h"

/* Values of the error that the texts of its rule name. */
static void put_values(tv_inquiry *q, tv_finding *f, const tv_sighting *s)
{
    static const char *const words[] = {"library", "symbol",     "symbol_version", "variable",
                                        "nvcc",    "cuda_build", "capability",     "arch"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        tv_found_str(q, f, words[i], tv_noted_str(&s->facts, words[i]));
    tv_found_str(q, f, "gpu", tv_noted_str(&s->facts, "product"));
    tv_found_num(q, f, "port", TV_ARG_NUMBER, tv_noted_num(&s->facts, "port"));
}

typedef struct error_rule {
    const char *id;
    const char *what;
    const char *cause; /* instead of the rule's; NULL: none */
} error_rule;

static const error_rule errors[] = {
    {"E01", "port-in-use", NULL},
    {"E02", "variable-missing", NULL},
    {"E03", "rendezvous-timeout", NULL},
    {"E04", "invalid-device", NULL},
    {"E05", "library-missing", NULL},
    {"E06", "glibcxx", NULL},
    {"E06", "glibc",
     N_("The program was built on a newer system: its C library is newer than this one's. The C "
        "library cannot be replaced; take a package or container for this system.")},
    {"E07", "extension-abi", NULL},
    {"E07", "mkl-mismatch",
     N_("The MKL that is installed is newer than the one this build of PyTorch was linked with, "
        "and lacks a symbol that it needs.")},
    {"E08", "torchvision-mismatch", NULL},
    {"E09", "numpy-abi", NULL},
    {"E10", "toolkit-mismatch", NULL},
    {"E10", "nvcc-arch",
     N_("The nvcc that compiles the extension does not know this card's generation: it is older "
        "than the card.")},
    {"E11", "nccl-missing", NULL},
    {"E12", "forked-cuda", NULL},
    {"E13", "open-files", NULL},
    {"E15", "old-card", NULL},
    {"E16", "cudnn-not-initialized", NULL},
    {"E16", "cublas-not-initialized", NULL},
    {"E17", "group-missing", NULL},
    {"E18", "compat-library", NULL},
};

static void judge_error(tv_inquiry *q, const tv_rule *rule)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (strcmp(errors[i].id, rule->id) != 0)
            continue;
        for (const tv_sighting *s = tv_error_named(q->scene, NULL, errors[i].what); s;
             s = tv_error_named(q->scene, s, errors[i].what)) {
            tv_finding *f = tv_found(q, rule, s, NULL);
            if (errors[i].cause)
                f->cause = errors[i].cause;
            put_values(q, f, s);
            f->weight = 0.6;
        }
    }
}

/* libcuda.so.1 is the driver's own: a package cannot bring it. */
static void judge_library(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_error_named(q->scene, NULL, "library-missing"); s;
         s = tv_error_named(q->scene, s, "library-missing")) {
        const tv_str library = tv_noted_str(&s->facts, "library");
        static const char *const heads[] = {
            "libcuda",     "libcudnn",    "libcublas",     "libcufft", "libcurand",
            "libcusparse", "libcusolver", "libnccl",       "libnvrtc", "libnvJitLink",
            "libnvinfer",  "libcupti",    "libnvToolsExt", "libcudart"};
        bool cuda = !library.n; /* "Cannot dlopen some GPU libraries" names none */
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            cuda = cuda || tv_str_starts(library, tv_str_of(heads[i]));
        if (!cuda)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        put_values(q, f, s);
        f->weight = 0.6;
        if (tv_str_starts(library, TV_S("libcuda.so")))
            f->cause =
                N_("libcuda.so belongs to the driver, not to CUDA: no driver is installed, or "
                   "the container was started without GPUs.");
        else if (!library.n)
            f->cause = N_("TensorFlow found no CUDA libraries of the release it was built with and "
                          "goes on without GPUs.");
    }
}

static void judge_build(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_error_named(q->scene, NULL, "module-missing"); s;
         s = tv_error_named(q->scene, s, "module-missing"))
        if (tv_noted_bool(&s->facts, "during_build", false))
            tv_found(q, rule, s, NULL)->weight = 0.6;
}

/* No GPU, and nothing else that says why: the first thing to look at. */
static void judge_none(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const whats[] = {"no-driver", "no-gpu"};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
        for (const tv_sighting *s = tv_error_named(q->scene, NULL, whats[i]); s;
             s = tv_error_named(q->scene, s, whats[i])) {
            tv_finding *f = tv_found(q, rule, s, NULL);
            f->weight = 0.5;
            if (i == 1)
                f->cause = N_("The driver answers, but this process is shown no card: "
                              "CUDA_VISIBLE_DEVICES is empty or names cards that do not exist, the "
                              "scheduler gave none, or the container has none.");
            tv_ask(
                q, "nvidia-smi; echo \"[$CUDA_VISIBLE_DEVICES]\"; ls -l /dev/nvidia*",
                N_("In the same shell or container as the program: shows whether the driver, the "
                   "devices or the variable is missing."));
        }
}

typedef struct package_pair {
    const char *gpu;
    const char *cpu;
} package_pair;

static const package_pair pairs[] = {
    {"paddlepaddle-gpu", "paddlepaddle"},
    {"onnxruntime-gpu", "onnxruntime"},
    {"tensorflow", "tensorflow-cpu"},
    {"tensorflow-gpu", "tensorflow-cpu"},
};

static const tv_note *package_of(const tv_sighting *s, const char *name)
{
    const tv_note *list = tv_noted(&s->facts, "packages");
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next)
        if (tv_noted_is(p, "name", name))
            return p;
    return NULL;
}

static void judge_pairs(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "pip"); s; s = tv_scene_next(s, "pip"))
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            const tv_note *gpu = package_of(s, pairs[i].gpu), *cpu = package_of(s, pairs[i].cpu);
            if (!gpu || !cpu)
                continue;
            tv_finding *f = tv_found(q, rule, s, cpu);
            tv_found_also(q, f, s, gpu);
            tv_found_str(q, f, "gpu_package", tv_str_of(pairs[i].gpu));
            tv_found_str(q, f, "cpu_package", tv_str_of(pairs[i].cpu));
            tv_found_str(q, f, "gpu_version", tv_noted_str(gpu, "version"));
            tv_found_str(q, f, "cpu_version", tv_noted_str(cpu, "version"));
            f->weight = 0.6;
        }
}

static const tv_rule rules[] = {
    {
        .id = "E01",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The port of the rendezvous is in use"),
        .cause =
            N_("Another process holds the port that this job wants to meet at: a second job on "
               "the same host with the default port, or a process left over from the last "
               "run."),
        .decided = N_("A message says \"Address already in use\" or EADDRINUSE."),
        .unless = N_("When a web server or a profiler is what fails to bind, change its own port."),
        .source = "https://pytorch.org/docs/stable/elastic/run.html",
        .steps = {{.command = "ss -ltnp 'sport = :{port}'",
                   .why = N_("Shows who holds it. A job of another user is no leftover.")},
                  {.command = "torchrun --master_port=29501 --nproc_per_node=gpu train.py",
                   .why =
                       N_("Take another port; --standalone, or --rdzv_endpoint=localhost:0, takes "
                          "a free one.")}},
        .judge = judge_error,
    },
    {
        .id = "E02",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The script was started without a launcher"),
        .cause =
            N_("The process group reads {variable} from the environment, and it is not set: the "
               "launcher sets it for every rank."),
        .decided = N_("A message says that an environment variable is expected but not set."),
        .unless = N_("Under Slurm or MPI the variables have other names and must be copied."),
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.command = "torchrun --standalone --nproc_per_node=gpu train.py",
                   .why = N_("Instead of python train.py: sets RANK, LOCAL_RANK, WORLD_SIZE, "
                             "MASTER_ADDR and MASTER_PORT.")}},
        .judge = judge_error,
    },
    {
        .id = "E03",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The ranks do not find each other"),
        .cause = N_("A rank could not reach the rendezvous in time: another host has not started, "
                    "the address or port is wrong, or a firewall lies between."),
        .decided =
            N_("A message says that the client socket timed out or failed to connect, or that "
               "a store based barrier timed out."),
        .unless = N_("If rank 0 ended with an error of its own, that one comes first."),
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.command = "nc -vz $MASTER_ADDR {port}",
                   .why = N_("From another host: the port must be reachable while rank 0 waits.")},
                  {.command = "getent hosts $MASTER_ADDR; ip -br addr",
                   .why =
                       N_("The name must lead to an address of the network that the hosts share, "
                          "not to 127.0.1.1.")}},
        .judge = judge_error,
    },
    {
        .id = "E04",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A device number that does not exist"),
        .cause = N_("The program asks for a card by a number that is not there. Cards are counted "
                    "from 0 among those that CUDA_VISIBLE_DEVICES shows, not as nvidia-smi counts "
                    "them."),
        .decided = N_("A message says \"invalid device ordinal\" or that a device is invalid."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
        .steps = {{.command = "python -c \"import torch; print(torch.cuda.device_count())\"",
                   .why = N_("How many there are; the largest number is one less.")},
                  {.command = "echo \"[$CUDA_VISIBLE_DEVICES]\"",
                   .why = N_("With one visible card every rank's card is 0.")}},
        .judge = judge_error,
    },
    {
        .id = "E05",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A library of CUDA is missing"),
        .cause = N_("The loader does not find {library}: the package was built for another CUDA "
                    "release than the one that is installed, or its libraries are not on the "
                    "path."),
        .decided = N_("A message says that a library of CUDA, cuDNN or NCCL cannot be opened."),
        .unless = N_("TensorFlow warns about TensorRT's libraries; without TensorRT that is "
                     "harmless."),
        .source = "https://man7.org/linux/man-pages/man8/ld.so.8.html",
        .steps = {{.command = "ldconfig -p | grep {library}; pip list | grep -i nvidia",
                   .why =
                       N_("Whether it is there under another number: libcudart.so.11 is CUDA 11, "
                          "libcudart.so.12 is CUDA 12.")},
                  {.why = N_("Install the build of the framework for the CUDA that is there. Links "
                             "from one number to another only hide the fault.")}},
        .judge = judge_library,
    },
    {
        .id = "E06",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The C++ library is older than the program needs"),
        .cause =
            N_("The program needs {symbol_version}, and the libstdc++ that is found first does "
               "not have it: the system's own, or the one of a conda environment."),
        .decided = N_("A message says that a version of GLIBCXX, CXXABI or GLIBC is not found."),
        .unless = NULL,
        .source = "https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html",
        .steps = {{.command = "strings $CONDA_PREFIX/lib/libstdc++.so.6 | grep {symbol_version}",
                   .why = N_("Whether the environment's own library has it.")},
                  {.command = "conda install -c conda-forge libstdcxx-ng",
                   .undo = "conda install --revision 0",
                   .why = N_("Brings a newer one into the environment; \"conda list --revisions\" "
                             "numbers the states to go back to.")}},
        .judge = judge_error,
    },
    {
        .id = "E07",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("An extension was built for another version of the framework"),
        .cause =
            N_("A compiled extension asks for {symbol}, which this version of the framework does "
               "not have: it was built against another one, or with the other C++ ABI."),
        .decided = N_("An undefined symbol of the framework's own name space (c10, at, torch, "
                      "paddle) or of MKL."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/cpp_extension.html",
        .steps = {{.why = N_("Build the extension again in this environment with "
                             "--no-build-isolation, or install its wheel for exactly this version "
                             "of framework, CUDA and Python.")},
                  {.command = "python -c \"import torch; print(torch.__version__, "
                              "torch.compiled_with_cxx11_abi())\"",
                   .why = N_("Both are part of the names of such wheels.")}},
        .judge = judge_error,
    },
    {
        .id = "E08",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("torch and torchvision do not belong together"),
        .cause = N_("torchvision was built for another torch, or one of the two is the CPU build: "
                    "its operators are not registered."),
        .decided =
            N_("\"operator torchvision::nms does not exist\", or a message that the two were "
               "built with different CUDA versions."),
        .unless = NULL,
        .source = "https://github.com/pytorch/vision",
        .steps = {{.command = "pip install --force-reinstall torch torchvision --index-url "
                              "https://download.pytorch.org/whl/cu126",
                   .undo = "pip install -r requirements-before.txt",
                   .why = N_("Both in one command from one index; keep \"pip freeze > "
                             "requirements-before.txt\" first, and take the CUDA that fits the "
                             "driver.")}},
        .judge = judge_error,
    },
    {
        .id = "E09",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("NumPy 2 under packages that were built for NumPy 1"),
        .cause = N_("A compiled package was built against NumPy 1, and NumPy 2 is installed: calls "
                    "between them fail, often only later."),
        .decided = N_("\"compiled using NumPy 1.x cannot be run in NumPy 2\" or \"numpy.dtype size "
                      "changed\"."),
        .unless = NULL,
        .source = "https://numpy.org/devdocs/numpy_2_0_migration_guide.html",
        .steps = {{.command = "pip install 'numpy<2'",
                   .undo = "pip install -U numpy",
                   .why = N_("Or update the package that the message names.")}},
        .judge = judge_error,
    },
    {
        .id = "E10",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The compiler is of another CUDA than the framework"),
        .cause = N_("The extension is compiled with nvcc {nvcc}, and the framework was built with "
                    "CUDA {cuda_build}: the major releases must be equal."),
        .decided = N_("The build says that the CUDA versions mismatch, or nvcc does not know the "
                      "card's architecture."),
        .unless = N_("A different minor release only warns."),
        .source = "https://pytorch.org/docs/stable/cpp_extension.html",
        .steps = {{.command = "ls -d /usr/local/cuda-*; which -a nvcc",
                   .why = N_("Which toolkits are there.")},
                  {.command = "export CUDA_HOME=/usr/local/cuda-{cuda_build}",
                   .undo = "unset CUDA_HOME",
                   .why = N_("Then build again.")}},
        .judge = judge_error,
    },
    {
        .id = "E11",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("This build of PyTorch has no NCCL"),
        .cause =
            N_("NCCL exists for Linux only, and not in builds for the CPU: on Windows and macOS "
               "the process group must use gloo."),
        .decided = N_("\"Distributed package doesn't have NCCL built in\"."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.why = N_("On Windows: run under WSL 2, or init_process_group(backend=\"gloo\") "
                             "for small jobs. On Linux: install a build for CUDA (S07).")}},
        .judge = judge_error,
    },
    {
        .id = "E12",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("CUDA is used in a forked process"),
        .cause = N_("A process that had already used CUDA was forked; the child cannot use it. "
                    "Loader workers do this when the data set puts tensors on the card."),
        .decided = N_("\"Cannot re-initialize CUDA in forked subprocess\"."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/notes/multiprocessing.html",
        .steps = {{.why =
                       N_("Return CPU tensors from the data set and move batches in the training "
                          "loop; or torch.multiprocessing.set_start_method(\"spawn\") before "
                          "anything touches CUDA.")}},
        .judge = judge_error,
    },
    {
        .id = "E13",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Too many open files"),
        .cause =
            N_("Workers pass tensors as file descriptors, and the process has reached its limit "
               "of them."),
        .decided = N_("\"Too many open files\" or \"received 0 items of ancdata\"."),
        .unless = N_("A program that never closes its files reaches any limit."),
        .source = "https://pytorch.org/docs/stable/multiprocessing.html",
        .steps = {{.command = "ulimit -n 65535",
                   .undo = "ulimit -n 1024",
                   .why =
                       N_("For this shell; lasting: nofile in /etc/security/limits.conf, docker's "
                          "--ulimit nofile=65535.")},
                  {.why = N_("Or torch.multiprocessing.set_sharing_strategy(\"file_system\").")}},
        .judge = judge_error,
    },
    {
        .id = "E14",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A package needs the framework while it is built"),
        .cause = N_("pip builds in an empty environment of its own, where the framework is not "
                    "installed; the package asks for it there."),
        .decided = N_("\"No module named 'torch'\" (or paddle, tensorflow) within the output of a "
                      "build."),
        .unless = NULL,
        .source = "https://pip.pypa.io/en/stable/reference/build-system/",
        .steps = {{.command = "pip install --no-build-isolation PACKAGE",
                   .undo = "pip uninstall PACKAGE",
                   .why = N_("With framework, ninja and packaging installed before.")}},
        .judge = judge_build,
    },
    {
        .id = "E15",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The card is too old for this precision or kernel"),
        .cause =
            N_("FlashAttention and bfloat16 need compute capability 8.0 or later (Ampere); this "
               "card is older."),
        .decided = N_("\"FlashAttention only supports Ampere GPUs or newer\", or the like for "
                      "bfloat16."),
        .unless = NULL,
        .source = "https://github.com/Dao-AILab/flash-attention",
        .steps = {{.why = N_("Use float16 (vLLM: --dtype half) and another attention "
                             "(attn_implementation=\"sdpa\").")}},
        .judge = judge_error,
    },
    {
        .id = "E16",
        .severity = TV_CRITICAL,
        .sure = TV_LOW,
        .title = N_("cuDNN or cuBLAS could not be initialised"),
        .cause =
            N_("Creating the library's handle failed. Most often no memory is left on the card "
               "for it; else the libraries do not fit the driver or each other, or an earlier "
               "kernel has already failed (an index out of range)."),
        .decided = N_("CUDNN_STATUS_NOT_INITIALIZED or CUBLAS_STATUS_NOT_INITIALIZED."),
        .unless = N_("A device-side assertion before it is the real error."),
        .source = "https://github.com/flexflow/flexflow-train/issues/51",
        .steps = {{.command = "nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv",
                   .why = N_("Less than 1 GiB free: free memory first.")},
                  {.command = "CUDA_LAUNCH_BLOCKING=1 python train.py",
                   .why = N_("Names the kernel that fails first; only for finding the fault.")}},
        .judge = judge_error,
    },
    {
        .id = "E17",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A collective before the process group exists"),
        .cause =
            N_("The script uses torch.distributed without having called init_process_group, or "
               "runs distributed code on one card."),
        .decided = N_("\"Default process group has not been initialized\"."),
        .unless = NULL,
        .source = "https://pytorch.org/docs/stable/distributed.html",
        .steps = {{.command = "torchrun --standalone --nproc_per_node=1 train.py",
                   .why = N_("Start it by the launcher, also on one card; SyncBatchNorm becomes "
                             "BatchNorm where there is no group.")}},
        .judge = judge_error,
    },
    {
        .id = "E18",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The compatibility library does not suit this card or driver"),
        .cause =
            N_("A libcuda of NVIDIA's cuda-compat package is found before the driver's own. It "
               "works on data-centre cards with drivers it was made for, and on no others."),
        .decided =
            N_("Errors 803 and 804: \"unsupported display driver / cuda driver combination\", "
               "\"forward compatibility was attempted on non supported HW\"."),
        .unless = N_("803 also comes after a driver update without a restart (S01)."),
        .source = "https://docs.nvidia.com/deploy/cuda-compatibility/",
        .steps = {{.command = "ldconfig -p | grep libcuda.so; ls /usr/local/cuda/compat",
                   .why = N_("Whether compat comes first.")},
                  {.command = "LD_LIBRARY_PATH= python -c \"import torch; "
                              "print(torch.cuda.is_available())\"",
                   .why = N_("If this works, take /usr/local/cuda/compat off the path.")}},
        .judge = judge_error,
    },
    {
        .id = "E19",
        .severity = TV_CRITICAL,
        .sure = TV_LOW,
        .title = N_("The program finds no GPU"),
        .cause =
            N_("No driver answers in the place where the program runs: it is not installed, not "
               "loaded, or the container was started without GPUs."),
        .decided = N_("\"Found no NVIDIA driver\", \"No CUDA GPUs are available\" or \"no "
                      "CUDA-capable device\"; findings that say why stand above it."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/",
        .steps = {{.command = "nvidia-smi; ls -l /dev/nvidia*; cat /proc/driver/nvidia/version",
                   .why = N_("In the same place: the driver, its devices, and its version.")}},
        .judge = judge_none,
    },
    {
        .id = "E20",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The CPU package hides the GPU package"),
        .cause =
            N_("{gpu_package} {gpu_version} and {cpu_package} {cpu_version} are both installed. "
               "They write to the same folder: the one that was installed last is used."),
        .decided = N_("A list of packages holds both of such a pair."),
        .unless = NULL,
        .source = "https://www.paddlepaddle.org.cn/documentation/docs/en/install/index_en.html",
        .steps = {{.command = "pip uninstall -y {cpu_package} {gpu_package} && pip install "
                              "{gpu_package}=={gpu_version}",
                   .undo = "pip install {cpu_package}=={cpu_version}",
                   .why = N_("Remove both, then install the one for GPUs again.")}},
        .judge = judge_pairs,
    },
};

extern const tv_rule_group tv_rule_group_install_rules;
const tv_rule_group tv_rule_group_install_rules = {"installation", N_("Installation and start"),
                                                   rules, sizeof rules / sizeof *rules};
