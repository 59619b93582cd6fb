/* Parameter counts of real configurations that are no text decoders, against totals that were
 * worked out or published independently. Skips where the files are absent. */
#include "family/family.h"
#include "read/reader.h"
#include "testing.h"

typedef struct fact {
    const char *path;
    double params;
    bool backbone; /* the total counts encoder and pooler, without the head of the class */
} fact;

static const fact facts[] = {
    {"bert-base-uncased", 109482240, true},
    {"all-MiniLM-L6-v2", 22713216, true},
    {"bge-large", 335141888, true},
    {"neusight-bert-large", 335141888, true},
    {"dle-bert-large-2018", 335141888, true},
    {"HunyuanDiT/text_encoder", 352035840, true},
    {"albert-base-v1", 11683584, true},
    {"distilbert-base-squad", 66362880, true},
    {"deberta-v3-base", 183831552, true},
    {"roberta-base-2019", 124645632, true},
    {"ernie-1.0/ernie_config.json", 99866112, true},
    {"ernie-2.0-base-en/ernie_config.json", 109496064, true},
    {"ernie-2.0-large-en/ernie_config.json", 335160320, true},
    {"ernie-3.0-base/ernie_config.json", 117944832, true},
    {"ernie-doc-large-en/ernie_config.json", 355363840, true},
    {"unimo-base-en/ernie_config.json", 124644864, true},
    {"t5-small", 60506624, false},
    {"t5-v1_1-xxl", 11135332352, false},
    {"Chroma/text_encoder", 4762310656, false},
    {"FLUX.1-dev/text_encoder_2", 4762310656, false},
    {"stable-diffusion-3-medium/text_encoder_3", 4762310656, false},
    {"HunyuanDiT/text_encoder_2", 1669958656, false},
    {"bart-large", 406291456, false},
    {"dle-bart-large-hf", 406290432, false},
    {"clip-vit-large-patch14", 427616513, false},
    {"ipex-reduced-clip-large-336", 60264449, false},
    {"clip-vision-model", 632076800, false},
    {"stable-cascade-prior/image_encoder", 303966208, false},
    {"stable-cascade-prior/text_encoder", 694659840, false},
    {"stable-diffusion-v1-5/text_encoder", 123060480, false},
    {"stable-diffusion-2-1/text_encoder", 340387840, false},
    {"stable-diffusion-3-medium/text_encoder", 123650304, false},
    {"dinov2-giant", 1136480768, false},
    /* the published file's own total: hub page of google/siglip-so400m-patch14-384, vision part */
    {"siglip-so400m-patch14-384-vision", 428225600, false},
    {"FLUX.1-dev/transformer", 11901408320, false},
    {"FLUX.1-schnell/transformer", 11891178560, false},
    {"stable-diffusion-v1-5/unet", 859520964, false},
    {"stable-diffusion-2-1/unet", 865910724, false},
    {"stable-diffusion-xl-base-1.0/unet", 2567463684, false},
    {"stable-diffusion-xl-refiner-1.0/unet", 2259526660, false},
    /* 468,155,140 where only_cross_attention is overlooked: in ten blocks of width 512 the first
     * attention, too, takes keys and values from the text (1024 wide), 524,288 more in each */
    {"stable-diffusion-x4-upscaler/unet", 468155140 + 10 * 524288, false},
    /* SDXL's, a projection of the text 4096 to 2048 and 2816 more inputs of the size embedding */
    {"Kolors/unet", 2567463684 + 4096 * 2048 + 2048 + 2816 * 1280, false},
    /* the autoencoder of Stable Diffusion, 335 MB in fp32 on the hub */
    {"stable-diffusion-v1-5/vae", 83653863, false},
    {"FLUX.1-dev/vae", 83819683, false},
    {"stable-diffusion-3-medium/transformer", 2028328000, false},
    {"HunyuanDiT/transformer", 1516534048, false},
};

static double without_head(const tv_model *m)
{
    double params = m->params;
    for (size_t i = 0; i < m->n_parts; i++) {
        if (tv_str_is(m->parts[i].name, "head"))
            params -= m->parts[i].params;
        if (tv_str_is(m->parts[i].name, "pooler"))
            params += m->parts[i].params;
    }
    return params;
}

static void real_configurations_count_right(void **state)
{
    (void)state;
    if (!test_shared("models/MANIFEST.jsonl"))
        return;
    tv_arena *a = test_arena();
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const tv_source *s = NULL;
        const tv_model *m = NULL;
        tv_str path =
            tv_str_join(a, TV_S("../shared/data/models/configs/"), tv_str_of(facts[i].path));
        assert_ok(a, tv_read_model(a, path, &s));
        assert_ok(a, tv_family_model(a, s, &m));
        double got = facts[i].backbone ? without_head(m) : m->params;
        if (got != facts[i].params) {
            print_error("%s: %.0f, expected %.0f (%.0f)\n", facts[i].path, got, facts[i].params,
                        got - facts[i].params);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_configurations_count_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
