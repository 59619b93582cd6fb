/* What the readers of environments, commands and scripts find, with what loggers and terminals put
 * around it. A case is a text and the facts that it must give, as JSON. */
#include "testing.h"

#include "trace/trace.h"

typedef struct want_row {
    const char *path;
    const char *json;
} want_row;

enum { MOST_WANTED = 14 };

typedef struct case_row {
    const char *name;
    const char *text;
    const char *kind;
    want_row want[MOST_WANTED];
} case_row;

/* Compact: what the writer puts between members does not matter here. */
static tv_str compact(tv_arena *a, const tv_note *note)
{
    tv_buf b = tv_buf_in(a), c = tv_buf_in(a);
    tv_json_out w = tv_json_write(&b);
    tv_json_note(&w, note);
    bool quoted = false;
    for (size_t i = 0; i < b.n; i++) {
        const char k = tv_buf_str(&b).p[i];
        quoted ^= k == '"';
        if (quoted || (k != ' ' && k != '\n'))
            tv_putc(&c, k);
    }
    return tv_buf_str(&c);
}

static void check_case(const case_row *row, tv_str text)
{
    tv_arena *a = test_arena();
    tv_scene scene = {0};
    assert_ok(a, tv_trace_document(a, TV_S("pasted.txt"), text, &scene));
    const tv_sighting *s = tv_scene_first(&scene, row->kind);
    if (!row->want[0].path) {
        if (s)
            fail_msg("%s: a %s was seen", row->name, row->kind);
        tv_arena_close(a);
        return;
    }
    if (!s)
        fail_msg("%s: no %s was seen", row->name, row->kind);
    for (const want_row *w = row->want; w->path; w++) {
        const tv_note *note = tv_noted(&s->facts, w->path);
        const tv_str got = note ? compact(a, note) : TV_S("absent");
        if (!tv_str_is(got, w->json))
            fail_msg("%s: %s is %.*s, want %s", row->name, w->path, TV_FMT(got), w->json);
    }
    tv_arena_close(a);
}

/* Every line with something before it, and the line end of Windows behind it. */
static tv_str dressed(tv_arena *a, const char *text, const char *before, const char *behind)
{
    tv_buf b = tv_buf_in(a);
    for (tv_cut cut = {.tail = tv_str_of(text), .found = true}; cut.found && cut.tail.n;) {
        cut = tv_str_cut(cut.tail, '\n');
        tv_puts(&b, before);
        tv_put(&b, cut.head);
        tv_puts(&b, behind);
        tv_putc(&b, '\n');
    }
    return tv_buf_str(&b);
}

static void check_all(const case_row *rows, size_t n, const char *before, const char *behind)
{
    tv_arena *a = test_arena();
    for (size_t i = 0; i < n; i++)
        check_case(&rows[i], dressed(a, rows[i].text, before, behind));
    tv_arena_close(a);
}

static const case_row environments[] = {
    {"0.4",
     "PyTorch version: 0.4.1\n"
     "Is debug build: No\n"
     "CUDA used to build PyTorch: 9.0.176\n"
     "\n"
     "OS: Ubuntu 16.04.5 LTS\n"
     "Python version: 3.6\n"
     "Is CUDA available: Yes\n"
     "CUDA runtime version: 9.0.176\n"
     "GPU models and configuration: \n"
     "GPU 0: TITAN Xp\n"
     "GPU 1: TITAN Xp\n"
     "\n"
     "Nvidia driver version: 384.130\n"
     "cuDNN version: Probably one of the following:\n",
     "collect_env",
     {{"torch", "\"0.4.1\""},
      {"cuda_build", "\"9.0.176\""},
      {"cuda_available", "true"},
      {"runtime", "\"9.0.176\""},
      {"gpus", "[\"TITAN Xp\",\"TITAN Xp\"]"},
      {"driver", "\"384.130\""}}},
    {"2.6",
     "PyTorch version: 2.6.0+cu124\n"
     "Is debug build: False\n"
     "CUDA used to build PyTorch: 12.4\n"
     "ROCM used to build PyTorch: N/A\n"
     "\n"
     "OS: Ubuntu 24.04.1 LTS (x86_64)\n"
     "Python version: 3.12.3 (main, Nov  6 2024, 18:32:19) [GCC 13.2.0] (64-bit runtime)\n"
     "Is CUDA available: True\n"
     "CUDA runtime version: Could not collect\n"
     "CUDA_MODULE_LOADING set to: LAZY\n"
     "GPU models and configuration: GPU 0: NVIDIA L40S\n"
     "Nvidia driver version: 560.35.03\n"
     "cuDNN version: Could not collect\n"
     "\n"
     "CPU:\n"
     "Architecture:                         x86_64\n"
     "CPU(s):                               64\n"
     "Model name:                           AMD EPYC 7543 32-Core Processor\n"
     "NUMA node(s):                         2\n",
     "collect_env",
     {{"torch", "\"2.6.0+cu124\""},
      {"cuda_build", "\"12.4\""},
      {"rocm_build", "null"},
      {"cuda_available", "true"},
      {"runtime", "null"},
      {"driver", "\"560.35.03\""},
      {"gpus", "[\"NVIDIA L40S\"]"},
      {"cudnn", "null"},
      {"cpus", "64"},
      {"numa_nodes", "2"},
      {"fullwidth_colon", "false"}}},
    {"vllm",
     "==============================\n"
     "       PyTorch Info\n"
     "==============================\n"
     "PyTorch version              : 2.7.0+cu126\n"
     "Is debug build               : False\n"
     "CUDA used to build PyTorch   : 12.6\n"
     "ROCM used to build PyTorch   : N/A\n"
     "\n"
     "==============================\n"
     "      CUDA / GPU Info\n"
     "==============================\n"
     "Is CUDA available            : True\n"
     "CUDA runtime version         : 12.6.85\n"
     "GPU models and configuration : \n"
     "GPU 0: NVIDIA H100 80GB HBM3\n"
     "GPU 1: NVIDIA H100 80GB HBM3\n"
     "\n"
     "Nvidia driver version        : 570.124.06\n"
     "cuDNN version                : Could not collect\n"
     "vLLM Version                 : 0.9.1\n",
     "collect_env",
     {{"torch", "\"2.7.0+cu126\""},
      {"cuda_build", "\"12.6\""},
      {"gpus", "[\"NVIDIA H100 80GB HBM3\",\"NVIDIA H100 80GB HBM3\"]"},
      {"driver", "\"570.124.06\""},
      {"runtime", "\"12.6.85\""},
      {"vllm", "\"0.9.1\""}}},
    {"rocm",
     "PyTorch version: 2.3.0+rocm6.0\n"
     "CUDA used to build PyTorch: N/A\n"
     "ROCM used to build PyTorch: 6.0.32830\n"
     "Is CUDA available: False\n"
     "GPU models and configuration: Could not collect\n"
     "Nvidia driver version: Could not collect\n",
     "collect_env",
     {{"cuda_build", "null"},
      {"rocm_build", "\"6.0.32830\""},
      {"gpus", "null"},
      {"driver", "null"},
      {"cause", "absent"}}},
    {"cpu",
     "PyTorch version: 1.13.1\n"
     "CUDA used to build PyTorch: None\n"
     "ROCM used to build PyTorch: N/A\n"
     "Is CUDA available: False\n"
     "Nvidia driver version: 525.85.12\n",
     "collect_env",
     {{"cuda_build", "null"}, {"cause", "\"cpu-only build\""}, {"cuda_available", "false"}}},
    {"hand typed",
     "Pytorch version 1.7.1\n"
     "CUDA used to build Pytorch 11.0\n"
     "Is CUDA available Yes\n"
     "Nvidia driver version 450.102.04\n",
     "collect_env",
     {{"torch", "\"1.7.1\""},
      {"cuda_build", "\"11.0\""},
      {"cuda_available", "true"},
      {"driver", "\"450.102.04\""}}},
    {"wide colons",
     "PyTorch version：1.9.0\n"
     "CUDA used to build PyTorch：11.1\n"
     "Is CUDA available：True\n"
     "GPU models and configuration：\n"
     "GPU 0：Tesla T4\n",
     "collect_env",
     {{"torch", "\"1.9.0\""}, {"gpus", "[\"Tesla T4\"]"}, {"fullwidth_colon", "true"}}},
    {"torch missing",
     "Collecting environment information...\n"
     "PyTorch version: N/A\n"
     "Is debug build: N/A\n"
     "CUDA used to build PyTorch: N/A\n"
     "ROCM used to build PyTorch: N/A\n"
     "Is CUDA available: N/A\n"
     "Nvidia driver version: 535.54.03\n",
     "collect_env",
     {{"torch", "null"}, {"cuda_build", "null"}, {"cuda_available", "null"}, {"cause", "absent"}}},
    {"transformers",
     "- `transformers` version: 4.41.2\n"
     "- Platform: Linux-5.15.0-x86_64-with-glibc2.35\n"
     "- PyTorch version (GPU?): 2.3.0+cu121 (True)\n"
     "- Tensorflow version (GPU?): not installed (NA)\n",
     "collect_env",
     {{"torch", "\"2.3.0+cu121\""},
      {"cuda_build", "\"12.1\""},
      {"cuda_available", "true"},
      {"transformers", "\"4.41.2\""}}},
    {"accelerate",
     "- `Accelerate` version: 0.30.1\n"
     "- PyTorch version (GPU?): 2.3.0+cpu (False)\n"
     "- GPU type: NVIDIA A40\n",
     "collect_env",
     {{"torch", "\"2.3.0+cpu\""},
      {"cuda_build", "null"},
      {"cuda_available", "false"},
      {"gpus", "[\"NVIDIA A40\"]"}}},
    {"mmcv",
     "sys.platform: linux\n"
     "Python: 3.8.16 (default) [GCC 11.2.0]\n"
     "CUDA available: True\n"
     "GPU 0,1: NVIDIA GeForce RTX 3080\n"
     "CUDA_HOME: /usr/local/cuda\n"
     "NVCC: Cuda compilation tools, release 11.3, V11.3.109\n"
     "PyTorch: 1.11.0+cu113\n"
     "PyTorch compiling details: PyTorch built with:\n",
     "collect_env",
     {{"torch", "\"1.11.0+cu113\""},
      {"cuda_build", "\"11.3\""},
      {"cuda_available", "true"},
      {"runtime", "\"11.3\""},
      {"gpus", "[\"NVIDIA GeForce RTX 3080\",\"NVIDIA GeForce RTX 3080\"]"}}},
    {"detectron2",
     "PyTorch                 1.10.0+cu113 @/opt/conda/lib/python3.8/site-packages/torch\n"
     "PyTorch debug build     False\n"
     "GPU available           Yes\n"
     "GPU 0                   Tesla V100-SXM2-32GB (arch=7.0)\n"
     "Driver version          460.91.03\n",
     "collect_env",
     {{"torch", "\"1.10.0+cu113\""},
      {"cuda_available", "true"},
      {"driver", "\"460.91.03\""},
      {"gpus", "[\"Tesla V100-SXM2-32GB\"]"}}},
    {"paddle",
     "Paddle version: 2.5.2\n"
     "Paddle With CUDA: True\n"
     "\n"
     "OS: ubuntu 20.04\n"
     "GCC version: (Ubuntu 9.4.0) 9.4.0\n"
     "Python version: 3.8.10\n"
     "CUDA version: 11.7.99\n"
     "cuDNN version: N/A\n"
     "Nvidia driver version: 515.65.01\n"
     "Nvidia driver List: \n"
     "GPU 0: Tesla T4\n",
     "collect_env",
     {{"paddle", "\"2.5.2\""},
      {"paddle_with_cuda", "true"},
      {"runtime", "\"11.7.99\""},
      {"cudnn", "null"},
      {"driver", "\"515.65.01\""},
      {"gpus", "[\"Tesla T4\"]"}}},
    {"prose is none",
     "The PyTorch version that we use is new.\n"
     "Is CUDA available in general? Perhaps.\n",
     "collect_env",
     {{NULL, NULL}}},
};

static const case_row short_reports[] = {
    {"nvcc",
     "nvcc: NVIDIA (R) Cuda compiler driver\n"
     "Cuda compilation tools, release 12.4, V12.4.131\n"
     "Build cuda_12.4.r12.4/compiler.34097967_0\n",
     "collect_env",
     {{"runtime", "\"12.4.131\""}}},
    {"paddle start",
     "W0605 20:31:22.415406 14896 gpu_context.cc:278] Please NOTE: device: 0, GPU Compute "
     "Capability: 7.5, Driver API Version: 11.4, Runtime API Version: 10.2\n"
     "W0605 20:31:22.419064 14896 gpu_context.cc:306] device: 0, cuDNN Version: 7.6.\n",
     "collect_env",
     {{"capability", "\"7.5\""},
      {"driver_max_cuda", "\"11.4\""},
      {"cuda_build", "\"10.2\""},
      {"cudnn", "\"7.6\""},
      {"framework", "\"paddle\""}}},
    {"run_check",
     "Running verify PaddlePaddle program ... \n"
     "PaddlePaddle works well on 4 GPUs.\n"
     "PaddlePaddle is installed successfully!\n",
     "collect_env",
     {{"cuda_available", "true"}, {"gpu_count", "4"}}},
    {"yolo",
     "YOLOv5 v7.0-72-g064365d Python-3.9.16 torch-2.0.0+cu118 CUDA:0 (NVIDIA GeForce RTX 4080, "
     "16376MiB)\n",
     "collect_env",
     {{"torch", "\"2.0.0+cu118\""},
      {"cuda_build", "\"11.8\""},
      {"cuda_available", "true"},
      {"gpus", "[\"NVIDIA GeForce RTX 4080\"]"}}},
    {"one liner",
     "$ python -c \"import torch; print(torch.__version__, torch.version.cuda, "
     "torch.cuda.is_available())\"\n"
     "2.2.0+cu121 12.1 False\n",
     "collect_env",
     {{"torch", "\"2.2.0+cu121\""}, {"cuda_build", "\"12.1\""}, {"cuda_available", "false"}}},
    {"prompt",
     ">>> import torch\n"
     ">>> torch.__version__\n"
     "'1.12.1+cpu'\n"
     ">>> torch.cuda.is_available()\n"
     "False\n"
     ">>> torch.cuda.get_arch_list()\n"
     "['sm_70', 'compute_90']\n"
     ">>> torch.cuda.get_device_capability()\n"
     "(8, 9)\n",
     "collect_env",
     {{"torch", "\"1.12.1+cpu\""},
      {"cuda_build", "null"},
      {"cuda_available", "false"},
      {"wheel_arches", "[\"sm_70\",\"compute_90\"]"},
      {"capability", "\"8.9\""}}},
    {"lightning",
     "* CUDA:\n"
     "\t- GPU:\n"
     "\t\t- NVIDIA A30\n"
     "\t- available:         True\n"
     "\t- version:           12.1\n"
     "* Packages:\n"
     "\t- torch:             2.4.0\n",
     "collect_env",
     {{"gpus", "[\"NVIDIA A30\"]"},
      {"cuda_available", "true"},
      {"cuda_build", "\"12.1\""},
      {"torch", "\"2.4.0\""}}},
};

static const case_row errors[] = {
    {"too old",
     "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version "
     "11040). Please update\n",
     "install-error",
     {{"what", "\"driver-too-old\""}, {"driver_max_cuda", "\"11.4\""}}},
    {"insufficient",
     "RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime "
     "version at x.cpp:50\n",
     "install-error",
     {{"what", "\"driver-too-old\""}}},
    {"condition",
     "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update "
     "your driver to a newer version\n",
     "install-error",
     {{"what", "\"driver-too-old\""}, {"cuda_build", "\"12.6\""}}},
    {"ngc",
     "ERROR: This container was built for NVIDIA Driver Release 550.54 or later, but\n"
     "       version 470.57.02 was detected and compatibility mode is UNAVAILABLE.\n",
     "install-error",
     {{"what", "\"driver-too-old\""},
      {"min_driver_for_build", "\"550.54\""},
      {"driver", "absent"}}},
    {"capability",
     "NVIDIA B200 with CUDA capability sm_100 is not compatible with the current PyTorch "
     "installation.\n"
     "The current PyTorch install supports CUDA capabilities sm_70 sm_80 sm_90.\n",
     "install-error",
     {{"what", "\"arch-missing\""},
      {"product", "\"NVIDIA B200\""},
      {"capability", "\"sm_100\""},
      {"wheel_arches", "[\"sm_70\",\"sm_80\",\"sm_90\"]"}}},
    {"old card",
     "Found GPU0 GeForce GTX 770 which is of cuda capability 3.0.\n"
     "    PyTorch no longer supports this GPU because it is too old.\n",
     "install-error",
     {{"what", "\"arch-missing\""},
      {"product", "\"GeForce GTX 770\""},
      {"capability", "\"sm_30\""},
      {"dropped", "true"}}},
    {"new card",
     "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n"
     "Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
     "(8.0) - (12.0)\n",
     "install-error",
     {{"what", "\"arch-missing\""}, {"dropped", "false"}}},
    {"below the least",
     "Found GPU0 NVIDIA GeForce GTX 1080 which is of cuda capability 6.1.\n"
     "Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
     "(7.0) - (12.0)\n",
     "install-error",
     {{"what", "\"arch-missing\""}, {"dropped", "true"}}},
    {"library",
     "OSError: libcublas.so.11: cannot open shared object file: No such file or directory\n",
     "install-error",
     {{"what", "\"library-missing\""}, {"library", "\"libcublas.so.11\""}}},
    {"tensorflow",
     "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic "
     "library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file\n",
     "install-error",
     {{"what", "\"library-missing\""}, {"library", "\"libcudnn.so.8\""}}},
    {"cudnn",
     "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 7, 0) but "
     "found runtime version (8, 4, 1)\n",
     "install-error",
     {{"what", "\"cudnn-mismatch\""},
      {"cudnn_built", "\"8, 7, 0\""},
      {"cudnn_found", "\"8, 4, 1\""}}},
    {"port",
     "RuntimeError: Address already in use, port: 29511\n",
     "install-error",
     {{"what", "\"port-in-use\""}, {"port", "29511"}}},
    {"port of a store",
     "[W] The server socket has failed to bind to [::]:29502 (errno: 98 - Address already in "
     "use).\n",
     "install-error",
     {{"what", "\"port-in-use\""}, {"port", "29502"}}},
    {"variable",
     "ValueError: environment variable MASTER_ADDR expected, but not set\n",
     "install-error",
     {{"what", "\"variable-missing\""}, {"variable", "\"MASTER_ADDR\""}}},
    {"toolkit",
     "The detected CUDA version (12.8) mismatches the version that was used to compile\n"
     "PyTorch (12.1). Please make sure\n",
     "install-error",
     {{"what", "\"toolkit-mismatch\""}, {"nvcc", "\"12.8\""}, {"cuda_build", "\"12.1\""}}},
    {"twice",
     "AssertionError: Torch not compiled with CUDA enabled\n"
     "AssertionError: Torch not compiled with CUDA enabled\n",
     "install-error",
     {{"what", "\"cpu-build\""}, {"times", "2"}}},
    {"advice is none",
     "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n",
     "install-error",
     {{NULL, NULL}}},
};

static const case_row packages[] = {
    {"freeze",
     "numpy==1.26.4\n"
     "torch==2.4.0+cu121\n"
     "requests==2.31.0\n"
     "nvidia-nccl-cu12==2.20.5\n",
     "pip",
     {{"packages", "[{\"name\":\"numpy\",\"version\":\"1.26.4\"},{\"name\":\"torch\",\"version\":"
                   "\"2.4.0+cu121\"},{\"name\":\"nvidia-nccl-cu12\",\"version\":\"2.20.5\"}]"}}},
    {"list",
     "Package                  Version\n"
     "------------------------ ------------\n"
     "Flask                    3.0.0\n"
     "paddlepaddle-gpu         2.6.1.post112\n",
     "pip",
     {{"packages", "[{\"name\":\"paddlepaddle-gpu\",\"version\":\"2.6.1.post112\"}]"}}},
    {"conda",
     "# packages in environment at /opt/conda:\n"
     "#\n"
     "# Name                    Version                   Build  Channel\n"
     "pytorch                   1.13.1          py3.10_cuda11.7_cudnn8.5.0_0    pytorch\n"
     "openssl                   3.0.8                h0b41bf4_0    conda-forge\n",
     "pip",
     {{"packages", "[{\"name\":\"pytorch\",\"version\":\"1.13.1\",\"build\":\"py3.10_cuda11.7_"
                   "cudnn8.5.0_0\"}]"}}},
    {"tags",
     "[pip3] torchvision==0.19.0\n"
     "[conda] pytorch 2.4.0 py3.11_cpu_0 pytorch\n",
     "pip",
     {{"packages", "[{\"name\":\"torchvision\",\"version\":\"0.19.0\"},{\"name\":\"pytorch\","
                   "\"version\":\"2.4.0\",\"build\":\"py3.11_cpu_0\"}]"}}},
};

static const case_row variables[] = {
    {"shell",
     "export NCCL_DEBUG=INFO\n"
     "OMP_NUM_THREADS=4\n"
     "HOME=/root\n"
     "declare -x CUDA_VISIBLE_DEVICES=\"0,1\"\n"
     "set MASTER_PORT=29500\n",
     "environ",
     {{"vars", "{\"NCCL_DEBUG\":\"INFO\",\"OMP_NUM_THREADS\":\"4\",\"CUDA_VISIBLE_DEVICES\":\"0,"
               "1\",\"MASTER_PORT\":\"29500\"}"}}},
    {"docker file",
     "ENV NCCL_P2P_DISABLE 1\n"
     "ENV CUDA_HOME=/usr/local/cuda\n",
     "environ",
     {{"vars", "{\"NCCL_P2P_DISABLE\":\"1\",\"CUDA_HOME\":\"/usr/local/cuda\"}"}}},
    {"power shell",
     "$env:CUDA_VISIBLE_DEVICES = \"1\"\n",
     "environ",
     {{"vars", "{\"CUDA_VISIBLE_DEVICES\":\"1\"}"}}},
    {"log",
     "n1:9:9 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_2.\n",
     "environ",
     {{"vars", "{\"NCCL_IB_HCA\":\"mlx5_2\"}"}}},
    {"sentence is none",
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation\n",
     "environ",
     {{NULL, NULL}}},
};

static const case_row disks[] = {
    {"df",
     "Filesystem      Size  Used Avail Use% Mounted on\n"
     "/dev/sda2       100G   95G  5.0G  95% /\n"
     "shm              64M   64M     0 100% /dev/shm\n",
     "disk-space",
     {{"mounts", "[{\"device\":\"/dev/sda2\",\"mount\":\"/"
                 "\",\"size_bytes\":107374182400,\"used_bytes\":102005473280,\"avail_bytes\":"
                 "5368709120,\"use_frac\":0.95}]"}}},
    {"blocks",
     "Filesystem     1K-blocks     Used Available Use% Mounted on\n"
     "/dev/vda1       10485760 10485760         0 100% /data\n",
     "disk-space",
     {{"mounts.0.size_bytes", "10737418240"}, {"mounts.0.use_frac", "1"}}},
    {"inodes",
     "Filesystem      Inodes  IUsed IFree IUse% Mounted on\n"
     "/dev/vdb       6553600 6553600     0  100% /data\n",
     "disk-space",
     {{"mounts.0.inodes", "6553600"}, {"mounts.0.inodes_frac", "1"}}},
    {"error",
     "OSError: [Errno 28] No space left on device: '/out/e3.ckpt'\n",
     "disk-space",
     {{"error", "\"no space left\""}, {"path", "\"/out/e3.ckpt\""}}},
    {"quota",
     "OSError: [Errno 122] Disk quota exceeded\n",
     "disk-space",
     {{"error", "\"quota exceeded\""}}},
    {"shared memory is none",
     "RuntimeError: unable to write to file </torch_77_1>: No space left on device (28) /dev/shm\n",
     "disk-space",
     {{NULL, NULL}}},
};

static const case_row commands[] = {
    {"docker",
     "docker run --rm -it --gpus '\"device=0,2\"' --shm-size 16g --ulimit memlock=-1 -e "
     "NCCL_DEBUG=INFO -v /d:/d org/train:1 torchrun --standalone --nproc_per_node=2 train.py -j 12 "
     "-b 64\n",
     "command",
     {{"tool", "\"docker\""},
      {"gpus_asked", "\"\\\"device=0,2\\\"\""},
      {"shm_bytes", "17179869184"},
      {"memlock", "\"-1\""},
      {"image", "\"org/train:1\""},
      {"launcher", "\"torchrun\""},
      {"nproc_per_node", "\"2\""},
      {"standalone", "true"},
      {"script", "\"train.py\""},
      {"workers", "12"},
      {"batch", "64"},
      {"env", "{\"NCCL_DEBUG\":\"INFO\"}"}}},
    {"lines",
     "docker run -d \\\n"
     "  --runtime=nvidia \\\n"
     "  --ipc=host --memory=64g --cpus=16 \\\n"
     "  org/train:1\n",
     "command",
     {{"runtime", "\"nvidia\""},
      {"ipc", "\"host\""},
      {"memory_bytes", "68719476736"},
      {"cpus", "16"},
      {"image", "\"org/train:1\""}}},
    {"launch module",
     "CUDA_VISIBLE_DEVICES=0,1 python -m torch.distributed.launch --nproc_per_node 2 --master_port "
     "29600 tools/train.py --data.num_workers=4\n",
     "command",
     {{"launcher", "\"torch.distributed.launch\""},
      {"nproc_per_node", "\"2\""},
      {"master_port", "29600"},
      {"workers", "4"},
      {"env", "{\"CUDA_VISIBLE_DEVICES\":\"0,1\"}"}}},
    {"paddle",
     "python -m paddle.distributed.launch --gpus \"0,1,2,3\" tools/train.py -c a.yml -o "
     "TrainReader.worker_num=8\n",
     "command",
     {{"launcher", "\"paddle\""}, {"devices", "\"0,1,2,3\""}, {"workers", "8"}}},
    {"deepspeed",
     "deepspeed --num_gpus=8 --hostfile hosts train.py --per_device_train_batch_size 4\n",
     "command",
     {{"launcher", "\"deepspeed\""},
      {"nproc_per_node", "\"8\""},
      {"hostfile", "\"hosts\""},
      {"batch", "4"}}},
    {"wrapped",
     "sudo numactl -N 1 -m 1 timeout 60 mpirun -np 16 --allow-run-as-root -x NCCL_IB_HCA=mlx5 "
     "python3 bench.py\n",
     "command",
     {{"launcher", "\"mpirun\""},
      {"processes", "16"},
      {"pinned", "\"numactl\""},
      {"env", "{\"NCCL_IB_HCA\":\"mlx5\"}"},
      {"script", "\"bench.py\""}}},
    {"inner shell",
     "docker run --gpus all org/train:1 bash -c 'cd /w && accelerate launch --num_processes 4 "
     "train.py --num_workers 6'\n",
     "command",
     {{"launcher", "\"accelerate\""}, {"num_processes", "4"}, {"workers", "6"}}},
    {"slurm",
     "#!/bin/bash\n"
     "#SBATCH --nodes=2\n"
     "#SBATCH --gres=gpu:a100:4\n"
     "#SBATCH --cpus-per-task=32\n"
     "#SBATCH --mem=256G\n",
     "command",
     {{"tool", "\"sbatch\""},
      {"nodes", "2"},
      {"gpus_per_node", "4"},
      {"cpus_per_task", "32"},
      {"memory_bytes", "274877906944"}}},
    {"pod",
     "apiVersion: v1\n"
     "kind: Pod\n"
     "spec:\n"
     "  containers:\n"
     "  - name: a\n"
     "    image: org/train:1\n"
     "    command: [\"torchrun\", \"--nproc_per_node=2\", \"train.py\"]\n"
     "    env:\n"
     "    - name: NCCL_DEBUG\n"
     "      value: \"INFO\"\n"
     "    resources:\n"
     "      limits:\n"
     "        cpu: 500m\n"
     "        memory: 8Gi\n"
     "        nvidia.com/gpu: 2\n"
     "    volumeMounts:\n"
     "    - mountPath: /dev/shm\n"
     "      name: s\n"
     "  volumes:\n"
     "  - name: s\n"
     "    emptyDir:\n"
     "      medium: Memory\n",
     "command",
     {{"tool", "\"kubernetes\""},
      {"image", "\"org/train:1\""},
      {"gpus_per_node", "2"},
      {"cpus", "0.5"},
      {"memory_bytes", "8589934592"},
      {"shm_mount", "\"emptyDir Memory\""},
      {"launcher", "\"torchrun\""},
      {"env", "{\"NCCL_DEBUG\":\"INFO\"}"}}},
    {"compose",
     "services:\n"
     "  t:\n"
     "    image: org/train:1\n"
     "    shm_size: 2gb\n"
     "    ipc: host\n"
     "    environment:\n"
     "      - NCCL_DEBUG=WARN\n"
     "    command: python train.py --workers 2\n",
     "command",
     {{"tool", "\"compose\""},
      {"shm_bytes", "2147483648"},
      {"ipc", "\"host\""},
      {"env", "{\"NCCL_DEBUG\":\"WARN\"}"},
      {"workers", "2"}}},
    {"prose is none",
     "You may use docker run --gpus all for this, as the guide says.\n",
     "command",
     {{NULL, NULL}}},
};

static const case_row scripts[] = {
    {"script",
     "import torch\n"
     "from torch.utils.data import DataLoader\n"
     "loader = DataLoader(\n"
     "    data,  # pictures\n"
     "    batch_size=32,\n"
     "    num_workers=cfg.workers,\n"
     "    pin_memory=True,\n"
     ")\n"
     "for x in loader:\n"
     "    loss = model(x.cuda())\n"
     "    loss.backward()\n",
     "script",
     {{"framework", "\"pytorch\""},
      {"loaders.0.batch", "32"},
      {"loaders.0.workers", "null"},
      {"loaders.0.pin_memory", "true"}}},
    {"own variables",
     "import os\nimport torch\n"
     "os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"\n"
     "os.environ.setdefault(\"MASTER_PORT\", \"29500\")\n"
     "if os.environ[\"RANK\"] == \"0\":\n"
     "    pass\n",
     "script",
     {{"env", "{\"CUDA_LAUNCH_BLOCKING\":\"1\",\"MASTER_PORT\":\"29500\"}"}}},
    {"text is no code",
     "\"\"\"\n"
     "import torch\n"
     "nn.DataParallel(x)\n"
     "\"\"\"\n"
     "import torch\n"
     "x = 1\n"
     "model = torch.nn.Linear(1, 1)\n"
     "opt = torch.optim.SGD(model.parameters(), 1)\n",
     "script",
     {{"lint", "absent"}}},
    {"traceback is none",
     "  File \"a.py\", line 1, in <module>\n"
     "    import torch\n"
     "ModuleNotFoundError: No module named 'x'\n",
     "script",
     {{NULL, NULL}}},
};

static const case_row latencies[] = {
    {"unit behind",
     "req 0 latency: 50 ms\n"
     "req 1 latency: 10 ms\n"
     "req 2 latency: 10 ms\n"
     "req 3 latency: 10 ms\n"
     "req 4 latency: 10 ms\n"
     "req 5 latency: 10 ms\n"
     "req 6 latency: 10 ms\n"
     "req 7 latency: 20 ms\n",
     "latency",
     {{"calls", "8"}, {"first_s", "0.05"}, {"median_s", "0.01"}}},
    {"unit before",
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n"
     "infer time_ms=8\n",
     "latency",
     {{"calls", "9"}, {"median_s", "0.008"}}},
    {"trtexec",
     "[I] Latency: min = 1.0 ms, max = 9.0 ms, mean = 1.3 ms, median = 1.2 ms, percentile(90%) = "
     "1.5 ms, percentile(99%) = 7.5 ms\n",
     "latency",
     {{"median_s", "0.0012"}, {"p99_s", "0.0075"}}},
    {"governor",
     "$ cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor\n"
     "ondemand\n"
     "ondemand\n"
     "performance\n",
     "cpu-power",
     {{"governor", "\"ondemand\""}, {"governors", "{\"ondemand\":2,\"performance\":1}"}}},
};

#define N_OF(table) (sizeof(table) / sizeof *(table))

static void test_environments(void **state)
{
    (void)state;
    check_all(environments, N_OF(environments), "", "");
    check_all(environments, N_OF(environments), "", "\r");
}

static void test_short_reports(void **state)
{
    (void)state;
    check_all(short_reports, N_OF(short_reports), "", "");
    check_all(short_reports, N_OF(short_reports), "", "\r");
}

static void test_errors(void **state)
{
    (void)state;
    check_all(errors, N_OF(errors), "", "");
    check_all(errors, N_OF(errors), "", "\r");
}

static void test_packages(void **state)
{
    (void)state;
    check_all(packages, N_OF(packages), "", "");
    check_all(packages, N_OF(packages), "", "\r");
}

static void test_variables(void **state)
{
    (void)state;
    check_all(variables, N_OF(variables), "", "");
    check_all(variables, N_OF(variables), "", "\r");
}

static void test_disks(void **state)
{
    (void)state;
    check_all(disks, N_OF(disks), "", "");
    check_all(disks, N_OF(disks), "", "\r");
}

static void test_commands(void **state)
{
    (void)state;
    check_all(commands, N_OF(commands), "", "");
    check_all(commands, N_OF(commands), "", "\r");
}

static void test_scripts(void **state)
{
    (void)state;
    check_all(scripts, N_OF(scripts), "", "");
    check_all(scripts, N_OF(scripts), "", "\r");
}

static void test_latencies(void **state)
{
    (void)state;
    check_all(latencies, N_OF(latencies), "", "");
    check_all(latencies, N_OF(latencies), "", "\r");
}

/* What loggers put before the lines of environments and errors. */
static void test_prefixes(void **state)
{
    (void)state;
    static const char *const before[] = {"    ", "[rank3]: ", "ollama  | ", "\033[31m"};
    for (size_t i = 0; i < N_OF(before); i++) {
        check_all(errors, N_OF(errors), before[i], "");
        if (i != 2)
            check_all(disks, N_OF(disks), i == 1 ? "" : before[i], "");
        check_all(environments, 10, before[i], "");
    }
}

/* Cut anywhere, nothing is read past the end. */
static void test_cuts(void **state)
{
    (void)state;
    static const case_row *const groups[] = {environments, errors, commands, scripts, packages};
    static const size_t counts[] = {N_OF(environments), N_OF(errors), N_OF(commands), N_OF(scripts),
                                    N_OF(packages)};
    for (size_t g = 0; g < N_OF(groups); g++)
        for (size_t i = 0; i < counts[g]; i++) {
            const tv_str text = tv_str_of(groups[g][i].text);
            for (size_t n = 0; n < text.n; n += 7) {
                tv_arena *a = test_arena();
                tv_scene scene = {0};
                const tv_str part = tv_str_copy(a, tv_str_take(text, n));
                assert_ok(a, tv_trace_document(a, TV_S("cut.txt"), part, &scene));
                tv_arena_close(a);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environments), cmocka_unit_test(test_short_reports),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_packages),
        cmocka_unit_test(test_variables),    cmocka_unit_test(test_disks),
        cmocka_unit_test(test_commands),     cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_latencies),    cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
