/* The table is read from top to bottom: the first text that a name holds decides. Libraries nest
 * words ("implicit_gemm" is a convolution, "triton_poi_fused_addmm" is none), so the more telling
 * texts come first. Names are compared without case. */
#include "kernel_class.h"

#include <string.h>

/* Mangled template names reach 8 KiB; what tells stands in the front. */
enum { looked_at_bytes = 1024 };

typedef struct telling {
    const char *text;
    tv_kernel_class is;
} telling;

/* At the front of a name. */
static const telling fronts[] = {
    {"memcpy", TV_CLASS_MEMCPY},
    {"[cuda memcpy", TV_CLASS_MEMCPY},
    {"copyhosttodevice", TV_CLASS_MEMCPY},
    {"copydevicetohost", TV_CLASS_MEMCPY},
    {"copydevicetodevice", TV_CLASS_MEMCPY},
    {"gpumemcpy", TV_CLASS_MEMCPY},
    {"memset", TV_CLASS_MEMSET},
    {"[cuda memset", TV_CLASS_MEMSET},
    {"fillbuffer", TV_CLASS_MEMSET},
    /* Inductor lists what it fused; only its templates multiply matrices. */
    {"triton_poi_", TV_CLASS_ELEMENTWISE},
    {"triton_for_", TV_CLASS_ELEMENTWISE},
    {"triton_unk_", TV_CLASS_ELEMENTWISE},
    {"triton_split_scan", TV_CLASS_REDUCE},
    {"triton_red_", TV_CLASS_REDUCE},
    {"triton_per_", TV_CLASS_REDUCE},
    {"triton_tem_fused_flex_attention", TV_CLASS_ATTENTION},
    {"triton_tem_fused_conv", TV_CLASS_CONV},
    {"triton_tem_", TV_CLASS_GEMM},
    {"cijk_", TV_CLASS_GEMM},
    {"custom_cijk_", TV_CLASS_GEMM},
    {"nvjet_", TV_CLASS_GEMM},
};

static const telling texts[] = {
    /* collectives */
    {"nccl", TV_CLASS_COMMUNICATION},
    {"rccl", TV_CLASS_COMMUNICATION},
    {"hccl", TV_CLASS_COMMUNICATION},
    {"bkcl", TV_CLASS_COMMUNICATION},
    {"mscclpp", TV_CLASS_COMMUNICATION},
    {"nvshmem", TV_CLASS_COMMUNICATION},
    {"deep_ep", TV_CLASS_COMMUNICATION},
    {"allreduce", TV_CLASS_COMMUNICATION},
    {"all_reduce", TV_CLASS_COMMUNICATION},
    {"all-reduce", TV_CLASS_COMMUNICATION},
    {"allgather", TV_CLASS_COMMUNICATION},
    {"all_gather", TV_CLASS_COMMUNICATION},
    {"all-gather", TV_CLASS_COMMUNICATION},
    {"reducescatter", TV_CLASS_COMMUNICATION},
    {"reduce_scatter", TV_CLASS_COMMUNICATION},
    {"reduce-scatter", TV_CLASS_COMMUNICATION},
    {"alltoall", TV_CLASS_COMMUNICATION},
    {"all_to_all", TV_CLASS_COMMUNICATION},
    {"all-to-all", TV_CLASS_COMMUNICATION},
    {"collective-permute", TV_CLASS_COMMUNICATION},
    {"cross_device_reduce", TV_CLASS_COMMUNICATION},
    {"multimem_one_shot", TV_CLASS_COMMUNICATION},
    /* attention */
    {"flash_fwd", TV_CLASS_ATTENTION},
    {"flash_bwd", TV_CLASS_ATTENTION},
    {"flash::", TV_CLASS_ATTENTION},
    {"flash_attn", TV_CLASS_ATTENTION},
    {"flashattn", TV_CLASS_ATTENTION},
    {"flashinfer", TV_CLASS_ATTENTION},
    {"fmha", TV_CLASS_ATTENTION},
    {"_mha_", TV_CLASS_ATTENTION},
    {"mha_fwd", TV_CLASS_ATTENTION},
    {"mha_bwd", TV_CLASS_ATTENTION},
    {"sdpa", TV_CLASS_ATTENTION},
    {"attn_fwd", TV_CLASS_ATTENTION},
    {"attn_bwd", TV_CLASS_ATTENTION},
    {"_attn_", TV_CLASS_ATTENTION},
    {"attention", TV_CLASS_ATTENTION},
    {"pagedkvcache", TV_CLASS_ATTENTION},
    {"flash_ext_", TV_CLASS_ATTENTION},
    /* convolution: cuDNN, CUTLASS, MIOpen, XLA */
    {"implicit_gemm", TV_CLASS_CONV},
    {"implicitgemm", TV_CLASS_CONV},
    {"fprop", TV_CLASS_CONV},
    {"dgrad", TV_CLASS_CONV},
    {"wgrad", TV_CLASS_CONV},
    {"convolve", TV_CLASS_CONV},
    {"convolution", TV_CLASS_CONV},
    {"conv1d", TV_CLASS_CONV},
    {"conv2d", TV_CLASS_CONV},
    {"conv3d", TV_CLASS_CONV},
    {"conv_", TV_CLASS_CONV},
    {"asmconv", TV_CLASS_CONV},
    {"winograd", TV_CLASS_CONV},
    {"igemm_fwd", TV_CLASS_CONV},
    {"igemm_bwd", TV_CLASS_CONV},
    {"igemm_wrw", TV_CLASS_CONV},
    {"scudnn", TV_CLASS_CONV},
    {"hcudnn", TV_CLASS_CONV},
    {"84cudnn", TV_CLASS_CONV},
    {"88cudnn", TV_CLASS_CONV},
    {"16cudnn", TV_CLASS_CONV},
    {"cudnn::cnn", TV_CLASS_CONV},
    {"cask_cudnn", TV_CLASS_CONV},
    {"im2col", TV_CLASS_CONV},
    {"col2im", TV_CLASS_CONV},
    {"fft2d_", TV_CLASS_CONV},
    {"depthwise", TV_CLASS_CONV},
    {"dwconv", TV_CLASS_CONV},
    /* norms and softmax */
    {"softmax", TV_CLASS_NORM},
    {"layer_norm", TV_CLASS_NORM},
    {"layernorm", TV_CLASS_NORM},
    {"rms_norm", TV_CLASS_NORM},
    {"rmsnorm", TV_CLASS_NORM},
    {"batch_norm", TV_CLASS_NORM},
    {"batchnorm", TV_CLASS_NORM},
    {"group_norm", TV_CLASS_NORM},
    {"groupnorm", TV_CLASS_NORM},
    {"instance_norm", TV_CLASS_NORM},
    {"gammabeta", TV_CLASS_NORM},
    {"rowwisemoments", TV_CLASS_NORM},
    {"::bn_fw", TV_CLASS_NORM},
    {"::bn_bw", TV_CLASS_NORM},
    {"bn_fw_tr", TV_CLASS_NORM},
    {"bn_fw_inf", TV_CLASS_NORM},
    /* embeddings and optimizers */
    {"embedding", TV_CLASS_EMBEDDING},
    {"pooled_embs", TV_CLASS_EMBEDDING},
    {"bounds_check_indices", TV_CLASS_EMBEDDING},
    {"indexselect", TV_CLASS_EMBEDDING},
    {"multi_tensor_apply", TV_CLASS_OPTIMIZER},
    {"adam", TV_CLASS_OPTIMIZER},
    {"adagrad", TV_CLASS_OPTIMIZER},
    {"sgdfunctor", TV_CLASS_OPTIMIZER},
    {"fused_sgd", TV_CLASS_OPTIMIZER},
    {"fusedsgd", TV_CLASS_OPTIMIZER},
    {"sgdkernel", TV_CLASS_OPTIMIZER},
    {"momentumkernel", TV_CLASS_OPTIMIZER},
    {"densemomentum", TV_CLASS_OPTIMIZER},
    {"lambfunctor", TV_CLASS_OPTIMIZER},
    {"fusedlamb", TV_CLASS_OPTIMIZER},
    {"lamb_stage", TV_CLASS_OPTIMIZER},
    {"lionfunctor", TV_CLASS_OPTIMIZER},
    {"adafactor", TV_CLASS_OPTIMIZER},
    /* What PyTorch's own element-wise templates take as an argument may be named after anything. */
    {"elementwise_kernel", TV_CLASS_ELEMENTWISE},
    {"fbgemm_gpu::", TV_CLASS_ELEMENTWISE},
    /* matrix products: cuBLAS, CUTLASS, Triton, rocBLAS, hipBLASLt, CK, llama.cpp, TensorRT */
    {"gemm", TV_CLASS_GEMM},
    {"gemv", TV_CLASS_GEMM},
    {"cublas", TV_CLASS_GEMM},
    {"splitkreduce", TV_CLASS_GEMM},
    {"cutlass", TV_CLASS_GEMM},
    {"xmma", TV_CLASS_GEMM},
    {"matmul", TV_CLASS_GEMM},
    {"mat_mul", TV_CLASS_GEMM},
    {"mul_mat", TV_CLASS_GEMM},
    {"triton_mm", TV_CLASS_GEMM},
    {"wgmma", TV_CLASS_GEMM},
    {"wvsplitk", TV_CLASS_GEMM},
    {"marlin", TV_CLASS_GEMM},
    {"machete", TV_CLASS_GEMM},
    {"fused_moe_kernel", TV_CLASS_GEMM},
    {"epilogue::impl::globalkernel", TV_CLASS_GEMM},
    {"__myl_fc", TV_CLASS_GEMM},
    {"_bmm_", TV_CLASS_GEMM},
    {"bmm_", TV_CLASS_GEMM},
    /* the rest */
    {"reduce", TV_CLASS_REDUCE},
    {"reduction", TV_CLASS_REDUCE},
    {"devicescan", TV_CLASS_REDUCE},
    {"radixsort", TV_CLASS_REDUCE},
    {"topk", TV_CLASS_REDUCE},
    {"argmax", TV_CLASS_REDUCE},
    {"criterion", TV_CLASS_REDUCE},
    {"nll_loss", TV_CLASS_REDUCE},
    {"cross_entropy", TV_CLASS_REDUCE},
    {"elementwise", TV_CLASS_ELEMENTWISE},
    {"pointwise", TV_CLASS_ELEMENTWISE},
    {"pwgen", TV_CLASS_ELEMENTWISE},
    {"vectorized", TV_CLASS_ELEMENTWISE},
    {"catarray", TV_CLASS_ELEMENTWISE},
    {"dropout", TV_CLASS_ELEMENTWISE},
    {"transpose", TV_CLASS_ELEMENTWISE},
    {"permut", TV_CLASS_ELEMENTWISE},
    {"nchwtonhwc", TV_CLASS_ELEMENTWISE},
    {"nhwctonchw", TV_CLASS_ELEMENTWISE},
    {"copy", TV_CLASS_ELEMENTWISE},
    {"fill", TV_CLASS_ELEMENTWISE},
    {"fusion", TV_CLASS_ELEMENTWISE},
    {"rotary", TV_CLASS_ELEMENTWISE},
    {"rope_", TV_CLASS_ELEMENTWISE},
    {"silu", TV_CLASS_ELEMENTWISE},
    {"gelu", TV_CLASS_ELEMENTWISE},
    {"act_and_mul", TV_CLASS_ELEMENTWISE},
};

static tv_kernel_class told_by(const telling *v, size_t n, const char *name, bool front)
{
    for (size_t i = 0; i < n; i++) {
        const bool is =
            front ? strncmp(name, v[i].text, strlen(v[i].text)) == 0 : !!strstr(name, v[i].text);
        if (is)
            return v[i].is;
    }
    return TV_CLASS_OTHER;
}

tv_kernel_class tv_kernel_class_of(tv_str name)
{
    char low[looked_at_bytes + 1];
    tv_str s = name;
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = tv_str_drop(s, 1);
    if (tv_str_starts(s, TV_S("void ")))
        s = tv_str_drop(s, 5);
    size_t n = 0;
    for (; n < s.n && n < looked_at_bytes; n++)
        low[n] = s.p[n] >= 'A' && s.p[n] <= 'Z' ? (char)(s.p[n] - 'A' + 'a')
                 : s.p[n]                       ? s.p[n]
                                                : ' ';
    low[n] = 0;
    const tv_kernel_class front = told_by(fronts, sizeof fronts / sizeof *fronts, low, true);
    return front ? front : told_by(texts, sizeof texts / sizeof *texts, low, false);
}

const char *tv_kernel_class_name(tv_kernel_class c)
{
    static const char *const names[] = {
        [TV_CLASS_OTHER] = "other",         [TV_CLASS_GEMM] = "gemm",
        [TV_CLASS_CONV] = "conv",           [TV_CLASS_ATTENTION] = "attention",
        [TV_CLASS_NORM] = "norm",           [TV_CLASS_ELEMENTWISE] = "elementwise",
        [TV_CLASS_REDUCE] = "reduce",       [TV_CLASS_EMBEDDING] = "embedding",
        [TV_CLASS_OPTIMIZER] = "optimizer", [TV_CLASS_COMMUNICATION] = "communication",
        [TV_CLASS_MEMCPY] = "memcpy",       [TV_CLASS_MEMSET] = "memset",
    };
    return names[c];
}
