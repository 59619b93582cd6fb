/* Names of kernels of every library, as profilers write them. */
#include "testing.h"

#include "trace/kernel_class.h"

static const struct {
    const char *name;
    tv_kernel_class is;
} names[] = {
    /* cuBLAS, CUTLASS, cuBLASLt */
    {"ampere_sgemm_128x64_nn", TV_CLASS_GEMM},
    {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", TV_CLASS_GEMM},
    {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nt_align4>(Params)",
     TV_CLASS_GEMM},
    {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", TV_CLASS_GEMM},
    {"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT", TV_CLASS_GEMM},
    {"void gemmk1_kernel<float, 256, 5, false>(int)", TV_CLASS_GEMM},
    {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>",
     TV_CLASS_GEMM},
    {"void splitKreduce_kernel<float, float>(cublasSplitKParams<float>)", TV_CLASS_GEMM},
    {"void cublasLt::splitKreduce_kernel<32, 16, int>(cublasLt::Params)", TV_CLASS_GEMM},
    /* ROCm */
    {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1", TV_CLASS_GEMM},
    {"miopenSp3AsmConv_v21_1_3_gfx9_fp32_f2x3_stride1", TV_CLASS_CONV},
    {"igemm_fwd_gtcx2_nhwc_fp16_bx0_ex0_bt256x128x32", TV_CLASS_CONV},
    {"MIOpenBatchNormFwdTrainSpatialHIP", TV_CLASS_NORM},
    {"ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", TV_CLASS_COMMUNICATION},
    {"CopyHostToDevice", TV_CLASS_MEMCPY},
    {"void ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipeline>", TV_CLASS_ATTENTION},
    /* cuDNN */
    {"volta_scudnn_128x64_relu_interior_nn_v1", TV_CLASS_CONV},
    {"turing_h1688cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", TV_CLASS_CONV},
    {"void implicit_convolve_sgemm<float, float, 1024, 6>(int)", TV_CLASS_CONV},
    {"sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32", TV_CLASS_CONV},
    {"void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32>(Params)",
     TV_CLASS_CONV},
    {"_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_", TV_CLASS_CONV},
    {"void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)", TV_CLASS_CONV},
    {"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(T)", TV_CLASS_NORM},
    {"void cudnn::ops::nchwToNhwcKernel<float, float, float>(P)", TV_CLASS_ELEMENTWISE},
    /* attention */
    {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>>(P)",
     TV_CLASS_ATTENTION},
    {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
     TV_CLASS_ATTENTION},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", TV_CLASS_ATTENTION},
    {"void vllm::paged_attention_v2_kernel<unsigned short, 128>(P)", TV_CLASS_ATTENTION},
    {"_attn_fwd", TV_CLASS_ATTENTION},
    {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<true>(P)", TV_CLASS_ATTENTION},
    /* PyTorch */
    {"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
     TV_CLASS_ELEMENTWISE},
    {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>>",
     TV_CLASS_OPTIMIZER},
    {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)",
     TV_CLASS_NORM},
    {"void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(P)",
     TV_CLASS_NORM},
    {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(P)", TV_CLASS_REDUCE},
    {"split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel", TV_CLASS_EMBEDDING},
    {"void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int)", TV_CLASS_ELEMENTWISE},
    {"void cub::DeviceRadixSortOnesweepKernel<Policy>(P)", TV_CLASS_REDUCE},
    /* Triton */
    {"triton_poi_fused_addmm_relu_3", TV_CLASS_ELEMENTWISE},
    {"triton_red_fused__to_copy_native_layer_norm_5", TV_CLASS_REDUCE},
    {"triton_per_fused__softmax_2", TV_CLASS_REDUCE},
    {"triton_tem_fused_mm_7", TV_CLASS_GEMM},
    {"triton_tem_fused_convolution_1", TV_CLASS_CONV},
    {"triton_mm", TV_CLASS_GEMM},
    {"fused_moe_kernel", TV_CLASS_GEMM},
    /* Paddle */
    {"void phi::funcs::LayerNormForward<float, float, 1024, false, long>(P)", TV_CLASS_NORM},
    {"void phi::AdamKernelMEM<float, float>(float, float)", TV_CLASS_OPTIMIZER},
    {"void phi::funcs::VectorizedElementwiseKernel<float, phi::funcs::ReluFunctor>(P)",
     TV_CLASS_ELEMENTWISE},
    /* TensorRT, XLA */
    {"trt_ampere_h16816cudnn_256x64_ldg8_relu_exp_stages_64x3_medium_nhwc", TV_CLASS_CONV},
    {"__myl_FcMulAdd_0x1234", TV_CLASS_GEMM},
    {"generatedNativePointwise", TV_CLASS_ELEMENTWISE},
    {"loop_convert_fusion", TV_CLASS_ELEMENTWISE},
    {"gemm_fusion_dot_12", TV_CLASS_GEMM},
    {"all-reduce-start.1", TV_CLASS_COMMUNICATION},
    /* collectives */
    {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
     TV_CLASS_COMMUNICATION},
    {"void vllm::cross_device_reduce_1stage<__half, 2>(P)", TV_CLASS_COMMUNICATION},
    {"void deep_ep::internode::dispatch<false, 8>(P)", TV_CLASS_COMMUNICATION},
    /* copies */
    {"Memcpy HtoD (Pageable -> Device)", TV_CLASS_MEMCPY},
    {"[CUDA memcpy Device-to-Host]", TV_CLASS_MEMCPY},
    {"Memset (Device)", TV_CLASS_MEMSET},
    {"[CUDA memset]", TV_CLASS_MEMSET},
    /* nothing telling */
    {"Kernel", TV_CLASS_OTHER},
    {"my_kernel(float*, int)", TV_CLASS_OTHER},
    {"", TV_CLASS_OTHER},
};

static void classes_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tv_kernel_class got = tv_kernel_class_of(tv_str_of(names[i].name));
        if (got != names[i].is)
            fail_msg("%s: got %s, want %s", names[i].name, tv_kernel_class_name(got),
                     tv_kernel_class_name(names[i].is));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
