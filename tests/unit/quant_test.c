/* What a configuration's quantisation means in type and bytes per weight, scales included. */
#include "testing.h"

#include "base/json.h"
#include "family/decoder.h"

typedef struct quant_case {
    const char *config; /* quantization_config, with ' for " */
    tv_dtype dtype;
    double bytes;
} quant_case;

static const quant_case cases[] = {
    {"'quant_method':'bitsandbytes','load_in_4bit':true,'bnb_4bit_quant_type':'nf4'", TV_NF4,
     0.5 + 4.0 / 64},
    {"'quant_method':'bitsandbytes','load_in_4bit':true,'bnb_4bit_quant_type':'fp4',"
     "'bnb_4bit_use_double_quant':true",
     TV_F4, 0.5 + 1.0 / 64 + 4.0 / (64 * 256)},
    {"'quant_method':'bitsandbytes','load_in_8bit':true", TV_I8, 1},
    {"'quant_method':'gptq','bits':4,'group_size':128", TV_U4, 0.5 + 2.5 / 128},
    {"'quant_method':'gptq','bits':8,'group_size':-1", TV_I8, 1},
    {"'quant_method':'awq','bits':4,'group_size':64", TV_U4, 0.5 + 2.5 / 64},
    {"'quant_method':'auto-round','bits':4,'group_size':32", TV_U4, 0.5 + 2.5 / 32},
    {"'quant_method':'hqq','quant_config':{'weight_quant_params':{'nbits':4,'group_size':64}}",
     TV_U4, 0.5 + 4.0 / 64},
    {"'quant_method':'hqq','quant_config':{'self_attn.q_proj':{'weight_quant_params':"
     "{'nbits':2,'group_size':16}}}",
     TV_U2, 0.25 + 4.0 / 16},
    {"'quant_method':'eetq','weights':'int8'", TV_I8, 1},
    {"'quant_method':'quanto','weights':'int4'", TV_U4, 0.5 + 4.0 / 128},
    {"'quant_method':'quanto','weights':'float8'", TV_F8_E4M3, 1},
    {"'quant_method':'torchao','quant_type':'int4_weight_only','quant_type_kwargs':"
     "{'group_size':32}",
     TV_U4, 0.5 + 4.0 / 32},
    {"'quant_method':'torchao','quant_type':{'default':{'_type':'Int8WeightOnlyConfig','_data':{}}"
     "}",
     TV_I8, 1},
    {"'quant_method':'torchao','quant_type':{'default':{'_type':'Float8WeightOnlyConfig'}}",
     TV_F8_E4M3, 1},
    {"'quant_method':'fp8','weight_block_size':[128,128]", TV_F8_E4M3, 1 + 4.0 / 16384},
    {"'quant_method':'compressed-tensors','format':'pack-quantized','config_groups':{'group_0':"
     "{'weights':{'num_bits':4,'type':'int','group_size':32,'symmetric':true}}}",
     TV_I4, 0.5 + 2.0 / 32},
    {"'quant_method':'compressed-tensors','format':'float-quantized','config_groups':{'group_0':"
     "{'weights':{'num_bits':8,'type':'float'}}}",
     TV_F8_E4M3, 1},
    {"'quant_method':'bitnet'", TV_U2, 0.25},
};

static void configurations_mean_bytes_per_weight(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        tv_buf b = tv_buf_in(a);
        tv_puts(&b, "{\"quantization_config\":{");
        for (const char *p = cases[i].config; *p; p++)
            tv_putc(&b, *p == '\'' ? '"' : *p);
        tv_puts(&b, "}}");
        const tv_json *config = NULL;
        assert_ok(a, tv_json_parse(a, TV_S("config"), tv_buf_str(&b), &config));
        const tv_source s = {.kind = TV_SOURCE_HF_CONFIG, .config = config};
        const tv_quant q = tv_quant_of(&s);
        if (q.dtype != cases[i].dtype || fabs(q.bytes_per_weight - cases[i].bytes) > 1e-12)
            fail_msg("%s: %s, %g", cases[i].config, tv_dtype_of(q.dtype)->name, q.bytes_per_weight);
        tv_arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations_mean_bytes_per_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
