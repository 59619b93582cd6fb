/* What the readers of communication find: every wording, with what loggers and terminals put around
 * it. A case is a text and the facts that it must give, as JSON. */
#include "pasted.h"

/* ---- topologies ---- */

static const case_row topos[] = {
    {"tabs",
     "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
     "GPU0\t X \tNV4\t0-15\t0\t\tN/A\n"
     "GPU1\tNV4\t X \t16-31\t1\t\tN/A\n",
     "topo",
     {{"gpus", "2"},
      {"nics", "0"},
      {"links", "{\"0-1\":\"NV4\"}"},
      {"nvlink", "true"},
      {"nvlink_pairs", "[[0,1]]"},
      {"numa", "[0,1]"},
      {"cpu_affinity", "[\"0-15\",\"16-31\"]"},
      {"numa_column", "true"},
      {"gpu_numa_column", "true"},
      {"truncated", "false"},
      {"all_links", "\"NV4\""}}},
    {"underlined header, adapters by number, legend",
     "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
     "GPU0\t X \tSYS\tPIX\tSYS\t0-15\t0\n"
     "GPU1\tSYS\t X \tSYS\tPXB\t16-31\t1\n"
     "NIC0\tPIX\tSYS\t X \tSYS\t\t\n"
     "NIC1\tSYS\tPXB\tSYS\t X \t\t\n"
     "\nLegend:\n\n  X    = Self\n  NV#  = a bonded set of NVLinks\n\nNIC Legend:\n\n"
     "  NIC0: mlx5_2\n  NIC1: mlx5_bond_0\n",
     "topo",
     {{"nics", "2"},
      {"nic_names", "{\"NIC0\":\"mlx5_2\",\"NIC1\":\"mlx5_bond_0\"}"},
      {"near_nic", "{\"0\":0,\"1\":1}"},
      {"near_nics", "{\"0\":[0],\"1\":[1]}"},
      {"near_nic_link", "{\"0\":\"PIX\",\"1\":\"PXB\"}"},
      {"links",
       "{\"0-1\":\"SYS\",\"G0-N0\":\"PIX\",\"G0-N1\":\"SYS\",\"G1-N0\":\"SYS\",\"G1-N1\":\"PXB\","
       "\"N0-N1\":\"SYS\"}"}}},
    {"adapters by device, old word, no NUMA",
     "        GPU0    GPU1    mlx4_0  CPU Affinity\n"
     "GPU0     X      SOC     PHB     0-5\n"
     "GPU1    SOC      X      SOC     6-11\n"
     "mlx4_0  PHB     SOC      X\n",
     "topo",
     {{"legacy_soc_equals", "\"SYS\""},
      {"nic_names", "[\"mlx4_0\"]"},
      {"near_nic", "{\"0\":\"mlx4_0\",\"1\":\"mlx4_0\"}"},
      {"numa_column", "false"},
      {"numa", "absent"},
      {"pairs_sys", "[[0,1]]"}}},
    {"one blank between columns, an affinity that touches the next",
     "GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
     "GPU0 X SYS 112-127,240-254 7 N/A\n"
     "GPU1 SYS X 0-15,128-143 0 N/A\n",
     "topo",
     {{"gpus", "2"},
      {"cpu_affinity", "[\"112-127,240-254\",\"0-15,128-143\"]"},
      {"numa", "[7,0]"},
      {"gpu0_cpu_affinity", "\"112-127,240-254\""}}},
    {"rows cut off",
     "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
     "GPU0\t X \tNV12\tNV12\tNV12\t0-15\t3\n",
     "topo",
     {{"gpus", "4"},
      {"gpu_rows_present", "1"},
      {"truncated", "true"},
      {"gpu_gpu", "\"NV12\""},
      {"numa", "[3]"},
      {"nv_degree", "{\"0\":3,\"1\":1,\"2\":1,\"3\":1}"}}},
    {"head cut off",
     "GPU0\t X \tPIX\tNODE\t0-15\t0\n"
     "GPU1\tPIX\t X \tNODE\t0-15\t0\n",
     "topo",
     {{"gpus", "2"}, {"nics", "1"}, {"truncated", "true"}, {"numa", "[0,0]"}}},
    {"the NUMA node is not known",
     "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
     "GPU0\t X \tPHB\t0-31\t\tN/A\n"
     "GPU1\tPHB\t X \t0-31\t\tN/A\n",
     "topo",
     {{"numa", "[null,null]"}, {"numa_nodes", "absent"}}},
    {"several nodes, no list of processors",
     "GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
     "GPU0     X      NV18            0-3               N/A\n"
     "GPU1    NV18     X      56      4               N/A\n",
     "topo",
     {{"cpu_affinity", "[null,\"56\"]"}, {"numa", "[\"0-3\",4]"}}},
    {"a terminal that is too narrow",
     "\tGPU0\tGPU1\tNIC0\n\tCPU Affinity\tNUMA Affinity\n"
     "GPU0\t X \tNV1\n\tPIX\t0-15\t0\n"
     "GPU1\tNV1\t X \n\tSYS\t16-31\t1\n",
     "topo",
     {{"gpus", "2"},
      {"nics", "1"},
      {"links", "{\"0-1\":\"NV1\",\"G0-N0\":\"PIX\",\"G1-N0\":\"SYS\"}"},
      {"numa", "[0,1]"}}},
    {"PCIe only",
     "$ nvidia-smi topo -mp\n"
     "\tGPU0\tGPU1\tCPU Affinity\n"
     "GPU0\t X \tNODE\t0-15\n"
     "GPU1\tNODE\t X \t0-15\n",
     "topo",
     {{"mode", "\"-mp (pcie only)\""}, {"nvlink_unknown", "true"}, {"nvlink", "null"}}},
    {"what the driver allows",
     "$ nvidia-smi topo -p2p r\n"
     " \tGPU0\tGPU1\tGPU2\n"
     " GPU0\tX\tCNS\tOK\n"
     " GPU1\tCNS\tX\tNS\n"
     " GPU2\tOK\tNS\tX\n\n"
     "Legend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n",
     "topo",
     {{"p2p", "{\"0-1\":\"CNS\",\"0-2\":\"OK\",\"1-2\":\"NS\"}"},
      {"p2p_of", "\"r\""},
      {"links", "absent"}}},
    {"ROCm",
     "=============================== Hops between two GPUs ==========\n"
     "       GPU0         GPU1\nGPU0   0            1\nGPU1   1            0\n\n"
     "=============================== Link Type between two GPUs =====\n"
     "       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n\n"
     "======================================= Numa Nodes =============\n"
     "GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: 0\n"
     "GPU[1]\t\t: (Topology) Numa Node: 1\n",
     "topo",
     {{"gpus", "2"}, {"links", "{\"0-1\":\"XGMI\"}"}, {"numa", "[0,1]"}, {"truncated", "false"}}},
    {"a sentence about GPU0 and GPU1",
     "GPU0 waits for GPU1 at the X server\n",
     "topo",
     {{NULL, NULL}}},
};

static void test_topo(void **state)
{
    (void)state;
    check_all(topos, sizeof topos / sizeof *topos, "", "");
    check_all(topos, sizeof topos / sizeof *topos, "", "\r");
    check_all(topos, sizeof topos / sizeof *topos, "    ", "  ");
}

/* ---- NCCL ---- */

static const case_row nccls[] = {
    {"start of an old version",
     "n1:9:9 [0] NCCL INFO Bootstrap : Using [0]eth2:10.1.0.9<0>\n"
     "n1:9:9 [0] NCCL INFO NET/IB : No device found.\n"
     "n1:9:9 [0] NCCL INFO NET/Socket : Using [0]eth2:10.1.0.9<0> [1]docker0:172.17.0.1<0>\n"
     "n1:9:9 [0] NCCL INFO Using network Socket\n"
     "NCCL version 2.7.8+cuda10.1\n",
     "nccl",
     {{"version", "\"2.7.8\""},
      {"cuda", "\"10.1\""},
      {"net", "\"Socket\""},
      {"ifname", "\"eth2\""},
      {"interfaces", "[\"eth2\",\"docker0\"]"},
      {"suspect_interface", "\"docker0\""},
      {"ib_available", "false"},
      {"host", "\"n1\""}}},
    {"start of a new version",
     "n1:9:9 [1] NCCL INFO Bootstrap: Using bond0:10.1.0.9<0>\n"
     "n1:9:9 [1] NCCL INFO NCCL version 2.27.3+cuda12.9\n"
     "n1:9:21 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB "
     "bond0:10.1.0.9<0>\n"
     "n1:9:21 [1] NCCL INFO Initialized NET plugin IB\n"
     "n1:9:21 [1] NCCL INFO ncclCommInitRankConfig comm 0x5 rank 1 nranks 4 cudaDev 1 nvmlDev 1 "
     "busId 2000 commId 0xab - Init START\n"
     "n1:9:21 [1] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\n",
     "nccl",
     {{"version", "\"2.27.3\""},
      {"net", "\"IB\""},
      {"hcas", "[\"mlx5_0\",\"mlx5_3\"]"},
      {"hca_kind", "\"RoCE\""},
      {"oob_ifname", "\"bond0\""},
      {"nranks", "4"},
      {"ranks_started", "[1]"},
      {"rank_devices", "{\"1\":1}"},
      {"settings", "{\"NCCL_IB_GID_INDEX\":\"3\"}"},
      {"suspect_interface", "absent"}}},
    {"RCCL",
     "n1:9:9 [0] NCCL INFO RCCL version 2.18.3+hip6.0 HEAD:abc\n",
     "nccl",
     {{"library", "\"rccl\""}, {"version", "\"2.18.3\""}, {"hip", "\"6.0\""}}},
    {"channels",
     "n1:9:9 [0] NCCL INFO Channel 00/02 :    0   1\n"
     "n1:9:9 [0] NCCL INFO Channel 00/0 : 0[1a000] -> 1[1b000] via P2P/CUMEM/read\n"
     "n1:9:9 [0] NCCL INFO Channel 01/0 : 0[1a000] -> 1[1b000] via P2P/IPC\n"
     "n1:9:9 [0] NCCL INFO Channel 01/0 : 1[1] -> 8[0] [send] via NET/IBext_v8/0(0)/GDRDMA\n",
     "nccl",
     {{"rings", "2"},
      {"ring_lines", "3"},
      {"transports", "{\"P2P\":2,\"NET/IB\":1}"},
      {"transport", "\"P2P\""},
      {"p2p_used", "true"},
      {"gdr_used", "true"},
      {"paths.0", "{\"from\":0,\"from_bus\":\"1a000\",\"to\":1,\"to_bus\":\"1b000\",\"via\":\"P2P/"
                  "CUMEM/read\","
                  "\"transport\":\"P2P\",\"device\":0}"}}},
    {"rings of version 2.4",
     "n1:9:9 [0] NCCL INFO Ring 00 : 0 -> 1 [receive] via NET/Socket/0\n"
     "n1:9:9 [0] NCCL INFO Ring 00 : 1[2] -> 2[3] via direct shared memory\n",
     "nccl",
     {{"transports", "{\"NET/Socket\":1,\"SHM\":1}"},
      {"p2p_used", "false"},
      {"gdr_used", "false"}}},
    {"GPUDirect",
     "n1:9:9 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'\n"
     "n1:9:9 [3] NCCL INFO NET/IB : GPU Direct RDMA Disabled for GPU 3 / HCA 0 (distance 8 > 4)\n"
     "n1:9:9 [0] NCCL INFO NET/IB : GPU Direct RDMA (DMABUF) enabled for HCA 0 'mlx5_0'\n",
     "nccl",
     {{"gdr",
       "[{\"enabled\":false,\"hca\":1,\"name\":\"mlx5_1\"},{\"enabled\":false,\"gpu\":3,\"hca\":0,"
       "\"distance\":8},{\"enabled\":true,\"by\":\"DMABUF\",\"hca\":0,\"name\":\"mlx5_0\"}]"}}},
    {"a cause and its consequences, out of order",
     "n1:9:9 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer "
     "n2<410>\n"
     "n2:8:8 [0] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with 110 Connection "
     "timed out, on dev mlx5_1:1, curr state INIT, next state RTR\n"
     "n2:8:8 [0] NCCL INFO transport/net_ib.cc:579 -> 2\n",
     "nccl",
     {{"root_warn", "\"ibv_modify_qp: Connection timed out\""},
      {"root_warn_index", "1"},
      {"consequences", "[\"Connection closed by remote peer\"]"},
      {"call", "\"ibv_modify_qp\""},
      {"errno", "110"},
      {"dev", "\"mlx5_1:1\""},
      {"qp_next", "\"RTR\""},
      {"nccl_result", "2"},
      {"result_name", "\"ncclSystemError\""}}},
    {"completions of three versions",
     "loss 2.5 at step 10\n"
     "n1:9:9 [0] net_ib.cc:1 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, "
     "vendor err 129\n",
     "nccl",
     {{"status", "12"}, {"vendor_err", "129"}, {"worked_before", "true"}}},
    {"completion with names",
     "[2026-09-09 10:46:33] n1:9:9 [1] transport/net_ib/p2p.cc:648 NCCL WARN NET/IB: Got "
     "completion "
     "from peer 10.1.1.3<405> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) "
     "vendor_err=129 localGid ::ffff:1.1.2.2 remoteGids::ffff:1.1.1.4 hca mlx5_1\n",
     "nccl",
     {{"status", "12"},
      {"vendor_err", "129"},
      {"peer", "\"10.1.1.3<405>\""},
      {"local_gid", "[\"::ffff:1.1.2.2\"]"},
      {"remote_gid", "[\"::ffff:1.1.1.4\"]"},
      {"hca", "\"mlx5_1\""},
      {"timestamped_warn", "true"},
      {"worked_before", "false"}}},
    {"shared memory",
     "n1:9:9 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-aB1 to "
     "4194660 "
     "bytes\n",
     "nccl",
     {{"path", "\"/dev/shm/nccl-aB1\""}, {"need_bytes", "4194660"}, {"cause", "absent"}}},
    {"two versions",
     "n1:9:9 [0] init.cc:9 NCCL WARN Mismatched NCCL version detected : rank 1 version 22705 rank "
     "0 "
     "version 2408\n",
     "nccl",
     {{"versions", "[\"2.27.5\",\"2.4.8\"]"}}},
    {"the framework's words",
     "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1331, unhandled "
     "system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\n"
     "ncclSystemError: System call (e.g. socket, malloc) or external library call failed.\n"
     "Last error:\n"
     "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888), error: No space "
     "left on device (28)\n",
     "nccl",
     {{"version", "\"2.20.5\""},
      {"framework_error.result_name", "\"ncclSystemError\""},
      {"errno", "28"},
      {"cause", "\"/dev/shm too small\""},
      {"need_bytes", "9637888"}}},
    {"locked memory by UCX",
     "[1668693503.473099] [n1:11:0]  ib_md.c:3  UCX  ERROR mlx5_2: ibv_reg_mr() failed: Cannot "
     "allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 8192 "
     "kbytes)\n",
     "nccl",
     {{"tool", "\"ucx\""},
      {"dev", "\"mlx5_2\""},
      {"call", "\"ibv_reg_mr\""},
      {"memlock_bytes", "8388608"},
      {"cause", "\"ulimit -l too small\""}}},
};

static void test_nccl(void **state)
{
    (void)state;
    check_all(nccls, sizeof nccls / sizeof *nccls, "", "");
    check_all(nccls, sizeof nccls / sizeof *nccls, "", "\r");
    check_all(nccls, sizeof nccls / sizeof *nccls, "[rank0]: ", "");
    check_all(nccls, sizeof nccls / sizeof *nccls, "(Worker pid=41) ", "");
}

/* ---- watchdogs ---- */

#define WATCH "[rank2]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught "

static const case_row watches[] = {
    {"2.6",
     WATCH "collective operation timeout: WorkNCCL(SeqNum=40, OpType=ALLREDUCE, NumelIn=8, "
           "NumelOut=8, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
           "[rank2]:[E626 06:24:44.9 x.cpp:1785] [PG ID 3 PG GUID 37(TP) Rank 0] Exception (either "
           "an error or timeout) detected by watchdog at work: 40, last enqueued NCCL work: 42, "
           "last completed NCCL work: 39.\n",
     "watchdog",
     {{"seq", "40"},
      {"optype", "\"ALLREDUCE\""},
      {"numel", "8"},
      {"timeout_s", "600"},
      {"ranks_waiting", "[2]"},
      {"last_enqueued", "42"},
      {"last_completed", "39"},
      {"format", "\"2.6+ (PG ID/GUID)\""},
      {"pg", "3"},
      {"pg_name", "\"TP\""},
      {"events.0.ran_s", "600.02"}}},
    {"2.8",
     "[rank9]:[E129 16:38:47.7 x.cpp:2241] [PG ID 5 PG GUID 37(TP) Rank 1]  failure detected by "
     "watchdog at work sequence id: 49 PG status: last enqueued work: 52, last completed work: "
     "48\n",
     "watchdog",
     {{"seq", "49"},
      {"last_enqueued", "52"},
      {"last_completed", "48"},
      {"ranks_waiting", "[9]"},
      {"format", "\"2.6+ (PG ID/GUID)\""}}},
    {"2.3",
     "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=9, OpType=GATHER, NumelIn=2867200, NumelOut=0, Timeout(ms)=600000) ran for "
     "600027 milliseconds before timing out.\n"
     "[rank1]:[E ProcessGroupNCCL.cpp:1537] [PG 1 Rank 1] Timeout at NCCL work: 9, last enqueued "
     "NCCL work: 9, last completed NCCL work: 8.\n",
     "watchdog",
     {{"format", "\"2.4/2.5 (PG n Rank m)\""},
      {"pg", "1"},
      {"numel_out", "0"},
      {"world_size_inferred", "absent"}}},
    {"1.10 to 2.0",
     "[E ProcessGroupNCCL.cpp:821] [Rank 3] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, TensorShape=[1024, 8], Timeout(ms)=1800000) ran for "
     "1808499 milliseconds before timing out.\n"
     "[E ProcessGroupNCCL.cpp:821] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, TensorShape=[1024, 8], Timeout(ms)=1800000) ran for "
     "1808499 milliseconds before timing out.\n",
     "watchdog",
     {{"numel", "8192"},
      {"timeout_s", "1800"},
      {"ranks_waiting", "[1,3]"},
      {"format", "\"<= 2.0 (TensorShape)\""}}},
    {"1.8: no number",
     "RuntimeError: [Rank 0] Caught collective operation timeout: WorkNCCL(OpType=BROADCAST, "
     "Timeout(ms)=1800000) ran for 1800111 milliseconds before timing out.\n",
     "watchdog",
     {{"optype", "\"BROADCAST\""}, {"seq", "absent"}, {"ranks_waiting", "[0]"}}},
    {"a gather tells the world",
     WATCH "collective operation timeout: WorkNCCL(SeqNum=1, OpType=_ALLGATHER_BASE, NumelIn=16, "
           "NumelOut=128, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n",
     "watchdog",
     {{"world_size_inferred", "8"}, {"numel", "absent"}}},
    {"broken by the terminal",
     WATCH "collective operation timeout: WorkNCCL(SeqNum=5, OpTyp\n"
           "e=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=60000\n"
           "0) ran for 600001 milliseconds before timing out.\n",
     "watchdog",
     {{"seq", "5"}, {"optype", "\"ALLREDUCE\""}, {"timeout_s", "600"}}},
    {"ray names the rank as well",
     "(Worker[rank=9] pid=309) [rank9]:[E1 x.cpp:6] [Rank 1] Watchdog caught collective operation "
     "timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran "
     "for 600001 milliseconds before timing out.\n",
     "watchdog",
     {{"ranks_waiting", "[9]"}}},
    {"Paddle",
     "W0112 comm_task_manager.cc:274] Find timeout task: group_key:_default_pg0,group_ranks:[0, 1],"
     "global_rank:1,local_rank:1,comm_count:51,op:ALLREDUCE,started:1,completed:0,numel:1024,"
     "nranks:2\n",
     "watchdog",
     {{"seq", "51"},
      {"optype", "\"ALLREDUCE\""},
      {"numel", "1024"},
      {"ranks_waiting", "[1]"},
      {"world_size_inferred", "2"}}},
    {"the heartbeat",
     "[rank7]:[E626 05:14:36.3 x.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 7] "
     "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress\n",
     "watchdog",
     {{"watchdog_stuck_s", "480"}, {"ranks_stuck", "[7]"}}},
    {"the port",
     "[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - "
     "Address already in use).\n",
     "watchdog",
     {{"store", "\"port-taken\""},
      {"store_errno", "98"},
      {"store_errno_text", "\"Address already in use\""},
      {"store_address", "\"[::]:29500\""}}},
    {"the store is not there",
     "RuntimeError: The client socket has timed out after 900s while trying to connect to "
     "(10.0.0.5, 29501).\n",
     "watchdog",
     {{"store", "\"connect-timeout\""},
      {"store_timeout_s", "900"},
      {"store_address", "\"10.0.0.5, 29501\""}}},
    {"not all came",
     "DistStoreError: Timed out after 61 seconds waiting for clients. 7/8 clients joined.\n",
     "watchdog",
     {{"clients_joined", "7"}, {"world_size", "8"}}},
    {"a phase before",
     "Saving model checkpoint to out/checkpoint-500\n" WATCH
     "collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
     "Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n",
     "watchdog",
     {{"phase", "\"checkpoint\""}}},
};

static void test_watchdog(void **state)
{
    (void)state;
    check_all(watches, sizeof watches / sizeof *watches, "", "");
    check_all(watches, sizeof watches / sizeof *watches, "", "\r");
}

/* ---- the rest ---- */

static const case_row others[] = {
    {"ulimit -l", "$ ulimit -l\n\n65536\n", "limits", {{"memlock_bytes", "67108864"}}},
    {"ulimit -a",
     "core file size          (blocks, -c) 0\n"
     "max locked memory       (kbytes, -l) unlimited\n"
     "open files                      (-n) 1048576\n"
     "max user processes              (-u) 4096\n",
     "limits",
     {{"memlock_bytes", "\"unlimited\""}, {"open_files", "1048576"}, {"processes", "4096"}}},
    {"/proc/PID/limits",
     "Limit                     Soft Limit           Hard Limit           Units\n"
     "Max locked memory         65536                unlimited            bytes\n",
     "limits",
     {{"memlock_bytes", "65536"}}},
    {"lsmod",
     "Module                  Size  Used by\nnvidia_uvm           1986560  4\n"
     "nvidia              60620800  228 nvidia_uvm\n",
     "modules",
     {{"nvidia", "true"}, {"nvidia_uvm", "true"}, {"nvidia_peermem", "absent"}}},
    {"nothing found",
     "$ lsmod | grep nvidia_peermem\n$ \n",
     "modules",
     {{"nvidia_peermem", "false"}}},
    {"found",
     "$ lsmod | grep nv_peer\nnv_peer_mem            16384  0\n",
     "modules",
     {{"nv_peer_mem", "true"}}},
    {"RAS",
     "Communicators... (2.05s)\n=============\n\n"
     "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
     "    #  in group  per comm  per node  per comm  in group\n"
     "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n\n"
     "Errors\n======\n\nDEAD\n  1 job process is considered dead\n"
     "  Process 34 on node n4 managing GPU 5\n\n#0-0 (cf26) INCOMPLETE\n"
     "  Missing communicator data from 1 rank\n  The missing rank: 21\n",
     "ras",
     {{"error", "\"INCOMPLETE\""},
      {"world_size", "32"},
      {"dead", "true"},
      {"lost_processes", "[{\"pid\":34,\"node\":\"n4\",\"gpu\":\"5\"}]"},
      {"missing_ranks", "[21]"}}},
    {"ibstat",
     "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
     "\t\tRate: 400\n\t\tLink layer: InfiniBand\n",
     "ib",
     {{"ports",
       "[{\"dev\":\"mlx5_0\",\"port\":1,\"state\":\"Active\",\"active\":true,\"physical_state\":"
       "\"LinkUp\",\"rate_bytes_per_s\":50000000000,\"link_layer\":\"InfiniBand\"}]"},
      {"ib_ports_active", "1"}}},
    {"ibdev2netdev",
     "mlx5_0 port 1 ==> ib0 (Down)\n",
     "ib",
     {{"ports.0.netdev", "\"ib0\""}, {"ports.0.active", "false"}}},
    {"bandwidthTest",
     " Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
     "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   32000000\t\t\t12.5\n",
     "bandwidth",
     {{"tool", "\"bandwidthTest\""}, {"h2d_bytes_per_s", "12500000000"}, {"pinned", "true"}}},
    {"bandwidthTest counts in 2^20 bytes",
     "$ numactl -N 1 -m 1 ./bandwidthTest\n Device to Host Bandwidth, 1 Device(s)\n"
     "   Transfer Size (Bytes)\tBandwidth(MB/s)\n   33554432\t\t\t1000.0\n",
     "bandwidth",
     {{"d2h_bytes_per_s", "1048576000"}, {"cpu_node", "1"}, {"mem_node", "1"}}},
    {"nvbandwidth",
     "nvbandwidth Version: v0.6\n\nRunning host_to_device_memcpy_ce.\n"
     "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n"
     " 0     55.00     27.50\n\nSUM host_to_device_memcpy_ce 82.50\n",
     "bandwidth",
     {{"h2d_bytes_per_s", "27500000000"},
      {"tests.host_to_device_memcpy_ce.sum_bytes_per_s", "82500000000"}}},
    {"nccl-tests",
     "# nThread 1 nGpus 2 minBytes 8 maxBytes 8\n"
     "#  Rank  0 Group  0 Pid  53 on    n1 device  0 [0x07] NVIDIA L4\n"
     "#  Rank  1 Group  0 Pid  54 on    n1 device  1 [0x0f] NVIDIA L4\n"
     "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
     "time  "
     " algbw   busbw #wrong\n"
     "    67108864      16777216     float     sum      -1    500.0  134.00  134.00      0    "
     "500.0 "
     " 135.00  135.00    N/A\n"
     "# Avg bus bandwidth    : 134.5\n",
     "nccl-tests",
     {{"ranks", "2"},
      {"hosts", "[\"n1\"]"},
      {"product", "\"NVIDIA L4\""},
      {"max_busbw_bytes_per_s", "135000000000"},
      {"avg_busbw_bytes_per_s", "134500000000"},
      {"wrong_values", "0"}}},
    {"no root column",
     "#       size         count    type   redop     time   algbw   busbw  error     time   algbw  "
     " "
     "busbw  error\n"
     "   134217728      33554432   float     sum   9051.1   14.83   14.83  2e-07   9049.6   14.83  "
     " "
     "14.83  2e-07\n# Out of bounds values : 0 OK\n",
     "nccl-tests",
     {{"max_busbw_bytes_per_s", "14830000000"}, {"wrong_values", "0"}}},
    {"perftest",
     "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
     " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
     " 65536      5000             98.01              96.00              0.186\n",
     "bandwidth",
     {{"tool", "\"ib_write_bw\""}, {"dev", "\"mlx5_0\""}, {"bw_bytes_per_s", "12000000000"}}},
};

static void test_others(void **state)
{
    (void)state;
    check_all(others, sizeof others / sizeof *others, "", "");
    check_all(others, sizeof others / sizeof *others, "", "\r");
}

/* A text cut anywhere gives less, and nothing else. */
static void test_cut(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const case_row *groups[] = {topos, nccls, watches, others};
    for (size_t g = 0; g < 4; g++)
        for (size_t k = 0; k < 5; k++) {
            const tv_str text = tv_str_of(groups[g][k].text);
            for (size_t n = 0; n <= text.n; n += 7) {
                tv_scene scene = {0};
                const tv_mark mark = tv_arena_mark(a);
                assert_ok(a, tv_trace_document(a, TV_S("p"), tv_str_take(text, n), &scene));
                assert_ok(a, tv_trace_document(a, TV_S("p"), tv_str_drop(text, n), &scene));
                tv_arena_rewind(a, mark);
            }
        }
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topo),   cmocka_unit_test(test_nccl), cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_others), cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
