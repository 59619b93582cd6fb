/* What the readers of commands, scripts, disks and latencies find. */
#include "pasted.h"

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

static void test_cuts(void **state)
{
    (void)state;
    check_cuts(disks, N_OF(disks));
    check_cuts(commands, N_OF(commands));
    check_cuts(scripts, N_OF(scripts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disks),   cmocka_unit_test(test_commands),
        cmocka_unit_test(test_scripts), cmocka_unit_test(test_latencies),
        cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
