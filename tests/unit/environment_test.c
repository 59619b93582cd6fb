/* What the readers of environments, installation errors and packages find. */
#include "pasted.h"

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

/* What loggers put before the lines of environments and errors. */
static void test_prefixes(void **state)
{
    (void)state;
    static const char *const before[] = {"    ", "[rank3]: ", "ollama  | ", "\033[31m"};
    for (size_t i = 0; i < N_OF(before); i++) {
        check_all(errors, N_OF(errors), before[i], "");
        check_all(environments, 10, before[i], "");
    }
}

static void test_cuts(void **state)
{
    (void)state;
    check_cuts(environments, N_OF(environments));
    check_cuts(errors, N_OF(errors));
    check_cuts(packages, N_OF(packages));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environments), cmocka_unit_test(test_short_reports),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_packages),
        cmocka_unit_test(test_variables),    cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
